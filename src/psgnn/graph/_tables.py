"""Two-column tables, from text or Parquet, with the place of every row.

A text table holds one record a line: comma-, tab- or semicolon-separated, or separated by any run of
blanks; plain or ``.gz``; UTF-8. Lines that start with ``#`` or ``%`` are comments, blank lines are
skipped, a field may stand in double quotes, and blanks around a field don't count.

The first record of a ``.csv`` or ``.tsv`` file is a header unless it looks like the records below: one of its nodes
is named there again, or it has numbers where they have numbers. In other text it is a header only if the records
below have numbers where it has text. A file of pairs or labels has a header if its first record names no node of the
graph. ``header=True`` or ``False`` decides instead.
A header may put the two columns anywhere; without known names they are the first two, or the two after an index, which
is a first column without a name.
"""

from __future__ import annotations

import csv
import gzip
import io
import logging
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import numpy as np
import polars as pl

from psgnn.errors import InputError
from psgnn.graph._headers import (
    Columns,
    Guess,
    all_numbers,
    chosen_pair,
    first_pair,
    guess_header,
    named_pair,
    weight_column,
)
from psgnn.kernels._text import has_padding
from psgnn.memory import memory_cap, need_room
from psgnn.paths import check_file

log = logging.getLogger("psgnn")

HEADER_SUFFIXES = (".csv", ".tsv")  # these have a header by convention
TEXT_SUFFIXES = (".csv", ".tsv", ".txt", ".edges", ".edgelist", ".el")

SAMPLE_BYTES = 1 << 16
SAMPLE_RECORDS = 100
ROW_BYTES = {True: 180, False: 270}  # what reading takes for a row, as measured; of integers, of names
ENOUGH_RECORDS = 10  # to tell a header by its names, which no record shares
LEADING_COMMENTS = re.compile(rb"(?:[ \t]*(?:[#%][^\n]*)?\n)*")
COMMENT_OR_BLANK = re.compile(rb"\n[#%\n]")
QUOTED_OR_COMMENT = re.compile(rb'^[#%][^\n]*|(?<![^\n\t ,;])"[^"]*(?:""[^"]*)*"', re.MULTILINE)
SEVERAL_NUMBERS = re.compile(r"\s*[-+.\d]+[\s;]+[-+.\d]")


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


def read_table(
    path: Path,
    *,
    edges: bool = False,
    pairs: bool = False,
    node_names: Collection[str] | None = None,
    columns: Columns | None = None,
    header: bool | None = None,
) -> Table:
    """Read the two columns of a text or Parquet file.

    ``edges`` asks for the weight column too (the one that is named so, or a numeric third one) and
    reads integers as integers. Both columns of ``edges`` and ``pairs`` hold nodes, otherwise the first alone does. A
    first record with one of ``node_names`` there is no header. ``columns`` are names in the header, or numbers from 1
    on. ``header`` says whether a text file has one; by default its records decide.
    """
    if path.suffix.lower() != ".parquet":
        return _read_text(path, edges, edges or pairs, node_names, columns, header)
    if header is not None:
        raise InputError(f"{path} names its columns itself; --header and --no-header go with text files")
    return _read_parquet(path, edges, columns)


@contextmanager
def decoding(path: Path, kind: str) -> Iterator[None]:
    """Turn whatever a decoder raises on a damaged file into one line."""
    try:
        yield
    except InputError:
        raise
    # Third-party decoders raise nearly anything on damaged bytes, and a panic of polars is a BaseException.
    except (Exception, pl.exceptions.PanicException) as error:
        if isinstance(error, MemoryError) and memory_cap() is not None:
            raise
        reason = (
            getattr(error, "strerror", None) or " ".join(str(error).split())[:160] or type(error).__name__
        )
        raise InputError(f"{path} cannot be read as {kind}: {reason}") from error


def read_bytes(path: Path) -> bytes:
    """The content of a file, unpacked if its name ends in ``.gz``."""
    check_file(path)
    packed = path.suffix.lower() == ".gz"
    with decoding(path, "gzip" if packed else "a file"):
        content = path.read_bytes()
        return gzip.decompress(content) if packed else content


# Text


class CsvReader:
    """Like ``csv.reader``; a comment is an empty record. Inside a quoted field a line is never a comment."""

    def __init__(self, lines: Iterable[str], separator: str, *, strict: bool = False) -> None:
        self._lines = lines
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
            is_comment = self._at_record and line[0] in "#%"
            self._at_record = False  # until the next record is asked for
            yield "\n" if is_comment else line


