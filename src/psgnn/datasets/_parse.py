"""Numbers and edges out of the text files of the datasets."""

from __future__ import annotations

import hashlib
import re
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from psgnn.errors import DataError

_COMMENT = re.compile(rb"^[#%][^\n]*", re.MULTILINE)
_COMMA_TO_SPACE = bytes.maketrans(b",", b" ")


def numbers(text: bytes, columns: int, dtype: npt.DTypeLike = np.int64) -> npt.NDArray[Any]:
    """The numbers of a text table as ``[L, columns]``, between commas or blanks; ``#`` and ``%`` comment.

    >>> numbers(b"# from, to\\n0, 1\\n0, 2\\n", 2).tolist()
    [[0, 1], [0, 2]]
    """
    with warnings.catch_warnings():
        # numpy says by a warning that it met something else than a number
        warnings.simplefilter("error", DeprecationWarning)
        try:
            flat = np.fromstring(_COMMENT.sub(b"", text).translate(_COMMA_TO_SPACE), dtype=dtype, sep=" ")
        except (DeprecationWarning, ValueError) as error:
            raise DataError(f"the text holds something other than numbers ({error})") from None
    if flat.size == 0 or flat.size % columns:
        raise DataError(f"the text holds {flat.size} numbers, which are not rows of {columns}")
    return flat.reshape(-1, columns)


def edges(text: bytes) -> npt.NDArray[np.int64]:
    """The edges of a list or MatrixMarket file as they stand, ``[2, L]``; the smallest id becomes 0."""
    if text.startswith(b"%%MatrixMarket"):
        # the first line that is no comment holds the shape: rows, columns, entries
        text = _COMMENT.sub(b"", text).lstrip().partition(b"\n")[2]
    pairs = numbers(text, 2).T
    zero_based: npt.NDArray[np.int64] = pairs - pairs.min()
    return zero_based


def edge_digest(text: bytes) -> str:
    """The sha256 of the undirected graph in the text, whatever order, direction or format it is written in.

    Hashed are the distinct edges ``u < v`` without self-loops, sorted, as little-endian int64 ``[2, E]``.
    """
    rows, cols = edges(text)
    low, high = np.minimum(rows, cols), np.maximum(rows, cols)
    num_nodes = high.max() + 1
    keys = np.unique((low * num_nodes + high)[low < high])
    return hashlib.sha256(np.stack(np.divmod(keys, num_nodes)).astype("<i8").tobytes()).hexdigest()
