"""The history of training as TensorBoard's events (an extra)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from psgnn.errors import InputError, MissingExtraError


def check_tensorboard(folder: str | Path) -> None:
    """Say before a training what would be wrong after it."""
    _writer()
    for part in (Path(folder), *Path(folder).parents):
        if part.exists() and not part.is_dir():
            raise InputError(f"{part} is a file, and --tensorboard needs a folder; choose another")


def write_tensorboard(folder: str | Path, history: Iterable[Mapping[str, Any]]) -> None:
    """One scalar for each number of every validation."""
    with _writer()(str(folder)) as writer:
        for entry in history:
            for name, value in entry.items():
                if name not in ("epoch", "anchors"):
                    tag = "loss" if name == "loss" else f"validation/{name}"
                    writer.add_scalar(tag, value, int(entry["epoch"]))


def _writer() -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise MissingExtraError("tensorboard", "tensorboard", "--tensorboard") from None
    return SummaryWriter
