"""Where tensors live, and how many threads work on them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import torch
from threadpoolctl import threadpool_limits

from psgnn.errors import InputError, unknown_name

DEVICES = ("auto", "cpu", "cuda", "mps")
ONE_THREAD_NODES = 10_000


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
def fitting_threads(num_nodes: int) -> Iterator[None]:
    """One thread of torch and BLAS where the graph is small: threads wait for one another longer than they work."""
    with one_thread() if num_nodes <= ONE_THREAD_NODES else nullcontext():
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
