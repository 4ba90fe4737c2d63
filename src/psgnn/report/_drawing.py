"""A graph as the page draws it: which nodes, where and in which colours, their anchors, and how these were chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array, csr_array

from psgnn.anchors._greedy import farthest_first
from psgnn.distances._engine import hop_columns, set_columns
from psgnn.graph._graph import Adjacency, IntArray
from psgnn.kernels._drawing import move_nodes, spring
from psgnn.report._page import shown_name, shown_names

MOST_GRAPHS = 20
MOST_STEPS = 40
MOST_UNITS = 400
LANES = 64  # searches at a time, so that no table of all nodes and all anchors is ever in memory

Unit = tuple[int, ...]  # an anchor: one node, or the members of a set


@dataclass(frozen=True)
class Limits:
    """How much of a run fits the page: nodes, links, hops (anchors x nodes) and bytes of names."""

    nodes: int
    links: int
    hops: int
    name_bytes: int

    @classmethod
    def shared_by(cls, runs: int) -> Limits:
        """The room that each run has."""
        return cls(
            nodes=min(6000, 40_000 // runs),
            links=min(20_000, 80_000 // runs),
            hops=2_500_000 // runs,
            name_bytes=1_500_000 // runs,
        )

    def of_each(self, graphs: int) -> Limits:
        """The room that each graph of a run has."""
        parts = (self.nodes, self.links, self.hops, self.name_bytes)
        return Limits(*(part // graphs for part in parts))


@dataclass(frozen=True)
class Step:
    """A moment of the choice of anchors: its epoch (None where they do not move) and the anchors by then.

    ``explained`` is the share of the log-loss of the training pairs that learned anchors explain by then.
    """

    epoch: int | None
    units: list[Unit]
    explained: float | None = None


def thin(adjacency: Adjacency, first: IntArray, limit: int, rng: np.random.Generator) -> IntArray:
    """At most `limit` nodes, sorted: those that come `first`, half of the rest close to them, the others by chance.

    Close are the nodes with the fewest hops to a node of `first`; chance keeps what is far from them in sight.
    """
    if adjacency.num_nodes <= limit:
        return np.arange(adjacency.num_nodes)
    first = first[np.sort(np.unique(first, return_index=True)[1])][: limit // 2]
    chance = rng.permutation(adjacency.num_nodes)
    near = chance
    if first.size:
        hops = set_columns(adjacency, first, np.array([0, first.size]))[:, 0].astype(np.int64)
        hops[hops < 0] = np.iinfo(np.int16).max
        near = chance[np.argsort(hops[chance], kind="stable")]
    half = first.size + (limit - first.size) // 2
    listed = np.concatenate([first, near])
    kept = listed[np.sort(np.unique(listed, return_index=True)[1])][:half]
    others = chance[~np.isin(chance, kept)][: limit - kept.size]
    return np.sort(np.concatenate([kept, others]))


def draw_graph(
    adjacency: Adjacency,
    names: Sequence[str],
    steps: list[Step],
    final: list[Unit],
    limits: Limits,
    *,
    wanted: IntArray,
    classes: IntArray | None,
    held_out: IntArray | None = None,
    arcs: IntArray | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """Everything that the page needs to draw one graph; arrays are NumPy's.

    Args:
        adjacency: the visible graph.
        names: of its nodes.
        steps: how the anchors came to be, local ids; none for a model without anchors.
        final: the anchors of the trained model, local ids.
        limits: what fits the page.
        wanted: nodes that are to be drawn if there is room, such as those of predictions.
        classes: of the nodes, if known.
        held_out: links ``[2, H]`` that the model was not shown in training, local ids.
        arcs: the visible links ``[2, A]`` from source to target, of a directed graph.
        seed: of the layout and of what is drawn by chance.
    """
    rng = np.random.default_rng(seed)
    singles = np.array([unit[0] for unit in final if len(unit) == 1], np.int64)
    shown = thin(adjacency, np.concatenate([singles, wanted]), limits.nodes, rng)
    steps, units = fitting_steps(steps, final, limits.hops // max(shown.size, 1))
    edges = adjacency.edges() if arcs is None else arcs
    links = _links(edges, adjacency.num_nodes, shown, limits.links, rng)
    unseen = np.zeros((2, 0), np.int64) if held_out is None else held_out
    place = place_nodes(adjacency, seed)[shown]
    number = {unit: i for i, unit in enumerate(units)}
    return {
        "nodes": adjacency.num_nodes,
        "edges": edges.shape[1],
        "shown": shown,
        "names": shown_names([names[v] for v in shown], limits.name_bytes),
        "x": place[:, 0].astype(np.float32),
        "y": place[:, 1].astype(np.float32),
        "degree": adjacency.degrees[shown],
        "directions": None
        if arcs is None
        else np.stack([np.bincount(ends, minlength=adjacency.num_nodes)[shown] for ends in arcs]),
        "class": None if classes is None else classes[shown],
        "community": find_communities(adjacency, seed)[shown],
        "links": links,
        "held_out": _links(unseen, adjacency.num_nodes, shown, limits.links // 4, rng),
        "anchors": [_unit_name(unit, names, i) for i, unit in enumerate(units)],
        "hops": unit_hops(adjacency, units, shown),
        "nearest": nearest_hops(adjacency, final)[shown],
        "steps": [
            {
                "epoch": step.epoch,
                "anchors": [number[unit] for unit in step.units],
                "explained": step.explained,
            }
            for step in steps
        ],
    }


def fitting_steps(steps: list[Step], final: list[Unit], room: int) -> tuple[list[Step], list[Unit]]:
    """As many of the steps as there is room for anchors (at most `room` different ones), and all their anchors.

    First, last and what equals the final choice stay; the others are left out evenly. The final anchors come first
    among the anchors. If even these are too many, the first of them are kept.
    """
    room = max(min(room, MOST_UNITS), 1)
    count = MOST_STEPS
    while True:
        if len(steps) > count:
            places = np.unique(np.linspace(0, len(steps) - 1, count).astype(int))
            same = [i for i, step in enumerate(steps) if set(step.units) == set(final)]
            kept = sorted({*places.tolist(), *same[:1]})
        else:
            kept = list(range(len(steps)))
        units = list(dict.fromkeys([*final, *(unit for i in kept for unit in steps[i].units)]))
        if len(units) <= room or count <= 2:
            break
        count //= 2
    known = set(units[:room])
    chosen = [replace(steps[i], units=[unit for unit in steps[i].units if unit in known]) for i in kept]
    return chosen, units[:room]


def unit_hops(adjacency: Adjacency, units: list[Unit], shown: IntArray) -> npt.NDArray[np.int16]:
    """Hops from the shown nodes to each anchor (of a set: to its nearest member), ``[U, n]``; -1 = unreachable."""
    hops = np.empty((len(units), shown.size), np.int16)
    for start in range(0, len(units), LANES):
        block = units[start : start + LANES]
        nodes = np.array([v for unit in block for v in unit], np.int64)
        bounds = np.concatenate([[0], np.cumsum([len(unit) for unit in block])])
        hops[start : start + len(block)] = set_columns(adjacency, nodes, bounds)[shown].T
    return hops


def nearest_hops(adjacency: Adjacency, units: list[Unit]) -> npt.NDArray[np.int16]:
    """Hops from every node to the nearest of all anchors, ``[N]``; -1 = unreachable, or no anchors."""
    if not units:
        return np.full(adjacency.num_nodes, -1, np.int16)
    nodes = np.unique([v for unit in units for v in unit]).astype(np.int64)
    return set_columns(adjacency, nodes, np.array([0, nodes.size]))[:, 0]


def _links(
    edges: IntArray, num_nodes: int, shown: IntArray, limit: int, rng: np.random.Generator
) -> IntArray:
    """Links between shown nodes as places in `shown`, ``[2, L]``; of too many a random part."""
    place = np.full(num_nodes, -1, np.int64)
    place[shown] = np.arange(shown.size)
    ends = place[edges]
    ends = ends[:, (ends >= 0).all(axis=0)]
    if ends.shape[1] > limit:
        ends = ends[:, np.sort(rng.choice(ends.shape[1], limit, replace=False))]
    return ends


def _unit_name(unit: Unit, names: Sequence[str], place: int) -> str:
    if len(unit) == 1:
        return shown_name(names[unit[0]], 60)
    return f"set {place + 1} ({len(unit)} nodes)"


PIVOTS = 50


def pivot_layout(adjacency: Adjacency, seed: int = 0) -> npt.NDArray[np.float64]:
    """Positions ``[N, 2]`` in [-1, 1] by pivot multidimensional scaling (Brandes and Pich 2007).

    The distances to farthest-first pivots are squared, double-centred and projected on their two main
    directions. Nodes at the same distances to all pivots would coincide; they are laid on a small spiral.
    """
    rng = np.random.default_rng(seed)
    pivots = farthest_first(adjacency, min(PIVOTS, adjacency.num_nodes), rng)
    hops = hop_columns(adjacency, pivots).astype(np.float64)
    hops[hops < 0] = hops.max() + 2
    squares = hops**2
    centred = squares - squares.mean(axis=0) - squares.mean(axis=1, keepdims=True) + squares.mean()
    _, directions = np.linalg.eigh(centred.T @ centred)
    places = centred @ directions[:, ::-1][:, :2]
    if places.shape[1] < 2:
        places = np.pad(places, ((0, 0), (0, 1)))
    places /= max(float(np.abs(places).max()), 1e-12)
    return np.asarray(places + _spiral_of_equals(places))


def _spiral_of_equals(places: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Offsets ``[N, 2]`` that separate nodes at (almost) the same place, on a sunflower spiral."""
    cells = np.unique(np.round(places, 2), axis=0, return_inverse=True)[1].ravel()
    order = np.argsort(cells, kind="stable")
    first = np.searchsorted(cells[order], cells[order])
    rank = np.empty(cells.size)
    rank[order] = np.arange(cells.size) - first
    radius = 0.015 * np.sqrt(rank)
    angle = rank * np.pi * (3 - np.sqrt(5))
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)


