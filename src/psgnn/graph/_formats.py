"""Whole graphs from files: every format becomes ``Edges`` over numbered nodes. Nothing is unpickled."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any
from xml.parsers import expat

import numpy as np
import numpy.typing as npt
import polars as pl
import scipy  # its parts load when they are used

from psgnn.errors import InputError
from psgnn.graph._graph import MAX_NODES, IntArray
from psgnn.graph._headers import Columns
from psgnn.graph._tables import Records, Table, decoded, decoding, read_bytes, read_table, tidied
from psgnn.kernels._text import factorize_keys
from psgnn.memory import need_room, physical_memory

MATRIX_KEYS = ("net", "A", "adj", "adjacency", "network", "graph", "G", "W", "Problem")
MTX_HEADER = re.compile(
    rb"%%MatrixMarket matrix (\w+) ([\w-]+) ([\w-]+)\n(?:(?:%.*)?\n)*(\d[\d ]*)\n", re.IGNORECASE
)
NAME_BYTES = 100  # of a node, its number as text in a list
INTEGER = r"^(?:0|[1-9][0-9]*)$"  # 007 is a name, and keeps its zeros


@dataclass(frozen=True)
class Edges:
    """Edge ``i`` joins the nodes ``rows[i]`` and ``cols[i]``, in any direction and any number of times."""

    rows: IntArray
    cols: IntArray
    names: list[str]
    weighted: bool = False
    ignored: tuple[str, ...] = ()
    attributes: dict[str, Any] = field(default_factory=dict)


def read_edges(path: Path, columns: Columns | None = None, header: bool | None = None) -> Edges:
    """Read a file in the format of its suffix; an unknown suffix is taken for a text edge list.

    ``columns`` of a text or Parquet edge list hold the nodes; ``header`` says whether a text one has a header.
    """
    suffix = Path(path.name.lower().removesuffix(".gz")).suffix
    readers: dict[str, Callable[[Path], Edges]] = {
        ".npz": _read_npz,
        ".mat": _read_mat,
        ".mtx": _read_mtx,
        ".graphml": _read_graphml,
    }
    if suffix not in readers:
        return _read_edge_table(path, columns, header)
    if columns is not None:
        raise InputError(f"{path} is no table of edges; columns can be named in text and Parquet alone")
    if header is not None:
        raise InputError(f"{path} is no table of edges; --header and --no-header go with text files")
    return readers[suffix](path)


# Numbering


def as_integers(*columns: pl.Series) -> list[pl.Series] | None:
    """The columns as integers, or None if some field is no integer or beyond 64 bits."""
    if any(column.dtype == pl.String and not column.str.contains(INTEGER).all() for column in columns):
        return None
    integers = [column.cast(pl.Int64, strict=False) for column in columns]
    return None if any(column.null_count() for column in integers) else integers


def number(*columns: pl.Series) -> tuple[list[str], list[IntArray]]:
    """Number the distinct values of all columns in ascending order: their names, and the codes by column."""
    values = pl.concat(columns)
    ends = np.cumsum([len(column) for column in columns])[:-1]
    top = values.max() if values.dtype == pl.Int64 else None
    if isinstance(top, int) and top < 4 * len(values) + 1_000_000:
        # While a table over all ids is small, it beats hashing by far.
        ids = values.to_numpy()
        present = np.zeros(top + 1, np.bool_)
        present[ids] = True
        names = pl.Series(np.flatnonzero(present))
        codes = (np.cumsum(present, dtype=np.int32) - 1)[ids]
    else:
        codes, names = _factorize(values)
        order = names.arg_sort().to_numpy()
        names = names.gather(order)
        rank = np.empty(len(names), np.int32)
        rank[order] = np.arange(len(names), dtype=np.int32)
        codes = rank[codes]
    return names.cast(pl.String).to_list(), np.split(codes.astype(np.int64), ends)


def _factorize(values: pl.Series) -> tuple[npt.NDArray[np.int32], pl.Series]:
    """Codes ``[M]`` of the values, and the distinct values, in order of appearance."""
    if values.dtype == pl.Int64:
        codes, firsts = factorize_keys(values.to_numpy().view(np.uint64))
        return codes, values.gather(firsts)
    for seed in itertools.count():
        codes, firsts = factorize_keys(values.hash(seed).to_numpy())
        distinct = values.gather(firsts)
        if (distinct.gather(codes) == values).all():  # no two of them have the same hash
            break
    return codes, distinct


# Edge lists, text or Parquet


def _read_edge_table(path: Path, columns: Columns | None, header: bool | None) -> Edges:
    table = read_table(path, edges=True, columns=columns, header=header)
    weights = _weights(table)
    ends = [table.first, table.second]
    ids = as_integers(*ends)
    if ids is not None:
        for column in ids:
            table.refuse(column < 0, "a node id is negative; use integers from 0 up, or names")
    else:
        ids = [column.cast(pl.String) for column in ends]
        if all(column.cast(pl.Float64, strict=False).null_count() == 0 for column in ids):
            for column in ids:
                refused = ~column.str.contains("^[0-9]+$")
                table.refuse(refused, "a node id is no integer from 0 up; use such integers, or names")
    names, (rows, cols) = number(*ids)
    return Edges(rows, cols, names, weighted=weights is not None, ignored=table.ignored)


def _weights(table: Table) -> pl.Series | None:
    if table.weight is None:
        return None
    weights = table.weight.cast(pl.Float64, strict=False)
    table.refuse(
        ~weights.is_finite().fill_null(False), "the weight is not a finite number; correct or remove it"
    )
    return weights


# Matrices


def _read_npz(path: Path) -> Edges:
    content = BytesIO(read_bytes(path))
    if not content.getvalue().startswith(b"PK"):
        raise InputError(f"{path} is no NPZ archive; write it with numpy.savez or scipy.sparse.save_npz")
    with decoding(path, "NPZ"), np.load(content, allow_pickle=False) as arrays:
        if "edge_index" in arrays:
            num_nodes = int(arrays["num_nodes"]) if "num_nodes" in arrays else None
            return from_edge_index(arrays["edge_index"], num_nodes, str(path))
        if "format" not in arrays:
            found = ", ".join(arrays) or "nothing"
            raise InputError(f"{path} holds {found}; expected edge_index, or a SciPy sparse matrix")
        return from_matrix(scipy.sparse.load_npz(content), str(path))


def _read_mtx(path: Path) -> Edges:
    # Not by scipy.io.mmread, which crashes the interpreter on some damaged files.
    text = tidied(decoded(path), " ")
    head = MTX_HEADER.match(text)
    layout, kind, symmetry = (word.decode().lower() for word in head.groups()[:3]) if head else ("", "", "")
    size = [int(number) for number in head[4].split()] if head else []
    if head is None or len(size) != {"coordinate": 3, "array": 2}.get(layout):
        raise InputError(
            f"{path} is no MatrixMarket file; expected %%MatrixMarket and the size of the matrix"
        )
    if size[0] != size[1]:
        raise InputError(f"{path} has shape {size[:2]}; an adjacency matrix is square")
    if layout == "array":
        return _read_array(path, text[head.end() :], size[0], symmetry)
    weight = None if kind in ("pattern", "complex") else 2
    table = Records(path, text, " ", head.end()).table((0, 1), weight, integers=True)
    if len(table.first) != size[2]:
        raise InputError(f"{path} has {len(table.first)} entries where its header says {size[2]}; is it cut?")
    values = _weights(table)
    ends = [column.cast(pl.Int64, strict=False) for column in (table.first, table.second)]
    for column in ends:
        table.refuse(~column.is_between(1, size[0]).fill_null(False), f"an index is not within 1..{size[0]}")
    rows, cols = (column.to_numpy() - 1 for column in ends)
    data = np.ones(rows.size) if values is None else values.to_numpy()
    return from_matrix(scipy.sparse.coo_array((data, (rows, cols)), shape=(size[0], size[0])), str(path))


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
    return from_matrix(
        scipy.sparse.coo_array((values, (rows, cols)), shape=(num_nodes, num_nodes)), str(path)
    )


def _read_mat(path: Path) -> Edges:
    content = BytesIO(read_bytes(path))
    with decoding(path, "MATLAB v5-v7"):
        try:
            variables = scipy.io.loadmat(content)  # type: ignore[arg-type]
        except NotImplementedError:
            raise InputError(
                f"{path} is MATLAB v7.3 (HDF5); save it with save(..., '-v7') or as an edge list"
            ) from None
    variables = {key: value for key, value in variables.items() if not key.startswith("__")}
    problem = variables.get("Problem")
    if isinstance(problem, np.ndarray) and "A" in (problem.dtype.names or ()):
        variables["Problem"] = problem["A"].flat[0]  # the struct of the SuiteSparse collection
    keys = [key for key in MATRIX_KEYS if key in variables]
    keys = keys[:1] or [key for key, value in variables.items() if _is_square(value)]
    if len(keys) != 1:
        raise InputError(
            f"{path} holds {', '.join(variables) or 'no variables'}; expected one square sparse matrix, "
            f"or a variable named {', '.join(MATRIX_KEYS)}"
        )
    return from_matrix(variables[keys[0]], f"{path}, variable {keys[0]}")


def _is_square(matrix: Any) -> bool:
    shape: tuple[int, ...] = getattr(matrix, "shape", ())
    return bool(scipy.sparse.issparse(matrix)) and shape[0] == shape[1]


def from_matrix(matrix: Any, origin: str) -> Edges:
    """An edge for every entry of a sparse or dense square matrix that is not 0; every row is a node."""
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InputError(f"{origin} has shape {list(matrix.shape)}; an adjacency matrix is square")
    if matrix.dtype.kind not in "biufc":
        raise InputError(f"{origin} holds {matrix.dtype}; an adjacency matrix holds numbers")
    entries = scipy.sparse.coo_array(matrix)
    refused = np.flatnonzero(~np.isfinite(entries.data))
    if refused.size:
        row, col = (int(index[refused[0]]) for index in entries.coords)
        raise InputError(f"{origin}: entry [{row}, {col}] is not a finite number; correct or remove it")
    stored = entries.data != 0
    rows, cols = (index[stored].astype(np.int64) for index in entries.coords)
    names = _row_names(matrix.shape[0], origin)
    return Edges(rows, cols, names, weighted=bool((entries.data[stored] != 1).any()))


def from_edge_index(edge_index: npt.NDArray[Any], num_nodes: int | None, origin: str) -> Edges:
    """The edges of PyG's ``edge_index [2, *]``; nodes are 0 to ``num_nodes - 1``."""
    if edge_index.ndim != 2 or edge_index.shape[0] != 2 or edge_index.dtype.kind not in "iu":
        raise InputError(
            f"{origin}: edge_index must hold integers in shape [2, E], "
            f"found {edge_index.dtype} in shape {list(edge_index.shape)}"
        )
    rows, cols = edge_index.astype(np.int64)
    low, high = int(edge_index.min(initial=0)), int(edge_index.max(initial=-1))
    num_nodes = high + 1 if num_nodes is None else num_nodes
    if low < 0 or high >= num_nodes:
        raise InputError(f"{origin}: edge_index names nodes {low}..{high}, but there are {num_nodes} nodes")
    return Edges(rows, cols, _row_names(num_nodes, origin))


