"""Where a training run stands, in memory and on disk; checked before an interrupted run resumes from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from psgnn.errors import InputError
from psgnn.graph._graph import GraphBatch
from psgnn.memory import peak_bytes
from psgnn.models._anchor_sets import (
    AnyAnchors,
    anchor_tensors,
    anchors_of_tensors,
)
from psgnn.models._config import ModelConfig
from psgnn.models._models import PositionModel
from psgnn.tasks import Task
from psgnn.training import _runs as runs
from psgnn.training._folder import REPLACE, STATE, check_out, one_line
from psgnn.training._record import check_history, is_number

if TYPE_CHECKING:
    from psgnn.training._run import Run

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
        raise ValueError(f"'{name}' has values that are not numbers")


def check_anchors(choice: AnyAnchors | None, picker: str, union: GraphBatch) -> None:
    """Refuse anchors that such a picker could not have chosen in these graphs."""
    if choice is None or picker == "none":
        sound = choice is None and picker == "none"
    else:
        sound = (choice.single is None) == (picker == "random-sets") and choice.is_sound(union)
    if not sound:
        raise ValueError("these are not anchors of the graph")


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
        raise ValueError("the numbers of the epochs are not integers")
    if not all(is_number(numbers[key]) for key in VALUES):
        raise ValueError("the values of the epoch are not numbers")
    check_history(history)


DATA = ("split", "graph")  # digests, in the identity of a run


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
    model: PositionModel,
    optimizer: torch.optim.Optimizer,
    *,
    union: GraphBatch | None = None,
    beside: bool = False,
    otherwise: str = REPLACE,
) -> State:
    """Begin a run, or resume one that was interrupted.

    Args:
        folder: The run folder.
        identity: What has to be equal for a run to be resumed.
        model: Gets the weights of the interrupted run.
        optimizer: Gets its moments.
        union: The graphs that anchors are chosen in; None where no anchors are kept.
        beside: Accept other files, beside which a new run may lie.
        otherwise: What to do instead, for the message.

    Raises:
        InputError: If the folder holds a finished run, other files, a run of another identity, or a state that does
            not fit the model.
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
    try:
        return _load_state(tensors, metadata, model, optimizer, union)
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise InputError(f"{folder / STATE} does not fit this run ({one_line(error)}); {otherwise}") from None


def _difference(before: Any, now: dict[str, Any]) -> str:
    """What is not as it was, in words."""
    if not isinstance(before, dict) or not isinstance(before.get("config", {}), dict):
        return "other settings"
    old, new = ({**part, **part.get("config", {})} for part in (before, now))
    changed = [key for key in new if key != "config" and old.get(key) != new[key]]
    told = [f"{key} {str(old.get(key))[:40]} (now {new[key]})" for key in changed if key not in DATA]
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
    numbers = {key: getattr(state, key) for key in (*COUNTS, *VALUES)}
    runs.write_tensors(folder / STATE, tensors, identity=identity, numbers=numbers, history=state.history)


def _load_state(
    tensors: dict[str, torch.Tensor],
    metadata: dict[str, Any],
    model: PositionModel,
    optimizer: torch.optim.Optimizer,
    union: GraphBatch | None,
) -> State:
    """Load what was checked: nothing is changed where anything in the file is wrong."""

    def part(prefix: str) -> dict[str, torch.Tensor]:
        return {key[len(prefix) :]: value for key, value in tensors.items() if key.startswith(prefix)}

    weights, best, average = (part(f"{name}.") for name in ("model", "best", "average"))
    slots: dict[int, dict[str, torch.Tensor]] = {}
    for key, value in part("optimizer.").items():
        index, _, slot = key.partition(".")
        slots.setdefault(int(index), {})[slot] = value
    numbers, history = metadata["numbers"], metadata["history"]
    choice = anchors_of_tensors(tensors)
    expected = model.state_dict()
    for found in (weights, *(each for each in (best, average) if each)):
        check_tensors(found, expected)
    check_optimizer(slots, optimizer)
    check_progress(numbers, history)
    if best and union is not None:
        check_anchors(choice, model.config.picker, union)
    if union is not None and bool(best) != bool(history):
        raise ValueError("the weights of the best epoch are missing, or belong to no epoch")
    where = next(model.parameters()).device
    weights, best, average = (
        {key: value.to(where) for key, value in found.items()} for found in (weights, best, average)
    )
    model.load_state_dict(weights)
    optimizer.load_state_dict({**optimizer.state_dict(), "state": slots})
    return State(
        **numbers,
        history=history,
        best_weights=best,
        average=average,
        best_choice=choice if best else None,
    )


def record_of(
    task: Task, config: ModelConfig, state: State, result: Run, about: Mapping[str, Any]
) -> dict[str, Any]:
    """What is kept of a training: what it was asked, what came out, and what that may depend on."""
    return {
        **about,
        "read": task.read,
        "epochs_run": state.epoch,
        "best_epoch": state.best_epoch,
        "val": result.val,
        "test": result.test,
        "embedding_test": result.embedding_test,
        "history": state.history,
        "anchors": result.anchors,
        "graph_numbers": result.numbers,
        "task": {
            "name": task.name,
            "negatives": task.negatives,
            "split": task.digest,
            "data": runs.data_hash(result.view),
        },
        "config": config.model_dump(),
        "seconds": round(state.seconds, 3),
        "peak_memory_mb": peak_bytes() // 2**20,
        "versions": runs.versions(),
    }
