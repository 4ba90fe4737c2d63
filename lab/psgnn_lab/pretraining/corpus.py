"""The pretraining data: synthetic graphs with hidden links or groups, and what is measured about pairs of nodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from psgnn.console import progress
from psgnn.errors import InputError, unknown_name
from psgnn.graph._graph import Adjacency, GraphBatch, IntArray
from psgnn.graph._sampling import NonEdges, distinct_integers
from psgnn.models._anchor_sets import AnchorSet, channels_of
from psgnn.models._models import PositionModel
from psgnn.models._view import TensorView, pair_statistics_of
from psgnn.positions._context import context_columns, context_of
from psgnn_lab.pretraining.families import FAMILIES, GROUPED, draw, draw_grouped
from psgnn_lab.pretraining.lesson import Lesson
from psgnn_lab.pretraining.store import LessonStore

HIDDEN = (0.1, 0.3)  # share of the links
MOST_LINKS = 400  # that are asked about, in each graph
MOST_TRIED = 100_000  # pairs of a graph among which those of one group are looked for
KEPT = 16  # graphs of a family whose positions stay in memory, for embeddings
CHECKED = 10  # one graph in this many is kept from training, to see how it goes
LARGE = 10  # one graph in this many is large


def make_lesson(
    family: str, model: PositionModel, rng: np.random.Generator, *, large: bool = False
) -> Lesson:
    """Draw a graph, hide some links and measure what `model` looks at."""
    graph = draw(family, rng, large=large)
    edges = graph.edges()
    hidden = np.zeros(edges.shape[1], np.bool_)
    hidden[distinct_integers(edges.shape[1], max(int(edges.shape[1] * rng.uniform(*HIDDEN)), 1), rng)] = True
    rows, cols = edges[:, ~hidden]
    union = GraphBatch.of_adjacencies([Adjacency.from_edges(rows, cols, graph.num_nodes)])
    view = TensorView(union, torch.ones(graph.num_nodes, 1))
    links = rng.permutation(edges[:, hidden], axis=1)[:, :MOST_LINKS]
    pool = NonEdges(union.ptr, edges)
    others = pool.unrank(np.sort(distinct_integers(int(pool.sizes.sum()), links.shape[1], rng)))
    return _lesson(family, model, view, links, others, strict=False)


def make_pair_lesson(family: str, model: PositionModel, rng: np.random.Generator) -> Lesson:
    """Draw a graph with groups and measure what `model` looks at, of pairs within groups and across."""
    graph, groups = draw_grouped(family, rng)
    union = GraphBatch.of_adjacencies([graph])
    pool = NonEdges(union.ptr, np.empty((2, 0), np.int64))  # all pairs of nodes
    total = int(pool.sizes.sum())
    tried = pool.unrank(distinct_integers(total, min(total, MOST_TRIED), rng))
    together = groups[tried[0]] == groups[tried[1]]
    count = min(int(together.sum()), int((~together).sum()), MOST_LINKS)
    view = TensorView(union, torch.ones(graph.num_nodes, 1))
    return _lesson(
        family, model, view, tried[:, together][:, :count], tried[:, ~together][:, :count], strict=True
    )


def _lesson(
    family: str, model: PositionModel, view: TensorView, ones: IntArray, zeros: IntArray, *, strict: bool
) -> Lesson:
    """What the model looks at of pairs ``[2, P]`` of the two kinds."""
    pairs = torch.from_numpy(np.concatenate([ones, zeros], axis=1))
    labels = torch.cat([torch.ones(ones.shape[1]), torch.zeros(zeros.shape[1])])
    choice = model.pick(view)
    assert isinstance(choice, AnchorSet)
    positions = channels_of(view, choice, model.encoder.parts)
    statistics = pair_statistics_of(positions, pairs)
    context = context_columns(positions, pairs.numpy(), statistics.numpy(), strict=strict)
    shape = torch.from_numpy(context_of(positions).shape[0])
    return Lesson(family, view, choice, pairs, labels, statistics, torch.from_numpy(context), shape)


def make_corpus(
    model: PositionModel,
    graphs: int,
    seed: int,
    *,
    without: Sequence[str] = (),
    large: bool = True,
    store: LessonStore,
    show_progress: bool = False,
) -> list[Lesson]:
    """So many lessons of every family but those left out, about links or groups as the model's task is.

    Of those about links some are on `large` graphs. Each depends on the seed, its family and its number alone, so what
    is in the `store` is not measured again.
    """
    links = model.config.task == "link"
    families = tuple(FAMILIES if links else GROUPED)
    for name in without:
        if name not in families:
            raise unknown_name("family", name, families)
    if set(families) <= set(without):
        raise InputError(f"--without leaves no family of graphs; keep one of {', '.join(families)}")
    wanted = [
        (place, family, i)
        for place, family in enumerate(families)
        if family not in without
        for i in range(graphs)
    ]
    lessons: list[Lesson] = []
    for place, family, i in progress(wanted, "drawing graphs", show=show_progress):
        rng = np.random.default_rng([seed, place, i])
        big = links and large and i % LARGE == LARGE // 2
        with_view = i < KEPT and not big
        lesson = None if with_view else store.find(family, i)
        if lesson is None:
            lesson = (
                make_lesson(family, model, rng, large=big) if links else make_pair_lesson(family, model, rng)
            )
        lessons.append(lesson if with_view else lesson.without_view())
        if i == graphs - 1:
            store.put(family, lessons[-graphs:])
    return lessons
