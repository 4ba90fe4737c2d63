"""``psgnn distances``: hops to anchors, to named sets or between named pairs, on this machine or by Spark."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from psgnn.cli.arguments import (
    AnchorFile,
    Anchors,
    Force,
    Json,
    Quiet,
    Seed,
    Spreadsheet,
    load_graphs,
    parse_anchors,
)
from psgnn.cli.reading import NOTHING, Given, reads_graph
from psgnn.cli.spark import Engine, Master, SparkSettings, absolute, check_engine, parse_settings
from psgnn.console import flush_notes, print_json, print_table, say
from psgnn.errors import InputError

if TYPE_CHECKING:
    import polars

    from psgnn.graph import Graph


SHOWN = 20


@dataclass(frozen=True)
class Output:
    """Where a table goes: to a file, to the terminal, or into a JSON document."""

    source: str
    path: str | None
    force: bool
    as_json: bool
    spreadsheet: bool

    def finish(self, frame: polars.DataFrame, what: str, about: dict[str, Any]) -> bool:
        """Write the table if there is a file, and the document if it was asked for; whether all is said."""
        from psgnn.graph._exports import write_pairs

        if self.path is not None:
            write_pairs(self.path, frame, force=self.force, spreadsheet=self.spreadsheet)
        if self.as_json:
            rows = {} if self.path is not None else {"rows": frame.to_dicts()}
            print_json({"graph": self.source, "out": self.path, **about, **rows})
        elif self.path is not None:
            flush_notes()
            say(f"{what} are in {self.path}")
        return self.as_json


def answer_sets(
    graph: Graph, sets: Path, output: Output, *, samples: int, bin_size: int, seed: int, show_progress: bool
) -> None:
    """Distances of every node to the sets in a file, and of the sets to each other."""
    import polars as pl

    from psgnn.distances._proximity import measure_sets
    from psgnn.graph._names import read_sets

    members = {name: nodes.tolist() for name, nodes in read_sets(sets, graph.names).items()}
    found = measure_sets(
        graph, members, samples=samples, seed=seed, bin_size=bin_size, show_progress=show_progress
    )
    counts = [{"set": name, "members": len(nodes)} for name, nodes in members.items()]
    about = {
        "nodes": graph.num_nodes,
        "samples": samples,
        "bin_size": bin_size,
        "seed": seed,
        "sets": counts,
        "proximity": found.sets.to_dicts(),
    }
    kind = "set" if len(members) == 1 else "sets"
    if output.finish(found.nodes, f"distances of {graph.num_nodes} nodes to {len(members)} {kind}", about):
        return
    if len(members) > 1:
        best = found.sets.sort("z", "distance", nulls_last=True)
        _show(f"{output.source}: distances between sets, nearest first", best)
        _note_more(best.height, "pairs of sets; --json prints them all")
    elif output.path is None:
        others = found.nodes.filter(pl.col("nearest") > 0).sort("z", "mean", nulls_last=True)
        columns = ["node", "nearest", "mean", "expected", "z"]
        _show(f"{output.source}: nearest to {counts[0]['set']}, without its members", others.select(columns))
        _note_more(others.height, "nodes; --out FILE writes them all")


def answer_pairs(graph: Graph, pairs: Path, output: Output, *, cutoff: float | None) -> None:
    """Distances between the two nodes of each pair in a file."""
    from psgnn.distances import pair_distances

    found = pair_distances(graph, pairs, cutoff=cutoff)
    if output.finish(found, f"distances of {found.height} pairs", {"pairs": found.height}):
        return
    if output.path is None:
        _show(f"{output.source}: {pairs}", found)
        _note_more(found.height, "pairs; --out FILE writes them all")


def _show(title: str, frame: polars.DataFrame) -> None:
    rows = [[_cell(cell) for cell in row] for row in frame.head(SHOWN).rows()]
    print_table(title, frame.columns, rows)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def _note_more(count: int, what: str) -> None:
    if count > SHOWN:
        say(f"the first {SHOWN} of {count} {what}")


@reads_graph
def distances_command(
    graph: Annotated[
        str,
        typer.Argument(
            metavar="GRAPH|DATASET",
            help="A graph file or a dataset; for Spark a Parquet edge list, at any address.",
        ),
    ],
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            "-o",
            help="Write the hops (.parquet .csv .tsv .npz; Spark: a folder of Parquet). Sets and pairs can do without.",
        ),
    ] = None,
    anchors: Anchors = "log",
    method: Annotated[
        str, typer.Option("--method", help="Anchor rule (Spark: degree or random).")
    ] = "degree",
    anchor_file: AnchorFile = None,
    sets: Annotated[
        Path | None,
        typer.Option("--sets", metavar="FILE", help="Named sets instead of anchors: a table node,set."),
    ] = None,
    samples: Annotated[
        int, typer.Option("--samples", min=0, help="Random sets that a named set is compared with.")
    ] = 1000,
    bin_size: Annotated[
        int,
        typer.Option(
            "--bin-size", min=1, help="Nodes of like degree that a random one is drawn from, at least."
        ),
    ] = 100,
    pairs: Annotated[
        Path | None,
        typer.Option("--pairs", metavar="FILE", help="Named pairs instead of anchors: two names per line."),
    ] = None,
    cutoff: Annotated[
        float | None, typer.Option("--cutoff", min=0, help="Farther than this counts as unreachable.")
    ] = None,
    engine: Engine = "numba",
    master: Master = None,
    spark: SparkSettings = None,
    seed: Seed = 0,
    given: Given = NOTHING,
    force: Force = False,
    spreadsheet: Spreadsheet = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure exact distances, in hops or lengths: to anchors, to named sets, or between named pairs.

    Anchors: a row per node and a column to_NAME per anchor, -1 where there is no path. Paths in a directed
    graph follow its links to the anchor, and in further columns from_NAME from the anchor.

    --sets: per node and set the hops to the nearest member and to all members on average. Beside it the same for random
    sets of nodes with like degrees, and a z-score: below 0 is nearer than chance. With several sets, also the distance
    from each set to each other (network proximity, Guney et al. 2016).

    Example: psgnn distances communities --anchors 8 --out hops.parquet

    In kilometres: psgnn distances roads.csv --weight km --weight-is length --pairs trips.csv

    Near a set: psgnn distances my-edges.csv --sets my-sets.csv --out near.csv
    """
    from psgnn.console import flush_notes, print_json
    from psgnn.paths import check_file, check_output

    check_engine(engine, {"--master": master, "--spark": spark})
    files = {"--anchor-file": anchor_file, "--sets": sets, "--pairs": pairs}
    asked_of = {option: path.expanduser() for option, path in files.items() if path is not None}
    if len(asked_of) > 1:
        raise InputError(f"pass one of {' and '.join(asked_of)}; each is a question of its own")
    for path in asked_of.values():
        check_file(path)
    if sets is not None or pairs is not None:
        if engine == "spark" or master or spark:
            raise InputError(
                f"{next(iter(asked_of))} goes with --engine numba; Spark measures hops to anchors"
            )
        if sets is not None and cutoff is not None:
            raise InputError("--cutoff goes with anchors and pairs; distances to sets have none")
        if sets is not None and given.how.get("weight_is") == "length":
            raise InputError("--weight-is length goes with anchors and pairs; distances to sets are hops")
        if sets is not None and given.how.get("directed"):
            raise InputError(
                "--directed goes with anchors and pairs; hops to sets are those of either direction"
            )
        if out is not None:
            check_output(out, force=force)
        found = _one(load_graphs(graph, given))
        cutoff = _whole(cutoff, hops=found.lengths is None)
        output = Output(graph, out, force, as_json, spreadsheet)
        if pairs is not None:
            answer_pairs(found, pairs, output, cutoff=cutoff)
        elif sets is not None:
            answer_sets(
                found, sets, output, samples=samples, bin_size=bin_size, seed=seed, show_progress=not quiet
            )
        return
    if out is None:
        raise InputError("distances to anchors need a file: pass --out FILE, or ask about --sets or --pairs")
    named = asked_of.get("--anchor-file")
    about: dict[str, Any] = {"graph": graph, "out": out, "engine": engine}
    what = "hops"
    if engine == "spark":
        refused = [option for option in given.options if option not in ("--source", "--target")]
        if refused or given.root:
            option = refused[0] if refused else "--data"
            raise InputError(
                f"{option} goes with --engine numba; Spark reads a Parquet edge list and measures hops"
            )
        from psgnn.graph._options import ReadOptions

        columns = ReadOptions(**given.how).columns
        cutoff = _whole(cutoff, hops=True)
        asked = _Asked(out, anchors, method, named, cutoff, seed, force, spreadsheet)
        about |= _by_spark(
            graph, asked, master=master, options=spark, columns=columns, show_progress=not quiet
        )
    else:
        check_output(out, force=force)
        found = _one(load_graphs(graph, given))
        if found.lengths is not None:
            what = "lengths of the shortest paths"
        cutoff = _whole(cutoff, hops=found.lengths is None)
        about |= _here(found, _Asked(out, anchors, method, named, cutoff, seed, force, spreadsheet))
    if as_json:
        print_json(about)
        return
    flush_notes()
    say(f"{what} of {about['nodes']} nodes to {about['anchors']} anchors are in {out}")


