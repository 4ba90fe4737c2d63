"""Node features beside positions: a node's own, and the means over its neighbours."""

from __future__ import annotations

import torch
from torch import nn

from psgnn.nn.view import View

STEPS = 2


class FeatureEncoder(nn.Module):
    r"""An MLP of a node's features and their averages over one and two steps, ``[N, F] -> [N, R]``.

    .. math:: \text{MLP}(x, \ D^{-1} A x, \ (D^{-1} A)^2 x)
    """

    def __init__(self, in_channels: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.mlp = nn.Sequential(
            nn.Linear((1 + STEPS) * in_channels, 2 * hidden), nn.ReLU(), nn.Dropout(dropout),
            nn.Linear(2 * hidden, hidden),
        )  # fmt: skip

    def forward(self, view: View, nodes: torch.Tensor) -> torch.Tensor:
        """Encodings of some nodes, ``[P, R]``."""
        encoded: torch.Tensor = self.mlp(smoothed_features(view)[nodes])
        return encoded


def smoothed_features(view: View) -> torch.Tensor:
    """Features, and their means over neighbours one and two steps away, ``[N, 3 F]``; kept with the view."""
    if view.smoothed is None:
        columns = [view.x]
        target, source = view.edge_index
        degree = torch.bincount(target, minlength=view.x.size(0)).clamp_min(1)[:, None]
        for _ in range(STEPS):
            last = columns[-1]
            columns.append(torch.zeros_like(last).index_add(0, target, last[source]) / degree)
        view.smoothed = torch.cat(columns, dim=1)
    return view.smoothed
