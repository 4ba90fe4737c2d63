"""Figures: of a training, of embeddings and scores, and of graphs with their anchors.

Every function returns a matplotlib ``Figure`` and leaves showing or saving to the caller.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from psgnn.distances._engine import hop_columns
from psgnn.errors import InputError
from psgnn.graph._graph import Adjacency, as_graph
from psgnn.report._drawing import pivot_layout

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from psgnn.graph import Graph
    from psgnn.tasks import LabelledPairs
    from psgnn.training._run import Run

__all__ = ["plot_anchors", "plot_embedding", "plot_history", "plot_scores"]

OKABE_ITO = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#f0e442", "#000000")
BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, YELLOW, BLACK = OKABE_ITO
LINES = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, "#8c8c8c", BLACK)  # yellow is too faint for a line
MARKERS = "osD^vPX*"
ANCHOR_COLOUR = VERMILION

MOST_COLOURS = len(LINES)  # classes beyond these share one scale
BINS = 40
KINDS = {"link": ("not linked", "linked"), "pair": ("different class", "same class")}

History = Sequence[Mapping[str, Any]]  # of `psgnn.training.Run`
MAX_DRAWN_EDGES = 20_000
EDGES_A_LINE = 1000  # a longer path is more than the rasteriser takes
MOST_LEVELS = 12  # of a colour bar that names each of them

Places = npt.NDArray[np.float64]
Anchors = npt.ArrayLike  # ids of nodes


class ShownFigure(Figure):
    """A figure that a notebook shows by itself; matplotlib's need pyplot and its inline backend for that."""

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png")
        return buffer.getvalue()


def new_figure(width: float, height: float, layout: Literal["constrained"] | None = "constrained") -> Figure:
    """An empty white figure, in inches."""
    return ShownFigure(figsize=(width, height), layout=layout, facecolor="white")


def line_style(place: int) -> tuple[str, str]:
    """Colour and marker of the line at a place."""
    return LINES[place % len(LINES)], MARKERS[place % len(MARKERS)]


def dot(colour: str, label: str) -> Any:
    """A dot for a legend."""
    from matplotlib.lines import Line2D

    style: dict[str, Any] = {"marker": "o", "linestyle": "none", "markeredgecolor": "#444444"}
    return Line2D([], [], color=colour, label=label, **style)


def plot_history(run: Run) -> Figure:
    """Training loss and validation AUC (or what else the run goes by) by epoch, with the epoch that was kept."""
    if not run.history:
        raise InputError(
            "the run has no history: the model was not trained on these graphs; plot the run of fit or load"
        )
    config = run.model.config
    metric = next(key for key in run.history[0] if key not in ("epoch", "loss"))
    title = f"{config.name} ({config.preset})"
    runs = [(run.history, int(run.record["best_epoch"]))]
    return plot_curves({title: {config.name: runs}}, metric, metric.upper())


def plot_embedding(
    embedding: npt.ArrayLike, classes: npt.ArrayLike | None = None, names: Sequence[str] | None = None
) -> Figure:
    """The two main directions (PCA) of embeddings ``[N, d]``, such as those of `Run.embed`.

    Args:
        embedding: one row a node.
        classes: a class for each node, for its colour: integers, with -1 for unknown.
        names: of the classes, for the legend.
    """
    x = np.asarray(embedding, np.float64)
    if x.ndim != 2 or not x.size:
        raise InputError(f"embeddings must have the shape [N, d], found {list(x.shape)}")
    figure = new_figure(5.6, 4.6)
    axes = figure.subplots()
    style: dict[str, Any] = {"s": float(np.clip(4000 / len(x), 2, 30)), "linewidths": 0}
    places, shares = _main_plane(x)
    if classes is None:
        axes.scatter(*places.T, color=BLUE, **style)
    else:
        codes = np.asarray(classes).reshape(-1)
        if codes.shape != (len(x),):
            raise InputError(f"there are {codes.size} classes for {len(x)} embeddings; give one for each")
        kinds = np.unique(codes[codes >= 0])
        axes.scatter(*places[codes < 0].T, color="#bbbbbb", **style)
        if kinds.size > MOST_COLOURS:
            shown = codes >= 0
            x, y = places[shown].T
            drawn = axes.scatter(x, y, c=codes[shown], cmap="viridis", **style)
            figure.colorbar(drawn, label="class")
        else:
            for colour, kind in zip(LINES, kinds, strict=False):
                label = str(kind) if names is None else str(names[kind])
                axes.scatter(*places[codes == kind].T, color=colour, label=_plain(label), **style)
            figure.legend(loc="outside right upper", frameon=False, markerscale=1.5)
    for axis, share in zip((axes.xaxis, axes.yaxis), shares, strict=True):
        axis.set_label_text(f"{100 * share:.0f} % of the variance")
        axis.set_ticks([])
    return figure


