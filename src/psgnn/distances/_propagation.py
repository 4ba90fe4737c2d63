"""Personalised PageRank and diffusion from a set of anchors, all anchors at once, O(E K) a step."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy  # its parts load when they are used

from psgnn.errors import InputError
from psgnn.graph._graph import Adjacency, IntArray
from psgnn.graph._kinds import Arcs, Numbers
from psgnn.kernels._compile import parallel_rows
from psgnn.kernels._llvm import LINE
from psgnn.kernels._propagation import smooth_rows, spread_rows, walk_rows

Floats = npt.NDArray[np.float32]


def spread(adjacency: Adjacency, x: Floats, inward: Floats, outward: Floats) -> Floats:
    """``diag(outward) A diag(inward) x`` for ``x [N, K]``, on all cores; their number changes no bit."""
    y = np.empty_like(x)
    in_parts(adjacency, x.shape[1], spread_rows, x, inward, outward, y)
    return y


def smooth(
    adjacency: Adjacency,
    x: Floats,
    kept: float,
    weights: Floats,
    everywhere: Floats,
    graph_of: IntArray,
    out: Floats,
) -> None:
    """Write ``kept x + diag(weights) (A x + everywhere[graph_of])`` into `out`, in one pass and on all cores.

    x and `out` ``[N, K]`` are of `whole_lines`; `everywhere` is ``[G, K]``.
    """
    if x.shape[1] % LINE or out.shape != x.shape:  # kernels would read beside the array
        raise ValueError(
            f"x {x.shape} and out {out.shape} are not alike, or have no whole lines of {LINE} numbers"
        )
    if np.may_share_memory(x, out):
        raise ValueError("x and out share memory")
    in_parts(adjacency, x.shape[1], smooth_rows, x, np.float32(kept), weights, everywhere, graph_of, out)


def in_parts(adjacency: Adjacency, width: int, kernel: Callable[..., None], *arguments: Any) -> None:
    """Run a kernel over rows ``first:last`` of the graph on all cores; a row of a neighbour has `width` numbers."""

    def rows(first: int, last: int) -> None:
        kernel(adjacency.indptr, adjacency.indices, *arguments, first, last)

    parallel_rows(rows, adjacency.num_nodes, adjacency.indices.size * width / 4)


def indicator(num_nodes: int, nodes: IntArray, starts: IntArray) -> Floats:
    """One column a set: 1 at the members of set ``j`` = ``nodes[starts[j]:starts[j + 1]]``; ``[N, L]``."""
    x = np.zeros((num_nodes, starts.size - 1), np.float32)
    x[nodes, np.repeat(np.arange(starts.size - 1), np.diff(starts))] = 1
    return x


def whole_lines(num_nodes: int, width: int) -> Floats:
    """Zeros ``[N, W]`` with W at least `width`, each row of which is whole lines of the processor's cache."""
    columns = LINE * math.ceil(width / LINE)
    room = np.zeros(num_nodes * columns + LINE, np.float32)
    first = -room.ctypes.data // room.itemsize % LINE
    return room[first : first + num_nodes * columns].reshape(num_nodes, columns)


def pagerank_columns(
    adjacency: Adjacency,
    nodes: IntArray,
    starts: IntArray | None = None,
    *,
    restart: float = 0.15,
    steps: int = 20,
) -> Floats:
    r"""Personalised PageRank of every node for each set, ``[N, L]``, by power steps.

    .. math:: p_{t+1} = r \, e_a + (1 - r) \, A D^{-1} p_t, \qquad p_0 = e_a

    The members of a set are walked from independently: in a union of graphs, the members in different
    graphs do not share their mass. Without `starts` every node is a set of its own.
    """
    if not 0 < restart < 1 or steps < 1:
        raise InputError(f"PageRank needs 0 < restart < 1 and steps >= 1, found {restart} and {steps}")
    starts = np.arange(nodes.size + 1) if starts is None else starts
    inward = (1 / np.maximum(adjacency.degrees, 1)).astype(np.float32)
    onward = np.float32(1 - restart)
    outward = np.full_like(inward, onward)
    lonely = np.flatnonzero(adjacency.degrees == 0)
    columns = np.repeat(np.arange(starts.size - 1), np.diff(starts))
    x = indicator(adjacency.num_nodes, nodes, starts)
    for _ in range(steps):
        x = spread(adjacency, x, inward, outward)
        x[lonely] *= onward  # `spread` lets a node without links keep its row
        x[nodes, columns] += np.float32(restart)
    return x


