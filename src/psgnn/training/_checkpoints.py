"""Where a training run stands, in memory and on disk: what an interrupted run is resumed from."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from psgnn.errors import InputError
from psgnn.models._anchor_sets import AnyAnchors, anchor_tensors, anchors_of_tensors
from psgnn.training import _runs as runs
from psgnn.training._folder import REPLACE, STATE, check_out

DATA = ("split", "graph")  # digests, in the identity of a run
NUMBERS = ("epoch", "best_epoch", "improved_epoch", "best_value", "loss", "seconds")


@dataclass
class State:
    """All that resuming needs beside model and optimizer, since every epoch draws from a random stream of its own."""

    epoch: int = 0
    best_epoch: int = -1
    improved_epoch: int = 0
    best_value: float = -1.0
    loss: float = 0.0  # of the last epoch
    best_weights: dict[str, torch.Tensor] = field(default_factory=dict)
    best_choice: AnyAnchors | None = None
    average: dict[str, torch.Tensor] = field(default_factory=dict)
    history: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0


def open_run(
    folder: Path,
    identity: dict[str, Any],
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    *,
    beside: bool = False,
    otherwise: str = REPLACE,
) -> State:
    """A new run, or the state of one that was interrupted; its `identity` has to be equal to be resumed.

    What can be done `otherwise` is told where it is not. ``beside``: a new one may lie beside other files.
    """
    check_out(folder, beside=beside, otherwise=otherwise)
    if not (folder / STATE).exists():
        folder.mkdir(parents=True, exist_ok=True)
        return State()
    tensors, metadata = runs.read_tensors(folder / STATE)
    if metadata.get("identity") != identity:
        raise InputError(
            f"{folder} holds an interrupted run of {_difference(metadata.get('identity'), identity)}; "
            f"repeat its command to resume it, or {otherwise}"
        )
    return _load_state(tensors, metadata, model, optimizer)


def _difference(before: Any, now: dict[str, Any]) -> str:
    """What is not as it was, in words."""
    if not isinstance(before, dict):
        return "other settings"
    old, new = ({**part, **part.get("config", {})} for part in (before, now))
    changed = [key for key in new if key != "config" and old.get(key) != new[key]]
    told = [f"{key} {old.get(key)} (now {new[key]})" for key in changed if key not in DATA]
    data = ["other data"] if any(key in changed for key in DATA) else []
    return " and ".join([*told[:3], *data]) or "other settings"


def save_state(
    folder: Path,
    state: State,
    identity: dict[str, Any],
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
) -> None:
    """Write everything that `open_run` needs to go on."""
    tensors = {f"model.{key}": value for key, value in model.state_dict().items()}
    tensors |= {f"best.{key}": value for key, value in state.best_weights.items()}
    tensors |= {f"average.{key}": value for key, value in state.average.items()}
    tensors |= anchor_tensors(state.best_choice)
    for index, slots in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{index}.{slot}": torch.as_tensor(value) for slot, value in slots.items()}
    numbers = {key: getattr(state, key) for key in NUMBERS}
    runs.write_tensors(folder / STATE, tensors, identity=identity, numbers=numbers, history=state.history)


def _load_state(
    tensors: dict[str, torch.Tensor],
    metadata: dict[str, Any],
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
) -> State:
    def part(prefix: str, where: torch.device | None = None) -> dict[str, torch.Tensor]:
        found = {key[len(prefix) :]: value for key, value in tensors.items() if key.startswith(prefix)}
        return found if where is None else {key: value.to(where) for key, value in found.items()}

    where = next(model.parameters()).device
    model.load_state_dict(part("model.", where))
    slots: dict[int, dict[str, torch.Tensor]] = {}
    for key, value in part("optimizer.").items():
        index, slot = key.split(".", 1)
        slots.setdefault(int(index), {})[slot] = value
    optimizer.load_state_dict({**optimizer.state_dict(), "state": slots})
    return State(
        **metadata["numbers"],
        history=metadata["history"],
        best_weights=part("best.", where),
        average=part("average.", where),
        best_choice=anchors_of_tensors(tensors),
    )
