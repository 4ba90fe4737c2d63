"""The readers of files, as targets of the fuzzer. Further ones, such as run folders, are added in the same way."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import scipy.io
import scipy.sparse

from psgnn.datasets._download import edge_digest
from psgnn.graph import read_graph, read_labels, read_names, read_pairs, read_sets
from psgnn_lab.fuzz import Target, add, file_target

EDGES = [(0, 1), (1, 0), (1, 2), (2, 4), (2, 4), (4, 4), (3, 0)]
NAMES = ["ann", "bob", "cy", "#tag", "eve, the 5th"]


def _matrix() -> Any:
    rows, cols = np.array(EDGES).T
    return scipy.sparse.coo_array((np.ones(len(EDGES)), (rows, cols)), shape=(5, 5))


def _text(separator: str, header: str = "", names: Sequence[str] | None = None) -> Callable[[], bytes]:
    def quoted(node: int) -> str:
        name = str(node) if names is None else names[node]
        return f'"{name}"' if set(name) & set(" ,#") else name

    lines = [header] if header else []
    lines += [separator.join((quoted(u), quoted(v), f"{0.5 * u + 0.5}")) for u, v in EDGES]
    return lambda: ("# a comment\n" + "\n".join(lines) + "\n").encode()


def _written(save: Callable[[Any], object]) -> bytes:
    buffer = io.BytesIO()
    save(buffer)
    return buffer.getvalue()


def _mat(variables: dict[str, Any]) -> Callable[[], bytes]:
    return lambda: _written(lambda buffer: scipy.io.savemat(buffer, variables))


def _graphml() -> bytes:
    nodes = "".join(f'<node id="{name}"/>' for name in "abcde")
    edges = "".join(
        f'<edge source="{"abcde"[u]}" target="{"abcde"[v]}"><data key="k">1.5</data></edge>' for u, v in EDGES
    )
    key = '<key id="k" for="edge" attr.name="weight" attr.type="double"/>'
    return f"<?xml version='1.0'?>\n<graphml>{key}\n<graph>{nodes}\n{edges}</graph></graphml>".encode()


def _gml() -> bytes:
    nodes = "\n".join(f'  node [ id {i} label "{name}" ]' for i, name in enumerate(NAMES))
    edges = "\n".join(f"  edge [ source {u} target {v} value {u + 1} ]" for u, v in EDGES)
    return f"graph [\n  directed 0\n{nodes}\n{edges}\n]\n".encode()


def _nodelink() -> bytes:
    document = {
        "nodes": [{"id": name} for name in NAMES],
        "links": [{"source": NAMES[u], "target": NAMES[v], "weight": 2} for u, v in EDGES],
    }
    return json.dumps(document).encode()


def _npz(name: str, arrays: Callable[[], dict[str, Any]]) -> None:
    """An archive with right checksums around wrong members."""

    def parts() -> list[bytes]:
        return [_written(lambda buffer, array=array: np.save(buffer, array)) for array in arrays().values()]  # type: ignore[misc]

    def write(folder: Path, members: Sequence[bytes]) -> None:
        with zipfile.ZipFile(folder / "g.npz", "w", zipfile.ZIP_DEFLATED) as archive:
            for key, member in zip(arrays(), members, strict=True):
                archive.writestr(f"{key}.npy", member)

    add(Target(name, parts, write, lambda folder: read_graph(folder / "g.npz"), share=1.5))


def _compressed(kind: str) -> dict[str, Any]:
    matrix = _matrix().asformat(kind)
    keys = {"coo": ("row", "col"), "dia": ("offsets",)}.get(kind, ("indices", "indptr"))
    arrays = {key: getattr(matrix, key) for key in keys}
    return {"format": np.array(kind.encode()), "shape": np.array(matrix.shape), "data": matrix.data, **arrays}


def _packed(folder: Path, parts: Sequence[bytes]) -> None:
    (folder / "g.csv.gz").write_bytes(gzip.compress(parts[0], 1))


def _parquet(weight: bool) -> Callable[[], bytes]:
    columns: dict[str, Any] = {"source": [NAMES[u] for u, _ in EDGES], "target": [NAMES[v] for _, v in EDGES]}
    columns |= {"weight": [0.5 * u for u, _ in EDGES]} if weight else {}
    frame = pl.DataFrame(columns) if weight else pl.DataFrame(EDGES, schema=["a", "b"], orient="row")
    return lambda: _written(frame.write_parquet)


for name, file, content in (
    ("CSV of names", "g.csv", _text(",", "source,target,weight", NAMES)),
    ("CSV with semicolons", "g.csv", _text(";", "from;to;weight")),
    ("TSV", "g.tsv", _text("\t", "edge_id\tname_a\tname_b")),
    ("text", "g.txt", _text(" ")),
    ("text in UTF-16", "g.txt", lambda: _text(",")().decode().encode("utf-16")),
    (
        "MatrixMarket",
        "g.mtx",
        lambda: _written(lambda out: scipy.io.mmwrite(out, _matrix(), symmetry="general")),
    ),
    (
        "MatrixMarket, dense",
        "g.mtx",
        lambda: _written(lambda out: scipy.io.mmwrite(out, _matrix().toarray(), symmetry="general")),
    ),
    ("MATLAB, sparse", "g.mat", _mat({"net": _matrix().tocsc()})),
    ("MATLAB, dense", "g.mat", _mat({"A": _matrix().toarray(), "text": "abc"})),
    ("MATLAB, struct", "g.mat", _mat({"Problem": {"A": _matrix().tocsc(), "title": "x"}})),
    ("GraphML", "g.graphml", _graphml),
    ("GML", "g.gml", _gml),
    ("node-link JSON", "g.json", _nodelink),
    ("gzip", "g.txt.gz", lambda: gzip.compress(_text(" ")())),
):
    file_target(name, file, content, read_graph)

add(
    Target(
        "CSV in gzip",
        lambda: [_text(",", "u,v,w", NAMES)()],
        _packed,
        lambda folder: read_graph(folder / "g.csv.gz"),
    )
)
for kind in ("csr", "csc", "coo", "bsr", "dia"):
    _npz(f"NPZ, {kind}", lambda kind=kind: _compressed(kind))  # type: ignore[misc]
_npz("NPZ, edge_index", lambda: {"edge_index": np.array(EDGES).T, "num_nodes": np.array(6)})
# Each of these starts a process.
file_target("Parquet of names", "g.parquet", _parquet(weight=True), read_graph, share=0.005)
file_target("Parquet of integers", "g.parquet", _parquet(weight=False), read_graph, share=0.005)

PAIRS = b'source,target\nann,bob\n"#tag",cy\n# a comment\n"eve, the 5th",ann\n'
file_target("pairs", "p.csv", lambda: PAIRS, lambda path: read_pairs(path, NAMES))
file_target(
    "labels", "y.csv", lambda: "".join(f'"{name}",{i % 2}\n' for i, name in enumerate(NAMES)).encode(),
    lambda path: read_labels(path, NAMES),
)  # fmt: skip
file_target(
    "anchors",
    "a.txt",
    lambda: "\n".join(["anchor", *NAMES[:3]]).encode(),
    lambda path: read_names(path, NAMES),
)
file_target(
    "sets of nodes",
    "s.csv",
    lambda: "".join(f'"{name}",{part}\n' for name in NAMES for part in "ab").encode(),
    lambda path: read_sets(path, NAMES),
)
file_target(
    "lengths of edges",
    "g.csv",
    _text(",", "source,target,km", NAMES[1:] + NAMES[:1]),
    lambda path: read_graph(path, weight="km", weight_is="length"),
)
file_target("names of nodes", "n.txt", lambda: "\n".join(NAMES).encode(), read_names)
file_target(
    "edges of a dataset",
    "e.txt",
    lambda: b"# c\n0 1\n1,2\n2 4\n",
    lambda path: edge_digest(path.read_bytes()),
)

# Kinds of graphs

DATES = b"source,target,when,n\n" + b"".join(
    f'"{NAMES[u]}","{NAMES[v]}",2024-0{i + 1}-17,{i + 1}\n'.encode() for i, (u, v) in enumerate(EDGES)
)
ABOUT = b"name,age,town,group\n" + b"".join(
    f'"{name}",{20 + i},{"Oslo" if i % 2 else ""},{i % 2}\n'.encode() for i, name in enumerate(NAMES)
)


def _two_files(folder: Path, parts: Sequence[bytes]) -> None:
    for file, part in zip(("g.csv", "nodes.csv"), parts, strict=True):
        (folder / file).write_bytes(part)


def _with_nodes(folder: Path) -> object:
    return read_graph(folder / "g.csv", nodes=folder / "nodes.csv", label="group")


add(Target("table of nodes", lambda: [DATES, ABOUT], _two_files, _with_nodes))
file_target("kinds: times", "g.csv", lambda: DATES, lambda path: read_graph(path, directed=True, time="when"))
file_target(
    "kinds: strengths between sides",
    "g.csv",
    lambda: DATES,
    lambda path: read_graph(path, weight="n", weight_is="strength", sides=True),
)