@dataclass(frozen=True)
class Records:
    """The records of a text file: the lines of ``text[start:]``, split at ``separator``."""

    path: Path
    text: bytes
    separator: str
    start: int

    def sample(self) -> list[list[str]]:
        """The fields of the first records."""
        lines = (line + "\n" for line in _first_lines(self.text, self.start))
        records = islice(filter(None, CsvReader(lines, self.separator)), SAMPLE_RECORDS)
        return [[field.strip() for field in record] for record in records]

    def below_first(self) -> Records:
        """The records without the first, which may have several lines."""
        end = self.start

        def lines() -> Iterator[str]:
            nonlocal end
            while end < len(self.text):
                start, end = end, self.text.index(b"\n", end) + 1
                yield self.text[start:end].decode()

        next(csv.reader(lines(), delimiter=self.separator), None)
        return replace(self, start=end)

    def table(self, pair: tuple[int, int], weight: int | None, *, integers: bool) -> Table:
        """The asked columns, the pair as integers if that is wanted and every field is one."""
        columns = [*pair] if weight is None else [*pair, weight]
        need_room(self.text.count(b"\n") * ROW_BYTES[integers])
        frame = None
        if integers and not self._has_signs_in_quotes():
            with suppress(pl.exceptions.PolarsError):
                frame = self._frame(dict(zip(columns, (pl.Int64, pl.Int64, pl.Float64), strict=False)))
        if frame is None or any(frame.null_count().row(0)):
            frame = self._frame_of_strings(columns)
        return Table(frame[:, 0], frame[:, 1], None if weight is None else frame[:, 2], self.where)

    def _frame(self, dtypes: Mapping[int, type[pl.DataType]]) -> pl.DataFrame:
        """The asked columns; raises ``PolarsError`` where a field does not have its type."""
        schema = {str(i): dtypes.get(i, pl.String) for i in range(max(dtypes) + 1)}
        # A header of our own fixes the number of columns, whatever the first line has. polars knows
        # one comment sign, and would make a row of a blank line.
        body = b"".join([self.separator.join(schema).encode(), b"\n", memoryview(self.text)[self.start :]])
        body = body.replace(b"\n%", b"\n#")
        while b"\n\n" in body:
            body = body.replace(b"\n\n", b"\n")
        frame = pl.read_csv(
            body,
            separator=self.separator,
            comment_prefix="#",
            quote_char='"' if b'"' in body else None,
            schema=schema,
            truncate_ragged_lines=True,
        ).select(str(i) for i in dtypes)
        if b" " in body or b"\t" in body:
            frame = frame.with_columns(pl.col(pl.String).str.strip_chars())
        return frame

    def _frame_of_strings(self, columns: Sequence[int]) -> pl.DataFrame:
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
        if b'"' not in self.text or not COMMENT_OR_BLANK.search(self.text, self.start):
            return False
        parts = QUOTED_OR_COMMENT.finditer(self.text, self.start)  # quotes in comments do not count
        return any(COMMENT_OR_BLANK.search(self.text, *part.span()) for part in parts)

    def _quoted_records(self) -> list[list[str]]:
        reader = self._reader(strict=True)
        before = self.text.count(b"\n", 0, self.start)
        records, line = [], before + 1
        try:
            for record in reader:
                records.append(record)
                line = before + reader.line_num + 1
        except csv.Error as error:
            raise InputError(f"{self.path}, line {line}: {error}; check the quotes") from None
        return [record for record in records if record]

    def _reader(self, *, strict: bool) -> CsvReader:
        lines = io.StringIO(self.text[self.start :].decode(), newline="\n")
        return CsvReader(lines, self.separator, strict=strict)

    def where(self, row: int) -> str:
        """The line number, counted over the whole file, and the text of a record."""
        before = self.text.count(b"\n", 0, self.start)
        if b'"' in self.text:
            reader = self._reader(strict=False)
            next(islice(filter(None, reader), row, None), None)
            line = before + reader.line_num
        else:
            chars = np.frombuffer(b"\n" + self.text[self.start :] + b"\n", np.uint8)
            starts = np.flatnonzero(chars[:-1] == ord("\n")) + 1
            is_record = ~np.isin(chars[starts], list(b"\n#%"))
            line = before + int(np.flatnonzero(is_record)[row]) + 1
        found = self.text.split(b"\n", line)[line - 1].decode()
        return f"{self.path}, line {line} ({_shortened(found)})"