MOST_LEVELS = 12

Floats = npt.NDArray[np.float64]


def find_communities(adjacency: Adjacency, seed: int = 0) -> IntArray:
    """The community of every node, int64 ``[N]``, the largest first; a node without links is one of its own.

    Nodes move to the neighbouring community that raises the modularity most until none moves; then communities
    become the nodes of a smaller graph, and so on.
    """
    rng = np.random.default_rng(seed)
    size = adjacency.num_nodes
    matrix = csr_array(
        (np.ones(adjacency.indices.size), adjacency.indices, adjacency.indptr), shape=(size, size)
    )
    found = np.arange(size)
    for _ in range(MOST_LEVELS):
        labels = np.arange(matrix.shape[0])
        order = rng.permutation(matrix.shape[0])
        degrees: Floats = np.asarray(matrix.sum(axis=1)).ravel()
        indptr, indices = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64)
        move_nodes(indptr, indices, np.asarray(matrix.data, np.float64), degrees, order, labels)
        _, labels = np.unique(labels, return_inverse=True)
        found = labels[found]
        count = int(labels.max(initial=-1)) + 1
        if count == matrix.shape[0]:
            break
        wide = matrix.tocoo()
        matrix = coo_array((wide.data, (labels[wide.row], labels[wide.col])), shape=(count, count)).tocsr()
    rank = np.empty(int(found.max(initial=-1)) + 1, np.int64)
    rank[np.argsort(-np.bincount(found), kind="stable")] = np.arange(rank.size)
    return rank[found]


