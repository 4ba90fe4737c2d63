"""Positional encodings for any PyG pipeline: where a node is, as features.

>>> import torch_geometric.transforms as T
>>> from psgnn.models.transforms import AddAnchorDistances
>>> transform = T.Compose([T.ToUndirected(), AddAnchorDistances("log", method="farthest-first")])

In link prediction, split first: an encoding of the whole graph has seen the edges that are to be predicted.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
import numpy.typing as npt
import torch
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform

from psgnn.anchors import RULES, select_anchors
from psgnn.distances import hop_columns, pagerank_columns
from psgnn.errors import unknown_name
from psgnn.graph._graph import Adjacency, Graph, IntArray, as_graph

ENCODINGS = ("proximity", "hops", "scaled")


class _AnchorEncoding(BaseTransform):  # type: ignore[misc]
    def __init__(self, k: int | str, method: str, attr_name: str | None, seed: int) -> None:
        if method not in RULES:
            raise unknown_name("anchor rule", method, RULES)
        self.k, self.method, self.attr_name, self.seed = k, method, attr_name, seed

    def forward(self, data: Data | Graph) -> Data:
        """The data with the encoding added; its anchors are in ``data.anchors``."""
        graph = as_graph(data)
        if isinstance(data, Graph):
            data = data.to_pyg()
        anchors = select_anchors(graph, self.method, self.k, self.seed)
        encoding = torch.from_numpy(self._encode(graph.adjacency, anchors))
        data.anchors = torch.from_numpy(anchors)
        if self.attr_name is not None:
            data[self.attr_name] = encoding
        elif data.x is None:
            data.x = encoding
        else:
            x = data.x.view(-1, 1) if data.x.dim() == 1 else data.x
            data.x = torch.cat([x, encoding.to(x)], dim=-1)
        return data

    @abstractmethod
    def _encode(self, adjacency: Adjacency, anchors: IntArray) -> npt.NDArray[np.float32]: ...


class AddAnchorDistances(_AnchorEncoding):
    """Adds every node's distances to K anchors, ``[N, K]``.

    Args:
        k: number of anchors: an integer, ``"log"`` (log2 N) or ``"log^2"`` (its square).
        method: anchor rule, one of `psgnn.anchors.RULES`.
        encoding: ``"proximity"``, 1 / (1 + d) and 0 for unreachable; ``"hops"``, d and -1 for unreachable; or
            ``"scaled"``, d over the largest d, and 1 for unreachable.
        attr_name: where to put it; appended to ``data.x`` if None.
        seed: decides between equal nodes.
    """

    def __init__(
        self,
        k: int | str = "log",
        method: str = "farthest-first",
        encoding: str = "proximity",
        attr_name: str | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(k, method, attr_name, seed)
        if encoding not in ENCODINGS:
            raise unknown_name("encoding", encoding, ENCODINGS)
        self.encoding = encoding

    def _encode(self, adjacency: Adjacency, anchors: IntArray) -> npt.NDArray[np.float32]:
        hops = hop_columns(adjacency, anchors).astype(np.float32)
        unreachable = hops < 0
        if self.encoding == "proximity":
            return np.where(unreachable, 0, 1 / (1 + np.abs(hops))).astype(np.float32)
        if self.encoding == "scaled":
            return np.where(unreachable, 1, hops / max(float(hops.max()), 1)).astype(np.float32)
        return hops


class AddAnchorPageRank(_AnchorEncoding):
    """Adds every node's personalised PageRank from K anchors, ``[N, K]``, as its logarithm (floor -18).

    Args:
        k: number of anchors: an integer, ``"log"`` (log2 N) or ``"log^2"`` (its square).
        method: anchor rule, one of `psgnn.anchors.RULES`.
        restart: probability of going back to the anchor.
        steps: power steps.
        attr_name: where to put it; appended to ``data.x`` if None.
        seed: decides between equal nodes.
    """

    def __init__(
        self,
        k: int | str = "log",
        method: str = "farthest-first",
        restart: float = 0.15,
        steps: int = 20,
        attr_name: str | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(k, method, attr_name, seed)
        self.restart, self.steps = restart, steps

    def _encode(self, adjacency: Adjacency, anchors: IntArray) -> npt.NDArray[np.float32]:
        columns = pagerank_columns(adjacency, anchors, restart=self.restart, steps=self.steps)
        return np.log(np.maximum(columns, np.float32(np.exp(-18))))
