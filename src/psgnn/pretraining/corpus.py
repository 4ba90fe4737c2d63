"""What is learnt from: synthetic graphs with hidden links, and what is measured about these and other pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from psgnn.console import progress
from psgnn.datasets.families import FAMILIES, draw
from psgnn.errors import unknown_name
from psgnn.graph import Adjacency, Union
from psgnn.nn.choices import Choice
from psgnn.nn.context import context_columns, context_of
from psgnn.nn.models import PositionModel
from psgnn.nn.positions import Positions, positions_of
from psgnn.nn.statistics import pair_statistics_of
from psgnn.nn.view import View
from psgnn.sampling import NonEdges, distinct_integers

HIDDEN = (0.1, 0.3)  # share of the links
MOST_LINKS = 400  # that are asked about, in each graph
KEPT = 16  # graphs of a family whose positions stay in memory, for embeddings
CHECKED = 10  # one graph of so many is kept from training, to see how it goes
LARGE = 10  # one graph of so many is large


@dataclass(frozen=True, eq=False)
class Lesson:
    """A graph without its hidden links; pairs ``[2, P]`` that are linked (label 1) or not, and what is known of them.

    ``statistics [P, S]``, ``context [P, 1 + S + 13]`` and ``shape [13]`` are what a `ContextDecoder` reads.
    """

    family: str
    view: View | None
    choice: Choice
    pairs: torch.Tensor
    labels: torch.Tensor
    statistics: torch.Tensor
    context: torch.Tensor
    shape: torch.Tensor

    def without_view(self) -> Lesson:
        """The same in little memory."""
        return replace(self, view=None)


def make_lesson(
    family: str, model: PositionModel, rng: np.random.Generator, *, large: bool = False
) -> Lesson:
    """Draw a graph, hide some links and measure what `model` looks at."""
    graph = draw(family, rng, large=large)
    edges = graph.edges()
    hidden = np.zeros(edges.shape[1], np.bool_)
    hidden[distinct_integers(edges.shape[1], max(int(edges.shape[1] * rng.uniform(*HIDDEN)), 1), rng)] = True
    rows, cols = edges[:, ~hidden]
    union = Union.of_adjacencies([Adjacency.from_edges(rows, cols, graph.num_nodes)])
    view = View(union, torch.ones(graph.num_nodes, 1))
    links = rng.permutation(edges[:, hidden], axis=1)[:, :MOST_LINKS]
    pool = NonEdges(union.ptr, edges)
    others = pool.unrank(np.sort(distinct_integers(int(pool.sizes.sum()), links.shape[1], rng)))
    pairs = torch.from_numpy(np.concatenate([links, others], axis=1))
    labels = torch.cat([torch.ones(links.shape[1]), torch.zeros(others.shape[1])])
    choice = model.pick(view)
    assert isinstance(choice, Choice)
    positions: Positions = positions_of(view, choice, model.encoder.parts)  # type: ignore[arg-type]
    statistics = pair_statistics_of(positions, pairs)
    context = context_columns(positions, pairs.numpy(), statistics.numpy(), strict=False)
    shape = torch.from_numpy(context_of(positions).shape[0])
    return Lesson(family, view, choice, pairs, labels, statistics, context, shape)


def make_corpus(
    model: PositionModel,
    graphs: int,
    seed: int,
    *,
    without: Sequence[str] = (),
    large: bool = True,
    show_progress: bool = False,
) -> list[Lesson]:
    """So many lessons of every family but those left out, some on `large` graphs.

    Each depends on the seed, its family and its number alone.
    """
    for name in without:
        if name not in FAMILIES:
            raise unknown_name("family", name, FAMILIES)
    wanted = [
        (place, family, i)
        for place, family in enumerate(FAMILIES)
        if family not in without
        for i in range(graphs)
    ]
    lessons = []
    for place, family, i in progress(wanted, "drawing graphs", show=show_progress):
        big = large and i % LARGE == LARGE // 2
        lesson = make_lesson(family, model, np.random.default_rng([seed, place, i]), large=big)
        lessons.append(lesson if i < KEPT and not big else lesson.without_view())
    return lessons
