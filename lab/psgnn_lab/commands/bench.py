"""``psgnn-lab bench``: how fast this machine is."""

from __future__ import annotations

from psgnn.cli.arguments import Json, Quiet, Verbose


def bench_command(as_json: Json = False, quiet: Quiet = False, verbose: Verbose = False) -> None:
    """Measure this machine in half a minute: distances against SciPy, position layers, an epoch of psgnn.

    A ratio says how many times as long the other takes. Slow ones answer for 8 of the 64 sources, and their time is
    extrapolated.

    Example: psgnn-lab bench --json
    """
    from psgnn.console import print_json, print_table, set_verbosity
    from psgnn_lab.bench import quick_benchmark

    set_verbosity(quiet=quiet or as_json, verbose=verbose)
    found = quick_benchmark(show_progress=not quiet)
    if as_json:
        print_json(found)
        return
    machine = found["machine"]
    title = f"{machine['cores']} cores, {machine['processor']}, Python {machine['python']}"
    columns = ["what", "psgnn, s", "against", "s", "ratio"]
    rows = [
        [
            row["what"],
            f"{row['seconds']:.4f}",
            row["peer"],
            f"{row['peer_seconds']:.4f}",
            f"{row['ratio']:.1f}",
        ]
        for row in found["rows"]
    ]
    print_table(title, columns, rows)
