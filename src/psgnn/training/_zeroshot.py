"""Weights that come with the package, on graphs that they have never seen."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch_geometric.data import Data

from psgnn.distances._propagation import Floats
from psgnn.errors import InputError
from psgnn.graph._graph import GraphBatch
from psgnn.models._config import check_config
from psgnn.models._decoders import ContextDecoder
from psgnn.models._models import PositionModel, model_of
from psgnn.models._weights import Weights, read_weights
from psgnn.positions._context import SHAPE, context_of, lessons_of
from psgnn.positions._measure import positions_of
from psgnn.positions._view import View
from psgnn.training._devices import fitting_threads
from psgnn.training._results import Result, names_of

log = logging.getLogger(__name__)

MOST_SETS, SETS_OF_NODES = 3, 60_000
SLACK = 0.05  # of a range, that a graph may lie outside of it without a warning


@dataclass(frozen=True, eq=False)
class Pretrained:
    """A model that needs no training: ``pretrained("best-link").on([graph])`` scores and embeds like a trained one.

    ``best-link`` says which nodes are linked, ``best-pair`` which belong together.

    ``about`` says what the weights were trained on and how.
    """

    model: PositionModel
    about: dict[str, Any]

    @torch.no_grad()
    def on(self, graphs: Sequence[Data], *, strict: bool = False) -> Result:
        """The model on graphs; their node features are not looked at.

        Unless `strict`, or if there are too few links, weights for links also hide some of the graphs' own links,
        look at how they differ from other pairs, and correct the scores by what would have found them. No weight of
        the network is changed by that.
        """
        return self.on_union(GraphBatch.of(graphs), names_of(graphs), strict=strict)

    @torch.no_grad()
    def on_union(
        self, union: GraphBatch, names: list[list[str]], *, strict: bool = False, sets: int | None = None
    ) -> Result:
        """The same on graphs that are laid side by side already.

        What one set of anchors does not see another does, so scores are the mean over so many `sets`; by default over
        `MOST_SETS`, and over fewer where the graph is large.
        """
        strict = strict or self.model.config.task != "link"
        if sets is None:
            sets = min(max(SETS_OF_NODES // max(union.num_nodes, 1), 1), MOST_SETS)
        with fitting_threads(union.num_nodes):
            first, *others = [self._seen(union, names, strict, place) for place in range(sets)]
        return replace(first, others=tuple(others))

    def _seen(self, union: GraphBatch, names: list[list[str]], strict: bool, place: int) -> Result:
        """The model on a union, from the anchors of one place in the order of sets."""
        view = View(union, torch.ones(union.num_nodes, 1))
        seed = self.model.config.seed + place
        model = model_of(self.model.config.model_copy(update={"strict": strict, "seed": seed}))
        model.load_state_dict(self.model.state_dict())
        model.eval()
        choice = model.pick(view)
        positions = positions_of(view, choice, model.encoder.parts)  # type: ignore[arg-type]
        if place == 0:
            self._warn_of_unusual(context_of(positions).shape)
        if not strict:
            model.decoder.correct(lessons_of(positions))  # type: ignore[operator]
        record = {"pretrained": self.about["name"], "strict": strict, "seed": self.model.config.seed}
        return Result(model, view, choice, {}, {}, [], record, names)

    def _warn_of_unusual(self, shapes: Floats) -> None:
        """Say in which respects graphs of these shapes are unlike all that was learnt from."""
        unusual = []
        for name, values in zip(SHAPE, shapes.T, strict=True):
            low, high = self.about["range"][name]
            slack = SLACK * (high - low)
            outside = values[(values < low - slack) | (values > high + slack)]
            if outside.size:
                unusual.append(f"{name} {float(outside[0]):.2f} (learnt from {low:.2f} to {high:.2f})")
        if unusual:
            log.warning(
                "the graph is unlike those that the weights %s learnt from: %s; trust the scores less, or train",
                self.about["name"],
                ", ".join(unusual),
            )


def pretrained(name: str = "best-link") -> Pretrained:
    """The weights of this name, as a model for any graph.

    >>> result = psgnn.pretrained("best-link").on([graph])
    >>> result.score(torch.tensor([[0, 1], [2, 3]]))
    """
    return from_weights(read_weights(name), name)


def from_weights(weights: Weights, name: str) -> Pretrained:
    """The same from weights that were read already."""
    try:
        model = model_of(check_config(weights.about["config"]))
        model.load_state_dict(weights.tensors)
        if not isinstance(model.decoder, ContextDecoder) or set(weights.about["range"]) != set(SHAPE):
            raise ValueError("they are of another kind")
    except (RuntimeError, KeyError, TypeError, ValueError) as error:
        reason = " ".join(str(error).split())[:100]
        raise InputError(f"the weights {name} are damaged ({reason}); install psgnn again") from None
    model.eval()
    return Pretrained(model, weights.about)
