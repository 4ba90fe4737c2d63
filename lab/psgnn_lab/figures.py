"""The figures of a manifest: drawn from records and manifest and nothing else, the same bytes each time.

``docs/figures/NAME.svg`` and ``.png``, beside the page that shows them.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from psgnn.datasets._catalog import find_dataset
from psgnn.errors import InputError, unknown_name
from psgnn.paths import atomic_write
from psgnn_lab.figure_specs import (
    AnchorsFigure,
    CoverageFigure,
    CurvesFigure,
    FigureSpec,
    MovementFigure,
    ResultsFigure,
    SizeFigure,
    SymmetryFigure,
)
from psgnn_lab.manifest import Manifest, MethodSpec, load_manifest
from psgnn_lab.records import Record, intact, record_path
from psgnn_lab.statistics import Cell, highest, read_cells

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from psgnn.graph import Graph
    from psgnn.report.plot import Places
    from psgnn_lab.drawing import SizePoint

SUFFIXES = (".svg", ".png")
DPI = 120
COLOURS = 256  # of a PNG; with all shades of its thin lines it would be three times as large
STYLE: Any = {
    "font.family": "DejaVu Sans",  # comes with matplotlib, so it is the same everywhere
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.fonttype": "path",
    "svg.hashsalt": "psgnn",
}


# --- records


def source_of(manifest: Manifest, figure: FigureSpec) -> Manifest:
    """The manifest whose rows and methods the figure names."""
    return manifest if figure.of is None else load_manifest(figure.of, manifest.folder)


def figure_cells(manifest: Manifest, figure: FigureSpec) -> dict[str, dict[str, Cell]]:
    """The cells of a figure by row and method."""
    names, methods = figure.cells
    try:
        source = source_of(manifest, figure)
        rows = [source.row(name) for name in dict.fromkeys(names)]
        specs = _methods(source, methods)
    except InputError as error:
        raise InputError(f"figure '{figure.name}' of {manifest.name}: {error}") from None
    return {row.name: read_cells(source.records, row, specs, source.first_seed) for row in rows}


def _methods(source: Manifest, names: Sequence[str]) -> list[MethodSpec]:
    """The methods of these names; one of a group that a section shows can be named alone."""
    shown = {spec.name: [spec] for section in source.sections for spec in source.section_methods(section)}
    known = {name: source.expand(name) for name in source.methods} | shown
    for name in names:
        if name not in known:
            raise unknown_name(f"method of {source.name}", name, known)
    return [spec for name in names for spec in known[name]]


def has_records(manifest: Manifest, figure: FigureSpec) -> bool:
    """Whether there is anything to draw; what needs no record can always be drawn."""
    cells = figure_cells(manifest, figure)
    return not cells or any(cell.records for row in cells.values() for cell in row.values())


def _first(cell: Cell) -> Record:
    return cell.records[min(cell.records)]


def _file(manifest: Manifest, cell: Cell) -> Path:
    return record_path(manifest.records, cell.row.name, cell.method.name)


def _graph(manifest: Manifest, cell: Cell) -> Graph:
    """The graph that the model of the first seed has seen."""
    from psgnn.training._compare import make_task

    row, record = cell.row, _first(cell)
    task = make_task(
        _load(manifest, row.dataset, row.dataset_options), row.task, record["seed"], **row.task_options
    )
    if task.digest[:16] != record.get("split"):
        raise InputError(
            f"{_file(manifest, cell)}: seed {record['seed']} is of another split than today's; "
            "run it again with --force"
        )
    return task.graphs[0]


def _load(manifest: Manifest, dataset: str, options: Mapping[str, Any]) -> list[Graph]:
    from psgnn.datasets import load_dataset

    return load_dataset(dataset, manifest.data, **options)


def _places(dataset: str, options: Mapping[str, Any]) -> Places | None:
    """Where the nodes of a dataset belong, if that is known."""
    from psgnn_lab.drawing import caveman_layout, lattice_layout

    found = find_dataset(dataset)
    layouts: dict[str, Callable[..., Places]] = {"communities": caveman_layout, "grid": lattice_layout}
    return layouts[found.name](**found.settings(options)) if found.name in layouts else None


# --- kinds


def draw_anchors(figure: AnchorsFigure, manifest: Manifest) -> Figure:
    """The anchors of the first seed, with their diagnostics."""
    from psgnn.anchors import anchor_diagnostics
    from psgnn.report.plot import plot_anchors

    row = manifest.row(figure.row)
    cells = [cell for cell in figure_cells(manifest, figure)[row.name].values() if cell.records]
    graph = _graph(manifest, cells[0])
    sets = {}
    for cell in cells:
        with intact(_file(manifest, cell)):
            anchors = _single_anchors(_first(cell)["anchors"][0])
        found = anchor_diagnostics(graph, anchors, figure.hops)
        sets[
            f"{cell.method.title}\n"
            f"coverage {found['coverage']:.2f}, overlap {found['overlap']:.2f}, resolving {found['resolving']:.2f}, "
            f"symmetric pairs {found['symmetric_pairs']}"
        ] = anchors
    return plot_anchors(graph, sets, places=_places(row.dataset, row.dataset_options))


def _single_anchors(anchors: list[Any]) -> list[int]:
    """The anchors; of P-GNN's sets, the members of the smallest, which are single nodes."""
    if not isinstance(anchors[0], list):
        return anchors
    least = min(map(len, anchors))
    return sorted({v for members in anchors if len(members) == least for v in members})


