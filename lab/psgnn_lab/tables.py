"""Records as a page: markdown that depends on the manifest and the records and on nothing else."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from psgnn.errors import InputError
from psgnn.paths import atomic_write
from psgnn_lab.figure_specs import FigureSpec
from psgnn_lab.figures import figure_path, has_records
from psgnn_lab.goals import goals_markdown, numbers_table
from psgnn_lab.manifest import Manifest, PublishedCell, Row, Section
from psgnn_lab.markup import LABELS, emphasis, link, linked, number, seconds, spread, table
from psgnn_lab.search_table import search_document, search_markdown
from psgnn_lab.statistics import Cell, Difference, against_best, best_rule, difference, mean, read_cells

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
    records = f"the [records]({link(manifest, manifest.records)}) of " if manifest.rows else ""
    made = (
        f"Made by `psgnn-lab reproduce {name}` from {records}"
        f"[{name}.toml]({link(manifest, manifest.folder / f'{name}.toml')}); `psgnn-lab reproduce {name} "
        f"--from-records` makes the {'figure' if manifest.only_figures else 'tables'} alone."
    )
    made += f" Seeds are {first}, {first + 1}, ..." if manifest.rows else ""
    figures = [_figure(manifest, figure) for figure in manifest.figures]
    sections = [_section(manifest, section) for section in manifest.sections]
    parts += [*figures, made] if manifest.only_figures else [made, *sections, *figures]
    if manifest.search is not None:
        parts.append(search_markdown(manifest, manifest.search))
    if manifest.goals is not None:
        parts.append(goals_markdown(manifest, manifest.goals))
    return "\n\n".join(parts) + "\n"


def _figure(manifest: Manifest, figure: FigureSpec) -> str:
    """The picture, its title and its text."""
    caption = " ".join([f"**{figure.title}.**", *figure.text.split()])
    if not has_records(manifest, figure):
        of = figure.of or manifest.name
        return f"{caption}\n\nThere are no records yet: `psgnn-lab reproduce {of}` makes them."
    svg, png = (link(manifest, figure_path(manifest, figure, suffix)) for suffix in (".svg", ".png"))
    return f"![{figure.title}]({svg})\n\n{caption} ([PNG]({png}))"


def _section(manifest: Manifest, section: Section) -> str:
    cells = section_cells(manifest, section)
    every = [cell for row in cells.values() for cell in row.values()]
    found, wanted = sum(len(cell.records) for cell in every), sum(cell.wanted for cell in every)
    parts = [f"## {section.title}"] + ([section.text.strip()] if section.text else [])
    if not found:
        parts.append(
            f"There are no records yet: `psgnn-lab reproduce {manifest.name}` makes the {wanted} runs."
        )
        return "\n\n".join(parts)
    if found < wanted:
        parts.append(f"Records of {found} of {wanted} runs; - stands for what is missing.")
    if section.main is not None:
        parts.append(_summary(manifest, section, section.main, cells))
    if section.layout == "matrix":
        parts += [_matrix(manifest, section, cells), *_shortfalls(manifest, section, cells)]
    elif section.layout == "lines":
        parts.append(_lines(manifest, section, cells))
    elif section.layout == "numbers":
        parts.append(numbers_table(manifest, section))
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
        found = _against_best(section, main, of_row)
        line = [
            row.title if row.metric == "auc" else f"{row.title}, {LABELS[row.metric]}",
            emphasis(spread(main), main, of_row) if main else "-",
            emphasis(f"{found.other.method.title} {spread(found.other)}", found.other, of_row)
            if found
            else "-",
            *_difference(found),
        ]
        if beside:
            line += ["-" if row.goal is None else _reached(row.goal, main), _published(row) or "-"]
        lines.append(line)
    return table([*columns, *beside], lines)


def _against_best(section: Section, main: Cell | None, of_row: dict[str, Cell]) -> Difference | None:
    """The main method and the best of the others; rules that have a line of their own are not among them."""
    if section.best_rule:
        of_row = {name: cell for name, cell in of_row.items() if cell.method.kind != "rule"}
    return against_best(main, of_row) if main else None


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
    """Methods down, rows across, and what others have published beneath.

    With a baseline, every cell shows its paired difference to it.
    """
    rows = [manifest.row(name) for name in section.rows]
    columns = ["", *(row.title for row in rows)]
    columns += ["stated complexity", "seconds to choose anchors"] if section.picking else []
    lines = []
    for method in manifest.section_methods(section):
        if method.kind == "rule" and section.best_rule:
            continue
        of_method = [cells[row.name].get(method.name) for row in rows]
        line = [method.title]
        for row, cell in zip(rows, of_method, strict=True):
            line.append(_matrix_cell(manifest, section, cells[row.name], cell) if cell else "not run")
        known = [cell for cell in of_method if cell and cell.records]
        if section.picking:
            picked = [mean(cell.extra("picking_seconds")) for cell in known]
            line += [method.complexity or "-", " / ".join(map(seconds, picked)) or "-"]
        lines.append([*line, seconds(sum(cell.seconds for cell in known) / len(known)) if known else "-"])
        if method.name in section.published:
            told = [_told(cell) for cell in section.published[method.name]]
            beside = ["-"] * (len(columns) - len(told))  # the time is of other machines
            lines.append([f"*{method.title}: {section.source or 'published'}*", *told, *beside])
    if section.best_rule:
        best = [best_rule(cells[row.name]) for row in rows]
        told = [_matrix_cell(manifest, section, cells[row.name], cell, named=True) if cell else "-"
                for row, cell in zip(rows, best, strict=True)]  # fmt: skip
        lines.append(["best rule, in hindsight", *told, *["-"] * (len(columns) - len(told))])
    return table([*columns, "seconds a run"], lines)


def _lines(manifest: Manifest, section: Section, cells: Cells) -> str:
    """Rows down, methods across, of the rules the best one in hindsight.

    Then the means over the rows that have all, and with a baseline the mean differences to it.
    """
    methods = manifest.section_methods(section)
    shown = [method for method in methods if method.kind != "rule"]
    ruled = len(shown) < len(methods)
    lines: list[list[str]] = []
    found: list[list[Cell | None]] = []
    for name in section.rows:
        of_row = cells[name]
        found.append([of_row.get(method.name) for method in shown] + [best_rule(of_row)] * ruled)
        told = ["not run"] * len(shown) + ["-"] * ruled
        for place, cell in enumerate(found[-1]):
            if cell:
                text = spread(cell) + (f", {cell.method.title}" if cell.method.kind == "rule" else "")
                told[place] = linked(manifest, cell, emphasis(text, cell, of_row))
        lines.append([manifest.row(name).title, *told])
    means = [[cell.mean if cell and cell.main else math.nan for cell in row] for row in found]
    whole = [values for values in means if not any(map(math.isnan, values))]
    if len(whole) > 1:
        average = [f"{sum(column) / len(whole):.{section.digits}f}" for column in zip(*whole, strict=True)]
        lines.append([f"*mean of the {len(whole)} that have all*", *average])
    if section.baseline is not None:
        place = [method.name for method in shown].index(section.baseline)
        gaps = [
            _mean_gap(column, [row[place] for row in found], section) for column in zip(*found, strict=True)
        ]
        title = shown[place].title
        lines.append([f"*mean difference to {title} (number of rows), on the splits that both have*", *gaps])
    titles = [method.title for method in shown] + ["best rule, in hindsight"] * ruled
    return table(["", *titles], lines)


def _mean_gap(column: Sequence[Cell | None], base: Sequence[Cell | None], section: Section) -> str:
    """How far a method is from the baseline: the mean over the rows that have both, and their number."""
    pairs = [
        (cell, other)
        for cell, other in zip(column, base, strict=True)
        if cell and other and cell is not other
    ]
    gaps = [gap.mean for cell, other in pairs if (gap := difference(cell, other))]
    return f"{sum(gaps) / len(gaps):+.{section.digits}f} ({len(gaps)})" if gaps else "-"


def _matrix_cell(
    manifest: Manifest, section: Section, of_row: dict[str, Cell], cell: Cell, *, named: bool = False
) -> str:
    text = spread(cell, section.digits) + (f", {cell.method.title}" if named else "")
    text = emphasis(text, cell, of_row, section.digits)
    base = of_row.get(section.baseline or "")
    if base and cell is not base and (gap := difference(cell, base)):
        text += f", {gap.mean:+.{section.digits}f}"
    if section.seconds and cell.records:
        text += f", {seconds(cell.seconds)} s"
    return linked(manifest, cell, text)


def _shortfalls(manifest: Manifest, section: Section, cells: Cells) -> list[str]:
    """Where ours does not reach what was published, if anywhere; in the digits that are shown."""
    found = []
    for method in manifest.section_methods(section):
        for name, told in zip(section.rows, section.published.get(method.name, ()), strict=False):
            cell = cells[name].get(method.name)
            if cell and cell.main and round(cell.mean, section.digits) < told.value:
                row = manifest.row(name)
                found.append(
                    f"{method.title} on {row.title} ({spread(cell, section.digits)}, {told.value:.3f})"
                )
    return [f"Below the published value, in brackets ours and theirs: {'; '.join(found)}."] if found else []


def _told(cell: PublishedCell) -> str:
    """A published value as it was told."""
    deviation = "" if cell.sd is None else f" ± {cell.sd:.3f}"
    time = "" if cell.seconds is None else f", {seconds(cell.seconds)} s"
    return f"*{cell.value:.3f}{deviation}{time}*"


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
        line = [linked(manifest, cell, cell.method.title), emphasis(spread(cell), cell, cells)]
        line += [number(mean(cell.values(metric))) for metric in others]
        line += [number(mean(cell.values(row.metric, "embedding")))] * embeds
        lines.append([*line, seconds(cell.seconds)])
    known = [] if row.goal is None else [f"Goal: {row.goal:g}."]
    known += [f"Published or known before: {_published(row)}."] if row.published else []
    known += [f"Not run, too slow here: {', '.join(row.skip)}."] if row.skip else []
    recorded = any(cell.records for cell in cells.values())
    found = table(columns, lines) if recorded else "There are no records yet."
    return "\n\n".join(filter(None, [f"### {row.title}", " ".join(known), found]))


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
            found = _against_best(section, main, cells)
            rows.append({"row": name, "metric": manifest.row(name).metric, "goal": manifest.row(name).goal,
                         "methods": [_cell_document(cell) for cell in cells.values()],
                         "difference": None if found is None else {
                             "main": found.main.method.name, "other": found.other.method.name, "seeds": found.seeds,
                             "mean": found.mean, "low": found.low, "high": found.high, "p": found.p}})  # fmt: skip
        sections.append({"section": section.name, "rows": rows})
    page: dict[str, Any] = {"experiment": manifest.name, "sections": sections}
    if manifest.search is not None:
        page["search"] = search_document(manifest)
    return page


def _cell_document(cell: Cell) -> dict[str, Any]:
    known = bool(cell.main)
    return {"method": cell.method.name, "kind": cell.method.kind, "wanted": cell.wanted, "values": cell.main,
            "mean": cell.mean if known else None, "seconds": cell.seconds if known else None}  # fmt: skip
