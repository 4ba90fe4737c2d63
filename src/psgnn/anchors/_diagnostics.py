"""The paper's two criteria for good anchors, measured."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from psgnn.anchors._greedy import refine
from psgnn.console import html_table
from psgnn.distances._engine import check_nodes, hop_columns
from psgnn.errors import InputError
from psgnn.graph._graph import Adjacency, Graph, IntArray, as_graph, to_numpy
from psgnn.kernels._anchors import mix_neighbours

SHARES = ("coverage", "overlap", "resolving")


class AnchorDiagnostics(dict[str, float]):
    """A dict of the measures that a notebook shows as a table."""

    def _repr_html_(self) -> str:
        rows = [[name, f"{value:.3f}" if name in SHARES else value] for name, value in self.items()]
        return html_table("Anchor diagnostics", ["measure", "value"], rows)


def anchor_diagnostics(graph: Graph, anchors: npt.ArrayLike, hops: int = 3) -> AnchorDiagnostics:
    """How well a set of anchors covers a graph and tells its nodes apart.

    Returns:
        A dict, which a notebook shows as a table.

        - ``coverage``: share of the nodes within `hops` of an anchor (1 is best).
        - ``overlap``: share of the covered nodes that are within `hops` of more than one anchor (0 is best).
        - ``resolving``: number of distinct distance vectors / N (1: every node has a position of its own).
        - ``symmetric_pairs``: pairs of anchors that message passing cannot tell apart, of ``K (K - 1) / 2``.

    >>> from psgnn.graph import Graph
    >>> path = Graph.from_edges([[0, 1, 2, 3], [1, 2, 3, 4]])
    >>> anchor_diagnostics(path, [0, 4], hops=1)
    {'coverage': 0.8, 'overlap': 0.0, 'resolving': 1.0, 'symmetric_pairs': 1}
    """
    if hops < 0:
        raise InputError(f"hops must be 0 or more, found {hops}")
    adjacency = as_graph(graph).adjacency
    nodes = check_nodes(to_numpy(anchors), adjacency.num_nodes, "anchor")
    if nodes.size == 0:
        raise InputError("no anchors were given; pass at least one node id")
    columns = hop_columns(adjacency, nodes)  # [N, K]
    covering = ((columns >= 0) & (columns <= hops)).sum(axis=1)
    covered = np.count_nonzero(covering)
    classes: IntArray = np.zeros(adjacency.num_nodes, np.int64)
    for column in columns.T:
        classes = refine(classes, column)
    return AnchorDiagnostics(
        coverage=float(covered / adjacency.num_nodes),
        overlap=float(np.count_nonzero(covering > 1) / covered),
        resolving=(int(classes.max()) + 1) / adjacency.num_nodes,
        symmetric_pairs=symmetric_pairs(adjacency, nodes),
    )


def symmetric_pairs(adjacency: Adjacency, nodes: IntArray) -> int:
    """Pairs of `nodes` with the same colour after 1-WL colour refinement.

    That is the paper's meaning of symmetric: equal under message passing of any depth, from equal features.
    """
    for colours in _refinements(adjacency):
        if np.unique(colours[nodes]).size == nodes.size:
            break
    groups = np.bincount(colours[nodes])
    return int((groups * (groups - 1) // 2).sum())


def message_classes(adjacency: Adjacency) -> IntArray:
    """The colours ``[N]`` of 1-WL refinement: nodes of one class are equal for message passing of any depth."""
    *_, colours = _refinements(adjacency)
    return colours


def _refinements(adjacency: Adjacency) -> Iterator[IntArray]:
    """Colours after one round of 1-WL, two, ... until a round splits no class."""
    colours: IntArray = np.zeros(adjacency.num_nodes, np.int64)
    count, before = 1, 0
    while count > before:
        mixed = mix_neighbours(adjacency.indptr, adjacency.indices, colours)
        colours = np.asarray(np.unique(mixed, return_inverse=True)[1], np.int64)
        before, count = count, int(colours.max()) + 1
        yield colours
