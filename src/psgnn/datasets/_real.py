"""Email, Protein, and the graphs of the ``seal``, ``scale`` and ``ogbl-ddi`` collections."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse
from scipy.sparse.csgraph import connected_components

from psgnn.datasets._catalog import Dataset
from psgnn.datasets._download import Root, locate, read
from psgnn.datasets._files import DDI, DDI_NAMES, EMAIL, PROTEIN
from psgnn.datasets._parse import edges, numbers
from psgnn.graph._graph import Adjacency, Graph

DEPARTMENTS_A_GRAPH = 6
MIN_EMAIL_NODES = 11


def email(row: Dataset, root: Root = None) -> list[Graph]:
    """The seven graphs of P-GNN: departments 6k..6k+5 form group k, and edges between groups are dropped.

    A graph is a connected component of more than 10 people; ``y`` is the department.
    """
    rows, cols = numbers(read(EMAIL["email"], root), 2).T
    people, department = numbers(read(EMAIL["email_labels"], root), 2).T
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
    wanted = {name: file for name, file in PROTEIN.items() if attributes or name != "attributes"}
    text = {name: read(file, root, beside=PROTEIN.values()) for name, file in wanted.items()}
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
    with np.load(io.BytesIO(read(DDI["split"], root)), allow_pickle=False) as stored:
        split = {name: pairs.T.astype(np.int64) for name, pairs in stored.items()}
    rows, cols = numbers(read(DDI["edges"], root), 2).T
    names = _numbered(row.nodes)
    if locate(DDI_NAMES, root):
        names = [line.partition(",")[2] for line in read(DDI_NAMES, root).decode().split("\n")[1:] if line]
    return [Graph(Adjacency.from_edges(rows, cols, row.nodes), node_names=names, split=split)]


def _numbered(num_nodes: int) -> list[str]:
    return list(map(str, range(num_nodes)))
