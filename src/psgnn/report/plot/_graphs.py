"""Pictures of graphs and their anchors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from psgnn.distances._engine import hop_columns
from psgnn.graph._graph import Adjacency, as_graph
from psgnn.report._layout import pivot_layout
from psgnn.report.plot._style import ANCHOR_COLOUR, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from psgnn.graph import Graph

MAX_DRAWN_EDGES = 20_000
EDGES_A_LINE = 1000  # a longer path is more than the rasteriser takes
MOST_LEVELS = 12  # of a colour bar that names each of them

Places = npt.NDArray[np.float64]
Anchors = npt.ArrayLike  # ids of nodes


def pictures(
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
    figure, axes = pictures(1, len(sets), 4.1, 4.1, head=0.6, foot=0.7)
    for panel, title in zip(axes[0], sets, strict=True):
        first, *rest = title.split("\n")
        panel.set_title(first, pad=22 if rest else 6)
        panel.annotate(
            "\n".join(rest), (0.5, 1.0), (0, 8), "axes fraction", "offset points", ha="center", fontsize=8
        )
    draw_distances(figure, axes[0], adjacency, places, list(sets.values()), seed)
    return figure


def draw_distances(
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

    size = node_size(adjacency) if size is None else size
    distances = [_nearest(adjacency, np.asarray(anchors)) for anchors in sets]
    most = max(int(hops.max()) for hops in distances)
    levels = np.arange(1, max(most, 1) + 1)  # an anchor itself is a star
    colours = ListedColormap(colormaps["viridis_r"](np.linspace(0.1, 1, levels.size)))
    scale = ScalarMappable(BoundaryNorm(np.append(levels, levels[-1] + 1) - 0.5, levels.size), colours)
    for panel, anchors, hops in zip(axes, sets, distances, strict=True):
        draw_edges(panel, adjacency, places, seed)
        for level in levels:
            some = places[hops == level]
            colour = colours(level - 1)
            panel.plot(*some.T, "o", color=colour, markersize=size**0.5, markeredgewidth=0, zorder=2)
        draw_stars(panel, places[np.asarray(anchors)], size)
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


def node_size(adjacency: Adjacency) -> float:
    return float(np.clip(4000 / adjacency.num_nodes, 1, 60))


def draw_edges(axes: Axes, adjacency: Adjacency, places: Places, seed: int = 0, width: float = 0.4) -> None:
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


def draw_stars(axes: Axes, places: Places, size: float) -> None:
    x, y = places.T
    stars: dict[str, Any] = {"marker": "*", "c": ANCHOR_COLOUR, "edgecolors": "black", "linewidths": 0.6}
    axes.scatter(x, y, s=3 * size + 30, zorder=3, **stars)
