"""Two columns of a file, with the place of every row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches

import polars as pl

from psgnn.errors import InputError
from psgnn.graph._headers import Columns, chosen_column, chosen_pair
from psgnn.graph._options import COUNT, ReadOptions
from psgnn.memory import need_room

ROW_BYTES = {True: 180, False: 270}  # what reading takes for a row, as measured; of integers, of names


@dataclass(frozen=True)
class Table:
    """Two columns of a file or frame, both without gaps, and those beside them by their roles, such as ``weight``.

    A column holds strings or integers; of a frame (``typed``) strings are names even if they look like integers.
    ``where(row)`` says where row 0, 1, ... stands in the file; ``names`` are those of the two columns, empty without a
    header; ``ignored`` says which columns were left out; ``skipped`` are names of a first record that could be nodes,
    misspelled.
    """

    first: pl.Series
    second: pl.Series
    where: Callable[[int], str]
    more: Mapping[str, pl.Series] = field(default_factory=dict)
    names: tuple[str, str] = ("", "")
    ignored: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    typed: bool = False

    def __post_init__(self) -> None:
        for column in (self.first, self.second):
            gap = column.is_null()
            if column.dtype == pl.String:
                gap |= (column == "").fill_null(True)
            self.refuse(gap, "expected two fields, found fewer or an empty one; correct or remove it")

    def refuse(self, bad: pl.Series, reason: str) -> None:
        """Raise for the first row that is ``bad``, if there is one."""
        row = bad.arg_max()
        if row is not None and bad[row]:
            raise InputError(f"{self.where(row)}: {reason}")

    def weights(self) -> pl.Series | None:
        """The weights as finite numbers, if there are any."""
        if "weight" not in self.more:
            return None
        column = self.more["weight"]
        weights = (column.cast(pl.String) if column.dtype.is_temporal() else column).cast(
            pl.Float64, strict=False
        )
        self.refuse(
            ~weights.is_finite().fill_null(False), "the weight is not a finite number; correct or remove it"
        )
        return weights


def need_rows(count: int, *, integers: bool) -> None:
    """Raise `MemoryError` if that many rows do not fit under the memory cap."""
    need_room(count * ROW_BYTES[integers])


def asked_pair(origin: object, first: Sequence[str], columns: Columns) -> tuple[int, int]:
    """The columns of the nodes that were asked for; an error if the table does not have them."""
    for name in columns:
        if chosen_column(first, name) is None:
            raise no_column(origin, name, first)
    pair = chosen_pair(first, columns)
    if pair is None or pair[0] == pair[1]:
        raise InputError(
            f"{origin}: --source and --target both name column {shortened(columns[0])}; name two"
        )
    return pair


def asked_columns(
    origin: object, first: Sequence[str], how: ReadOptions, pair: tuple[int, int]
) -> dict[str, int]:
    """The places of the columns that were asked for beside the nodes, by role.

    Raises:
        InputError: If the table does not have one of them, or if one has two roles.
    """
    places: dict[str, int] = {}
    for role, name in how.roles.items():
        place, option = chosen_column(first, name), "--" + role.replace("_", "-")
        if role == "weight" and name == COUNT and how.weight_is != "length":
            if place is None:
                continue
            if how.weight_is is None:
                raise InputError(
                    f"{origin} has a column '{COUNT}': say what it is with --weight-is, or rename it to count rows"
                )
        if place is None:
            raise no_column(origin, name, first)
        if place in pair:
            raise InputError(f"{origin}: column {shortened(name)} holds nodes; {option} names another column")
        if place in places.values():
            raise InputError(
                f"{origin}: {option} names the column {shortened(name)}, which has another role already"
            )
        places[role] = place
    return places


def no_column(origin: object, name: str, columns: Sequence[str]) -> InputError:
    """The error for a column that is not there, with the nearest that is."""
    near = get_close_matches(name, columns, n=1)
    if name.isdecimal():  # where there is no header, the first record would look like one
        known = f"columns are numbered from 1 to {len(columns)}"
    else:
        known = f"did you mean {near[0]!r}?" if near else f"it has {shortened(', '.join(columns[:12]))}"
    return InputError(f"{origin} has no column {shortened(name)}; {known}")


def shortened(text: str) -> str:
    """The text in quotes, cut where it is long."""
    return repr(text if len(text) <= 60 else text[:57] + "...")
