"""What is measured at once: a batch of visible graphs, their features, and distances in exactly these graphs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from psgnn.distances._oracle import DistanceOracle
from psgnn.errors import InputError
from psgnn.graph._graph import Graph, GraphBatch, as_graph

Columns = Mapping[str, npt.NDArray[Any]]
Found = TypeVar("Found")


class View:
    """A batch of graphs, and what was measured in it so far.

    ``features [N, F]`` are those of the nodes, a constant column where there are none; ``oracle`` knows distances.
    Views of the same graphs from other anchors may share a dict, ``shared``, of what does not depend on anchors.
    """

    def __init__(
        self,
        union: GraphBatch,
        features: npt.NDArray[Any] | None = None,
        shared: dict[Any, Any] | None = None,
    ) -> None:
        self.union, self.shared = union, shared
        self.features = np.ones((union.num_nodes, 1), np.float32) if features is None else features
        self.oracle = DistanceOracle(union)
        self.fixed: dict[Any, Any] = {}  # what does not depend on the links
        self.structure: npt.NDArray[np.float64] | None = None  # kept by psgnn.positions._roles
        self.positions: tuple[Any, Any] | None = None  # kept by psgnn.positions._measure
        self.context: tuple[Any, Any] | None = None  # kept by psgnn.positions._context
        self.picked: dict[Any, Any] = {}  # kept by psgnn.models._pickers
        self.frame: Any = None  # psgnn.positions._frame.Frame: whose coordinates are kept
        self.turns: tuple[Any, Any] | None = None  # kept by psgnn.positions._frame

    def forget(self) -> None:
        """Drop what was measured. It refers to the view, so without this memory is freed when Python comes to it."""
        self.structure = self.positions = self.context = self.turns = None
        self.picked = {}

    def alike(self, key: Any, make: Callable[[], Found]) -> Found:
        """What does not depend on the anchors: made once for all views that share it."""
        if self.shared is None:
            return make()
        if key not in self.shared:
            self.shared[key] = make()
        found: Found = self.shared[key]
        return found

    @property
    def has_features(self) -> bool:
        """Whether the nodes carry features; a single column is the constant that stands for none."""
        return bool(self.features.shape[1] > 1)

    def once(self, measure: Callable[[], Columns]) -> Columns:
        """Measure columns. Views that several processes share do that once for all of them."""
        return measure()


def features_of(graphs: Sequence[Graph]) -> npt.NDArray[np.float32]:
    """Node features of the batch ``[N, F]``: those of the graphs, or ones where there are none.

    A single column gets ones beside it, because a single column in a view stands for no features. The width depends on
    the number of columns alone, so that a model can be used on a graph where a column happens to be constant.
    """
    known = [as_graph(graph) for graph in graphs]
    columns = {None if graph.x is None else graph.x.shape[-1] for graph in known}
    if len(columns) > 1:
        raise InputError(f"the graphs have different numbers of features: {sorted(map(str, columns))}")
    if columns == {None}:
        return np.ones((sum(graph.num_nodes for graph in known), 1), np.float32)
    x = np.concatenate([np.asarray(graph.x, np.float32).reshape(graph.num_nodes, -1) for graph in known])
    if x.shape[1] == 1:
        x = np.concatenate([x, np.ones_like(x)], axis=1)
    return x
