"""What a training step needs: device, threads, random numbers, learning rate, gradients, averaged weights."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from threadpoolctl import threadpool_limits

from psgnn.errors import InputError, unknown_name

DEVICES = ("auto", "cpu", "cuda", "mps")
ONE_THREAD_NODES = 10_000
ONE_THREAD_NUMBERS = 2**22  # in the node states of the pairs of a step


def pick_device(name: str = "auto") -> torch.device:
    """The device of that name; ``auto`` is a GPU where there is one. One that is not there is an error."""
    if name not in DEVICES:
        raise unknown_name("device", name, DEVICES)
    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if name == "auto":
        name = next(kind for kind, found in there.items() if found)
    if not there[name]:
        raise InputError(f"there is no {name} device here; pass --device cpu or auto")
    # torchrun starts one process for each GPU of a machine.
    return torch.device(name, int(os.environ.get("LOCAL_RANK", 0))) if name == "cuda" else torch.device(name)


@contextmanager
def fitting_threads(num_nodes: int, numbers: int = 0) -> Iterator[None]:
    """One thread of torch and BLAS where graph and steps are small: threads wait for one another longer than they work.

    ``numbers`` is how many there are in the node states of the pairs that are scored at once.
    """
    small = num_nodes <= ONE_THREAD_NODES and numbers <= ONE_THREAD_NUMBERS
    with one_thread() if small else nullcontext():
        yield


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread of torch and BLAS."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1, "blas"):
            yield
    finally:
        torch.set_num_threads(threads)


def seed_torch(seed: int, device: torch.device) -> None:
    """Seed the random numbers that a step on the device draws."""
    if device.type == "cpu":
        # torch.manual_seed notes the call and its traceback for every GPU that might come to be used: a millisecond.
        torch.default_generator.manual_seed(seed)
    else:
        torch.manual_seed(seed)


def one_cycle(progress: float) -> float:
    """The factor of the learning rate: up from nearly nothing in the first fifth, then down along a cosine."""
    rising = progress < 0.2
    phase = progress / 0.2 - 1 if rising else (progress - 0.2) / 0.8
    return 0.02 + 0.49 * (1 + math.cos(math.pi * phase))


def score_function(losses: list[torch.Tensor], log_probs: list[Any]) -> torch.Tensor:
    """REINFORCE with the mean of the other samples as the baseline (of one sample: none is left, so zero)."""
    values = torch.stack(losses).detach()
    baseline = (values.sum() - values) / max(len(losses) - 1, 1)
    advantage = values - baseline if len(losses) > 1 else values
    return (advantage[:, None] * torch.stack(log_probs)).mean()


@torch.no_grad()
def move_average(average: dict[str, torch.Tensor], current: dict[str, torch.Tensor], share: float) -> None:
    """Move an average of weights in place by a share of the way to the current ones; an empty one becomes them."""
    if not average:
        average.update({key: value.detach().clone() for key, value in current.items()})
    for key, value in average.items():
        if value.is_floating_point():
            value.lerp_(current[key], share)
