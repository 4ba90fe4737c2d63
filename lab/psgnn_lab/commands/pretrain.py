"""``psgnn-lab pretrain``: the weights that come with the package, made again."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from psgnn.cli.arguments import Json, Quiet, Seed, TaskOption, Verbose
from psgnn.cli.failures import fail
from psgnn.errors import InputError

if TYPE_CHECKING:
    from psgnn_lab.pretraining.pretrain import Comparison


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

    Example: psgnn-lab pretrain --out pretrained --check
    """
    from psgnn.console import print_json, set_verbosity
    from psgnn_lab.pretraining.pretrain import GRAPHS, STEPS, compare_with_shipped

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
    found = compare_with_shipped(path) if check else None
    if as_json:
        compared: dict[str, Any] = {"difference": None, "equal": None}
        if found is not None:
            compared = {**asdict(found), "equal": found.difference == 0}
        print_json({"out": str(path), **compared})
    else:
        typer.echo(f"the weights are {path}")
        if found is not None:
            typer.echo(_verdict(found, path.stem))
    if found is not None and found.difference:
        sys.exit(1)


def _verdict(found: Comparison, name: str) -> str:
    """What the comparison says, in words."""
    from psgnn_lab.pretraining.pretrain import machine

    if found.difference == 0:
        return f"they equal the shipped ones, bit for bit ({name})"
    here, there = (
        ", ".join(f"{key} {value}" for key, value in each.items()) if each else "not recorded"
        for each in (machine(), found.made_on)
    )
    return (
        f"they differ from the shipped ones by up to {found.difference:.2e} ({name}); AUC on graphs kept from training "
        f"{found.auc:.4f}, shipped {found.shipped_auc:.4f}. Bits are equal on one kind of processor with "
        f"the same versions alone; here: {here}; shipped: {there}"
    )


def _pretrained(out: Path, **options: Any) -> Path:
    """The weights, or one line that says how to go on."""
    from psgnn_lab.pretraining.pretrain import pretrain

    try:
        return pretrain(out, **options)
    except KeyboardInterrupt:
        fail(f"interrupted; what is in {out} is kept, and the same command goes on with it", 130)