def draw_symmetry(figure: SymmetryFigure, manifest: Manifest) -> Figure:
    """From the graph in the manifest alone."""
    from psgnn.graph import Graph
    from psgnn_lab.drawing import plot_symmetry

    edges = np.array(figure.edges)
    named = [*edges.ravel(), *figure.nodes, *(v for panel in figure.panels for v in panel.anchors)]
    if not 0 <= min(named) <= max(named) < len(figure.places):
        raise InputError(
            f"figure '{figure.name}' names nodes {min(named)}..{max(named)} and has places for "
            f"{len(figure.places)}; give every node one"
        )
    graph = Graph.from_edges(edges.T, len(figure.places))
    sets = {panel.title: panel.anchors for panel in figure.panels}
    return plot_symmetry(graph, sets, np.array(figure.places), figure.nodes)


def draw_coverage(figure: CoverageFigure, manifest: Manifest) -> Figure:
    """From the graph and the rules alone."""
    from psgnn.anchors import select_anchors
    from psgnn_lab.drawing import plot_coverage

    graph = _load(manifest, figure.dataset, figure.dataset_options)[0]
    sets = {
        panel.title: select_anchors(graph, panel.rule, figure.anchors, figure.seed) for panel in figure.panels
    }
    places = _places(figure.dataset, figure.dataset_options)
    return plot_coverage(graph, sets, figure.hops, places=places)


def draw_size(figure: SizeFigure, manifest: Manifest) -> Figure:
    """Means and spreads of the records; cells without a record are left out."""
    from psgnn_lab.drawing import plot_sizes

    source = source_of(manifest, figure)
    cells = figure_cells(manifest, figure)
    panels: dict[str, dict[str, list[SizePoint]]] = {}
    for panel in figure.panels:
        lines = panels[panel.title] = {}
        for name in panel.rows:
            row = source.row(name)
            nodes = sum(
                int(graph.num_nodes or 0) for graph in _load(manifest, row.dataset, row.dataset_options)
            )
            for cell in cells[name].values():
                lines.setdefault(cell.method.title, []).append(_point(source, cell, nodes))
    return plot_sizes(panels)


def _point(source: Manifest, cell: Cell, nodes: int) -> SizePoint:
    from psgnn_lab.drawing import SizePoint

    values = list(cell.main.values())
    told = [
        section.published[cell.method.name][section.rows.index(cell.row.name)].value
        for section in source.sections
        if cell.row.name in section.rows and cell.method.name in section.published
    ]
    return SizePoint(
        nodes,
        cell.mean if values else None,
        float(np.std(values, ddof=1)) if len(values) > 1 else None,
        told[0] if told else None,
    )


def draw_results(figure: ResultsFigure, manifest: Manifest) -> Figure:
    """Means of the records; of a group of methods, the highest of each row."""
    from psgnn_lab.drawing import Series, plot_results

    source = source_of(manifest, figure)
    cells = figure_cells(manifest, figure)
    rows = [source.row(name) for name in figure.rows]
    series = []
    for line in figure.series:
        names = [spec.name for spec in _methods(source, [line.method])]
        best = [highest([cells[row.name][name] for name in names if name in cells[row.name]]) for row in rows]
        series.append(Series(line.title, [cell.mean if cell else None for cell in best]))
    return plot_results([row.title.removesuffix(f", {row.task}") for row in rows], series)


