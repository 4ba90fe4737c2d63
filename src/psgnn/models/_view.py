"""What a model sees in one step, as tensors, and tensors as bytes (safetensors, in which nothing can be run)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from safetensors.torch import load, save

from psgnn.graph._graph import Graph, GraphBatch, IntArray
from psgnn.models._team import Team
from psgnn.positions._measure import Positions
from psgnn.positions._statistics import pair_statistics
from psgnn.positions._view import Columns, View, features_of
from psgnn.scoring._network import DAMAGE, KEY, metadata

MOST_DENSE_NODES = 2**13
DENSE_SHARE = 0.04  # of all pairs that are edges, from which on a matrix is quicker


class TensorView(View):
    """A batch of graphs as tensors.

    ``x [N, F]`` features (a constant column where there are none), ``edge_index [2, 2E]``, ``graph [N]`` the
    graph of each node, ``sizes [G]``. The processes of ``team`` look at it together.
    """

    def __init__(self, union: GraphBatch, x: torch.Tensor, team: Team | None = None) -> None:
        super().__init__(union, x.cpu().numpy())
        self.x = x
        self.team = team or Team()
        self.state_rows: torch.Tensor | None = (
            None  # of each node, see psgnn.models._states; None: its own number
        )

    def once(self, measure: Callable[[], Columns]) -> Columns:
        """Measure columns once for all processes of a machine."""
        return self.team.once(measure)

    @cached_property
    def edge_index(self) -> torch.Tensor:
        """Both directions of every edge."""
        return torch.from_numpy(self.union.adjacency.edge_index()).to(self.x.device)

    @cached_property
    def degrees(self) -> torch.Tensor:
        """Neighbours of every node, float ``[N]``."""
        return torch.from_numpy(self.union.adjacency.degrees).to(self.x.device, self.x.dtype)

    @cached_property
    def dense(self) -> torch.Tensor | None:
        r""":math:`D^{-1/2} A D^{-1/2}` as ``[N, N]``, where a product with it is quicker than sums over the edges."""
        adjacency = self.union.adjacency
        n, entries = adjacency.num_nodes, adjacency.indices.size
        if n > MOST_DENSE_NODES or entries < DENSE_SHARE * n * n:
            return None
        scale = np.maximum(adjacency.degrees, 1) ** -0.5
        rows, cols = adjacency.edge_index()
        matrix = np.zeros((n, n), np.float32)
        matrix[rows, cols] = scale[rows] * scale[cols]
        return torch.from_numpy(matrix).to(self.x)

    @cached_property
    def graph(self) -> torch.Tensor:
        """The graph of every node, int64 ``[N]``."""
        return torch.from_numpy(self.union.graph_of).to(self.x.device)

    @cached_property
    def sizes(self) -> torch.Tensor:
        """Nodes of every graph, int64 ``[G]``."""
        return torch.from_numpy(self.union.sizes).to(self.x.device)

    @cached_property
    def places(self) -> torch.Tensor:
        """The place of every node within its graph, int64 ``[N]``."""
        starts = torch.from_numpy(self.union.ptr[:-1]).to(self.x.device)
        return torch.arange(self.union.num_nodes, device=self.x.device) - starts[self.graph]

    def pad(self, values: torch.Tensor, fill: float = 0.0) -> torch.Tensor:
        """Values of nodes ``[N]`` as rows of graphs ``[G, n]``."""
        padded = values.new_full((self.union.num_graphs, int(self.union.sizes.max())), fill)
        padded[self.graph, self.places] = values
        return padded

    def without(self, union: GraphBatch) -> TensorView:
        """The same features over other edges of the same nodes: the graph of a training fold."""
        view = TensorView(union, self.x, self.team)
        view.frame = None if self.frame is None else self.frame.over(union)
        view.state_rows = self.state_rows
        view.fixed = self.fixed
        return view

    def only(self, graphs: IntArray, nodes: npt.NDArray[np.bool_]) -> TensorView:
        """Some of the graphs alone, with the features of their nodes, a mask ``[N]``."""
        union = GraphBatch.of_adjacencies([self.union.graph(g) for g in graphs])
        if self.union.kinds is not None:
            union = replace(union, kinds=self.union.kinds.only(nodes))
        inside = torch.from_numpy(nodes).to(self.x.device)
        view = TensorView(union, self.x[inside], self.team)
        view.state_rows = inside.nonzero()[:, 0] if self.state_rows is None else self.state_rows[inside]
        return view


def view_of(graphs: Sequence[Graph]) -> TensorView:
    """The view of some graphs as they are."""
    return TensorView(GraphBatch.of(graphs), torch.from_numpy(features_of(graphs)))


def pair_statistics_of(positions: Positions, pairs: torch.Tensor) -> torch.Tensor:
    """`pair_statistics` of a tensor of pairs, on its device."""
    return torch.from_numpy(pair_statistics(positions, pairs.cpu().numpy())).to(pairs.device)


__all__ = ["DAMAGE", "pack", "unpack"]


def pack(tensors: Mapping[str, torch.Tensor], document: Mapping[str, Any]) -> bytes:
    """The bytes of a file."""
    near = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    return save(near, {KEY: json.dumps(document)})


def unpack(content: bytes) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """The tensors and the document; raises one of `DAMAGE` where there are none."""
    return load(content), metadata(content)
