"""A cap on the memory of this process, and columns that are kept on disk where they would not fit under it."""

from __future__ import annotations

import mmap
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from psgnn.errors import InputError

if TYPE_CHECKING:  # a command that finds a wrong path ends before NumPy is loaded
    import numpy.typing as npt

UNITS = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
SMALL = 2**20  # bytes that are not worth a file
# Of the cap, columns in memory may use what brings the process to this share of it; the rest is for what comes and
# goes. A result does not depend on it.
SHARE = 0.5
MOST = 2**60  # more is as good as no limit
LEAST = 2**30  # what psgnn and its libraries reserve, most of it never used

_cap: int | None = None


def limit_memory(cap: int | str | None) -> None:
    """Keep this process under a number of bytes, or a text such as ``4G``; None takes the limit away.

    Columns of large graphs are then kept in temporary files (in ``$TMPDIR``) that are mapped into memory, from which
    the system reads what is needed. On Linux the limit is enforced: what cannot be kept in files and does not fit is a
    `MemoryError`.
    """
    global _cap
    if cap is None and _cap is None:
        return
    size = None if cap is None else parse_size(cap)
    if size is not None and size < LEAST:
        raise InputError(
            f"a memory cap of {describe(size)} is too low; psgnn alone reserves about {describe(LEAST)}"
        )
    _enforce(size)
    _cap = size


def _enforce(size: int | None) -> None:
    """Have the system hold this process to a number of bytes, where it can."""
    try:
        import resource
    except ImportError:  # Windows has no such limit: columns still go to files
        return
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    soft = resource.RLIM_INFINITY if size is None else size
    if hard == resource.RLIM_INFINITY or (soft != resource.RLIM_INFINITY and soft <= hard):
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def memory_cap() -> int | None:
    """The limit in bytes, if there is one."""
    return _cap


def parse_size(size: int | str) -> int:
    """Bytes of a text such as 512M, 4G or 1.5GB."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)I?B?", str(size).strip().upper())
    if not found or float(found[1]) == 0:
        raise InputError(f"'{size}' is not an amount of memory; write it as 512M or 4G")
    return min(int(float(found[1]) * UNITS.get(found[2], 1)), MOST)


def describe(size: int) -> str:
    """Bytes as a person says them."""
    return f"{size / UNITS['G']:.1f} GiB" if size >= UNITS["G"] else f"{size / UNITS['M']:.0f} MiB"


def used_bytes() -> int:
    """Memory of this process that is its own: what mapped files take is the system's, and it can have it back."""
    import psutil

    info = psutil.Process().memory_info()
    # What the limit of `_enforce` counts on Linux, its like on Windows, and the best that a Mac has.
    return int(getattr(info, "data", None) or getattr(info, "private", None) or info.rss)


def peak_bytes() -> int:
    """The most memory that this process has had at once."""
    if sys.platform.startswith("linux"):
        # getrusage would count from the peak of the process that started this one.
        with suppress(OSError):
            found = re.search(r"^VmHWM:\s+(\d+) kB$", Path("/proc/self/status").read_text(), re.MULTILINE)
            if found:
                return int(found[1]) * 1024
    try:
        import resource
    except ImportError:  # Windows
        import psutil

        return int(psutil.Process().memory_info().peak_wset)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024  # bytes on a Mac, else KiB


def physical_memory() -> int:
    """Bytes that this machine has."""
    import psutil

    return int(psutil.virtual_memory().total)


def need_room(size: int) -> None:
    """Raise `MemoryError` if that many more bytes do not fit under the cap.

    For what runs in libraries that end the process, or hang, where an allocation of theirs fails.
    """
    if _cap is not None and used_bytes() + size > _cap:
        raise MemoryError(f"{describe(size)} more do not fit under {describe(_cap)}")


def empty_columns(shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """An array to be filled, in memory or in a file that is gone with it."""
    import numpy as np

    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    if _cap is None or size < SMALL or used_bytes() + size <= SHARE * _cap:
        return np.empty(shape, dtype)
    return _in_file(shape, dtype, size)


def keep_columns(columns: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same array, or a copy of it in a file if there is a cap that asks for it."""
    if _cap is None or columns.nbytes < SMALL or used_bytes() <= SHARE * _cap:
        return columns
    kept = _in_file(columns.shape, columns.dtype, columns.nbytes)
    kept[...] = columns
    return kept


def save_columns(path: Path, columns: npt.NDArray[Any]) -> None:
    """Write an array as .npy, for other processes to map."""
    import numpy as np

    with _room_for(columns.nbytes, path.parent), path.open("wb") as file:
        _reserve(file, columns.nbytes)
        np.save(file, columns)


def _in_file(shape: tuple[int, ...], dtype: npt.DTypeLike, size: int) -> npt.NDArray[Any]:
    import numpy as np

    with _room_for(size, tempfile.gettempdir()), tempfile.TemporaryFile(prefix="psgnn-columns-") as file:
        _reserve(file, size)
        mapped = mmap.mmap(file.fileno(), size)
    return np.frombuffer(mapped, dtype).reshape(shape)


def _reserve(file: IO[bytes], size: int) -> None:
    """Take the room of a file now, where a full disk is an error that says so.

    A hole in a mapped file would be found when it is written to, and NumPy only tells how much it could not write.
    """
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, max(size, 1))  # nothing is an error to it
    else:
        file.truncate(size)


@contextmanager
def _room_for(size: int, where: str | Path) -> Iterator[None]:
    """What goes wrong with a file of columns, in one line."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"columns of {describe(size)} cannot be kept in {where} ({error.strerror or error}); free some space "
            "there, set TMPDIR to another folder, or raise the memory cap if there is one"
        ) from None
