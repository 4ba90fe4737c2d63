"""Rules and their diagnostics side by side, over one or many graphs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from psgnn.anchors._diagnostics import anchor_diagnostics
from psgnn.anchors._rules import RULES, select_anchors
from psgnn.console import html_table, progress
from psgnn.errors import unknown_name

if TYPE_CHECKING:
    from psgnn.graph import Graph, IntArray

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