def _whole(cutoff: float | None, *, hops: bool) -> float | None:
    """A cutoff of hops as an integer, of lengths as it is."""
    if cutoff is None or not hops:
        return cutoff
    if cutoff < 1 or cutoff != int(cutoff):
        raise InputError(f"--cutoff takes whole hops from 1 on, found {cutoff:g}; lengths go with --weight")
    return int(cutoff)


def _one(graphs: list[Graph]) -> Graph:
    if len(graphs) != 1:
        raise InputError(f"distances are of one graph, found {len(graphs)}")
    return graphs[0]


@dataclass(frozen=True)
class _Asked:
    """What both engines are asked: anchors by number and rule, or by the names in a file."""

    out: str
    anchors: str
    method: str
    named: Path | None
    cutoff: float | None
    seed: int
    force: bool
    spreadsheet: bool

    @property
    def whole_cutoff(self) -> int | None:
        """The cutoff in hops."""
        return None if self.cutoff is None else int(self.cutoff)


def _here(graph: Graph, asked: _Asked) -> dict[str, int]:
    from psgnn.anchors import select_anchors
    from psgnn.distances import shortest_distances
    from psgnn.graph._exports import write_table
    from psgnn.graph._names import node_ids, read_names

    names = graph.names
    if asked.named is None:
        chosen = select_anchors(graph, asked.method, parse_anchors(asked.anchors), asked.seed)
    else:
        chosen = node_ids(read_names(asked.named, names), names)
    table: dict[str, Any] = {"node": names}
    for way in ("to", "from") if graph.directed else ("to",):
        far = shortest_distances(graph, chosen, cutoff=asked.cutoff, reverse=way == "from")
        table |= {f"{way}_{names[a]}": far[:, j] for j, a in enumerate(chosen.tolist())}
    write_table(asked.out, table, force=asked.force, spreadsheet=asked.spreadsheet)
    return {"nodes": len(names), "anchors": int(chosen.size)}


