"""``psgnn report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from psgnn.cli.arguments import Force, Json, Quiet, Verbose, check_run
from psgnn.cli.reading import Memory
from psgnn.console import say
from psgnn.errors import InputError

PAGE_SUFFIXES = (".html", ".htm")


def report_command(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN...", help="Folders of finished runs, as psgnn train makes them."),
    ],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The page (.html); can be left out with --json.")
    ] = None,
    top: Annotated[
        int, typer.Option("--top", min=1, max=2000, help="So many predicted pairs of each run.")
    ] = 200,
    comparison: Annotated[
        Path | None,
        typer.Option("--compare", help="What psgnn compare --json printed, such as with peers, to show too."),
    ] = None,
    force: Force = False,
    as_json: Json = False,
    quiet: Quiet = False,
    memory: Memory = None,
    verbose: Verbose = False,
) -> None:
    """Make one HTML page that shows runs: graph, anchors, training, predictions. It opens offline.

    Example: psgnn report my-run -o report.html
    """
    from psgnn.console import Heartbeat, print_json, set_verbosity
    from psgnn.memory import limit_memory
    from psgnn.paths import check_output

    limit_memory(memory)
    set_verbosity(quiet=quiet or as_json, verbose=verbose)
    if out is None and not as_json:
        raise InputError("say where the page goes, such as --out report.html")
    if out is not None:
        check_output(out, force=force, suffixes=PAGE_SUFFIXES)
    for run in runs:
        check_run(run)
    from psgnn.report._page import plain, write_page
    from psgnn.report._summary import summarise

    shown = not quiet and not as_json
    with Heartbeat("report", show=shown) as beat:
        summary = summarise(runs, top=top, comparison=comparison, show_progress=shown, on_step=beat.note)
        if out is not None:
            beat.note("writing the page")
            size = write_page(summary, out, force=force)
    if out is not None and not as_json:
        say(f"the report is {out} ({size / 1e6:.1f} MB); open it in a browser")
    if as_json:
        print_json(plain(summary))
