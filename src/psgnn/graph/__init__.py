"""Graphs: reading and writing them, the CSR adjacency behind them, and many graphs side by side."""

from psgnn.graph._graph import LARGE_NODES, MAX_NODES, Adjacency, GraphBatch, IntArray, check_names, make_data
from psgnn.graph._read import Reading, read_graph, read_labels, read_pairs

__all__ = [
    "LARGE_NODES",
    "MAX_NODES",
    "Adjacency",
    "GraphBatch",
    "IntArray",
    "Reading",
    "check_names",
    "make_data",
    "read_graph",
    "read_labels",
    "read_pairs",
]
