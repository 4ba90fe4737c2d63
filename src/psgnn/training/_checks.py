"""Checks of what is read from a run folder, before a model, an optimizer or compiled code uses it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from psgnn.graph._graph import GraphBatch
from psgnn.models._anchor_sets import AnchorSet, AnyAnchors, RandomAnchorSets, is_sound
from psgnn.training._record import check_history, is_number

MOMENTS = ("exp_avg", "exp_avg_sq")  # of AdamW, one number per weight; `step` is one number
COUNTS = ("epoch", "best_epoch", "improved_epoch")
VALUES = ("best_value", "loss", "seconds")
Slots = Mapping[int, Mapping[str, torch.Tensor]]


def check_tensors(found: Mapping[str, torch.Tensor], expected: Mapping[str, torch.Tensor]) -> None:
    """Refuse tensors of other names, types or shapes than expected, and numbers that are not finite."""
    for key in expected.keys() ^ found.keys():
        raise ValueError(f"'{key}' is {'missing' if key in expected else 'unknown'}")
    for key, value in found.items():
        _check_tensor(key, value, expected[key])


def _check_tensor(name: str, found: torch.Tensor, expected: torch.Tensor) -> None:
    if found.shape != expected.shape or found.dtype != expected.dtype:
        wanted = f"{expected.dtype} {list(expected.shape)}"
        raise ValueError(f"'{name}' is {found.dtype} {list(found.shape)}, expected {wanted}")
    if not bool(found.isfinite().all()):
        raise ValueError(f"'{name}' has values that are no numbers")


def check_anchors(choice: AnyAnchors | None, picker: str, union: GraphBatch) -> None:
    """Refuse anchors that such a picker could not have chosen in these graphs."""
    kind = {"none": type(None), "random-sets": RandomAnchorSets}.get(picker, AnchorSet)
    if not isinstance(choice, kind) or not is_sound(choice, union):
        raise ValueError("these are no anchors of the graph")


def check_optimizer(slots: Slots, optimizer: torch.optim.Optimizer) -> None:
    """Refuse moments that do not fit the weights: fused AdamW reads as many numbers as the weights have."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    for index, found in slots.items():
        if not 0 <= index < len(parameters):
            raise ValueError(f"moments of weights {index}, of which there are {len(parameters)}")
        moment = parameters[index].detach()
        check_tensors(found, {"step": torch.zeros(()), **dict.fromkeys(MOMENTS, moment)})
        if float(found["step"]) < 1 or bool((found["exp_avg_sq"] < 0).any()):
            raise ValueError(f"the moments of weights {index} are below zero")


def check_progress(numbers: Any, history: Any) -> None:
    """Refuse numbers of an epoch, and a history of validations, that no run has."""
    if not isinstance(numbers, dict) or numbers.keys() != {*COUNTS, *VALUES}:
        raise ValueError("the numbers of the epoch are missing")
    counts = [numbers[key] for key in COUNTS]
    if not all(type(count) is int and -1 <= count < 2**53 for count in counts) or numbers["epoch"] < 0:
        raise ValueError("the numbers of the epochs are no integers")
    if not all(is_number(numbers[key]) for key in VALUES):
        raise ValueError("the values of the epoch are no numbers")
    check_history(history)
