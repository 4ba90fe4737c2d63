"""Adjacency matrices: NPZ, MatrixMarket, MATLAB, SciPy. Nothing is unpickled."""

from __future__ import annotations

import re
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import scipy  # its parts load when they are used

from psgnn.errors import InputError
from psgnn.graph._bytes import decoded, decoding, read_bytes, refuse_unpacked, tidied, unpacked_limit
from psgnn.graph._edges import Edges, row_names
from psgnn.graph._matfile import MatError, NewerVersion, read_variables
from psgnn.graph._records import Records

MATRIX_KEYS = ("net", "A", "adj", "adjacency", "network", "graph", "G", "W", "Problem")
MTX_KINDS = re.compile(rb"%%MatrixMarket matrix (\w+) ([\w-]+) ([\w-]+)\n", re.IGNORECASE)
MTX_SIZE = re.compile(rb"[0-9]{1,18}(?: [0-9]{1,18}){1,2}\n")
AFTER_COMMENTS = re.compile(rb"^[^%\n]", re.MULTILINE)


def read_npz(path: Path) -> Edges:
    """Read an edge index or a SciPy sparse matrix."""
    content = BytesIO(read_bytes(path))
    if not content.getvalue().startswith(b"PK"):
        raise InputError(f"{path} is no NPZ archive; write it with numpy.savez or scipy.sparse.save_npz")
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
            f"{path} is no MatrixMarket file; expected %%MatrixMarket and the size of the matrix"
        )
    if size[0] != size[1]:
        raise InputError(f"{path} has shape {size[:2]}; an adjacency matrix is square")
    if layout == "array":
        return _read_array(path, text[sizes.end() :], size[0], symmetry)
    weight = None if kind in ("pattern", "complex") else 2
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
    return from_matrix(matrix, str(path), first=1)


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
    return from_matrix(matrix, str(path), first=1)


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
        raise InputError(f"{origin} is no matrix of numbers; store the adjacency matrix under that name")
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
    names = row_names(matrix.shape[0], origin, first)
    return Edges(rows, cols, names, weighted=bool((entries.data[stored] != 1).any()))


def _entries(matrix: Any, origin: str) -> Any:
    """The entries of a matrix by row and column; SciPy's compiled code never sees wrong pointers or indices."""
    wrong = f"{origin} is no valid sparse matrix"
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
    names = row_names(num_nodes, origin)
    rows, cols = edge_index.astype(np.int64)
    return Edges(rows, cols, names)
