"""Locks of folders that end with their process, on Linux, macOS and Windows."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

LOCK = ".lock-psgnn"  # not `.psgnn-...`: files of that name are unfinished ones, which anybody may remove


class BusyError(Exception):
    """Another process holds the lock."""


@contextmanager
def locked(folder: Path, *, wait: bool = True) -> Iterator[None]:
    """Hold the lock of a folder, which is created if need be.

    The lock ends with the process, however that ends. Its file is removed at the end; a killed process leaves the
    file, which blocks nobody.

    Args:
        folder: What to lock.
        wait: Wait for the process that holds the lock, in place of an error.

    Raises:
        BusyError: If another process holds the lock and `wait` is false.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / LOCK
    if path.is_symlink():  # to open it would empty the file that it points to
        path.unlink(missing_ok=True)
    lock = FileLock(path)
    try:
        lock.acquire(blocking=wait)
    except Timeout:
        raise BusyError from None
    try:
        yield
    finally:
        # Before the release: whoever waits for the removed file sees that it is gone and starts over (filelock 3.21).
        # Windows removes no open file; there filelock does it.
        if os.name == "posix":
            with suppress(OSError):
                path.unlink()
        lock.release()
