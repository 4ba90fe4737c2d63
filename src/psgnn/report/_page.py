"""The summary as one HTML file that opens offline and sends nothing anywhere.

Style, scripts and plotly.js are in the file, the summary is a block of JSON in it. Nothing that a user named ever
becomes HTML: the scripts put it on the page as text. A content policy allows these very scripts, by their hash,
and no connection.
"""

from __future__ import annotations

import base64
import hashlib
import json
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from psgnn.paths import atomic_write

SCRIPTS = ("data.js", "charts.js", "graph.js", "answers.js", "tables.js", "page.js")
MOST_BYTES = 15_000_000
# Above this many nodes WebGL draws the graph; plotly.js then makes functions out of texts of its own, which the
# content policy has to allow.
WEBGL_NODES = 2000


def write_page(summary: Mapping[str, Any], path: str | Path, *, force: bool = False) -> int:
    """Write the page of a summary, atomically, and return its size in bytes."""
    content = make_page(summary).encode()
    with atomic_write(path, force=force) as temporary:
        temporary.write_bytes(content)
    return len(content)


def make_page(summary: Mapping[str, Any]) -> str:
    """Return the HTML of a summary."""
    from plotly.offline import get_plotlyjs

    plotly = get_plotlyjs().replace("\r\n", "\n").replace("</script", "<\\/script")
    app = '"use strict";\n(() => {\n' + "\n".join(_asset(name) for name in SCRIPTS) + "\n})();\n"
    webgl = any(len(graph["shown"]) > WEBGL_NODES for run in summary["runs"] for graph in run["drawn"])
    sources = [_hash_source(plotly), _hash_source(app), *(["'unsafe-eval'"] if webgl else [])]
    policy = (
        f"default-src 'none'; script-src {' '.join(sources)}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    data = to_json({**summary, "webgl": webgl})
    page = _asset("page.html")
    # The template is split at its marks once: what is put in is never searched for them.
    parts = {"POLICY": policy, "STYLE": _asset("page.css"), "DATA": data, "PLOTLY": plotly, "APP": app}
    out, rest = [], page
    for mark, content in parts.items():
        before, rest = rest.split(f"@{mark}@", 1)
        out += [before, content]
    return "".join([*out, rest])


def to_json(value: Any) -> str:
    """JSON that cannot end a script element or be anything but JSON: no <, > or &, no exotic ends of lines."""
    text = json.dumps(plain(value, _pack), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def plain(value: Any, of_array: Callable[[Any], Any] = np.ndarray.tolist) -> Any:
    """A summary with lists instead of arrays, for JSON, or with what else is made of an array."""
    if isinstance(value, np.ndarray):
        return of_array(value)
    if isinstance(value, Mapping):
        return {key: plain(each, of_array) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each, of_array) for each in value]
    return value


def _pack(array: Any) -> dict[str, Any]:
    """An array as its bytes in base64, in the smallest type that holds it less its minimum."""
    low = 0
    if array.dtype.kind == "f":
        kind, raw = "f4", array.astype("<f4")
    else:
        low = int(array.min(initial=0))
        most = int(array.max(initial=0)) - low
        kind = "u1" if most < 2**8 else "u2" if most < 2**16 else "u4"
        raw = (array.astype(np.int64) - low).astype(f"<{kind}")
    content = base64.b64encode(np.ascontiguousarray(raw).tobytes()).decode()
    return {"packed": kind, "low": low, "shape": list(array.shape), "bytes": content}


def _asset(name: str) -> str:
    return (files("psgnn.report") / "assets" / name).read_text(encoding="utf-8").replace("\r\n", "\n")


def _hash_source(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


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
