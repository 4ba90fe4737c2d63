"""Files of users: what can be read, what can be written, writing that leaves nothing unfinished behind, and locks.

Nothing heavy is imported here, so that a command can refuse a wrong path at once.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import stat
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeAlias

from psgnn.errors import InputError

if sys.platform != "win32":
    import fcntl

PathLike: TypeAlias = "str | os.PathLike[str]"
TEMPORARY = ".psgnn-"  # how files begin that are not written to their end
STANDARD_INPUT = Path("-")
PARTS = ".parts"
UNFINISHED = re.compile(re.escape(TEMPORARY) + r"[0-9a-f]{16}(\.\w+)?$")
URL = re.compile(r"[A-Za-z][\w+.-]*://")
SECRET = re.compile(r"(://)[^/@\s]*@")
ABANDONED_SECONDS = 24 * 3600  # after which an unfinished file is left over, where there are no locks
NO_LINKS = (errno.EPERM, errno.EACCES, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EMLINK)
OUTPUT_SUFFIXES = (".csv", ".tsv", ".parquet", ".npz")


def is_url(source: object) -> bool:
    """Whether this is an address, such as that of a database, and no path."""
    return isinstance(source, str) and URL.match(source) is not None


def without_secrets(text: str) -> str:
    """The text with no user and password in addresses."""
    return SECRET.sub(r"\1", text)


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

    On any error nothing is left behind and ``path`` is as it was. A symbolic link is replaced, and the file that it
    points to stays. What a killed process left unfinished in the folder is removed.
    """
    with _writing(path):
        target = _place(path)
        _check_target(target, force)
        remove_unfinished(target.parent)
        temporary, lock = _create_unfinished(target)
        try:
            yield temporary
            os.fsync(lock)
            if os.name == "nt":  # which renames no open file
                os.close(lock)
                lock = -1
            _publish(temporary, target, force)
        finally:
            temporary.unlink(missing_ok=True)
            if lock >= 0:
                os.close(lock)


def remove_unfinished(folder: Path) -> None:
    """Remove what killed processes left unfinished in a folder; files that are being written are locked and stay."""
    try:
        found = [entry for entry in os.scandir(folder) if UNFINISHED.match(entry.name)]
    except OSError:
        return
    for entry in found:
        with suppress(OSError):
            if not entry.is_file(follow_symlinks=False):
                continue
            lock = os.open(entry.path, os.O_RDWR)
            try:
                held = _lock(lock)
                old = time.time() - entry.stat().st_mtime > ABANDONED_SECONDS
                if held or (held is None and old):
                    Path(entry.path).unlink()
            finally:
                os.close(lock)
    for entry in found:
        with suppress(OSError):
            # The file that they are parts of was made before them, and is locked until they are gone.
            if entry.name.endswith(PARTS) and not _owned(Path(entry.path)):
                shutil.rmtree(entry.path)


def _owned(parts: Path) -> bool:
    """Whether the file is there that these are parts of."""
    return any(path.stem == parts.stem and path != parts for path in parts.parent.iterdir())


@contextmanager
def unfinished_parts(temporary: Path) -> Iterator[Path]:
    """A folder for parts of a file that `atomic_write` is about to write; it goes when they are put together."""
    parts = temporary.with_suffix(PARTS)
    parts.mkdir()
    try:
        yield parts
    finally:
        shutil.rmtree(parts, ignore_errors=True)


def _create_unfinished(target: Path) -> tuple[Path, int]:
    """Create a temporary file and lock it for as long as this process writes it."""
    while True:
        temporary = target.with_name(f"{TEMPORARY}{secrets.token_hex(8)}{target.suffix}")
        lock = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        if _lock(lock) is not False and temporary.exists():
            return temporary, lock
        os.close(lock)  # another process took it for a left one before it was locked, and removes it


def _lock(file: int) -> bool | None:
    """Lock an open file: false if somebody else has, None where there are no such locks."""
    if sys.platform == "win32":
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _publish(temporary: Path, target: Path, force: bool) -> None:
    """Put a finished file at its place; without force, never over a file that has appeared there meanwhile."""
    if force:
        temporary.replace(target)
        return
    try:
        if os.name == "nt":
            temporary.rename(target)
        else:
            os.link(temporary, target)
    except FileExistsError:
        raise _exists(target) from None
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        try:  # a file system without hard links: take the place first
            os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            raise _exists(target) from None
        temporary.replace(target)


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


def _place(path: PathLike) -> Path:
    """The path with a folder that is not a link; a link at its end is kept."""
    known = Path(path).expanduser()
    return known.resolve() if known.name in ("", "..") else known.parent.resolve() / known.name


def _check_target(path: Path, force: bool) -> None:
    if not path.parent.is_dir():
        raise InputError(f"the directory {path.parent} does not exist; create it or choose another --out")
    if path.exists() and not path.is_file():
        raise InputError(f"{path} exists and is not a regular file; choose another --out")
    if not force and (path.exists() or path.is_symlink()):
        raise _exists(path)


def _exists(path: Path) -> InputError:
    what = "is a symbolic link" if path.is_symlink() else "exists"
    return InputError(f"{path} {what}; pass --force to replace it or choose another --out")


def check_output(path: PathLike, *, force: bool = False, suffixes: Sequence[str] = OUTPUT_SUFFIXES) -> None:
    """Refuse early, before the work is done, what could not be written in the end."""
    suffix = Path(path).suffix.lower()
    if suffix not in suffixes:
        raise InputError(f"cannot write {path}: the format is one of {', '.join(suffixes)}")
    with _writing(path):
        target = _place(path)
        remove_unfinished(target.parent)
        _check_target(target, force)


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
    from filelock import FileLock, Timeout

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
