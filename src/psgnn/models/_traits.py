"""What a node is like, apart from where it is: its roles and features, and those of its neighbours."""

from __future__ import annotations

import torch
from torch import nn

from psgnn.positions._measure import FARTHEST_FROM_MEAN, Parts, Positions
from psgnn.positions._roles import ROLES


class TraitEncoder(nn.Module):
    """An MLP of a node's `Positions.traits`, ``[N, F] -> [N, R]``.

    Args:
        parts: whether roles and features are among them.
        in_channels: columns of node features; 0 = none.
        hidden: R.
        dropout: in the MLP.
    """

    mean: torch.Tensor
    deviation: torch.Tensor

    def __init__(self, parts: Parts, in_channels: int, hidden: int, dropout: float) -> None:
        super().__init__()
        width = 3 * (len(ROLES) * parts.roles + in_channels * parts.features)
        self.mlp = nn.Sequential(
            nn.Linear(width, 2 * hidden), nn.ReLU(), nn.Dropout(dropout), nn.Linear(2 * hidden, hidden)
        )
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("deviation", torch.ones(width))

    def calibrate(self, positions: Positions) -> None:
        """Standardise by the traits of these nodes."""
        self.standardise_by(torch.from_numpy(positions.traits))

    def standardise_by(self, traits: torch.Tensor) -> None:
        """Standardise by traits ``[N, F]``."""
        self.mean.copy_(traits.mean(dim=0))
        self.deviation.copy_(traits.std(dim=0) + 1e-3)

    def forward(self, positions: Positions, nodes: torch.Tensor) -> torch.Tensor:
        """Encodings of some nodes, ``[P, R]``."""
        return self.encode(torch.from_numpy(positions.traits)[nodes.cpu()].to(nodes.device))

    def encode(self, rows: torch.Tensor) -> torch.Tensor:
        """Encodings of traits ``[P, F]``, ``[P, R]``."""
        traits = (rows - self.mean) / self.deviation
        encoded: torch.Tensor = self.mlp(traits.clamp(-FARTHEST_FROM_MEAN, FARTHEST_FROM_MEAN))
        return encoded
