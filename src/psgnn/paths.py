"""Files of users: what can be read, what can be written, and writing that leaves nothing unfinished behind.

Nothing heavy is imported here, so that a command can refuse a wrong path at once.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

from psgnn.errors import InputError

PathLike: TypeAlias = "str | os.PathLike[str]"
TEMPORARY = ".psgnn-"  # how files begin that are not written to their end
STANDARD_INPUT = Path("-")
OUTPUT_SUFFIXES = (".csv", ".tsv", ".parquet", ".npz")


def check_file(path: Path) -> None:
    """Refuse a path that is not a file with something in it; ``-`` is standard input."""
    if path == STANDARD_INPUT:
        return
    try:
        status = path.stat()
    except FileNotFoundError:
        raise InputError(f"{path} does not exist; check the path") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if stat.S_ISDIR(status.st_mode):
        raise InputError(f"{path} is a directory; pass a file")
    if stat.S_ISREG(status.st_mode) and status.st_size == 0:
        raise InputError(f"{path} is empty; expected a graph or a table")


@contextmanager
def atomic_write(path: PathLike, *, force: bool = False) -> Iterator[Path]:
    """Yield a temporary path beside ``path`` that takes its place when the block ends well.

    >>> with atomic_write("run.json") as temporary:
    ...     temporary.write_text("{}")

    On any error nothing is left behind and ``path`` is as it was.
    """
    with _writing(path):
        target = Path(path).expanduser().resolve()
        _check_target(target, force)
        temporary = target.with_name(f"{TEMPORARY}{secrets.token_hex(8)}{target.suffix}")
        temporary.touch(exist_ok=False)
        try:
            yield temporary
            with temporary.open("rb+") as file:
                os.fsync(file.fileno())
            _check_target(target, force)  # it may have appeared meanwhile
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)


@contextmanager
def _writing(path: PathLike) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        # polars reports a full disk as an error of its own
        if not isinstance(error, OSError) and not type(error).__module__.startswith("polars"):
            raise
        reason = getattr(error, "strerror", None) or " ".join(str(error).split())
        raise InputError(f"cannot write {path}: {reason}") from error


def _check_target(path: Path, force: bool) -> None:
    if not path.parent.is_dir():
        raise InputError(f"the directory {path.parent} does not exist; create it or choose another --out")
    if path.exists() and not path.is_file():
        raise InputError(f"{path} exists and is not a regular file; choose another --out")
    if path.exists() and not force:
        raise InputError(f"{path} exists; pass --force to replace it or choose another --out")


def check_output(path: PathLike, *, force: bool = False, suffixes: Sequence[str] = OUTPUT_SUFFIXES) -> None:
    """Refuse early, before the work is done, what could not be written in the end."""
    suffix = Path(path).suffix.lower()
    if suffix not in suffixes:
        raise InputError(f"cannot write {path}: the format is one of {', '.join(suffixes)}")
    with _writing(path):
        _check_target(Path(path).expanduser().resolve(), force)
