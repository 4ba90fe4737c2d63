"""``psgnn-lab biomodules``: the gene networks of the dataset bio-modules, simulated."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from psgnn.cli.arguments import Force, Json, Quiet, Seed, Verbose
from psgnn.errors import InputError, unknown_name


def biomodules_command(
    out: Annotated[Path, typer.Option("--out", "-o", help="The .npz file of the networks.")] = Path(
        "bio-modules.npz"
    ),
    networks: Annotated[int, typer.Option("--networks", min=1, help="Networks to evolve.")] = 40,
    generations: Annotated[int, typer.Option("--generations", min=1, help="Length of evolution.")] = 2000,
    crossover: Annotated[
        str,
        typer.Option("--crossover", metavar="none|horizontal|diagonal", help="What parents exchange."),
    ] = "horizontal",
    seed: Seed = 0,
    check: Annotated[
        bool,
        typer.Option("--check", help="Compare with the networks in psgnn; exit code 1 if they differ."),
    ] = False,
    force: Force = False,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Evolve the gene networks of the dataset bio-modules and write them to a file.

    The file holds one array, networks, int8 [networks, 10, 10]: the effect of gene j on gene i. The defaults give
    the file that comes with psgnn.

    Example: psgnn-lab biomodules --out bio-modules.npz --check
    """
    import numpy as np

    from psgnn.console import print_json, set_verbosity
    from psgnn.datasets._synthetic import stored_networks
    from psgnn.paths import atomic_write, check_output
    from psgnn_lab.biomodules import CROSSOVER, CROSSOVERS, GENERATIONS, simulate

    set_verbosity(quiet=quiet or as_json, verbose=verbose)
    if crossover not in CROSSOVERS:
        raise unknown_name("--crossover", crossover, CROSSOVERS)
    shipped = stored_networks()
    if check and ((generations, crossover, seed) != (GENERATIONS, CROSSOVER, 0) or networks > len(shipped)):
        raise InputError(
            f"--check compares with the networks in psgnn; it goes without --generations, --crossover and --seed, "
            f"and with at most {len(shipped)} networks"
        )
    check_output(out, force=force, suffixes=[".npz"])
    made = simulate(networks, generations, crossover, seed, show_progress=not quiet)
    with atomic_write(out, force=force) as part, part.open("wb") as file:
        np.savez_compressed(file, networks=made)
    equal = bool(np.array_equal(made, shipped[:networks])) if check else None
    if as_json:
        print_json({"out": str(out), "networks": networks, "equal": equal})
    else:
        typer.echo(f"wrote {networks} networks to {out}")
        if equal is not None:
            typer.echo(f"they {'equal' if equal else 'differ from'} those in psgnn")
    if equal is False:
        sys.exit(1)
