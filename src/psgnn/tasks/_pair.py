"""Pairwise node classification: are two nodes of the same class?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from psgnn.errors import InputError, check_integer, unknown_name
from psgnn.graph._graph import Graph, GraphBatch, IntArray, node_classes, to_numpy
from psgnn.graph._sampling import DifferentClass, SameClass, running_total
from psgnn.tasks._base import (
    GRAPHS,
    NEGATIVES,
    POSITIVES,
    Task,
    check_shares,
    checked_graphs,
    divide,
)
from psgnn.tasks._negatives import RELEASED, released_pools


class PairClassification(Task):
    """Tell whether two nodes are of the same class: positives are pairs of equal ``graph.y``, negatives of unequal.

    The graphs are visible in full. Nodes with ``y < 0`` are of unknown class and in no pair. There are as many
    negatives as positives, or all where a graph has fewer. Graphs that cannot give a positive and a negative to each
    of their splits are left out.

    Args:
        graphs: A graph with classes, or several.
        val: Share of the pairs (or graphs) that validate.
        test: Share of the pairs (or graphs) that test.
        seed: Of the splits.
        max_pairs: Most positives: a uniform sample, which the graphs share in proportion to what they have.
        holdout: ``"pairs"`` splits the pairs of each graph. ``"graphs"`` holds out whole graphs, so a model is asked
            about graphs that it was not trained on.
        negatives: ``"uniform"``, or ``"pgnn-released"``, which takes some same-class pairs for negatives, as P-GNN's
            released code does. Such results cannot be compared with others (`psgnn.tasks.ceiling`).
    """

    name = "pair"

    def __init__(
        self,
        graphs: Graph | Sequence[Graph],
        val: float = 0.1,
        test: float = 0.1,
        seed: int = 0,
        *,
        max_pairs: int = 1_000_000,
        holdout: str = "pairs",
        negatives: str = "uniform",
    ) -> None:
        check_shares(val, test)
        graphs = checked_graphs(graphs, seed)
        if holdout not in ("pairs", "graphs"):
            raise unknown_name("holdout", str(holdout), ["pairs", "graphs"])
        if negatives not in ("uniform", RELEASED):
            raise unknown_name("negatives of the pair task", str(negatives), ["uniform", RELEASED])
        classes = [_classes(graph, place) for place, graph in enumerate(graphs)]
        adjacencies = [graph.adjacency for graph in graphs]
        edges = np.array([adjacency.num_edges for adjacency in adjacencies])
        ptr = running_total(np.array([adjacency.num_nodes for adjacency in adjacencies]))
        same = SameClass(ptr, np.concatenate(classes)).sizes
        different = DifferentClass(ptr, np.concatenate(classes)).sizes
        need = 3 if holdout == "pairs" else 1

        def problem(g: int) -> str:
            if not edges[g]:
                return f"it has {classes[g].size} nodes and no edges; use a graph that has some"
            known = classes[g][classes[g] >= 0]
            if known.size and not different[g]:
                return f"all its {known.size} labelled nodes are of class {known[0]}; label a second class"
            return (
                f"it has {same[g]} same-class and {different[g]} different-class pairs, at least {need} of "
                f"each are needed; label more nodes"
            )

        super().__init__(graphs, seed, (edges > 0) & (same >= need) & (different >= need), problem)
        least = need * len(self.kept)  # so that every graph has its place in every split
        check_integer("max_pairs", max_pairs, least)
        self.union = GraphBatch.of([graphs[place] for place in self.kept])
        self.negatives = negatives
        self._classes = np.concatenate([classes[place] for place in self.kept])
        wanted = same[self.kept]
        if wanted.sum() > max_pairs:
            share = running_total(wanted - need) / (wanted - need).sum()
            wanted = need + np.diff(np.floor((max_pairs - least) * share).astype(np.int64))
        alike, unlike = SameClass(self.ptr, self._classes), DifferentClass(self.ptr, self._classes)
        shares = self._hold_out_graphs if holdout == "graphs" else divide
        counts = shares(wanted, val, test)
        positives = self._draw(alike, counts, POSITIVES)
        if negatives == RELEASED:
            drawn = self._draw_anew(released_pools(alike, unlike, positives, counts), counts, NEGATIVES)
        else:
            drawn = self._draw(unlike, shares(np.minimum(wanted, unlike.sizes), val, test), NEGATIVES)
        self._set_splits(positives, drawn)

    def true_labels(self, pairs: IntArray) -> npt.NDArray[np.float32]:
        """1 for the pairs ``[2, P]`` of nodes of the same, known class; float32 ``[P]``."""
        one, other = self._classes[pairs]
        return np.asarray((one == other) & (one >= 0), np.float32)

    def _hold_out_graphs(self, totals: IntArray, val: float, test: float) -> IntArray:
        """Train, val and test counts ``[G, 3]``, all of a graph's total in one of them."""
        num_graphs = len(self.kept)
        if num_graphs < 3:
            raise InputError(
                f"holdout='graphs' needs at least 3 graphs that can be used, found {num_graphs}; "
                f"use holdout='pairs'"
            )
        sizes = divide(np.array([num_graphs]), val, test)[0]
        part = self._rng(GRAPHS, 0).permutation(np.repeat(np.arange(3), sizes))
        counts: IntArray = totals[:, None] * np.eye(3, dtype=np.int64)[part]
        return counts


def _classes(graph: Graph, place: int) -> IntArray:
    """The class of every node, int64 ``[N]``."""
    y = graph.y
    if y is None:
        raise InputError(
            f"graph {place} has no node classes; pass --labels FILE (lines of node,label), "
            "or in Python give it an integer array y [N]"
        )
    classes = node_classes(graph)
    if classes is None:
        y = to_numpy(y)
        raise InputError(
            f"graph {place} has {graph.num_nodes} nodes, but its y is {y.dtype} of shape {list(y.shape)}; "
            f"give it an integer array y [N]"
        )
    return classes
