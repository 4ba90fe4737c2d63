"""What datasets there are: names, counts, licences, options and files, as ``catalog.json`` has them.

Nothing heavy is imported, so ``psgnn datasets`` lists them at once. :mod:`psgnn.datasets._download` finds, fetches and
checks the files. Where a page serves a graph in another form than a prepared data folder has it, as SNAP does with
directed lists and others with archives, that form is known by its edges. The split of ogbl-ddi is published as pickled
files without a checksum, so its arrays, saved again as .npz, have to be in a data folder already.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from pathlib import Path
from typing import Any

from psgnn.errors import InputError, unknown_name


@dataclass(frozen=True)
class Copy:
    """One encoding of a file: where it lies in a data folder, how it is checked, what address serves it.

    ``sha256`` is of the bytes at ``path`` (of ``member`` where ``path`` is an archive). Where the canonical
    address serves the same graph in another encoding, ``edges_sha256`` accepts any encoding by its edges
    (see :func:`psgnn.datasets._download.edge_digest`). ``git_sha1`` is a git blob id.
    Of an ``unchecked`` file no checksum is known: it is used where it lies in a data folder, and never downloaded.
    """

    path: str
    sha256: str = ""
    size: int = 0
    url: str = ""
    member: str = ""
    edges_sha256: str = ""
    git_sha1: str = ""
    unchecked: bool = False


@dataclass(frozen=True)
class DataFile:
    """A file that a loader reads, in any of its copies, and the page that describes its source."""

    copies: tuple[Copy, ...]
    page: str


@dataclass(frozen=True)
class Option:
    """An option of a dataset: its default, and what else it may be."""

    default: int | bool | str
    minimum: int = 1
    choices: Sequence[str] = ()

    def check(self, dataset: str, name: str, value: Any) -> int | bool | str:
        """The value, or an :class:`InputError` that says what it may be."""
        found = f"found {value!r}"
        if isinstance(self.default, bool):
            if type(value).__name__ in ("bool", "bool_"):  # also NumPy's, which is not imported for this
                return bool(value)
            raise InputError(f"option {name} of dataset '{dataset}' must be True or False, {found}")
        if isinstance(self.default, int):
            whole = isinstance(value, Integral) and not isinstance(value, bool)
            if whole and value >= self.minimum:
                return int(value)
            raise InputError(
                f"option {name} of dataset '{dataset}' must be a whole number >= {self.minimum}, {found}"
            )
        if value not in self.choices:
            raise unknown_name(f"{name} of dataset '{dataset}'", str(value), self.choices)
        return str(value)


@dataclass(frozen=True)
class Dataset:
    """A row of the catalogue; counts are of the whole dataset with its default options.

    Without its ``files`` a dataset cannot be loaded, without its ``extras`` it lacks what they are named for.
    """

    name: str
    graphs: int
    nodes: int
    edges: int
    features: int = 0
    classes: int = 0
    licence: str = "not stated"
    source: str = ""
    files: Mapping[str, DataFile] = field(default_factory=dict)
    extras: Mapping[str, DataFile] = field(default_factory=dict)
    options: Mapping[str, Option] = field(default_factory=dict)
    build: str = ""  # ``module:function``; it gets the row and the root if there are files, then the options

    @property
    def kind(self) -> str:
        """``synthetic`` or ``real``."""
        return "real" if self.files else "synthetic"

    def settings(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Every option with its value: the one given, checked, or else the default."""
        for name in options:
            if not self.options:
                raise InputError(f"dataset '{self.name}' takes no options, found '{name}'")
            if name not in self.options:
                raise unknown_name(f"option of dataset '{self.name}'", name, self.options)
        return {
            name: option.check(self.name, name, options.get(name, option.default))
            for name, option in self.options.items()
        }


def _read(text: str) -> Iterator[Dataset]:
    """The rows of the catalogue; a row may use the files of an earlier one ``also``."""
    known: dict[str, Dataset] = {}
    for entry in json.loads(text):
        page, also = entry.get("source", ""), entry.pop("also", None)
        for part in ("files", "extras"):
            named = entry.get(part, {}).items()
            entry[part] = {
                name: DataFile(tuple(Copy(**copy) for copy in copies), page) for name, copies in named
            }
        entry["files"] |= {} if also is None else known[also].files
        options = entry.get("options", {}).items()
        entry["options"] = {name: Option(**option) for name, option in options}
        known[entry["name"]] = row = Dataset(**entry)
        yield row


CATALOG = {row.name: row for row in _read(Path(__file__).with_name("catalog.json").read_text("utf-8"))}


def find_dataset(name: str) -> Dataset:
    """The row of that name, in any case; or an :class:`InputError` with the nearest name."""
    by_name = {row.name.lower(): row for row in CATALOG.values()}
    row = by_name.get(str(name).lower())
    if row is None:
        raise unknown_name("dataset", str(name), CATALOG)
    return row
