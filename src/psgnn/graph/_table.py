"""Two columns of a file, with the place of every row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

import polars as pl

from psgnn.errors import InputError
from psgnn.graph._headers import Columns, chosen_column, chosen_pair
from psgnn.memory import need_room

ROW_BYTES = {True: 180, False: 270}  # what reading takes for a row, as measured; of integers, of names


@dataclass(frozen=True)
class Table:
    """Two columns of a file, both without gaps, and the weight column beside them if there is one.

    A column holds strings or integers. ``where(row)`` says where row 0, 1, ... stands in the file; ``ignored`` names
    the columns that were left out; ``skipped`` are names of a first record that could be nodes, misspelled.
    """

    first: pl.Series
    second: pl.Series
    weight: pl.Series | None
    where: Callable[[int], str]
    ignored: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()

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
        if self.weight is None:
            return None
        weights = self.weight.cast(pl.Float64, strict=False)
        self.refuse(
            ~weights.is_finite().fill_null(False), "the weight is not a finite number; correct or remove it"
        )
        return weights


def need_rows(count: int, *, integers: bool) -> None:
    """Raise `MemoryError` if so many rows would not fit under the memory cap."""
    need_room(count * ROW_BYTES[integers])


def asked_pair(path: Path, first: Sequence[str], columns: Columns) -> tuple[int, int]:
    """The columns that were asked for; an error if the file does not have them."""
    pair = chosen_pair(first, columns)
    if pair is None or pair[0] == pair[1]:
        known = ", ".join(first[:12])
        raise InputError(
            f"{path} has no two columns {' and '.join(columns)}; its first line is {shortened(known)}, "
            "name two of its columns or give their numbers from 1 on"
        )
    return pair


def asked_weight(path: object, first: Sequence[str], weight: str | None, pair: tuple[int, int]) -> int | None:
    """The weight column that was asked for; an error if the file does not have it, or if it holds nodes."""
    if weight is None:
        return None
    place = chosen_column(first, weight)
    if place is None:
        near = get_close_matches(weight, first, n=1)
        known = f"did you mean {near[0]!r}?" if near else f"it has {shortened(', '.join(first[:12]))}"
        raise InputError(f"{path} has no column {shortened(weight)}; {known}")
    if place in pair:
        raise InputError(f"{path}: column {shortened(weight)} holds nodes; --weight names another column")
    return place


def shortened(text: str) -> str:
    """The text in quotes, cut where it is long."""
    return repr(text if len(text) <= 60 else text[:57] + "...")
