"""Adjacency matrices: NPZ, MatrixMarket, MATLAB, SciPy. Nothing is unpickled."""

from __future__ import annotations

import math
import re
import struct
import zlib
from collections.abc import Iterator
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
import scipy  # its parts load when they are used

from psgnn.errors import InputError
from psgnn.graph._bytes import decoded, decoding, read_bytes, refuse_unpacked, tidied, unpacked_limit
from psgnn.graph._edges import Edges, row_names
from psgnn.graph._records import Records

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


MATRIX_KEYS = ("net", "A", "adj", "adjacency", "network", "graph", "G", "W", "Problem")
MTX_KINDS = re.compile(rb"%%MatrixMarket matrix (\w+) ([\w-]+) ([\w-]+)\n", re.IGNORECASE)
MTX_SIZE = re.compile(rb"[0-9]{1,18}(?: [0-9]{1,18}){1,2}\n")
AFTER_COMMENTS = re.compile(rb"^[^%\n]", re.MULTILINE)


def read_npz(path: Path) -> Edges:
    """Read an edge index or a SciPy sparse matrix."""
    content = BytesIO(read_bytes(path))
    if not content.getvalue().startswith(b"PK"):
        raise InputError(f"{path} is not an NPZ archive; write it with numpy.savez or scipy.sparse.save_npz")
    with decoding(path, "NPZ"), np.load(content, allow_pickle=False) as arrays:
        refuse_unpacked(path, sum(member.file_size for member in arrays.zip.infolist()))
        if "edge_index" in arrays:
            num_nodes = int(arrays["num_nodes"]) if "num_nodes" in arrays else None
            return from_edge_index(arrays["edge_index"], num_nodes, str(path))
        if "format" not in arrays:
            found = ", ".join(arrays) or "nothing"
            raise InputError(f"{path} holds {found}; expected edge_index, or a SciPy sparse matrix")
        return from_matrix(scipy.sparse.load_npz(content), str(path))


def read_mtx(path: Path) -> Edges:
    """Read a MatrixMarket file."""
    # Not by scipy.io.mmread, which crashes the interpreter on some damaged files.
    text = tidied(decoded(path), " ")
    kinds = MTX_KINDS.match(text)
    layout, kind, symmetry = (word.decode().lower() for word in kinds.groups()) if kinds else ("", "", "")
    below = AFTER_COMMENTS.search(text, kinds.end()) if kinds else None
    sizes = MTX_SIZE.match(text, below.start()) if below else None
    size = [int(number) for number in sizes[0].split()] if sizes else []
    if sizes is None or len(size) != {"coordinate": 3, "array": 2}.get(layout):
        raise InputError(
            f"{path} is not a MatrixMarket file; expected %%MatrixMarket and the size of the matrix"
        )
    if size[0] != size[1]:
        raise InputError(f"{path} has shape {size[:2]}; an adjacency matrix is square")
    if layout == "array":
        return _read_array(path, text[sizes.end() :], size[0], symmetry)
    weight = {} if kind in ("pattern", "complex") else {"weight": 2}
    table = Records(path, text, " ", sizes.end()).table((0, 1), weight, integers=True)
    if len(table.first) != size[2]:
        raise InputError(f"{path} has {len(table.first)} entries where its header says {size[2]}; is it cut?")
    values = table.weights()
    ends = [column.cast(pl.Int64, strict=False) for column in (table.first, table.second)]
    for column in ends:
        table.refuse(~column.is_between(1, size[0]).fill_null(False), f"an index is not within 1..{size[0]}")
    rows, cols = (column.to_numpy() - 1 for column in ends)
    data = np.ones(rows.size) if values is None else values.to_numpy()
    matrix = scipy.sparse.coo_array((data, (rows, cols)), shape=(size[0], size[0]))
    return replace(from_matrix(matrix, str(path), first=1), directed=None if symmetry == "general" else False)


def _read_array(path: Path, text: bytes, num_nodes: int, symmetry: str) -> Edges:
    """The dense layout of MatrixMarket: column by column, the lower triangle if there is a symmetry."""
    with decoding(path, "MatrixMarket"):
        values = np.array(text.split(), dtype=np.float64)
    first = int(symmetry == "skew-symmetric")  # the diagonal that a triangle starts with
    half = num_nodes * (num_nodes + 1 - 2 * first) // 2
    needed = num_nodes**2 if symmetry == "general" else half
    if values.size != needed:
        raise InputError(f"{path} has {values.size} entries, its size needs {needed}; is it cut?")
    if symmetry == "general":
        cols, rows = np.divmod(np.arange(needed), num_nodes)
    else:
        cols, rows = np.triu_indices(num_nodes, k=first)
    matrix = scipy.sparse.coo_array((values, (rows, cols)), shape=(num_nodes, num_nodes))
    return replace(from_matrix(matrix, str(path), first=1), directed=None if symmetry == "general" else False)


