"""What a search has tried: ``records/search/ROW/MODEL.json``, one line a trial; and what is to be run after it.

A trial is a run without its test: a row, a model with settings, a seed. Its id is that of the run, so a line counts
as long as the manifest still asks for the same. The storage of the search can be lost; these lines are what is kept.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from psgnn.paths import locked
from psgnn_lab.manifest import Manifest, MethodSpec, Row
from psgnn_lab.plan import Run
from psgnn_lab.records import DIGITS, intact, read_lines, record_path, write_lines
from psgnn_lab.search_spec import Params, Search

FOLDER = "search"
UNKNOWN_SECONDS = 10.0


@dataclass(frozen=True)
class Trial:
    """Settings that were tried, and the validation metric that they reached."""

    number: int
    params: Params
    val: float
    best_epoch: int
    epochs: int
    seconds: float


@dataclass(frozen=True)
class SearchCell:
    """A model on a row: what one search is about."""

    search: Search
    row: Row
    model: str

    @property
    def title(self) -> str:
        """Of the model."""
        return self.search.models[self.model].title or self.model

    @property
    def published(self) -> Params:
        """The settings that somebody else has found best."""
        return self.search.models[self.model].published[self.row.name]

    @property
    def wanted(self) -> int:
        """Number of trials."""
        return self.search.trials_of(self.model)

    @property
    def id(self) -> str:
        """Equal ids mean that trials can be compared: all is the same but what is searched."""
        return self.run({}).id

    def run(self, params: Params) -> Run:
        """The run that tries these settings."""
        return Run(self.row, self._method(params, f"search-{self.model}"), self.search.seed)

    def final_methods(self, trials: Sequence[Trial]) -> dict[str, MethodSpec]:
        """What is tested: ``published``, and ``found`` if all trials are there and something else is better."""
        found, published = self.search.run_names(self.model)
        methods = {"published": self._method(self.published, published)}
        if len(trials) >= self.wanted and (best := best_of(trials)).params != self.published:
            methods["found"] = self._method(best.params, found)
        return methods

    def _method(self, params: Params, name: str) -> MethodSpec:
        search = self.search
        return MethodSpec(
            name=name,
            kind="model",
            of=self.model,
            preset=search.preset,
            options={**search.settings, **params},
            seeds=search.seeds,
            title=self.title,
        )

    def __str__(self) -> str:
        return f"{self.row.name}, {self.model}"


def search_cells(
    manifest: Manifest,
    only: Sequence[str] = (),
    methods: Sequence[str] = (),
    shard: tuple[int, int] = (1, 1),
) -> list[SearchCell]:
    """The models and rows of a search that are asked for, row by row.

    The arguments are those of `psgnn_lab.plan.plan`; a model has its own name and those of the runs that test
    its settings.
    """
    search = manifest.search
    if search is None:
        return []
    part, parts = shard
    mine = sorted((model, row) for model in search.models for row in search.rows)[part - 1 :: parts]
    return [
        SearchCell(search, manifest.row(row), model)
        for row in search.rows
        for model in search.models
        if (model, row) in mine
        and (not only or row in only)
        and (not methods or not {model, *search.run_names(model)}.isdisjoint(methods))
    ]


def final_cells(
    manifest: Manifest, only: Sequence[str], methods: Sequence[str], shard: tuple[int, int]
) -> list[tuple[Row, MethodSpec]]:
    """Rows and methods that test what a search has found, and what was published."""
    found = []
    for cell in search_cells(manifest, only, methods, shard):
        finals = cell.final_methods(read_trials(manifest.records, cell))
        asked = not methods or cell.model in methods
        found += [(cell.row, method) for method in finals.values() if asked or method.name in methods]
    return found


def best_of(trials: Sequence[Trial]) -> Trial:
    """The trial with the best validation metric; of equal ones the first."""
    return max(trials, key=lambda trial: (trial.val, -trial.number))


# --- on disk


def trials_path(folder: Path, cell: SearchCell) -> Path:
    """The file of a search."""
    return record_path(folder / FOLDER, cell.row.name, cell.model)


def read_trials(folder: Path, cell: SearchCell) -> list[Trial]:
    """The trials in their order: those of the present settings and grid, every point once."""
    path = trials_path(folder, cell)
    with intact(path):
        return _counted(cell, [(line["id"], _trial_of(line)) for line in read_lines(path)])


def write_trials(folder: Path, cell: SearchCell, trials: Sequence[Trial], *, anew: bool = False) -> None:
    """Add trials to those on disk; with `anew` they take their place."""
    path = trials_path(folder, cell)
    with locked(path.parent):
        before = [] if anew else read_trials(folder, cell)
        counted = _counted(cell, [(cell.run(trial.params).id, trial) for trial in [*before, *trials]])
        lines = [{"id": cell.run(trial.params).id, **asdict(trial)} for trial in counted]
        for line in lines:
            line |= {"val": round(line["val"], DIGITS), "seconds": round(line["seconds"], 2)}
        write_lines(path, lines)


def _trial_of(line: dict[str, Any]) -> Trial:
    trial = Trial(**{name: line[name] for name in Trial.__dataclass_fields__})
    if not 0 <= trial.val <= 1 or trial.seconds < 0 or not isinstance(trial.params, dict):
        raise ValueError(f"trial {trial.number}")
    return trial


def _counted(cell: SearchCell, trials: Sequence[tuple[str, Trial]]) -> list[Trial]:
    space = cell.search.space_of(cell.model)
    found: dict[str, Trial] = {}
    for id, trial in trials:
        on_grid = trial.params.keys() == space.keys() and all(
            trial.params[name] in space[name] for name in space
        )
        if on_grid and cell.run(trial.params).id == id:
            found.setdefault(id, trial)
    return sorted(found.values(), key=lambda trial: trial.number)


# --- time


def seconds_left(folder: Path, cells: Sequence[SearchCell], *, force: bool = False) -> dict[str, float]:
    """The time of the trials that are missing, by cell: each takes the mean of those of its model, or a guess.

    With `force` all are missing.
    """
    tried = {str(cell): read_trials(folder, cell) for cell in cells}
    known: dict[str, list[float]] = defaultdict(list)
    for cell in cells:
        known[cell.model] += [trial.seconds for trial in tried[str(cell)]]
    return {
        str(cell): (fmean(known[cell.model]) if known[cell.model] else UNKNOWN_SECONDS)
        * max(cell.wanted - len(tried[str(cell)]) * (not force), 0)
        for cell in cells
    }
