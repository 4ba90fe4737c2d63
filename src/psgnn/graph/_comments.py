"""What a line that begins with ``#`` is: a comment, a header, or a record whose first name begins with ``#``.

``%`` always begins a comment. ``#`` begins one too, unless the file shows that its names begin with it, as hashtags do.
"""

from __future__ import annotations

import csv
import logging
import re
from collections.abc import Sequence

log = logging.getLogger("psgnn")

FIRST_RECORD = {
    signs: re.compile(rb"^[ \t]*[^\n \t%s]" % signs.encode(), re.MULTILINE) for signs in ("#%", "%")
}
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


def _fields(lines: Sequence[str], separator: str) -> list[list[str]]:
    return [next(csv.reader([line], delimiter=separator, skipinitialspace=True), []) for line in lines]
