"""PyG convolutions by name."""

from __future__ import annotations

from typing import Any

from torch import nn
from torch_geometric.nn import GATConv, GCNConv, GENConv, GINConv, SAGEConv

from psgnn.errors import unknown_name


def _gin(in_channels: int, out_channels: int) -> nn.Module:
    widths = (in_channels, out_channels, out_channels)
    conv: nn.Module = GINConv(nn.Sequential(nn.Linear(*widths[:2]), nn.ReLU(), nn.Linear(*widths[1:])))
    return conv


CONVOLUTIONS: dict[str, Any] = {
    "gen": GENConv,
    "gcn": GCNConv,
    "sage": SAGEConv,
    "gat": GATConv,
    "gin": _gin,
}


def make_conv(name: str, in_channels: int, out_channels: int, **options: Any) -> nn.Module:
    """A convolution from `in_channels` to `out_channels`."""
    if name not in CONVOLUTIONS:
        raise unknown_name("convolution", name, CONVOLUTIONS)
    conv: nn.Module = CONVOLUTIONS[name](in_channels, out_channels, **options)
    return conv
