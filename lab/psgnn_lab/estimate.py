"""How long runs will take, from those on record."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from statistics import fmean

from psgnn_lab.plan import Run
from psgnn_lab.records import read_cell

UNKNOWN_SECONDS = {"pretrained": 3.0, "oracle": 1.0, "rule": 1.0, "model": 30.0, "peer": 30.0}


class Estimate:
    """Seconds of a run: the mean of its row and method on record, else of its method, else a guess by kind."""

    def __init__(self, folder: Path, runs: Iterable[Run]) -> None:
        self._seconds: dict[object, list[float]] = defaultdict(list)
        cells = {(run.row.name, run.method.name) for run in runs}
        for row, method in sorted(cells):
            for record in read_cell(folder, row, method).values():
                self._seconds[row, method].append(record["seconds"])
                self._seconds[method].append(record["seconds"])

    def seconds(self, run: Run) -> float:
        """Of one run."""
        method = run.method.name
        known = self._seconds.get((run.row.name, method)) or self._seconds.get(method)
        return fmean(known) if known else UNKNOWN_SECONDS[run.method.kind]

    def total(self, runs: Iterable[Run]) -> float:
        """Of several, one after another."""
        return sum(map(self.seconds, runs))


def as_time(seconds: float) -> str:
    """``95 s`` as a person reads it: ``2 min``."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
