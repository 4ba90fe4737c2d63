"""Hops to anchors of an edge list that no single machine holds, by Spark (extra ``spark``).

Bit ``j`` of a node's words says that anchor ``j`` has reached it. On every level the words of the nodes that have new
bits go along all links and are or-ed together; what is new to a node has this level for its distance. Levels are
Parquet folders, so an interrupted job goes on with the last whole one, and the plan of a level never grows.
"""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from psgnn.errors import InputError, MissingExtraError
from psgnn.graph._headers import Columns, chosen_pair, guess_header, named_pair

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

log = logging.getLogger(__name__)

WORD = 64
UNREACHABLE = -1
MOST_ANCHORS = 4096
# What psgnn writes, by name: files of Parquet, and folders of levels by digest and cutoff.
OUTPUT = re.compile(r"_SUCCESS|\._SUCCESS\.crc|part-\d{5}-[0-9a-f-]{36}.*\.parquet|\.part-\d{5}-.*\.crc")
LEVELS = re.compile(r"[0-9a-f]{12}-(None|\d+)")
Progress = Callable[[int, int], None]


def session(master: str | None = None, settings: dict[str, str] | None = None) -> SparkSession:
    """A Spark session: that of ``spark-submit`` if there is one, or on `master`, such as ``local[2]``."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise MissingExtraError("pyspark", "spark", "the engine spark") from None
    builder = SparkSession.builder.appName("psgnn distances")
    if master is not None:
        builder = builder.master(master)
        if master.startswith(
            "local"
        ):  # otherwise workers would be the first python3 of the PATH, without psgnn
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # Two anchors may differ in nothing but capitals, and a column is named after each.
    builder = builder.config("spark.ui.showConsoleProgress", "false").config(
        "spark.sql.caseSensitive", "true"
    )
    for key, value in (settings or {}).items():
        builder = builder.config(key, value)
    try:
        found: SparkSession = builder.getOrCreate()
    except Exception as error:  # py4j and pyspark raise many kinds where there is no Java or no cluster
        reason = " ".join(str(error).split())[:160]
        raise InputError(
            f"Spark does not start ({reason}); it needs Java 17 or newer, and a --master"
        ) from None
    found.sparkContext.setLogLevel("ERROR")
    return found


TEXT = {".csv": ",", ".tsv": "\t", ".txt": None}


def read_links(
    spark: SparkSession, path: str, columns: Columns | None = None, header: bool | None = None
) -> DataFrame:
    """Both directions of every link of an edge list, as columns ``a`` and ``b``; self-loops are left out.

    It is Parquet, a Delta folder, text (``.csv``, ``.tsv``, also ``.gz``) or, without a slash, a table of the session's
    catalog, as Iceberg has them. The first line of text is a header if it says so by its look.
    """
    kind = "Parquet"
    try:
        if "/" not in path and not _exists(spark, path) and spark.catalog.tableExists(path):
            return ends_of(spark.read.table(path), columns, path)
        stem = re.sub(r"\.(gz|bz2|zst)$", "", path.rstrip("/").lower())
        suffix = next((suffix for suffix in TEXT if stem.endswith(suffix)), None)
        if _exists(spark, f"{path.rstrip('/')}/_delta_log"):
            kind = "Delta"
            table = spark.read.format("delta").load(path)
        elif suffix is not None:
            kind = "text"
            table = _read_text(spark, path, TEXT[suffix], header)
        else:
            table = spark.read.parquet(path)
    except Exception as error:  # the kinds are Java's
        reason = " ".join(str(error).split())[:160]
        raise InputError(f"Spark cannot read {path} as {kind}: {reason}") from None
    return ends_of(table, columns, path)


def _read_text(spark: SparkSession, path: str, separator: str | None, header: bool | None) -> DataFrame:
    """A table of text, all of whose columns are names."""
    lines = [row[0] for row in spark.read.text(path).limit(20).collect()]
    if separator is None:
        separator = max("\t, ;", key=lambda sign: sum(line.count(sign) for line in lines))
    rows = [line.split(separator) for line in lines if line and line[0] not in "#%"]
    if header is None:
        pair = named_pair(rows[0], True) or (0, 1) if rows else (0, 1)
        header = bool(rows) and guess_header(rows, pair, convention=separator != " ").header
    return spark.read.csv(path, sep=separator, header=header, comment="#")


def ends_of(table: DataFrame, columns: Columns | None, path: str) -> DataFrame:
    """The same of a table that is known as `path` to the reader of an error."""
    from pyspark.sql import functions as F

    names = table.columns
    pair = chosen_pair(names, columns) if columns is not None else named_pair(names, True) or (0, 1)
    if pair is None or len(names) < 2:
        raise InputError(
            f"{path} has the columns {', '.join(names)}; name two of them with --source and --target"
        )
    first, second = (F.col(f"`{names[i]}`") for i in pair)
    ends = table.select(first.alias("a"), second.alias("b"))
    if ends.where(F.col("a").isNull() | F.col("b").isNull()).take(1):
        raise InputError(f"{path} has rows without a {names[pair[0]]} or {names[pair[1]]}; leave them out")
    one_way = ends.where(F.col("a") != F.col("b"))
    return one_way.unionByName(one_way.select(F.col("b").alias("a"), F.col("a").alias("b")))


def pick_anchors(links: DataFrame, method: str, count: int, seed: int = 0) -> list[Any]:
    """The `count` nodes of largest ``degree`` (of equal ones the smallest), or ``random`` ones by the seed."""
    from pyspark.sql import functions as F

    if method == "degree":
        degrees = links.distinct().groupBy("a").count()
        ranked = degrees.orderBy(F.col("count").desc(), F.col("a"))
    elif method == "random":
        ranked = links.select("a").distinct().orderBy(F.xxhash64(F.col("a"), F.lit(seed)), F.col("a"))
    else:
        raise InputError(f"Spark picks anchors by degree or random, found '{method}'; or name them in a file")
    return [row["a"] for row in ranked.limit(count).collect()]


def hop_columns(
    spark: SparkSession,
    links: DataFrame,
    anchors: Sequence[Any],
    out: str,
    *,
    cutoff: int | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> int:
    """Write hops from every node to every anchor as Parquet, and give the number of levels.

    Columns are ``node`` and one for each anchor, ``to_NAME``: int, -1 where there is no way (or only one of more than
    `cutoff` hops). Levels stand in ``OUT.levels`` until the end.

    Args:
        spark: the session.
        links: as `read_links` gives them.
        anchors: nodes, at most 4096.
        out: a folder for Parquet, on any file system that Spark knows.
        cutoff: hops that are looked at, at most.
        force: replace what psgnn wrote at `out`. Anything else there is an error, and so is anything else in
            ``OUT.levels``, which psgnn removes at the end.
        progress: called with the level and the number of nodes that it reached.
    """
    from pyspark.sql import functions as F

    if not 0 < len(anchors) <= MOST_ANCHORS or len(set(anchors)) < len(anchors):
        raise InputError(f"name 1 to {MOST_ANCHORS} different anchors, found {len(anchors)}")
    levels = f"{out.rstrip('/')}.levels"
    if not force and _exists(spark, out):
        if _foreign(spark, levels, LEVELS) is None:
            _remove(spark, levels)  # of a job that was killed when its result had its place
        raise InputError(f"{out} exists; pass --force to replace it or choose another --out")
    for path, ours in ((out, OUTPUT), (levels, LEVELS)):
        foreign = _foreign(spark, path, ours)
        if foreign is not None:
            raise InputError(f"{path} holds {foreign}, which psgnn did not write; choose another --out")
    if force and not _is_output(spark, out):
        raise InputError(f"{out} holds a table that psgnn did not write; choose another --out")
    links = links.persist()
    identity = f"{_digest(links, anchors)}-{cutoff}"
    if force:
        _remove(spark, levels)
    words = [f"w{i}" for i in range(-(-len(anchors) // WORD))]
    level, reached = _last_level(spark, levels, identity), 1
    if level < 0:
        _start(spark, links, anchors, words, f"{levels}/{identity}/0")
        level = 0
    else:
        log.info("going on after level %d of %s", level, levels)
        reached = _new(spark.read.parquet(f"{levels}/{identity}/{level}"), words).count()
    while reached and (cutoff is None or level < cutoff):
        state = spark.read.parquet(f"{levels}/{identity}/{level}")
        _next(state, links, words).write.mode("overwrite").parquet(f"{levels}/{identity}/{level + 1}")
        level += 1
        reached = _new(spark.read.parquet(f"{levels}/{identity}/{level}"), words).count()
        if progress is not None:
            progress(level, reached)
    found = None
    for at in range(level + 1):
        part = _new(spark.read.parquet(f"{levels}/{identity}/{at}"), words).withColumn("level", F.lit(at))
        found = part if found is None else found.unionByName(part)
    assert found is not None
    hops = [F.max(F.when(_bit(F, j), F.col("level"))).alias(f"hops{j}") for j in range(len(anchors))]
    nodes = links.select(F.col("a").alias("node")).distinct()
    whole = nodes.join(found.groupBy("node").agg(*hops), "node", "left").select(
        "node",
        *(
            F.coalesce(F.col(f"hops{j}"), F.lit(UNREACHABLE)).alias(f"to_{anchor}")
            for j, anchor in enumerate(anchors)
        ),
    )
    # What is at its place is whole, and what is to be replaced stays until then.
    whole.write.mode("overwrite").parquet(f"{levels}/{identity}/out")
    _move(spark, f"{levels}/{identity}/out", out)
    _remove(spark, levels)
    links.unpersist()
    return level


def _start(
    spark: SparkSession, links: DataFrame, anchors: Sequence[Any], words: list[str], path: str
) -> None:
    """Level 0: every anchor has reached itself."""
    from pyspark.sql import functions as F

    kind = dict(links.dtypes)["a"]
    rows = [
        (anchor, *(_signed(1 << j % WORD) if j // WORD == i else 0 for i in range(len(words))))
        for j, anchor in enumerate(anchors)
    ]
    fields = ", ".join([f"node {kind}", *(f"{word} bigint" for word in words)])
    seeds = spark.createDataFrame(rows, fields)
    missing = seeds.join(links.select(F.col("a").alias("node")).distinct(), "node", "left_anti").take(1)
    if missing:
        raise InputError(f"the graph has no node '{missing[0]['node']}'; name anchors that are in it")
    new = [F.col(word).alias(f"new_{word}") for word in words]
    seeds.select("node", *words, *new).write.mode("overwrite").parquet(path)


def _next(state: DataFrame, links: DataFrame, words: list[str]) -> DataFrame:
    """The state one level on: ``w`` are the bits that have reached a node, ``new_w`` those of this level."""
    from pyspark.sql import functions as F

    sent = _new(state, words).select("node", *(F.col(f"new_{word}").alias(word) for word in words))
    got = (
        links.join(sent, links["a"] == sent["node"])
        .groupBy(F.col("b").alias("node"))
        .agg(*(F.expr(f"bit_or({word})").alias(f"got_{word}") for word in words))
    )
    both = state.select("node", *words).join(got, "node", "full_outer")
    zero = F.lit(0).cast("bigint")
    columns = []
    for word in words:
        old, new = F.coalesce(F.col(word), zero), F.coalesce(F.col(f"got_{word}"), zero)
        columns += [old.bitwiseOR(new).alias(word), new.bitwiseAND(F.bitwise_not(old)).alias(f"new_{word}")]
    return both.select("node", *columns)


def _new(state: DataFrame, words: list[str]) -> DataFrame:
    """The nodes that were reached by something on this level."""
    return state.where(" or ".join(f"new_{word} != 0" for word in words))


def _bit(functions: Any, j: int) -> Any:
    """Whether bit j is new."""
    word = functions.col(f"new_w{j // WORD}")
    return word.bitwiseAND(functions.lit(_signed(1 << j % WORD)).cast("bigint")) != 0


def _signed(bits: int) -> int:
    """64 bits as Java's long."""
    return bits - (1 << WORD) if bits >= 1 << (WORD - 1) else bits


