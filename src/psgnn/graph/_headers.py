"""Whether a table's first record names its columns, and which of them are the nodes and the weight."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import product
from typing import TypeAlias

Columns: TypeAlias = tuple[str, str]  # names of two columns, or their numbers

# Names of columns, compared by their letters and digits alone.
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
    ("sender", "recipient"),
    ("sender", "receiver"),
)
LABEL_NAMES = tuple(product(("node", "nodeid", "id", "name"), ("label", "class", "y", "group")))
WEIGHT_NAMES = ("weight", "weights", "w", "value")

# Words for kinds of nodes. Two of them in one record, which come nowhere else, name columns.
# fmt: off
KINDS = frozenset({
    "account", "actor", "airport", "author", "citing", "cited", "city", "colleague", "company", "contact",
    "customer", "destination", "entity", "followed", "followee", "follower", "friend", "gene", "id",
    "interactor", "name", "neighbor", "neighbour", "node", "origin", "page", "partner", "person", "place",
    "product", "protein", "receiver", "recipient", "sender", "site", "species", "station", "stop", "user",
    "vertex",
})
# fmt: on


def is_header(sample: list[list[str]], edges: bool) -> bool:
    """Whether the first of these records names columns; told in :mod:`psgnn.graph._tables`."""
    first, later = sample[0], sample[1:]
    pair = named_pair(first, edges)
    if pair:
        return _comes_once(first, later, pair)
    num_ids = 2 if edges else 1  # the second column may hold labels
    if not any(later) or any(map(is_number, first[:num_ids])):
        return False
    if all_numbers(later, range(num_ids)):
        return True
    if not edges or len(first) < 2 or not _comes_once(first, later, (0, 1)):
        return False
    return all(_is_kind(name) for name in first[:2]) or _heads_digits(first, later)


def named_pair(header: Sequence[str], edges: bool) -> tuple[int, int] | None:
    """The columns of the nodes (or of node and label), where they have names that are known."""
    names = [_plain(name) for name in header]
    for first, second in EDGE_NAMES if edges else EDGE_NAMES + LABEL_NAMES:
        if first in names and second in names:
            return names.index(first), names.index(second)
    return None


def chosen_pair(header: Sequence[str], columns: Columns) -> tuple[int, int] | None:
    """The columns that were asked for by name, or by number from 1 on; None where one is not there."""
    names = [_plain(name) for name in header]
    found = []
    for column in columns:
        if column in header and not column.isdecimal():
            found.append(list(header).index(column))
        elif _plain(column) in names and not column.isdecimal():
            found.append(names.index(_plain(column)))
        elif column.isdecimal() and 1 <= int(column) <= len(header):
            found.append(int(column) - 1)
        else:
            return None
    return found[0], found[1]


def weight_column(header: Sequence[str], sample: list[list[str]], pair: tuple[int, int]) -> int | None:
    """The column that is named so, or a numeric third one."""
    for i, name in enumerate(header):
        if _plain(name) in WEIGHT_NAMES and i not in pair:
            return i
    numeric = [len(record) > 2 and is_number(record[2]) for record in sample]
    return 2 if pair == (0, 1) and any(numeric) and 2 * sum(numeric) >= len(numeric) else None


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


def _comes_once(first: list[str], later: list[list[str]], pair: tuple[int, int]) -> bool:
    """Whether what stands in two columns of the first record stands there in no other."""
    ends = {record[i] for record in later for i in pair if i < len(record)}
    return ends.isdisjoint(first[i] for i in pair)


def _is_kind(name: str) -> bool:
    """Whether it is a word for nodes, such as Person, user_id, gene1 or protein-b."""
    word = _plain(name).rstrip("0123456789")
    return any(word.removesuffix(ending) in KINDS for ending in ("", "id", "name", "a", "b"))


def _heads_digits(first: list[str], later: list[list[str]]) -> bool:
    """Whether some further column has digits in every later record (weights, dates) and none in the first."""
    for i in range(2, len(first)):
        fields = [record[i] for record in later if i < len(record)]
        digits = [any(map(str.isdigit, field)) for field in fields]
        if len(digits) > 1 and all(digits) and first[i] and not any(map(str.isdigit, first[i])):
            return True
    return False


def _plain(name: str) -> str:
    return "".join(filter(str.isalnum, name.lower()))
