"""The options that say how a graph is read: one set of them, which every command that reads a graph takes."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from psgnn.errors import InputError
from psgnn.paths import without_secrets

Memory = Annotated[
    str | None,
    typer.Option(
        "--memory",
        metavar="SIZE",
        help="Cap, such as 4G; columns that do not fit are kept in files in $TMPDIR.",
    ),
]


@dataclass(frozen=True)
class Given:
    """What a command line says about a graph.

    ``how`` are keywords of `psgnn.read_graph`, those that were given; ``settings`` and ``root`` are about datasets.
    """

    how: dict[str, Any] = field(default_factory=dict)
    settings: list[str] | None = None
    root: Path | None = None

    @property
    def header(self) -> bool | None:
        """Whether the first line of text files names columns."""
        return self.how.get("header")

    @property
    def options(self) -> list[str]:
        """The options that were given, as they are typed."""
        names = {"sides": "--sides/--no-sides", "header": "--header/--no-header"}
        typed = [names.get(name, "--" + name.replace("_", "-")) for name in self.how]
        return typed + ["--set"] * bool(self.settings)

    def over(self, earlier: dict[str, Any]) -> Given:
        """The same, and where nothing was said what was said about an earlier graph."""
        kept = {key: value for key, value in earlier.items() if key != "sides" or "between" not in self.how}
        return replace(self, how={**kept, **self.how})


NOTHING = Given()


def reads_graph(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options about a graph to a command, which gets them as ``given``; obey --memory and --verbose."""
    own = inspect.signature(command, eval_str=True).parameters
    shared = inspect.signature(_shared, eval_str=True).parameters

    @functools.wraps(command)
    def with_options(**values: Any) -> None:
        from psgnn.console import set_verbosity
        from psgnn.memory import limit_memory

        about = {name: values.pop(name) for name in shared}
        set_verbosity(quiet=values["quiet"] or values["as_json"], verbose=about.pop("verbose"))
        limit_memory(about.pop("memory"))
        command(**values, given=_given(**about))

    parameters = [*(parameter for name, parameter in own.items() if name != "given"), *shared.values()]
    listed = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
    with_options.__signature__ = inspect.Signature(listed)  # type: ignore[attr-defined]
    with_options.__annotations__ = {parameter.name: parameter.annotation for parameter in listed}
    return with_options


def _given(settings: list[str] | None, root: Path | None, between: str | None, **how: Any) -> Given:
    if between is not None:
        how["between"] = two_types(between)
    if how["nodes"] is not None:
        how["nodes"] = str(how["nodes"])
    said = {
        name: value
        for name, value in how.items()
        if value is not None and (value or name in ("sides", "header"))
    }
    return Given(said, settings, root)


def titled(sources: list[str]) -> str:
    """The graphs for titles and documents, with no user and password in addresses."""
    return without_secrets(" ".join(sources))


def two_types(text: str) -> tuple[str, str]:
    """``user,film`` as two names."""
    names = [name.strip() for name in text.split(",")]
    if len(names) != 2 or not all(names):
        raise InputError(f"--between takes two types, such as user,film; found '{text}'")
    return names[0], names[1]


def _shared(
    source: Annotated[
        str | None,
        typer.Option(
            "--source", metavar="COLUMN", help="The column of the first nodes: its name, or its number."
        ),
    ] = None,
    target: Annotated[
        str | None, typer.Option("--target", metavar="COLUMN", help="The column of the second nodes.")
    ] = None,
    directed: Annotated[
        bool, typer.Option("--directed", help="Edges go from source to target; predictions do too.")
    ] = False,
    weight: Annotated[
        str | None,
        typer.Option(
            "--weight",
            metavar="COLUMN|count",
            help="The column of weights, or the number of rows of an edge.",
        ),
    ] = None,
    weight_is: Annotated[
        str | None,
        typer.Option(
            "--weight-is",
            metavar="length|strength",
            help="Lengths add up along a path; strengths of parallel edges.",
        ),
    ] = None,
    time: Annotated[
        str | None,
        typer.Option("--time", metavar="COLUMN", help="When edges were: ISO dates, or seconds since 1970."),
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", metavar="DATE", help="Read only edges up to this date.")
    ] = None,
    sides: Annotated[
        bool | None,
        typer.Option(
            "--sides/--no-sides",
            help="Sources and targets are nodes of two kinds, also those of one name [default: if no name is in both].",
        ),
    ] = None,
    nodes: Annotated[
        Path | None,
        typer.Option("--nodes", metavar="FILE", help="A table with a row per node: features and more."),
    ] = None,
    node_name: Annotated[
        str | None,
        typer.Option("--node-name", metavar="COLUMN", help="Its column of the names [default: the first]."),
    ] = None,
    label: Annotated[
        str | None, typer.Option("--label", metavar="COLUMN", help="Its column of the classes (pair tasks).")
    ] = None,
    type: Annotated[  # as it is called in the table
        str | None, typer.Option("--type", metavar="COLUMN", help="Its column of the types, for --between.")
    ] = None,
    between: Annotated[
        str | None,
        typer.Option("--between", metavar="A,B", help="Ask only about links from type A to type B."),
    ] = None,
    graph_id: Annotated[
        str | None,
        typer.Option("--graph-id", metavar="COLUMN", help="The column that says which graph an edge is in."),
    ] = None,
    query: Annotated[
        str | None,
        typer.Option("--query", metavar="SQL", help="The edges in a database, whose address is the graph."),
    ] = None,
    header: Annotated[
        bool | None,
        typer.Option(
            "--header/--no-header",
            help="Whether the first line of text files names columns, also of --pairs and --labels "
            "[default: by its look].",
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Option of the dataset, such as size=64."),
    ] = None,
    root: Annotated[
        Path | None, typer.Option("--data", help="Folder with dataset files [$PSGNN_DATA].")
    ] = None,
    memory: Memory = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="More notes.")] = False,
) -> None:
    """The options, in the order in which help lists them."""
