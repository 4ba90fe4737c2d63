"""Records as a page: markdown that depends on the manifest and the records and on nothing else."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from psgnn.errors import InputError
from psgnn.experiments.manifest import Manifest, Row, Section
from psgnn.experiments.records import record_path
from psgnn.experiments.statistics import Cell, Difference, against_best, difference, mean, read_cells
from psgnn.io import atomic_write

LABELS = {
    "auc": "AUC", "auc_pooled": "AUC, pooled", "ap": "AP", "mrr": "MRR",
    "hits@20": "Hits@20", "hits@50": "Hits@50", "hits@100": "Hits@100",
}  # fmt: skip
SHOWN = ("auc", "ap", "mrr", "hits@20")
Cells = dict[str, dict[str, Cell]]  # by row and method


def section_cells(manifest: Manifest, section: Section) -> Cells:
    """The numbers of a section."""
    methods = manifest.section_methods(section)
    rows = [manifest.row(name) for name in section.rows]
    return {row.name: read_cells(manifest.records, row, methods, manifest.first_seed) for row in rows}


def markdown(manifest: Manifest) -> str:
    """The whole experiment: its text, its command, and its sections."""
    name, first = manifest.name, manifest.first_seed
    parts = [manifest.text.strip()] if manifest.text else []
    parts.append(
        f"Made by `psgnn reproduce {name}` from the [records]({_link(manifest, manifest.records)}) of "
        f"[{name}.toml]({_link(manifest, manifest.folder / f'{name}.toml')}); `psgnn reproduce {name} --from-records` "
        f"makes the tables alone. Seeds are {first}, {first + 1}, ..."
    )
    parts += [_section(manifest, section) for section in manifest.sections]
    return "\n\n".join(parts) + "\n"


def _section(manifest: Manifest, section: Section) -> str:
    cells = section_cells(manifest, section)
    every = [cell for row in cells.values() for cell in row.values()]
    found, wanted = sum(len(cell.records) for cell in every), sum(cell.wanted for cell in every)
    parts = [f"## {section.title}"] + ([section.text.strip()] if section.text else [])
    if not found:
        parts.append(f"There are no records yet: `psgnn reproduce {manifest.name}` makes the {wanted} runs.")
        return "\n\n".join(parts)
    if found < wanted:
        parts.append(f"Records of {found} of {wanted} runs; - stands for what is missing.")
    if section.main is not None:
        parts.append(_summary(manifest, section, section.main, cells))
    if section.layout == "matrix":
        parts.append(_matrix(manifest, section, cells))
    else:
        parts += [_row_table(manifest, manifest.row(name), cells[name]) for name in section.rows]
    return "\n\n".join(parts)


# --- one table for a section


def _summary(manifest: Manifest, section: Section, main_name: str, cells: Cells) -> str:
    """A line a row: the main method, the best of the others, their paired difference."""
    (main_method,) = manifest.expand(main_name)
    columns = ["data, task", main_method.title, "best other", "difference [95 %]", "p"]
    # Goals and published values are about a row's best method, not about the choices of a matrix.
    beside = ["goal", "published or known before"] if section.layout == "rows" else []
    lines = []
    for name in section.rows:
        row, of_row = manifest.row(name), cells[name]
        main = of_row.get(main_name)
        found = against_best(main, of_row) if main else None
        line = [
            row.title if row.metric == "auc" else f"{row.title}, {LABELS[row.metric]}",
            _emphasis(_spread(main), main, of_row) if main else "-",
            _emphasis(f"{found.other.method.title} {_spread(found.other)}", found.other, of_row)
            if found
            else "-",
            *_difference(found),
        ]
        if beside:
            line += ["-" if row.goal is None else _reached(row.goal, main), _published(row) or "-"]
        lines.append(line)
    return _table([*columns, *beside], lines)


def _published(row: Row) -> str:
    return "; ".join(f"{value.source}: {value.value:g}" for value in row.published)


def _difference(found: Difference | None) -> tuple[str, str]:
    if found is None:
        return "-", "-"
    interval = "" if found.low is None else f" [{found.low:+.4f}, {found.high:+.4f}]"
    p = "-" if found.p is None else "< 0.001" if found.p < 0.001 else f"{found.p:.3f}"
    return f"{found.mean:+.4f}{interval} ({found.seeds})", p


def _reached(goal: float, main: Cell | None) -> str:
    """The goal, and once all runs are there whether the mean, in the digits that are shown, is as high."""
    if main is None or len(main.main) < main.wanted:
        return f"{goal:g}"
    return f"{goal:g}, {'reached' if round(main.mean, 4) >= goal else 'not reached'}"


def _matrix(manifest: Manifest, section: Section, cells: Cells) -> str:
    """Methods down, rows across; with a baseline, every cell shows its paired difference to it."""
    rows = [manifest.row(name) for name in section.rows]
    lines = []
    for method in manifest.section_methods(section):
        line = [method.title]
        for row in rows:
            cell = cells[row.name].get(method.name)
            text = "-" if cell is None else _emphasis(_spread(cell), cell, cells[row.name])
            base = cells[row.name].get(section.baseline or "")
            if cell and base and cell is not base and (gap := difference(cell, base)):
                text += f", {gap.mean:+.4f}"
            line.append(_linked(manifest, cell, text) if cell else text)
        of_method = [cells[row.name].get(method.name) for row in rows]
        known = [cell.seconds for cell in of_method if cell and cell.records]
        lines.append([*line, _seconds(sum(known) / len(known)) if known else "-"])
    return _table(["", *(row.title for row in rows), "seconds a run"], lines)


def _row_table(manifest: Manifest, row: Row, cells: dict[str, Cell]) -> str:
    """All methods on a row, the best first."""
    others = [metric for metric in SHOWN if metric != row.metric]
    embeds = any(cell.values(row.metric, "embedding") for cell in cells.values())
    columns = ["method", LABELS[row.metric], *(LABELS[metric] for metric in others)]
    columns += [f"{LABELS[row.metric]} of embeddings"] * embeds + ["seconds a run"]
    lines = []
    for cell in sorted(
        cells.values(), key=lambda cell: (-cell.mean if cell.main else math.inf, cell.method.name)
    ):
        line = [_linked(manifest, cell, cell.method.title), _emphasis(_spread(cell), cell, cells)]
        line += [_number(mean(cell.values(metric))) for metric in others]
        line += [_number(mean(cell.values(row.metric, "embedding")))] * embeds
        lines.append([*line, _seconds(cell.seconds)])
    known = [] if row.goal is None else [f"Goal: {row.goal:g}."]
    known += [f"Published or known before: {_published(row)}."] if row.published else []
    recorded = any(cell.records for cell in cells.values())
    table = _table(columns, lines) if recorded else "There are no records yet."
    return "\n\n".join(filter(None, [f"### {row.title}", " ".join(known), table]))


# --- cells


def _spread(cell: Cell) -> str:
    values = list(cell.main.values())
    if not values:
        return "-"
    if len(values) == 1:
        return f"{values[0]:.4f} (1)"
    centre = cell.mean
    deviation = math.sqrt(sum((value - centre) ** 2 for value in values) / (len(values) - 1))
    return f"{centre:.4f} ± {deviation:.4f} ({len(values)})"


def _emphasis(text: str, cell: Cell, cells: dict[str, Cell]) -> str:
    """Bold if no method of the row is better in the digits that are shown."""
    best = max((round(other.mean, 4) for other in cells.values() if other.main), default=math.inf)
    return f"**{text}**" if cell.main and round(cell.mean, 4) == best else text


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.4f}"


def _seconds(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.2f}" if value < 10 else f"{value:.0f}"


def _linked(manifest: Manifest, cell: Cell, text: str) -> str:
    """The text, with a link to the record file that it comes from."""
    if not cell.records:
        return text
    return f"[{text}]({_link(manifest, record_path(manifest.records, cell.row.name, cell.method.name))})"


def _link(manifest: Manifest, target: Path) -> str:
    """The way from the page to a file of the experiment."""
    page = (manifest.folder / (manifest.page or "page.md")).resolve()
    return Path(os.path.relpath(target.resolve(), page.parent)).as_posix()


def _table(columns: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    rule = ["---", *(["---:"] * (len(columns) - 1))]
    return "\n".join("| " + " | ".join(line) + " |" for line in [columns, rule, *lines])


# --- the page


def with_tables(page: str, manifest: Manifest) -> str:
    """The page with the experiment between ``<!-- NAME begin -->`` and ``<!-- NAME end -->``."""
    begin, end = f"<!-- {manifest.name} begin -->\n", f"<!-- {manifest.name} end -->"
    head, found, rest = page.partition(begin)
    if not found:
        return page
    _, closed, tail = rest.partition(end)
    if not closed:
        raise InputError(f"the page has '{begin.strip()}' without '{end}'; add it")
    return head + begin + markdown(manifest) + end + tail


def write_page(manifest: Manifest) -> Path | None:
    """Write the experiment into its page; None if it has none, or one without its markers."""
    if manifest.page is None or not (path := (manifest.folder / manifest.page).resolve()).is_file():
        return None
    old = path.read_text()
    new = with_tables(old, manifest)
    if f"<!-- {manifest.name} begin -->" not in old:
        return None
    if new != old:
        with atomic_write(path, force=True) as temporary:
            temporary.write_text(new)
    return path


def document(manifest: Manifest) -> dict[str, Any]:
    """The numbers as JSON: for each section and row the cells and the difference to the best other method."""
    sections = []
    for section in manifest.sections:
        rows = []
        for name, cells in section_cells(manifest, section).items():
            main = cells.get(section.main or "")
            found = against_best(main, cells) if main else None
            rows.append({"row": name, "metric": manifest.row(name).metric, "goal": manifest.row(name).goal,
                         "methods": [_cell_document(cell) for cell in cells.values()],
                         "difference": None if found is None else {
                             "main": found.main.method.name, "other": found.other.method.name, "seeds": found.seeds,
                             "mean": found.mean, "low": found.low, "high": found.high, "p": found.p}})  # fmt: skip
        sections.append({"section": section.name, "rows": rows})
    return {"experiment": manifest.name, "sections": sections}


def _cell_document(cell: Cell) -> dict[str, Any]:
    known = bool(cell.main)
    return {"method": cell.method.name, "kind": cell.method.kind, "wanted": cell.wanted, "values": cell.main,
            "mean": cell.mean if known else None, "seconds": cell.seconds if known else None}  # fmt: skip
