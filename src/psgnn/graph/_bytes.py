"""The bytes of a file: unpacked up to a limit, and as text in UTF-8 with one kind of line end.

``$PSGNN_MAX_UNPACKED`` (such as ``20G``) is the most that a packed file may unfold to. By default it is half of the
memory of the machine.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import lzma
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import IO, Any

import polars as pl

from psgnn.errors import InputError
from psgnn.memory import describe, memory_cap, parse_size, physical_memory
from psgnn.paths import STANDARD_INPUT, check_file

TEXT_SUFFIXES = (".csv", ".tsv", ".txt", ".edges", ".edgelist", ".el")
UNPACKERS: dict[str, Callable[[IO[bytes]], Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
CHUNK_BYTES = 1 << 22
UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
BLANKS_AT_THE_END = re.compile(rb"(?<! ) +\n")  # without the look back, it is quadratic in long runs
BLANKS_AT_THE_START = re.compile(rb"\n +")


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
        if "pickle" in reason:  # NumPy's advice is to trust the file
            reason = "it is damaged, or holds Python objects, which are not read"
        raise InputError(f"{path} cannot be read as {kind}: {reason}") from error


def unpacked_limit() -> int:
    """The most bytes that a packed file may unfold to."""
    setting = os.environ.get("PSGNN_MAX_UNPACKED")
    if not setting:
        return physical_memory() // 2
    try:
        return parse_size(setting)
    except InputError:
        raise InputError(f"PSGNN_MAX_UNPACKED={setting} is not a size; write it as 512M or 4G") from None


def refuse_unpacked(path: Path, size: int) -> None:
    """Refuse a file that unfolds to more than the limit."""
    limit = unpacked_limit()
    if size > limit:
        raise InputError(
            f"{path} unfolds to more than {describe(limit)}; if it is meant to, set PSGNN_MAX_UNPACKED higher"
        )


def base_name(path: Path) -> str:
    """The name of a file in lower case, without the suffix of its packing."""
    name = path.name.lower()
    return name.removesuffix(Path(name).suffix) if Path(name).suffix in UNPACKERS else name


def read_bytes(path: Path) -> bytes:
    """The content of a file, unpacked if its name ends in ``.gz``, ``.bz2`` or ``.xz``; ``-`` is standard input."""
    if path == STANDARD_INPUT:
        content = sys.stdin.buffer.read() if sys.stdin is not None else b""
        if not content:
            raise InputError("standard input is empty; expected a graph or a table")
        return content
    check_file(path)
    unpacker = UNPACKERS.get(path.suffix.lower())
    with decoding(path, "a file" if unpacker is None else f"{path.suffix.lower()[1:]}, which its name says"):
        content = path.read_bytes()
        if unpacker is None:
            return content
        chunks, size = [], 0
        # A stream takes linear time, whatever the number of packed members in the file.
        with unpacker(BytesIO(content)) as stream:
            while chunk := stream.read(CHUNK_BYTES):
                size += len(chunk)
                refuse_unpacked(path, size)
                chunks.append(chunk)
    return b"".join(chunks)


def decoded(path: Path) -> bytes:
    """The bytes of a text file as UTF-8, with ``\\n`` at the end of every line."""
    text = read_bytes(path)
    if text.startswith(UTF16):
        try:
            text = text.decode("utf-16").encode()
        except UnicodeError:
            raise InputError(f"{path} begins as UTF-16 text and is not; save it as UTF-8") from None
    text = text.removeprefix(codecs.BOM_UTF8)
    if b"\0" in text:
        raise InputError(
            f"{path} is binary and of no known format; supported are UTF-8 text "
            f"({' '.join(TEXT_SUFFIXES)}, also .gz), .parquet, .npz, .mtx, .mat, .graphml, .gml and .json"
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
    if b" " not in text:
        return text
    text = text.lstrip(b" ")
    if separator == " ":  # there are no longer runs
        return text.replace(b"\n ", b"\n").replace(b" \n", b"\n")
    if b"\n " in text:
        text = BLANKS_AT_THE_START.sub(b"\n", text)
    return BLANKS_AT_THE_END.sub(b"\n", text) if b" \n" in text else text
