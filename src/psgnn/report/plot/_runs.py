"""What a trained model has learned: curves of its training, a map of its embeddings, its scores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from psgnn.errors import InputError
from psgnn.report.plot._style import BLUE, LINES, VERMILION, dot, line_style, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from psgnn.tasks import LabelledPairs
    from psgnn.training._run import Run

MOST_COLOURS = len(LINES)  # classes beyond these share one scale
BINS = 40
KINDS = {"link": ("not linked", "linked"), "pair": ("different class", "same class")}

History = Sequence[Mapping[str, Any]]  # of `psgnn.training.Run`


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