def _read_text(
    path: Path,
    edges: bool,
    both_nodes: bool,
    node_names: Collection[str] | None,
    columns: Columns | None,
    header: bool | None,
) -> Table:
    text = decoded(path)
    separator = _sniff(_sample_lines(text))
    text = tidied(text, separator)
    records = Records(path, text, separator, _first_record(text))
    sample = records.sample()
    if not sample:
        raise InputError(f"{path} has no lines other than comments")

    asked = None if columns is None else _asked_pair(path, sample[0], columns)
    pair = asked or named_pair(sample[0], edges) or first_pair(sample[0])
    nodes = pair if both_nodes else pair[:1]
    by_name = not all(column.isdecimal() for column in columns or ())
    if by_name and header is False:
        raise InputError(
            f"{path} has no header to look for {' and '.join(columns or ())} in; pass their numbers"
        )
    if by_name or header is not None:
        guess = Guess(header=header is not False, certain=True)
    else:
        convention = node_names is not None or _suffix(path) in HEADER_SUFFIXES
        guess = guess_header(sample, nodes, convention=convention, node_names=node_names)
    table = _columns_of(records, sample, guess.header, asked, edges)
    if not edges:
        doubtful = guess.header and not guess.certain
        return replace(table, skipped=tuple(sample[0][i] for i in nodes)) if doubtful else table
    if by_name or header is not None:
        return table
    named = [sample[0][i] for i in pair if i < len(sample[0])]
    if guess.header and _names_again([table.first, table.second], named):  # further down than the sample
        return _columns_of(records, sample, False, asked, edges)
    if not guess.certain:
        _note_edges(path, sample[0], table, guess)
    return table


def _columns_of(
    records: Records, sample: list[list[str]], has_header: bool, asked: tuple[int, int] | None, edges: bool
) -> Table:
    """The two columns and the weight, below the header if there is one."""
    header: list[str] = []
    if has_header:
        header, sample = sample[0], sample[1:]
        records = records.below_first()
    pair = asked or named_pair(header, edges) or first_pair(header)
    if not asked and not named_pair(header, edges) and pair != (0, 1):
        log.info(
            "%s: the first column has no name and was taken for an index; columns 2 (%s) and 3 (%s) are read%s",
            records.path, *header[1:3], ", --columns chooses others" if edges else "",
        )  # fmt: skip
    weight = weight_column(header, sample, pair) if edges else None
    content = np.frombuffer(records.text, np.uint8)[records.start :]
    integers = edges and all_numbers(sample, pair) and not has_padding(content)
    table = records.table(pair, weight, integers=integers)
    if table.first.is_empty():
        unknown = f"if that line is no header, the graph has no node '{', '.join(header[:1])}'"
        reason = "pass --no-header if that line is an edge" if edges else unknown
        raise InputError(
            f"{records.path} has no lines below its header ({_shortened(', '.join(header))}); {reason}"
        )
    fields = header or [""] * max(map(len, sample), default=0)
    left_out = [name or f"field {i + 1}" for i, name in enumerate(fields) if i not in (*pair, weight)]
    return replace(table, ignored=tuple(left_out))


def _asked_pair(path: Path, first: Sequence[str], columns: Columns) -> tuple[int, int]:
    pair = chosen_pair(first, columns)
    if pair is None or pair[0] == pair[1]:
        known = ", ".join(first[:12])
        raise InputError(
            f"{path} has no two columns {' and '.join(columns)}; its first line is {_shortened(known)}, "
            "name two of its columns or give their numbers from 1 on"
        )
    return pair


def _names_again(columns: Sequence[pl.Series], names: Sequence[str | None]) -> bool:
    """Whether one of the columns holds one of these names, which are no numbers."""
    texts = (column for column in columns if column.dtype == pl.String)
    wanted = [name for name in names if name]
    return any(bool(column.is_in(wanted).any()) for column in texts)


def _stands_out(table: Table) -> bool:
    """Whether records below a header all share a node with another one, as the header does not."""
    num_rows = len(table.first)
    once = pl.concat([table.first.cast(pl.String), table.second.cast(pl.String)]).is_unique()
    return num_rows >= ENOUGH_RECORDS and not (once[:num_rows] & once[num_rows:]).any()


def _note_edges(path: Path, first: Sequence[str], table: Table, guess: Guess) -> None:
    """Say what the first line of an edge list was taken for, where it could be something else."""
    columns = table.first, table.second
    if guess.header:
        clear = _stands_out(table)
    else:
        clear = _names_again([column[1:] for column in columns], [column[0] for column in columns])
    if not clear:
        found, other = ("a header", "an edge") if guess.header else ("an edge", "a header")
        option = (
            "--no-header (in Python header=False)" if guess.header else "--header (in Python header=True)"
        )
        line = _shortened(", ".join(first))
        log.info(
            "%s: the first line (%s) was taken for %s; if it is %s, pass %s", path, line, found, other, option
        )