def read_mat(path: Path) -> Edges:
    """Read the adjacency matrix among the variables of a MATLAB file."""
    try:
        variables = read_variables(read_bytes(path), unpacked_limit())
    except NewerVersion:
        raise InputError(
            f"{path} is MATLAB v7.3 (HDF5); save it with save(..., '-v7') or as an edge list"
        ) from None
    except MatError as error:
        raise InputError(f"{path} cannot be read as MATLAB v5-v7: {error}") from None
    if isinstance(variables.get("Problem"), dict):
        variables["Problem"] = variables["Problem"].get("A")  # the struct of the SuiteSparse collection
    keys = [key for key in MATRIX_KEYS if key in variables]
    keys = keys[:1] or [key for key, value in variables.items() if _is_square(value)]
    if len(keys) != 1:
        raise InputError(
            f"{path} holds {', '.join(variables) or 'no variables'}; expected one square sparse matrix, "
            f"or a variable named {', '.join(MATRIX_KEYS)}"
        )
    matrix, origin = variables[keys[0]], f"{path}, variable {keys[0]}"
    if matrix is None or isinstance(matrix, dict):
        raise InputError(f"{origin} is not a matrix of numbers; store the adjacency matrix under that name")
    return from_matrix(matrix, origin)


def _is_square(matrix: Any) -> bool:
    shape: tuple[int, ...] = getattr(matrix, "shape", ())
    return bool(scipy.sparse.issparse(matrix)) and shape[0] == shape[1]


def from_matrix(matrix: Any, origin: str, first: int = 0) -> Edges:
    """An edge for every entry of a sparse or dense square matrix that is not 0; every row is a node.

    Args:
        matrix: A SciPy sparse matrix, whose pointers and indices are checked, or an array.
        origin: What errors call it.
        first: The number of its first row.
    """
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InputError(f"{origin} has shape {list(matrix.shape)}; an adjacency matrix is square")
    if matrix.dtype.kind not in "biufc":
        raise InputError(f"{origin} holds {matrix.dtype}; an adjacency matrix holds numbers")
    entries = _entries(matrix, origin)
    refused = np.flatnonzero(~np.isfinite(entries.data))
    if refused.size:
        row, col = (int(index[refused[0]]) + first for index in entries.coords)
        raise InputError(f"{origin}: entry [{row}, {col}] is not a finite number; correct or remove it")
    stored = entries.data != 0
    rows, cols = (index[stored].astype(np.int64) for index in entries.coords)
    names = row_names(matrix.shape[0], origin, first, entries=rows.size)
    values = entries.data[stored]
    weight = values.real.astype(np.float64)
    return Edges(rows, cols, names, weighted=bool((values != 1).any()), weight=weight, matrix=True)


def _entries(matrix: Any, origin: str) -> Any:
    """The entries of a matrix by row and column; SciPy's compiled code never sees wrong pointers or indices."""
    wrong = f"{origin} is not a valid sparse matrix"
    if hasattr(matrix, "check_format"):
        try:
            starts = np.asarray(matrix.indptr)
            # SciPy does not look at the pointers of a matrix whose last one is 0.
            if starts[0] != 0 or (starts[1:] < starts[:-1]).any():
                raise ValueError("its pointers do not ascend from 0")
            matrix.check_format(full_check=True)
        except (ValueError, IndexError, TypeError) as error:
            raise InputError(f"{wrong} ({error}); write it again") from None
    try:
        entries = scipy.sparse.coo_array(matrix)
    except (ValueError, IndexError, TypeError) as error:
        raise InputError(f"{wrong} ({error}); write it again") from None
    for index, size in zip(entries.coords, entries.shape, strict=True):
        if index.size != entries.data.size or (index.size and (index.min() < 0 or index.max() >= size)):
            raise InputError(f"{wrong} (an index is not within 0..{size - 1}); write it again")
    return entries


def from_edge_index(edge_index: npt.NDArray[Any], num_nodes: int | None, origin: str) -> Edges:
    """The edges of PyG's ``edge_index [2, *]``; nodes are 0 to ``num_nodes - 1``."""
    if edge_index.ndim != 2 or edge_index.shape[0] != 2 or edge_index.dtype.kind not in "iu":
        raise InputError(
            f"{origin}: edge_index must hold integers in shape [2, E], "
            f"found {edge_index.dtype} in shape {list(edge_index.shape)}"
        )
    low, high = (int(edge_index.min()), int(edge_index.max())) if edge_index.size else (0, -1)
    num_nodes = high + 1 if num_nodes is None else num_nodes
    if low < 0 or high >= num_nodes:
        raise InputError(f"{origin}: edge_index names nodes {low}..{high}, but there are {num_nodes} nodes")
    names = row_names(num_nodes, origin, entries=edge_index.shape[1])
    rows, cols = edge_index.astype(np.int64)
    return Edges(rows, cols, names, matrix=True)
