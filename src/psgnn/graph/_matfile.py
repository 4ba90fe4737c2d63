"""Matrices out of MATLAB files of version 5 to 7.

`scipy.io.loadmat` crashes the interpreter on a wrong type tag. This reader checks every size before it uses it, and it
reads no more than matrices of numbers, and those in the fields of a struct.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy  # its parts load when they are used

HEADER_BYTES = 128
MATRIX, COMPRESSED = 14, 15
NUMBERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
STRUCT, SPARSE, OPAQUE = 2, 5, 17
DENSE = range(6, 16)  # double, single, and the integers
COMPLEX = 0x800
MOST_DIMENSIONS = 32


class MatError(ValueError):
    """What is wrong with the file."""


class NewerVersion(MatError):
    """An HDF5 file, version 7.3."""


class Element(NamedTuple):
    """A type and the bytes that are of it."""

    kind: int
    data: memoryview


def read_variables(content: bytes, most_bytes: int) -> dict[str, Any]:
    """Return the variables by name: arrays, sparse matrices, dicts for structs, and None for anything else.

    Args:
        content: The file.
        most_bytes: Compressed variables may unfold to this many bytes together.

    Raises:
        MatError: If the file is damaged, or none of these versions.
    """
    order = {b"IM": "<", b"MI": ">"}.get(content[126:128])
    version = content[125:123:-1] if order == "<" else content[124:126]
    if order and version[:1] == b"\x02":
        raise NewerVersion("version 7.3")
    if order is None or version[:1] != b"\x01" or 0 in content[:4]:
        raise MatError("its header is not that of version 5 to 7")
    reader, variables = _Reader(order), {}
    for kind, data in reader.elements(memoryview(content)[HEADER_BYTES:]):
        if kind == COMPRESSED:
            unfolded = _unfolded(data, most_bytes)
            most_bytes -= len(unfolded)
            kind, data = reader.first(reader.elements(memoryview(unfolded)), "an empty compressed variable")
        if kind == MATRIX:
            name, value = reader.matrix(data, fields=True)
            variables[name] = value
    return variables


def _unfolded(data: memoryview, most_bytes: int) -> bytes:
    unpacker = zlib.decompressobj()
    try:
        content = unpacker.decompress(data, most_bytes + 1)
    except zlib.error as error:
        raise MatError(f"a compressed variable is damaged ({error})") from None
    if len(content) > most_bytes:
        raise MatError(f"it unfolds to more than {most_bytes} bytes")
    if not unpacker.eof:
        raise MatError("a compressed variable is cut")
    return content


class _Reader:
    """Elements of a file with this byte order."""

    def __init__(self, order: str) -> None:
        self.order = order

    def elements(self, buffer: memoryview) -> Iterator[Element]:
        at = 0
        while at + 8 <= len(buffer):
            kind, size = struct.unpack_from(f"{self.order}II", buffer, at)
            start, end = at + 8, at + 8 + size
            at = end if kind == COMPRESSED else -(-end // 8) * 8
            if kind >> 16:  # up to four bytes stand in the tag itself
                kind, size = kind & 0xFFFF, kind >> 16
                start, end, at = start - 4, start - 4 + size, start
                if size > 4:
                    raise MatError("a tag has a wrong size")
            if end > len(buffer):
                raise MatError("it is cut")
            yield Element(kind, buffer[start:end])

    def first(self, elements: Iterator[Element], missing: str) -> Element:
        element = next(elements, None)
        if element is None:
            raise MatError(missing)
        return element

    def numbers(self, element: Element) -> npt.NDArray[Any]:
        code = NUMBERS.get(element.kind)
        if code is None or len(element.data) % int(code[1]):
            raise MatError(f"a tag has the unknown type {element.kind} or a wrong size")
        return np.frombuffer(element.data, self.order + code).astype(code, copy=False)

    def matrix(self, data: memoryview, *, fields: bool) -> tuple[str, Any]:
        """The name and the value of a matrix; of a struct only where ``fields`` are wanted."""
        if not data:  # an empty field
            return "", None
        elements = self.elements(data)

        def numbers() -> npt.NDArray[Any]:
            return self.numbers(self.first(elements, "a variable is cut"))

        flags = numbers()
        if flags.dtype != np.uint32 or flags.size != 2:
            raise MatError("the flags of a variable are damaged")
        kind, is_complex = int(flags[0]) & 0xFF, bool(int(flags[0]) & COMPLEX)
        if kind == OPAQUE:
            return "", None
        shape = tuple(numbers().tolist())
        name = bytes(self.first(elements, "a variable has no name").data).decode("latin-1")
        if not 2 <= len(shape) <= MOST_DIMENSIONS or not all(isinstance(n, int) and n >= 0 for n in shape):
            raise MatError(f"the variable {name!r} has wrong dimensions")
        if kind == STRUCT and fields:
            return name, self._fields(elements, shape)
        if kind == SPARSE:
            rows, starts, values = numbers(), numbers(), numbers()
            values = _sum(values, numbers()) if is_complex else values
            return name, _sparse(rows, starts, values, shape)
        if kind in DENSE:
            values = numbers()
            values = _sum(values, numbers()) if is_complex else values
            if values.size != math.prod(shape):
                raise MatError(f"{values.size} numbers do not fill the shape {list(shape)} of {name!r}")
            return name, values.reshape(shape, order="F")
        return name, None

    def _fields(self, elements: Iterator[Element], shape: tuple[int, ...]) -> dict[str, Any]:
        """The matrices in the fields of the first struct of an array."""
        length = self.numbers(self.first(elements, "a struct is cut"))
        text = bytes(self.first(elements, "a struct is cut").data)
        width = int(length[0]) if length.size == 1 and length.dtype.kind in "iu" else 0
        if width < 1 or len(text) % width:
            raise MatError("the fields of a struct have wrong names")
        if math.prod(shape) == 0:
            return {}
        found = {}
        for start in range(0, len(text), width):
            name = text[start : start + width].partition(b"\0")[0].decode("latin-1")
            kind, data = self.first(elements, "a struct is cut")
            if kind != MATRIX:
                raise MatError(f"a field of a struct has the type {kind}")
            found[name] = self.matrix(data, fields=False)[1]
        return found


def _sum(real: npt.NDArray[Any], imaginary: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if real.size != imaginary.size:
        raise MatError("real and imaginary parts differ in number")
    return real + 1j * imaginary


def _sparse(
    rows: npt.NDArray[Any], starts: npt.NDArray[Any], values: npt.NDArray[Any], shape: tuple[int, ...]
) -> Any:
    """A sparse matrix by columns, which may have room for more entries than it holds."""
    if len(shape) != 2 or rows.dtype.kind not in "iu" or starts.dtype.kind not in "iu":
        raise MatError("a sparse matrix has wrong indices or dimensions")
    if starts.size != shape[1] + 1:
        raise MatError(f"a sparse matrix of {shape[1]} columns has {starts.size} pointers")
    rows, starts = rows.astype(np.int64), starts.astype(np.int64)
    count = int(starts[-1])
    if starts[0] != 0 or (np.diff(starts) < 0).any() or count > min(rows.size, values.size):
        raise MatError("the pointers of a sparse matrix are wrong")
    rows, values = rows[:count], values[:count]
    if count and (rows.min() < 0 or rows.max() >= shape[0]):
        raise MatError(f"a sparse matrix has an entry outside its {shape[0]} rows")
    return scipy.sparse.csc_array((values, rows, starts), shape=shape)
