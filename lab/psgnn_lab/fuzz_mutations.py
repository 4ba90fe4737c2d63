"""Changes that make hostile files from valid ones: of bytes, of lines, of JSON documents and of tensors."""

from __future__ import annotations

import json
import random
import re
import struct
from collections.abc import Callable
from typing import Any

NUMBERS: tuple[int, ...] = (
    0,
    1,
    2,
    127,
    128,
    255,
    *(2**k - 1 for k in (15, 16, 31, 32, 63, 64)),
    *(2**k for k in (31, 62, 63)),
)
WORDS = (
    b"\n", b"\r\n", b",", b";", b"\t", b" ", b'"', b'""', b"#", b"%", b"\0", b"-1", b"nan", b"inf", b"1e999", b"0" * 40,
    b"9" * 19, b"9" * 30, b"9" * 5000, b"-0", b"+7", b"007", b"1.5", b"0,5", b"\xff", b"\xff\xfe", b"\xef\xbb\xbf",
    b"[", b"]", b"{", b"}", b"<", b">", b"=", b".", b"true", b"null", b"&a;", b"source", b"target",
    b"\x1b]52;c;AA\x07", "\u202e\u6771".encode(), b" " * 3000, b"#\n" * 500,
)  # fmt: skip
# JSON that Python would write, and some that it would not.
VALUES: tuple[Any, ...] = (
    None, True, False, -1, 0, 1, 2, 7, 0.5, -0.5, 1e308, 3e38, 2**31, 2**53, 2**63, 10**30, "", "x", "0", "x" * 5000,
    "a\nb", "\x1b[2J", "../../x", [], {}, [[]], [None], [1, 2], {"a": 1},
)  # fmt: skip
TEXTS = (
    "NaN", "-Infinity", "1e999", "9" * 400, "9" * 5000, '"\\ud800"', "[" * 900 + "]" * 900,
    '{"a":' * 30 + "1" + "}" * 30,
)  # fmt: skip
HERE = '"put the text here"'
TENSOR = re.compile(rb"[^\n ]+ [A-Z][A-Z0-9_]* [0-9,]*\n")
FLOATS = (float("nan"), float("inf"), -float("inf"), 3e38, -3e38, 1e-45, 0.0, -1.0, 0.5, 1e9)
INTEGERS = (-1, 0, 1, 2, 31, 32, 10**8, 2**31 - 1, -(2**31))

Mutation = Callable[[bytes, random.Random], bytes]


def mutated(content: bytes, rng: random.Random) -> bytes:
    """The content with one to four changes."""
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 4))):
        content = rng.choice(_fitting(content, rng))(content, rng)
    return content


def _fitting(content: bytes, rng: random.Random) -> tuple[Mutation, ...]:
    """Changes of any bytes, or more often of what these bytes are."""
    if rng.random() < 0.3:
        return MUTATIONS
    if TENSOR.match(content):
        return (_values, _head)
    if content[:1] in (b"{", b"["):
        return (_document,)
    return MUTATIONS


