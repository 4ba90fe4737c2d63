"""What a step of training is made of: its random numbers, learning rate, gradient estimate and average of weights."""

from __future__ import annotations

import math
from typing import Any

import torch


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
