"""What the record of a run may hold. A record is not trusted: whatever else is in it is refused in one place.

Nothing here imports torch, but TensorBoard's writer does.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from psgnn.errors import InputError, MissingExtraError
from psgnn.paths import atomic_write, unfinished_parts

MOST_BYTES = 256 * 2**20
MOST_DEPTH = 16
MOST_DIGITS = 19  # of an integer, so that it fits 64 bits
COUNTS = ("seed", "epochs", "epochs_run", "best_epoch")
VALUES = ("seconds", "peak_memory_mb", "choosing_seconds")


def parse_document(content: bytes) -> Any:
    """Parse JSON that holds text, finite numbers and a bounded depth; anything else is a `ValueError`."""
    if len(content) > MOST_BYTES:
        raise ValueError(f"{len(content)} bytes, at most {MOST_BYTES} are read")
    try:
        document = json.loads(content, parse_int=_integer, parse_float=_real, parse_constant=_real)
    except RecursionError:
        raise ValueError("too deeply nested") from None
    _walk(document)
    return document


def _integer(text: str) -> int:
    if len(text.lstrip("-")) > MOST_DIGITS:
        raise ValueError(f"an integer of {len(text)} digits")
    return int(text)


def _real(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:20]} is not a finite number")
    return value


def _walk(document: Any) -> None:
    """Refuse deep nesting, which readers that recurse could not follow, and text that is not Unicode."""
    level = [document]
    for _ in range(MOST_DEPTH):
        below: list[Any] = []
        for value in level:
            if isinstance(value, str):
                value.encode()
            elif isinstance(value, dict):
                "".join(value).encode()
                below += value.values()
            elif isinstance(value, list):
                below += value
        level = below
        if not level:
            return
    raise ValueError("too deeply nested")


def is_number(value: Any) -> bool:
    """Whether this is a finite number; a truth value is none, and neither is an integer beyond 64 bits."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) < 2**64 and math.isfinite(value)


def check_record(record: dict[str, Any]) -> None:
    """Refuse a record whose known entries are of another kind than psgnn writes."""
    for key in ("val", "test"):
        check_metrics(key, record.get(key))
    if record.get("embedding_test") is not None:
        check_metrics("embedding_test", record["embedding_test"])
    check_history(record.get("history"))
    for key in COUNTS:
        if key in record and not (type(record[key]) is int and record[key] >= -1):
            raise ValueError(f"{key} is not an integer")
    if record.get("seed", 0) < 0:
        raise ValueError("seed is below zero")
    for key in VALUES:
        if key in record and not is_number(record[key]):
            raise ValueError(f"{key} is not a number")
    explained = record.get("explained", [])
    if not isinstance(explained, list) or not all(
        isinstance(shares, list) and all(map(is_number, shares)) for shares in explained
    ):
        raise ValueError("explained is not a list of shares per graph")
    if not isinstance(record.get("command", ""), str | None):
        raise ValueError("command is not text")
    from psgnn.graph._options import check_kept  # loads NumPy, and a wrong folder is refused before that

    check_kept(record.get("read", {}))
    texts = (record.get("versions", {}), record.get("task", {}))
    if not all(isinstance(part, dict) for part in texts) or not all(
        isinstance(text, str | None) for part in texts for text in part.values()
    ):
        raise ValueError("versions and task are not tables of texts")


def check_metrics(name: str, metrics: Any) -> None:
    """Refuse what is not finite numbers by name, the AUC among them."""
    if not isinstance(metrics, dict) or "auc" not in metrics or not all(map(is_number, metrics.values())):
        raise ValueError(f"{name} has no metrics")


def check_history(history: Any) -> None:
    """Refuse a history that is not a list of measurements: finite numbers by name, and anchors."""
    if not isinstance(history, list) or not all(isinstance(entry, dict) for entry in history):
        raise ValueError("there is no history")
    for entry in history:
        if not {"loss", "auc"} <= entry.keys() or not ({"epoch", "step"} & entry.keys()):
            raise ValueError("the history has no metrics")
        if not all(is_number(value) for key, value in entry.items() if key != "anchors"):
            raise ValueError("the history has values that are not numbers")
        if not _are_nodes(entry.get("anchors", [])):
            raise ValueError("the history has anchors that are not nodes")


def _are_nodes(anchors: Any) -> bool:
    """Whether these are ids of nodes, or lists of them."""
    if not isinstance(anchors, list):
        return False
    units = (unit if isinstance(unit, list) else [unit] for unit in anchors)
    return all(type(node) is int and node >= 0 for unit in units for node in unit)


def check_tensorboard(folder: str | Path) -> None:
    """Say before a training what would be wrong after it."""
    _writer()
    for part in (Path(folder), *Path(folder).parents):
        if part.exists() and not part.is_dir():
            raise InputError(f"{part} is a file, and --tensorboard needs a folder; choose another")


def write_tensorboard(folder: str | Path, history: Iterable[Mapping[str, Any]]) -> None:
    """One scalar for each number of every validation, in a file that is named by what it holds.

    A training that is repeated replaces its file, and the file of another one stays.
    """
    scalars = [
        ("loss" if name == "loss" else f"validation/{name}", float(value), int(entry["epoch"]))
        for entry in history
        for name, value in entry.items()
        if name not in ("epoch", "anchors")
    ]
    digest = sha256(json.dumps(scalars).encode()).hexdigest()[:16]
    Path(folder).mkdir(parents=True, exist_ok=True)
    path = Path(folder) / f"events.out.tfevents.{digest}"
    with atomic_write(path, force=True) as temporary, unfinished_parts(temporary) as parts:
        with _writer()(str(parts)) as writer:
            for scalar in scalars:
                writer.add_scalar(*scalar)
        (events,) = parts.iterdir()
        temporary.write_bytes(events.read_bytes())


def _writer() -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise MissingExtraError("tensorboard", "tensorboard", "--tensorboard") from None
    return SummaryWriter
