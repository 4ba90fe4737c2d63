"""The command ``psgnn-lab``: experiments about psgnn, from a checkout."""

from __future__ import annotations

import typer

from psgnn.cli.failures import run_app
from psgnn_lab.commands.bench import bench_command
from psgnn_lab.commands.biomodules import biomodules_command
from psgnn_lab.commands.pretrain import pretrain_command
from psgnn_lab.commands.reproduce import reproduce_command

__all__ = ["app", "main"]

app = typer.Typer(
    name="psgnn-lab",
    help="Experiments about psgnn: tables and figures, pretraining, benchmarks.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _root() -> None:
    """Experiments about psgnn: tables and figures, pretraining, benchmarks."""


app.command("reproduce")(reproduce_command)
app.command("pretrain")(pretrain_command)
app.command("bench")(bench_command)
app.command("biomodules")(biomodules_command)


def main() -> None:
    """Run the command line."""
    run_app(app, "psgnn-lab")
