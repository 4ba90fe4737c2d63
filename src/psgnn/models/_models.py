"""A model is three parts: a picker, an encoder and a decoder. The named models are combinations of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from psgnn.anchors._rules import named_anchors
from psgnn.models._anchor_sets import AnyAnchors, channels_of
from psgnn.models._boosted import LearnedPicker
from psgnn.models._channels import ChannelEncoder, DirectedEncoder
from psgnn.models._config import LEARNED_PICKERS, ModelConfig, make_config
from psgnn.models._decoders import ContextDecoder, DistanceDecoder, DotDecoder, SetDecoder
from psgnn.models._encoders import AnchorEncoder, ConvEncoder
from psgnn.models._interfaces import Decoder, Encoder, Picker
from psgnn.models._pickers import NamedPicker, RandomSets, RulePicker, ScorePicker, SequentialPicker
from psgnn.models._states import NodeStates, ProductDecoder, StateEncoder
from psgnn.models._view import TensorView
from psgnn.positions._context import RIVAL
from psgnn.positions._kinds import is_ordered
from psgnn.positions._measure import Parts, Positions
from psgnn.positions._view import features_of
from psgnn.scoring._network import read_weights
from psgnn.tasks import Task

PAIR_BLOCK = 2**12  # pairs whose rows are in memory at once


class PositionModel(nn.Module):
    """Embeddings of the nodes of a view, and scores of pairs of them."""

    def __init__(
        self, config: ModelConfig, picker: Picker | None, encoder: Encoder, decoder: Decoder
    ) -> None:
        super().__init__()
        self.config = config
        self.picker = picker
        self.encoder = encoder
        self.decoder = decoder
        # What makes embeddings comparable where the pair decoder does not read them.
        two = encoder.two_ends
        self.embedding_decoder = DistanceDecoder(halves=two) if decoder.similarity is None else None

    @property
    def fixed_anchors(self) -> bool:
        """Whether all steps have the anchors of the visible graph."""
        return self.picker is not None and self.picker.keeps_anchors(self.encoder.reads_positions)

    def find_anchors(self, node_names: Sequence[Sequence[str]]) -> None:
        """Look up anchors that were given by name among the nodes of the graphs that are picked from next."""
        if self.picker is not None:
            self.picker.find(node_names)

    def pick(
        self, view: TensorView, generator: torch.Generator | None = None, exploration: float = 0.0
    ) -> AnyAnchors | None:
        """Anchors for the view; None for models without."""
        if self.picker is None:
            return None
        choice: AnyAnchors = self.picker(view, generator, exploration)
        return choice

    def explore(
        self, view: TensorView, generator: torch.Generator, exploration: float, samples: int
    ) -> Sequence[AnyAnchors | None]:
        """Several choices of anchors for one training step."""
        if self.picker is None:
            return [None] * samples
        return self.picker.sample(view, generator, exploration, samples)

    def forward(self, view: TensorView, choice: AnyAnchors | None) -> torch.Tensor:
        """Embeddings ``[N, d]`` of the nodes."""
        h: torch.Tensor = self.encoder(view, choice)
        return h

    def score(self, view: TensorView, choice: AnyAnchors | None, pairs: torch.Tensor) -> torch.Tensor:
        """Logits ``[P]`` of the pairs ``[2, P]``."""
        scores: torch.Tensor = self.decoder(*self._read(view, choice, pairs))
        return scores

    @torch.no_grad()
    def predict(self, view: TensorView, choice: AnyAnchors | None, pairs: torch.Tensor) -> torch.Tensor:
        """`score` without gradients, in blocks where pairs are scored one by one."""
        if not self.encoder.reads_positions:
            return self.score(view, choice, pairs)
        blocks = torch.split(pairs, PAIR_BLOCK, dim=1)
        return torch.cat([self.score(view, choice, block) for block in blocks])

    @torch.no_grad()
    def predict_embedded(
        self, view: TensorView, choice: AnyAnchors | None, pairs: torch.Tensor
    ) -> torch.Tensor:
        """Logits ``[P]`` from the embeddings alone, of which only those of a block of pairs are in memory at once."""
        decoder = self.embedding_decoder or self.decoder
        blocks = torch.split(pairs, PAIR_BLOCK, dim=1)
        return torch.cat([decoder(*self.embedded(view, choice, block)) for block in blocks])

    def embedding_score(self, h: torch.Tensor, pairs: torch.Tensor) -> torch.Tensor:
        """Logits ``[P]`` of pairs ``[2, P]`` from the embeddings ``h [N, d]`` alone: their dot product or distance."""
        decoder = self.embedding_decoder or self.decoder
        return torch.cat([decoder(h, block) for block in torch.split(pairs, PAIR_BLOCK, dim=1)])

    def loss(
        self, view: TensorView, choice: AnyAnchors | None, pairs: torch.Tensor, labels: torch.Tensor
    ) -> torch.Tensor:
        """The loss of the scores; with a set decoder, that of the embeddings is added."""
        loss = self._loss(self.decoder.member_scores(*self._read(view, choice, pairs)), pairs, labels)
        if self.embedding_decoder is not None:
            some = slice(None, None, self.config.embed_every)
            scores = self.embedding_decoder(*self.embedded(view, choice, pairs[:, some]))
            loss = loss + self._loss(scores[:, None], pairs[:, some], labels[some])
        return loss

    def _loss(self, scores: torch.Tensor, pairs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """The loss of each member's scores ``[P, M]``, and of links against their rivals where there are any."""
        measure = LOSSES[self.config.loss]
        if not self.config.rivals:
            return measure(scores, labels)
        asked, loss = labels != RIVAL, rivalry(scores, pairs[0], labels)
        return loss + measure(scores[asked], labels[asked]) if bool(asked.any()) else loss

    def calibrate(self, view: TensorView, choice: AnyAnchors | None, pairs: torch.Tensor) -> None:
        """Take in the scale of what is measured about training pairs, before the first step.

        Pretrained weights have the scales that they were trained with.
        """
        if self.config.init == "pretrained" or not self.encoder.reads_positions:
            return
        positions = self.positions(view, choice)
        self.encoder.calibrate(positions)
        self.decoder.calibrate(positions, pairs)

    def positions(self, view: TensorView, choice: AnyAnchors | None) -> Positions:
        """What is measured about the nodes of a view, where the encoder reads channels."""
        return channels_of(view, choice, self.encoder.parts)  # type: ignore[arg-type]

    def _read(
        self, view: TensorView, choice: AnyAnchors | None, pairs: torch.Tensor
    ) -> tuple[torch.Tensor | Positions, torch.Tensor]:
        """What the decoder reads, and the pairs as places in it."""
        if self.decoder.similarity is None:
            return self.positions(view, choice), pairs
        return self.embedded(view, choice, pairs)

    def embedded(
        self, view: TensorView, choice: AnyAnchors | None, pairs: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Embeddings, and the pairs as places among them; only those of their nodes, where the encoder can."""
        if self.encoder.reads_positions:
            nodes, places = torch.unique(pairs, return_inverse=True)
            return self.encoder(view, choice, nodes), places
        return self.encoder(view, choice), pairs


def cross_entropy(scores: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Binary cross-entropy of each member's scores ``[P, M]``."""
    return nn.functional.binary_cross_entropy_with_logits(scores, labels[:, None].expand_as(scores))


def pairwise(scores: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    r"""Mean of :math:`(1 - s_+ + s_-)^2` over pairs of a positive and a negative, of each member's scores ``[P, M]``.

    Positives take turns until every negative has one. A step with pairs of one class alone has nothing to compare.
    """
    positive, negative = scores[labels == 1], scores[labels == 0]
    if not len(positive) or not len(negative):
        return 0 * scores.sum()
    partner = torch.arange(max(len(positive), len(negative)), device=scores.device)
    gaps = positive[partner % len(positive)] - negative[partner % len(negative)]
    return (1 - gaps).square().mean()


def rivalry(scores: torch.Tensor, firsts: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    r"""Mean of :math:`\log(1 + e^{s_- - s_+})` over rivals and links of the same first node, of scores ``[P, M]``.

    What is added to all scores of a node changes nothing: this is about the partners of a node, and cross-entropy
    about which nodes have links too.
    """
    links, rivals = (labels == 1).nonzero()[:, 0], (labels == RIVAL).nonzero()[:, 0]
    if not len(links) or not len(rivals):
        return 0 * scores.sum()
    links = links[firsts[links].argsort(stable=True)]
    place = torch.searchsorted(firsts[links], firsts[rivals]).clamp(max=len(links) - 1)
    same = firsts[links[place]] == firsts[rivals]
    gaps = scores[rivals[same]] - scores[links[place[same]]]
    return nn.functional.softplus(gaps).sum() / max(gaps.numel(), 1)


LOSSES = {"cross-entropy": cross_entropy, "pairwise": pairwise}


def build_model(name: str, task: Task, preset: str = "best", seed: int = 0, **options: Any) -> PositionModel:
    """Build a fresh model for a task.

    Args:
        name: psgnn, pgnn, agnn, gcn, sage, gat or gin.
        task: Decides the number of features and the paper's hyperparameters.
        preset: ``best``, ``learned`` or ``paper``.
        seed: Of the initial weights and of everything that is random in the model.
        options: Any field of `psgnn.models._config.ModelConfig`, such as ``anchors="log^2"`` or
            ``estimator="simple"``. ``anchors=["Ada", "Rune"]`` are anchors of your own, in a task of one graph.
    """
    names = [graph.names for graph in task.graphs]
    if isinstance(options.get("anchors"), (list, tuple, np.ndarray)):
        options["anchors"] = [names[0][v] for v in named_anchors(options["anchors"], names)]
    in_channels = features_of(task.graphs).shape[1]
    large = task.union.large
    config = make_config(name, task.name, in_channels, preset, seed, large=large, **options)
    if (
        config.encoder == "channels"
        and config.init == "fresh"
        and task.union.kinds is not None
        and "kinds" not in options
    ):
        kinds = list(task.union.kinds.names)
        settings = {"rivals": is_ordered(tuple(kinds)), **options, "kinds": kinds}
        config = config.model_copy(update={key: settings[key] for key in ("rivals", "kinds")})
    if config.states:
        config = config.model_copy(update={"nodes": task.union.num_nodes})
    model = model_of(config)
    model.find_anchors(names)
    if model.config.init == "pretrained":
        shipped = read_weights(f"best-{task.name}").tensors
        model.load_state_dict({name: torch.from_numpy(value) for name, value in shipped.items()})
    return model


def model_of(config: ModelConfig) -> PositionModel:
    """A fresh model of exactly these settings; the global random state is left as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        return PositionModel(config, _picker(config), _encoder(config), _decoder(config))


def _picker(config: ModelConfig) -> Picker | None:
    if config.picker == "none":
        return None
    if config.picker == "random-sets":
        return RandomSets(config.seed, copies=config.sets_per_size)
    if isinstance(config.anchors, list):
        return NamedPicker(config.anchors)
    if config.picker in LEARNED_PICKERS:
        return LearnedPicker(config.picker, config.anchors, config.seed)
    if config.picker == "sequential":
        return SequentialPicker(config.anchors, hidden=config.scorer_hidden, seed=config.seed)
    if config.picker == "score":
        return ScorePicker(
            config.in_channels,
            config.anchors,
            estimator=config.estimator,
            conv=config.scorer,
            hidden=config.scorer_hidden,
            layers=config.scorer_layers,
            noise=config.noise,
            anneal=config.anneal,
            unit_scores=config.unit_scores,
            structural=config.structural,
            seed=config.seed,
        )
    return RulePicker(config.picker, config.anchors, config.seed, redraw=config.picker == "random")


def _encoder(config: ModelConfig) -> Encoder:
    sizes = config.in_channels, config.hidden, config.layers
    common: dict[str, Any] = {"dropout": config.dropout, "batch_norm": config.batch_norm}
    if config.encoder == "states":
        return StateEncoder(config.nodes, config.states, **_state_options(config))
    if config.encoder == "channels":
        encoder = DirectedEncoder if "directed" in config.kinds else ChannelEncoder
        return encoder(
            _parts(config), config.hidden, dropout=config.dropout, in_channels=_feature_channels(config)
        )
    if config.picker == "none":
        return ConvEncoder(*sizes, conv=config.name, heads=config.heads, **common)
    # P-GNN weighs an anchor's features by one number and has no second map; the others follow the paper's f2, f3.
    is_pgnn = config.name == "pgnn"
    return AnchorEncoder(
        *sizes,
        cutoff=config.cutoff,
        normalize=config.normalize,
        center=config.center,
        anchor=config.anchor,
        scalar_distance=is_pgnn,
        second_map=not is_pgnn,
        **common,
    )


def _decoder(config: ModelConfig) -> Decoder:
    if config.decoder == "context":
        return ContextDecoder(
            _parts(config),
            config.hidden,
            dropout=config.dropout,
            members=config.members,
            strict=config.strict,
        )
    if config.decoder == "set":
        return SetDecoder(
            _parts(config),
            config.hidden,
            dropout=config.dropout,
            anchor_dropout=config.anchor_dropout,
            network=config.network,
            members=config.members,
            in_channels=_feature_channels(config),
            states=_states(config),
        )
    if config.decoder == "product":
        width = config.states if config.encoder == "states" else config.hidden
        return ProductDecoder(width, depth=config.state_depth, dropout=config.state_dropout)
    channels = config.encoder == "channels"
    halves = channels and "directed" in config.kinds
    return (
        DotDecoder(offset=channels, halves=halves)
        if config.decoder == "dot"
        else DistanceDecoder(halves=halves)
    )


def _state_options(config: ModelConfig) -> dict[str, Any]:
    return {
        "layers": config.state_layers,
        "dropout": config.state_dropout,
        "share": config.state_edges,
        "start": config.state_start,
    }


def _states(config: ModelConfig) -> NodeStates | None:
    if not config.states:
        return None
    return NodeStates(config.nodes, config.states, depth=config.state_depth, **_state_options(config))


def _parts(config: ModelConfig) -> Parts:
    known = {part.name: getattr(config, part.name) for part in dataclasses.fields(Parts)}
    shared = config.pair_features and _feature_channels(config) > 0
    return Parts(**{**known, "kinds": tuple(config.kinds), "pair_features": shared})


def _feature_channels(config: ModelConfig) -> int:
    """Columns of node features that are looked at; a single one is the constant that stands for none."""
    return config.in_channels if config.in_channels > 1 and config.features else 0
