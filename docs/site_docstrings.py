"""Docstrings as the reference page shows them: examples as code, roles of Sphinx as plain names."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

ROLE = re.compile(r":[a-z]+:`~?([^`]+)`")


class PlainDocstrings(Extension):
    """Every docstring as Markdown: a doctest stands between fences, or it would be a quotation."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Called once for each module, class, function and attribute."""
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)


def as_markdown(text: str) -> str:
    """The docstring with fences around its examples and without roles.

    >>> print(as_markdown(":func:`list_datasets` has more."))
    `list_datasets` has more.
    """
    lines: list[str] = []
    inside = False
    for line in ROLE.sub(r"`\1`", text).splitlines():
        if not inside and line.startswith(">>> "):
            lines.append("```pycon")
            inside = True
        if inside and not line.strip():
            lines.append("```")
            inside = False
        lines.append(line)
    return "\n".join([*lines, "```"] if inside else lines)
