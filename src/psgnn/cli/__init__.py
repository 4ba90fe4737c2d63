"""The command ``psgnn``. Commands import what they need when they run, so that ``--help`` is instant."""

from __future__ import annotations

import atexit
import gc
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from psgnn.cli.failures import run_app

__all__ = ["app", "main"]

MODULES = {  # in the order of help
    "datasets": "graphs",
    "anchors": "graphs",
    "distances": "distances",
    "train": "train",
    "embed": "embed",
    "predict": "predict",
    "similar": "answers",
    "explain": "answers",
    "evaluate": "answers",
    "compare": "train",
    "report": "report",
}
FIRST_COLLECTION = 200_000  # objects: about as many as imports leave; Python's default is 700
FULL_COLLECTION = 100  # collections of young objects before one of all objects; Python's default is 10
PLAIN: dict[str, Any] = {"rich_markup_mode": None, "pretty_exceptions_enable": False}


class _Commands(Mapping[str, Any]):
    """The commands by name. Each is imported and built when it is asked for: nobody waits for the others."""

    def __getitem__(self, name: str) -> Any:
        module = import_module(f"{__name__}.{MODULES[name]}")
        alone = typer.Typer(add_completion=False, **PLAIN)
        alone.command(name)(getattr(module, f"{name}_command"))
        return get_command(alone)

    def __iter__(self) -> Iterator[str]:
        return iter(MODULES)

    def __len__(self) -> int:
        return len(MODULES)


class _Group(TyperGroup):
    def __init__(self, **settings: Any) -> None:
        super().__init__(**{**settings, "commands": _Commands()})


app = typer.Typer(
    name="psgnn",
    cls=_Group,
    help="Position-aware learning on graphs without node features: anchors, exact distances, missing links.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    **PLAIN,
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


def main() -> None:
    """Run the command line."""
    _collect_late()
    run_app(app)


def _collect_late() -> None:
    """Let the first collection of garbage come after the imports, and keep those of all objects rare.

    Imports leave many objects and no garbage. To look through them again and again, also at the end, takes as long as
    an answer about a small graph.
    """
    young, middle, _ = gc.get_threshold()

    def as_usual(phase: str, about: dict[str, int]) -> None:
        gc.callbacks.remove(as_usual)
        gc.set_threshold(young, middle, FULL_COLLECTION)

    gc.callbacks.append(as_usual)
    gc.set_threshold(FIRST_COLLECTION)
    atexit.register(gc.freeze)
