"""Whether a table's first record names its columns, which of them are the nodes, and which lines are comments."""

from __future__ import annotations

import csv
import logging
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise, product
from typing import NamedTuple, TypeAlias

Columns: TypeAlias = tuple[str, str]  # names of two columns, or their numbers

IN_BRACKETS = re.compile(r"\([^()]*\)$")
# Names of columns, compared by their letters and digits alone. They choose among columns; they make no header.
EDGE_NAMES = (
    ("source", "target"),
    ("src", "dst"),
    ("from", "to"),
    ("u", "v"),
    ("node1", "node2"),
    ("id1", "id2"),
    ("nodea", "nodeb"),
    ("fromnode", "tonode"),
    ("fromnodeid", "tonodeid"),
    ("sourceid", "targetid"),
    ("fromid", "toid"),
    ("head", "tail"),
    ("start", "end"),
    ("startid", "endid"),  # :START_ID(Person) of Neo4j
    ("sender", "recipient"),
    ("sender", "receiver"),
)
LABEL_NAMES = tuple(product(("node", "nodeid", "id", "name"), ("label", "class", "y", "group", "set")))
INDEX_NAMES = ("edgeid", "eid", "linkid", "rowid", "row", "index", "relationid", "relationshipid")
DATE = re.compile(r"\d{4}-\d{2}(-\d{2}([T ]\d{2}:\d{2}.*)?)?$")
ENOUGH_COUNTED = 10  # records, to take their numbers for no nodes
WEIGHT_NAMES = ("weight", "weights", "w", "value")


class Guess(NamedTuple):
    """What the first record is taken for, and whether the records leave no doubt."""

    header: bool
    certain: bool


def guess_header(
    sample: Sequence[Sequence[str]],
    nodes: Sequence[int],
    *,
    convention: bool,
    node_names: Collection[str] | None = None,
) -> Guess:
    """Guess whether the first of these records names columns.

    It does not if it looks like the records below: one of its nodes is named there again, or it has numbers where they
    have numbers. It does if it has text where they have numbers. Otherwise the convention of the file decides.

    Args:
        sample: The fields of the first records.
        nodes: The columns that hold nodes.
        convention: Whether files of this kind have a header.
        node_names: The nodes of the graph, where they are known. A record that names one of them is no header.
    """
    first, below = sample[0], sample[1:]
    if len(first) < 2:
        return Guess(header=False, certain=True)
    named = [first[i] for i in nodes if i < len(first)]
    known = node_names if node_names is not None else _names_in(below, nodes)
    if any(name in known for name in named if name):
        return Guess(header=False, certain=True)
    if not below and any(map(is_number, first)):
        return Guess(header=False, certain=True)
    alike = [is_number(first[i]) for i in nodes if i < len(first) and _is_numeric(below, i)]
    if alike:
        return Guess(header=not any(alike), certain=all(alike) or not any(alike))
    if len(named) > 1 and named[0] == named[1]:  # a self-loop: two columns have two names
        return Guess(header=False, certain=True)
    others = [i for i in range(len(first)) if i not in nodes]
    if any(is_number(first[i]) and _is_numeric(below, i) for i in others):
        return Guess(header=False, certain=False)
    if any(_heads_digits(first[i], below, i) for i in others):
        return Guess(header=True, certain=True)
    return Guess(header=convention, certain=not below)


def named_pair(header: Sequence[str], edges: bool) -> tuple[int, int] | None:
    """The columns of the nodes (or of node and label), where they have names that are known."""
    names = [_plain(name) for name in header]
    for first, second in EDGE_NAMES if edges else EDGE_NAMES + LABEL_NAMES:
        if first in names and second in names:
            return names.index(first), names.index(second)
    return None


def first_pair(header: Sequence[str], below: Sequence[Sequence[str]]) -> tuple[int, int]:
    """The first two columns, or those after the first if that one numbers the records."""
    return (1, 2) if _has_index(header, below) else (0, 1)


