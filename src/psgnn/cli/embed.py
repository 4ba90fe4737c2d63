"""``psgnn embed``: the embeddings of a run's nodes, to a file."""

from __future__ import annotations

from typing import Annotated

import typer

from psgnn.cli.arguments import (
    AnchorFile,
    Force,
    Json,
    NewAnchors,
    OtherGraph,
    PretrainedOption,
    Quiet,
    RunsArgument,
    Spreadsheet,
    Strict,
    load_run,
)
from psgnn.cli.reading import NOTHING, Given, reads_graph, titled
from psgnn.cli.spark import Engine, Master, SparkSettings, WorkFolder, check_engine, embed_by_spark
from psgnn.console import say
from psgnn.errors import InputError


@reads_graph
def embed_command(
    run: RunsArgument,
    out: Annotated[str, typer.Option("--out", "-o", help="Write the embeddings (.parquet .csv .tsv .npz).")],
    graph: OtherGraph = None,
    new_anchors: NewAnchors = False,
    pretrained: PretrainedOption = None,
    strict: Strict = False,
    anchor_file: AnchorFile = None,
    engine: Engine = "numba",
    master: Master = None,
    spark: SparkSettings = None,
    work: WorkFolder = None,
    given: Given = NOTHING,
    force: Force = False,
    spreadsheet: Spreadsheet = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write one vector a node, by name: near nodes belong together.

    Parquet has the columns node and embedding (a fixed-size list of float32), CSV node and d0, d1, ..., NPZ the arrays
    names and embeddings [N, d].

    With --graph, a later version of the run's graph gets vectors in the same coordinates. Added, gone and moved nodes
    are listed; --json has all their names.

    For a graph instead of a run, the weights that come with psgnn are used, without any training.

    Example: psgnn embed my-run -o embeddings.parquet

    Without a run: psgnn embed my-edges.csv -o embeddings.parquet

    By Spark, which writes a folder: psgnn embed edges.parquet --engine spark --master yarn -o embeddings
    """
    from psgnn.console import flush_notes, print_json
    from psgnn.paths import check_file, check_output

    check_engine(engine, {"--master": master, "--spark": spark, "--work": work})
    if anchor_file is not None:
        check_file(anchor_file.expanduser())
    if engine == "spark":
        refused = {
            "--graph": graph, "--new-anchors": new_anchors, "--pretrained": pretrained, "--strict": strict,
            "a list of graphs": len(run) > 1,
        }  # fmt: skip
        for option, value in refused.items():
            if value:
                raise InputError(f"{option} goes with --engine numba")
        nodes = embed_by_spark(
            run[0], str(out), given, anchor_file=anchor_file, master=master, settings=spark, work=work,
            force=force, show_progress=not quiet,
        )  # fmt: skip
        if as_json:
            print_json({"run": titled(run), "graph": None, "out": str(out), "nodes": nodes, "engine": engine})
        else:
            say(f"vectors of {nodes} nodes are in {out}")
        return
    check_output(out, force=force)
    result = load_run(
        run,
        graph,
        given,
        pretrained=pretrained,
        strict=strict,
        anchor_file=anchor_file,
        new_anchors=new_anchors,
    )
    from psgnn.graph._exports import write_embeddings

    embeddings = result.embed(show_progress=not quiet)
    write_embeddings(out, result.names_by_number, embeddings, force=force, spreadsheet=spreadsheet)
    nodes, dimensions = embeddings.shape
    changes = getattr(result, "changes", None)
    if as_json:
        sizes = {"graphs": len(result.node_names), "nodes": nodes, "dimensions": dimensions}
        about = {"run": titled(run), "graph": graph, "out": str(out), **sizes}
        print_json(about if graph is None else {**about, "changes": changes and changes.to_dict()})
        return
    flush_notes()
    say(f"{nodes} nodes, {dimensions} numbers each, are in {out}")
    for line in changes.lines() if changes else []:
        say(line)
