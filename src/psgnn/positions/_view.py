"""What is measured at once: a batch of visible graphs, their features, and what these say of pairs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from psgnn.distances._oracle import DistanceOracle
from psgnn.distances._propagation import Floats, spread
from psgnn.errors import InputError
from psgnn.graph._graph import Adjacency, Graph, GraphBatch, IntArray, as_graph

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


SPARSE = 1 / 4  # share of features other than zero, below which they are taken for words
NOTHING = 1e-6  # the longest row that counts as zeros, which an outline has up to rounding
OUTLINE = 64  # numbers that wide features are summarised in
FEATURE_STATISTICS = (
    "cosine of features", "shared features", "cosine of outlines", "outline of one and of the other's neighbours",
    "cosine of neighbours' outlines", "cosine of outlines two steps away",
)  # fmt: skip


class Features:
    """What features ``[N, F]`` say without the graph: made once, whatever links are hidden.

    Words (features that are mostly zero) weigh the more the fewer nodes have them; other features are standardised.
    An outline is what is left of wide features in their `OUTLINE` leading singular vectors.
    """

    def __init__(self, x: npt.NDArray[Any]) -> None:
        self.words = np.count_nonzero(x) < SPARSE * x.size
        if self.words:
            from scipy.sparse import csr_array, diags_array

            present = csr_array(x != 0).astype(np.float32)
            counts = np.asarray(present.sum(axis=0)).ravel()
            weights = np.log((1 + x.shape[0]) / (1 + counts)).astype(np.float32)
            weighted = csr_array(x) @ diags_array(weights)
            norms = np.sqrt(np.asarray(weighted.multiply(weighted).sum(axis=1)).ravel())
            self.rows: Any = csr_array(diags_array(_inverse(norms)) @ weighted).astype(np.float32)
            self.present = present
        else:
            scaled = (x - x.mean(axis=0)) / (x.std(axis=0) + 1e-3)
            self.rows = _unit(scaled.astype(np.float32))

    @cached_property
    def outline(self) -> Floats:
        """``[N, R]``, of which inner products are nearly those of the rows."""
        n, width = self.rows.shape
        if min(n, width) <= OUTLINE:
            return np.ascontiguousarray(self.rows.toarray() if self.words else self.rows)
        from scipy.sparse.linalg import svds

        start = np.random.default_rng(0).standard_normal(min(n, width))
        left, values, _ = svds(self.rows, k=OUTLINE, v0=start)
        return np.ascontiguousarray(left * values, np.float32)

    def compare(self, us: IntArray, vs: IntArray) -> list[npt.NDArray[Any]]:
        """The cosine of two rows, and the logarithm of how many words they share or of how far apart they are."""
        if self.words:
            cosine = self.rows[us].multiply(self.rows[vs]).sum(axis=1)
            shared = self.present[us].multiply(self.present[vs]).sum(axis=1)
            return [np.asarray(cosine).ravel(), np.log1p(np.asarray(shared).ravel())]
        a, b = self.rows[us], self.rows[vs]
        return [(a * b).sum(axis=1), -np.log1p(np.square(a - b).sum(axis=1))]


@dataclass(frozen=True)
class FeatureMeasures:
    """The same in a graph: outlines of the nodes and of those one and two steps away, each of length one."""

    features: Features
    levels: tuple[Floats, Floats, Floats]

    @classmethod
    def of(cls, features: Features, adjacency: Adjacency) -> FeatureMeasures:
        """Measure the neighbours in a graph."""
        own = features.outline
        one = np.ones(own.shape[0], np.float32)
        share = (1 / np.maximum(adjacency.degrees, 1)).astype(np.float32)
        near = spread(adjacency, own, one, share)
        far = spread(adjacency, near, one, share)
        return cls(features, (_unit(own), _unit(near), _unit(far)))

    def statistics(self, us: IntArray, vs: IntArray, out: Floats) -> None:
        """Fill ``out [P, 6]`` for pairs of nodes, in the order of `FEATURE_STATISTICS`."""
        (a, a1, a2), (b, b1, b2) = ([level[nodes] for level in self.levels] for nodes in (us, vs))
        crossed = ((a * b1).sum(axis=1) + (a1 * b).sum(axis=1)) / 2
        around = [(p * q).sum(axis=1) for p, q in ((a, b), (a1, b1), (a2, b2))]
        out[:] = np.stack([*self.features.compare(us, vs), around[0], crossed, *around[1:]], axis=1)


def _unit(rows: Floats) -> Floats:
    """Rows of length one; zeros stay."""
    return np.asarray(rows * _inverse(np.sqrt(np.square(rows).sum(axis=1)))[:, None], np.float32)


def _inverse(norms: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.where(norms > NOTHING, 1 / np.maximum(norms, NOTHING), 0).astype(np.float32)
