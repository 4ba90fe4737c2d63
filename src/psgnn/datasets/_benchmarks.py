"""Published benchmarks: graphs that carry the split, and the negatives, that others were measured on.

The splits of OGB are files of ``torch.save``, which are pickles. They are read without torch by a reader that knows
NumPy arrays and nothing else, so nothing in them can be run.
"""

from __future__ import annotations

import codecs
import io
import pickle
import zipfile
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from psgnn.datasets._catalog import Dataset, find_dataset
from psgnn.datasets._download import MAX_BYTES, Root, locate, numbers, read
from psgnn.datasets._real import planetoid
from psgnn.errors import DataError, InputError
from psgnn.graph._graph import Adjacency, Graph, IntArray
from psgnn.graph._kinds import merged_graph
from psgnn.graph._matrices import read_variables

SPLITS = 10
PARTS = (
    "train_pos",
    "test_pos",
    "test_neg",
)  # of a file; its training negatives are drawn anew in every step


def seal_splits(row: Dataset, root: Root, split: int) -> list[Graph]:
    """One of SEAL's ten splits: the training links, and in ``split`` the test pairs. Validation is up to the task."""
    if split > SPLITS:
        raise InputError(f"{row.name} has splits 1 to {SPLITS}, found {split}")
    stored = read(row.files[f"split {split}"], root)
    try:
        # Of some files no checksum is known, and a wrong tag crashes SciPy's reader.
        content = read_variables(stored, MAX_BYTES)
        train, test, others = (_seal_pairs(content[part], row.nodes) for part in PARTS)
    except Exception as error:  # what SciPy raises depends on what is wrong
        raise DataError(f"split {split} of {row.name} is not a file of this benchmark ({error})") from None
    names = list(map(str, range(1, row.nodes + 1)))
    adjacency = Adjacency.from_edges(train[0], train[1], row.nodes)
    return [Graph(adjacency, names, split={"test_edge": test, "test_edge_neg": others})]


def _seal_pairs(values: npt.NDArray[Any], nodes: int) -> npt.NDArray[np.int64]:
    """Pairs ``[2, P]`` from ids that begin with 1."""
    pairs = np.asarray(values, np.int64).T - 1
    if pairs.ndim != 2 or pairs.shape[0] != 2 or not pairs.size or pairs.min() < 0 or pairs.max() >= nodes:
        raise ValueError(f"pairs of nodes 1..{nodes} expected, found shape {list(pairs.shape)}")
    return pairs


def heart(row: Dataset, root: Root, setting: str) -> list[Graph]:
    """CiteSeer on the split of HeaRT, with the features of Planetoid.

    In the setting ``heart`` every positive has 500 negatives of its own, in the setting ``existing`` all share some.
    """
    [words] = planetoid(find_dataset("citeseer"), root)
    parts = {part: numbers(read(row.files[part], root), 2).T for part in _TEXTS}
    split = {"valid_edge": parts["valid_pos"], "test_edge": parts["test_pos"]}
    for name in ("valid", "test"):
        if setting == "heart":
            stored = np.load(io.BytesIO(read(row.files[f"heart_{name}_samples"], root)), allow_pickle=False)
            split[f"{name}_edge_neg"] = np.moveaxis(stored, 2, 0)  # [2, P, 500]
        else:
            split[f"{name}_edge_neg"] = parts[f"{name}_neg"]
    rows, cols = parts["train_pos"]
    return [replace(words, adjacency=Adjacency.from_edges(rows, cols, row.nodes), split=split)]


_TEXTS = ("train_pos", "valid_pos", "valid_neg", "test_pos", "test_neg")


Part = dict[str, npt.NDArray[Any]]
RECONSTRUCT: Any = np.zeros(0).__reduce__()[0]  # what a pickle of an array begins with
# Pickles in an old file of torch.save: a magic number, a version, the machine, then what was saved.
LEGACY = 4


def ogb_links(row: Dataset, root: Root) -> list[Graph]:
    """Pairs of nodes that are linked (collab, ppa): the training links, and in ``split`` the held-out pairs.

    Parallel training links are one, with the sum of their weights and the years of the first and the last. Held-out
    links that stand among the training links too are left out, since a task asks about unlinked pairs.
    """
    nodes = _count(row, root)
    parts = {name: _part(row, root, name) for name in ("train", "valid", "test")}
    ends = {name: _pairs(row, part, "edge", nodes) for name, part in parts.items()}
    codes = {name: np.minimum(*pairs) * nodes + np.maximum(*pairs) for name, pairs in ends.items()}
    split: dict[str, IntArray] = {}
    known = codes["train"]
    for name in ("valid", "test"):
        _, first = np.unique(codes[name], return_index=True)
        first = np.sort(
            first[~np.isin(codes[name][first], known) & (np.diff(ends[name][:, first], axis=0)[0] != 0)]
        )
        split[f"{name}_edge"] = ends[name][:, first]
        known = np.concatenate([known, codes[name]])
    for name in ("valid", "test"):
        others = _pairs(row, parts[name], "edge_neg", nodes)
        other = np.minimum(*others) * nodes + np.maximum(*others)
        _, first = np.unique(other, return_index=True)
        first = np.sort(first[~np.isin(other[first], known) & (np.diff(others[:, first], axis=0)[0] != 0)])
        split[f"{name}_edge_neg"] = others[:, first]
        known = np.concatenate([known, other])
    names = list(map(str, range(nodes)))
    x = _features(row, root, nodes)
    train = parts["train"]
    if "year" not in train:
        return [Graph(Adjacency.from_edges(ends["train"][0], ends["train"][1], nodes), names, x, split=split)]
    return [
        merged_graph(
            ends["train"],
            nodes,
            directed=False,
            strengths=_checked(row, train, "weight", len(ends["train"][0])),
            times=_checked(row, train, "year", len(ends["train"][0])),
            node_names=names,
            x=x,
            split=split,
        )
    ]