def _by_spark(
    path: str,
    asked: _Asked,
    *,
    master: str | None,
    options: list[str] | None,
    columns: tuple[str, str] | None,
    show_progress: bool,
) -> dict[str, int]:
    from psgnn.anchors._rules import anchor_count
    from psgnn.console import Bar
    from psgnn.distances.spark import hop_columns, pick_anchors, read_links, session
    from psgnn.graph._names import read_names
    from psgnn.spark._graph import typed

    out = absolute(asked.out, new=Path(path).exists())
    spark = session(master, parse_settings(options))
    try:
        links = read_links(spark, absolute(path), columns)
        nodes = links.select("a").distinct().count()
        if asked.named is None:
            chosen = pick_anchors(
                links, asked.method, anchor_count(nodes, parse_anchors(asked.anchors)), asked.seed
            )
        else:
            kind = dict(links.dtypes)["a"]
            chosen = [typed(name, kind) for name in read_names(asked.named)]
        with Bar("levels", 0, show=show_progress) as bar:
            levels = hop_columns(
                spark, links, chosen, out, cutoff=asked.whole_cutoff, force=asked.force,
                progress=lambda level, reached: bar.update(level, f"level {level} reached {reached} nodes"),
            )  # fmt: skip
    finally:
        spark.stop()
    return {"nodes": nodes, "anchors": len(chosen), "levels": levels}