def plot_scores(run: Run, split: LabelledPairs) -> Figure:
    """How a model scores the positive and the negative pairs of a split, such as ``task.test``: two histograms."""
    scores = run.evaluation_scorer().score(split.pairs)
    positive = split.labels == 1
    figure = new_figure(5.6, 3.4)
    axes = figure.subplots()
    edges = np.linspace(scores.min(), scores.max() + 1e-6, BINS + 1)
    kinds = KINDS[run.model.config.task]
    for kind, some, colour in zip(kinds, (~positive, positive), (VERMILION, BLUE), strict=True):
        label = f"{kind} ({np.count_nonzero(some)})"
        axes.hist(scores[some], edges.tolist(), color=colour, alpha=0.55, label=label)
    axes.set_xlabel("score (logit)")
    axes.set_ylabel("pairs")
    axes.legend(frameon=False)
    return figure


def _main_plane(x: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """The places ``[N, 2]`` of the rows in the plane of their largest variance, and the shares of it."""
    centred = x - x.mean(axis=0)
    values, directions = np.linalg.eigh(centred.T @ centred)
    leading = directions[:, ::-1][:, :2]
    # An eigenvector has no sign of its own; the same picture each time needs one.
    leading = leading * np.where(leading[np.abs(leading).argmax(axis=0), range(leading.shape[1])] < 0, -1, 1)
    places, shares = np.zeros((len(x), 2)), np.zeros(2)
    places[:, : leading.shape[1]] = centred @ leading
    shares[: leading.shape[1]] = values[::-1][:2] / max(float(values.sum()), 1e-300)
    return places, np.clip(shares, 0, 1)


def _plain(label: str) -> str:
    """As it is: matplotlib hides labels that begin with an underscore, and reads dollars as mathematics."""
    return (" " if label.startswith("_") else "") + label.replace("$", r"\$")


def plot_curves(
    panels: Mapping[str, Mapping[str, Sequence[tuple[History, int]]]], metric: str = "auc", label: str = "AUC"
) -> Figure:
    """Loss and validation metric by epoch: a column a panel, a thin line a run, and the mean of a method's runs.

    Every run comes with the epoch that was kept, which is marked.
    """
    from matplotlib.lines import Line2D
    from matplotlib.ticker import LogLocator, NullLocator

    names = list(dict.fromkeys(name for lines in panels.values() for name in lines))
    figure = new_figure(4.3 * len(panels), 5.4)
    grid = figure.subplots(2, len(panels), sharex="col", squeeze=False)
    for column, (title, lines) in zip(grid.T, panels.items(), strict=True):
        for axes, key in zip(column, ("loss", metric), strict=True):
            for name, runs in lines.items():
                _draw_runs(axes, runs, key, line_style(names.index(name))[0])
            axes.grid(color="#dddddd", linewidth=0.6)
            axes.set_xscale("log")
            axes.xaxis.set_major_locator(LogLocator(subs=(1, 3)))
            axes.xaxis.set_major_formatter("{x:g}")
            axes.xaxis.set_minor_locator(NullLocator())
        column[0].set_title(title)
        column[0].set_ylim(bottom=0)
        column[1].set_ylim(top=1.005)
        column[1].set_xlabel("epoch")
    grid[0, 0].set_ylabel("training loss")
    grid[1, 0].set_ylabel(f"validation {label}")
    handles = [
        Line2D([], [], color=line_style(place)[0], linewidth=1.8, label=name)
        for place, name in enumerate(names)
    ]
    handles.append(dot("#555555", "epoch that was kept"))
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False)
    return figure


def _draw_runs(axes: Axes, runs: Iterable[tuple[History, int]], key: str, colour: str) -> None:
    by_epoch: list[dict[int, float]] = []
    for history, kept in runs:
        values = {int(entry["epoch"]): float(entry[key]) for entry in history}
        axes.plot(list(values), list(values.values()), color=colour, linewidth=0.6, alpha=0.45)
        if kept in values:
            axes.plot(kept, values[kept], "o", color=colour, markersize=4, markeredgecolor="white", zorder=3)
        by_epoch.append(values)
    # Runs stop at different epochs; a mean over fewer of them would jump there.
    common = sorted(set.intersection(*map(set, by_epoch)))
    mean = [float(np.mean([values[epoch] for values in by_epoch])) for epoch in common]
    axes.plot(common, mean, color=colour, linewidth=1.8)


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


# The palette of Okabe and Ito, safe for the colour-blind; black last.
