"""Node states: a trainable vector per node, propagated over the visible graph, and what a pair of them says.

They join what the set decoder measures of a pair (`NodeStates`), or are all that a model has (`StateEncoder` with
`ProductDecoder`, for graphs that are too dense for anchors to say much).
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from psgnn.errors import InputError
from psgnn.graph._graph import Adjacency
from psgnn.models._anchor_sets import AnyAnchors
from psgnn.models._convolutions import neighbour_sums
from psgnn.models._interfaces import Decoder, Encoder
from psgnn.models._view import TensorView

PIECE = (
    2**13
)  # pairs whose products are made at once: larger arrays are returned to the system and fetched anew


class NodeStates(nn.Module):
    r"""Trainable vectors, propagated, and a network on the product of the two of a pair.

    .. math:: h^{(0)} = X, \qquad h^{(l+1)} = h^{(l)} + W_l \, D^{-1/2} A D^{-1/2} h^{(l)}, \qquad
              z(u, v) = \text{MLP}(h^{(L)}_u \odot h^{(L)}_v)

    with A the graph that the step sees, and a ReLU and dropout on the change of every layer but the last. The columns
    of X ``[N, R]`` start orthogonal. A step may propagate over a random share of the edges: the normalisation makes
    that consistent with all of them. Vectors belong to nodes, so a view says which row of X is a node's
    (``TensorView.state_rows``); a node that training has not seen starts from zero.

    Args:
        nodes: N.
        width: R.
        layers: L.
        depth: hidden layers of the MLP.
        dropout: in the layers and in the MLP.
        share: of the edges that a training step propagates over.
        start: root mean square of the entries of X before training.
    """

    def __init__(
        self,
        nodes: int,
        width: int,
        *,
        layers: int,
        depth: int,
        dropout: float,
        share: float,
        start: float = 0.5,
    ) -> None:
        super().__init__()
        self.width, self.share = width, share
        self.vectors = nn.Parameter(torch.empty(nodes, width))
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.mlp = nn.Sequential(*_hidden(width, depth, dropout))
        self.dropout = nn.Dropout(dropout)
        self._kept: tuple[Any, Any, torch.Tensor] | None = None
        if not self.vectors.is_meta:
            nn.init.orthogonal_(self.vectors)
            with torch.no_grad():
                self.vectors.mul_(start / self.vectors.square().mean().sqrt())

    def train(self, mode: bool = True) -> NodeStates:
        """Forget what was propagated."""
        self._kept = None
        super().train(mode)
        return self

    def propagated(self, view: TensorView) -> torch.Tensor:
        """The states ``[N, R]`` of the nodes of a view; kept for the next call while nothing is trained."""
        if self.training or torch.is_grad_enabled():
            return self._propagate(view)
        versions = tuple(parameter._version for parameter in self.parameters())
        if self._kept is None or self._kept[0]() is not view or self._kept[1] != versions:
            self._kept = weakref.ref(view), versions, self._propagate(view)
        return self._kept[2]

    def _propagate(self, view: TensorView) -> torch.Tensor:
        thinned = _thinned(view.union.adjacency, self.share) if self.training and self.share < 1 else None
        neighbours = _neighbours(view, thinned)
        h = self._rows(view)
        for i, layer in enumerate(self.layers):
            change = layer(neighbours(h))
            if i < len(self.layers) - 1:
                change = self.dropout(change.relu())
            h = h + change
        return h

    def _rows(self, view: TensorView) -> torch.Tensor:
        """The vectors of the nodes of the view, zero for those that training has not seen."""
        rows = view.state_rows
        if rows is None:
            if view.union.num_nodes != self.vectors.size(0):
                raise InputError(
                    f"the model has a vector for each of {self.vectors.size(0)} nodes, the graph has "
                    f"{view.union.num_nodes}; use it on later versions of its own graph, or train a model with states=0"
                )
            return self.vectors
        return self.vectors[rows.clamp(min=0)] * (rows >= 0)[:, None]

    def products(self, view: TensorView, pairs: torch.Tensor) -> torch.Tensor:
        """The products ``[P, R]`` of the states of pairs ``[2, P]``."""
        return _products(self.propagated(view), pairs)

    def forward(self, view: TensorView, pairs: torch.Tensor) -> torch.Tensor:
        """What the states of pairs ``[2, P]`` say, ``[P, R]``."""
        h = self.propagated(view)
        return torch.cat([self.mlp(_products(h, piece)) for piece in torch.split(pairs, PIECE, dim=1)])


class StateEncoder(Encoder):
    """Embeds nodes by their states alone."""

    def __init__(
        self, nodes: int, width: int, *, layers: int, dropout: float, share: float, start: float
    ) -> None:
        super().__init__()
        self.states = NodeStates(
            nodes, width, layers=layers, depth=0, dropout=dropout, share=share, start=start
        )

    def forward(self, view: TensorView, choice: AnyAnchors | None) -> torch.Tensor:
        """Embeddings ``[N, R]`` of the nodes."""
        return self.states.propagated(view)


class ProductDecoder(Decoder):
    r"""A network on the product of two embeddings: :math:`\text{MLP}(h_u \odot h_v)`.

    Args:
        width: of the embeddings and of the hidden layers.
        depth: hidden layers.
        dropout: after each of them.
    """

    similarity = "product"

    def __init__(self, width: int, *, depth: int, dropout: float) -> None:
        super().__init__()
        self.mlp = nn.Sequential(*_hidden(width, depth, dropout), nn.Linear(width, 1))

    def forward(self, h: torch.Tensor, pairs: torch.Tensor) -> torch.Tensor:
        """Scores ``[P]`` of pairs ``[2, P]`` of rows of ``h [N, R]``."""
        pieces = torch.split(pairs, PIECE, dim=1)
        return torch.cat([self.mlp(_products(h, piece))[:, 0] for piece in pieces])


def _hidden(width: int, depth: int, dropout: float) -> list[nn.Module]:
    """So many hidden layers of one width."""
    layers = [(nn.Linear(width, width), nn.ReLU(), nn.Dropout(dropout)) for _ in range(depth)]
    return [part for layer in layers for part in layer]


def _products(h: torch.Tensor, pairs: torch.Tensor) -> torch.Tensor:
    """The products ``[P, R]`` of rows of ``h``; the gradient of `index_select` is the quickest."""
    return h.index_select(0, pairs[0]) * h.index_select(0, pairs[1])


def _neighbours(view: TensorView, thinned: Adjacency | None) -> Callable[[torch.Tensor], torch.Tensor]:
    """What the neighbours of every node say, ``[N, R]`` to ``[N, R]``: on the view, or on some of its edges."""
    if thinned is None and (dense := view.dense) is not None:
        return lambda h: dense @ h
    adjacency = view.union.adjacency if thinned is None else thinned
    degrees = torch.from_numpy(adjacency.degrees).to(view.x)
    scale = degrees.clamp(min=1).rsqrt()[:, None]
    return lambda h: scale * neighbour_sums(adjacency, scale * h)


def _thinned(adjacency: Adjacency, share: float) -> Adjacency:
    """The graph with a random share of its edges, drawn from torch's stream."""
    edges = adjacency.edges()
    kept = edges[:, (torch.rand(edges.shape[1]) < share).numpy()]
    return Adjacency.from_edges(kept[0], kept[1], adjacency.num_nodes)