def diffusion_columns(
    adjacency: Adjacency,
    nodes: IntArray,
    starts: IntArray | None = None,
    *,
    steps: Sequence[int] = (2, 4),
) -> list[Floats]:
    r"""Symmetrically normalised diffusion :math:`(D^{-1/2} A D^{-1/2})^t e_a` for each ``t`` in `steps`."""
    if not steps or min(steps) < 1:
        raise InputError(f"diffusion needs steps of 1 or more, found {list(steps)}")
    starts = np.arange(nodes.size + 1) if starts is None else starts
    scale = (1 / np.sqrt(np.maximum(adjacency.degrees, 1))).astype(np.float32)
    x = indicator(adjacency.num_nodes, nodes, starts)
    kept = {}
    for t in range(1, max(steps) + 1):
        x = spread(adjacency, x, scale, scale)
        if t in steps:
            kept[t] = x
    return [kept[t] for t in steps]


def walk_columns(
    adjacency: Adjacency,
    nodes: IntArray,
    graph_of: IntArray | None = None,
    *,
    restarts: Sequence[float] = (),
    diffusion: Sequence[int] = (),
    steps: int = 20,
) -> list[Floats]:
    r"""`pagerank_columns` for each of the restarts, then `diffusion_columns`, from one walk per column.

    Both are made of the same steps :math:`q_t = (A D^{-1})^t e_a`:

    .. math:: p = r \sum_{t < T} (1 - r)^t q_t + (1 - r)^T q_T, \qquad
              (D^{-1/2} A D^{-1/2})^t e_a = \sqrt{d_a / d_v} \, q_t

    One walk takes half the time of a walk for each, and the memory of all of them. In a batch of graphs
    ``nodes [G, K]`` has a row per graph, padded with -1, and ``graph_of [N]`` says where each node is.
    """
    table = np.atleast_2d(nodes)
    graphs, columns = np.nonzero(table >= 0)
    starts = table[graphs, columns]
    degrees = np.maximum(adjacency.degrees, 1).astype(np.float32)
    inward, root = (1 / degrees).astype(np.float32), np.sqrt(degrees)
    x, y = (whole_lines(adjacency.num_nodes, table.shape[1]) for _ in range(2))
    x[starts, columns] = inward[starts]  # what a node passes on to each of its neighbours
    sums = np.zeros((len(restarts), adjacency.num_nodes, table.shape[1]), np.float32)
    for restart, total in zip(restarts, sums, strict=True):
        total[starts, columns] = restart
    roots = np.zeros(table.shape, np.float32)
    roots[graphs, columns] = root[starts]
    spreads = {}
    for t in range(1, max(steps if restarts else 1, *diffusion, 1) + 1):
        in_parts(adjacency, table.shape[1], walk_rows, x, inward, step_weights(restarts, t, steps), sums, y)
        x, y = y, x
        if t in diffusion:
            spreads[t] = x[:, : table.shape[1]] * root[:, None]
            spreads[t] *= roots[0] if graph_of is None else roots[graph_of]
    return [*sums, *(spreads[t] for t in diffusion)]


def step_weights(restarts: Sequence[float], t: int, steps: int) -> Floats:
    """What step `t` of the walk counts in the PageRank of each restart; nothing after the last of `steps`."""
    weights = [(1 - r) ** t * (r if t < steps else 1) * (t <= steps) for r in restarts]
    return np.array(weights, np.float32)


def arc_pagerank(
    arcs: Arcs,
    weights: Numbers,
    sums: Numbers,
    nodes: IntArray,
    starts: IntArray,
    *,
    restart: float = 0.15,
    steps: int = 20,
) -> Floats:
    r"""Personalised PageRank along weighted arcs for each set, ``[N, L]``, by power steps.

    .. math:: p_{t+1} = r \, e_a + (1 - r) \, W^T D_W^{-1} p_t, \qquad p_0 = e_a

    ``weights`` are those of the entries of the arcs, ``sums [N]`` their sums at every node. Mass that no arc leads on
    is lost.
    """
    size = arcs.indptr.size - 1
    shares = (weights / np.repeat(np.maximum(sums, 1e-300), arcs.degrees)).astype(np.float32)
    walk = scipy.sparse.csr_array((shares, arcs.indices, arcs.indptr), shape=(size, size)).T.tocsr()
    members = np.repeat(np.arange(starts.size - 1), np.diff(starts))
    x = indicator(size, nodes, starts)
    for _ in range(steps):
        x = np.float32(1 - restart) * (walk @ x)
        x[nodes, members] += np.float32(restart)
    return x
