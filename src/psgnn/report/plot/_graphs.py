"""Pictures of graphs and their anchors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from psgnn.anchors._diagnostics import anchor_diagnostics, message_classes
from psgnn.anchors._greedy import refine
from psgnn.distances._engine import hop_columns
from psgnn.graph._graph import Adjacency, as_graph
from psgnn.report._layout import pivot_layout
from psgnn.report.plot._style import ANCHOR_COLOUR, GREEN, ORANGE, PURPLE, SKY, YELLOW, dot, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from psgnn.graph import Graph

MAX_DRAWN_EDGES = 20_000
EDGES_A_LINE = 1000  # a longer path is more than the rasteriser takes
MOST_LEVELS = 12  # of a colour bar that names each of them

Places = npt.NDArray[np.float64]
Anchors = npt.ArrayLike  # ids of nodes


def _pictures(
    lines: int,
    columns: int,
    width: float,
    height: float,
    *,
    left: float = 0.1,
    head: float = 0.4,
    foot: float,
) -> tuple[Figure, npt.NDArray[Any]]:
    """A figure with axes ``[lines, columns]`` of exactly this size in inches, room for titles, and a foot.

    Layouts that matplotlib finds by itself cut the titles of axes whose aspect is fixed.
    """
    total = left + columns * (width + 0.1), lines * (head + height) + foot
    figure = new_figure(*total, layout=None)
    axes = np.empty((lines, columns), object)
    for line, column in np.ndindex(lines, columns):
        x, y = left + column * (width + 0.1), foot + (lines - 1 - line) * (head + height)
        box = x / total[0], y / total[1], width / total[0], height / total[1]
        axes[line, column] = panel = figure.add_axes(box, frameon=False)
        panel.set_axis_off()
    return figure, axes


def plot_anchors(
    data: Graph, sets: Mapping[str, Anchors], *, seed: int = 0, places: Places | None = None
) -> Figure:
    """The graph once for each named set of anchors, coloured by the hops to the nearest of them.

    Args:
        data: the graph.
        sets: anchors by title.
        seed: of the layout, and of the edges that are drawn if there are too many.
        places: positions ``[N, 2]`` instead of those of `pivot_layout`.
    """
    adjacency = as_graph(data).adjacency
    places = pivot_layout(adjacency, seed) if places is None else places
    figure, axes = _pictures(1, len(sets), 4.1, 4.1, head=0.6, foot=0.7)
    for panel, title in zip(axes[0], sets, strict=True):
        first, *rest = title.split("\n")
        panel.set_title(first, pad=22 if rest else 6)
        panel.annotate(
            "\n".join(rest), (0.5, 1.0), (0, 8), "axes fraction", "offset points", ha="center", fontsize=8
        )
    _draw_distances(figure, axes[0], adjacency, places, list(sets.values()), seed)
    return figure


def plot_movement(
    data: Graph, lines: Mapping[str, Sequence[tuple[str, Anchors]]], *, places: Places | None = None
) -> Figure:
    """Small multiples: for each name a line of pictures as of `plot_anchors`, each with its title and anchors."""
    adjacency = as_graph(data).adjacency
    places = pivot_layout(adjacency) if places is None else places
    columns = max(map(len, lines.values()))
    figure, axes = _pictures(len(lines), columns, 1.7, 1.7, left=0.4, head=0.35, foot=0.75)
    drawn, sets = [], []
    for line, (name, panels) in zip(axes, lines.items(), strict=True):
        for panel, (title, anchors) in zip(line, panels, strict=False):
            panel.set_title(title, fontsize=8, pad=2)
            drawn.append(panel)
            sets.append(anchors)
        line[0].annotate(name, (-0.03, 0.5), xycoords="axes fraction", rotation=90, ha="right", va="center")
    _draw_distances(figure, drawn, adjacency, places, sets, 0, size=11)
    return figure


def plot_coverage(
    data: Graph, sets: Mapping[str, Anchors], hops: int, *, places: Places | None = None
) -> Figure:
    """Which nodes are within `hops` of no anchor, of one and of several, with the diagnostics as titles."""
    from matplotlib.lines import Line2D

    adjacency = as_graph(data).adjacency
    places = pivot_layout(adjacency) if places is None else places
    figure, panels = _pictures(1, len(sets), 4.0, 4.0, head=0.6, foot=0.75)
    size = _node_size(adjacency)
    kinds = {"no anchor": "white", "one anchor": SKY, "several anchors": ORANGE}
    for axes, (title, anchors) in zip(panels[0], sets.items(), strict=True):
        nodes = np.asarray(anchors)
        columns = hop_columns(adjacency, nodes)
        covering = np.minimum(((columns >= 0) & (columns <= hops)).sum(axis=1), 2)
        _draw_edges(axes, adjacency, places)
        colours = np.array(list(kinds.values()))[covering]
        axes.scatter(*places.T, c=colours, s=size, edgecolors="#444444", linewidths=0.6, zorder=2)
        _draw_stars(axes, places[nodes], size)
        found = anchor_diagnostics(data, nodes, hops)
        axes.set_title(f"{title}\ncoverage {found['coverage']:.2f}, overlap {found['overlap']:.2f}")
    handles = [dot(colour, f"within {hops} hops of {kind}") for kind, colour in kinds.items()]
    star: dict[str, Any] = {"marker": "*", "markersize": 12, "linestyle": "none", "markeredgecolor": "black"}
    handles.append(Line2D([], [], color=ANCHOR_COLOUR, label="anchor", **star))
    figure.legend(handles=handles, loc="lower center", ncols=2, frameon=False)
    return figure


def plot_symmetry(
    data: Graph, sets: Mapping[str, Anchors], places: Places, pointed: tuple[int, int] | None = None
) -> Figure:
    """Which nodes of a small graph cannot be told apart by message passing and the hops to the anchors.

    Nodes that look the same have the same colour, those that look like no other are white. Numbers are hops to the
    anchors. The two nodes `pointed` at are called u and v.
    """
    adjacency = as_graph(data).adjacency
    plain = message_classes(adjacency)
    palette = _shared_colours(plain)
    span = np.ptp(places, axis=0)
    figure, panels = _pictures(1, len(sets), 3.8, 3.8 * span[1] / span[0], head=0.8, foot=0.1)
    for axes, (title, anchors) in zip(panels[0], sets.items(), strict=True):
        nodes = np.asarray(anchors, np.int64)
        columns = (
            hop_columns(adjacency, nodes) if nodes.size else np.empty((adjacency.num_nodes, 0), np.int16)
        )
        classes = plain
        for column in columns.T:
            classes = refine(classes, column)
        shared = np.bincount(classes)[classes] > 1
        # A class that anchors have split keeps the colour that it had without them.
        colours = [palette[plain[v]] if shared[v] else "white" for v in range(adjacency.num_nodes)]
        _draw_edges(axes, adjacency, places, width=1.2)
        axes.scatter(*places.T, c=colours, s=330, edgecolors="#222222", linewidths=1.0, zorder=2)
        axes.scatter(
            *places[nodes].T, s=620, facecolors="none", edgecolors=ANCHOR_COLOUR, linewidths=2.4, zorder=3
        )
        for v, (x, y) in enumerate(places):
            label = ", ".join(map(str, columns[v]))
            axes.text(x, y - 0.02, label, ha="center", va="center", fontsize=10, zorder=4)
        for name, v in zip("uv", pointed or (), strict=False):
            side = 1 if places[v, 0] > places[:, 0].mean() else -1
            axes.annotate(name, places[v], xytext=(16 * side, 10), textcoords="offset points", ha="center",
                          fontsize=12, style="italic", weight="bold")  # fmt: skip
        axes.margins(0.16, 0.25)
        axes.set_title(f"{title}\n{adjacency.num_nodes} nodes, {np.unique(classes).size} kinds")
    return figure


def _shared_colours(classes: npt.NDArray[np.int64]) -> dict[int, str]:
    """A colour, light enough to write on, for every class of more than one node."""
    light = (SKY, ORANGE, GREEN, PURPLE, YELLOW, "#bbbbbb")
    several = np.flatnonzero(np.bincount(classes) > 1)
    return {int(c): light[i % len(light)] for i, c in enumerate(several)}


def _draw_distances(
    figure: Figure,
    axes: Sequence[Axes],
    adjacency: Adjacency,
    places: Places,
    sets: Sequence[Anchors],
    seed: int,
    size: float | None = None,
) -> None:
    """Every set on its axes, in the colours of one scale, with its bar beneath."""
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import BoundaryNorm, ListedColormap

    size = _node_size(adjacency) if size is None else size
    distances = [_nearest(adjacency, np.asarray(anchors)) for anchors in sets]
    most = max(int(hops.max()) for hops in distances)
    levels = np.arange(1, max(most, 1) + 1)  # an anchor itself is a star
    colours = ListedColormap(colormaps["viridis_r"](np.linspace(0.1, 1, levels.size)))
    scale = ScalarMappable(BoundaryNorm(np.append(levels, levels[-1] + 1) - 0.5, levels.size), colours)
    for panel, anchors, hops in zip(axes, sets, distances, strict=True):
        _draw_edges(panel, adjacency, places, seed)
        for level in levels:
            some = places[hops == level]
            colour = colours(level - 1)
            panel.plot(*some.T, "o", color=colour, markersize=size**0.5, markeredgewidth=0, zorder=2)
        _draw_stars(panel, places[np.asarray(anchors)], size)
    # 0.12 inches high and 0.45 above the edge; the numbers and the label are beneath.
    height = figure.get_figheight()
    below = figure.add_axes((0.3, 0.45 / height, 0.4, 0.12 / height))
    bar = figure.colorbar(
        scale, cax=below, orientation="horizontal", ticks=levels[:: 1 + most // MOST_LEVELS]
    )
    bar.set_label("hops to the nearest anchor", labelpad=1)
    bar.ax.tick_params(which="both", length=0, pad=2)
    bar.outline.set_visible(False)


def _nearest(adjacency: Adjacency, anchors: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Hops to the nearest anchor; of nodes that reach none, one more than the most."""
    columns = hop_columns(adjacency, anchors).astype(np.int64)
    columns[columns < 0] = columns.max() + 1
    nearest: npt.NDArray[np.int64] = columns.min(axis=1)
    return nearest


