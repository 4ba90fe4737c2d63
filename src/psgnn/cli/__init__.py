"""The command ``psgnn``. Commands import what they need when they run, so that ``--help`` is instant."""

from __future__ import annotations

import atexit
import gc
from typing import Annotated

import typer

from psgnn.cli.answers import evaluate_command, explain_command, similar_command
from psgnn.cli.distances import distances_command
from psgnn.cli.embed import embed_command
from psgnn.cli.failures import run_app
from psgnn.cli.graphs import anchors_command, datasets_command
from psgnn.cli.predict import predict_command
from psgnn.cli.report import report_command
from psgnn.cli.train import compare_command, train_command

__all__ = ["app", "main"]

FULL_COLLECTION = 100  # collections of young objects before one of all objects; Python's default is 10

app = typer.Typer(
    name="psgnn",
    help="Position-aware learning on graphs without node features: anchors, exact distances, missing links.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(value: bool) -> None:
    if value:
        from psgnn import __version__

        typer.echo(f"psgnn {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Position-aware learning on graphs without node features: anchors, exact distances, missing links."""


app.command("datasets")(datasets_command)
app.command("anchors")(anchors_command)
app.command("distances")(distances_command)
app.command("train")(train_command)
app.command("embed")(embed_command)
app.command("predict")(predict_command)
app.command("similar")(similar_command)
app.command("explain")(explain_command)
app.command("evaluate")(evaluate_command)
app.command("compare")(compare_command)
app.command("report")(report_command)


def main() -> None:
    """Run the command line."""
    # Imports leave many objects and no garbage. To look through all of them, also at the end, takes as long as an
    # answer about a small graph.
    gc.set_threshold(*gc.get_threshold()[:2], FULL_COLLECTION)
    atexit.register(gc.freeze)
    run_app(app)
