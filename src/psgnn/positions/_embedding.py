"""Positions of nodes without training, in the manner of scikit-learn.

>>> import networkx as nx
>>> from sklearn.cluster import KMeans
>>> from sklearn.pipeline import make_pipeline
>>> graph = nx.connected_caveman_graph(5, 8)
>>> groups = make_pipeline(PositionEmbedding(), KMeans(5, random_state=0)).fit_predict(graph)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from psgnn.anchors import select_anchors
from psgnn.errors import InputError, unknown_name
from psgnn.graph._graph import Graph, GraphBatch, IntArray, to_numpy
from psgnn.graph._in_memory import PygData
from psgnn.graph._read import read_graph
from psgnn.positions._measure import DIFFUSION_STEPS, RESTARTS, Parts, measure_channels
from psgnn.positions._spectral import anchor_basis
from psgnn.positions._view import View

if TYPE_CHECKING:
    import os

    import networkx
    import scipy.sparse

GraphLike: TypeAlias = (
    "Graph | networkx.Graph | scipy.sparse.sparray | scipy.sparse.spmatrix | PygData | npt.NDArray[Any] | str "
    "| os.PathLike[str]"
)
Floats = npt.NDArray[np.float32]

# What a node has for each anchor, by part, as the names of columns begin.
CHANNELS = {
    "hops": ("proximity", "hops"),
    "pagerank": tuple(f"pagerank{restart}" for restart in RESTARTS),
    "diffusion": tuple(f"diffusion{steps}" for steps in DIFFUSION_STEPS),
}
PARTS = (*CHANNELS, "spectral")
HEAT = 4.0  # how much the leading eigenvectors count more than the others


class PositionEmbedding(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Vectors ``[N, d]`` that say where the nodes of a graph are, seen from its anchors. Nothing is trained.

    A graph is a `Graph`, a networkx graph, a SciPy sparse matrix, a PyG ``Data``, edges ``[2, E]`` (any array), or
    the path of a file that `psgnn.read_graph` reads. Rows are in the order of its nodes.

    Every part of a position weighs the same: a column of the channels of a part (standardised over nodes and anchors)
    is divided by the root of their number, and the row of the spectral basis has length 1.

    In link prediction, embed the graph without the links that are to be predicted (``task.graphs``).

    Args:
        n_anchors: ``"log^2"`` (the square of log2 N), ``"log"`` (log2 N) or a number. A position has two columns per
            anchor for each of hops, PageRank and diffusion, and at most 64 for the spectral basis, 4 bytes each: on
            graphs of millions of nodes take ``"log"``.
        method: Anchor rule, one of `psgnn.anchors.RULES`.
        parts: Which of ``"hops"``, ``"pagerank"``, ``"diffusion"`` and ``"spectral"`` (leading eigenvectors, grown
            from the anchors) are measured.
        random_state: Decides between equal nodes, and draws where the rule draws.

    Attributes:
        anchors_: The anchors, int64 ``[K]``, numbers of nodes of the graph that was fitted.
        anchor_names_: Their names, by which `transform` finds them in another graph.
        means_, scales_: Mean and standard deviation of every channel in the graph that was fitted.

    >>> import networkx as nx
    >>> PositionEmbedding(n_anchors=2, parts=("hops",)).fit_transform(nx.path_graph(5)).shape
    (5, 4)
    """

    def __init__(
        self,
        n_anchors: int | str = "log^2",
        method: str = "mixed",
        *,
        parts: Sequence[str] = ("hops", "pagerank", "spectral"),
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.n_anchors = n_anchors
        self.method = method
        self.parts = parts
        self.random_state = random_state

    def fit(self, X: GraphLike, y: Any = None) -> PositionEmbedding:
        """Choose the anchors of a graph and measure from them what is needed to place nodes alike in `transform`."""
        self._fit(X)
        return self

    def fit_transform(self, X: GraphLike, y: Any = None) -> Floats:
        """Positions ``[N, d]`` of the nodes of a graph; as `fit` and `transform` give, in half the time."""
        return self._place(*self._fit(X), self.anchors_)

    def transform(self, X: GraphLike) -> Floats:
        """Positions ``[N, d]`` of the nodes of a graph, seen from the same anchors.

        Another graph than the fitted one must have the anchors, by name: the same network later, or with other links.
        """
        check_is_fitted(self)
        data = _read(X)
        number = {name: v for v, name in enumerate(data.names)}
        missing = [name for name in self.anchor_names_ if name not in number]
        if missing:
            raise InputError(
                f"the graph has no node '{missing[0]}', which is an anchor of the fitted one "
                f"({len(missing)} of {len(self.anchor_names_)} anchors are missing); fit on this graph"
            )
        anchors = np.array([number[name] for name in self.anchor_names_], np.int64)
        return self._place(*self._measure(data, anchors), anchors)

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """Names of the columns, such as ``hops_ada`` for the hops to the anchor ada."""
        check_is_fitted(self)
        names = [f"{channel}_{anchor}" for channel in self._channels for anchor in self.anchor_names_]
        if "spectral" in self.parts:
            names += [f"spectral_{i}" for i in range(self.compass_.shape[1])]
        return np.array(names, object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.no_validation = True  # a graph is not a table of features
        tags.input_tags.two_d_array = False
        return tags

    @property
    def _channels(self) -> list[str]:
        return [channel for part in CHANNELS if part in self.parts for channel in CHANNELS[part]]

    def _fit(self, graph: GraphLike) -> tuple[Floats, Floats]:
        """Choose anchors and keep what is needed to place nodes; what was measured of all nodes."""
        if isinstance(self.parts, str) or not self.parts:
            raise InputError(f"parts must name one or more of {', '.join(PARTS)}, found {self.parts!r}")
        for part in self.parts:
            if part not in PARTS:
                raise unknown_name("part of a position", part, PARTS)
        data = _read(graph)
        anchors = select_anchors(data, self.method, self.n_anchors, self._seed())
        channels, basis = self._measure(data, anchors)
        self.anchors_ = anchors
        self.anchor_names_ = [data.names[v] for v in anchors]
        self.means_ = channels.mean(axis=(0, 1), dtype=np.float64).astype(np.float32)
        scales = channels.std(axis=(0, 1), dtype=np.float64).astype(np.float32)
        self.scales_ = np.where(scales > 0, scales, np.float32(1))
        # Where the anchors are in the spectral basis, by which another graph's is turned.
        self.compass_ = basis[anchors]
        return channels, basis

    def _seed(self) -> int:
        if isinstance(self.random_state, (int, np.integer)):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _measure(self, data: Graph, anchors: IntArray) -> tuple[Floats, Floats]:
        """Channels ``[N, K, C]`` in their own units, and the heated, normalised rows ``[N, r]`` of the basis."""
        union = GraphBatch.of_adjacencies([data.adjacency])
        wanted: dict[str, Any] = {part: part in self.parts for part in CHANNELS}
        _, channels = measure_channels(View(union), anchors[None], Parts(**wanted))
        if "spectral" not in self.parts:
            return channels, np.zeros((union.num_nodes, 0), np.float32)
        basis, values = anchor_basis(union, anchors[None])
        rows = basis * (np.exp(HEAT / 2 * (values - 1)) * (values != 0))
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return channels, (rows / np.maximum(lengths, 1e-12)).astype(np.float32)

    def _place(self, channels: Floats, basis: Floats, anchors: IntArray) -> Floats:
        """The vectors ``[N, d]``: standardised channels, and the basis turned to that of the fitted graph."""
        nodes, count, _ = channels.shape
        channels -= self.means_
        channels /= self.scales_ * np.float32((2 * count) ** 0.5)  # a part has two channels
        # Eigenvectors of another graph, or of another order of the nodes, have signs and rotations of their own.
        left, _, right = np.linalg.svd(basis[anchors].T.astype(np.float64) @ self.compass_)
        turned = basis @ (left @ right).astype(np.float32)
        return np.concatenate([channels.transpose(0, 2, 1).reshape(nodes, -1), turned], axis=1)


def _read(graph: GraphLike) -> Graph:
    """Any kind of graph."""
    tensor = hasattr(graph, "detach") and not hasattr(graph, "edge_index")  # a PyG Data has both
    if isinstance(graph, np.ndarray) or tensor:
        edges = to_numpy(graph)
        if edges.ndim != 2 or edges.shape[0] != 2 or edges.dtype.kind not in "iu":
            raise InputError(
                f"an array is taken for edges, integers [2, E], found {edges.dtype} of shape "
                f"{list(edges.shape)}; pass a matrix as scipy.sparse.csr_array(matrix)"
            )
        found = Graph.from_edges(edges)
        if found.num_edges == 0:
            raise InputError("the array has no edges between different nodes; at least one is needed")
        return found
    if isinstance(graph, list | tuple):
        raise InputError(f"cannot read a graph from {type(graph).__name__}; positions are those of one graph")
    return read_graph(graph)
