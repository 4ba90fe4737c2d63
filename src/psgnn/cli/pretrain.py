"""``psgnn pretrain``: the weights that come with the package, made again."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from psgnn.cli.arguments import Json, Quiet, Seed, TaskOption, Verbose
from psgnn.cli.failures import fail
from psgnn.errors import InputError


def pretrain_command(
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder for the weights; goes on with what is in it.")
    ] = Path("pretrained"),
    task: TaskOption = "link",
    seed: Seed = 0,
    graphs: Annotated[
        int | None,
        typer.Option("--graphs", min=10, help="So many of every family; the shipped number if left out."),
    ] = None,
    steps: Annotated[
        int | None, typer.Option("--steps", min=1, help="Of training; the shipped number if left out.")
    ] = None,
    without: Annotated[
        str | None,
        typer.Option("--without", metavar="FAMILY,...", help="Leave these families of graphs out."),
    ] = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="Compare with the weights that come with psgnn; exit code 1 if they differ."
        ),
    ] = False,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Learn from synthetic graphs which nodes of any graph are linked, or belong together, as the shipped weights did.

    The same seed gives the same weights, bit for bit, on the same machine. An interrupted command goes on where it was.

    Example: psgnn pretrain --out pretrained --check
    """
    from psgnn.console import print_json, set_verbosity
    from psgnn.pretraining.pretrain import GRAPHS, STEPS, largest_difference

    set_verbosity(quiet=quiet or as_json, verbose=verbose)
    families = () if without is None else tuple(name.strip() for name in without.split(","))
    if check and (families or seed or (graphs or GRAPHS, steps or STEPS) != (GRAPHS, STEPS)):
        raise InputError(
            "--check makes the shipped weights again; it goes without --seed, --graphs, --steps, --without"
        )
    path = _pretrained(
        out,
        task=task,
        seed=seed,
        graphs=graphs or GRAPHS,
        steps=steps or STEPS,
        without=families,
        show_progress=not quiet,
    )
    difference = largest_difference(path) if check else None
    if as_json:
        print_json(
            {"out": str(path), "difference": difference, "equal": None if not check else difference == 0}
        )
    else:
        typer.echo(f"the weights are {path}")
        if difference is not None:
            equal = (
                "equal the shipped ones, bit for bit"
                if difference == 0
                else f"differ from the shipped ones by up to {difference:.2e}"
            )
            typer.echo(f"they {equal} ({path.stem})")
    if difference:
        sys.exit(1)


def _pretrained(out: Path, **options: Any) -> Path:
    """The weights, or one line that says how to go on."""
    from psgnn.pretraining.pretrain import pretrain

    try:
        return pretrain(out, **options)
    except KeyboardInterrupt:
        fail(f"interrupted; what is in {out} is kept, and the same command goes on with it", 130)
