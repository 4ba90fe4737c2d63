"""What a model sees in one step: the union of the visible graphs, their features and distances in them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch

from psgnn.distances._oracle import DistanceOracle
from psgnn.errors import InputError
from psgnn.graph._graph import GraphBatch, IntArray
from psgnn.positions._team import Team

if TYPE_CHECKING:
    from torch_geometric.data import Data


class View:
    """A union of graphs as tensors.

    ``x [N, F]`` features (a constant column where there are none), ``edge_index [2, 2E]``, ``graph [N]`` the
    graph of each node, ``sizes [G]``, and ``oracle`` for distances in exactly this graph. The processes of ``team``
    look at it together.
    """

    def __init__(self, union: GraphBatch, x: torch.Tensor, team: Team | None = None) -> None:
        self.union = union
        self.x = x
        self.team = team or Team()
        self.oracle = DistanceOracle(union)
        self.structure: torch.Tensor | None = None  # kept by psgnn.positions._structure
        self.positions: tuple[Any, Any] | None = None  # kept by psgnn.positions._measure
        self.context: tuple[Any, Any] | None = None  # kept by psgnn.positions._context
        self.picked: dict[Any, Any] = {}  # kept by psgnn.models._pickers

    def forget(self) -> None:
        """Drop what was measured. It refers to the view, so without this memory is freed when Python comes to it."""
        self.structure = self.positions = self.context = None
        self.picked = {}

    @property
    def has_features(self) -> bool:
        """Whether the nodes carry features; a single column is the constant that stands for none."""
        return self.x.size(1) > 1

    @cached_property
    def edge_index(self) -> torch.Tensor:
        """Both directions of every edge."""
        return self.union.adjacency.edge_index().to(self.x.device)

    @cached_property
    def degrees(self) -> torch.Tensor:
        """Neighbours of every node, float ``[N]``."""
        return torch.from_numpy(self.union.adjacency.degrees).to(self.x.device, self.x.dtype)

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

    def without(self, union: GraphBatch) -> View:
        """The same features over other edges of the same nodes: the graph of a training fold."""
        return View(union, self.x, self.team)

    def only(self, graphs: IntArray, nodes: torch.Tensor) -> View:
        """Some of the graphs alone, with the features of their nodes, a mask ``[N]``."""
        union = GraphBatch.of_adjacencies([self.union.graph(g) for g in graphs])
        return View(union, self.x[nodes.to(self.x.device)], self.team)


def features(graphs: Sequence[Data]) -> torch.Tensor:
    """Node features of the union ``[N, F]``: those of the graphs, or ones where there are none.

    A single column gets ones beside it, because a single column in a view stands for no features. The width depends on
    the number of columns alone, so that a model can be used on a graph where a column happens to be constant.
    """
    columns = {None if graph.x is None else graph.x.size(-1) for graph in graphs}
    if len(columns) > 1:
        raise InputError(f"the graphs have different numbers of features: {sorted(map(str, columns))}")
    if columns == {None}:
        return torch.ones(sum(int(graph.num_nodes) for graph in graphs), 1)
    x = torch.cat([graph.x.float().reshape(int(graph.num_nodes), -1) for graph in graphs])
    if x.size(1) == 1:
        x = torch.cat([x, torch.ones_like(x)], dim=1)
    return x


def view_of(graphs: Sequence[Data]) -> View:
    """The view of some graphs as they are."""
    return View(GraphBatch.of(graphs), features(graphs))
