"""What learned anchors were meant to reach, and where the records say that they do."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from psgnn_lab.goal_spec import Goals
from psgnn_lab.manifest import Manifest, Section, load_manifest, pick
from psgnn_lab.markup import emphasis, linked, seconds, spread, table
from psgnn_lab.statistics import Cell, Difference, against_best, mean, read_cells

SIGNIFICANT = 0.05
DIGITS = 4
LEARNED, CONTROL = "boosted", "random-search"  # the picker of preset learned, and what is no rule


def goals_markdown(manifest: Manifest, goals: Goals) -> str:
    """A line per goal: how many rows reach it, and which do not."""
    lines = [
        _rules(manifest, goals),
        _sets(manifest, goals),
        _published(manifest, goals),
        _numbers(manifest, goals),
        _cost(manifest, goals),
    ]
    return "## Goals\n\n" + "\n".join(f"{place}. {line}" for place, line in enumerate(lines, 1))


def numbers_table(manifest: Manifest, section: Section) -> str:
    """For every row a table: how anchors are chosen down, how many across."""
    parts = []
    for name in section.rows:
        row = manifest.row(name)
        cells = _by_number(manifest, section, name)
        numbers = sorted({many for many, _ in cells}, key=_size)
        lines = []
        for picker in dict.fromkeys(picker for _, picker in cells):
            line = [f"learned ({picker})" if picker == LEARNED else picker]
            for many in numbers:
                cell = cells.get((many, picker))
                of_number = {other: found for (k, other), found in cells.items() if k == many}
                text = emphasis(spread(cell), cell, of_number) if cell else "-"
                line.append(linked(manifest, cell, text) if cell else text)
            lines.append(line)
        heads = ["log N" if many is None else str(many) for many in numbers]
        parts.append(f"### {row.title}\n\n" + table(["anchors", *heads], lines))
    return "\n\n".join(parts)


Numbered = dict[tuple[int | None, str], Cell]  # by number of anchors (None: log N) and picker


def _size(many: int | None) -> int:
    return 8 if many is None else many  # log2 of some 400 nodes


def _by_number(manifest: Manifest, section: Section, row: str) -> Numbered:
    methods = manifest.section_methods(section)
    cells = read_cells(manifest.records, manifest.row(row), methods, manifest.first_seed)
    return {
        (cell.method.options.get("anchors"), cell.method.options.get("picker", LEARNED)): cell
        for cell in cells.values()
    }


def _cells(manifest: Manifest, goals: Goals, others: Sequence[str]) -> list[tuple[str, Cell, Difference]]:
    """For every row with records its title, the main method, and how far it is from the best of the others."""
    methods = [spec for name in (goals.main, *others) for spec in manifest.expand(name)]
    found = []
    for name in pick(manifest.sections, goals.section, "section").rows:
        row = manifest.row(name)
        cells = read_cells(manifest.records, row, methods, manifest.first_seed)
        main = cells[goals.main]
        gap = against_best(main, cells)
        if gap is not None:
            found.append((row.title, main, gap))
    return found


def _rules(manifest: Manifest, goals: Goals) -> str:
    rows = _cells(manifest, goals, goals.rules)
    lower = [_gap(title, gap) for title, _, gap in rows if round(gap.mean, DIGITS) < 0]
    sure = [(title, gap) for title, _, gap in rows if gap.p is not None and gap.p < SIGNIFICANT]
    above = [_gap(title, gap) for title, gap in sure if gap.mean > 0]
    below = [_gap(title, gap) for title, gap in sure if gap.mean < 0]
    return (
        "**Beside every rule and the control**, with the same number of anchors. The mean is at least that of the best "
        f"of them on {len(rows) - len(lower)} of {len(rows)} rows{_but(lower)}. It is significantly above "
        f"(p < {SIGNIFICANT:g}) on {len(above)}{_list(above)}, and significantly below on {len(below)}{_list(below)}."
    )


def _sets(manifest: Manifest, goals: Goals) -> str:
    rows = _cells(manifest, goals, goals.sets)
    not_above = [_gap(title, gap) for title, _, gap in rows if round(gap.mean, DIGITS) <= 0]
    return (
        "**Beside P-GNN with log^2 N sets**, while learned anchors are log N. The mean is above that of the better of "
        f"P-GNN and its sets in our model on {len(rows) - len(not_above)} of {len(rows)} rows{_but(not_above)}."
    )


def _published(manifest: Manifest, goals: Goals) -> str:
    """Cells of the paper's tables that have a value of the paper's own model."""
    reached, short, missing = 0, [], 0
    for name in goals.tables:
        other = load_manifest(name, manifest.folder, manifest.data)
        (learned,) = other.expand(goals.main)
        for section in other.sections:
            method = next((spec for spec in goals.published if spec in section.published), None)
            if method is None:
                continue
            for row_name, told in zip(section.rows, section.published[method], strict=True):
                if row_name in goals.unlike:
                    continue
                row = other.row(row_name)
                cell = read_cells(other.records, row, [learned], other.first_seed).get(goals.main)
                if cell is None or not cell.main:
                    missing += 1
                elif round(cell.mean, 3) >= told.value:
                    reached += 1
                else:
                    short.append(f"{row.title} ({cell.mean:.3f}, published {told.value:.3f})")
    left = f"; {missing} cells were not run" if missing else ""
    return (
        f"**At least the paper's published value** in {reached} of {reached + len(short)} cells of its tables "
        f"{', '.join(name.removeprefix('table') for name in goals.tables)}{_but(short)}{left}."
    )


def _numbers(manifest: Manifest, goals: Goals) -> str:
    section = pick(manifest.sections, goals.numbers, "section")
    told, half = [], 0
    for name in section.rows:
        cells = _by_number(manifest, section, name)
        numbers = sorted({many for many, _ in cells}, key=_size)
        gaps = []
        for few, twice in pairwise(numbers):
            rules = {
                picker: cell
                for (many, picker), cell in cells.items()
                if many == twice and picker not in (LEARNED, CONTROL)
            }
            gap = against_best(cells[few, LEARNED], rules)
            if gap is not None:
                gaps.append(round(gap.mean, DIGITS))
        if gaps:
            reached = sum(gap >= 0 for gap in gaps)
            half += 2 * reached >= len(gaps)
            told.append(f"{manifest.row(name).title} {reached} of {len(gaps)}")
    return (
        "**K learned anchors beside about 2K by the best rule**, for each number that was measured with its double. "
        f"They are at least as good on: {', '.join(told) or 'nothing yet'}. That is at least half of the numbers on "
        f"{half} of {len(told)} rows."
    )


def _cost(manifest: Manifest, goals: Goals) -> str:
    dear, rows = [], 0
    (method,) = manifest.expand(goals.main)
    for name in pick(manifest.sections, goals.section, "section").rows:
        row = manifest.row(name)
        (cell,) = read_cells(manifest.records, row, [method], manifest.first_seed).values()
        choosing = cell.extra("picking_seconds")
        if not choosing:
            continue
        rows += 1
        rest = mean({seed: cell.records[seed]["seconds"] - taken for seed, taken in choosing.items()})
        if mean(choosing) > rest:
            dear.append(f"{row.title} ({seconds(mean(choosing))} s, the rest {seconds(rest)} s)")
    return (
        "**Choosing costs at most as much as training the rest** on "
        f"{rows - len(dear)} of the {rows} rows where it was timed{_but(dear)}."
    )


def _gap(title: str, gap: Difference) -> str:
    sure = "" if gap.p is None else f", p = {gap.p:.3f}" if gap.p >= 0.001 else ", p < 0.001"
    return f"{title} ({gap.other.method.title}, {gap.mean:+.{DIGITS}f}{sure})"


def _but(titles: Sequence[str]) -> str:
    return f", not on {'; '.join(titles)}" if titles else ""


def _list(titles: Sequence[str]) -> str:
    return f": {'; '.join(titles)}" if titles else ""
