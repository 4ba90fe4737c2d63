"""Which nodes are anchors: a rule, a one-shot scorer with its estimators (the paper), a sequential policy.

A picker maps a view to a `AnchorSet`. In training it may explore, by an amount from 1 (the start) to 0 (the
end); in evaluation it is deterministic.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
from torch import nn

from psgnn.anchors._rules import RULES, anchor_counts, batch_anchors, named_anchors
from psgnn.errors import InputError, unknown_name
from psgnn.graph._graph import IntArray
from psgnn.models._anchor_sets import AnchorSet, RandomAnchorSets
from psgnn.models._config import ESTIMATORS
from psgnn.models._convolutions import make_conv
from psgnn.models._interfaces import Picker
from psgnn.models._subsets import KSubset
from psgnn.models._view import TensorView
from psgnn.positions._roles import STRUCTURAL_FEATURES, structural_features


class RulePicker(Picker):
    """Anchors by one of `psgnn.anchors.RULES`; with ``redraw``, new ones in every training step."""

    def __init__(self, rule: str, k: int | str, seed: int = 0, *, redraw: bool = False) -> None:
        super().__init__()
        if rule not in RULES:
            raise unknown_name("anchor rule", rule, RULES)
        self.rule, self.k, self.seed, self.redraw = rule, k, seed, redraw

    def keeps_anchors(self, reads_positions: bool) -> bool:
        """Share anchors where positions are measured once per fold and anchor set.

        Position layers get the anchors that the rule picks on the graph of the step: on a graph with many equal nodes
        the folds differ in them, and layers that have seen several sets rely less on one.
        """
        return reads_positions and not self.redraw

    def forward(
        self, view: TensorView, generator: torch.Generator | None = None, exploration: float = 0.0
    ) -> AnchorSet:
        """Pick in every graph of the view; what does not change from step to step is looked up."""
        if self.redraw and self.training:
            return self._pick(view, int(torch.randint(2**31, (1,), generator=generator)))
        key = self.rule, self.k, self.seed
        if key not in view.picked:
            view.picked[key] = self._pick(view, self.seed)
        choice: AnchorSet = view.picked[key]
        return choice

    def _pick(self, view: TensorView, seed: int) -> AnchorSet:
        return AnchorSet.plain(batch_anchors(view.union, self.rule, self.k, seed))


class NamedPicker(Picker):
    """Anchors by name, in one graph. `find` looks the names up among those of its nodes."""

    def __init__(self, names: list[str]) -> None:
        super().__init__()
        self.names = names
        self.nodes: IntArray | None = None

    def keeps_anchors(self, reads_positions: bool) -> bool:
        """Keep what was given."""
        return True

    def find(self, node_names: Sequence[Sequence[str]]) -> None:
        """Look up the anchors in the graph that is picked from next, given by the names of its nodes."""
        self.nodes = named_anchors(self.names, node_names)

    def forward(
        self, view: TensorView, generator: torch.Generator | None = None, exploration: float = 0.0
    ) -> AnchorSet:
        """Give the anchors; the view does not matter."""
        if self.nodes is None:
            raise InputError("anchors by name need the names of the nodes; build the model with build_model")
        return AnchorSet.plain(self.nodes[None])


class RandomSets(Picker):
    """P-GNN's anchors: random sets of N / 2, N / 4, ... nodes.

    There are ``copies`` sets of each size, or as many as there are sizes: log^2 N in all. In training they are drawn
    anew in every step; in evaluation the seed fixes them. With ``levels``, every graph has sets of that many sizes,
    whatever its own size.
    """

    def __init__(self, seed: int = 0, levels: int | None = None, copies: int | None = None) -> None:
        super().__init__()
        self.seed, self.levels, self.copies = seed, levels, copies

    def resize(self, width: int, largest: int) -> None:
        """Draw sets of as many sizes as make `width` sets."""
        self.levels = round(width**0.5) if self.copies is None else width // self.copies

    def forward(
        self, view: TensorView, generator: torch.Generator | None = None, exploration: float = 0.0
    ) -> RandomAnchorSets:
        """Draw the sets of every graph of the view."""
        seed = int(torch.randint(2**31, (1,), generator=generator)) if self.training else self.seed
        rng = np.random.default_rng([seed, 1 + self.training])
        levels = np.maximum(np.log2(view.union.sizes).astype(np.int64), 1)
        if self.levels is not None:
            levels = np.full_like(levels, self.levels)
        copies = levels if self.copies is None else np.full_like(levels, self.copies)
        lanes: list[list[IntArray]] = [[] for _ in range(int((levels * copies).max()))]
        weight = torch.zeros(view.union.num_graphs, len(lanes))
        for g, (size, count, same) in enumerate(zip(view.union.sizes, levels, copies, strict=True)):
            weight[g, : count * same] = 1
            for j in range(count * same):
                members = max(int(size) >> (1 + j // int(same)), 1)
                lanes[j].append(view.union.ptr[g] + rng.choice(size, members, replace=False))
        starts = np.cumsum([0, *(sum(part.size for part in lane) for lane in lanes)])
        nodes = np.concatenate([part for lane in lanes for part in lane]).astype(np.int64)
        return RandomAnchorSets(nodes, starts, weight.to(view.x))


class ScorePicker(Picker):
    r"""The paper's anchor selection: a GNN scores every node, the K largest are the anchors.

    .. math:: o = n(f_1(x^{(D)})) + \alpha \, \epsilon

    with n the L2 norm over a graph's nodes. `estimator` is how gradients reach the scorer:

    - ``gate``: an anchor's messages are multiplied by the sigmoid of its score;
    - ``straight-through``: they are passed on as they are, and the gradient goes to that sigmoid;
    - ``simple``: an exact sample of K nodes forward, the exact marginals backward (Ahmed et al. 2023);
    - ``reinforce``: the score-function gradient of the same distribution; the caller supplies the baseline.

    With ``unit_scores`` the scores have unit variance instead of unit norm: the paper's noise of alpha = 0.5
    drowns scores of about 1 / sqrt(N). With ``anneal`` the noise fades, with ``structural`` the scorer also
    sees `structural_features`: from constant features, GENConv gives every node the same score.
    """

    def __init__(
        self,
        in_channels: int,
        k: int | str,
        *,
        estimator: str = "gate",
        conv: str = "gen",
        hidden: int = 32,
        layers: int = 3,
        noise: float = 0.5,
        anneal: bool = False,
        unit_scores: bool = False,
        structural: bool = False,
        seed: int = 0,
    ) -> None:
        super().__init__()
        if estimator not in ESTIMATORS:
            raise unknown_name("estimator", estimator, ESTIMATORS)
        self.k, self.estimator, self.noise, self.anneal = k, estimator, noise, anneal
        self.unit_scores, self.structural, self.seed = unit_scores, structural, seed
        in_channels += STRUCTURAL_FEATURES if structural else 0
        widths = [in_channels] + [hidden] * layers
        self.convs = nn.ModuleList(make_conv(conv, a, b) for a, b in pairwise(widths))
        self.affine = nn.Linear(hidden, 1)

    def scores(self, view: TensorView) -> torch.Tensor:
        """Normalised scores of the nodes, ``[N]``."""
        x = torch.cat([view.x, _structure(view)], dim=1) if self.structural else view.x
        for conv in self.convs:
            x = torch.relu(conv(x, view))
        scores = self.affine(x)[:, 0]
        squares = scores.new_zeros(view.union.num_graphs).index_add(0, view.graph, scores**2)
        if self.unit_scores:
            # Deviates: scores of unit norm are about 1 / sqrt(N), and the noise drowns them.
            squares = squares / view.sizes
        return torch.as_tensor(scores / squares.clamp_min(1e-12).sqrt()[view.graph])

    def forward(
        self, view: TensorView, generator: torch.Generator | None = None, exploration: float = 0.0
    ) -> AnchorSet:
        """Pick in every graph of the view."""
        scores = self.scores(view)
        many = anchor_counts(view.union, self.k)
        if not self.training:
            # Deviates: the paper does not say what happens to ties, nor that evaluation has no noise.
            # On constant features nodes differ by rounding, which batch norm enlarges, more than by anything else.
            digits = 6 if self.structural or view.has_features else 3
            levels = scores.detach().cpu().numpy()
            if not np.isfinite(levels).all():
                raise InputError(
                    "the scores of anchors are not numbers any more; train again, with a lower lr"
                )
            nodes = torch.from_numpy(spread_top_k(view, levels, many, self.seed, digits=digits))
            return self._weighted(scores, nodes.to(scores.device))
        if self.estimator in ("simple", "reinforce"):
            return self._sampled(view, scores, many, generator)
        noise = torch.randn(scores.shape, generator=generator).to(scores.device)
        size = self.noise * (exploration if self.anneal else 1.0)
        return self._weighted(scores, _top_k(view, scores.detach() + size * noise, many))

    def _weighted(self, scores: torch.Tensor, nodes: torch.Tensor) -> AnchorSet:
        """Weights that pass gradients to the scores of the anchors."""
        present = nodes >= 0
        if self.estimator in ("simple", "reinforce"):
            return AnchorSet(nodes, present.to(scores.dtype))
        gates = torch.sigmoid(scores[nodes.clamp_min(0)])
        if self.estimator == "straight-through":
            gates = 1 + gates - gates.detach()
        return AnchorSet(nodes, torch.where(present, gates, 0))

    def _sampled(
        self, view: TensorView, scores: torch.Tensor, many: IntArray, generator: torch.Generator | None
    ) -> AnchorSet:
        """A sample of the k-subset distribution; the larger the noise, the flatter it is."""
        logits = view.pad(scores / max(self.noise, 1e-3))
        subset = KSubset(logits, view.sizes, torch.from_numpy(many).to(logits.device))
        chosen = subset.sample(generator)
        order = torch.where(chosen, logits.detach(), -torch.inf)
        nodes = _largest(view, order, many)
        present = nodes >= 0
        if self.estimator == "reinforce":
            return AnchorSet(nodes, present.to(scores.dtype), subset.log_prob(chosen))
        marginals = subset.marginals()[view.graph, view.places][nodes.clamp_min(0)]
        return AnchorSet(nodes, torch.where(present, 1 + marginals - marginals.detach(), 0))


def _structure(view: TensorView) -> torch.Tensor:
    """`structural_features` as a tensor."""
    return torch.from_numpy(structural_features(view)).to(view.x)


def _largest(view: TensorView, rows: torch.Tensor, many: IntArray) -> torch.Tensor:
    """GraphBatch ids of the largest entries of each graph's row ``[G, n]``, ``many`` of them, padded with -1."""
    places = rows.topk(int(many.max()), dim=1).indices
    starts = torch.from_numpy(view.union.ptr[:-1, None]).to(rows.device)
    absent = torch.arange(places.size(1)) >= torch.from_numpy(many[:, None])
    return (places + starts).masked_fill(absent.to(rows.device), -1)