def decoded(path: Path) -> bytes:
    """The bytes of a UTF-8 text file, with ``\\n`` at the end of every line."""
    text = read_bytes(path).removeprefix(b"\xef\xbb\xbf")
    if b"\0" in text:
        raise InputError(
            f"{path} is binary and of no known format; supported are UTF-8 text "
            f"({' '.join(TEXT_SUFFIXES)}, also .gz), .parquet, .npz, .mtx, .mat and .graphml"
        )
    if not text.isascii():
        try:
            text.decode()
        except UnicodeDecodeError as error:
            line = text.count(b"\n", 0, error.start) + 1
            raise InputError(
                f"{path}, line {line}: not UTF-8 text; save it as UTF-8, or with the suffix of its format"
            ) from None
    if b"\r" in text:
        text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return text if text.endswith(b"\n") else text + b"\n"


def tidied(text: bytes, separator: str) -> bytes:
    """The text without blanks at the ends of lines; runs of blanks become one if they separate fields."""
    if separator == " ":
        text = text.replace(b"\t", b" ")
        while b"  " in text:
            text = text.replace(b"  ", b" ")
    if b" " in text:
        text = text.lstrip(b" ")
        while b"\n " in text:
            text = text.replace(b"\n ", b"\n")
        while b" \n" in text:
            text = text.replace(b" \n", b"\n")
    return text


def _first_record(text: bytes, start: int = 0) -> int:
    match = LEADING_COMMENTS.match(text, start)
    return match.end() if match else start


def _first_lines(text: bytes, start: int = 0) -> list[str]:
    start = _first_record(text, start)
    lines = text[start : start + SAMPLE_BYTES].decode(errors="ignore").split("\n")
    return lines[: max(1, len(lines) - 1)]  # the last may be cut, unless it is the only one


def _sample_lines(text: bytes) -> list[str]:
    kept = (line for line in _first_lines(text) if line.strip() and line.lstrip()[0] not in "#%")
    return list(islice(kept, SAMPLE_RECORDS))


def _sniff(lines: list[str]) -> str:
    """Tab, comma or semicolon if it splits at least half of the lines, otherwise blanks."""
    for separator in "\t,;":
        records = list(csv.reader(lines, delimiter=separator))
        # "1 2<tab>5" and "1;2;0,5" show the separator inside what would be the first field.
        split = [len(record) > 1 and not SEVERAL_NUMBERS.match(record[0]) for record in records]
        if records and 2 * sum(split) >= len(split):
            return separator
    return " "


def _suffix(path: Path) -> str:
    return Path(path.name.lower().removesuffix(".gz")).suffix


def _shortened(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")


# Parquet


def _read_parquet(path: Path, edges: bool, asked: Columns | None) -> Table:
    check_file(path)
    with decoding(path, "Parquet"):
        schema = pl.read_parquet_schema(path)
        names = list(schema)
        if len(names) < 2:
            raise InputError(f"{path} has {len(names)} column(s); two are needed, such as source and target")
        pair = named_pair(names, edges) or (0, 1) if asked is None else _asked_pair(path, names, asked)
        weight = weight_column(names, [], pair) if edges else None
        if weight is None and edges and pair == (0, 1) and len(names) > 2 and schema[names[2]].is_numeric():
            weight = 2
        columns = [names[i] for i in (*pair, weight) if i is not None]
        integers = all(schema[names[i]].is_integer() for i in pair)
        need_room(pl.scan_parquet(path).select(pl.len()).collect().item() * ROW_BYTES[integers])
        frame = pl.read_parquet(path, columns=columns).select(columns)
    for name in columns[:2]:
        dtype = frame[name].dtype
        if dtype in (pl.Categorical, pl.Enum, pl.Boolean, pl.UInt64, pl.Null):
            frame = frame.with_columns(pl.col(name).cast(pl.String))
        elif dtype.is_integer():
            frame = frame.with_columns(pl.col(name).cast(pl.Int64))
        elif dtype != pl.String:
            raise InputError(f"{path}: column '{name}' holds {dtype}; store integers or strings there")
    if frame.is_empty():
        raise InputError(f"{path} has no rows")

    def where(row: int) -> str:
        return f"{path}, row {row + 1} ({_shortened(', '.join(map(str, frame.row(row))))})"

    ignored = tuple(name for name in names if name not in columns)
    return Table(frame[:, 0], frame[:, 1], None if weight is None else frame[:, 2], where, ignored)
