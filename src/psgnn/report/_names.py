"""Names of nodes as a page shows them: short, and without characters that act on the text around them."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

LENGTHS = (120, 60, 30, 16, 8)  # tried one after another until the names fit


def shown_name(name: str, length: int = LENGTHS[0]) -> str:
    """At most `length` characters of a name; control characters, among them those that turn the direction, are marks.

    >>> shown_name("a\\nb"), shown_name("x" * 50, 12)
    ('a\ufffdb', 'xxxxxxxx…xxx')
    """
    if len(name) > length:
        tail = length // 4
        name = f"{name[: length - tail - 1]}…{name[-tail:]}"
    if name.isascii() and name.isprintable():
        return name
    # Cc control, Cf format (U+202E turns what follows), Cs half a character, Zl and Zp ends of lines.
    return "".join("\ufffd" if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") else c for c in name)


def shown_names(names: Sequence[str], budget: int) -> list[str]:
    """The names, all of them cut to the largest length with which they take at most `budget` bytes (or the least)."""
    for length in LENGTHS:
        short = [shown_name(name, length) for name in names]
        if sum(len(name.encode()) for name in short) <= budget:
            break
    return short
