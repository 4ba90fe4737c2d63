"""From tables of links to blocks of nodes: names become numbers, and links rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from psgnn.distances.spark import _exists
from psgnn.errors import InputError
from psgnn.graph._edges import INTEGER
from psgnn.graph._graph import IntArray
from psgnn.spark._blocks import Plan, answer_degrees, build, note_degrees
from psgnn.spark._mail import SCHEMA, Letter, Post, Work, batches, rows_of

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame

BUCKETS = 4096  # ranges of nodes whose links are counted on the driver
ENTRIES = 4_000_000  # of a block, about
SHIFT = 33  # of Spark's numbers of rows, below which the number of the partition stands


@dataclass(frozen=True)
class Blocks:
    """A graph in blocks: the ``plan``, the blocks as letters, and the table ``nodes`` of ids and names.

    ``upper [B + 1]`` and ``lower`` count the links whose smaller or larger end is in the blocks before each.
    """

    plan: Plan
    mail: DataFrame
    nodes: DataFrame
    upper: IntArray
    lower: IntArray


def in_blocks(post: Post, links: DataFrame, *, least: int = 1) -> Blocks:
    """The blocks of a graph whose links stand in both directions in the columns ``a`` and ``b``.

    Nodes are numbered as on one machine: in the order of their names, by value where all of them are integers.
    """
    from pyspark.sql import functions as F

    links = _integers(links)
    nodes, count = _numbered(post, links)
    if count < 2:
        raise InputError("the table has no link between two different nodes")
    entries = _table(post, lambda: _by_number(links, nodes), "entries")
    width = -(-count // BUCKETS)
    bucket = F.floor(F.col("source") / width).cast("long")
    sizes = {row[0]: row[1] for row in entries.groupBy(bucket).count().collect()}
    filled = np.array([sizes.get(place, 0) for place in range(-(-count // width))], np.int64)
    bounds = _cut(filled, width, count, max(least, post.tasks, -(-int(filled.sum()) // ENTRIES)))
    plan = Plan(bounds, int(filled.sum()) // 2)
    starts = np.minimum(np.arange(filled.size) * width, count - 1)
    owners = plan.owner(starts).tolist()
    places = post.spark.createDataFrame(list(enumerate(owners)), "bucket long, place long")
    located = entries.withColumn("bucket", bucket).join(F.broadcast(places), "bucket")
    if hasattr(located, "repartitionById"):
        located = located.repartitionById(post.tasks, (F.col("place") % post.tasks).cast("int"))
    else:
        located = located.repartition(post.tasks, "place")
    table = located.select("place", "source", "target").sortWithinPartitions("place", "source", "target")
    mail = post.kept(lambda: table.mapInArrow(_pack, SCHEMA), "packed")
    return finished(post, plan, mail, nodes)


def finished(post: Post, plan: Plan, mail: DataFrame, nodes: DataFrame) -> Blocks:
    """The blocks from letters with their entries."""
    steps: list[tuple[str, Work]] = [
        ("build", partial(build, plan)), ("degrees", answer_degrees),
        ("blocks", note_degrees),
    ]  # fmt: skip
    reports: list[Letter] = []
    for name, work in steps:
        before = mail
        mail, reports = post.step(name, mail, work)
        post.drop(before)
    counts = np.array([letter.arrays["lower"] for letter in reports])
    counts = counts[np.argsort(counts[:, 0])]
    lower, upper = (np.concatenate([[0], np.cumsum(counts[:, i])]) for i in (1, 2))
    return Blocks(plan, mail, nodes, upper, lower)


def _integers(links: DataFrame) -> DataFrame:
    """Names of digits alone as integers, where all are: they are in the order of their values."""
    from pyspark.sql import functions as F

    if dict(links.dtypes)["a"] != "string" or links.where(~F.col("a").rlike(INTEGER)).take(1):
        return links
    return links.select(*(F.col(name).cast("bigint").alias(name) for name in ("a", "b")))


def _table(post: Post, make: Any, name: str) -> DataFrame:
    """A table that is written once."""
    path = f"{post.folder}/{name}"
    if not _exists(post.spark, f"{path}/_SUCCESS"):
        make().write.mode("overwrite").parquet(path)
    return post.spark.read.parquet(path)


def _numbered(post: Post, links: DataFrame) -> tuple[DataFrame, int]:
    """The nodes with their numbers, ``id`` and ``name``, and how many they are."""
    from pyspark.sql import functions as F

    def sorted_names() -> DataFrame:
        names = links.select(F.col("a").alias("name")).distinct().orderBy("name")
        return names.withColumn("row", F.monotonically_increasing_id())

    rows = _table(post, sorted_names, "names")
    part = F.shiftright("row", SHIFT)
    counts = sorted(tuple(row) for row in rows.groupBy(part.alias("part")).count().collect())
    firsts = np.concatenate([[0], np.cumsum([count for _, count in counts])]).tolist()
    starts = [(part, first) for (part, _), first in zip(counts, firsts[:-1], strict=True)]
    offsets = post.spark.createDataFrame(starts, "part long, first long")

    def numbered() -> DataFrame:
        known = rows.withColumn("part", part).join(F.broadcast(offsets), "part")
        return known.select(
            (F.col("first") + F.col("row") - F.shiftleft(F.col("part"), SHIFT)).alias("id"), "name"
        )

    return _table(post, numbered, "nodes"), firsts[-1]


def _by_number(links: DataFrame, nodes: DataFrame) -> DataFrame:
    """Every link in both directions once, as numbers ``source`` and ``target``."""
    from pyspark.sql import functions as F

    once = links.where(F.col("a") < F.col("b")).distinct()
    first = nodes.select(F.col("id").alias("source"), F.col("name").alias("a"))
    second = nodes.select(F.col("id").alias("target"), F.col("name").alias("b"))
    ends = once.join(first, "a").join(second, "b").select("source", "target")
    return ends.unionByName(ends.select(F.col("target").alias("source"), F.col("source").alias("target")))


def _cut(filled: IntArray, width: int, count: int, parts: int) -> IntArray:
    """Bounds of blocks with about as many links each, at the bounds of buckets."""
    before = np.concatenate([[0], np.cumsum(filled)])
    wanted = np.arange(1, parts) * before[-1] / parts
    cuts = np.unique(np.searchsorted(before, wanted)) * width
    inner = cuts[(cuts > 0) & (cuts < count)]
    return np.concatenate([[0], inner, [count]]).astype(np.int64)


def _pack(stream: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    """Sorted rows of place, source and target as letters to the places."""

    def letters() -> Iterator[tuple[Any, ...]]:
        number = 0
        for batch in stream:
            place, source, target = (column.to_numpy() for column in batch.columns)
            starts = np.flatnonzero(np.diff(place, prepend=-1))
            for first, last in zip(starts, [*starts[1:], place.size], strict=True):
                some = slice(first, last)
                number += 1
                letter = Letter(
                    int(place[first]), "entries", {"source": source[some], "target": target[some]}
                )
                yield from rows_of(letter, number)

    return batches(letters())


def ids_of(nodes: DataFrame, names: Sequence[Any]) -> IntArray:
    """The numbers of a few nodes by name."""
    kind = dict(nodes.dtypes)["name"]
    known = [typed(name, kind) for name in names]
    asked = nodes.sparkSession.createDataFrame([(name,) for name in dict.fromkeys(known)], f"name {kind}")
    found = {row["name"]: row["id"] for row in nodes.join(asked, "name").collect()}
    for name, value in zip(names, known, strict=True):
        if value not in found:
            raise InputError(f"the graph has no node '{name}'; name nodes that are in it")
    return np.array([found[name] for name in known], np.int64)


def typed(name: Any, kind: str) -> Any:
    """A name as the column of that type holds it."""
    if kind not in ("bigint", "int", "smallint", "tinyint"):
        return str(name) if kind == "string" else name
    if not str(name).removeprefix("-").isdecimal():
        raise InputError(f"the graph has no node '{name}'; its nodes are integers")
    return int(name)


def names_of(nodes: DataFrame, ids: IntArray) -> dict[int, Any]:
    """The names of a few nodes."""
    asked = nodes.sparkSession.createDataFrame([(v,) for v in np.unique(ids).tolist()], "id long")
    return {row["id"]: row["name"] for row in nodes.join(asked, "id").collect()}
