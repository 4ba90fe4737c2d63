"""What a node's position is: layers that turn distances to anchors into embeddings, and plain PyG stacks."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from torch import nn

from psgnn.models._anchor_sets import AnyAnchors, Measured
from psgnn.models._convolutions import make_conv
from psgnn.models._interfaces import Encoder
from psgnn.models._messages import anchor_messages
from psgnn.models._view import TensorView


class AnchorLayer(nn.Module):
    r"""One layer of messages from anchors to nodes, O(N K R). The position-aware models are settings of it.

    .. math:: m_{v,i} = f_3(\text{CAT}(f_2(d(v, a_i)), h_v)), \qquad
              h'_v = \text{mean}_i \, m_{v,i} \ \text{ or, in the last layer, } \ (w \cdot m_{v,i})_{i=1..K}

    f_2 and f_3 are MLPs of two linear maps. f_2 sees one integer, so it is computed once for each distinct
    distance; the first map of f_3 over a concatenation is a sum of two maps; its second map commutes with the
    mean and merges with w. Nothing of size ``[N, K, R]`` is stored.

    Args:
        in_channels: F.
        hidden: R.
        last: give one number an anchor, ``[N, K]``, in place of their mean, ``[N, R]``.
        anchor: how the message sees the anchor's own embedding h_a: not at all (None, the paper); ``"add"``, as
            a further part of the concatenation; ``"multiply"``, weighted by the distance,
            :math:`\text{CAT}(f_2(d) \odot W h_a, h_v)`.
        scalar_distance: f_2 gives one number in place of R (P-GNN).
        second_map: whether f_3 has its second linear map.
    """

    def __init__(
        self,
        in_channels: int,
        hidden: int,
        *,
        last: bool,
        anchor: str | None = None,
        scalar_distance: bool = False,
        second_map: bool = True,
    ) -> None:
        super().__init__()
        width = 1 if scalar_distance else hidden
        self.hidden, self.multiply = hidden, anchor == "multiply"
        self.f2 = nn.Sequential(nn.Linear(1, hidden), nn.ReLU(), nn.Linear(hidden, width))
        self.distance_part = nn.Identity() if self.multiply else nn.Linear(width, hidden, bias=False)
        self.node_part = nn.Linear(in_channels, hidden)
        self.anchor_part = None if anchor is None else nn.Linear(in_channels, hidden, bias=False)
        self.out = nn.Linear(hidden, hidden) if second_map else None
        self.scalar = nn.Linear(hidden, 1) if last else None

    def forward(self, h: torch.Tensor, seen: Measured) -> torch.Tensor:
        """Map ``h [N, F]`` to ``[N, R]``, or to ``[N, K]`` in the last layer."""
        table = self.distance_part(self.f2(seen.proximity)).expand(-1, self.hidden)  # [D, R]
        base = self.node_part(h)
        options: dict[str, Any] = {"multiply": self.multiply}
        if self.anchor_part is not None:
            options |= {"far": self.anchor_part(h), "who": seen.who}
        if self.scalar is None:
            # Deviates: AGG to R^K would not fit the next layer's width, so hidden layers take the mean.
            share = seen.weight / (seen.weight != 0).sum(dim=1, keepdim=True)
            pooled = anchor_messages(table, seen.near, base, share, seen.graph, **options)
            if self.out is None:
                return pooled
            # The mean over the anchors of `out`; its bias is weighted as their messages are.
            return pooled @ self.out.weight.T + share.sum(dim=1)[seen.graph, None] * self.out.bias
        row: torch.Tensor = self.scalar.weight[0]
        readout, constant = row, torch.as_tensor(self.scalar.bias)
        if self.out is not None:
            readout, constant = row @ self.out.weight, row @ self.out.bias + self.scalar.bias
        read = anchor_messages(table, seen.near, base, seen.weight, seen.graph, readout=readout, **options)
        return read + constant * seen.weight[seen.graph]


class AnchorEncoder(Encoder):
    """L anchor layers: the hidden ones pool over the anchors, the last gives one number an anchor.

    ``cutoff`` truncates distances (P-GNN's fast variant, 2 hops); ``normalize`` scales every embedding to
    unit length (as P-GNN's code does); ``center`` makes every anchor's column of a graph zero-mean and
    unit-variance, without which embeddings can collapse to one direction.
    """

    def __init__(
        self,
        in_channels: int,
        hidden: int,
        layers: int,
        *,
        dropout: float = 0.0,
        batch_norm: bool = False,
        cutoff: int | None = None,
        normalize: bool = False,
        center: bool = False,
        **layer_options: Any,
    ) -> None:
        super().__init__()
        widths = [in_channels] + [hidden] * (layers - 1)
        self.layers = nn.ModuleList(
            AnchorLayer(width, hidden, last=i == layers - 1, **layer_options)
            for i, width in enumerate(widths)
        )
        self.norms = nn.ModuleList(nn.BatchNorm1d(hidden) for _ in range(layers - 1 if batch_norm else 0))
        self.dropout = nn.Dropout(dropout)
        self.cutoff, self.normalize, self.center = cutoff, normalize, center

    def forward(self, view: TensorView, choice: AnyAnchors) -> torch.Tensor:
        """Embeddings ``[N, K]``; columns beyond a graph's own K are zero."""
        seen = choice.measure(view, self.cutoff)
        h = view.x
        for i, layer in enumerate(self.layers):
            h = layer(h, seen)
            if i < len(self.layers) - 1:
                h = self.norms[i](h) if self.norms else h
                h = self.dropout(torch.relu(h))
        if self.center:
            # Deviates: under a dot product, embeddings can otherwise become parallel, all of them.
            h = _standardised(h, view)
        return nn.functional.normalize(h, dim=1) if self.normalize else h


def _standardised(h: torch.Tensor, view: TensorView) -> torch.Tensor:
    """Every column zero-mean and unit-variance within each graph."""

    def mean(values: torch.Tensor) -> torch.Tensor:
        sums = values.new_zeros(view.union.num_graphs, values.size(1)).index_add(0, view.graph, values)
        return (sums / view.sizes[:, None])[view.graph]

    h = h - mean(h)
    return h / (mean(h**2) + 1e-5).sqrt()


class ConvEncoder(Encoder):
    """A stack of PyG convolutions, for the models that do not know positions."""

    def __init__(
        self,
        in_channels: int,
        hidden: int,
        layers: int,
        *,
        conv: str,
        dropout: float = 0.0,
        batch_norm: bool = False,
        heads: int = 1,
    ) -> None:
        super().__init__()
        options = {"heads": heads, "concat": False} if conv == "gat" else {}
        widths = [in_channels] + [hidden] * layers
        self.convs = nn.ModuleList(make_conv(conv, a, b, **options) for a, b in pairwise(widths))
        self.norms = nn.ModuleList(nn.BatchNorm1d(hidden) for _ in range(layers - 1 if batch_norm else 0))
        self.dropout = nn.Dropout(dropout)

    def forward(self, view: TensorView, choice: AnyAnchors | None = None) -> torch.Tensor:
        """Embeddings ``[N, R]``."""
        h = view.x
        for i, conv in enumerate(self.convs):
            h = conv(h, view)
            if i < len(self.convs) - 1:
                h = self.norms[i](h) if self.norms else h
                h = self.dropout(torch.relu(h))
        return h
