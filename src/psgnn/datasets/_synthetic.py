"""Generated graphs: connected cavemen, the grid, pure chance, and bio-modules."""

from __future__ import annotations

from importlib.resources import files

import numpy as np
import numpy.typing as npt

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


GENES = 10
MODULE = 5
ACTIVITY = np.array([1, 0, 1, 0, 1, 0, 1, 0, 1, 0])  # of the genes in the pattern that evolution began with
BRIDGES = 2


def bio_modules(networks: int, join: int) -> list[Graph]:
    """Return the first ``networks`` gene networks, one graph for every ``join`` of them."""
    matrices = stored_networks()
    if networks > len(matrices):
        raise InputError(
            f"networks={networks}: psgnn holds {len(matrices)} gene networks; "
            f"simulate more from a checkout with: psgnn-lab biomodules --networks {networks}"
        )
    return network_graphs(matrices[:networks], join)


def stored_networks() -> npt.NDArray[np.int8]:
    """Read the networks that come with the package."""
    with (files("psgnn.datasets") / "bio-modules.npz").open("rb") as file, np.load(file) as stored:
        networks: npt.NDArray[np.int8] = stored["networks"]
    return networks


def network_graphs(matrices: npt.NDArray[np.int8], join: int, seed: int = 0) -> list[Graph]:
    """Return one graph for every ``join`` networks; nodes are genes, with an edge where one regulates the other.

    ``x`` is the gene's activity in the first pattern as a one-hot [active, inactive]; ``y`` the module:
    genes 0-4 of the n-th network of a graph are class 2n, genes 5-9 class 2n + 1. With ``join`` > 1, every
    network but the first of a graph is tied to an earlier one by two random edges.
    """
    networks = len(matrices)
    if networks % join:
        raise InputError(f"networks={networks} cannot be joined by {join}; make it a multiple of join")
    activity = np.tile(ACTIVITY, join)
    features = np.stack([activity, 1 - activity], axis=1).astype(np.float32)  # [N, 2]
    labels = np.arange(2 * join).repeat(MODULE)
    rng = np.random.default_rng([seed, join])
    graphs = []
    for first in range(0, networks, join):
        which, regulator, target = np.nonzero(matrices[first : first + join])
        bridges = _bridges(join, rng)
        rows = np.concatenate([which * GENES + regulator, bridges[0]])
        cols = np.concatenate([which * GENES + target, bridges[1]])
        names = [f"network{n}/gene{i}" for n in range(first, first + join) for i in range(GENES)]
        adjacency = Adjacency.from_edges(rows, cols, join * GENES)
        graphs.append(Graph(adjacency, names, features.copy(), labels.copy()))
    return graphs


def _bridges(join: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Draw the edges that tie each network but the first to an earlier one, ``[2, BRIDGES * (join - 1)]``."""
    later = np.arange(1, join).repeat(BRIDGES)
    earlier = rng.integers(0, np.arange(1, join)).repeat(BRIDGES)
    genes = rng.integers(0, GENES, size=(2, later.size))
    return np.stack([later, earlier]) * GENES + genes