def _digest(links: DataFrame, anchors: Sequence[Any]) -> str:
    """Of the graph, in whatever order its links come, and the anchors: levels of others are not gone on with."""
    import hashlib

    from pyspark.sql import functions as F

    rows = F.count(F.lit(1)), F.bit_xor(F.xxhash64("a", "b"))
    graph = links.distinct().agg(*rows).collect()[0]
    return hashlib.sha256("\n".join(map(str, [*graph, *anchors])).encode()).hexdigest()[:12]


# Files, through Hadoop: local, HDFS, S3 and whatever else Spark knows


def _path(spark: SparkSession, path: str) -> tuple[Any, Any]:
    java: Any = spark.sparkContext._jvm
    where = java.org.apache.hadoop.fs.Path(path)
    return where.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration()), where


def _exists(spark: SparkSession, path: str) -> bool:
    system, where = _path(spark, path)
    return bool(system.exists(where))


def _foreign(spark: SparkSession, path: str, ours: re.Pattern[str]) -> str | None:
    """The name of something that psgnn did not write at a path; None where there is nothing of that kind."""
    system, where = _path(spark, path)
    if not system.exists(where):
        return None
    if not system.getFileStatus(where).isDirectory():
        return "a file"
    names = sorted(str(entry.getPath().getName()) for entry in system.listStatus(where))
    return next((f"'{name}'" for name in names if not ours.fullmatch(name)), None)


def _is_output(spark: SparkSession, path: str) -> bool:
    """Whether at most a table of hops is at a path: Parquet with the columns ``node`` and ``to_NAME``."""
    system, where = _path(spark, path)
    if not system.exists(where) or not system.listStatus(where):
        return True
    try:
        first, *others = spark.read.parquet(path).columns
    except Exception:  # the kinds are Java's: no Parquet
        return False
    return first == "node" and all(name.startswith("to_") for name in others)


def _remove(spark: SparkSession, path: str) -> None:
    system, where = _path(spark, path)
    system.delete(where, True)


def _move(spark: SparkSession, path: str, to: str) -> None:
    """Put a folder at another place, instead of what is there."""
    system, where = _path(spark, path)
    _, place = _path(spark, to)
    system.delete(place, True)
    if place.getParent() is not None:
        system.mkdirs(place.getParent())
    if not system.rename(where, place):
        raise InputError(f"Spark cannot move {path} to {to}; choose another --out")


def _last_level(spark: SparkSession, levels: str, identity: str) -> int:
    """The last level that was written to its end, -1 where there is none of these anchors."""
    level = -1
    while _exists(spark, f"{levels}/{identity}/{level + 1}/_SUCCESS"):
        level += 1
    return level
