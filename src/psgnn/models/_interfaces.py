"""What a model asks of its three parts: a picker, an encoder and a decoder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import nn

from psgnn.graph._graph import IntArray
from psgnn.models._anchor_sets import AnyAnchors
from psgnn.models._view import TensorView
from psgnn.positions._measure import Parts, Positions
from psgnn.scoring._scorer import Evidence, Similarity
from psgnn.tasks import LabelledPairs

Seen = tuple[
    TensorView, LabelledPairs
]  # labelled pairs, and the graphs as whoever learns from them may see them


class Picker(nn.Module):
    """Picks the anchors of the graphs of a view: ``picker(view, generator, exploration)``."""

    learns_first: ClassVar[bool] = False  # from the training pairs, before training begins
    # Per graph, the share of the log-loss of the training pairs that the first 1, 2, ... anchors explain.
    explained: Sequence[Sequence[float]] = ()

    def keeps_anchors(self, reads_positions: bool) -> bool:
        """Whether all training steps share the anchors of the visible graph, given what the encoder reads."""
        return False

    def learn(self, view: TensorView, training: Sequence[Seen], validation: Seen) -> None:
        """Learn from labelled pairs, where the picker learns first."""

    def find(self, node_names: Sequence[Sequence[str]]) -> None:
        """Look up anchors that were given by name, where they were, among the names of the nodes of each graph."""

    def resize(self, width: int, largest: int) -> None:
        """Pick `width` anchors from now on, or as many as the largest graph has nodes."""
        self.k: int | str = min(width, largest)

    def sample(
        self, view: TensorView, generator: torch.Generator | None, exploration: float, samples: int
    ) -> Sequence[AnyAnchors]:
        """Several picks for one training step."""
        return [self(view, generator, exploration) for _ in range(samples)]


class Encoder(nn.Module):
    """Embeds nodes: ``encoder(view, anchors)``, or ``encoder(view, anchors, nodes)`` where it reads positions."""

    reads_positions: ClassVar[bool] = False  # measured once, and then a node costs the same in any graph
    two_ends: ClassVar[bool] = False  # whether a vector has a half for a node as source, and one as target
    parts: Parts  # of positions, where they are read

    def calibrate(self, positions: Positions) -> None:
        """Take in the scale of the positions, where they are read."""


class Decoder(nn.Module):
    """Scores pairs ``[2, P]``: of rows of embeddings by their similarity, or else of positions (`PairDecoder`)."""

    similarity: ClassVar[Similarity | None] = None

    def member_scores(self, read: Any, pairs: torch.Tensor) -> torch.Tensor:
        """The scores ``[P, M]`` that the loss is the mean over."""
        scores: torch.Tensor = self(read, pairs)
        return scores[:, None]

    def calibrate(self, positions: Positions, pairs: torch.Tensor) -> None:
        """Take in the scale of what is measured about training pairs, where that is read."""

    def evidence(self, positions: Positions, pairs: IntArray) -> Evidence | None:
        """What the scores of pairs ``[2, P]`` rest on, by kind; None where it has no separate parts."""
        return None