def _top_k(view: TensorView, scores: torch.Tensor, many: IntArray) -> torch.Tensor:
    return _largest(view, view.pad(scores, fill=-torch.inf), many)


def spread_top_k(
    view: TensorView, scores: np.ndarray, many: IntArray, seed: int = 0, *, digits: int = 6
) -> IntArray:
    """The best nodes of every graph, ``[G, K]`` padded with -1; of equals, the farthest from those picked.

    An equivariant scorer gives symmetric nodes equal scores, and their first K would lie side by side. Nodes
    equally far as well are taken in a random order that the seed fixes.
    """
    largest = np.maximum.reduceat(np.abs(scores), view.union.ptr[:-1])
    levels = np.round(scores / np.maximum(largest, 1e-12)[view.union.graph_of], digits)
    nearest = np.full(scores.size, np.iinfo(np.int16).max, np.int16)
    nodes = np.full((view.union.num_graphs, int(many.max())), -1, np.int64)
    for j in range(nodes.shape[1]):
        nodes[:, j] = np.where(j < many, _best_of_equals(view, levels, nearest, seed), -1)
        hops = view.oracle.hops(nodes[:, j : j + 1])[:, 0]
        nearest = np.where(hops >= 0, np.minimum(nearest, hops), nearest)
        levels[nodes[nodes[:, j] >= 0, j]] = -np.inf
    return nodes


