"""A model is three parts: a picker, an encoder and a decoder. The named models are combinations of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from psgnn.nn.choices import AnyChoice
from psgnn.nn.config import MODELS, PRESETS, ModelConfig, make_config
from psgnn.nn.decoders import DECODERS
from psgnn.nn.encoders import AnchorEncoder, ConvEncoder
from psgnn.nn.pickers import RandomSets, RulePicker, ScorePicker, SequentialPicker
from psgnn.nn.view import View, features
from psgnn.tasks import Task

__all__ = ["MODELS", "PRESETS", "PositionModel", "build_model", "model_of"]


class PositionModel(nn.Module):
    """Embeddings of the nodes of a view, and scores of pairs of them."""

    def __init__(
        self, config: ModelConfig, picker: nn.Module | None, encoder: nn.Module, decoder: nn.Module
    ) -> None:
        super().__init__()
        self.config = config
        self.picker = picker
        self.encoder = encoder
        self.decoder = decoder

    def pick(
        self, view: View, generator: torch.Generator | None = None, exploration: float = 0.0
    ) -> AnyChoice | None:
        """Anchors for the view; None for models without."""
        if self.picker is None:
            return None
        choice: AnyChoice = self.picker(view, generator, exploration)
        return choice

    def explore(
        self, view: View, generator: torch.Generator, exploration: float, samples: int
    ) -> Sequence[AnyChoice | None]:
        """Several choices of anchors for one training step."""
        if isinstance(self.picker, SequentialPicker):
            return self.picker.sample(view, generator, samples)
        return [self.pick(view, generator, exploration) for _ in range(samples)]

    def forward(self, view: View, choice: AnyChoice | None) -> torch.Tensor:
        """Embeddings ``[N, d]`` of the nodes."""
        h: torch.Tensor = self.encoder(view, choice)
        return h

    def score(self, h: torch.Tensor, pairs: torch.Tensor) -> torch.Tensor:
        """Logits ``[P]`` of the pairs ``[2, P]``."""
        scores: torch.Tensor = self.decoder(h, pairs)
        return scores


def build_model(name: str, task: Task, preset: str = "best", seed: int = 0, **options: Any) -> PositionModel:
    """A fresh model for a task.

    Args:
        name: psgnn, pgnn, agnn, gcn, sage, gat or gin.
        task: decides the number of features and the paper's hyperparameters.
        preset: ``best`` or ``paper``.
        seed: of the initial weights and of everything that is random in the model.
        options: any field of `psgnn.nn.config.ModelConfig`, such as ``anchors="log2"`` or ``estimator="simple"``.
    """
    in_channels = features(task.graphs).size(1)
    return model_of(make_config(name, task.name, in_channels, preset, seed, **options))


def model_of(config: ModelConfig) -> PositionModel:
    """A fresh model of exactly these settings; the global random state is left as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        return PositionModel(config, _picker(config), _encoder(config), DECODERS[config.decoder]())


def _picker(config: ModelConfig) -> nn.Module | None:
    if config.picker == "none":
        return None
    if config.picker == "random-sets":
        return RandomSets(config.seed)
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


def _encoder(config: ModelConfig) -> nn.Module:
    sizes = config.in_channels, config.hidden, config.layers
    common: dict[str, Any] = {"dropout": config.dropout, "batch_norm": config.batch_norm}
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
