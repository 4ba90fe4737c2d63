"""Published benchmarks: graphs that carry the split, and the negatives, that others were measured on."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from psgnn.datasets._benchmark_files import HEART
from psgnn.datasets._catalog import Dataset, find_dataset
from psgnn.datasets._download import MAX_BYTES, Root, read
from psgnn.datasets._parse import numbers
from psgnn.datasets._planetoid import planetoid
from psgnn.errors import DataError, InputError
from psgnn.graph._graph import Adjacency, Graph
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
        train, test, others = (_pairs(content[part], row.nodes) for part in PARTS)
    except Exception as error:  # what SciPy raises depends on what is wrong
        raise DataError(f"split {split} of {row.name} is no file of this benchmark ({error})") from None
    names = list(map(str, range(1, row.nodes + 1)))
    adjacency = Adjacency.from_edges(train[0], train[1], row.nodes)
    return [Graph(adjacency, names, split={"test_edge": test, "test_edge_neg": others})]


def _pairs(values: npt.NDArray[Any], nodes: int) -> npt.NDArray[np.int64]:
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
    parts = {part: numbers(read(HEART[part], root), 2).T for part in _TEXTS}
    split = {"valid_edge": parts["valid_pos"], "test_edge": parts["test_pos"]}
    for name in ("valid", "test"):
        if setting == "heart":
            stored = np.load(io.BytesIO(read(HEART[f"heart_{name}_samples"], root)), allow_pickle=False)
            split[f"{name}_edge_neg"] = np.moveaxis(stored, 2, 0)  # [2, P, 500]
        else:
            split[f"{name}_edge_neg"] = parts[f"{name}_neg"]
    rows, cols = parts["train_pos"]
    return [replace(words, adjacency=Adjacency.from_edges(rows, cols, row.nodes), split=split)]


_TEXTS = ("train_pos", "valid_pos", "valid_neg", "test_pos", "test_neg")