def _has_index(header: Sequence[str], below: Sequence[Sequence[str]]) -> bool:
    """Whether the first column numbers the records, as the index that pandas writes and ``edge_id`` do."""
    if not header:
        return _counts_edges(below)
    if len(header) < 3:
        return False
    if not header[0]:
        return bool(header[1] and header[2])
    numbers = [record[0] if record else "" for record in below]
    if not numbers or len(set(numbers)) < len(numbers) or not all(map(_is_count, numbers)):
        return False
    if _plain(header[0]) in INDEX_NAMES:
        return True
    counted = all(int(b) == int(a) + 1 for a, b in pairwise(numbers))
    names = not _is_numeric(below, 1) and not _is_numeric(below, 2)
    return names and (_plain(header[0]) == "id" or (counted and len(numbers) > 2))


def may_count(header: Sequence[str], below: Sequence[Sequence[str]]) -> bool:
    """Whether the first column may number the records, although it is read as nodes."""
    if len(below) < ENOUGH_COUNTED or (header and _plain(header[0]) != "id"):
        return False
    if any(len(record) < 3 or not all(map(_is_count, record[:3])) for record in below):
        return False
    return all(int(after[0]) == int(before[0]) + 1 for before, after in pairwise(below))


def _counts_edges(records: Sequence[Sequence[str]]) -> bool:
    """Whether records without a header are ``number source target weight``, with the edges numbered from 0 or 1."""
    if len(records) < ENOUGH_COUNTED or any(len(record) < 4 for record in records):
        return False
    counted = [[str(first + i) for i in range(len(records))] for first in (0, 1)]
    nodes = all(_is_count(field) for record in records for field in record[1:3])
    return nodes and [record[0] for record in records] in counted


def chosen_pair(header: Sequence[str], columns: Columns) -> tuple[int, int] | None:
    """The columns that were asked for by name, or by number from 1 on; None where one is not there."""
    first, second = (chosen_column(header, column) for column in columns)
    return None if first is None or second is None else (first, second)


def chosen_column(header: Sequence[str], column: str) -> int | None:
    """The column of this name, or of this number from 1 on; None where it is not there."""
    if column.isdecimal():
        return int(column) - 1 if 1 <= int(column) <= len(header) else None
    names = list(header) if column in header else [_plain(name) for name in header]
    wanted = column if column in header else _plain(column)
    return names.index(wanted) if wanted in names else None


def ignored_columns(
    names: Sequence[str], sample: Sequence[Sequence[str]], used: Collection[int]
) -> tuple[str, ...]:
    """The columns that are not used, in quotes, each with the option that would use it if it looks like one."""
    return tuple(
        _ignored(i, name, [record[i] for record in sample if i < len(record)])
        for i, name in enumerate(names)
        if i not in used
    )


def _ignored(place: int, name: str, fields: Sequence[str]) -> str:
    known = [field for field in fields if field]
    asked = name or str(place + 1)
    asked = f"'{asked}'" if " " in asked else asked
    option = ""
    if known and all(map(_is_moment, known)):
        option = f" (--time {asked})"
    elif known and all(is_number(field.replace(",", ".")) for field in known):
        option = f" (--weight {asked})"
    return (f"'{name}'" if name else f"field {place + 1}") + option


def _is_moment(field: str) -> bool:
    """Whether a field looks like a date, or like seconds since 1970 from 1973 on."""
    if field.isdecimal():
        return len(field) in (9, 10)
    return DATE.match(field) is not None


def weight_column(header: Sequence[str], sample: list[list[str]], pair: tuple[int, int]) -> int | None:
    """The column that is named so, or a numeric one after the first two."""
    for i, name in enumerate(header):
        if _plain(name) in WEIGHT_NAMES and i not in pair:
            return i
    third = pair[1] + 1
    # A comma in a field of its own is a decimal one: such a file has semicolons between its fields.
    numeric = [len(record) > third and is_number(record[third].replace(",", ".")) for record in sample]
    is_third = pair == first_pair(header, sample) and any(numeric) and 2 * sum(numeric) >= len(numeric)
    return third if is_third else None


def all_numbers(records: list[list[str]], columns: Collection[int]) -> bool:
    """Whether these columns hold numbers alone; gaps don't count."""
    fields = (record[i] for record in records for i in columns if i < len(record))
    return all(is_number(field) for field in fields if field)


def is_number(field: str) -> bool:
    """Whether Python reads it as a number."""
    try:
        float(field)
    except ValueError:
        return False
    return True


def _names_in(records: Sequence[Sequence[str]], columns: Sequence[int]) -> set[str]:
    return {record[i] for record in records for i in columns if i < len(record)}


