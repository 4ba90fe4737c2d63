"""Families of random graphs that ready-made weights learn from, and the dataset ``family`` of one graph of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from psgnn.graph._graph import Adjacency, Graph, IntArray
from psgnn_lab.pretraining import generators
from psgnn_lab.pretraining.generators import DENSE, LARGEST, most_edges

Family = Callable[[np.random.Generator, int], IntArray]
GroupedFamily = Callable[[np.random.Generator, int], tuple[IntArray, IntArray]]

SMALLEST, HUGEST = 30, 60_000  # nodes of the smallest graphs, and of the largest large ones
LEAST_EDGES = 40

STREAM = 1 << 32  # of the seeds of datasets: none of them is a graph that weights were trained on


def family_graph(family: str, seed: int) -> list[Graph]:
    """One graph of the family."""
    graph = draw(family, np.random.default_rng([STREAM, list(FAMILIES).index(family), seed]))
    return [Graph(graph, node_names=[str(v) for v in range(graph.num_nodes)])]


def draw(family: str, rng: np.random.Generator, *, large: bool = False) -> Adjacency:
    """A graph of the family; nodes without links are left out, and the others are shuffled."""
    low, high = (LARGEST, HUGEST) if large else (SMALLEST, LARGEST)
    while True:
        n = _number(rng, low, high)
        adjacency, _ = _settle(rng, FAMILIES[family](rng, n))
        if LEAST_EDGES <= adjacency.num_edges <= DENSE * most_edges(n):
            return adjacency


def draw_grouped(family: str, rng: np.random.Generator) -> tuple[Adjacency, IntArray]:
    """The same with the group of every node ``[N]``; there are two groups at least."""
    while True:
        n = _number(rng, SMALLEST, LARGEST)
        edges, groups = GROUPED[family](rng, n)
        adjacency, nodes = _settle(rng, edges)
        if LEAST_EDGES <= adjacency.num_edges <= DENSE * most_edges(n) and np.unique(groups[nodes]).size > 1:
            return adjacency, groups[nodes]


def _number(rng: np.random.Generator, low: int, high: int) -> int:
    return int(np.exp(rng.uniform(np.log(low), np.log(high))))


def _settle(rng: np.random.Generator, edges: IntArray) -> tuple[Adjacency, IntArray]:
    """The graph of some edges, with its linked nodes in random order, and which node each of them was."""
    nodes, codes = np.unique(edges[:, edges[0] != edges[1]], return_inverse=True)
    order = rng.permutation(nodes.size)
    rows, cols = order[codes.reshape(2, -1)]
    was = np.empty_like(nodes)
    was[order] = nodes
    return Adjacency.from_edges(rows, cols, nodes.size), was


def _edges_of(grouped: GroupedFamily) -> Family:
    return lambda rng, n: grouped(rng, n)[0]


# What nodes that belong together are learned from, and what links are.
GROUPED: dict[str, GroupedFamily] = {
    "caveman": generators.caves,
    "blocks": generators.blocks,
    "meetings": generators.meetings,
    "towns": generators.towns,
}
FAMILIES: dict[str, Family] = {
    "grid": generators.grid,
    "caveman": _edges_of(generators.caves),
    "small-world": generators.small_world,
    "preferential": generators.preferential,
    "blocks": _edges_of(generators.blocks),
    "geometric": generators.geometric,
    "tree": generators.tree,
    "road": generators.road,
    "bipartite": generators.bipartite,
    "copying": generators.copying,
    "similarity": generators.similarity,
    "core": generators.core,
    "random": generators.random,
    "meetings": _edges_of(generators.meetings),
    "overlay": generators.overlay,
}
