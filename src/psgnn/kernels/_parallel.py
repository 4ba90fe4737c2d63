"""Run kernels on all cores. They release the interpreter lock, so threads are enough."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from typing import TypeVar

import numpy as np

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
    """Call ``work(item)`` for every item, on all cores where `steps` are enough for that to be faster."""
    items = list(items)
    if len(items) < 2 or num_threads() < 2 or steps < STEPS_WORTH_A_THREAD:
        return [work(item) for item in items]
    return list(_pool(num_threads()).map(work, items))


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="psgnn")