def _best_of_equals(view: TensorView, scores: np.ndarray, nearest: np.ndarray, seed: int) -> IntArray:
    """The node of each graph with the largest score, then farthest from the anchors, then by a random order."""
    starts, graph = view.union.ptr[:-1], view.union.graph_of
    left = np.ones(scores.size, bool)
    for key in (scores, nearest, np.random.default_rng(seed).permutation(scores.size)):
        lowest = np.where(left, key, key.min())
        left &= key == np.maximum.reduceat(lowest, starts)[graph]
    return np.flatnonzero(left)


class SequentialPicker(Picker):
    r"""Anchors one after another: each score also sees where the anchors so far are.

    .. math:: p(a_j = v \mid a_{<j}) \propto \exp \text{MLP}(\text{structure}(v), \text{dynamic}(v, a_{<j}))

    The dynamic features are the distance to the nearest anchor so far, the mean proximity to them, and how
    many nodes share v's distances to all of them. So symmetric nodes stop being equal once an anchor is near
    one of them. In training anchors are sampled and ``log_prob`` is set for score-function gradients; in
    evaluation the most likely is taken, and of equals the farthest from the anchors so far.
    """

    DYNAMIC_FEATURES = 3

    def __init__(self, k: int | str, *, hidden: int = 32, seed: int = 0) -> None:
        super().__init__()
        self.k, self.seed = k, seed
        width = STRUCTURAL_FEATURES + self.DYNAMIC_FEATURES
        self.mlp = nn.Sequential(nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, 1))

    def forward(
        self, view: TensorView, generator: torch.Generator | None = None, exploration: float = 0.0
    ) -> AnchorSet:
        """Pick in every graph of the view."""
        return self.sample(view, generator, exploration, 1)[0]

    def sample(
        self, view: TensorView, generator: torch.Generator | None, exploration: float, samples: int
    ) -> list[AnchorSet]:
        """Several independent choices (all equal in evaluation), for little more than the cost of one."""
        many = anchor_counts(view.union, self.k)
        starts = view.union.ptr[:-1]
        static = _structure(view).expand(samples, -1, -1)
        state = _PickingState(view, samples)
        nodes = np.full((samples, view.union.num_graphs, int(many.max())), -1, np.int64)
        log_prob = static.new_zeros(samples, view.union.num_graphs)
        for j in range(nodes.shape[2]):
            logits = self.mlp(torch.cat([static, state.features().to(static)], dim=2))[..., 0]  # [S, N]
            logits = logits.masked_fill(torch.from_numpy(state.taken).to(static.device), -1e9)
            if self.training:
                rows = torch.stack([view.pad(row, fill=-1e9) for row in logits])  # [S, G, n]
                noise = torch.rand(rows.shape, generator=generator).clamp_min(1e-20).to(rows)
                places = (rows.detach() - torch.log(-torch.log(noise))).argmax(dim=2, keepdim=True)
                step = torch.log_softmax(rows, dim=2).gather(2, places)[..., 0]
                log_prob = log_prob + torch.where(torch.from_numpy(j < many).to(step.device), step, 0)
                picked = starts + places[..., 0].cpu().numpy()
            else:
                scores = np.round(logits.detach().cpu().numpy(), 5)
                picked = np.stack(
                    [
                        _best_of_equals(view, *row, self.seed)
                        for row in zip(scores, state.nearest, strict=True)
                    ]
                )
            nodes[:, :, j] = np.where(j < many, picked, -1)
            state.add(nodes[:, :, j])
        tables = torch.from_numpy(nodes).to(static.device)
        present = (tables >= 0).to(static)
        return [
            AnchorSet(table, weight, row if self.training else None)
            for table, weight, row in zip(tables, present, log_prob, strict=True)
        ]


