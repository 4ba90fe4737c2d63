"""Pair statistics as tensors."""

from __future__ import annotations

import torch

from psgnn.models._pickers import RulePicker
from psgnn.positions._measure import Parts, Positions, positions_of
from psgnn.positions._statistics import pair_statistics
from psgnn.positions._view import View


def pair_statistics_of(positions: Positions, pairs: torch.Tensor) -> torch.Tensor:
    """`pair_statistics` of a tensor of pairs, on its device."""
    return torch.from_numpy(pair_statistics(positions, pairs.cpu().numpy())).to(pairs.device)


def statistics_of(view: View, pairs: torch.Tensor, seed: int) -> torch.Tensor:
    """All statistics of the pairs ``[2, P]`` in a view from log^2 N anchors of the rule ``mixed``, ``[P, S]``."""
    choice = RulePicker("mixed", "log2", seed)(view)
    return pair_statistics_of(positions_of(view, choice, Parts()), pairs)
