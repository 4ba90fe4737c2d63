"""The history of training as TensorBoard's events (an extra)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from psgnn.errors import InputError, MissingExtraError
from psgnn.paths import atomic_write, unfinished_parts


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
