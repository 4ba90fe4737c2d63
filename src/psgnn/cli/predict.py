"""``psgnn predict``: the best missing links of a graph or of a node, or scores of given pairs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
    Seed,
    Spreadsheet,
    Strict,
    check_source,
    load_run,
)
from psgnn.cli.reading import NOTHING, Given, reads_graph, titled
from psgnn.cli.spark import Engine, Master, Question, SparkSettings, WorkFolder, by_spark, check_engine
from psgnn.console import say
from psgnn.errors import InputError

if TYPE_CHECKING:
    import polars

SHOWN = 20


@reads_graph
def predict_command(
    run: RunsArgument,
    pairs: Annotated[
        Path | None,
        typer.Option(
            "--pairs", metavar="FILE", help="Score the pairs in this file: two node names per line."
        ),
    ] = None,
    top: Annotated[
        int | None,
        typer.Option(
            "--top",
            metavar="N",
            min=1,
            help="Find the N best-scored pairs that are not linked; per node with --for; of these with --pairs.",
        ),
    ] = None,
    of: Annotated[
        list[str] | None,
        typer.Option(
            "--for", metavar="NODE", help="Find the best partners of this node, or of 'all'; can be repeated."
        ),
    ] = None,
    of_file: Annotated[
        Path | None,
        typer.Option("--for-file", metavar="FILE", help="The same for the nodes in a file, one per line."),
    ] = None,
    missing: Annotated[
        str | None,
        typer.Option(
            "--missing",
            metavar="5%|N",
            help="How many links are missing: a share of the known ones, or a number. Default: 10%.",
        ),
    ] = None,
    why: Annotated[bool, typer.Option("--why", help="Add the main reason for each pair.")] = False,
    out: Annotated[
        str | None, typer.Option("--out", "-o", help="Write the pairs (.csv .tsv .parquet .npz).")
    ] = None,
    graph: OtherGraph = None,
    new_anchors: NewAnchors = False,
    pretrained: PretrainedOption = None,
    strict: Strict = False,
    engine: Engine = "numba",
    master: Master = None,
    spark: SparkSettings = None,
    work: WorkFolder = None,
    anchor_file: AnchorFile = None,
    given: Given = NOTHING,
    seed: Seed = 0,
    force: Force = False,
    spreadsheet: Spreadsheet = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Predict missing links: of the whole graph, of a node, or among the pairs in a file.

    A run predicts from all known links, also those that were held out to test it. For a graph instead of a run, the
    weights that come with psgnn are used, without any training.

    The probability says how likely a pair is a missing link if a tenth as many links are missing as are known;
    --missing changes that. It is estimated with links that are hidden from the scorer.

    Example: psgnn predict my-edges.csv --top 50

    Of one node: psgnn predict my-edges.csv --for Ada --top 10

    Of every node: psgnn predict my-edges.csv --for all --top 10 --out partners.parquet

    By Spark: psgnn predict edges.parquet --engine spark --master 'local[2]' --top 50
    """
    from psgnn.console import flush_notes, print_json
    from psgnn.paths import check_file, check_output

    check_engine(engine, {"--master": master, "--spark": spark, "--work": work, "--anchor-file": anchor_file})
    for each in run if engine != "spark" else ():
        check_source(each, runs=True)
    nodes = list(of or [])
    everyone = nodes == ["all"] and of_file is None
    of_nodes = bool(nodes) or of_file is not None
    if (pairs is not None and of_nodes) or (pairs is None and not of_nodes and top is None):
        raise InputError("pass one of --pairs FILE, --top N, or --for NODE; --top N goes with each of them")
    if out is not None and not (everyone and engine == "spark"):  # Spark writes a folder, at any address
        check_output(out, force=force)
    for file in (pairs, of_file, anchor_file):
        if file is not None:
            check_file(file.expanduser())
    about: dict[str, Any] = {"run": titled(run), "graph": graph}
    count: int | None = None
    tables: Iterator[polars.DataFrame] = iter(())
    if engine == "spark":
        refused = {
            "--graph": graph, "--new-anchors": new_anchors, "--pretrained": pretrained, "--strict": strict,
            "--why": why, "a list of graphs": len(run) > 1,
        }  # fmt: skip
        for option, value in refused.items():
            if value:
                raise InputError(f"{option} goes with --engine numba")
        if everyone and out is None:
            raise InputError("--for all by Spark needs --out FOLDER, where Parquet is written")
        question = Question(
            top, nodes, of_file, pairs, missing, anchor_file, out if everyone else None, force
        )
        answered = by_spark(
            run[0], question, given, master=master, settings=spark, work=work, seed=seed,
            show_progress=not quiet,
        )  # fmt: skip
        about |= {"pretrained": "best-link", "strict": False, "engine": engine}
        link = True
        if isinstance(answered, int):  # written by the workers
            count = answered
        else:
            tables = iter([answered])
    else:
        result = load_run(
            run, graph, given, header_of=pairs, pretrained=pretrained, strict=strict, new_anchors=new_anchors
        )
        from psgnn.graph import read_names
        from psgnn.scoring import answer
        from psgnn.scoring._answers import answers_for_all
        from psgnn.scoring._names import all_names

        if "all" in nodes and not everyone and "all" not in all_names(result):
            raise InputError("--for all asks about every node; leave out the other nodes, or 'all'")
        if of_file is not None:
            nodes += read_names(of_file, all_names(result))
        if "pretrained" in result.record:
            about |= {key: result.record[key] for key in ("pretrained", "strict")}
        link = result.task == "link"
        asked: dict[str, Any] = {"top": top, "missing": missing, "why": why, "seed": seed}
        asked["show_progress"] = not quiet
        if everyone:
            tables = answers_for_all(result, **asked)
        else:
            tables = iter([answer(result, of=nodes or None, pairs=pairs, header=given.header, **asked)])
    if out is not None:
        if count is None:
            from psgnn.graph._exports import write_pair_blocks

            count = write_pair_blocks(out, tables, force=force, spreadsheet=spreadsheet)
        if as_json:
            print_json({**about, "count": count, "out": out})
            return
        flush_notes()
        say(f"{count} pairs are in {out}")
        return
    import polars

    found = polars.concat(tables)
    if as_json:
        print_json({**about, "count": found.height, "out": None, "pairs": found.to_dicts()})
        return
    best = "best missing links" if link else "best pairs that are not linked"
    whose = "every node" if everyone else ", ".join(nodes) or f"the nodes in {of_file}"
    what = str(pairs) if pairs is not None else f"best partners of {whose}" if of_nodes else best
    _show(f"{titled(run)}: {what}", found, link=link, several=everyone or len(nodes) > 1)


def _show(title: str, found: polars.DataFrame, *, link: bool, several: bool) -> None:
    """The first pairs as a table, and how many of them are likely to be missing links."""
    from psgnn.console import print_table

    sure = found["probability"].null_count() < found.height
    shown = found.head(SHOWN).drop("expected_precision", *([] if sure else ["probability"]))
    cells = [
        [f"{cell:.4f}" if isinstance(cell, float) else "-" if cell is None else cell for cell in row]
        for row in shown.rows()
    ]
    print_table(title, shown.columns, cells)
    if found.height > SHOWN:
        say(f"the first {SHOWN} of {found.height}; --out FILE writes them all")
    if link and not sure:
        say("the graph has too few links to say how likely these are")
    elif sure and found.height > 1 and not several:
        count = float(found["probability"].sum())
        about = f"about {count:.1f}" if count >= 0.05 else "fewer than 0.1"
        say(f"expected: {about} of these {found.height} are missing links")
