"""Pairs of nodes, described where their rows are brought together.

A *task* is a place after those of the blocks. It asks the blocks for the rows that it needs, and asks again when the
kernels come to rows that it does not have.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from psgnn.distances._propagation import Floats
from psgnn.graph._graph import IntArray
from psgnn.kernels._pairs import pair_hops_within, rows_of_walks
from psgnn.kernels._scoring import walk_partners_within
from psgnn.positions._context import Context, columns_in
from psgnn.positions._statistics import FARTHEST, Rows, statistic_names, statistics_of_rows
from psgnn.scoring._candidates import MOST_STEPS, pairs_of
from psgnn.scoring._network import Network
from psgnn.spark._blocks import (
    PARTS,
    Block,
    Plan,
    _entries,
    _hidden_entries,
    by_kind,
    hidden_degrees,
    parts_by_owner,
)
from psgnn.spark._mail import REPORT, Arrays, Letter, Post

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PAIRS = 2048  # of a task
LINKED = statistic_names(PARTS).index("linked")
MOST_TURNS = 64  # a search goes as far as its cutoff of hops, one level a turn
MISSING = 2**60  # where rows that are not here begin


def answer(plan: Plan, place: int, letters: list[Letter]) -> Iterator[Letter]:
    """What a block sends to the tasks that asked: positions of nodes in a view, and rows of links."""
    kinds = by_kind(letters)
    block = Block(plan, place, kinds["block"][0].arrays)
    indptr, indices = block.arrays["indptr"], block.arrays["indices"]
    for letter in kinds.get("links wanted", []):
        local = letter.arrays["nodes"] - block.first
        counts = np.diff(indptr)[local]
        entries = indices[_entries(indptr[local], counts)]
        arrays = {"nodes": letter.arrays["nodes"], "counts": counts, "neighbours": block.ids[entries]}
        yield Letter(letter.sender, "links", {**arrays, "degrees": block.degrees[entries]})
    for letter in kinds.get("positions wanted", []):
        (view,) = letter.arrays["view"].tolist()
        rows = kinds[f"positions {view:03d}"][0].arrays
        places = np.searchsorted(rows["nodes"], letter.arrays["nodes"])
        yield Letter(letter.sender, "positions", {name: array[places] for name, array in rows.items()})


@dataclass(frozen=True)
class Judge:
    """What a task makes of the statistics of its pairs: their scores, or the statistics themselves without a network.

    ``shapes [V, 13]`` and ``values [V, r]`` are those of the views. ``seat`` says for each view whose ratios and
    correction judge it.
    """

    plan: Plan
    anchors: int
    values: Floats
    network: Network | None = None
    contexts: tuple[Context, ...] = ()
    corrections: tuple[Floats | None, ...] = ()

    def found(self, view: int, statistics: Floats, alone: npt.NDArray[np.bool_]) -> Floats:
        """Scores, whether the nodes are linked and whether one has no links at all, ``[P, 3]``, or the statistics."""
        if self.network is None:
            return statistics
        seen = columns_in(self.contexts[view], self._graph(statistics), statistics, strict=False)
        scores = self.network.corrected_scores(statistics, seen, self.corrections[view])
        return np.stack([scores, statistics[:, LINKED], alone], axis=1).astype(np.float32, copy=False)

    def columns(self, statistics: Floats) -> Floats:
        """What a correction weighs, ``[P, W]``, in the first view."""
        assert self.network is not None
        seen = columns_in(self.contexts[0], self._graph(statistics), statistics, strict=False)
        scores = self.network.plain_scores(statistics, seen)
        return self.network.correction_columns(statistics, seen, scores)

    @staticmethod
    def _graph(statistics: Floats) -> IntArray:
        return np.zeros(statistics.shape[0], np.int64)


class Part:
    """The rows of links that a task has, in a view."""

    def __init__(self, plan: Plan, view: int, links: Arrays) -> None:
        nodes, counts = links["nodes"], links["counts"]
        self.ids = np.union1d(nodes, links["neighbours"])
        indices = np.searchsorted(self.ids, links["neighbours"])
        own = np.searchsorted(self.ids, nodes)
        degrees = np.zeros(self.ids.size, np.int64)
        degrees[indices], degrees[own] = links["degrees"], counts
        hidden = plan.hidden[view]
        rows = np.repeat(own, counts)
        if hidden.shape[1]:
            kept = ~_hidden_entries(hidden, self.ids, rows, indices.astype(np.int32))
            rows, indices = rows[kept], indices[kept]
            degrees = degrees - hidden_degrees(hidden, self.ids)
        filled = np.bincount(rows, minlength=self.ids.size)
        self.starts = np.full(self.ids.size, MISSING, np.int64)
        here = np.zeros(self.ids.size, np.bool_)
        here[own] = True
        self.starts[here] = (np.cumsum(filled) - filled)[here]
        self.starts[degrees == 0] = 0
        self.ends = self.starts + degrees
        self.indices = indices.astype(np.int32)
        self.wanted = np.zeros(self.ids.size, np.bool_)

    def local(self, nodes: IntArray) -> IntArray:
        """The numbers of nodes here."""
        return np.asarray(np.searchsorted(self.ids, nodes))


def with_links(known: Arrays | None, came: list[Letter]) -> Arrays:
    """Rows of links together, sorted by node."""
    parts = ([known] if known is not None else []) + [letter.arrays for letter in came]
    nodes, counts = (np.concatenate([part[name] for part in parts]) for name in ("nodes", "counts"))
    order = np.argsort(nodes, kind="stable")
    starts = np.cumsum(counts) - counts
    entries = _entries(starts[order], counts[order])
    found = {
        name: np.concatenate([part[name] for part in parts])[entries] for name in ("neighbours", "degrees")
    }
    return {"nodes": nodes[order], "counts": counts[order], **found}


def ask(plan: Plan, kind: str, nodes: IntArray, **more: npt.NDArray[Any]) -> Iterator[Letter]:
    """Letters to the blocks of sorted nodes."""
    for owner, part in parts_by_owner(plan, nodes):
        yield Letter(owner, kind, {"nodes": nodes[part], **more})


def begin_pairs(plan: Plan, place: int, letters: list[Letter]) -> Iterator[Letter]:
    """Ask for all that is known of the nodes of the pairs."""
    (task,) = [letter.arrays for letter in letters]
    nodes = np.unique(task["pairs"])
    yield Letter(place, "task", task)
    yield from ask(plan, "links wanted", nodes)
    yield from ask(plan, "positions wanted", nodes, view=task["view"])


def finish_pairs(judge: Judge, place: int, letters: list[Letter]) -> Iterator[Letter]:
    """`go_on_with_pairs`, but what is found stays here until all tasks are done."""
    done = [letter for letter in letters if letter.kind == "done"]
    if done:
        yield done[0]
        return
    (pairs,) = [letter.arrays["pairs"] for letter in letters if letter.kind == "task"]
    for letter in go_on_with_pairs(judge, place, letters):
        if letter.kind == "found":
            yield Letter(place, "done", {"pairs": pairs, "found": letter.arrays["found"]})
        else:
            yield letter


def go_on_with_pairs(judge: Judge, place: int, letters: list[Letter]) -> Iterator[Letter]:
    """Ask for more rows of links, or describe the pairs if there are enough."""
    kinds, plan = by_kind(letters), judge.plan
    task = kinds["task"][0].arrays
    came = [letter.arrays for letter in kinds.get("positions", [])]
    if came:
        task = task | {f"of {name}": np.concatenate([part[name] for part in came]) for name in came[0]}
    links = with_links(_links_in(task), kinds.get("links", []))
    (view,) = task["view"].tolist()
    part = Part(plan, view, links)
    us, vs = np.ascontiguousarray(part.local(task["pairs"]))
    rows = (part.starts, part.ends, part.indices)
    rows_of_walks(*rows, us, vs, PARTS.pair_looks, part.wanted)
    hops = np.empty(us.size)
    pair_hops_within(*rows, us, vs, FARTHEST, hops, part.wanted, PARTS.pair_looks // 2)
    if part.wanted.any():
        yield from _wait(plan, place, task, links, part)
        return
    # Positions are rows of `nodes`, links those of `ids`: the nodes of pairs are put first.
    nodes = task["of nodes"]
    spread = np.zeros(part.ids.size, np.int64)
    spread[part.local(nodes)] = np.arange(nodes.size)
    of = Rows(
        PARTS, np.zeros(part.ids.size, np.int64), np.array([plan.nodes]), np.array([judge.anchors]),
        task["of hops"][spread], task["of channels"][spread], task["of basis"][spread],
        judge.values[view : view + 1], task["of roles"][spread], *rows,
    )  # fmt: skip
    alone = (part.starts == part.ends)[np.stack([us, vs])].any(axis=0)
    found = judge.found(view, statistics_of_rows(of, us, vs), alone)
    yield Letter(REPORT, "found", {"view": task["view"], "place": task["place"], "found": found})


def _wait(plan: Plan, place: int, task: Arrays, links: Arrays, part: Part) -> Iterator[Letter]:
    """Keep the task with the rows that it has, and ask for those that were wanted."""
    missing = part.ids[part.wanted]
    yield Letter(place, "task", task | {f"links {name}": array for name, array in links.items()})
    yield from ask(plan, "links wanted", missing)
    yield Letter(REPORT, "waiting", {"rows": np.array([missing.size])})


def _links_in(task: Arrays) -> Arrays | None:
    found = {name.removeprefix("links "): array for name, array in task.items() if name.startswith("links ")}
    return found or None


def describe(
    post: Post, mail: DataFrame, judge: Judge, pairs: dict[int, IntArray], name: str
) -> dict[int, Floats]:
    """What a judge finds of the pairs ``[2, P]`` of each view: ``[P, 3]`` or ``[P, S]``."""
    tasks: list[Letter] = []
    first = judge.plan.bounds.size - 1
    for view, some in pairs.items():
        order = np.lexsort(some)
        for start in range(0, some.shape[1], PAIRS):
            part = order[start : start + PAIRS]
            task = {"view": np.array([view]), "pairs": some[:, part], "place": part}
            tasks.append(Letter(first + len(tasks), "pairs", task))
    if not tasks:
        return {view: np.zeros((0, 3), np.float32) for view in pairs}
    letters = post.kept(lambda: post.letters(tasks), f"{name} pairs")
    _, reports = fetch(
        post,
        mail,
        letters,
        judge.plan,
        partial(begin_pairs, judge.plan),
        partial(go_on_with_pairs, judge),
        name,
    )
    found: dict[int, Floats] = {}
    for letter in reports:
        (view,) = letter.arrays["view"].tolist()
        part = letter.arrays["found"]
        table = found.setdefault(view, np.empty((pairs[view].shape[1], *part.shape[1:]), np.float32))
        table[letter.arrays["place"]] = part
    return found


def fetch(
    post: Post, mail: DataFrame, tasks: DataFrame, plan: Plan, begin: Any, go_on: Any, name: str
) -> tuple[DataFrame, list[Letter]]:
    """Let tasks ask blocks for rows until all have what they need: their last letters, and their reports."""
    count = plan.bounds.size - 1
    asked = post.kept(lambda: post.spread(tasks, begin), f"{name} asked")
    store = post.some(mail, ["block", "positions"])
    reports: list[Letter] = []
    for turn in range(1, MOST_TURNS):
        if turn == 2:  # positions come in the first turn
            store = post.some(mail, ["block"])
        before = asked
        answers = post.spread(post.both(store, post.some(asked, first=0, last=count)), partial(answer, plan))
        asked, told = post.step(f"{name} {turn}", post.both(answers, post.some(asked, first=count)), go_on)
        post.drop(before)
        reports += [letter for letter in told if letter.kind == "found"]
        if not any(letter.kind == "waiting" for letter in told):
            return asked, reports
    raise AssertionError("a task never had enough rows")


# Partners by short walks


def begin_walks(plan: Plan, place: int, letters: list[Letter]) -> Iterator[Letter]:
    """Ask for the rows of some consecutive nodes."""
    task = letters[0].arrays
    yield Letter(place, "task", task)
    yield from ask(plan, "links wanted", np.arange(*task["nodes"]))


def go_on_with_walks(plan: Plan, count: int, place: int, letters: list[Letter]) -> Iterator[Letter]:
    """Ask for the rows that the walks come to, or find the partners and keep them until all are done."""
    kinds = by_kind(letters)
    if "done" in kinds:
        yield kinds["done"][0]
        return
    task = kinds["task"][0].arrays
    links = with_links(_links_in(task), kinds.get("links", []))
    part = Part(plan, 0, links)
    first, last = task["nodes"].tolist()
    partners = np.full((last - first, 2 * count), -1, np.int32)
    at = int(part.local(np.array([first]))[0])
    walk_partners_within(part.starts, part.ends, part.indices, at, MOST_STEPS, part.wanted, partners)
    if part.wanted.any():
        yield from _wait(plan, place, task, links, part)
        return
    yield Letter(place, "done", {"pairs": part.ids[pairs_of(partners) + np.array([[at], [0]])]})
