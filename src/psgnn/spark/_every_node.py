"""Answers of the size of the graph, which stay with the workers: embeddings, and the best partners of every node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from psgnn.distances._propagation import Floats
from psgnn.graph._graph import IntArray
from psgnn.scoring._answers import EXACT_NODES, SHARED_HUBS, _means
from psgnn.scoring._calibration import Calibration
from psgnn.scoring._network import Network
from psgnn.spark._blocks import Block, Plan, by_kind
from psgnn.spark._mail import ANSWER, REPORT, Letter, letters_of
from psgnn.spark._search import Finder, to_buckets, vectors_of
from psgnn.spark._tasks import PAIRS, begin_pairs, fetch, finish_pairs

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame

    from psgnn.spark._predict import SparkScorer

NODES = 4096  # consecutive nodes whose partners are put in order at one place


# Embeddings


def embedded(
    plan: Plan, network: Network, values: Floats, count: int, place: int, letters: list[Letter]
) -> Iterator[Letter]:
    """The embeddings of own nodes, as answers."""
    kinds = by_kind(letters)
    block = Block(plan, place, kinds["block"][0].arrays)
    for first, h in vectors_of(kinds, block.size, network, values, count):
        nodes = block.first + first + np.arange(h.shape[0])
        yield Letter(ANSWER, f"rows {first:012d}", {"id": nodes, "embedding": h})


def embeddings(scorer: SparkScorer) -> DataFrame:
    """A table ``node`` and ``embedding``, a row per node; near nodes are likely to be linked."""
    measured, judge = scorer.learned.measured, scorer.learned.judge
    work = partial(embedded, scorer.plan, scorer.network, measured.values, judge.anchors)
    mail, _ = scorer.post.step("embeddings", measured.mail, work)
    table = as_table(mail, "id long, embedding array<float>")
    nodes = scorer.graph.nodes.withColumnRenamed("name", "node")
    return table.join(nodes, "id").select("node", "embedding")


def partners_table(scorer: SparkScorer, top: int, missing: float | None) -> tuple[DataFrame, int]:
    """`partners_of_all` by name, with the columns of `psgnn.predict`, and how many rows there are."""
    from pyspark.sql import functions as F

    mail, count = partners_of_all(scorer, top, missing)
    numbers = ", ".join(f"{name} double" for name in ("score", "probability", "expected_precision"))
    table = as_table(mail, f"source long, target long, {numbers}")
    for end in ("source", "target"):
        names = scorer.graph.nodes.select(F.col("id").alias(end), F.col("name").alias(f"{end} name"))
        table = table.join(names, end)
    columns = [F.col(f"{end} name").alias(end) for end in ("source", "target")]
    columns += [F.nanvl(name, F.lit(None).cast("double")).alias(name) for name in ("score", "probability")]
    columns += [F.nanvl("expected_precision", F.lit(None).cast("double")).alias("expected_precision")]
    return table.select(*columns), count


def as_table(mail: DataFrame, schema: str) -> DataFrame:
    """The answers of letters as rows."""
    from pyspark.sql import functions as F

    answers = mail.where(~F.col("told") & (F.col("place") == ANSWER))
    answers = answers.select("place", "kind", "sender", "part", "body").repartition("sender")
    return answers.sortWithinPartitions("sender", "kind", "part").mapInArrow(_rows, schema)


def _rows(stream: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    import pyarrow as pa

    rows = (row for batch in stream for row in zip(*(c.to_pylist() for c in batch.columns), strict=True))
    for letter in letters_of(rows):
        columns = [pa.array(list(a)) if a.ndim > 1 else pa.array(a) for a in letter.arrays.values()]
        yield pa.RecordBatch.from_arrays(columns, list(letter.arrays))


# Partners of every node


def add_hubs(plan: Plan, hubs: IntArray, buckets: int, place: int, letters: list[Letter]) -> Iterator[Letter]:
    """Every own node with the nodes of most links, as candidates."""
    first, last = plan.bounds[place : place + 2].tolist()
    nodes = np.arange(first, last)
    pairs = np.stack([np.repeat(nodes, hubs.size), np.tile(hubs, nodes.size)])
    yield from to_buckets(plan.nodes, buckets, pairs[:, pairs[0] != pairs[1]])


def as_tasks(plan: Plan, buckets: int, place: int, letters: list[Letter]) -> Iterator[Letter]:
    """Candidates, each once, as pairs for tasks."""
    pairs = np.unique(np.concatenate([letter.arrays["pairs"] for letter in letters], axis=1), axis=1)
    for number, start in enumerate(range(0, pairs.shape[1], PAIRS)):
        some = pairs[:, start : start + PAIRS]
        task = {"view": np.zeros(1, np.int64), "pairs": some, "place": np.arange(some.shape[1])}
        yield Letter(plan.bounds.size - 1 + place + buckets * number, "pairs", task)


def to_both_ends(place: int, letters: list[Letter]) -> Iterator[Letter]:
    """The scores of unlinked pairs to where the partners of each end are put in order."""
    done = letters[0].arrays
    free = done["found"][:, 1] == 0
    pairs, scores = done["pairs"][:, free], done["found"][free, 0]
    ends = np.concatenate([pairs, pairs[::-1]], axis=1)
    both = np.concatenate([scores, scores])
    part = ends[0] // NODES
    for group in np.unique(part).tolist():
        some = part == group
        yield Letter(group, "scored", {"pairs": ends[:, some], "scores": both[some]})


def keep_best(
    top: int, calibration: Calibration | None, place: int, letters: list[Letter]
) -> Iterator[Letter]:
    """The best partners of every node here, best first, as answers."""
    pairs = np.concatenate([letter.arrays["pairs"] for letter in letters], axis=1)
    scores = np.concatenate([letter.arrays["scores"] for letter in letters])
    order = np.lexsort([pairs[1], -scores, pairs[0]])
    pairs, scores = pairs[:, order], scores[order]
    kept = np.arange(scores.size) - np.searchsorted(pairs[0], pairs[0]) < top
    pairs, scores = pairs[:, kept], scores[kept].astype(np.float64)
    found = {"source": pairs[0], "target": pairs[1], "score": scores}
    chance = np.full(scores.size, np.nan) if calibration is None else calibration.probability(scores)
    found |= {
        "probability": chance,
        "expected_precision": _means(chance, np.searchsorted(pairs[0], pairs[0])),
    }
    yield Letter(ANSWER, "rows", found)
    yield Letter(REPORT, "counted", {"rows": np.array([scores.size])})


def partners_of_all(scorer: SparkScorer, top: int, missing: float | None = None) -> tuple[DataFrame, int]:
    """Letters with the best partners of every node, and how many there are.

    Candidates are those of `psgnn.scoring.partners_of_all`; a pair that is a candidate of one end is one of the other.
    """
    post, plan, measured = scorer.post, scorer.plan, scorer.learned.measured
    finder = Finder(post, scorer.graph, scorer.learned, scorer.network, scorer.seed)
    found, buckets, hubs = finder.pools(1)
    hubs = np.arange(plan.nodes) if plan.nodes <= EXACT_NODES else hubs[:SHARED_HUBS]
    calibration = scorer.calibration(missing)
    near_hubs = post.spread(post.some(scorer.graph.mail, ["block"]), partial(add_hubs, plan, hubs, buckets))
    tasks = post.kept(
        lambda: post.spread(post.both(found, near_hubs), partial(as_tasks, plan, buckets)), "partners: tasks"
    )
    go_on = partial(finish_pairs, scorer.learned.judge)
    done, _ = fetch(post, measured.mail, tasks, plan, partial(begin_pairs, plan), go_on, "partners")
    ends = post.spread(post.some(done, ["done"]), to_both_ends)
    mail, reports = post.step("partners: best", ends, partial(keep_best, top, calibration))
    return mail, sum(int(letter.arrays["rows"][0]) for letter in reports)
