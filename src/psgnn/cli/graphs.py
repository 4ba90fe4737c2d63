"""``psgnn datasets`` and ``psgnn anchors``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from psgnn.cli.arguments import (
    Anchors,
    Force,
    GraphArgument,
    Json,
    Quiet,
    Root,
    Seed,
    Spreadsheet,
    Verbose,
    check_source,
    load_graphs,
    parse_anchors,
)
from psgnn.cli.reading import NOTHING, Given, reads_graph, titled
from psgnn.console import say

FIGURE_SUFFIXES = (".png", ".svg", ".pdf")


def datasets_command(
    root: Root = None, as_json: Json = False, quiet: Quiet = False, verbose: Verbose = False
) -> None:
    """List the datasets, their sizes and whether they are here.

    Example: psgnn datasets --json
    """
    from psgnn.console import print_json, print_table, set_verbosity
    from psgnn.datasets import list_datasets

    set_verbosity(quiet=quiet or as_json, verbose=verbose)
    rows = list_datasets(root)
    if as_json:
        print_json(rows)
        return
    columns = ["name", "graphs", "nodes", "edges", "features", "classes", "where"]
    shown = [["-" if row[column] is None else row[column] for column in columns] for row in rows]
    print_table("Datasets", columns, shown)


@reads_graph
def anchors_command(
    graph: GraphArgument,
    method: Annotated[
        str, typer.Option("--method", help="Anchor rule, or 'all' to compare them.")
    ] = "farthest-first",
    anchors: Anchors = "log",
    hops: Annotated[
        int, typer.Option("--hops", min=0, help="An anchor covers the nodes within this many hops.")
    ] = 3,
    seed: Seed = 0,
    given: Given = NOTHING,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write the anchors (.csv .tsv .parquet .npz).")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Draw the graph and its anchors (.png .svg .pdf).")
    ] = None,
    force: Force = False,
    spreadsheet: Spreadsheet = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Pick anchors by a rule and measure how well they cover the graph and tell its nodes apart.

    Example: psgnn anchors communities --method all --plot anchors.png
    """
    from psgnn.console import print_json, print_table
    from psgnn.paths import atomic_write, check_output

    if out is not None:
        check_output(out, force=force)
    if plot is not None:
        check_output(plot, force=force, suffixes=FIGURE_SUFFIXES)
    for source in graph:
        check_source(source)
    from psgnn.anchors import RULES
    from psgnn.anchors._diagnostics import COLUMNS, describe_anchors
    from psgnn.graph._exports import write_table

    methods = RULES.usable() if method == "all" else [method]
    graphs = load_graphs(graph, given)
    chosen = describe_anchors(
        graphs, methods, parse_anchors(anchors), hops=hops, seed=seed, show_progress=not quiet
    )
    if out is not None:
        write_table(out, chosen.table(), force=force, spreadsheet=spreadsheet)
    if plot is not None:
        from psgnn.report.plot import plot_anchors

        with atomic_write(plot, force=force) as temporary:
            plot_anchors(graphs[0], chosen.of_graph(0), seed=seed).savefig(temporary)
    if as_json:
        print_json(chosen.document(titled(graph)))
        return
    print_table(f"Anchors of {titled(graph)} (within {hops} hops)", COLUMNS, chosen.rows())
    for path, what in ((out, "anchors are"), (plot, "picture is")):
        if path is not None:
            say(f"the {what} in {path}")
    if len(methods) == 1 and out is None:
        names = chosen.names(0)
        shown = ", ".join(names[:30]) + (
            f", ... ({len(names)} in all; --out FILE writes them)" if names[30:] else ""
        )
        say(f"anchors: {shown}")
