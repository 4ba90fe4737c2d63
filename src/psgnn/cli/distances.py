"""``psgnn distances``: hops from every node to every anchor, on this machine or by Spark."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from psgnn.cli.arguments import (
    Anchors,
    ColumnsOption,
    Force,
    HeaderOption,
    Json,
    Quiet,
    Root,
    Seed,
    Settings,
    Verbose,
    load_graphs,
    parse_anchors,
    two_columns,
)
from psgnn.errors import InputError, unknown_name

if TYPE_CHECKING:
    from psgnn.graph import Graph

ENGINES = ("numba", "spark")


def distances_command(
    graph: Annotated[
        str,
        typer.Argument(
            metavar="GRAPH|DATASET",
            help="A graph file or a dataset; for Spark a Parquet edge list, at any address.",
        ),
    ],
    out: Annotated[
        str,
        typer.Option(
            "--out", "-o", help="Write the hops (.parquet .csv .tsv .npz; Spark: a folder of Parquet)."
        ),
    ],
    anchors: Anchors = "log",
    method: Annotated[
        str, typer.Option("--method", help="Anchor rule (Spark: degree or random).")
    ] = "degree",
    anchor_file: Annotated[
        Path | None, typer.Option("--anchor-file", help="Anchors by name, one a line, instead of a rule.")
    ] = None,
    cutoff: Annotated[
        int | None, typer.Option("--cutoff", min=1, help="Farther than so many hops counts as unreachable.")
    ] = None,
    engine: Annotated[str, typer.Option("--engine", metavar="numba|spark", help="What computes.")] = "numba",
    master: Annotated[
        str | None, typer.Option("--master", help="Of Spark: local[2], yarn, spark://HOST:7077, ...")
    ] = None,
    spark: Annotated[
        list[str] | None,
        typer.Option(
            "--spark", metavar="KEY=VALUE", help="Setting of Spark, such as spark.executor.memory=8g."
        ),
    ] = None,
    seed: Seed = 0,
    columns: ColumnsOption = None,
    header: HeaderOption = None,
    settings: Settings = None,
    root: Root = None,
    force: Force = False,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Write a table of hops: a row for every node, a column to_NAME for every anchor, -1 where there is no way.

    Example: psgnn distances communities --anchors 8 --out hops.parquet
    """
    from psgnn.console import flush_notes, print_json, set_verbosity
    from psgnn.paths import check_output

    set_verbosity(quiet=quiet or as_json, verbose=verbose)
    if engine not in ENGINES:
        raise unknown_name("engine", engine, ENGINES)
    named = None if anchor_file is None else _names(anchor_file)
    asked = _Asked(out, anchors, method, named, cutoff, seed, force)
    about: dict[str, Any] = {"graph": graph, "out": out, "engine": engine}
    if engine == "spark":
        if settings or root:
            raise InputError("--set and --data go with a dataset; Spark reads a Parquet edge list")
        if header is not None:
            raise InputError("--header and --no-header go with text files; Spark reads a Parquet edge list")
        about |= _by_spark(
            graph, asked, master=master, options=spark, columns=columns, show_progress=not quiet
        )
    else:
        if master or spark:
            raise InputError("--master and --spark go with --engine spark")
        check_output(out, force=force)
        data = load_graphs(graph, root, settings, columns=columns, header=header)
        about |= _here(data, asked)
    if as_json:
        print_json(about)
        return
    flush_notes()
    typer.echo(f"hops of {about['nodes']} nodes to {about['anchors']} anchors are in {out}")


def _names(path: Path) -> list[str]:
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
    names = [line.strip() for line in lines if line.strip()]
    if not names:
        raise InputError(f"{path} names no anchor; write one a line")
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise InputError(f"{path} names '{twice[0]}' twice; write every anchor once")
    return names


@dataclass(frozen=True)
class _Asked:
    """What both engines are asked: anchors by number and rule, or by name."""

    out: str
    anchors: str
    method: str
    named: list[str] | None
    cutoff: int | None
    seed: int
    force: bool


def _here(graphs: list[Graph], asked: _Asked) -> dict[str, int]:
    import numpy as np

    from psgnn.anchors import select_anchors
    from psgnn.distances import shortest_distances
    from psgnn.graph._exports import write_table

    if len(graphs) != 1:
        raise InputError(f"distances are of one graph, found {len(graphs)}")
    (graph,) = graphs
    names = graph.names
    if asked.named is None:
        chosen = select_anchors(graph, asked.method, parse_anchors(asked.anchors), asked.seed)
    else:
        place = {name: i for i, name in enumerate(names)}
        unknown = [name for name in asked.named if name not in place]
        if unknown:
            raise InputError(f"the graph has no node '{unknown[0]}'; name anchors that are in it")
        chosen = np.array([place[name] for name in asked.named])
    hops = shortest_distances(graph, chosen, cutoff=asked.cutoff)
    table = {"node": names} | {f"to_{names[a]}": hops[:, j] for j, a in enumerate(chosen.tolist())}
    write_table(asked.out, table, force=asked.force)
    return {"nodes": len(names), "anchors": int(chosen.size)}


def _by_spark(
    path: str,
    asked: _Asked,
    *,
    master: str | None,
    options: list[str] | None,
    columns: str | None,
    show_progress: bool,
) -> dict[str, int]:
    from psgnn.anchors._rules import anchor_count
    from psgnn.console import Bar
    from psgnn.distances.spark import hop_columns, pick_anchors, read_links, session

    pairs = [text.partition("=") for text in options or []]
    if not all(key and equals for key, equals, _ in pairs):
        raise InputError("--spark takes KEY=VALUE, such as spark.executor.memory=8g")
    out = asked.out
    # Spark may have another working folder, or another file system, than this process.
    if Path(path).exists():
        path, out = str(Path(path).resolve()), out if "://" in out else str(Path(out).resolve())
    spark = session(master, {key: value for key, _, value in pairs})
    try:
        links = read_links(spark, path, None if columns is None else two_columns(columns))
        nodes = links.select("a").distinct().count()
        if asked.named is None:
            chosen = pick_anchors(
                links, asked.method, anchor_count(nodes, parse_anchors(asked.anchors)), asked.seed
            )
        else:
            chosen = _of_kind(asked.named, dict(links.dtypes)["a"])
        with Bar("levels", 0, show=show_progress) as bar:
            levels = hop_columns(
                spark, links, chosen, out, cutoff=asked.cutoff, force=asked.force,
                progress=lambda level, reached: bar.update(level, f"level {level} reached {reached} nodes"),
            )  # fmt: skip
    finally:
        spark.stop()
    return {"nodes": nodes, "anchors": len(chosen), "levels": levels}


def _of_kind(names: list[str], kind: str) -> list[Any]:
    """Names of nodes as the column of that type holds them."""
    if kind == "string":
        return list(names)
    for name in names:
        if not name.removeprefix("-").isdecimal():
            raise InputError(f"the graph has no node '{name}'; its nodes are integers")
    return [int(name) for name in names]
