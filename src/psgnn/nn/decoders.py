"""What two positions say: the score of a pair, a logit."""

from __future__ import annotations

import torch
from torch import nn


class DotDecoder(nn.Module):
    """The paper's: the dot product of the two embeddings."""

    def forward(self, h: torch.Tensor, pairs: torch.Tensor) -> torch.Tensor:
        """Scores ``[P]`` of the pairs ``[2, P]``."""
        return (h[pairs[0]] * h[pairs[1]]).sum(dim=1)


class DistanceDecoder(nn.Module):
    r"""Near means likely: :math:`b - e^s \lVert h_u - h_v \rVert_2`, with learnt scale and offset."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.zeros(()))
        self.offset = nn.Parameter(torch.ones(()))

    def forward(self, h: torch.Tensor, pairs: torch.Tensor) -> torch.Tensor:
        """Scores ``[P]`` of the pairs ``[2, P]``."""
        apart = (h[pairs[0]] - h[pairs[1]]).square().sum(dim=1)
        return self.offset - self.scale.exp() * (apart + 1e-8).sqrt()


DECODERS: dict[str, type[nn.Module]] = {"dot": DotDecoder, "distance": DistanceDecoder}
