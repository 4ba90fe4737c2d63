"""How a graph is read: the keywords of `psgnn.read_graph`, and of every command that reads one."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from psgnn.errors import InputError
from psgnn.graph._headers import Columns

COUNT = "count"  # as a weight: how many rows an edge has
WEIGHTS = ("length", "strength")  # what a column of weights can hold


@dataclass(frozen=True)
class ReadOptions:
    """What was said about a graph; `psgnn.read_graph` describes each. Messages name them as a command line does."""

    source: str | None = None
    target: str | None = None
    weight: str | None = None
    weight_is: str | None = None
    time: str | None = None
    until: str | float | None = None
    directed: bool = False
    sides: bool | None = None
    nodes: Any = None
    node_name: str | None = None
    label: str | None = None
    type: str | None = None
    between: Columns | None = None
    graph_id: str | None = None
    query: str | None = None
    header: bool | None = None
    encoding: Sequence[Mapping[str, Any]] | None = None

    def __post_init__(self) -> None:
        if (self.source is None) != (self.target is None):
            raise InputError("--source and --target go together; name both columns")
        if self.weight is None and self.weight_is is not None:
            raise InputError("--weight-is goes with --weight COLUMN; name the column")
        if self.weight_is not in (None, *WEIGHTS):
            raise InputError(_takes_weights(f"'{self.weight_is}'"))
        if self.weight not in (None, COUNT) and self.weight_is is None:
            raise InputError(_takes_weights("nothing"))
        if self.until is not None and self.time is None:
            raise InputError("--until goes with --time COLUMN; name the column of the times")
        for option in ("node_name", "label", "type", "encoding"):
            if getattr(self, option) is not None and self.nodes is None:
                raise InputError(
                    f"--{option.replace('_', '-')} goes with --nodes FILE; name the table of nodes"
                )
        if self.between is not None:
            if self.type is None:
                raise InputError(
                    "--between goes with --nodes FILE and --type COLUMN; name the column of the types"
                )
            if self.sides is not None:
                raise InputError(
                    "pass --between, or --sides and --no-sides; both say which pairs are asked about"
                )
            if len(self.between) != 2 or self.between[0] == self.between[1]:
                raise InputError(
                    f"--between takes two types, such as user,film; found {','.join(self.between)}"
                )

    @property
    def columns(self) -> Columns | None:
        """The columns of the nodes, if they were named."""
        return None if self.source is None or self.target is None else (self.source, self.target)

    @property
    def roles(self) -> dict[str, str]:
        """The other columns of edges that were asked for, by option."""
        asked = {"weight": self.weight, "time": self.time, "graph_id": self.graph_id}
        return {role: column for role, column in asked.items() if column is not None}

    def given(self) -> dict[str, Any]:
        """What was said."""
        said = {field.name: getattr(self, field.name) for field in fields(self)}
        said = {key: value for key, value in said.items() if value is not None and value is not False}
        if self.sides is False:
            said["sides"] = False
        if isinstance(self.nodes, os.PathLike):
            said["nodes"] = os.fspath(self.nodes)
        return said

    def kept(self) -> dict[str, Any]:
        """What holds for a later version too, as JSON: no date, no query, and no table in memory."""
        said = {key: value for key, value in self.given().items() if key not in ("until", "query")}
        if not isinstance(said.get("nodes", ""), str):
            del said["nodes"]
        return said


DEFAULTS = ReadOptions()


def check_kept(options: Any) -> None:
    """Refuse what `ReadOptions.kept` does not give, with a `ValueError`."""
    names = {field.name for field in fields(ReadOptions)} - {"until", "query"}
    if not isinstance(options, dict) or not options.keys() <= names:
        raise ValueError("unknown options of reading")
    for name, value in options.items():
        if name in ("directed", "sides", "header"):
            sound = isinstance(value, bool)
        elif name == "between":
            sound = isinstance(value, list) and [type(part) for part in value] == [str, str]
        elif name == "encoding":
            sound = isinstance(value, list) and all(map(_is_encoding, value))
        else:
            sound = isinstance(value, str)
        if not sound:
            raise ValueError(f"the option {name} of reading is of another kind")


def _is_encoding(part: Any) -> bool:
    if not isinstance(part, dict) or not isinstance(part.get("column"), str):
        return False
    if "values" in part:
        return isinstance(part["values"], list) and all(isinstance(value, str) for value in part["values"])
    return all(isinstance(part.get(key), float) for key in ("mean", "sd")) and part["sd"] > 0


def refuse_columns(origin: str, how: ReadOptions, *, attributes: bool = False) -> None:
    """Complain about columns that were asked for of what is not a table. Its weights are called ``weight``.

    ``attributes`` says that edges have values by name, which weights and times can be.
    """
    wrong = [option for option in ("source", "time", "graph_id", "sides") if getattr(how, option) is not None]
    wrong = [option for option in wrong if not (attributes and option == "time")]
    if wrong:
        option = wrong[0].replace("_", "-")
        raise InputError(
            f"{origin} is not a table of edges; --{option} goes with text, Parquet and data frames"
        )
    if how.weight not in (None, "weight", COUNT) and not attributes:
        raise InputError(
            f"{origin} is not a table of edges; its weights are called weight, found --weight {how.weight}"
        )


def _takes_weights(found: str) -> str:
    return f"--weight-is says what the weights are; it takes {' or '.join(WEIGHTS)}, found {found}"
