"""Curves: a metric by the size of a graph, and by the epoch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from psgnn.report.plot._style import dot, line_style, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

History = Sequence[Mapping[str, Any]]  # of `psgnn.training.Run`


@dataclass(frozen=True)
class SizePoint:
    """A method on a graph of so many nodes: mean and standard deviation over seeds, and what others reported."""

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
