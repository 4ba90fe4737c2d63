"""Letters between places: how blocks of a graph that lie on many machines work together.

A *place* is a number: that of a block of nodes, or of a task. A step gives every place its letters, and takes the
letters that it writes in turn. Arrays travel as bytes, so a task of Spark sees few rows, and Python sees NumPy. Every
step is written before the next one begins, so that a job that was killed goes on with the last whole step.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import reduce
from itertools import groupby
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from psgnn.distances.spark import OUTPUT, _exists, _foreign, _move, _path, _remove
from psgnn.errors import InputError
from psgnn.paths import BusyError, locked

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

Arrays = dict[str, npt.NDArray[Any]]
SCHEMA = "place long, kind string, sender long, part int, body binary"
COLUMNS = ("place", "kind", "sender", "part", "body")
REPORT = -1  # the place of what the driver reads: small things
ANSWER = -2  # the place of rows that become the result
PART = 2**22  # bytes of one row
ROWS = 32  # such rows that are in memory at once
TEMPORARY_WORK = "psgnn-spark-"  # how temporary folders for letters begin
UNLOCKED_SECONDS = 5  # that such a folder may take to be locked


@dataclass(frozen=True)
class Letter:
    """Named arrays for a place."""

    place: int
    kind: str
    arrays: Arrays
    sender: int = 0


Work = Callable[[int, list[Letter]], Iterable[Letter]]


def pack(arrays: Arrays) -> bytes:
    """Arrays as bytes: a line of JSON with names, types and shapes, and their numbers."""
    whole = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    head = json.dumps([[name, array.dtype.str, array.shape] for name, array in whole.items()])
    return b"".join([head.encode(), b"\n", *(array.tobytes() for array in whole.values())])


def unpack(body: bytes) -> Arrays:
    """Undo `pack`."""
    end = body.index(b"\n")
    found, place = {}, end + 1
    for name, kind, shape in json.loads(body[:end]):
        count = int(np.prod(shape, dtype=np.int64))
        array = np.frombuffer(body, np.dtype(kind), count, place)
        found[name] = array.reshape(shape).copy()  # aligned, and writable as kernels expect it
        place += array.nbytes
    return found


def rows_of(letter: Letter, sender: int) -> Iterator[tuple[int, str, int, int, bytes]]:
    """The rows of a letter, in parts of bounded size."""
    body = pack(letter.arrays)
    for part, start in enumerate(range(0, len(body), PART)):
        yield letter.place, letter.kind, sender, part, body[start : start + PART]


def batches(rows: Iterable[tuple[Any, ...]]) -> Iterator[pyarrow.RecordBatch]:
    """Rows as Arrow batches."""
    waiting = []
    for row in rows:
        waiting.append(row)
        if len(waiting) == ROWS:
            yield _batch(waiting)
            waiting = []
    if waiting:
        yield _batch(waiting)


def _batch(rows: list[tuple[Any, ...]]) -> pyarrow.RecordBatch:
    import pyarrow as pa

    kinds = {"place": pa.int64(), "kind": pa.string(), "sender": pa.int64(), "part": pa.int32()}
    kinds["body"] = pa.binary()
    columns = zip(*rows, strict=True)
    return pa.RecordBatch.from_arrays(
        [pa.array(column, kind) for column, kind in zip(columns, kinds.values(), strict=True)], list(kinds)
    )


def letters_of(rows: Iterable[tuple[int, str, int, int, bytes]]) -> Iterator[Letter]:
    """The letters of rows that are sorted by place, kind, sender and part."""
    for (place, kind, sender), parts in groupby(rows, key=lambda row: row[:3]):
        yield Letter(place, kind, unpack(b"".join(part[4] for part in parts)), sender)


def _run(work: Work, stream: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    def written() -> Iterator[tuple[Any, ...]]:
        rows = (row for batch in stream for row in zip(*(c.to_pylist() for c in batch.columns), strict=True))
        for place, letters in groupby(letters_of(rows), key=lambda letter: letter.place):
            for letter in work(place, list(letters)):
                yield from rows_of(letter, place)

    return batches(written())


class Post:
    """Steps of letters on a session, each kept in a folder that all of its machines see."""

    def __init__(self, spark: SparkSession, folder: str, tasks: int) -> None:
        self.spark, self.folder, self.tasks = spark, folder.rstrip("/"), tasks
        self.done = 0
        self.resumed = 0
        self.log: list[dict[str, Any]] = []
        self._paths: dict[int, str] = {}
        self._alive: list[DataFrame] = []  # so that no two of them have one number

    def kept(self, make: Callable[[], DataFrame], name: str) -> DataFrame:
        """Letters that are written once: now, or by the job that was killed before."""
        path = f"{self.folder}/{self.done:04d}-{re.sub('[^a-z0-9]+', '-', name)}"  # HDFS takes no colons
        self.done += 1
        began = time.monotonic()
        if _exists(self.spark, f"{path}/_SUCCESS"):
            self.resumed += 1
        else:
            with self.settings(ROWS):
                told = make().selectExpr("*", f"place = {REPORT} as told")
                writer = told.write.partitionBy("told").mode("overwrite")
                writer.option("compression", "none").parquet(path)
        seconds = round(time.monotonic() - began, 3)
        self.log.append({"stage": name, "seconds": seconds, "bytes": _size(self.spark, path)})
        found = self.spark.read.schema(f"{SCHEMA}, told boolean").parquet(path)
        self._paths[id(found)] = path
        self._alive.append(found)
        return found

    def drop(self, *tables: DataFrame) -> None:
        """Remove letters that nothing reads any more; what the driver was told stays, and that they were written."""
        for table in tables:
            path = self._paths.pop(id(table), None)
            if path is not None:
                _remove(self.spark, f"{path}/told=false")

    @contextmanager
    def settings(self, rows: int) -> Iterator[None]:
        """Rows of an Arrow batch, as large as they are here; the session's own settings come back."""
        wanted = {
            "spark.sql.execution.arrow.maxRecordsPerBatch": str(rows),
            "spark.sql.maxConcurrentOutputFileWriters": "4",
        }
        before = {key: self.spark.conf.get(key, None) for key in wanted}
        for key, value in wanted.items():
            self.spark.conf.set(key, value)
        try:
            yield
        finally:
            for key, kept in before.items():
                if kept is None:
                    self.spark.conf.unset(key)
                else:
                    self.spark.conf.set(key, kept)

    def spread(self, mail: DataFrame, work: Work) -> DataFrame:
        """The letters that places write when they get theirs; nothing is computed yet."""
        from pyspark.sql import functions as F

        there = mail.where(F.col("place") >= 0).select(*COLUMNS)
        if hasattr(there, "repartitionById"):
            routed = there.repartitionById(self.tasks, (F.col("place") % self.tasks).cast("int"))
        else:  # Spark 4.0
            routed = there.repartition(self.tasks, "place")
        order = routed.sortWithinPartitions("place", "kind", "sender", "part")
        return order.mapInArrow(_Worker(work), SCHEMA)

    def some(
        self, mail: DataFrame, kinds: Sequence[str] = (), *, first: int | None = None, last: int | None = None
    ) -> DataFrame:
        """The letters whose kinds begin so, to the places ``first:last``."""
        from pyspark.sql import functions as F

        found = mail.select(*COLUMNS)
        if kinds:
            found = found.where(reduce(or_, (F.col("kind").startswith(kind) for kind in kinds)))
        if first is not None:
            found = found.where(F.col("place") >= first)
        return found if last is None else found.where(F.col("place") < last)

    def both(self, one: DataFrame, other: DataFrame) -> DataFrame:
        """Letters together."""
        return one.unionByName(other)

    def step(self, name: str, mail: DataFrame, work: Work) -> tuple[DataFrame, list[Letter]]:
        """One step, written: its letters, and those to the driver."""
        found = self.kept(lambda: self.spread(mail, work), name)
        return found, self.read(found, REPORT)

    def read(self, mail: DataFrame, place: int) -> list[Letter]:
        """The letters to a place, on the driver."""
        from pyspark.sql import functions as F

        told = F.col("told") == (place == REPORT)
        rows = mail.where(told & (F.col("place") == place)).select(*COLUMNS).collect()
        return list(letters_of(sorted((tuple(row) for row in rows), key=lambda row: row[:4])))

    def read_kept(self, mail: DataFrame) -> list[Letter]:
        """All of a few letters, on the driver."""
        rows = mail.select(*COLUMNS).collect()
        return list(letters_of(sorted((tuple(row) for row in rows), key=lambda row: row[:4])))

    def letters(self, letters: Iterable[Letter]) -> DataFrame:
        """Letters that the driver writes."""
        rows = [row for letter in letters for row in rows_of(letter, letter.sender)]
        return self.spark.createDataFrame(rows, SCHEMA)

    def deliver(self, table: DataFrame, out: str, *, force: bool = False) -> None:
        """Write a table to its place: it is whole, or not there. What psgnn did not write is never replaced."""
        check_place(self.spark, out, force=force)
        with self.settings(ROWS):
            table.write.mode("overwrite").parquet(f"{self.folder}/answer")
        _move(self.spark, f"{self.folder}/answer", out)

    def clear(self) -> None:
        """Remove all that was kept."""
        _remove(self.spark, self.folder)


