"""Files and objects that crashed the interpreter, hung, took all memory, or ended in a traceback."""

from __future__ import annotations

import bz2
import gzip
import lzma
import struct
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import scipy.io
import scipy.sparse
import torch
from torch_geometric.data import Data

import psgnn
from psgnn.errors import InputError
from psgnn.graph import read_graph, read_labels, read_pairs
from psgnn.tasks import PairClassification

MTX = "%%MatrixMarket matrix coordinate pattern general\n"


def refused(source: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read_graph(source)
    assert "\n" not in str(caught.value)


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


# Sparse matrices


def damaged(kind: str, indptr: list[int], indices: list[int]) -> Any:
    matrix = getattr(scipy.sparse, f"{kind}_array")((3, 3))
    matrix.data, matrix.indices = np.ones(len(indices)), np.array(indices, np.int32)
    matrix.indptr = np.array(indptr, np.int32)
    return matrix


@pytest.mark.parametrize("kind", ["csr", "csc"])
@pytest.mark.parametrize(
    ("indptr", "indices"),
    [
        ([0, 5000, 3, 4], [0, 1, 2, 0]),
        ([0, -1, 3, 4], [0, 1, 2, 0]),
        ([0, 1, 2, 4], [0, 1, 2, 5000]),
        ([0, 1, 2, 4], [0, 1, 2, -1]),
        ([1, 1, 2, 4], [0, 1, 2, 0]),
        ([0, 1, 2, 900], [0, 1, 2, 0]),
        ([0, 1], [0]),
        ([0, 2**30, 2**30, 0], [0, 1, 2, 0]),  # an empty matrix, by its last pointer
    ],
)
def test_wrong_pointers_are_refused(tmp_path: Path, kind: str, indptr: list[int], indices: list[int]) -> None:
    refused(damaged(kind, indptr, indices), "not a valid sparse matrix")
    arrays = {"indices": np.array(indices), "indptr": np.array(indptr), "data": np.ones(len(indices))}
    np.savez(tmp_path / "g.npz", format=kind.encode(), shape=(3, 3), **arrays)
    refused(tmp_path / "g.npz", r"g\.npz")


def test_coordinates_outside_the_matrix_are_refused() -> None:
    matrix = scipy.sparse.coo_array((3, 3))
    matrix.data, matrix.coords = np.ones(2), (np.array([0, 9]), np.array([1, -2]))
    refused(matrix, "not a valid sparse matrix")


# MATLAB


def mat_file(path: Path, variables: dict[str, Any], **options: Any) -> bytes:
    scipy.io.savemat(path, variables, **options)
    return path.read_bytes()


def test_any_wrong_type_tag_in_a_mat_file_is_refused_or_ignored(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    path = tmp_path / "g.mat"
    for matrix in (scipy.sparse.csc_array(np.eye(4)[::-1]), np.eye(4)[::-1]):
        whole = mat_file(path, {"net": matrix})
        for at in range(128, len(whole) - 4, 4):
            for tag in (0, 8, 19, 200, 30000, 2**31, int(rng.integers(2**32))):
                path.write_bytes(whole[:at] + struct.pack("<I", tag) + whole[at + 4 :])
                with suppress(InputError):
                    read_graph(path)


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize(
    "dtype", [np.float64, np.float32, np.int8, np.uint16, np.int64, np.bool_, np.complex128]
)
def test_matrices_of_matlab_agree_with_scipy(tmp_path: Path, dtype: Any, compressed: bool) -> None:
    rng = np.random.default_rng(1)
    dense = (rng.integers(0, 3, (7, 7)) * (rng.random((7, 7)) < 0.4)).astype(dtype)
    path = tmp_path / "g.mat"
    variables = {"dense": {"A": dense}, "text": "abc", "cells": np.array([1, "x"], dtype=object)}
    for key, value in {"adj": dense, "net": scipy.sparse.csc_array(dense), "Problem": {"A": dense}}.items():
        mat_file(path, {**variables, key: value}, do_compression=compressed)
        assert np.array_equal(read_graph(path).edges, read_graph(scipy.sparse.csr_array(dense)).edges)


def test_a_mat_file_of_the_other_byte_order(tmp_path: Path) -> None:
    def element(kind: int, data: bytes) -> bytes:
        return struct.pack(">II", kind, len(data)) + data + bytes(-len(data) % 8)

    body = element(6, struct.pack(">II", 6, 0)) + element(5, struct.pack(">ii", 2, 2)) + element(1, b"A")
    body += element(9, struct.pack(">4d", 0, 1, 0, 0))
    header = b"MATLAB 5.0 MAT-file".ljust(124) + b"\x01\x00MI"
    assert read_graph(write(tmp_path / "g.mat", header + element(14, body))).num_edges == 1


def test_odd_mat_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "g.mat"
    mat_file(path, {"Problem": np.zeros(0, dtype=[("A", object)])})
    refused(path, "Problem is not a matrix")
    mat_file(path, {"A": "text"})
    refused(path, "not a matrix of numbers")
    whole = mat_file(path, {"net": scipy.sparse.csc_array(np.eye(3)[::-1])})
    rows = struct.pack("<3i", 2, 1, 0)
    path.write_bytes(whole.replace(rows, struct.pack("<3i", 2, 70000, 0)))
    refused(path, "outside its 3 rows")
    refused(write(path, bytes(40) + whole[40:126] + b"XX"), "header")


# Packed files


def test_a_packed_file_unfolds_up_to_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = b"a b\n" + b"#\n" * 2**20
    packed = {
        "g.txt.gz": gzip.compress(text),
        "g.txt.bz2": bz2.compress(text),
        "g.txt.xz": lzma.compress(text),
    }
    for name, content in packed.items():
        assert read_graph(write(tmp_path / name, content)).num_edges == 1
    np.savez_compressed(tmp_path / "g.npz", edge_index=np.array([[0], [1]]), other=np.zeros(2**20))
    mat_file(tmp_path / "g.mat", {"A": np.eye(2)[::-1], "other": np.zeros(2**20)}, do_compression=True)
    monkeypatch.setenv("PSGNN_MAX_UNPACKED", "1M")
    for path in sorted(tmp_path.iterdir()):
        refused(path, "unfolds to more than")
    monkeypatch.setenv("PSGNN_MAX_UNPACKED", "3M")
    assert read_graph(tmp_path / "g.txt.gz").num_edges == 1
    monkeypatch.setenv("PSGNN_MAX_UNPACKED", "many")
    refused(tmp_path / "g.txt.gz", "PSGNN_MAX_UNPACKED=many is not a size")


def seconds_of(path: Path) -> float:
    start = time.perf_counter()
    assert read_graph(path).num_edges >= 1
    return time.perf_counter() - start


def test_many_members_of_a_gzip_file_take_linear_time(tmp_path: Path) -> None:
    member = gzip.compress(b"#\n")
    few = seconds_of(write(tmp_path / "few.txt.gz", gzip.compress(b"a b\n") + member * 5_000))
    many = seconds_of(write(tmp_path / "many.txt.gz", gzip.compress(b"a b\n") + member * 40_000))
    assert many < 8 * 4 * few + 1


@pytest.mark.parametrize("separator", [" ", ","])
def test_wide_blanks_take_linear_time(tmp_path: Path, separator: str) -> None:
    def lines(width: int) -> str:
        blanks = " " * width
        return "".join(f"{blanks}{i}{separator}{i + 1}{blanks}\n{blanks}\n" for i in range(1000))

    narrow = seconds_of(write(tmp_path / "narrow.txt", lines(200)))
    wide = seconds_of(write(tmp_path / "wide.txt", lines(3200)))
    assert wide < 16 * 4 * narrow + 1


@pytest.mark.skipif(sys.platform != "linux", reason="needs the peak of a process")
@pytest.mark.parametrize(
    "content", ["'#' + chr(10)", "'a,b' + chr(10) + '%' + chr(10)", '\'"a""b",c\' + chr(10)']
)
def test_comments_and_quotes_take_little_memory(tmp_path: Path, content: str) -> None:
    script = f"""
import psgnn
from psgnn.memory import peak_bytes
psgnn.read_graph("small.txt")
before = peak_bytes()
open("g.txt", "w").write("a,b" + chr(10) + ({content}) * 1_500_000)
psgnn.read_graph("g.txt")
print((peak_bytes() - before) // 2**20)
"""
    write(tmp_path / "small.txt", "a,b\nb,c\n")
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert int(done.stdout) < 700, done.stderr


# Sizes and types


@pytest.mark.parametrize("size", ["9" * 30, "9" * 5000, "99999999999999999"])
def test_matrix_market_sizes_are_bounded(tmp_path: Path, size: str) -> None:
    refused(write(tmp_path / "g.mtx", f"{MTX}{size} {size} 1\n1 2\n"), r"g\.mtx")
    array = MTX.replace("coordinate", "array")
    refused(write(tmp_path / "g.mtx", f"{array}{size} {size}\n1\n"), r"g\.mtx")
    refused(write(tmp_path / "g.mtx", f"{MTX}3 3 {size}\n1 2\n"), r"g\.mtx")
    refused(write(tmp_path / "g.mtx", f"{MTX}3 3 1\n1 {size}\n"), r"g\.mtx")


WEIGHTS = {
    "list": pl.Series([[1.0], [2.0]]),
    "struct": pl.Series([{"a": 1}, {"a": 2}]),
    "binary": pl.Series([b"1", b"2"]),
    "array": pl.Series([[1.0, 2.0], [1.0, 2.0]], dtype=pl.Array(pl.Float64, 2)),
    "categorical": pl.Series(["x", "y"], dtype=pl.Categorical),
    "date": pl.Series([1, 2]).cast(pl.Date),
}


@pytest.mark.parametrize("kind", WEIGHTS)
def test_weights_of_other_types_are_refused(tmp_path: Path, kind: str) -> None:
    frame = pl.DataFrame({"source": ["a", "b"], "target": ["b", "c"], "weight": WEIGHTS[kind]})
    frame.write_parquet(tmp_path / "g.parquet")
    refused(tmp_path / "g.parquet", "weight")


def test_ids_of_128_bits_are_names(tmp_path: Path) -> None:
    ends = {"source": [2**70, 5], "target": [2**70 + 1, 6]}
    pl.DataFrame(ends, schema=dict.fromkeys(ends, pl.Int128)).write_parquet(tmp_path / "g.parquet")
    assert set(read_graph(tmp_path / "g.parquet").names) == {str(2**70), str(2**70 + 1), "5", "6"}


def test_a_damaged_parquet_file_is_one_line_on_stderr(tmp_path: Path) -> None:
    pl.DataFrame({"a": range(500), "b": range(1, 501)}).write_parquet(tmp_path / "g.parquet")
    whole = (tmp_path / "g.parquet").read_bytes()
    script = """
import os, sys, psgnn
whole = open("g.parquet", "rb").read()
for at in range(2245, len(whole) - 8, 100):
    open("h.parquet", "wb").write(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
    try: psgnn.read_graph("h.parquet")
    except psgnn.PsgnnError: pass
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(whole) > 1000


@pytest.mark.parametrize("comment", ["#" + "x" * 200_000, "# " + "x," * 100_000, "#" * 200_000])
def test_very_long_comments(tmp_path: Path, comment: str) -> None:
    path = tmp_path / "g.csv"
    assert read_graph(write(path, f"{comment}\na,b\nb,c\n")).num_nodes == 3
    assert read_graph(write(path, f"a,b\nb,c\n{comment}\nc,d\n")).num_nodes == 4


def test_very_long_quoted_fields(tmp_path: Path) -> None:
    long = "x" * 200_000
    path = tmp_path / "g.csv"
    for text in (f'a,b\n"{long}\n#",c\n', f'"{long}",b\n#\nc,d\n', f'a,"{long}\n', f'"{long}\n\n",b\nc\n'):
        with suppress(InputError):
            read_graph(write(path, text))
    assert read_graph(write(path, f'a,b,"{long}"\nb,c,"{long}"\n')).num_nodes == 3


# In memory


@pytest.mark.parametrize("dtype", [torch.uint8, torch.uint16, torch.uint32, torch.uint64, torch.int16])
def test_edges_of_any_integers_are_read(dtype: torch.dtype) -> None:
    data = Data(edge_index=torch.tensor([[0, 1], [1, 2]]).to(dtype))
    for graph in (read_graph(data), psgnn.Graph.from_pyg(data)):
        assert (graph.num_nodes, graph.num_edges) == (3, 2)


def test_odd_attributes_are_refused(tmp_path: Path) -> None:
    edges = torch.tensor([[0, 1, 2], [1, 2, 3]])
    for read in (read_graph, psgnn.Graph.from_pyg):
        for message, parts in [
            ("integers", {"edge_index": edges.to(torch.complex64)}),
            ("node_names is a dict", {"node_names": dict.fromkeys("abcd")}),
            ("node_names is a int", {"node_names": 4}),
            ("not an array", {"y": [[0], [1, 2]]}),
            ("num_nodes", {"num_nodes": 4.5}),
        ]:
            with pytest.raises(InputError, match=message):
                read(Data(**{"edge_index": edges, **parts}))
    for weight in (["a", "b", "c"], np.array([1, None, 2], object)):
        refused(Data(edge_index=edges, edge_weight=weight), "edge_weight")
    np.savez(tmp_path / "g.npz", edge_index=edges.numpy().astype(complex))
    refused(tmp_path / "g.npz", "integers")
    np.savez(tmp_path / "g.npz", edge_index=np.array([[0], [2**63]], np.uint64))
    refused(tmp_path / "g.npz", "at most")


def test_classes_are_one_per_node() -> None:
    rng = np.random.default_rng(0)
    adjacency = psgnn.Graph.from_edges(rng.integers(0, 12, (2, 40)), 12).adjacency
    labels = [0, 1] * 6
    listed = PairClassification(psgnn.Graph(adjacency, y=labels), seed=0)  # type: ignore[arg-type]
    assert listed.graphs[0].num_nodes == 12
    with pytest.raises(InputError, match=r"shape \[2, 6\]"):
        PairClassification(psgnn.Graph(adjacency, y=np.array(labels).reshape(2, 6)), seed=0)


# Pairs and labels


@pytest.mark.parametrize(
    "content", [b'a,"' + b"x" * 200_000, b"\xff\xfe\x00", b"#\n", gzip.compress(b"a,b\n", mtime=0)[:-4]]
)
def test_odd_pairs_and_labels_are_refused(tmp_path: Path, content: bytes) -> None:
    path = write(tmp_path / "p.csv.gz" if content[:1] == b"\x1f" else tmp_path / "p.csv", content)
    for read in (read_pairs, read_labels):
        with pytest.raises(InputError, match=r"p\.csv"):
            read(path, ["a", "b"])
