"""Compile kernels with numba, keep them in a folder that can be written, and run them on all cores.

numba keeps a kernel beside its source or below HOME. Where it can write to neither, as in a read-only container, its
own ``njit(cache=True)`` fails at import. All kernels of psgnn are compiled by the `njit` of this module instead.
"""

from __future__ import annotations

import logging
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import numba
import numpy as np
from numba.core import event
from numba.core.caching import FunctionCache
from numba.core.runtime import rtsys

log = logging.getLogger("psgnn.kernels")

SECONDS_BETWEEN_LINES = 3.0
BESIDE_SOURCE = ""  # numba's own default


class _Report(event.Listener):  # type: ignore[misc]  # numba has no types
    """Log that kernels are compiled, and how many have been, every few seconds: a command waits for them."""

    is_kept = True
    _compiled, _next = 0, 0.0

    def on_start(self, compilation: Any) -> None:
        module = compilation.data["dispatcher"].py_func.__module__
        if self._next > 0 or not module.startswith("psgnn"):
            return
        self._say(
            "compiling kernels, once ..."
            if self.is_kept
            else "compiling kernels; they cannot be kept, set NUMBA_CACHE_DIR to a folder that can be written"
        )

    def on_end(self, compilation: Any) -> None:
        self._compiled += 1
        if 0 < self._next < time.monotonic():
            self._say(f"compiled {self._compiled} kernels ...")

    def _say(self, text: str) -> None:
        self._next = time.monotonic() + SECONDS_BETWEEN_LINES
        log.info(text, extra={"at_once": True})


_report = _Report()
event.register("numba:compile", _report)


class _Cache(FunctionCache):  # type: ignore[misc]
    """Kernels on disk, loaded without the compiler.

    numba's own cache first imports all that numba can compile, down to scipy.linalg, which takes longer than a
    command does on a small graph. Machine code needs numba's memory management alone.
    """

    def load_overload(self, signature: Any, target: Any) -> Any:
        rtsys.initialize(target)
        with self._guard_against_spurious_io_errors():
            found = self._load_overload(signature, target)
        return super().load_overload(signature, target) if found is None else found


def njit(*, cache: bool = False, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function as ``numba.njit`` does; with ``cache``, keep it on disk where that is possible.

    With ``NUMBA_DISABLE_JIT=1`` it stays a Python function.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        if numba.config.DISABLE_JIT:
            return np.errstate(over="ignore")(function)  # hashes wrap around, as they do when compiled
        kernel = numba.njit(**options)(function)
        if cache:
            folder = _cache_folder(Path(function.__code__.co_filename).parent, numba.config.CACHE_DIR)
            if folder is not None:
                _keep(kernel, folder)
            _report.is_kept &= folder is not None
        return kernel

    return decorate


def _keep(kernel: Any, folder: str) -> None:
    """Keep the kernel in the folder. Functions of other packages stay where numba puts them."""
    chosen = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = folder
    try:
        with suppress(RuntimeError):  # there is no source, or the folder has just become read-only
            kernel._cache = _Cache(kernel.py_func)  # what `enable_caching` does
    finally:
        numba.config.CACHE_DIR = chosen


@lru_cache
def _cache_folder(source: Path, chosen: str) -> str | None:
    """The first folder for kernels of a source folder that can be written, or None."""
    if chosen and _is_writable(Path(chosen)):
        return chosen
    if _is_writable(source / "__pycache__"):
        return BESIDE_SOURCE
    return next((str(folder) for folder in _other_folders() if _is_writable(folder)), None)


def _other_folders() -> Iterator[Path]:
    """The user's cache folder, as for datasets, then a private temporary one."""
    with suppress(RuntimeError):  # there is no home
        base = os.environ.get("PSGNN_CACHE")
        yield (Path(base) if base else _user_cache() / "psgnn") / "kernels"
    with suppress(OSError):
        folder = Path(tempfile.gettempdir()) / f"psgnn-kernels-{_user()}"
        folder.mkdir(mode=0o700, exist_ok=True)
        if _is_private(folder):
            yield folder


def _user_cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def _user() -> str:
    return str(os.getuid()) if hasattr(os, "getuid") else "user"  # Windows has a temporary folder per user


def _is_private(folder: Path) -> bool:
    """Whether nobody else can put compiled code there, which would be run."""
    if not hasattr(os, "getuid"):
        return True
    status = folder.lstat()
    return status.st_uid == os.getuid() and not status.st_mode & 0o022 and not folder.is_symlink()


def _is_writable(folder: Path) -> bool:
    """Try it: permissions say nothing about a read-only disk."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


Item = TypeVar("Item")
Result = TypeVar("Result")

STEPS_WORTH_A_THREAD = 4e6  # handing work to a thread costs as much as some millions of inner steps
_most_threads = sys.maxsize


def num_threads() -> int:
    """Threads that the kernels of this process may use: one per core, unless `kernel_threads` limits them."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, _most_threads)


@contextmanager
def kernel_threads(most: int) -> Iterator[None]:
    """Limit the threads of this process's kernels, for processes that share their cores."""
    global _most_threads
    before, _most_threads = _most_threads, most
    try:
        yield
    finally:
        _most_threads = before


def parallel_rows(
    work: Callable[[int, int], Result], num_rows: int, steps: float, parts: int | None = None
) -> list[Result]:
    """Call ``work(first, last)`` for consecutive blocks of rows and return the results in order.

    `steps` estimates the inner steps of all rows together; a short kernel runs in the calling thread. There are
    `parts` blocks, by default one per thread. Give `parts` where the result depends on the blocks, as sums do, or
    where rows differ much in cost.
    """
    if parts is None:
        parts = num_threads() if steps >= STEPS_WORTH_A_THREAD else 1
    if parts == 1:
        return [work(0, num_rows)]
    bounds = np.linspace(0, num_rows, parts + 1).astype(np.int64).tolist()
    return parallel_map(lambda block: work(*block), pairwise(bounds), steps)


def parallel_map(work: Callable[[Item], Result], items: Iterable[Item], steps: float) -> list[Result]:
    """Call ``work(item)`` for every item, on all cores where `steps` are enough for that to be faster.

    Work that calls this again stays in its thread: all threads of the pool could be waiting for each other.
    """
    items = list(items)
    nested = getattr(_thread, "is_of_pool", False)
    if nested or len(items) < 2 or num_threads() < 2 or steps < STEPS_WORTH_A_THREAD:
        return [work(item) for item in items]
    return list(_pool(num_threads()).map(work, items))


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    def mark() -> None:
        _thread.is_of_pool = True

    return ThreadPoolExecutor(threads, thread_name_prefix="psgnn", initializer=mark)


_thread = threading.local()
