"""Email, Protein, citation networks, the collections `seal` and `scale`, and graphs with directions, sides or times.

Cora, CiteSeer and PubMed come from the pickled files of Planetoid. Each file is checked against its checksum before it
is opened, and the reader can make nothing but arrays, sparse matrices, lists and dicts.
"""

from __future__ import annotations

import collections
import csv
import io
import itertools
import logging
import pickle
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.io
import scipy.sparse
from scipy.sparse.csgraph import connected_components

from psgnn.datasets._catalog import Dataset
from psgnn.datasets._download import MissingFileError, Root, edges, locate, numbers, read
from psgnn.errors import DataError
from psgnn.graph._graph import Adjacency, Graph, IntArray
from psgnn.graph._kinds import merged_graph

DEPARTMENTS_A_GRAPH = 6
MIN_EMAIL_NODES = 11


def email(row: Dataset, root: Root = None) -> list[Graph]:
    """The seven graphs of P-GNN: departments 6k..6k+5 form group k, and edges between groups are dropped.

    A graph is a connected component of more than 10 people; ``y`` is the department.
    """
    rows, cols = numbers(read(row.files["email"], root), 2).T
    people, department = numbers(read(row.files["email_labels"], root), 2).T
    labels = np.zeros(people.max() + 1, dtype=np.int64)
    labels[people] = department
    group = labels // DEPARTMENTS_A_GRAPH
    inside = group[rows] == group[cols]
    adjacency = Adjacency.from_edges(rows[inside], cols[inside], labels.size)
    matrix = scipy.sparse.csr_array(
        (np.ones(adjacency.indices.size), adjacency.indices, adjacency.indptr), shape=(labels.size,) * 2
    )
    num_components, component = connected_components(matrix, directed=False)
    large = np.flatnonzero(np.bincount(component) >= MIN_EMAIL_NODES)
    group_of = np.zeros(num_components, dtype=np.int64)
    group_of[component] = group
    graphs = []
    for c in large[np.argsort(group_of[large], kind="stable")]:
        nodes = np.flatnonzero(component == c)
        number = np.full(labels.size, -1)
        number[nodes] = np.arange(nodes.size)
        start, stop = number[adjacency.edges()]
        part = Adjacency.from_edges(start[start >= 0], stop[start >= 0], nodes.size)
        y = labels[nodes]
        graphs.append(Graph(part, y=y, node_names=nodes.astype(str).tolist()))
    return graphs


