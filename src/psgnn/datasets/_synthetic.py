"""Graphs with a known structure: connected cavemen, the grid, and pure chance."""

from __future__ import annotations

import numpy as np

from psgnn.errors import InputError
from psgnn.graph._graph import Adjacency, Graph

MAX_EDGES = 10**8


def communities(communities: int, size: int) -> list[Graph]:
    """The connected caveman graph: cliques in a ring, one edge of each rewired to the clique before it.

    Nodes ``c * size .. (c + 1) * size - 1`` are community ``c``, which is also their label ``y``. The edges
    are those of ``networkx.connected_caveman_graph(communities, size)``.
    """
    _check_size(communities * size * (size - 1) // 2, f"communities={communities}, size={size}")
    num_nodes = communities * size
    first = np.arange(0, num_nodes, size)  # [C]
    row, col = np.triu_indices(size, 1)
    kept = slice(1, None)  # triu_indices begins with (0, 1), the edge that is rewired
    inside = first[:, None] + np.stack([row[kept], col[kept]])[:, None, :]  # [2, C, edges of a clique - 1]
    ring = np.stack([first, (first - 1) % num_nodes])  # [2, C]
    rows, cols = np.concatenate([inside.reshape(2, -1), ring], axis=1)
    adjacency = Adjacency.from_edges(rows, cols, num_nodes)
    labels = np.arange(communities).repeat(size)
    return [Graph(adjacency, y=labels, node_names=[str(v) for v in range(num_nodes)])]


def grid(rows: int, cols: int) -> list[Graph]:
    """The grid: node ``r * cols + c``, named ``"r,c"``, is linked to its left, right, upper and lower one."""
    _check_size(2 * rows * cols, f"rows={rows}, cols={cols}")
    node = np.arange(rows * cols).reshape(rows, cols)
    start = np.concatenate([node[:, :-1].ravel(), node[:-1].ravel()])
    stop = np.concatenate([node[:, 1:].ravel(), node[1:].ravel()])
    names = [f"{r},{c}" for r in range(rows) for c in range(cols)]
    return [Graph(Adjacency.from_edges(start, stop, rows * cols), node_names=names)]


def erdos_renyi(nodes: int, degree: int, seed: int) -> list[Graph]:
    """A graph drawn uniformly from those with ``nodes * degree / 2`` edges (rounded down).

    No structure foretells a held-out edge, so an AUC other than 0.5 on unlinked pairs shows a leak.
    """
    edges, pairs = nodes * degree // 2, nodes * (nodes - 1) // 2
    _check_size(edges, f"nodes={nodes}, degree={degree}")
    if edges > pairs:
        raise InputError(f"nodes={nodes} have at most {nodes - 1} neighbours each, found degree={degree}")
    ranks = np.random.default_rng(seed).choice(pairs, edges, replace=False)
    # Pairs u < v are ranked by (v, u), and v * (v - 1) / 2 of them come before those of v.
    starts = np.cumsum(np.arange(nodes))
    v = np.searchsorted(starts, ranks, side="right")
    u = ranks - starts[v - 1]
    names = [str(name) for name in range(nodes)]
    return [Graph(Adjacency.from_edges(u, v, nodes), node_names=names)]


def _check_size(num_edges: int, options: str) -> None:
    if num_edges > MAX_EDGES:
        raise InputError(f"{options} asks for about {num_edges} edges; at most {MAX_EDGES} are built")
