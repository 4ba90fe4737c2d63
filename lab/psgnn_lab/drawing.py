"""Pictures of the laboratory's figures; what a user draws is in `psgnn.report.plot`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from psgnn.anchors._diagnostics import anchor_diagnostics, message_classes
from psgnn.anchors._greedy import refine
from psgnn.distances._engine import hop_columns
from psgnn.graph._graph import as_graph
from psgnn.report._drawing import pivot_layout
from psgnn.report.plot import (
    ANCHOR_COLOUR,
    GREEN,
    ORANGE,
    PURPLE,
    SKY,
    YELLOW,
    Anchors,
    Places,
    dot,
    draw_distances,
    draw_edges,
    draw_stars,
    line_style,
    new_figure,
    node_size,
    pictures,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from psgnn.graph import Graph


@dataclass(frozen=True)
class SizePoint:
    """A method on a graph of some size: mean and standard deviation over seeds, and what others reported."""

    nodes: int
    mean: float | None
    sd: float | None = None
    published: float | None = None


def plot_sizes(panels: Mapping[str, Mapping[str, Sequence[SizePoint]]], label: str = "AUC") -> Figure:
    """A metric against the number of nodes, for each panel a line a method; published values are dashed."""
    from matplotlib.lines import Line2D

    names = list(dict.fromkeys(name for lines in panels.values() for name in lines))
    figure = new_figure(3.1 * len(panels) + 0.4, 3.9)
    axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for panel, (title, lines) in zip(axes, panels.items(), strict=True):
        for name, points in lines.items():
            colour, marker = line_style(names.index(name))
            known = [point for point in points if point.mean is not None]
            x = [point.nodes for point in known]
            mean = np.array([point.mean for point in known], float)
            sd = np.array([point.sd or 0.0 for point in known])
            panel.fill_between(x, mean - sd, mean + sd, color=colour, alpha=0.15, linewidth=0)
            panel.plot(x, mean, color=colour, marker=marker, markersize=4.5, linewidth=1.4)
            told = [(point.nodes, point.published) for point in points if point.published is not None]
            panel.plot(*np.array(told).reshape(-1, 2).T, color=colour, linestyle=(0, (3, 2)), linewidth=1.0)
        _size_axis(panel, sorted({point.nodes for points in lines.values() for point in points}))
        panel.set_title(title)
        panel.grid(axis="y", color="#dddddd", linewidth=0.6)
    axes[0].set_ylabel(label)
    handles = [
        Line2D([], [], color=colour, marker=marker, markersize=4.5, label=name)
        for name, (colour, marker) in zip(names, map(line_style, range(len(names))), strict=True)
    ]
    handles.append(Line2D([], [], color="#555555", linestyle=(0, (3, 2)), linewidth=1.0, label="published"))
    figure.legend(handles=handles, loc="outside lower center", ncols=min(len(handles), 5), frameon=False)
    return figure


def _size_axis(axes: Axes, sizes: Sequence[int]) -> None:
    """A logarithmic axis with a tick at every size, as long as they do not run into one another."""
    axes.set_xscale("log")
    axes.set_xticks([], minor=True)
    turned: dict[str, Any] = {"rotation": 45, "ha": "right", "rotation_mode": "anchor", "fontsize": 8}
    axes.set_xticks(sizes, [str(size) for size in sizes], **turned)
    axes.set_xlabel("nodes")


@dataclass(frozen=True)
class Series:
    """A method in `plot_results`: how it is drawn, and its metric by row, None where it was not run."""

    title: str
    values: Sequence[float | None]


def plot_results(
    rows: Sequence[str], series: Sequence[Series], label: str = "AUC", lowest: float = 0.5
) -> Figure:
    """A line per row and a mark per method on it, the first method on top and larger.

    Marks are a little apart vertically, so that equal values are seen. Values below `lowest` are arrows at the edge.
    """
    figure = new_figure(8.2, 0.3 * len(rows) + 1.2)
    axes = figure.subplots()
    for place, method in reversed(list(enumerate(series))):
        colour, marker = line_style(place)
        apart = 0.5 * (place / max(len(series) - 1, 1) - 0.5)
        known = [(value, y + apart) for y, value in enumerate(method.values) if value is not None]
        size = 7.5 if place == 0 else 5.5
        style: dict[str, Any] = {"color": colour, "linestyle": "none", "markersize": size, "clip_on": False}
        inside = np.array([point for point in known if point[0] >= lowest]).reshape(-1, 2)
        axes.plot(*inside.T, marker=marker, label=method.title, zorder=3, **style)
        for _, y in (point for point in known if point[0] < lowest):
            axes.plot(lowest, y, marker="<", **style)
    axes.set_yticks(range(len(rows)), rows)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlim(lowest, 1.0)
    axes.set_xlabel(label)
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    for y in range(0, len(rows), 2):
        axes.axhspan(y - 0.5, y + 0.5, color="#f2f2f2", zorder=0)
    axes.tick_params(left=False)
    axes.spines["left"].set_visible(False)
    handles, titles = axes.get_legend_handles_labels()
    figure.legend(handles[::-1], titles[::-1], loc="outside lower center", ncols=3, frameon=False)
    return figure


def plot_movement(
    data: Graph, lines: Mapping[str, Sequence[tuple[str, Anchors]]], *, places: Places | None = None
) -> Figure:
    """Small multiples: for each name a line of pictures as of `plot_anchors`, each with its title and anchors."""
    adjacency = as_graph(data).adjacency
    places = pivot_layout(adjacency) if places is None else places
    columns = max(map(len, lines.values()))
    figure, axes = pictures(len(lines), columns, 1.7, 1.7, left=0.4, head=0.35, foot=0.75)
    drawn, sets = [], []
    for line, (name, panels) in zip(axes, lines.items(), strict=True):
        for panel, (title, anchors) in zip(line, panels, strict=False):
            panel.set_title(title, fontsize=8, pad=2)
            drawn.append(panel)
            sets.append(anchors)
        line[0].annotate(name, (-0.03, 0.5), xycoords="axes fraction", rotation=90, ha="right", va="center")
    draw_distances(figure, drawn, adjacency, places, sets, 0, size=11)
    return figure


def plot_coverage(
    data: Graph, sets: Mapping[str, Anchors], hops: int, *, places: Places | None = None
) -> Figure:
    """Which nodes are within `hops` of no anchor, of one and of several, with the diagnostics as titles."""
    from matplotlib.lines import Line2D

    adjacency = as_graph(data).adjacency
    places = pivot_layout(adjacency) if places is None else places
    figure, panels = pictures(1, len(sets), 4.0, 4.0, head=0.6, foot=0.75)
    size = node_size(adjacency)
    kinds = {"no anchor": "white", "one anchor": SKY, "several anchors": ORANGE}
    for axes, (title, anchors) in zip(panels[0], sets.items(), strict=True):
        nodes = np.asarray(anchors)
        columns = hop_columns(adjacency, nodes)
        covering = np.minimum(((columns >= 0) & (columns <= hops)).sum(axis=1), 2)
        draw_edges(axes, adjacency, places)
        colours = np.array(list(kinds.values()))[covering]
        axes.scatter(*places.T, c=colours, s=size, edgecolors="#444444", linewidths=0.6, zorder=2)
        draw_stars(axes, places[nodes], size)
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
    figure, panels = pictures(1, len(sets), 3.8, 3.8 * span[1] / span[0], head=0.8, foot=0.1)
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
        draw_edges(axes, adjacency, places, width=1.2)
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


def caveman_layout(communities: int, size: int) -> npt.NDArray[np.float64]:
    """Positions ``[N, 2]`` of the connected caveman graph: a ring of rings.

    The first node of a community looks at the community before it and the last at the one after it, as the edges
    between them run.
    """
    clockwise = np.pi / 2 - 2 * np.pi * np.arange(communities) / communities
    slots = np.insert(np.arange(size - 1), size // 2, size - 1)  # the last node opposite to the first
    angle = np.empty(size)
    angle[slots] = np.pi / 2 + 2 * np.pi * np.arange(size) / size
    radius = 0.68 * np.sin(np.pi / max(communities, 2))  # rings that do not touch
    centres = np.stack([np.cos(clockwise), np.sin(clockwise)], axis=1)
    turned = clockwise[:, None] + angle
    rings = radius * np.stack([np.cos(turned), np.sin(turned)], axis=2)  # [C, S, 2]
    places = centres[:, None] + rings
    return np.asarray(places.reshape(-1, 2) / (1 + radius))


def lattice_layout(rows: int, cols: int) -> npt.NDArray[np.float64]:
    """Positions ``[N, 2]`` in [-1, 1] of the grid, the first row on top."""
    row, col = np.divmod(np.arange(rows * cols), cols)
    longest = max(rows - 1, cols - 1, 1)
    return np.stack([2 * col - cols + 1, rows - 1 - 2 * row], axis=1) / longest
