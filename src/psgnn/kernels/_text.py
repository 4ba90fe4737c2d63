"""Loops over the text of a table and over the names in it.

Names are compared by 64-bit keys: the integers themselves, or hashes of the text. The caller checks that no two names
share a hash.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from psgnn.kernels._compile import njit

PLUS, ZERO, NINE = b"+09"
BEFORE_FIELD = tuple(b'\n\t ,;"')


@njit(cache=True, nogil=True)
def factorize_keys(keys: npt.NDArray[np.uint64]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """Codes ``[M]`` in order of appearance, and where each code appeared first, by open addressing."""
    slots = np.full(1024, -1, np.int32)
    codes = np.empty(keys.size, np.int32)
    firsts = np.empty(keys.size, np.int64)
    count = 0
    for i in range(keys.size):
        slot = _slot_of(keys[i], slots, keys, firsts)
        if slots[slot] < 0:
            slots[slot] = count
            firsts[count] = i
            count += 1
        codes[i] = slots[slot]
        if 2 * count > slots.size:
            slots = np.full(4 * slots.size, -1, np.int32)
            for code in range(count):
                slots[_slot_of(keys[firsts[code]], slots, keys, firsts)] = code
    return codes, firsts[:count].copy()


@njit(cache=True, nogil=True)
def _slot_of(
    key: np.uint64, slots: npt.NDArray[np.int32], keys: npt.NDArray[np.uint64], firsts: npt.NDArray[np.int64]
) -> np.int64:
    """The slot that holds the code of ``key``, or the free one that should."""
    mask = slots.size - 1
    slot = np.int64((key * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)) & mask
    while slots[slot] >= 0 and keys[firsts[slots[slot]]] != key:
        slot = (slot + 1) & mask
    return slot


@njit(cache=True, nogil=True)
def has_padding(text: npt.NDArray[np.uint8]) -> bool:
    """Whether a field may look like 007 or +7, which would lose its form as a number.

    ``text`` is the content of a file, byte by byte.
    """
    for i in range(text.size - 1):
        padded = text[i] == PLUS or (text[i] == ZERO and ZERO <= text[i + 1] <= NINE)
        if padded and (i == 0 or text[i - 1] in BEFORE_FIELD):
            return True
    return False
