"""The bytes of a file: unpacked, and as text with one kind of line end."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from psgnn.errors import InputError
from psgnn.memory import memory_cap
from psgnn.paths import check_file

TEXT_SUFFIXES = (".csv", ".tsv", ".txt", ".edges", ".edgelist", ".el")


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
        raise InputError(f"{path} cannot be read as {kind}: {reason}") from error


def read_bytes(path: Path) -> bytes:
    """The content of a file, unpacked if its name ends in ``.gz``."""
    check_file(path)
    packed = path.suffix.lower() == ".gz"
    with decoding(path, "gzip" if packed else "a file"):
        content = path.read_bytes()
        return gzip.decompress(content) if packed else content


def decoded(path: Path) -> bytes:
    """The bytes of a UTF-8 text file, with ``\\n`` at the end of every line."""
    text = read_bytes(path).removeprefix(b"\xef\xbb\xbf")
    if b"\0" in text:
        raise InputError(
            f"{path} is binary and of no known format; supported are UTF-8 text "
            f"({' '.join(TEXT_SUFFIXES)}, also .gz), .parquet, .npz, .mtx, .mat and .graphml"
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
    if b" " in text:
        text = text.lstrip(b" ")
        while b"\n " in text:
            text = text.replace(b"\n ", b"\n")
        while b" \n" in text:
            text = text.replace(b" \n", b"\n")
    return text
