"""A lesson of pretraining: a graph, pairs of its nodes, and what is known of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from psgnn.models._anchor_sets import AnchorSet
from psgnn.models._view import TensorView


@dataclass(frozen=True, eq=False)
class Lesson:
    """A graph; pairs ``[2, P]`` that are hidden links, or of one group (label 1), or not, and what is known of them.

    ``statistics [P, S]``, ``context [P, 1 + S + 13]`` and ``shape [13]`` are what a `ContextDecoder` reads.
    """

    family: str
    view: TensorView | None
    choice: AnchorSet
    pairs: torch.Tensor
    labels: torch.Tensor
    statistics: torch.Tensor
    context: torch.Tensor
    shape: torch.Tensor

    def without_view(self) -> Lesson:
        """The same in little memory."""
        return replace(self, view=None)
