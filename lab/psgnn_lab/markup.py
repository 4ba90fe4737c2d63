"""The markdown of a table: numbers with their spread, emphasis, and links to the records they come from."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from psgnn_lab.manifest import Manifest
from psgnn_lab.records import record_path
from psgnn_lab.statistics import Cell

LABELS = {
    "auc": "AUC", "auc_pooled": "AUC, pooled", "ap": "AP", "mrr": "MRR",
    "hits@10": "Hits@10", "hits@20": "Hits@20", "hits@50": "Hits@50", "hits@100": "Hits@100",
}  # fmt: skip


def spread(cell: Cell, digits: int = 4) -> str:
    """Mean, standard deviation and number of seeds."""
    values = list(cell.main.values())
    if not values:
        return "-"
    if len(values) == 1:
        return f"{values[0]:.{digits}f} (1)"
    centre = cell.mean
    deviation = math.sqrt(sum((value - centre) ** 2 for value in values) / (len(values) - 1))
    return f"{centre:.{digits}f} ± {deviation:.{digits}f} ({len(values)})"


def emphasis(text: str, cell: Cell, cells: dict[str, Cell], digits: int = 4) -> str:
    """Bold if no method of the row is better in the digits that are shown."""
    best = max((round(other.mean, digits) for other in cells.values() if other.main), default=math.inf)
    return f"**{text}**" if cell.main and round(cell.mean, digits) == best else text


def number(value: float) -> str:
    """Four digits, or - for nothing."""
    return "-" if math.isnan(value) else f"{value:.4f}"


def seconds(value: float) -> str:
    """Whole seconds from ten on."""
    return "-" if math.isnan(value) else f"{value:.2f}" if value < 10 else f"{value:.0f}"


def linked(manifest: Manifest, cell: Cell, text: str) -> str:
    """The text, with a link to the record file that it comes from."""
    if not cell.records:
        return text
    return f"[{text}]({link(manifest, record_path(manifest.records, cell.row.name, cell.method.name))})"


def link(manifest: Manifest, target: Path) -> str:
    """The way from the page to a file of the experiment."""
    page = (manifest.folder / (manifest.page or "page.md")).resolve()
    return Path(os.path.relpath(target.resolve(), page.parent)).as_posix()


def table(columns: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """The first column to the left, all others to the right."""
    rule = ["---", *(["---:"] * (len(columns) - 1))]
    return "\n".join("| " + " | ".join(line) + " |" for line in [columns, rule, *lines])
