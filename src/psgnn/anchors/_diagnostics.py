"""The paper's two criteria for good anchors, measured for one rule or for many side by side."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from psgnn.anchors._greedy import refine
from psgnn.anchors._rules import RULES, select_anchors
from psgnn.console import html_table, progress
from psgnn.distances._engine import hop_columns, nodes_of
from psgnn.errors import InputError, unknown_name
from psgnn.graph._graph import Adjacency, Graph, IntArray, as_graph
from psgnn.kernels._anchors import mix_neighbours

if TYPE_CHECKING:
    from psgnn.graph import Graph, IntArray


SHARES = ("coverage", "overlap", "resolving")


class AnchorDiagnostics(dict[str, float]):
    """A dict of the measures that a notebook shows as a table."""

    def _repr_html_(self) -> str:
        rows = [[name, f"{value:.3f}" if name in SHARES else value] for name, value in self.items()]
        return html_table("Anchor diagnostics", ["measure", "value"], rows)


def anchor_diagnostics(graph: Graph, anchors: npt.ArrayLike, hops: int = 3) -> AnchorDiagnostics:
    """How well a set of anchors, given by id or name, covers a graph and tells its nodes apart.

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
    found = as_graph(graph)
    adjacency, nodes = found.adjacency, nodes_of(found, anchors, "anchor")
    if nodes.size == 0:
        raise InputError("no anchors were given; pass at least one node")
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


MEASURES = ("coverage", "overlap", "resolving", "symmetric_pairs")
COLUMNS = ("rule", "anchors", "coverage", "overlap", "resolving", "symmetric pairs", "seconds")


@dataclass(frozen=True)
class ChosenAnchors:
    """What each rule picked in each graph, how good it is and how long it took."""

    graphs: Sequence[Graph]
    hops: int
    seed: int
    anchors: dict[str, list[IntArray]]
    measures: dict[str, dict[str, float]]
    seconds: dict[str, float]

    def of_graph(self, g: int) -> dict[str, IntArray]:
        """The anchors that each rule picked in one graph."""
        return {rule: anchors[g] for rule, anchors in self.anchors.items()}

    def names(self, g: int) -> list[str]:
        """Names of the anchors that the first rule picked in one graph, best first."""
        nodes = next(iter(self.anchors.values()))[g].tolist()
        return [self.graphs[g].names[v] for v in nodes]

    def rows(self) -> list[list[str]]:
        """One row of text a rule, for a table."""
        return [
            [
                rule,
                f"{np.mean([anchors.size for anchors in self.anchors[rule]]):g}",
                *(f"{self.measures[rule][measure]:.3f}" for measure in MEASURES[:3]),
                f"{self.measures[rule]['symmetric_pairs']:g}",
                f"{self.seconds[rule]:.3f}",
            ]
            for rule in self.anchors
        ]

    def _repr_html_(self) -> str:
        return html_table(f"Anchors (within {self.hops} hops)", COLUMNS, self.rows())

    def table(self) -> dict[str, list[Any]]:
        """One row an anchor: rule, graph, rank and name."""
        columns: dict[str, list[Any]] = {"rule": [], "graph": [], "rank": [], "node": []}
        for rule, per_graph in self.anchors.items():
            for g, anchors in enumerate(per_graph):
                for rank, v in enumerate(anchors.tolist()):
                    for column, value in zip(
                        columns.values(), (rule, g, rank, self.graphs[g].names[v]), strict=True
                    ):
                        column.append(value)
        return columns

    def document(self, graph: str) -> dict[str, Any]:
        """Everything, for JSON."""
        rules = [
            {
                "rule": rule,
                "anchors": [
                    [graph.names[v] for v in anchors.tolist()]
                    for graph, anchors in zip(self.graphs, per_graph, strict=True)
                ],
                **self.measures[rule],
                "seconds": self.seconds[rule],
            }
            for rule, per_graph in self.anchors.items()
        ]
        return {"graph": graph, "hops": self.hops, "seed": self.seed, "rules": rules}


def describe_anchors(
    graphs: Sequence[Graph],
    rules: Sequence[str],
    k: int | str,
    *,
    hops: int = 3,
    seed: int = 0,
    show_progress: bool = False,
) -> ChosenAnchors:
    """Pick anchors with each rule in each graph; measures are means over the graphs, seconds their sum."""
    for rule in rules:
        if rule not in RULES:
            raise unknown_name("anchor rule", rule, [*RULES, "all"])
    chosen = ChosenAnchors(graphs, hops, seed, {}, {}, {})
    for rule in progress(rules, "picking anchors", show=show_progress):
        start = time.perf_counter()
        chosen.anchors[rule] = [select_anchors(graph, rule, k, seed) for graph in graphs]
        chosen.seconds[rule] = time.perf_counter() - start
        measured = [
            anchor_diagnostics(graph, anchors, hops)
            for graph, anchors in zip(graphs, chosen.anchors[rule], strict=True)
        ]
        chosen.measures[rule] = {m: float(np.mean([one[m] for one in measured])) for m in MEASURES}
    return chosen
