"""What two positions say: the score of a pair, a logit."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import torch
from torch import nn

from psgnn.distances._propagation import Floats
from psgnn.graph._graph import IntArray
from psgnn.models._channels import MOST_TRAINING_ANCHORS, TraitEncoder, anchors_of_a_step
from psgnn.models._convolutions import pair_dots
from psgnn.models._interfaces import Decoder
from psgnn.models._states import NodeStates
from psgnn.models._view import TensorView, pair_statistics_of
from psgnn.positions._context import SHAPE, context_columns, context_of
from psgnn.positions._kinds import is_ordered
from psgnn.positions._measure import FARTHEST_FROM_MEAN, Parts, Positions
from psgnn.positions._statistics import pair_statistics, statistic_groups, statistic_names
from psgnn.scoring._scorer import Evidence

# Into which pairs of graphs with anchors of different numbers are sorted, by that number.
GROUPS = 8


class DotDecoder(Decoder):
    """The paper's: the dot product of the two embeddings; with ``offset``, plus a learned number.

    With ``halves``, that of the first half of the first and the second half of the second.
    """

    similarity = "dot"

    def __init__(self, *, offset: bool = False, halves: bool = False) -> None:
        super().__init__()
        self.halves = halves
        self.offset = nn.Parameter(torch.zeros(())) if offset else None

    def forward(self, h: torch.Tensor, pairs: torch.Tensor) -> torch.Tensor:
        """Scores ``[P]`` of pairs ``[2, P]`` of rows of ``h [N, d]``."""
        dot = pair_dots(h, pairs) if not self.halves else torch.mul(*_ends(h, pairs, halves=True)).sum(dim=1)
        return dot if self.offset is None else dot + self.offset


class DistanceDecoder(Decoder):
    r"""Near means likely: :math:`b - e^s \lVert h_u - h_v \rVert_2`, with learned scale and offset.

    With ``halves``, the distance from the first half of :math:`h_u` to the second half of :math:`h_v`.
    """

    similarity = "distance"

    def __init__(self, *, halves: bool = False) -> None:
        super().__init__()
        self.halves = halves
        self.scale = nn.Parameter(torch.zeros(()))
        self.offset = nn.Parameter(torch.ones(()))

    def forward(self, h: torch.Tensor, pairs: torch.Tensor) -> torch.Tensor:
        """Scores ``[P]`` of pairs ``[2, P]`` of rows of ``h [N, d]``."""
        a, b = _ends(h, pairs, halves=self.halves)
        apart = (a - b).square().sum(dim=1)
        return self.offset - self.scale.exp() * (apart + 1e-8).sqrt()


def _ends(h: torch.Tensor, pairs: torch.Tensor, *, halves: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """The rows of the two nodes of pairs, or the half that says what a node is as a source, and as a target."""
    if not halves:
        return h[pairs[0]], h[pairs[1]]
    half = h.size(1) // 2
    return h[pairs[0], :half], h[pairs[1], half:]


class PairDecoder(Decoder, ABC):
    """Scores pairs by what is measured about them; several members are trained side by side, and their mean counts."""

    linear: nn.Linear
    mlps: nn.ModuleList

    def forward(self, positions: Positions, pairs: torch.Tensor) -> torch.Tensor:
        """Scores ``[P]`` of the pairs ``[2, P]``."""
        return self.member_scores(positions, pairs).mean(dim=1)

    @abstractmethod
    def member_scores(self, positions: Positions, pairs: torch.Tensor) -> torch.Tensor:
        """Each member's scores of the pairs, ``[P, M]``."""

    @abstractmethod
    def calibrate(self, positions: Positions, pairs: torch.Tensor) -> None:
        """Standardise what is measured by that of some training pairs."""

    def _scores(self, measured: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
        """Each member's scores ``[P, M]``: a linear map of what is measured, and an MLP over all that is seen."""
        scores: torch.Tensor = self.linear(measured) + torch.cat([mlp(seen) for mlp in self.mlps], dim=1)
        return scores


class SetDecoder(PairDecoder):
    r"""A set function over the anchors together with statistics of the pair.

    .. math:: s(u, v) = w \cdot g + \text{MLP}(g, \ \text{mean}_k \, \phi_k, \ \text{max}_k \, \phi_k), \quad
              \phi_k = \phi(|x_{uk} - x_{vk}|, \ x_{uk} x_{vk}, \ x_{uk} + x_{vk})

    with x_{uk} the channels of node u to anchor k and g the `pair_statistics`, standardised by `calibrate`. Nothing
    in it depends on the size of the graph, on K or on the order of the anchors. In directed graphs and those with two
    sides, phi sees :math:`x_{uk} - x_{vk}` too, since there a pair has an order.

    Args:
        parts: what is measured.
        hidden: width of phi; the MLP's is twice that.
        dropout: in the MLP.
        anchor_dropout: share of the anchors that a training step leaves out.
        network: whether there is phi; without it the score rests on g alone.
        members: how many MLPs (and w) are trained side by side; the score is the mean of theirs.
        in_channels: columns of node features, which join the roles of the two nodes; 0 = none.
        states: trainable vectors of the nodes, whose products join what the MLPs see.
    """

    mean: torch.Tensor
    deviation: torch.Tensor

    def __init__(
        self,
        parts: Parts,
        hidden: int,
        *,
        dropout: float,
        anchor_dropout: float,
        network: bool,
        members: int = 1,
        in_channels: int = 0,
        states: NodeStates | None = None,
    ) -> None:
        super().__init__()
        self.anchor_dropout = anchor_dropout
        self.ordered = is_ordered(parts.kinds)
        views = 3 + self.ordered  # of two rows
        statistics, channels = len(statistic_names(parts)), len(parts.channels)
        self.phi = (
            nn.Sequential(
                nn.Linear(views * channels, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU()
            )
            if network and channels
            else None
        )
        described = parts.roles or (parts.features and in_channels > 0)
        self.traits = TraitEncoder(parts, in_channels, hidden, dropout) if described else None
        self.states = states
        width = statistics + 2 * hidden * (self.phi is not None) + views * hidden * (self.traits is not None)
        width += 0 if states is None else states.width
        self.linear = nn.Linear(statistics, members)
        self.mlps = nn.ModuleList(_mlp(width, 2 * hidden, dropout) for _ in range(members))
        self.register_buffer("mean", torch.zeros(statistics))
        self.register_buffer("deviation", torch.ones(statistics))

    def calibrate(self, positions: Positions, pairs: torch.Tensor) -> None:
        """Standardise by the statistics of some training pairs."""
        _standardise_by(pair_statistics_of(positions, pairs), self.mean, self.deviation)
        if self.traits is not None:
            self.traits.calibrate(positions)

    def _views(self, a: torch.Tensor, b: torch.Tensor) -> list[torch.Tensor]:
        """What is seen of the rows of two nodes: the same in either order, but where the order is part of the pair."""
        return [(a - b).abs(), a * b, a + b] + [a - b] * self.ordered

    def member_scores(self, positions: Positions, pairs: torch.Tensor) -> torch.Tensor:
        """Each member's scores of the pairs, ``[P, M]``."""
        if self.ordered:
            pairs = torch.from_numpy(positions.oriented(pairs.cpu().numpy())).to(pairs.device)
        g = _standardised(pair_statistics_of(positions, pairs), self.mean, self.deviation)
        parts = [g]
        if self.phi is not None:
            parts += self._pooled(positions, pairs)
        if self.traits is not None:
            a, b = (self.traits(positions, nodes) for nodes in pairs)
            parts += self._views(a, b)
        if self.states is not None:
            parts.append(self.states(positions.view, pairs))
        seen = torch.cat(parts, dim=1)
        return self._scores(g, seen)

    def evidence(self, positions: Positions, pairs: IntArray) -> Evidence:
        """What the scores of pairs ``[2, P]`` rest on: statistics, channels and traits."""
        pairs = positions.oriented(pairs) if self.ordered else pairs
        parts, us, vs = positions.parts, *pairs
        channels = np.stack([positions.channels[us], positions.channels[vs]], axis=1)  # [P, 2, K, C]
        traits = np.stack([positions.traits_of(us), positions.traits_of(vs)], axis=1)  # [P, 2, F]
        shape, width = channels.shape[1:], traits.shape[2] // 3
        of_channel = ["hops"] * (2 * parts.hops)
        of_channel += ["walks"] * (shape[2] - len(of_channel))
        of_trait = ["roles"] * positions.roles.shape[1]
        of_trait += ["features"] * (width - len(of_trait))
        count = int(positions.counts[positions.view.union.graph_of[us[0]]])

        @torch.no_grad()
        def score(mixed: Sequence[Floats], rows: Sequence[IntArray]) -> Floats:
            device = self.mean.device
            statistics, seen, known, *products = (torch.from_numpy(part).to(device) for part in mixed)
            places = [torch.from_numpy(place).to(device) for place in rows]
            found = self.read(
                statistics,
                seen.reshape(len(seen), *shape),
                known.reshape(len(known), 2, 3 * width),
                places,
                count,
                products[0] if products else None,
            )
            return np.asarray(found.cpu().numpy())

        tables = [pair_statistics(positions, pairs)]
        tables += [channels.reshape(len(us), -1), traits.reshape(len(us), -1)]
        groups = [statistic_groups(parts), of_channel * (2 * shape[1]), of_trait * 6]
        if self.states is not None:
            view: TensorView = positions.view  # type: ignore[assignment]
            with torch.no_grad():
                products = self.states.products(view, torch.from_numpy(pairs).to(self.mean.device))
            tables.append(products.cpu().numpy())
            groups.append(["node states"] * self.states.width)
        return Evidence(tables, [np.array(names, np.str_) for names in groups], score)

    def read(
        self,
        statistics: torch.Tensor,
        channels: torch.Tensor,
        traits: torch.Tensor,
        places: Sequence[torch.Tensor],
        count: int,
        products: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Scores ``[P]`` of what is measured of pairs, which need not be their own: what explanations ask.

        ``statistics [*, S]``; ``channels [*, 2, K, C]`` and ``traits [*, 2, F]`` of both nodes; ``places``, of each
        table, the rows ``[P]`` that belong together; ``count`` anchors; ``products [*, R]`` of node states.
        """
        g = _standardised(statistics, self.mean, self.deviation)[places[0]]
        parts = [g]
        if self.phi is not None:
            counts = torch.full((channels.size(0),), count)
            found = self._phi(channels[:, 0], channels[:, 1], counts, torch.arange(channels.size(2)))
            parts += [part[places[1]] for part in found]
        if self.traits is not None:
            a, b = self.traits.encode(traits[:, 0]), self.traits.encode(traits[:, 1])
            parts += [part[places[2]] for part in self._views(a, b)]
        if self.states is not None and products is not None:
            parts.append(self.states.mlp(products)[places[3]])
        seen = torch.cat(parts, dim=1)
        return self._scores(g, seen).mean(dim=1)

    def _pooled(self, positions: Positions, pairs: torch.Tensor) -> list[torch.Tensor]:
        """Mean and maximum of phi over the anchors, ``[P, R]`` each."""
        count = positions.channels.shape[1]
        kept = min(int((1 - self.anchor_dropout) * count) + 1, MOST_TRAINING_ANCHORS)
        anchors = anchors_of_a_step(positions, kept if self.training else None)
        counts = torch.from_numpy(
            positions.counts[positions.view.union.graph_of[pairs[0].cpu().numpy()]]
        )  # [P]
        if not pairs.size(1) or (positions.counts == count).all():
            return self._pooled_over(positions, pairs, counts, anchors)
        # Graphs have anchors of different numbers. Pairs of graphs with few are taken together, for which most of the
        # anchors are padding that need not be looked at.
        order = counts.argsort(stable=True)
        groups = [
            self._pooled_over(
                positions,
                pairs[:, some.to(pairs.device)],
                counts[some],
                _first(anchors, int(counts[some].max())),
            )
            for some in order.tensor_split(min(GROUPS, len(order)))
        ]
        place = order.argsort().to(pairs.device)
        return [torch.cat(part)[place] for part in zip(*groups, strict=True)]

    def _pooled_over(
        self, positions: Positions, pairs: torch.Tensor, counts: torch.Tensor, anchors: torch.Tensor
    ) -> list[torch.Tensor]:
        """The same over some of the anchors, of which the first ``counts [P]`` of a pair's graph are not padding."""
        channels = torch.from_numpy(positions.channels)
        # Rows of the pairs alone go to the device, not the table.
        a, b = (channels[nodes[:, None], anchors].to(pairs.device) for nodes in pairs.cpu())  # [P, K, C]
        return self._phi(a, b, counts, anchors)

    def _phi(
        self, a: torch.Tensor, b: torch.Tensor, counts: torch.Tensor, anchors: torch.Tensor
    ) -> list[torch.Tensor]:
        """Mean and maximum of phi over the anchors at these places, from channels ``[P, K, C]`` of both nodes."""
        phi = self.phi(torch.cat(self._views(a, b), dim=2))  # type: ignore[misc]
        present = (anchors < counts[:, None]).to(a.device)[:, :, None]
        phi = phi * present  # it is not negative, so zero changes no maximum
        return [phi.sum(dim=1) / present.sum(dim=1).clamp_min(1), phi.amax(dim=1)]


class ContextDecoder(PairDecoder):
    r"""A network over what is known of a pair and of its graph, for weights that serve graphs they have never seen.

    .. math:: s(u, v) = w \cdot z + \text{MLP}(z), \quad z = \text{CAT}(g, \ c, \ r(g), \ q)

    with g the standardised `pair_statistics`, r(g) their log likelihood ratios in this very graph and c whether there
    are any (`psgnn.positions._context`), q the standardised shape of the graph. `psgnn.scoring` evaluates it in NumPy
    and adds what links of the graph itself say beyond that.

    Args:
        parts: what is measured.
        hidden: half the width of the MLP.
        dropout: in the MLP.
        members: how many MLPs (and w) are trained side by side.
        strict: leave the ratios out.
    """

    mean: torch.Tensor
    deviation: torch.Tensor
    shape_mean: torch.Tensor
    shape_deviation: torch.Tensor

    def __init__(self, parts: Parts, hidden: int, *, dropout: float, members: int, strict: bool) -> None:
        super().__init__()
        self.strict = strict
        statistics = len(statistic_names(parts))
        width = 2 * statistics + 1 + len(SHAPE)
        self.linear = nn.Linear(width, members)
        self.mlps = nn.ModuleList(_mlp(width, 2 * hidden, dropout) for _ in range(members))
        self.register_buffer("mean", torch.zeros(statistics))
        self.register_buffer("deviation", torch.ones(statistics))
        self.register_buffer("shape_mean", torch.zeros(len(SHAPE)))
        self.register_buffer("shape_deviation", torch.ones(len(SHAPE)))

    def calibrate(self, positions: Positions, pairs: torch.Tensor) -> None:
        """Standardise by the statistics of some training pairs and the shapes of the graphs."""
        self.standardise_by(
            pair_statistics_of(positions, pairs), torch.from_numpy(context_of(positions).shape)
        )

    def standardise_by(self, statistics: torch.Tensor, shapes: torch.Tensor) -> None:
        """Standardise by statistics of pairs ``[P, S]`` and shapes of graphs ``[G, 13]``."""
        _standardise_by(statistics, self.mean, self.deviation)
        if shapes.size(0) > 1:
            _standardise_by(shapes, self.shape_mean, self.shape_deviation)
        else:
            self.shape_mean.copy_(shapes[0])

    def member_scores(self, positions: Positions, pairs: torch.Tensor) -> torch.Tensor:
        """Each member's scores of the pairs, ``[P, M]``."""
        statistics = pair_statistics_of(positions, pairs)
        columns = context_columns(
            positions, pairs.cpu().numpy(), statistics.cpu().numpy(), strict=self.strict
        )
        return self.read(statistics, torch.from_numpy(columns).to(pairs.device))

    def read(self, statistics: torch.Tensor, context: torch.Tensor) -> torch.Tensor:
        """Scores ``[P, M]`` of statistics ``[P, S]`` and `context_columns` ``[P, 1 + S + 13]``."""
        ratios, shape = context[:, : -len(SHAPE)], context[:, -len(SHAPE) :]
        g = _standardised(statistics, self.mean, self.deviation)
        z = torch.cat([g, ratios, _standardised(shape, self.shape_mean, self.shape_deviation)], dim=1)
        return self._scores(z, z)


def _standardise_by(values: torch.Tensor, mean: torch.Tensor, deviation: torch.Tensor) -> None:
    """Set mean and deviation to those of the columns of values."""
    mean.copy_(values.mean(dim=0))
    deviation.copy_(values.std(dim=0) + 1e-6)


def _standardised(values: torch.Tensor, mean: torch.Tensor, deviation: torch.Tensor) -> torch.Tensor:
    """Values in deviations from the mean, cut off far out."""
    return ((values - mean) / deviation).clamp(-FARTHEST_FROM_MEAN, FARTHEST_FROM_MEAN)


def _first(anchors: torch.Tensor, count: int) -> torch.Tensor:
    """Those of the places that are among the first `count`; if none is, one, since a maximum is over something."""
    inside = anchors[anchors < count]
    return inside if len(inside) else anchors[:1]


def _mlp(in_channels: int, hidden: int, dropout: float) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(in_channels, hidden), nn.ReLU(), nn.Dropout(dropout),
        nn.Linear(hidden, hidden), nn.ReLU(), nn.Dropout(dropout), nn.Linear(hidden, 1),
    )  # fmt: skip
