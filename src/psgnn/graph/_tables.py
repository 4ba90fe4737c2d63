"""Two-column tables, from text, Parquet or a database, with the place of every row.

A text table holds one record a line: comma-, tab- or semicolon-separated, or separated by any run of
blanks; plain, ``.gz``, ``.bz2`` or ``.xz``; UTF-8, or UTF-16 with its mark. Lines that start with ``#`` or ``%`` are
comments (:mod:`psgnn.graph._headers` says when ``#`` is part of a name), blank lines are skipped, a field may stand in
double quotes, and blanks around a field don't count. Weights between semicolons may have decimal commas.

The first record of a ``.csv`` or ``.tsv`` file is a header unless it looks like the records below: one of its nodes
is named there again, or it has numbers where they have numbers. In other text it is a header only if the records
below have numbers where it has text. A file of pairs or labels has a header if its first record names no node of the
graph. ``header=True`` or ``False`` decides instead.
A header may put the two columns anywhere; without known names they are the first two, or the two after an index, which
is a first column without a name, or of distinct numbers under a name such as ``edge_id``.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import polars as pl

from psgnn.errors import InputError, MissingExtraError
from psgnn.graph._bytes import base_name, decoded, tidied
from psgnn.graph._headers import (
    LONE_SIGN,
    Guess,
    all_numbers,
    chosen_column,
    comment_signs,
    commented_header,
    first_pair,
    first_record,
    guess_header,
    ignored_columns,
    may_count,
    named_pair,
    note_skipped,
    weight_column,
)
from psgnn.graph._node_table import NodeTable
from psgnn.graph._options import COUNT, DEFAULTS, ReadOptions
from psgnn.graph._parquet import read_parquet, read_parquet_nodes
from psgnn.graph._records import Records, first_lines, sample_lines, sniff
from psgnn.graph._table import Table, asked_columns, asked_pair, shortened
from psgnn.kernels._text import has_padding
from psgnn.paths import check_file, is_url, without_secrets

log = logging.getLogger("psgnn")

HEADER_SUFFIXES = (".csv", ".tsv")  # these have a header by convention
ENOUGH_RECORDS = 10  # to tell a header by its names, which no record shares


def read_table(
    path: Path,
    *,
    edges: bool = False,
    pairs: bool = False,
    node_names: Collection[str] | None = None,
    how: ReadOptions = DEFAULTS,
) -> Table:
    """Read the two columns of a text or Parquet file.

    ``edges`` asks for the columns beside them too, among them weights (the column that is named so, or a numeric third
    one), and reads integers as integers. Both columns of ``edges`` and ``pairs`` hold nodes, otherwise the first alone
    does. A first record with one of ``node_names`` there is no header. ``how`` has what was said about columns and
    header.
    """
    if path.suffix.lower() != ".parquet":
        return _read_text(path, edges, edges or pairs, node_names, how)
    _refuse_header(path, how)
    return read_parquet(path, edges, how)


def read_node_table(path: Path, how: ReadOptions) -> NodeTable:
    """Read all columns of a table of nodes. Its first record is a header unless it looks like those below."""
    if path.suffix.lower() == ".parquet":
        return read_parquet_nodes(path, how)
    records = _records(path)
    sample = records.sample()
    if not sample:
        raise InputError(f"{path} has no lines other than comments")
    asked = [name for name in (how.node_name, how.label, how.type) if name is not None]
    by_name = not all(name.isdecimal() for name in asked)
    guess = guess_header(sample, (0,), convention=True)
    if by_name or guess.header:
        header, records = sample[0], records.below_first()
    else:
        header = [str(i + 1) for i in range(max(map(len, sample)))]
    names = [name or str(i + 1) for i, name in enumerate(header)]
    if len(set(names)) < len(names):
        raise InputError(f"{path} has two columns of one name ({shortened(', '.join(names))}); rename one")
    frame = records.columns(range(len(names)))
    if frame.is_empty():
        raise InputError(f"{path} has no lines below its header ({shortened(', '.join(header))})")
    return NodeTable(dict(zip(names, frame.iter_columns(), strict=True)), records.where, str(path))


def _refuse_header(path: Path, how: ReadOptions) -> None:
    if how.header is not None:
        raise InputError(f"{path} names its columns itself; --header and --no-header go with text files")


def _read_text(
    path: Path,
    edges: bool,
    both_nodes: bool,
    node_names: Collection[str] | None,
    how: ReadOptions,
) -> Table:
    columns, header = how.columns, how.header
    records = _records(path)
    sample = records.sample()
    if not sample:
        raise InputError(f"{path} has no lines other than comments")
    asked_names = [*(columns or ()), *(name for name in how.roles.values() if name != COUNT)]
    by_name = not all(column.isdecimal() for column in asked_names)
    if by_name and header is False:
        raise InputError(
            f"{path} has no header to look for {' and '.join(asked_names)} in; pass their numbers"
        )
    above = _header_above(records, sample[0], asked_names, header, edges)
    if above:
        asked = None if columns is None else asked_pair(path, above, columns)
        return _columns_of(records, sample, above, asked, edges, how)
    if "#" in records.signs:
        note_skipped(path, records.text, records.start, records.separator, sample[0])

    asked = None if columns is None else asked_pair(path, sample[0], columns)
    pair = asked or named_pair(sample[0], edges) or first_pair(sample[0], sample[1:])
    nodes = pair if both_nodes else pair[:1]
    if by_name or header is not None:
        guess = Guess(header=header is not False, certain=True)
    else:
        convention = node_names is not None or Path(base_name(path)).suffix in HEADER_SUFFIXES
        guess = guess_header(sample, nodes, convention=convention, node_names=node_names)
    if guess.header:
        table = _columns_of(records.below_first(), sample[1:], sample[0], asked, edges, how)
    else:
        table = _columns_of(records, sample, [], asked, edges, how)
    if not edges:
        doubtful = guess.header and not guess.certain
        return replace(table, skipped=tuple(sample[0][i] for i in nodes)) if doubtful else table
    if by_name or header is not None:
        return table
    named = [sample[0][i] for i in pair if i < len(sample[0])]
    if guess.header and _names_again([table.first, table.second], named):  # further down than the sample
        return _columns_of(records, sample, [], asked, edges, how)
    if not guess.certain:
        _note_edges(path, sample[0], table, guess)
    return table


def _records(path: Path) -> Records:
    """The records of a text file, with the separator and the comment signs that its first lines show."""
    text = decoded(path)
    separator = sniff(sample_lines(text))
    text = tidied(text, separator)
    signs = comment_signs(first_lines(text) + first_lines(text, first_record(text)), separator)
    if signs == "%" and separator == " ":  # no name is a '#' alone: such lines are comments
        text = LONE_SIGN.sub(b"%", text)
    return Records(path, text, separator, first_record(text, signs), signs)


def _header_above(
    records: Records, first: Sequence[str], asked: Sequence[str], header: bool | None, edges: bool
) -> list[str]:
    """The header in a comment right above the first record, where its names are known or asked for."""
    found, touched = commented_header(records.text, records.start, records.separator, first)
    if header is False or (header and not touched):
        return []

    def has_all(record: Sequence[str]) -> bool:
        return bool(asked) and all(chosen_column(record, name) is not None for name in asked)

    if has_all(first) and not touched:
        return []  # the first record has them too
    return found if has_all(found) or (not asked and named_pair(found, edges)) else []


def _columns_of(
    records: Records,
    sample: list[list[str]],
    header: Sequence[str],
    asked: tuple[int, int] | None,
    edges: bool,
    how: ReadOptions,
) -> Table:
    """The columns that were asked for of these records, which stand below the header if there is one."""
    pair = asked or named_pair(header, edges) or first_pair(header, sample)
    if not asked and not named_pair(header, edges) and pair != (0, 1):
        named = [*header[:3], "", "", ""]
        log.info(
            "%s: the first column (%s) was taken for an index; columns 2 (%s) and 3 (%s) are read%s",
            records.path, *(name or "without a name" for name in named[:3]),
            ", --source and --target choose others" if edges else "",
        )  # fmt: skip
    elif edges and not asked and pair == (0, 1) and may_count(header, sample):
        asked_names = header[1:3] if header else ("2", "3")
        log.info(
            "%s: the first column was taken for nodes; if it numbers the edges, pass --source %s --target %s",
            records.path, *asked_names,
        )  # fmt: skip
    fields = header or [""] * max(map(len, sample), default=0)
    more = asked_columns(records.path, fields, how, pair)
    weight = weight_column(header, sample, pair) if edges and "weight" not in more else None
    noticed = {"weight": weight} if weight is not None and weight not in more.values() else {}
    content = np.frombuffer(records.text, np.uint8)[records.start :]
    integers = edges and all_numbers(sample, pair) and not has_padding(content)
    table = records.table(pair, noticed | more, integers=integers)
    if table.first.is_empty():
        unknown = f"if that line is no header, the graph has no node {shortened(', '.join(header[:1]))}"
        reason = "pass --no-header if that line is an edge" if edges else unknown
        raise InputError(
            f"{records.path} has no lines below its header ({shortened(', '.join(header))}); {reason}"
        )
    names = (header[pair[0]], header[pair[1]]) if header else ("", "")
    return replace(table, names=names, ignored=ignored_columns(fields, sample, (*pair, *more.values())))


def _names_again(columns: Sequence[pl.Series], names: Sequence[str | None]) -> bool:
    """Whether one of the columns holds one of these names, which are not numbers."""
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
        line = shortened(", ".join(first))
        log.info(
            "%s: the first line (%s) was taken for %s; if it is %s, pass %s", path, line, found, other, option
        )


def query_table(source: Any, query: str) -> pl.DataFrame:
    """The rows that a query gives: of a database at an address, or of an open connection.

    SQLite needs nothing else, and its file is opened for reading alone. Other databases need ConnectorX.
    """
    origin = without_secrets(source) if isinstance(source, str) else f"the {type(source).__name__}"
    try:
        if not is_url(source):
            return pl.read_database(query, source, infer_schema_length=None)
        if source.lower().startswith("sqlite:"):
            import sqlite3

            address = f"file:{quote(str(_sqlite_file(source)))}?mode=ro"
            with closing(sqlite3.connect(address, uri=True)) as connection:
                return pl.read_database(query, connection, infer_schema_length=None)
        return pl.read_database_uri(query, source, engine="connectorx")
    except ModuleNotFoundError:
        raise MissingExtraError("connectorx", "sql", "--query") from None
    except InputError:
        raise
    # Every database has errors of its own.
    except (Exception, pl.exceptions.PanicException) as error:
        reason = without_secrets(" ".join(str(error).split()))[:160] or type(error).__name__
        raise InputError(f"{origin}: the query fails: {reason}") from None


def _sqlite_file(url: str) -> Path:
    """The file of ``sqlite:///shop.db``, ``sqlite:////home/ada/shop.db`` or ``sqlite:///home/ada/shop.db``."""
    path = Path(url.partition("://")[2])
    relative = Path(str(path).removeprefix("/"))
    found = relative if relative.exists() or not path.exists() else path
    check_file(found)
    return found