def protein(row: Dataset, root: Root, attributes: bool) -> list[Graph]:
    """1113 proteins: ``y`` the node label (0, 1, 2), ``x`` 29 attributes, each standardised over all nodes.

    Node names are the ids of the files, counted from 1 over all graphs.
    """
    wanted = {name: file for name, file in row.files.items() if attributes or name != "attributes"}
    text = {name: read(file, root, beside=row.files.values()) for name, file in wanted.items()}
    labels = numbers(text["labels"], 1)[:, 0]
    ptr = np.concatenate([[0], np.cumsum(np.bincount(numbers(text["graph_of"], 1)[:, 0] - 1))])
    rows, cols = numbers(text["edges"], 2).T - 1
    whole = Adjacency.from_edges(rows, cols, labels.size)
    names = list(map(str, range(1, labels.size + 1)))
    x = None
    if attributes:
        table = numbers(text["attributes"], 29, np.float64)
        deviation = table.std(axis=0)
        table = (table - table.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
        x = table.astype(np.float32)
    graphs = []
    for first, last in zip(ptr[:-1].tolist(), ptr[1:].tolist(), strict=True):
        own = None if x is None else x[first:last].copy()
        graphs.append(Graph(_block(whole, first, last), names[first:last], own, labels[first:last].copy()))
    return graphs


def _block(whole: Adjacency, first: int, last: int) -> Adjacency:
    """The nodes ``first..last-1``, which have no edges to others."""
    indptr = whole.indptr[first : last + 1]
    return Adjacency(indptr - indptr[0], whole.indices[indptr[0] : indptr[-1]] - np.int32(first))


def seal(row: Dataset, root: Root = None) -> list[Graph]:
    """A graph of the SEAL collection."""
    stream: Any = io.BytesIO(read(row.files["edges"], root))  # the stubs of loadmat know file names only
    content = scipy.io.loadmat(stream)
    net = scipy.sparse.coo_array(content["net"])
    return [Graph(Adjacency.from_edges(net.row, net.col, net.shape[0]), _numbered(net.shape[0]))]


def scale(row: Dataset, root: Root = None) -> list[Graph]:
    """A large graph without features or labels."""
    rows, cols = edges(read(row.files["edges"], root))
    return [Graph(Adjacency.from_edges(rows, cols, row.nodes), _numbered(row.nodes))]


def ogbl_ddi(row: Dataset, root: Root = None) -> list[Graph]:
    """Drug interactions: the training edges, and in ``split`` the official one.

    ``valid_edge``, ``valid_edge_neg``, ``test_edge`` and ``test_edge_neg`` hold each pair once.
    """
    with np.load(io.BytesIO(read(row.files["split"], root)), allow_pickle=False) as stored:
        split = {name: pairs.T.astype(np.int64) for name, pairs in stored.items()}
    rows, cols = numbers(read(row.files["edges"], root), 2).T
    names = _numbered(row.nodes)
    if locate(row.extras["names"], root):
        names = [
            line.partition(",")[2]
            for line in read(row.extras["names"], root).decode().split("\n")[1:]
            if line
        ]
    return [Graph(Adjacency.from_edges(rows, cols, row.nodes), node_names=names, split=split)]


def _numbered(num_nodes: int) -> list[str]:
    return list(map(str, range(num_nodes)))


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
    train_features = content["allx"] if "allx" in content else _features(row, root)
    if train_features is not None:
        x = np.zeros((num_nodes, train_features.shape[1]), dtype=np.float32)
        x[:num_train] = train_features.toarray()
        x[test] = content["tx"].toarray()
    names = list(map(str, range(num_nodes)))
    return [Graph(Adjacency.from_edges(rows, cols, num_nodes), names, x, labels)]


def _features(row: Dataset, root: Root) -> Any:
    try:
        return unpickle(read(row.extras["features"], root, timeout=3.0))
    except MissingFileError as error:
        _log.warning("PubMed is loaded without features: %s", error)
        return None


Numbers = npt.NDArray[np.float64]

EARTH_RADIUS = 6371.0088  # km, the mean


def movielens_100k(row: Dataset, root: Root = None) -> list[Graph]:
    """Who rated which film, and when; the stars are left out. Users are side 0, films side 1."""
    users, films, _, times = numbers(read(row.files["edges"], root), 4).T
    names, sources = _named(users, "user:")
    film_names, targets = _named(films, "film:")
    sides = np.repeat(np.array([0, 1], np.int8), [len(names), len(film_names)])
    ends = np.stack([sources, targets + len(names)])
    graph = merged_graph(
        ends, sides.size, directed=False, times=times, sides=sides, side_names=("user", "film"),
        node_names=names + film_names,
    )  # fmt: skip
    return [graph]


def bitcoin_otc(row: Dataset, root: Root = None) -> list[Graph]:
    """Who rated whom, and when; the ratings, from -10 to 10, are left out."""
    text = read(row.files["edges"], root)
    header = text.partition(b"\n")[0]
    table = numbers(text[len(header) + 1 :] if b"Source" in header else text, 4, np.float64)
    names, ends = _named(table[:, :2].T.astype(np.int64))
    return [merged_graph(ends, len(names), directed=True, times=table[:, 3], node_names=names)]


def college_messages(row: Dataset, root: Root = None) -> list[Graph]:
    """Who wrote to whom: when first and last, and how many messages, the strength."""
    *both, times = numbers(read(row.files["edges"], root), 3).T
    names, ends = _named(np.stack(both))
    ones = np.ones(times.size)
    return [merged_graph(ends, len(names), directed=True, times=times, strengths=ones, node_names=names)]


def openflights(row: Dataset, root: Root = None) -> list[Graph]:
    """Flights between airports: the great-circle length in km, and how many airlines fly, the strength.

    Airports without coordinates are left out, and so are their flights.
    """
    places: dict[str, tuple[float, float]] = {}
    for line in csv.reader(io.StringIO(read(row.files["airports"], root).decode())):
        for code in (line[4], line[5]):  # IATA, or ICAO where there is none
            if code != "\\N":
                places.setdefault(code, (float(line[6]), float(line[7])))
    routes = csv.reader(io.StringIO(read(row.files["edges"], root).decode()))
    pairs = [(line[2], line[4]) for line in routes if line[2] in places and line[4] in places]
    names, ends = _named(np.array(pairs).T)
    where = np.radians([places[name] for name in names])
    lengths = great_circle(where[ends[0]], where[ends[1]])
    graph = merged_graph(
        ends, len(names), directed=True, lengths=lengths, strengths=np.ones(lengths.size), node_names=names
    )
    return [graph]


def oldenburg_roads(row: Dataset, root: Root = None) -> list[Graph]:
    """Roads between junctions, with their lengths."""
    table = numbers(read(row.files["edges"], root), 4, np.float64)
    names, ends = _named(table[:, 1:3].T.astype(np.int64))
    return [merged_graph(ends, len(names), directed=False, lengths=table[:, 3], node_names=names)]


def great_circle(starts: Numbers, ends: Numbers) -> Numbers:
    """Kilometres between places ``[P, 2]``, latitudes and longitudes in radians, along the surface of a sphere."""
    half = np.sin((ends - starts) / 2) ** 2
    chord = half[:, 0] + np.cos(starts[:, 0]) * np.cos(ends[:, 0]) * half[:, 1]
    return np.asarray(2 * EARTH_RADIUS * np.arcsin(np.sqrt(chord)))


def _named(ids: npt.NDArray[np.generic], prefix: str = "") -> tuple[list[str], IntArray]:
    """The names of the nodes, in the order of their ids, and the ids as places among them."""
    known, places = np.unique(ids, return_inverse=True)
    return [f"{prefix}{node}" for node in known.tolist()], places.reshape(ids.shape).astype(np.int64)
