"""The history of training as TensorBoard's events (an extra)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from psgnn.errors import MissingExtraError


def write_tensorboard(folder: str | Path, history: Iterable[Mapping[str, Any]]) -> None:
    """One scalar for each number of every validation."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise MissingExtraError("tensorboard", "tensorboard", "--tensorboard") from None
    with SummaryWriter(str(folder)) as writer:
        for entry in history:
            for name, value in entry.items():
                if name not in ("epoch", "anchors"):
                    tag = "loss" if name == "loss" else f"validation/{name}"
                    writer.add_scalar(tag, value, int(entry["epoch"]))
