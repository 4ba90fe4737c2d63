"""What a graph on Spark teaches of its own links: its context and the correction of the scores."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from psgnn.distances._propagation import Floats
from psgnn.graph._graph import IntArray
from psgnn.positions._context import (
    Context,
    hidden_of,
    lesson_ranks,
    lessons_for,
    ratios_between,
)
from psgnn.scoring._network import Network, newton_step
from psgnn.spark._blocks import pairs_by_rank
from psgnn.spark._graph import Blocks
from psgnn.spark._mail import Post
from psgnn.spark._tasks import Judge, describe
from psgnn.spark._views import Measured, Progress, measure, nothing

STATE_BYTES = 2**28  # of a block, about: more views are measured one after the other


@dataclass(frozen=True)
class Learned:
    """A graph as the network sees it: positions that were measured, and the judge of its pairs."""

    measured: Measured
    judge: Judge


@dataclass(frozen=True)
class Hidden:
    """Links that are not shown: their ranks among all links, sorted, and the links ``[2, H]``."""

    ranks: IntArray
    links: IntArray


NONE = Hidden(np.zeros(0, np.int64), np.zeros((2, 0), np.int64))


def links_of_ranks(
    post: Post,
    graph: Blocks,
    hidden: Hidden,
    links: dict[int, IntArray],
    others: dict[int, IntArray],
    name: str,
) -> tuple[dict[int, IntArray], dict[int, IntArray]]:
    """Links by their ranks among all links, and pairs that are none by theirs among those of the visible graph."""
    plan = replace(graph.plan, hidden=(hidden.links,))
    gone = np.histogram(hidden.links.max(axis=0, initial=-1), plan.bounds)[0] if hidden.ranks.size else 0
    lower = graph.lower - np.concatenate([[0], np.cumsum(gone * np.ones(plan.bounds.size - 1, np.int64))])
    work = partial(pairs_by_rank, plan, links, others, graph.upper, lower)
    table, reports = post.step(name, graph.mail, work)
    post.drop(table)

    def together(kind: str, keys: dict[int, IntArray]) -> dict[int, IntArray]:
        return {
            key: np.concatenate([letter.arrays[f"{kind} {key}"] for letter in reports], axis=1)
            for key in keys
        }

    return together("links", links), together("others", others)


def learn(
    post: Post,
    graph: Blocks,
    anchors: IntArray,
    network: Network,
    hidden: Hidden = NONE,
    asked: IntArray | None = None,
    *,
    progress: Progress = nothing,
    name: str = "graph",
) -> Learned:
    """Measure a graph without some links, hide more of them, and learn from these how to correct the scores.

    Args:
        post: Where letters are kept.
        graph: The blocks.
        anchors: The anchors.
        network: The ready-made network.
        hidden: Links that are not shown.
        asked: Nodes whose positions are needed in the end, sorted; all of them if None.
        progress: Called with a line of text.
        name: Of the stages.
    """
    plan = graph.plan
    links = plan.links - hidden.ranks.size
    unlinked = plan.nodes * (plan.nodes - 1) // 2 - links
    count = hidden_of(links)
    seeds = range(1 + lessons_for(count, False)) if count else range(0)
    drawn = {seed: lesson_ranks(links, unlinked, count, seed) for seed in seeds}
    skipped = hidden.ranks - np.arange(hidden.ranks.size)
    ranks = {
        seed: np.sort(mine + np.searchsorted(skipped, mine, side="right"))
        for seed, (mine, _) in drawn.items()
    }
    pairs: dict[int, IntArray] = {}
    shown = {0: hidden.links}
    if count:
        others = {seed: other for seed, (_, other) in drawn.items()}
        found, unlinked_pairs = links_of_ranks(post, graph, hidden, ranks, others, f"{name}: lessons")
        for seed in seeds:
            pairs[1 + seed] = np.concatenate([found[seed], unlinked_pairs[seed]], axis=1)
            shown[1 + seed] = np.concatenate([hidden.links, found[seed]], axis=1)
    base, shapes, statistics = None, {}, {}
    bytes_of_view = int(np.diff(plan.bounds).max()) * anchors.size * 40
    at_once = max(STATE_BYTES // max(bytes_of_view, 1), 1)
    order = list(shown)
    for first in range(0, len(order), at_once):
        views = order[first : first + at_once]
        here = replace(plan, hidden=tuple(shown[view] for view in views))
        rows = {i: np.unique(pairs[view]) for i, view in enumerate(views) if view}
        if asked is not None and views[0] == 0:
            rows[0] = asked
        stage = f"{name}: views {views[0]}"
        measured = measure(post, graph.mail, here, anchors, rows, progress=progress, name=stage)
        some = {i: pairs[view] for i, view in enumerate(views) if view}
        judge = Judge(here, anchors.size, measured.values)
        told = describe(post, measured.mail, judge, some, f"{stage} lessons")
        for i, view in enumerate(views):
            shapes[view] = measured.shapes[i : i + 1]
            if view:
                statistics[view] = told[i]
        if views[0] == 0:
            base = measured
        else:
            post.drop(measured.mail)
    assert base is not None
    ratios = ratios_between(statistics[1][:count], statistics[1][count:]) if count else None
    correction = None
    if count:
        columns, labels = [], []
        for seed in seeds[1:]:
            table = statistics[1 + seed]
            judge = Judge(
                plan, anchors.size, base.values, network, (Context(shapes[1 + seed], ratios),), (None,)
            )
            columns.append(judge.columns(table).astype(np.float64))
            labels.append(np.repeat([1.0, 0.0], [count, table.shape[0] - count]))
        correction = newton_step(np.concatenate(columns), np.concatenate(labels)).astype(np.float32)
    context = Context(shapes[0], ratios)
    judge = Judge(base.plan, anchors.size, base.values, network, (context,), (correction,))
    return Learned(base, judge)


def scores_of(post: Post, learned: Learned, pairs: IntArray, name: str) -> Floats:
    """Scores of a few pairs ``[2, P]``, whether they are linked, and whether a node has no links, ``[P, 3]``."""
    return describe(post, learned.measured.mail, learned.judge, {0: pairs}, name)[0]
