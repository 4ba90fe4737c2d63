"""Cora, CiteSeer and PubMed from the pickled files of Planetoid.

Each file is checked against its checksum before it is opened, and the reader can make nothing but arrays,
sparse matrices, lists and dicts.
"""

from __future__ import annotations

import collections
import io
import itertools
import logging
import pickle
from typing import Any

import numpy as np
import scipy.sparse

from psgnn.datasets._catalog import Dataset
from psgnn.datasets._download import MissingFileError, Root, read
from psgnn.datasets._files import PUBMED_FEATURES
from psgnn.datasets._parse import numbers
from psgnn.errors import DataError
from psgnn.graph._graph import Adjacency, Graph

_log = logging.getLogger("psgnn")
# What the files name, by the modules of Python 2 and the numpy and scipy of their time.
_ALLOWED: dict[tuple[str, str], Any] = {
    ("numpy.core.multiarray", "_reconstruct"): np.empty(0).__reduce__()[0],
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): lambda code, align, copy: np.dtype(code, align=bool(align), copy=bool(copy)),
    ("scipy.sparse.csr", "csr_matrix"): scipy.sparse.csr_matrix,
    ("collections", "defaultdict"): collections.defaultdict,
    ("__builtin__", "list"): list,
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise DataError(f"a Planetoid file asks for {module}.{name}, which is not allowed")
        return _ALLOWED[module, name]


def unpickle(content: bytes) -> Any:
    """The object in a pickle that holds arrays, sparse matrices, lists and dicts only."""
    return _Unpickler(io.BytesIO(content), encoding="latin1").load()


def planetoid(row: Dataset, root: Root = None) -> list[Graph]:
    """The citation network: ``x`` bags of words as published, ``y`` topics.

    CiteSeer has test nodes without a row in the files; they have no features and, as in PyG, class zero.
    """
    parts = {part: read(file, root) for part, file in row.files.items()}
    test = numbers(parts.pop("test.index"), 1)[:, 0]
    content = {part: unpickle(stored) for part, stored in parts.items()}
    num_train = len(content["ally"])
    num_nodes = num_train + int(test.max() - test.min()) + 1

    labels = np.zeros(num_nodes, dtype=np.int64)
    labels[:num_train] = content["ally"].argmax(axis=1)
    labels[test] = content["ty"].argmax(axis=1)
    graph = content["graph"]
    lengths = np.fromiter(map(len, graph.values()), dtype=np.int64)
    rows = np.repeat(np.fromiter(graph.keys(), dtype=np.int64), lengths)
    cols = np.fromiter(itertools.chain.from_iterable(graph.values()), dtype=np.int64)
    x = None
    train_features = content["allx"] if "allx" in content else _pubmed_features(root)
    if train_features is not None:
        x = np.zeros((num_nodes, train_features.shape[1]), dtype=np.float32)
        x[:num_train] = train_features.toarray()
        x[test] = content["tx"].toarray()
    names = list(map(str, range(num_nodes)))
    return [Graph(Adjacency.from_edges(rows, cols, num_nodes), names, x, labels)]


def _pubmed_features(root: Root) -> Any:
    try:
        return unpickle(read(PUBMED_FEATURES, root, timeout=3.0))
    except MissingFileError as error:
        _log.warning("PubMed is loaded without features: %s", error)
        return None
