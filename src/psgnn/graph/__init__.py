"""Graphs: reading and writing them, the CSR adjacency behind them, and many graphs side by side."""

from psgnn.graph._build import Reading
from psgnn.graph._graph import (
    LARGE_NODES,
    MAX_NODES,
    Adjacency,
    Graph,
    GraphBatch,
    IntArray,
    as_graph,
    check_names,
)
from psgnn.graph._names import read_names, read_sets
from psgnn.graph._read import read_graph, read_labels, read_pairs

__all__ = [
    "LARGE_NODES",
    "MAX_NODES",
    "Adjacency",
    "Graph",
    "GraphBatch",
    "IntArray",
    "Reading",
    "as_graph",
    "check_names",
    "read_graph",
    "read_labels",
    "read_names",
    "read_pairs",
    "read_sets",
]
