"""The numbers of a table: what the records of a row and method say, and how two methods differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import stats

from psgnn_lab.manifest import MethodSpec, Row
from psgnn_lab.plan import Run, count
from psgnn_lab.records import Record, read_cell

ENOUGH_SEEDS = 3


@dataclass(frozen=True)
class Cell:
    """The current records of a method on a row, by seed, and the number of runs that there should be."""

    row: Row
    method: MethodSpec
    records: Mapping[int, Record]
    wanted: int

    def values(self, metric: str, part: str = "test") -> dict[int, float]:
        """A metric by seed, of the seeds that have it."""
        found = {seed: (record.get(part) or {}).get(metric) for seed, record in self.records.items()}
        return {seed: value for seed, value in found.items() if value is not None}

    def extra(self, name: str) -> dict[int, float]:
        """Another number of the records by seed, such as ``picking_seconds``, of the seeds that have it."""
        return {seed: record[name] for seed, record in self.records.items() if record.get(name) is not None}

    @property
    def main(self) -> dict[int, float]:
        """The metric of the row by seed."""
        return self.values(self.row.metric)

    @property
    def mean(self) -> float:
        """Of the metric of the row; NaN without records."""
        return mean(self.main)

    @property
    def seconds(self) -> float:
        """Mean time of a run."""
        return mean({seed: record["seconds"] for seed, record in self.records.items()})


def mean(values: Mapping[int, float]) -> float:
    """NaN of nothing."""
    return float(np.mean(list(values.values()))) if values else float("nan")


def read_cells(folder: Path, row: Row, methods: Sequence[MethodSpec], first_seed: int) -> dict[str, Cell]:
    """The cells of a row by method; a record of other settings does not count."""
    cells = {}
    for method in methods:
        if method.name in row.skip:
            continue
        wanted = count(row, method)
        records = read_cell(folder, row.name, method.name)
        current = {
            seed: records[seed]
            for seed in range(first_seed, first_seed + wanted)
            if seed in records and records[seed]["id"] == Run(row.of_seed(seed - first_seed), method, seed).id
        }
        cells[method.name] = Cell(row, method, current, wanted)
    return cells


def highest(cells: Iterable[Cell]) -> Cell | None:
    """The cell with the highest mean, which is known only after the test; None without records."""
    return max((cell for cell in cells if cell.main), key=lambda cell: cell.mean, default=None)


def best_rule(of_row: Mapping[str, Cell]) -> Cell | None:
    """The rule with the highest mean."""
    return highest(cell for cell in of_row.values() if cell.method.kind == "rule")


@dataclass(frozen=True)
class Difference:
    """Mean of ``main - other`` over the common seeds, its 95 % interval and p-value (paired t-test)."""

    main: Cell
    other: Cell
    seeds: int
    mean: float
    low: float | None
    high: float | None
    p: float | None


def difference(main: Cell, other: Cell) -> Difference | None:
    """How two methods differ on the same splits; None without a common one."""
    common = sorted(set(main.main) & set(other.main))
    if not common:
        return None
    gaps = np.array([main.main[seed] - other.main[seed] for seed in common])
    # Differences that are all equal have no spread to test against.
    if len(common) < 2 or np.ptp(gaps) == 0:
        return Difference(main, other, len(common), float(gaps.mean()), None, None, None)
    test = stats.ttest_1samp(gaps, 0.0)
    interval = test.confidence_interval(0.95)
    return Difference(
        main,
        other,
        len(common),
        float(gaps.mean()),
        float(interval.low),
        float(interval.high),
        float(test.pvalue),
    )


def against_best(main: Cell, cells: Mapping[str, Cell]) -> Difference | None:
    """The difference to the hardest competitor: the one with the smallest lead of `main` on common seeds.

    A competitor with fewer than `ENOUGH_SEEDS` of them is named only where no other has more: on a single split a weak
    method can come close by luck.
    """
    others = [difference(main, cell) for name, cell in cells.items() if name != main.method.name]
    known = [other for other in others if other is not None]
    enough = [other for other in known if other.seeds >= ENOUGH_SEEDS]
    return min(enough or known, key=lambda found: found.mean, default=None)
