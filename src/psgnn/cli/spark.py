"""Options of ``--engine spark``, and questions that Spark answers."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from psgnn.cli.reading import Given
from psgnn.errors import InputError, unknown_name

if TYPE_CHECKING:
    import polars

    from psgnn.spark._predict import SparkScorer

log = logging.getLogger(__name__)

ENGINES = ("numba", "spark")

Engine = Annotated[
    str, typer.Option("--engine", metavar="numba|spark", help="What computes: this machine, or Spark.")
]
Master = Annotated[
    str | None, typer.Option("--master", help="Of Spark: local[2], yarn, spark://HOST:7077, ...")
]
SparkSettings = Annotated[
    list[str] | None,
    typer.Option("--spark", metavar="KEY=VALUE", help="Setting of Spark, such as spark.executor.memory=8g."),
]
WorkFolder = Annotated[
    str | None,
    typer.Option(
        "--work",
        metavar="FOLDER",
        help="Where Spark keeps what is between: a folder that all machines see. A killed job goes on there.",
    ),
]


def check_engine(engine: str, options: Mapping[str, Any]) -> None:
    """Refuse unknown engines, and options of Spark without it."""
    if engine not in ENGINES:
        raise unknown_name("engine", engine, ENGINES)
    given = [option for option, value in options.items() if value]
    if engine != "spark" and given:
        raise InputError(f"{given[0]} goes with --engine spark")


def parse_settings(settings: list[str] | None) -> dict[str, str]:
    """``KEY=VALUE`` as a dict."""
    pairs = [text.partition("=") for text in settings or []]
    if not all(key and equals for key, equals, _ in pairs):
        raise InputError("--spark takes KEY=VALUE, such as spark.executor.memory=8g")
    return {key: value for key, _, value in pairs}


def absolute(path: str, *, new: bool = False) -> str:
    """A path of this machine in full: Spark may have another working folder than this process."""
    local = Path(path).exists() or (new and "://" not in path)
    return str(Path(path).resolve()) if local else path


@dataclass(frozen=True)
class Question:
    """What `psgnn predict` is asked."""

    top: int | None
    nodes: list[str]
    nodes_file: Path | None
    pairs: Path | None
    missing: str | None
    anchors: Path | None = None
    out: str | None = None  # of partners of all nodes
    force: bool = False


@contextmanager
def scorer_of(
    path: str,
    given: Given,
    question: list[Any],
    *,
    anchors: list[str] | None,
    master: str | None,
    settings: list[str] | None,
    work: str | None,
    seed: int,
    show_progress: bool,
) -> Iterator[SparkScorer]:
    """The ready-made weights on a graph that Spark reads, for a question; letters are removed once it is answered."""
    from psgnn.console import Bar
    from psgnn.distances.spark import read_links, session
    from psgnn.graph._options import ReadOptions
    from psgnn.spark._mail import work_folder
    from psgnn.spark._predict import post_of, prepare

    refused = [option for option in given.options if option not in ("--source", "--target", "--header")]
    if refused or given.root:
        option = refused[0] if refused else "--data"
        raise InputError(f"{option} goes with --engine numba; Spark reads plain, undirected links")
    spark = session(master, parse_settings(settings))
    try:
        with work_folder(work) as folder, Bar("", 0, show=show_progress) as bar:
            done = 0

            def progress(text: str) -> None:
                nonlocal done
                done += 1
                bar.update(done, text)

            how = ReadOptions(**given.how)
            links = read_links(spark, absolute(path), how.columns, how.header)
            post = post_of(spark, folder, links, [*question, anchors, seed])
            yield prepare(post, links, anchors=anchors, seed=seed, progress=progress)
            post.clear()
            log.info("%d stages, %d of them from an earlier job", len(post.log), post.resumed)
    finally:
        spark.stop()


def by_spark(
    path: str,
    question: Question,
    given: Given,
    *,
    master: str | None,
    settings: list[str] | None,
    work: str | None,
    seed: int,
    show_progress: bool,
) -> polars.DataFrame | int:
    """Predictions of the ready-made weights, as `psgnn.predict` gives them; of all nodes, how many were written."""
    import polars as pl

    from psgnn.graph._names import read_names
    from psgnn.spark._predict import answer, read_named_pairs, write_partners

    nodes = question.nodes + (read_names(question.nodes_file) if question.nodes_file is not None else [])
    pairs = None if question.pairs is None else read_named_pairs(question.pairs, given.how.get("header"))
    anchors = None if question.anchors is None else read_names(question.anchors.expanduser())
    top, missing = question.top, question.missing
    with scorer_of(
        path, given, [top, nodes, pairs], anchors=anchors, master=master, settings=settings, work=work, seed=seed,
        show_progress=show_progress,
    ) as scorer:  # fmt: skip
        if question.out is not None:
            out = absolute(question.out, new=True)
            return write_partners(scorer, out, top=top, missing=missing, force=question.force)
        rows = answer(scorer, top=top, of=nodes or None, pairs=pairs, missing=missing)
    table = [(str(a), str(b), *numbers) for a, b, *numbers in rows]
    kinds = {"source": pl.String, "target": pl.String, "score": pl.Float32}
    return pl.DataFrame(
        table, schema=kinds | {"probability": pl.Float64, "expected_precision": pl.Float64}, orient="row"
    )


def embed_by_spark(
    path: str,
    out: str,
    given: Given,
    *,
    anchor_file: Path | None,
    master: str | None,
    settings: list[str] | None,
    work: str | None,
    force: bool,
    show_progress: bool,
) -> int:
    """Write a vector per node, and say how many nodes there are."""
    from psgnn.graph._names import read_names
    from psgnn.spark._predict import write_embeddings

    anchors = None if anchor_file is None else read_names(anchor_file.expanduser())
    with scorer_of(
        path, given, ["embed"], anchors=anchors, master=master, settings=settings, work=work, seed=0,
        show_progress=show_progress,
    ) as scorer:  # fmt: skip
        write_embeddings(scorer, absolute(out, new=True), force=force)
        return scorer.plan.nodes
