"""Exact hop distances, PageRank and diffusion to a set of anchors, without an N x N matrix."""

from psgnn.distances._engine import distance_sums, hop_columns, set_columns, shortest_distances
from psgnn.distances._oracle import DistanceOracle, pair_distances
from psgnn.distances._propagation import diffusion_columns, pagerank_columns, walk_columns
from psgnn.distances._proximity import set_distances, set_proximity

__all__ = [
    "DistanceOracle",
    "diffusion_columns",
    "distance_sums",
    "hop_columns",
    "pagerank_columns",
    "pair_distances",
    "set_columns",
    "set_distances",
    "set_proximity",
    "shortest_distances",
    "walk_columns",
]
