"""The graph as the kernels see it: a symmetric CSR adjacency, and the disjoint union of many graphs.

Letters used all over the package: ``N`` nodes, ``E`` undirected edges, ``K`` anchors, ``G`` graphs,
``P`` pairs, ``R`` hidden width.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from psgnn.errors import InputError
from psgnn.kernels._csr import (
    bucket_edges,
    connected_components,
    drop_repeats,
    in_order,
    is_symmetric,
    merge_rows,
    transpose,
)

if TYPE_CHECKING:
    import torch
    from torch_geometric.data import Data

IntArray = npt.NDArray[np.int64]
MAX_NODES = 2**31 - 1
LARGE_NODES = 30_000


@dataclass(frozen=True, eq=False)
class Adjacency:
    """An undirected graph without self-loops or parallel edges, as CSR with sorted rows.

    ``indptr`` is int64 ``[N + 1]``, ``indices`` int32 ``[2E]``: every edge stands in both rows.
    """

    indptr: npt.NDArray[np.int64]
    indices: npt.NDArray[np.int32]

    @classmethod
    def from_edges(cls, rows: npt.ArrayLike, cols: npt.ArrayLike, num_nodes: int) -> Adjacency:
        """Build from edges in any direction; self-loops are dropped and repeats merged, in O(N + E)."""
        rows = np.ascontiguousarray(rows, dtype=np.int64)
        cols = np.ascontiguousarray(cols, dtype=np.int64)
        if not 0 <= num_nodes <= MAX_NODES:
            raise InputError(f"a graph of {num_nodes} nodes is outside 0..{MAX_NODES}")
        if rows.size and (min(rows.min(), cols.min()) < 0 or max(rows.max(), cols.max()) >= num_nodes):
            raise InputError(
                f"edges name nodes {min(rows.min(), cols.min())}..{max(rows.max(), cols.max())}, "
                f"but the graph has {num_nodes} nodes (0..{num_nodes - 1}); pass the right num_nodes"
            )
        if in_order(rows, cols):  # as `edge_index` gives them
            starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=num_nodes))])
            found = cls(starts, cols.astype(np.int32))
            if is_symmetric(found.indptr, found.indices):
                return found
            del found
        # A transpose leaves every row sorted, so bucketing once and transposing twice sorts both directions.
        backward = drop_repeats(*transpose(*bucket_edges(rows, cols, num_nodes)))
        forward = transpose(*backward)
        if np.array_equal(forward[0], backward[0]) and np.array_equal(forward[1], backward[1]):
            return cls(*forward)
        return cls(*merge_rows(*forward, *backward))

    @classmethod
    def from_edge_index(cls, edge_index: torch.Tensor, num_nodes: int | None = None) -> Adjacency:
        """Build from a PyG ``edge_index [2, *]``; direction is ignored."""
        if edge_index.dim() != 2 or edge_index.size(0) != 2 or edge_index.is_floating_point():
            raise InputError(
                f"edge_index must be an integer tensor of shape [2, E], "
                f"found {edge_index.dtype} of shape {list(edge_index.shape)}"
            )
        rows, cols = edge_index.detach().cpu().numpy()
        if num_nodes is None:
            num_nodes = int(edge_index.max()) + 1 if edge_index.numel() else 0
        return cls.from_edges(rows, cols, num_nodes)

    @classmethod
    def from_data(cls, data: Data) -> Adjacency:
        """Build from a PyG ``Data``; direction is ignored."""
        return cls.from_edge_index(data.edge_index, data.num_nodes)

    @property
    def num_nodes(self) -> int:
        """N."""
        return self.indptr.size - 1

    @property
    def num_edges(self) -> int:
        """E: undirected edges."""
        return self.indices.size // 2

    @cached_property
    def degrees(self) -> IntArray:
        """Number of neighbours of every node, ``[N]``."""
        return np.diff(self.indptr)

    @cached_property
    def components(self) -> npt.NDArray[np.int32]:
        """The component of every node, ``[N]``, numbered by their first nodes."""
        labels: npt.NDArray[np.int32] = connected_components(self.indptr, self.indices)
        return labels

    @cached_property
    def rows(self) -> npt.NDArray[np.int32]:
        """The row of every entry of ``indices``, ``[2E]``."""
        return np.repeat(np.arange(self.num_nodes, dtype=np.int32), self.degrees)

    def edges(self) -> IntArray:
        """Every edge once as ``[2, E]`` with ``u < v``, sorted by ``(u, v)``."""
        upper = self.rows < self.indices
        return np.stack([self.rows[upper], self.indices[upper]]).astype(np.int64)

    def edge_index(self) -> torch.Tensor:
        """Every edge in both directions, as PyG's ``edge_index [2, 2E]``."""
        import torch

        edge_index = np.empty((2, self.indices.size), np.int64)
        edge_index[0], edge_index[1] = self.rows, self.indices
        return torch.from_numpy(edge_index)