def _row_names(num_nodes: int, origin: str) -> list[str]:
    if num_nodes > MAX_NODES:
        raise InputError(f"{origin} has {num_nodes} nodes; at most {MAX_NODES} are supported")
    needed = NAME_BYTES * num_nodes
    if needed > physical_memory() // 2:
        raise InputError(
            f"{origin} has {num_nodes} nodes, for which this machine has too little memory; where few of them have "
            "links, number those from 0 on, or write an edge list (CSV, Parquet)"
        )
    need_room(needed)
    return [str(i) for i in range(num_nodes)]


# GraphML


class _GraphmlParser:
    """Collects the ids of nodes and edges; refuses a DTD, so that no entity can expand."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.nodes: list[str] = []
        self.edges: list[tuple[str, str]] = []
        self.weight_keys: set[str] = set()
        self.weighted = False
        self.weight: list[str] | None = None  # the text of the one that is being read
        self.expat = expat.ParserCreate(namespace_separator=" ")
        self.expat.StartDoctypeDeclHandler = self.doctype
        self.expat.StartElementHandler = self.start
        self.expat.CharacterDataHandler = self.characters
        self.expat.EndElementHandler = self.end

    def error(self, reason: str) -> InputError:
        return InputError(f"{self.path}, line {self.expat.CurrentLineNumber}: {reason}")

    def doctype(self, *_: object) -> None:
        raise self.error("GraphML with a DOCTYPE is refused, entities could expand without end; remove it")

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        tag = tag.rpartition(" ")[2]  # without its namespace
        try:
            if tag == "node":
                self.nodes.append(attributes["id"])
            elif tag == "edge":
                self.edges.append((attributes["source"], attributes["target"]))
            elif tag == "key" and attributes.get("attr.name") == "weight":
                self.weight_keys.add(attributes["id"])
            elif tag == "data" and attributes["key"] in self.weight_keys:
                self.weight, self.weighted = [], True
            elif tag == "hyperedge":
                raise self.error("hyperedges are not supported; write edges between two nodes")
        except KeyError as missing:
            raise self.error(f"<{tag}> has no {missing}; add it") from None

    def characters(self, text: str) -> None:
        if self.weight is not None:
            self.weight.append(text)

    def end(self, _: str) -> None:
        if self.weight is None:
            return
        text, self.weight = "".join(self.weight), None
        try:
            finite = math.isfinite(float(text))
        except ValueError:
            finite = False
        if not finite:
            raise self.error(f"the weight '{text[:40]}' is not a finite number; correct or remove it")


def _read_graphml(path: Path) -> Edges:
    parser = _GraphmlParser(path)
    with decoding(path, "GraphML"):
        parser.expat.Parse(read_bytes(path), True)
    if not parser.nodes:
        raise InputError(f"{path} is XML without a <node>; expected GraphML")
    ends = pl.DataFrame(parser.edges, schema={"source": pl.String, "target": pl.String}, orient="row")
    columns = [pl.Series(parser.nodes, dtype=pl.String), *ends]
    names, (declared, rows, cols) = number(*(as_integers(*columns) or columns))
    undeclared = np.setdiff1d(np.concatenate([rows, cols]), declared)
    if undeclared.size:
        raise InputError(f"{path}: an edge joins node '{names[undeclared[0]]}', which no <node> declares")
    return Edges(rows, cols, names, weighted=parser.weighted)
