"""PyG convolutions by name. Their weights and formulas are PyG's; the sums over neighbours are our own kernels'."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn.functional import leaky_relu
from torch_geometric.nn import GATConv, GCNConv, GENConv, GINConv, SAGEConv

from psgnn.errors import unknown_name
from psgnn.models._sparse import neighbour_sums, weighted_sums
from psgnn.models._view import TensorView

# Beyond this range of a column, its exponentials cannot share one offset.
EXPONENT_RANGE = 60.0


class GCN(GCNConv):  # type: ignore[misc]
    """`GCNConv` over a view."""

    def forward(self, x: torch.Tensor, view: TensorView) -> torch.Tensor:
        """``[N, F]`` to ``[N, R]``."""
        scale = (view.degrees + 1).rsqrt()[:, None]
        x = scale * self.lin(x)
        out: torch.Tensor = scale * (neighbour_sums(view.union.adjacency, x) + x) + self.bias
        return out


class SAGE(SAGEConv):  # type: ignore[misc]
    """`SAGEConv` with the mean, over a view."""

    def forward(self, x: torch.Tensor, view: TensorView) -> torch.Tensor:
        """``[N, F]`` to ``[N, R]``."""
        mean = neighbour_sums(view.union.adjacency, x) / view.degrees.clamp(min=1)[:, None]
        out: torch.Tensor = self.lin_l(mean) + self.lin_r(x)
        return out


class GIN(GINConv):  # type: ignore[misc]
    """`GINConv` with two linear maps, over a view."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        maps = nn.Linear(in_channels, out_channels), nn.ReLU(), nn.Linear(out_channels, out_channels)
        super().__init__(nn.Sequential(*maps))

    def forward(self, x: torch.Tensor, view: TensorView) -> torch.Tensor:
        """``[N, F]`` to ``[N, R]``."""
        out: torch.Tensor = self.nn((1 + self.eps) * x + neighbour_sums(view.union.adjacency, x))
        return out


class GEN(GENConv):  # type: ignore[misc]
    """`GENConv` with softmax aggregation, over a view.

    The message of a node is the same to all its neighbours, so its exponential is taken once a node, not once an edge.
    """

    def forward(self, x: torch.Tensor, view: TensorView) -> torch.Tensor:
        """``[N, F]`` to ``[N, R]``."""
        message = (self.lin_src(x) if hasattr(self, "lin_src") else x).relu() + self.eps
        highest = message.detach().amax(dim=0)
        if bool((highest - message.detach().amin(dim=0) > EXPONENT_RANGE).any()):
            out: torch.Tensor = super().forward(x, view.edge_index)
            return out
        share = (message - highest).exp()
        sums = neighbour_sums(view.union.adjacency, torch.cat([share * message, share], dim=1))
        above, below = sums.chunk(2, dim=1)
        pooled = above / below.clamp(min=torch.finfo(x.dtype).tiny)
        out = self.mlp(pooled + (self.lin_dst(x) if hasattr(self, "lin_dst") else x))
        return out


class GAT(GATConv):  # type: ignore[misc]
    """`GATConv` that takes the mean of its heads, over a view."""

    def forward(self, x: torch.Tensor, view: TensorView) -> torch.Tensor:
        """``[N, F]`` to ``[N, R]``."""
        rows, cols = view.edge_index
        x = self.lin(x).view(-1, self.heads, self.out_channels)
        source, target = (x * self.att_src).sum(dim=-1), (x * self.att_dst).sum(dim=-1)
        own = leaky_relu(source + target, self.negative_slope)  # every node sees itself, too
        others = leaky_relu(source[cols] + target[rows], self.negative_slope)
        highest = own.detach().scatter_reduce(0, rows[:, None].expand_as(others), others.detach(), "amax")
        own, others = (own - highest).exp(), (others - highest[rows]).exp()
        sums = weighted_sums(view.union.adjacency, others, x) + own[..., None] * x
        total = own.index_add(0, rows, others)
        out: torch.Tensor = (sums / total[..., None]).mean(dim=1) + self.bias
        return out


_CLASSES: dict[str, Any] = {"gen": GEN, "gcn": GCN, "sage": SAGE, "gat": GAT, "gin": GIN}


def make_conv(name: str, in_channels: int, out_channels: int, **options: Any) -> nn.Module:
    """A convolution from `in_channels` to `out_channels`."""
    if name not in _CLASSES:
        raise unknown_name("convolution", name, _CLASSES)
    conv: nn.Module = _CLASSES[name](in_channels, out_channels, **options)
    return conv
