"""The records of a text table: separators, comments, quotes and line numbers."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import numpy as np
import polars as pl

from psgnn.errors import InputError
from psgnn.graph._headers import fields_of_any_size, first_record
from psgnn.graph._table import Table, need_rows, shortened

SAMPLE_BYTES = 1 << 16
SAMPLE_RECORDS = 100
COMMENT_OR_BLANK = {signs: re.compile(rb"\n[%s\n]" % signs.encode()) for signs in ("#%", "%")}
QUOTED_OR_COMMENT = {
    signs: re.compile(rb'^[%s][^\n]*|(?<![^\n\t ,;])"[^"]*(?:""[^"]*)*"' % signs.encode(), re.MULTILINE)
    for signs in ("#%", "%")
}
DECIMAL_COMMA = re.compile(r"(?<=[0-9]),(?=[0-9]+(?:;|$))")
SEVERAL_NUMBERS = re.compile(r"\s*[-+.\d]+[\s;]+[-+.\d]")


class CsvReader:
    """Like ``csv.reader``; a comment is an empty record. Inside a quoted field a line is never a comment."""

    def __init__(
        self, lines: Iterable[str], separator: str, signs: str = "#%", *, strict: bool = False
    ) -> None:
        self._lines, self._signs = lines, signs
        self._at_record = True
        self._reader = csv.reader(self._uncommented(), delimiter=separator, strict=strict)

    @property
    def line_num(self) -> int:
        """The number of lines read."""
        return self._reader.line_num

    def __iter__(self) -> Iterator[list[str]]:
        return self

    def __next__(self) -> list[str]:
        self._at_record = True
        return next(self._reader)

    def _uncommented(self) -> Iterator[str]:
        for line in self._lines:
            is_comment = self._at_record and line[0] in self._signs
            self._at_record = False  # until the next record is asked for
            yield "\n" if is_comment else line


@dataclass(frozen=True)
class Records:
    """The records of a text file: the lines of ``text[start:]``, split at ``separator``.

    Lines that begin with one of ``signs`` are comments.
    """

    path: Path
    text: bytes
    separator: str
    start: int
    signs: str = "#%"

    def sample(self) -> list[list[str]]:
        """The fields of the first records."""
        lines = (line + "\n" for line in first_lines(self.text, self.start))
        records = islice(filter(None, CsvReader(lines, self.separator, self.signs)), SAMPLE_RECORDS)
        return [[field.strip() for field in record] for record in records]

    def below_first(self) -> Records:
        """The records without the first, which may have several lines."""
        end = self.start

        def lines() -> Iterator[str]:
            nonlocal end
            while end < len(self.text):
                start, end = end, self.text.index(b"\n", end) + 1
                yield self.text[start:end].decode()

        with fields_of_any_size():
            next(csv.reader(lines(), delimiter=self.separator), None)
        return replace(self, start=end)

    def table(self, pair: tuple[int, int], more: Mapping[str, int], *, integers: bool) -> Table:
        """The pair, as integers if that is wanted and every field is one, and more columns by their roles."""
        columns = [*pair, *more.values()]
        need_rows(self.text.count(b"\n"), integers=integers)
        frame = None
        if integers and not self._has_signs_in_quotes():
            with suppress(pl.exceptions.PolarsError):
                dtypes = [pl.Int64] * 2 + [pl.Float64 if role == "weight" else pl.String for role in more]
                frame = self._frame(dict(zip(columns, dtypes, strict=True)))
        if frame is None or any(frame.null_count().row(0)):
            frame = self.columns(columns)
        found = dict(zip(more, frame.get_columns()[2:], strict=True))
        if "weight" in found and found["weight"].dtype == pl.String and self.separator == ";":
            found["weight"] = found["weight"].str.replace(",", ".", literal=True)
        return Table(frame[:, 0], frame[:, 1], self.where, found)

    def _frame(self, dtypes: Mapping[int, type[pl.DataType]]) -> pl.DataFrame:
        """The asked columns; raises ``PolarsError`` where a field does not have its type."""
        schema = {str(i): dtypes.get(i, pl.String) for i in range(max(dtypes) + 1)}
        # A header of our own fixes the number of columns, whatever the first line has. polars knows
        # one comment sign, and would make a row of a blank line.
        body = b"".join([self.separator.join(schema).encode(), b"\n", memoryview(self.text)[self.start :]])
        if self.signs == "#%":
            body = body.replace(b"\n%", b"\n#")
        while b"\n\n" in body:
            body = body.replace(b"\n\n", b"\n")
        frame = pl.read_csv(
            body,
            separator=self.separator,
            comment_prefix=self.signs[0],
            quote_char='"' if b'"' in body else None,
            schema=schema,
            truncate_ragged_lines=True,
        ).select(str(i) for i in dtypes)
        if b" " in body or b"\t" in body:
            frame = frame.with_columns(pl.col(pl.String).str.strip_chars())
        return frame

    def columns(self, columns: Sequence[int]) -> pl.DataFrame:
        """The asked columns as they stand; a field that is not there is null."""
        if not self._has_signs_in_quotes():
            # polars takes a quote inside a field (5" disk) for an unbalanced one; the csv module does not.
            with suppress(pl.exceptions.PolarsError):
                return self._frame(dict.fromkeys(columns, pl.String))
        records = self._quoted_records()
        fields = {str(i): [record[i] if i < len(record) else None for record in records] for i in columns}
        return pl.DataFrame(fields, schema=dict.fromkeys(fields, pl.String)).select(
            pl.all().str.strip_chars()
        )

    def _has_signs_in_quotes(self) -> bool:
        """Whether a line inside a quoted field is blank or looks like a comment, which `_frame` would change."""
        sign = COMMENT_OR_BLANK[self.signs]
        if b'"' not in self.text or not sign.search(self.text, self.start):
            return False
        parts = QUOTED_OR_COMMENT[self.signs].finditer(
            self.text, self.start
        )  # quotes in comments do not count
        return any(sign.search(self.text, *part.span()) for part in parts)

    def _quoted_records(self) -> list[list[str]]:
        reader = self._reader(strict=True)
        before = self.text.count(b"\n", 0, self.start)
        records, line = [], before + 1
        try:
            with fields_of_any_size():
                for record in reader:
                    records.append(record)
                    line = before + reader.line_num + 1
        except csv.Error as error:
            raise InputError(f"{self.path}, line {line}: {error}; check the quotes") from None
        return [record for record in records if record]

    def _reader(self, *, strict: bool) -> CsvReader:
        lines = io.StringIO(self.text[self.start :].decode(), newline="\n")
        return CsvReader(lines, self.separator, self.signs, strict=strict)

    def where(self, row: int) -> str:
        """The line number, counted over the whole file, and the text of a record."""
        before = self.text.count(b"\n", 0, self.start)
        if b'"' in self.text:
            reader = self._reader(strict=False)
            with fields_of_any_size():
                next(islice(filter(None, reader), row, None), None)
            line = before + reader.line_num
        else:
            chars = np.frombuffer(b"\n" + self.text[self.start :] + b"\n", np.uint8)
            starts = np.flatnonzero(chars[:-1] == ord("\n")) + 1
            is_record = ~np.isin(chars[starts], list(f"\n{self.signs}".encode()))
            line = before + int(np.flatnonzero(is_record)[row]) + 1
        found = self.text.split(b"\n", line)[line - 1].decode()
        return f"{self.path}, line {line} ({shortened(found)})"


def first_lines(text: bytes, start: int = 0) -> list[str]:
    """The lines at the start of a text."""
    lines = text[start : start + SAMPLE_BYTES].decode(errors="ignore").split("\n")
    return lines[: max(1, len(lines) - 1)]  # the last may be cut, unless it is the only one


def sample_lines(text: bytes) -> list[str]:
    """The first lines that are neither blank nor comments; of a text of comments the first ones."""
    lines = [line for line in first_lines(text, first_record(text)) if line.strip()]
    kept = [line for line in lines if line.lstrip()[0] not in "#%"]
    hashed = [line for line in first_lines(text) if line.startswith("#")]
    return (kept or hashed)[:SAMPLE_RECORDS]


def sniff(lines: list[str]) -> str:
    """Tab, comma or semicolon if it splits at least half of the lines, otherwise blanks."""
    if _has_decimal_commas(lines):
        return ";"
    for separator in "\t,;":
        records = list(csv.reader(lines, delimiter=separator))
        # "1 2<tab>5" and "1;2;0,5" show the separator inside what would be the first field.
        split = [len(record) > 1 and not SEVERAL_NUMBERS.match(record[0]) for record in records]
        if records and 2 * sum(split) >= len(split):
            return separator
    return " "


def _has_decimal_commas(lines: list[str]) -> bool:
    """Whether semicolons split all lines alike, and commas stand in numbers alone or not in the first line."""
    widths = {len(record) for record in csv.reader(lines, delimiter=";")}
    if len(widths) != 1 or widths == {1}:
        return False
    return not any("," in DECIMAL_COMMA.sub(".", line) for line in lines) or "," not in lines[0]