def _node_size(adjacency: Adjacency) -> float:
    return float(np.clip(4000 / adjacency.num_nodes, 1, 60))


def _draw_edges(axes: Axes, adjacency: Adjacency, places: Places, seed: int = 0, width: float = 0.4) -> None:
    """The edges as few long paths: thousands of single ones make a large file."""
    edges = adjacency.edges()
    if edges.shape[1] > MAX_DRAWN_EDGES:
        kept = np.random.default_rng(seed).choice(edges.shape[1], MAX_DRAWN_EDGES, replace=False)
        edges = edges[:, np.sort(kept)]
    ends = places[edges.T]  # [E, 2, 2]
    gaps = np.full((len(ends), 1, 2), np.nan)
    lines = np.concatenate([ends, gaps], axis=1)  # a line ends at a NaN
    for start in range(0, len(lines), EDGES_A_LINE):
        axes.plot(*lines[start : start + EDGES_A_LINE].reshape(-1, 2).T, color="#b0b0b0", lw=width, zorder=1)
    axes.set_aspect("equal")


def _draw_stars(axes: Axes, places: Places, size: float) -> None:
    x, y = places.T
    stars: dict[str, Any] = {"marker": "*", "c": ANCHOR_COLOUR, "edgecolors": "black", "linewidths": 0.6}
    axes.scatter(x, y, s=3 * size + 30, zorder=3, **stars)