def draw_curves(figure: CurvesFigure, manifest: Manifest) -> Figure:
    """From the histories of traced records."""
    from psgnn.report.plot import plot_curves

    panels = {}
    for name, cells in figure_cells(manifest, figure).items():
        lines = {
            cell.method.title: _runs(_file(manifest, cell), cell) for cell in cells.values() if cell.records
        }
        if lines:
            panels[manifest.row(name).title] = lines
    return plot_curves(panels)


def _runs(file: Path, cell: Cell) -> list[tuple[list[dict[str, float]], int]]:
    """The history of every seed with the epoch that was kept."""
    keys = ("epoch", "loss", "auc")
    with intact(file):
        return [
            (
                [{key: float(entry[key]) for key in keys} for entry in record["history"]],
                int(record["best_epoch"]),
            )
            for record in cell.records.values()
        ]


def draw_movement(figure: MovementFigure, manifest: Manifest) -> Figure:
    """From the anchors in the histories of traced records, of the first seed."""
    from psgnn_lab.drawing import plot_movement

    row = manifest.row(figure.row)
    cells = [cell for cell in figure_cells(manifest, figure)[row.name].values() if cell.records]
    graph = _graph(manifest, cells[0])
    lines = {}
    for cell in cells:
        with intact(_file(manifest, cell)):
            entries = _moments(_first(cell)["history"])
        if not entries:
            raise InputError(
                f"figure '{figure.name}' of {manifest.name}: method '{cell.method.name}' has anchors that never "
                "move or too many to be kept; name another"
            )
        few = np.linspace(0, len(entries) - 1, min(figure.moments, len(entries))).round().astype(int)
        lines[cell.method.title] = [entries[place] for place in few]
    return plot_movement(graph, lines, places=_places(row.dataset, row.dataset_options))


def _moments(history: list[dict[str, Any]]) -> list[tuple[str, list[int]]]:
    """A title and the anchors for every entry; a record has anchors only where they are new."""
    entries, anchors = [], None
    for entry in history:
        title = f"epoch {entry['epoch']}, AUC {entry['auc']:.2f}"
        anchors = entry.get("anchors", anchors)
        if anchors is not None:
            entries.append((title, _single_anchors(anchors)))
    return entries


KINDS: dict[str, Callable[[Any, Manifest], Figure]] = {
    "anchors": draw_anchors,
    "symmetry": draw_symmetry,
    "coverage": draw_coverage,
    "size": draw_size,
    "results": draw_results,
    "curves": draw_curves,
    "movement": draw_movement,
}


# --- files


def render(figure: FigureSpec, manifest: Manifest) -> dict[str, bytes]:
    """The figure as a file of each suffix; the settings and the clock of the user play no part."""
    import matplotlib as mpl

    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(STYLE)
        drawn = KINDS[figure.kind](figure, manifest)
        svg, png = io.BytesIO(), io.BytesIO()
        drawn.savefig(svg, format="svg", metadata={"Date": None, "Creator": None})
        drawn.savefig(png, format="png", dpi=DPI, metadata={"Software": None})
    return {".svg": _short_coordinates(svg.getvalue()), ".png": _few_colours(png.getvalue())}


def _short_coordinates(svg: bytes) -> bytes:
    """Hundredths of a point are enough, and free of the last digits in which machines differ."""

    def shorten(attribute: re.Match[bytes]) -> bytes:
        return re.sub(rb"-?\d+\.\d{3,}", lambda number: b"%.2f" % float(number.group()), attribute.group())

    return re.sub(rb'\b(d|x|y)="[^"]*"', shorten, svg)


def _few_colours(png: bytes) -> bytes:
    from PIL import Image

    buffer = io.BytesIO()
    with Image.open(io.BytesIO(png)) as image:
        few = image.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
        few.save(buffer, format="png", optimize=True)
    return buffer.getvalue()


def figure_path(manifest: Manifest, figure: FigureSpec, suffix: str) -> Path:
    """Its file beside the page."""
    page = (manifest.folder / (manifest.page or "page.md")).resolve()
    return page.parent / "figures" / f"{figure.name}{suffix}"


def write_figures(manifest: Manifest) -> list[Path]:
    """Draw all figures that have something to show; a file that is current is left alone."""
    paths = []
    for figure in manifest.figures:
        if not has_records(manifest, figure):
            continue
        for suffix, content in render(figure, manifest).items():
            path = figure_path(manifest, figure, suffix)
            paths.append(path)
            if not path.is_file() or path.read_bytes() != content:
                path.parent.mkdir(parents=True, exist_ok=True)
                with atomic_write(path, force=True) as temporary:
                    temporary.write_bytes(content)
    return paths