class _PickingState:
    """What is known of every node while anchors are being picked; each of S samples has a row."""

    def __init__(self, view: TensorView, samples: int) -> None:
        self.view = view
        shape = samples, view.union.num_nodes
        self.taken = np.zeros(shape, bool)
        self.nearest = np.full(shape, np.iinfo(np.int16).max, np.int16)
        self.proximity = np.zeros(shape)
        self.classes = np.tile(view.union.graph_of, (samples, 1))
        self.farthest = np.ones((samples, view.union.num_graphs))
        self.count = 0

    def add(self, picked: IntArray) -> None:
        """Take in the next anchor of every graph, ``[S, G]`` (-1: none)."""
        hops = self.view.oracle.hops(picked.T).T  # [S, N]
        self.nearest = np.where(hops >= 0, np.minimum(self.nearest, hops), self.nearest)
        self.proximity += (hops >= 0) / np.maximum(1.0 + hops, 1)
        self.classes = self.classes * (int(hops.max()) + 2) + hops + 1
        for row in range(picked.shape[0]):
            self.classes[row] = np.unique(self.classes[row], return_inverse=True)[1]
            self.taken[row, picked[row][picked[row] >= 0]] = True
        self.farthest = np.maximum(self.farthest, np.maximum.reduceat(hops, self.view.union.ptr[:-1], axis=1))
        self.count += 1

    def features(self) -> torch.Tensor:
        """Nearest anchor, mean proximity to anchors, share of the graph with the same distances; ``[S, N, 3]``."""
        union = self.view.union
        equals = np.stack([np.bincount(row)[row] for row in self.classes])
        columns = [
            np.minimum(self.nearest / self.farthest[:, union.graph_of], 2.0),
            self.proximity / max(self.count, 1),
            np.log(equals) / np.log(np.maximum(union.sizes, 2))[union.graph_of],
        ]
        return torch.from_numpy(np.stack(columns, axis=2))
