"""What a notebook shows: small HTML tables in which every text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any


def html_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table; the first column is left-aligned, the others right.

    >>> html_table("<b>", ["a"], [["&"]]).count("&lt;b&gt;")
    1
    """
    head = _row("th", columns)
    body = "".join(_row("td", row) for row in rows)
    caption = f'<caption style="caption-side:top;text-align:left;font-weight:bold">{escape(title)}</caption>'
    return f"<table>{caption}<thead>{head}</thead><tbody>{body}</tbody></table>"


def html_line(text: str) -> str:
    """A line of text beneath a table."""
    return f"<p>{escape(text)}</p>"


def shortened(names: Sequence[str], most: int = 30) -> str:
    """The first names with commas between them, and how many there are if not all are shown."""
    more = f", ... ({len(names)} in all)" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _row(tag: str, cells: Sequence[Any]) -> str:
    aligned = ("left" if i == 0 else "right" for i in range(len(cells)))
    inner = (
        f'<{tag} style="text-align:{side}">{escape(str(cell))}</{tag}>'
        for side, cell in zip(aligned, cells, strict=True)
    )
    return f"<tr>{''.join(inner)}</tr>"