def _is_numeric(records: Sequence[Sequence[str]], column: int) -> bool:
    """Whether the column holds numbers alone, and at least one."""
    fields = _names_in(records, [column]) - {""}
    return bool(fields) and all(map(is_number, fields))


def _heads_digits(name: str, below: Sequence[Sequence[str]], column: int) -> bool:
    """Whether the column has digits in every record below (weights, dates) and none in its name."""
    fields = [record[column] for record in below if column < len(record)]
    digits = [any(map(str.isdigit, field)) for field in fields]
    return len(digits) > 1 and all(digits) and bool(name) and not any(map(str.isdigit, name))


def _is_count(field: str) -> bool:
    return field.isascii() and field.isdecimal() and len(field) <= 18


def _plain(name: str) -> str:
    """The letters and digits of a name, without what stands in brackets at its end."""
    return "".join(filter(str.isalnum, IN_BRACKETS.sub("", name.lower())))


log = logging.getLogger("psgnn")

FIRST_RECORD = {
    signs: re.compile(rb"^[ \t]*[^\n \t%s]" % signs.encode(), re.MULTILINE) for signs in ("#%", "%")
}
LONE_SIGN = re.compile(rb"^#(?=[ \t]|$)", re.MULTILINE)
HASHTAG = re.compile(r"#[^\W\d]")
HASHTAG_LINE = re.compile(rb"\n(#[^\W\d][^\n]*)")
MOST_SEARCHED = 1000  # lines, for one that may be a record


def first_record(text: bytes, signs: str = "#%") -> int:
    """Where the first line begins that is neither blank nor a comment."""
    found = FIRST_RECORD[signs].search(text)
    return found.start() if found else len(text)


def comment_signs(lines: Sequence[str], separator: str) -> str:
    """The signs that begin a comment, by the look of the first lines: ``#%``, or ``%`` where ``#`` begins names.

    It does if other fields begin with ``#`` too. It also does if most lines begin so and have as many fields as the
    others, which a sentence between blanks may have by accident.
    """
    hashed = [line for line in lines if HASHTAG.match(line)]
    if not hashed:
        return "#%"
    others = [line for line in lines if line.strip() and line[0] not in "#%"]
    records, tagged = _fields(others, separator), _fields(hashed, separator)
    if any(HASHTAG.match(field) for record in records for field in record[1:3]):
        return "%"
    if all(len(record) > 1 and HASHTAG.match(record[1]) for record in tagged):
        return "%"
    widths = {len(record) for record in records} or {len(tagged[0])}
    alike = [record for record in tagged if len(record) > 1 and len(record) in widths]
    return "%" if separator != " " and len(alike) > max(1, len(others)) else "#%"


def commented_header(text: bytes, start: int, separator: str, first: Sequence[str]) -> tuple[list[str], bool]:
    """The fields of a comment right above the first record, if it has as many; and whether ``#`` touches them.

    STRING writes its header as ``#node1<tab>node2<tab>...``, SNAP as ``# FromNodeId<tab>ToNodeId``.
    """
    line = text[:start].rstrip(b"\n").rpartition(b"\n")[2].decode(errors="replace")
    if not line.startswith("#"):
        return [], False
    fields = [field.strip() for record in _fields([line[1:].strip()], separator) for field in record]
    return (fields if len(fields) == len(first) else []), line[1:2].isalpha()


def note_skipped(path: object, text: bytes, start: int, separator: str, first: Sequence[str]) -> None:
    """Say that lines were taken for comments, where one of them may be a record."""
    for i, found in enumerate(HASHTAG_LINE.finditer(text, start)):
        line = found[1].decode(errors="replace")
        if len(_fields([line], separator)[0]) == len(first) > 1:
            log.info(
                "%s: lines such as %r were taken for comments; if '#' is part of a name, write it in quotes",
                path,
                line[:60],
            )
            return
        if i >= MOST_SEARCHED:
            return


@contextmanager
def fields_of_any_size() -> Iterator[None]:
    """Lift the limit of the csv module, which is one for the whole process."""
    limit = csv.field_size_limit(2**31 - 1)
    try:
        yield
    finally:
        csv.field_size_limit(limit)


def _fields(lines: Sequence[str], separator: str) -> list[list[str]]:
    with fields_of_any_size():
        return [next(csv.reader([line], delimiter=separator, skipinitialspace=True), []) for line in lines]
