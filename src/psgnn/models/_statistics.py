"""Pair statistics as tensors."""

from __future__ import annotations

import torch

from psgnn.positions._measure import Positions
from psgnn.positions._statistics import pair_statistics


def pair_statistics_of(positions: Positions, pairs: torch.Tensor) -> torch.Tensor:
    """`pair_statistics` of a tensor of pairs, on its device."""
    return torch.from_numpy(pair_statistics(positions, pairs.cpu().numpy())).to(pairs.device)