def _place(content: bytes, rng: random.Random, room: int = 1) -> int:
    """A place in the content, more often in its second half, which is less often a header."""
    last = max(1, len(content) - room + 1)
    return rng.randrange(last // 2 if rng.random() < 0.5 else 0, last)


def _flip(content: bytes, rng: random.Random) -> bytes:
    at = _place(content, rng)
    flipped = bytes(byte ^ (1 << rng.randrange(8)) for byte in content[at : at + 1])
    return content[:at] + flipped + content[at + 1 :]


def _byte(content: bytes, rng: random.Random) -> bytes:
    at = _place(content, rng)
    return content[:at] + bytes([rng.randrange(256)]) + content[at + 1 :]


def _number(content: bytes, rng: random.Random) -> bytes:
    """Another number: in the digits of a text, or in the bytes of anything else."""
    if content.isascii() and b"\0" not in content:
        digits = [found.span() for found in re.finditer(rb"[0-9]+", content)] or [(0, 0)]
        start, end = rng.choice(digits)
        return content[:start] + str(rng.choice(NUMBERS)).encode() + content[end:]
    size = rng.choice((1, 2, 4, 8))
    at = _place(content, rng, size)
    at -= at % size if rng.random() < 0.7 else 0
    value = rng.choice(NUMBERS) & ((1 << 8 * size) - 1)
    return content[:at] + value.to_bytes(size, rng.choice(("little", "big"))) + content[at + size :]


def _cut(content: bytes, rng: random.Random) -> bytes:
    return content[: _place(content, rng)]


def _remove(content: bytes, rng: random.Random) -> bytes:
    at = _place(content, rng)
    return content[:at] + content[at + rng.randrange(1, 17) :]


def _repeat(content: bytes, rng: random.Random) -> bytes:
    at = _place(content, rng)
    return content[:at] + content[at : at + rng.randrange(1, 65)] * rng.choice((2, 3, 50)) + content[at:]


def _swap(content: bytes, rng: random.Random) -> bytes:
    a, b = sorted((_place(content, rng), _place(content, rng)))
    size = min(rng.randrange(1, 17), b - a)
    between = content[a + size : b]
    return content[:a] + content[b : b + size] + between + content[a : a + size] + content[b + size :]


def _word(content: bytes, rng: random.Random) -> bytes:
    at, word = _place(content, rng), rng.choice(WORDS)
    return content[:at] + word + content[at + rng.choice((0, 0, 1, len(word))) :]


def _line(content: bytes, rng: random.Random) -> bytes:
    """A line less, twice, or at another place."""
    lines = content.split(b"\n")
    line = lines.pop(rng.randrange(len(lines)))
    for _ in range(rng.randrange(3)):
        lines.insert(rng.randrange(len(lines) + 1), line)
    return b"\n".join(lines)


MUTATIONS: tuple[Mutation, ...] = (
    _flip,
    _byte,
    _number,
    _number,
    _cut,
    _remove,
    _repeat,
    _swap,
    _word,
    _word,
    _line,
)


def _document(content: bytes, rng: random.Random) -> bytes:
    """A JSON document with a value less, more, or another one; bytes that are none change as others do."""
    try:
        return _changed(json.loads(content), rng)
    except (ValueError, RecursionError):
        return rng.choice(MUTATIONS)(content, rng)


def _changed(document: Any, rng: random.Random) -> bytes:
    inner = document
    while inner:
        key = rng.choice(list(inner)) if isinstance(inner, dict) else rng.randrange(len(inner))
        if not isinstance(inner[key], dict | list) or not inner[key] or rng.random() < 0.25:
            break
        inner = inner[key]
    text = HERE
    if not inner:
        pass
    elif rng.random() < 0.2:
        del inner[key]
    elif rng.random() < 0.2:
        other = json.loads(json.dumps(inner[key]))
        if isinstance(inner, dict):
            inner[rng.choice(("more", "", "\x1b]", key + key))] = other
        else:
            inner.insert(key, other)
    elif rng.random() < 0.3:
        inner[key], text = json.loads(HERE), rng.choice(TEXTS)
    else:
        inner[key] = rng.choice(VALUES)
    return bytes(json.dumps(document).replace(HERE, text).encode())


def _head(content: bytes, rng: random.Random) -> bytes:
    """A tensor of another name, type or shape."""
    head, _, data = content.partition(b"\n")
    name, kind, shape = head.split(b" ")
    sides = shape.split(b",")
    change = rng.randrange(5)
    if change == 0:
        name = rng.choice(MUTATIONS)(name, rng).translate(None, b" \n") or b"x"
    elif change == 1:
        kind = rng.choice((b"F32", b"F64", b"F16", b"BF16", b"I64", b"I32", b"U8", b"BOOL", b"F8_E4M3"))
    elif change == 2:
        sides[rng.randrange(len(sides))] = str(rng.choice((0, 1, 2, 3, 31, 33, 1000, *NUMBERS))).encode()
    elif change == 3:
        sides.insert(rng.randrange(len(sides) + 1), rng.choice((b"1", b"2", b"0")))
    else:
        sides.pop(rng.randrange(len(sides)))
    return b" ".join((name, kind, b",".join(filter(None, sides)))) + b"\n" + data


def _values(content: bytes, rng: random.Random) -> bytes:
    """A tensor with odd numbers at one place, at some, or everywhere."""
    head, _, data = content.partition(b"\n")
    kind = head.split(b" ")[1]
    form = {b"F32": "<f", b"F64": "<d", b"I64": "<q", b"I32": "<i", b"U8": "<B"}.get(kind)
    if form is None or not data:
        return rng.choice(MUTATIONS)(content, rng)
    value: Any = rng.choice(FLOATS if kind[:1] == b"F" else INTEGERS)
    value = value & 255 if kind == b"U8" else value
    size = struct.calcsize(form)
    count = len(data) // size
    places = {rng.randrange(max(count, 1)) for _ in range(rng.choice((1, 1, 2, 9)))}
    packed, filled = struct.pack(form, value), bytearray(data)
    for at in range(count) if rng.random() < 0.2 else places:
        filled[size * at : size * at + size] = packed
    return head + b"\n" + bytes(filled)