MOST_SPRUNG_NODES = 3000  # a step compares all pairs
STEPS = 120

Places = npt.NDArray[np.float64]


def place_nodes(adjacency: Adjacency, seed: int = 0) -> Places:
    """Positions ``[N, 2]`` in [-1, 1]."""
    if adjacency.num_nodes < 2:
        return np.zeros((adjacency.num_nodes, 2))
    places = pivot_layout(adjacency, seed)
    if adjacency.num_nodes > MOST_SPRUNG_NODES:
        return _drawn_in(places)
    # Nodes at one place would push one another nowhere.
    places = places + np.random.default_rng(seed).normal(0, 1e-3, places.shape)
    spring(places, *adjacency.edges(), STEPS)
    return _scaled(places)


def _drawn_in(places: Places) -> Places:
    """The same with the few nodes that are far out closer: parts without links to the rest would shrink it to a dot."""
    places = places - np.median(places, axis=0)
    radius = np.maximum(np.linalg.norm(places, axis=1), 1e-12)
    usual = max(float(np.quantile(radius, 0.98)), 1e-12)
    wanted = np.where(radius > usual, usual * (1 + 0.15 * np.log(radius / usual)), radius)
    return _scaled(places * (wanted / radius)[:, None])


def _scaled(places: Places) -> Places:
    """The same around the middle of [-1, 1], filling it."""
    places = places - (places.max(axis=0) + places.min(axis=0)) / 2
    return np.asarray(places / max(float(np.abs(places).max()), 1e-12))
