"""``psgnn predict``: scores of asked pairs, or the best missing links."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from psgnn.cli.arguments import (
    ColumnsOption,
    Force,
    HeaderOption,
    Json,
    Memory,
    OtherGraph,
    PretrainedOption,
    Quiet,
    Root,
    RunArgument,
    Seed,
    Settings,
    Strict,
    Verbose,
    check_numbers,
    load_run,
)
from psgnn.errors import InputError

SHOWN = 20


def predict_command(
    run: RunArgument,
    pairs: Annotated[
        Path | None,
        typer.Option("--pairs", metavar="FILE", help="Score the pairs in this file: two node names a line."),
    ] = None,
    top: Annotated[
        int | None,
        typer.Option("--top", metavar="N", min=1, help="Find the N best-scored pairs that are not linked."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write the pairs (.parquet .csv .tsv .npz).")
    ] = None,
    graph: OtherGraph = None,
    seed: Seed = 0,
    pretrained: PretrainedOption = None,
    strict: Strict = False,
    columns: ColumnsOption = None,
    header: HeaderOption = None,
    settings: Settings = None,
    root: Root = None,
    force: Force = False,
    as_json: Json = False,
    memory: Memory = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Score pairs of nodes: will they be linked (link task), are they of one class (pair task)?

    A run scores as it was trained to. For a graph the weights that come with psgnn are used, without any training; they
    look for missing links.

    The probability is the sigmoid of the score. It is relative to the pairs of training, of which a quarter to a half
    were positive: use it to rank, not as the chance that any two nodes are linked.

    --top searches candidates instead of scoring all pairs of a large graph. Links that training held back are no news
    and left out.

    Example: psgnn predict my-run --top 100 -o missing-links.csv

    Without a run: psgnn predict my-edges.csv --top 50
    """
    from psgnn.console import flush_notes, print_json, set_verbosity
    from psgnn.memory import limit_memory
    from psgnn.paths import check_file, check_output

    set_verbosity(quiet=quiet or as_json, verbose=verbose)
    limit_memory(memory)
    if (pairs is None) == (top is None):
        raise InputError("pass either --pairs FILE or --top N")
    if out is not None:
        check_output(out, force=force)
    if pairs is not None:
        check_file(pairs.expanduser())
    result = load_run(
        run,
        graph,
        root=root,
        settings=settings,
        columns=columns,
        header=header,
        pretrained=pretrained,
        strict=strict,
    )
    from psgnn.graph._exports import pair_columns, write_pairs
    from psgnn.graph._read import read_pairs
    from psgnn.scoring import top_links

    if pairs is not None:
        asked = read_pairs(pairs, *result.names_by_number)
        scores = result.score(asked, show_progress=not quiet)
    else:
        asked, scores = top_links(result, top or 1, seed=seed, show_progress=not quiet)
    check_numbers(scores, run)
    if out is not None:
        write_pairs(out, result.names_by_number, asked, scores, force=force)
    table = pair_columns(result.names_by_number, asked, scores)
    count = int(scores.size)
    if as_json:
        about = {"run": str(run), "graph": graph, "out": None if out is None else str(out), "count": count}
        if "pretrained" in result.record:
            about |= {key: result.record[key] for key in ("pretrained", "strict")}
        print_json(about if out is not None else {**about, "pairs": _rows(table)})
        return
    if out is None:
        found = "best missing links" if result.task == "link" else "best pairs that are not linked"
        _show(f"{run}: {found if pairs is None else str(pairs)}", table)
    else:
        flush_notes()
        typer.echo(f"{count} pairs are in {out}")


def _rows(columns: dict[str, Any]) -> list[dict[str, Any]]:
    """A document for each pair."""
    lists = [column if isinstance(column, list) else column.tolist() for column in columns.values()]
    return [dict(zip(columns, values, strict=True)) for values in zip(*lists, strict=True)]


def _show(title: str, columns: dict[str, Any]) -> None:
    """The first pairs as a table."""
    from psgnn.console import print_table

    count = len(columns["source"])
    rows = _rows({key: column[:SHOWN] for key, column in columns.items()})
    cells = [[f"{cell:.4f}" if isinstance(cell, float) else cell for cell in row.values()] for row in rows]
    print_table(title, list(columns), cells)
    if count > SHOWN:
        typer.echo(f"the first {SHOWN} of {count}; --out FILE writes them all")