@dataclass(frozen=True, eq=False)
class GraphBatch:
    """The disjoint union of ``G`` graphs: graph ``g`` owns the nodes ``ptr[g]:ptr[g + 1]``."""

    adjacency: Adjacency
    ptr: IntArray

    @classmethod
    def of(cls, graphs: Sequence[Data]) -> GraphBatch:
        """Lay the graphs side by side, in order."""
        if not graphs:
            raise InputError("no graph was given; pass at least one torch_geometric Data")
        return cls.of_adjacencies([Adjacency.from_data(graph) for graph in graphs])

    @classmethod
    def of_adjacencies(cls, adjacencies: Sequence[Adjacency]) -> GraphBatch:
        """The same from graphs that are adjacencies already, without another look at their edges."""
        ptr = np.concatenate([[0], np.cumsum([adjacency.num_nodes for adjacency in adjacencies])])
        if len(adjacencies) == 1:
            return cls(adjacencies[0], ptr)
        if ptr[-1] > MAX_NODES:
            raise InputError(f"the graphs have {ptr[-1]} nodes together, above {MAX_NODES}; use fewer graphs")
        degrees = np.concatenate([adjacency.degrees for adjacency in adjacencies])
        indptr = np.concatenate([[0], np.cumsum(degrees)])
        indices = [adj.indices + np.int32(start) for adj, start in zip(adjacencies, ptr[:-1], strict=True)]
        return cls(Adjacency(indptr, np.concatenate(indices)), ptr)

    @property
    def num_nodes(self) -> int:
        """Nodes of all graphs together."""
        return int(self.ptr[-1])

    @property
    def num_graphs(self) -> int:
        """G."""
        return self.ptr.size - 1

    @cached_property
    def sizes(self) -> IntArray:
        """Nodes of every graph, ``[G]``."""
        return np.diff(self.ptr)

    @property
    def large(self) -> bool:
        """Whether there is a graph so large that memory and time are saved; many small ones are not."""
        return int(self.sizes.max(initial=0)) >= LARGE_NODES

    def graph(self, g: int) -> Adjacency:
        """Graph ``g`` by itself, its nodes numbered from 0."""
        if self.num_graphs == 1:
            return self.adjacency
        first, last = int(self.ptr[g]), int(self.ptr[g + 1])
        indptr = self.adjacency.indptr[first : last + 1]
        indices = self.adjacency.indices[indptr[0] : indptr[-1]] - np.int32(first)
        return Adjacency(indptr - indptr[0], indices)

    @cached_property
    def graph_of(self) -> IntArray:
        """The graph of every node, ``[N]``."""
        return np.repeat(np.arange(self.num_graphs), self.sizes)


def make_data(adjacency: Adjacency, **attributes: Any) -> Data:
    """A PyG ``Data`` over the adjacency, with both directions of every edge in ``edge_index``."""
    from torch_geometric.data import Data

    return Data(edge_index=adjacency.edge_index(), num_nodes=adjacency.num_nodes, **attributes)


def check_names(names: Sequence[str], num_nodes: int) -> None:
    """Complain about names that are too few, too many or not unique."""
    if len(names) != num_nodes:
        raise InputError(f"there are {len(names)} node_names for {num_nodes} nodes; give each node one")
    if len(set(names)) < len(names):
        name, times = Counter(names).most_common(1)[0]
        raise InputError(f"{times} nodes are called '{name}'; give each node a name of its own")
