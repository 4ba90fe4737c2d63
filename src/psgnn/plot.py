"""Figures. Every function returns a matplotlib ``Figure`` and leaves showing or saving to the caller."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from psgnn.distances.engine import hop_columns
from psgnn.graph import Adjacency
from psgnn.layout import pivot_layout

if TYPE_CHECKING:
    import torch
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from torch_geometric.data import Data

MAX_DRAWN_EDGES = 20_000
ANCHOR_COLOUR = "#d55e00"  # vermilion, safe for the colour-blind beside viridis


def plot_anchors(data: Data, sets: dict[str, torch.Tensor], *, seed: int = 0) -> Figure:
    """The graph once for each named set of anchors, coloured by the hops to the nearest of them."""
    from matplotlib.figure import Figure

    adjacency = Adjacency.from_data(data)
    places = pivot_layout(adjacency, seed)
    figure = Figure(figsize=(4.2 * len(sets), 4.4), layout="constrained")
    for axes, (title, anchors) in zip(
        np.atleast_1d(figure.subplots(1, len(sets))), sets.items(), strict=True
    ):
        _draw(axes, adjacency, places, np.asarray(anchors), seed)
        axes.set_title(title)
    return figure


def _draw(
    axes: Axes,
    adjacency: Adjacency,
    places: npt.NDArray[np.float64],
    anchors: npt.NDArray[np.int64],
    seed: int,
) -> None:
    from matplotlib.collections import LineCollection

    edges = adjacency.edges()
    if edges.shape[1] > MAX_DRAWN_EDGES:
        kept = np.random.default_rng(seed).choice(edges.shape[1], MAX_DRAWN_EDGES, replace=False)
        edges = edges[:, kept]
    lines = places[edges.T]  # [E, 2, 2]
    axes.add_collection(LineCollection(list(lines), colors="#999999", linewidths=0.3, alpha=0.5, zorder=1))
    hops = hop_columns(adjacency, anchors).astype(float)
    hops[hops < 0] = np.inf
    nearest = hops.min(axis=1)
    nearest[np.isinf(nearest)] = nearest[np.isfinite(nearest)].max() + 1
    size = float(np.clip(4000 / adjacency.num_nodes, 1, 30))
    x, y = places.T
    axes.scatter(x, y, c=nearest, cmap="viridis_r", s=size, linewidths=0, zorder=2)
    stars: dict[str, Any] = {"marker": "*", "c": ANCHOR_COLOUR, "edgecolors": "black", "linewidths": 0.5}
    axes.scatter(x[anchors], y[anchors], s=4 * size + 25, zorder=3, **stars)
    axes.set_aspect("equal")
    axes.set_axis_off()
