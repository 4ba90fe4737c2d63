"""The part of a page, and of a document, that shows what a search has found beside what was published."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from psgnn_lab.manifest import Manifest, Row
from psgnn_lab.markup import LABELS, link, linked, seconds, spread, table
from psgnn_lab.search_spec import Params, Search, Space
from psgnn_lab.statistics import Cell, read_cells
from psgnn_lab.trials import SearchCell, Trial, best_of, read_trials, search_cells, trials_path


def search_markdown(manifest: Manifest, search: Search) -> str:
    """What was searched, how much of it, and a table a row."""
    cells = search_cells(manifest)
    tried = {str(cell): read_trials(manifest.records, cell) for cell in cells}
    done, wanted = sum(map(len, tried.values())), sum(cell.wanted for cell in cells)
    parts = [f"## {search.title}"] + ([search.text.strip()] if search.text else [])
    parts.append(_grid(search))
    if not done:
        parts.append(
            f"There are no records yet: `psgnn-lab reproduce {manifest.name}` makes the {wanted} trials."
        )
        return "\n\n".join(parts)
    minutes = sum(trial.seconds for trials in tried.values() for trial in trials) / 60
    parts.append(f"The {done} trials took {minutes:.1f} minutes of one core.")
    if any(len(tried[str(cell)]) < cell.wanted for cell in cells):
        parts.append(f"Records of {done} of {wanted} trials; - stands for what is missing.")
    for name in search.rows:
        of_row = [cell for cell in cells if cell.row.name == name]
        parts.append(_row_table(manifest, search, manifest.row(name), of_row, tried))
    return "\n\n".join(parts)


def _grid(search: Search) -> str:
    """The choices, and how many points they make."""
    further = [
        f"for {entry.title or model} also {_anchor_sets(entry.space)} ({search.size(model)} points)"
        for model, entry in search.models.items()
        if entry.space
    ]
    plain = next((model for model, entry in search.models.items() if not entry.space), None)
    points = "" if plain is None else f" ({search.size(plain)} points)"
    return f"The grid: {'; '.join([_anchor_sets(search.space) + points, *further])}."


def _anchor_sets(space: Space) -> str:
    return "; ".join(f"{_word(name)} {', '.join(map(_value, values))}" for name, values in space.items())


def _word(parameter: str) -> str:
    return parameter.replace("_", " ")


def _value(value: Any) -> str:
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else f"{value}"


def _settings(params: Params, space: Space) -> str:
    """The values in the order of the space, whatever order they were written in."""
    return ", ".join(f"{_word(name)} {_value(params[name])}" for name in space)


def _row_table(
    manifest: Manifest,
    search: Search,
    row: Row,
    cells: Sequence[SearchCell],
    tried: dict[str, list[Trial]],
) -> str:
    metric = LABELS[row.metric]
    columns = ["model", "trials", "best settings", f"validation {metric}", f"test {metric}"]
    columns += [f"settings of {search.source}", f"validation {metric}", f"test {metric}", "seconds a trial"]
    lines = []
    for cell in cells:
        trials, space = tried[str(cell)], search.space_of(cell.model)
        best, published = best_and_published(cell, trials)
        tested = _tested(manifest, cell, trials)
        path = link(manifest, trials_path(manifest.records, cell))
        count = f"{len(trials)} of {search.size(cell.model)}"
        lines.append(
            [
                cell.title,
                f"[{count}]({path})" if trials else count,
                "-"
                if best is None
                else "as published"
                if best is published
                else _settings(best.params, space),
                "-" if best is None else f"{best.val:.4f}",
                _test_text(manifest, tested.get("found", tested["published"] if best is published else None)),
                _settings(cell.published, space),
                "-" if published is None else f"{published.val:.4f}",
                _test_text(manifest, tested["published"]),
                seconds(sum(trial.seconds for trial in trials) / len(trials)) if trials else "-",
            ]
        )
    return f"### {row.title}: settings\n\n{table(columns, lines)}"


def best_and_published(cell: SearchCell, trials: Sequence[Trial]) -> tuple[Trial | None, Trial | None]:
    """The best trial so far, and that of the published settings."""
    published = next((trial for trial in trials if trial.params == cell.published), None)
    return best_of(trials) if trials else None, published


def _tested(manifest: Manifest, cell: SearchCell, trials: Sequence[Trial]) -> dict[str, Cell]:
    methods = cell.final_methods(trials)
    found = read_cells(manifest.records, cell.row, list(methods.values()), manifest.first_seed)
    return {kind: found[method.name] for kind, method in methods.items()}


def _test_text(manifest: Manifest, cell: Cell | None) -> str:
    if cell is None or not cell.records:
        return "-"
    return linked(manifest, cell, spread(cell))


def search_document(manifest: Manifest) -> list[dict[str, Any]]:
    """The same as JSON, with all trials."""
    found = []
    for cell in search_cells(manifest):
        trials = read_trials(manifest.records, cell)
        best, published = best_and_published(cell, trials)
        tested = _tested(manifest, cell, trials)
        same = best is not None and best is published
        found.append(
            {
                "row": cell.row.name,
                "model": cell.model,
                "grid": cell.search.size(cell.model),
                "wanted": cell.wanted,
                "trials": [vars(trial) for trial in trials],
                "best": None if best is None else {
                    "params": best.params, "val": best.val,
                    "test": _values(tested["published"] if same else tested.get("found")),
                },
                "published": {
                    "params": cell.published, "val": None if published is None else published.val,
                    "test": _values(tested["published"]),
                },
            }
        )  # fmt: skip
    return found


def _values(cell: Cell | None) -> dict[int, float]:
    return {} if cell is None else cell.main
