"""Where tensors live."""

from __future__ import annotations

import os

import torch

from psgnn.errors import InputError, unknown_name

DEVICES = ("auto", "cpu", "cuda", "mps")


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