def ogb_citations(row: Dataset, root: Root) -> list[Graph]:
    """Directed links, whose held-out ones have 1000 negatives each (citation2)."""
    nodes = _count(row, root)
    split: dict[str, IntArray] = {}
    for name in ("valid", "test"):
        part = _part(row, root, name)
        sources, targets = (_ids(row, part, key, nodes, 1) for key in ("source_node", "target_node"))
        others = _ids(row, part, "target_node_neg", nodes, 2)
        if not len(sources) == len(targets) == len(others):
            raise DataError(f"the {name} part of {row.name} has arrays of different lengths")
        split[f"{name}_edge"] = np.stack([sources, targets])
        split[f"{name}_edge_neg"] = np.stack([np.broadcast_to(sources[:, None], others.shape), others])
    part = _part(row, root, "train")
    ends = np.stack([_ids(row, part, key, nodes, 1) for key in ("source_node", "target_node")])
    names = list(map(str, range(nodes)))
    return [
        merged_graph(ends, nodes, directed=True, node_names=names, x=_features(row, root, nodes), split=split)
    ]


def _count(row: Dataset, root: Root) -> int:
    return int(numbers(read(row.files["nodes"], root), 1)[0, 0])


def _features(row: Dataset, root: Root, nodes: int) -> npt.NDArray[np.float32] | None:
    """Node features, where their file is here."""
    if not row.features or not locate(row.extras["features"], root):
        return None
    x = numbers(read(row.extras["features"], root), row.features, np.float32)
    if len(x) != nodes:
        raise DataError(f"{row.name} has {nodes} nodes and features of {len(x)}")
    return x


def _part(row: Dataset, root: Root, name: str) -> Part:
    """A part of the split, by the names of its arrays."""
    try:
        found = unpickled_arrays(read(row.files[name], root))
    except Exception as error:  # what a damaged pickle raises can be anything
        raise DataError(f"the {name} part of {row.name} is not a file of this benchmark ({error})") from None
    return found


def unpickled_arrays(content: bytes) -> Part:
    """The NumPy arrays of a dict that ``torch.save`` has written; raises an exception of some kind on anything else."""
    if zipfile.is_zipfile(io.BytesIO(content)):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            inside = [name for name in archive.namelist() if name.endswith("/data.pkl")]
            found = _Arrays(io.BytesIO(archive.read(inside[0]))).load()
    else:
        stream = io.BytesIO(content)
        *_, found = (_Arrays(stream).load() for _ in range(LEGACY))
    if not isinstance(found, dict) or not all(isinstance(value, np.ndarray) for value in found.values()):
        raise ValueError("a dict of arrays expected")
    return found


class _Arrays(pickle.Unpickler):
    """Reads NumPy arrays of numbers, in dicts and lists; names nothing that could be run."""

    def find_class(self, module: str, name: str) -> Any:
        known: dict[tuple[str, str], Callable[..., Any] | type] = {
            ("_codecs", "encode"): codecs.encode,  # bytes, in old pickles
            ("numpy", "ndarray"): np.ndarray,
            ("numpy", "dtype"): np.dtype,
        }
        known |= {(f"numpy.{core}.multiarray", "_reconstruct"): RECONSTRUCT for core in ("core", "_core")}
        if (module, name) not in known:
            raise ValueError(f"it holds {module}.{name}, which is not an array of NumPy")
        return known[module, name]

    def persistent_load(self, pid: Any) -> Any:
        raise ValueError("it holds a tensor of torch, not an array of NumPy")


def _pairs(row: Dataset, part: Part, key: str, nodes: int) -> IntArray:
    """Pairs ``[2, P]`` from rows ``[P, 2]``."""
    found = _ids(row, part, key, nodes, 2)
    if found.shape[1] != 2:
        raise DataError(f"{key} of {row.name} must have two columns, found {found.shape[1]}")
    return np.ascontiguousarray(found.T)


def _ids(row: Dataset, part: Part, key: str, nodes: int, dimensions: int) -> IntArray:
    """An array of ids of nodes."""
    found = part.get(key, np.zeros(0))
    if found.ndim != dimensions or found.dtype.kind not in "iu" or not found.size:
        raise DataError(f"{key} of {row.name} is missing, or has {found.dtype} {list(found.shape)}")
    if found.min() < 0 or found.max() >= nodes:
        raise DataError(f"{key} of {row.name} names node {found.max()} of 0..{nodes - 1}")
    return found.astype(np.int64)


def _checked(row: Dataset, part: Part, key: str, count: int) -> npt.NDArray[np.float64]:
    """A number per training link."""
    found = np.asarray(part.get(key, np.zeros(0)))
    if found.dtype.kind not in "iuf" or found.size != count or not np.isfinite(found).all():
        raise DataError(
            f"{key} of {row.name} must be {count} numbers, found {found.dtype} {list(found.shape)}"
        )
    return found.ravel().astype(np.float64)
