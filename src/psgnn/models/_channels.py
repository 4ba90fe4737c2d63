"""Embeddings from channels and node features: coordinates whose distance or dot product ranks pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from psgnn.models._anchor_sets import AnchorSet, channels_of
from psgnn.models._interfaces import Encoder
from psgnn.models._view import TensorView
from psgnn.positions._frame import aligned_rows
from psgnn.positions._kinds import node_columns
from psgnn.positions._measure import FARTHEST_FROM_MEAN, HEATS, Parts, Positions
from psgnn.positions._roles import ROLES

if TYPE_CHECKING:
    from scipy.sparse import csr_array


class _SparseProduct(torch.autograd.Function):
    """Sparse rows ``[P, F]`` times the transpose of a weight ``[R, F]``."""

    @staticmethod
    def forward(ctx: Any, weight: torch.Tensor, rows: csr_array) -> torch.Tensor:
        ctx.rows = rows
        return torch.from_numpy(rows @ weight.detach().cpu().numpy().T).to(weight.device)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        return torch.from_numpy(ctx.rows.T @ grad.cpu().numpy()).T.to(grad.device), None


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
        self.standardise_by(torch.from_numpy(positions.traits_of(slice(None))))

    def standardise_by(self, traits: torch.Tensor) -> None:
        """Standardise by traits ``[N, F]``."""
        self.mean.copy_(traits.mean(dim=0))
        self.deviation.copy_(traits.std(dim=0) + 1e-3)

    def forward(self, positions: Positions, nodes: torch.Tensor) -> torch.Tensor:
        """Encodings of some nodes, ``[P, R]``."""
        traits = positions.traits
        if isinstance(traits, np.ndarray):
            return self.encode(torch.from_numpy(traits)[nodes.cpu()].to(nodes.device))
        # The first map of a row of zeros, and what the entries of each node add to it.
        rows = traits[nodes.cpu().numpy()]
        columns, values = (torch.from_numpy(part).to(nodes.device) for part in (rows.indices, rows.data))
        zero = self._standardised(torch.zeros_like(self.mean))
        rows.data = (self._standardised(values, columns) - zero[columns]).cpu().numpy()
        first = self.mlp[0]
        encoded: torch.Tensor = self.mlp[1:](first(zero) + _SparseProduct.apply(first.weight, rows))  # type: ignore[no-untyped-call]
        return encoded

    def encode(self, rows: torch.Tensor) -> torch.Tensor:
        """Encodings of traits ``[P, F]``, ``[P, R]``."""
        encoded: torch.Tensor = self.mlp(self._standardised(rows))
        return encoded

    def _standardised(
        self, values: torch.Tensor, columns: torch.Tensor | slice = slice(None)
    ) -> torch.Tensor:
        """Values of these columns in deviations from the mean, cut off far out."""
        values = (values - self.mean[columns]) / self.deviation[columns]
        return values.clamp(-FARTHEST_FROM_MEAN, FARTHEST_FROM_MEAN)


NUMBERS_AN_ANCHOR = 8
ROLE_NUMBERS = 16

NODE_BLOCK = 2**11  # nodes whose [K, R] rows are in memory at once
MOST_TRAINING_ANCHORS = 32  # that a network sees in one step


def anchors_of_a_step(positions: Positions, most: int | None) -> torch.Tensor:
    """Places of a random `most` of the K anchors, the same for the whole step, or of all: ``[k]``.

    What is left out of a step costs nothing, and a network learns not to lean on single anchors.
    """
    count = positions.channels.shape[1]
    return torch.arange(count) if most is None or most >= count else torch.randperm(count)[:most]


class ChannelEncoder(Encoder):
    r"""A node's coordinates: some numbers an anchor, its place in the spectral basis, its role.

    .. math:: h_v = \text{CAT}\left( \frac{\psi(x_{vk}, r_v)}{\sqrt{K}}_{k=1..K}, \
              c_t \frac{e^{-t (1 - \lambda) / 2} \odot U_v}{\lVert \cdot \rVert}_{t = 1, 4, 16}, \
              W r_v \right)

    with x_{vk} the channels of node v to anchor k, r_v its encoded traits, U_v its row of the spectral basis; psi is an
    MLP shared by all anchors, c_t are learned scales. So a dot product or a squared distance of embeddings is a sum
    over anchors and eigenvectors, whatever their number.
    """

    reads_positions = True

    def __init__(self, parts: Parts, hidden: int, *, dropout: float, in_channels: int = 0) -> None:
        super().__init__()
        self.parts = parts
        channels = len(parts.channels)
        self.channel_part = nn.Linear(channels, hidden) if channels else None
        self.scales = nn.Parameter(torch.ones(len(HEATS))) if parts.spectral else None
        described = parts.roles or (parts.features and in_channels > 0)
        self.traits = TraitEncoder(parts, in_channels, hidden, dropout) if described else None
        self.trait_part = nn.Linear(hidden, hidden, bias=False) if described else None
        self.role = nn.Linear(hidden, ROLE_NUMBERS) if described else None
        self.out = nn.Sequential(
            nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, NUMBERS_AN_ANCHOR)
        )

    def forward(self, view: TensorView, choice: AnchorSet, nodes: torch.Tensor | None = None) -> torch.Tensor:
        """Embeddings ``[n, d]`` of the nodes, or of all."""
        if nodes is None:
            everyone = torch.arange(view.union.num_nodes, device=view.x.device)
            return torch.cat([self(view, choice, some) for some in torch.split(everyone, NODE_BLOCK)])
        positions = channels_of(view, choice, self.parts)
        blocks = []
        traits = None if self.traits is None else self.traits(positions, nodes).relu()
        if self.channel_part is not None:
            anchors = anchors_of_a_step(positions, MOST_TRAINING_ANCHORS if self.training else None)
            rows = torch.from_numpy(positions.channels)[nodes.cpu()[:, None], anchors]  # [n, K, C]
            z = self.channel_part(rows.to(nodes.device))
            if self.trait_part is not None:
                z = z + self.trait_part(traits)[:, None]
            blocks.append((self.out(z) * _shares(positions, nodes, anchors)[:, :, None]).flatten(1))
        if self.scales is not None:
            blocks += [
                scale * place for scale, place in zip(self.scales, _places(positions, nodes), strict=True)
            ]
        if self.role is not None:
            blocks.append(self.role(traits))
        return torch.cat(blocks, dim=1)

    def calibrate(self, positions: Positions) -> None:
        """Standardise by what is known of these nodes."""
        if self.traits is not None:
            self.traits.calibrate(positions)


class DirectedEncoder(Encoder):
    """Two vectors of a node, as the source of links and as their target, one behind the other.

    Each is that of a `ChannelEncoder` of its own, and a map of what is known of the node's links in either direction.
    """

    reads_positions = two_ends = True
    mean: torch.Tensor
    deviation: torch.Tensor

    def __init__(self, parts: Parts, hidden: int, *, dropout: float, in_channels: int = 0) -> None:
        super().__init__()
        self.parts, width = parts, node_columns(parts.kinds)
        self.ends = nn.ModuleList(
            ChannelEncoder(parts, hidden, dropout=dropout, in_channels=in_channels) for _ in range(2)
        )
        self.maps = nn.ModuleList(nn.Linear(width, ROLE_NUMBERS) for _ in range(2))
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("deviation", torch.ones(width))

    def forward(self, view: TensorView, choice: AnchorSet, nodes: torch.Tensor | None = None) -> torch.Tensor:
        """Vectors ``[n, 2 d]`` of the nodes, or of all."""
        table = torch.from_numpy(channels_of(view, choice, self.parts).kind_measures.node_table)
        rows = table if nodes is None else table[nodes.cpu()]
        known = (rows.to(self.mean.device) - self.mean) / self.deviation
        known = known.clamp(-FARTHEST_FROM_MEAN, FARTHEST_FROM_MEAN)
        found = zip(self.ends, self.maps, strict=True)
        return torch.cat(
            [part for end, map in found for part in (end(view, choice, nodes), map(known))], dim=1
        )

    def calibrate(self, positions: Positions) -> None:
        """Standardise by what is known of these nodes."""
        for end in self.ends:
            end.calibrate(positions)  # type: ignore[operator]
        table = torch.from_numpy(positions.kind_measures.node_table)
        self.mean.copy_(table.mean(dim=0))
        self.deviation.copy_(table.std(dim=0) + 1e-3)


def _shares(positions: Positions, nodes: torch.Tensor, anchors: torch.Tensor) -> torch.Tensor:
    r""":math:`1 / \sqrt{K}` for those anchors that a node's graph has and 0 for padding, ``[n, K]``."""
    counts = torch.from_numpy(positions.counts[positions.view.union.graph_of[nodes.cpu().numpy()]])
    present = (anchors < counts[:, None]).to(nodes.device)
    return present / present.sum(dim=1, keepdim=True).clamp_min(1).sqrt()


def _places(positions: Positions, nodes: torch.Tensor) -> list[torch.Tensor]:
    """Unit vectors along the smoothed spectral rows of the nodes, one ``[n, r]`` for each time of heat."""
    if positions.view.frame is not None:
        return [
            torch.from_numpy(rows).to(nodes.device) for rows in aligned_rows(positions, nodes.cpu().numpy())
        ]
    rows = torch.from_numpy(positions.basis)[nodes.cpu()].to(nodes.device)
    values = positions.values[positions.view.union.graph_of[nodes.cpu().numpy()]]
    found = []
    for time in HEATS:
        weight = np.exp(-time / 2 * (1 - values)) * (values != 0)
        found.append(nn.functional.normalize(rows * torch.from_numpy(weight).to(nodes.device), dim=1))
    return found