@contextmanager
def work_folder(work: str | None) -> Iterator[str]:
    """Where letters are kept: `work`, or a temporary folder, which the next process removes if this one is killed."""
    if work is not None:
        yield work
        return
    for left in Path(tempfile.gettempdir()).glob(f"{TEMPORARY_WORK}*"):
        with suppress(OSError, BusyError):
            status = left.lstat()
            mine = stat.S_ISDIR(status.st_mode) and (os.name == "nt" or status.st_uid == os.getuid())
            if mine and time.time() - status.st_mtime > UNLOCKED_SECONDS:
                with locked(left, wait=False):
                    pass
                shutil.rmtree(left)
    with tempfile.TemporaryDirectory(prefix=TEMPORARY_WORK) as folder, locked(Path(folder)):
        yield folder


def check_place(spark: SparkSession, out: str, *, force: bool) -> None:
    """Refuse a place that is taken, or with `force` one that holds something else than files of Parquet."""
    if _exists(spark, out):
        if not force:
            raise InputError(f"{out} exists; pass --force to replace it or choose another --out")
        foreign = _foreign(spark, out, OUTPUT)
        if foreign is not None:
            raise InputError(f"{out} holds {foreign}, which psgnn did not write; choose another --out")


def _size(spark: SparkSession, path: str) -> int:
    """The bytes of the files in a folder: what a step wrote, and the next one moves."""
    system, where = _path(spark, path)
    return int(system.getContentSummary(where).getLength())


class _Worker:
    """`_run` with its work, as Spark calls it."""

    def __init__(self, work: Work) -> None:
        self.work = work

    def __call__(self, stream: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        return _run(self.work, stream)
