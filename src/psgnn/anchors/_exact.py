"""Optimal anchors of small graphs, a hard problem: what rules and learning can be held against."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from psgnn.distances._engine import hop_columns
from psgnn.errors import InputError, MissingExtraError
from psgnn.graph._graph import Graph, IntArray, as_graph

MAX_NODES = 1000


def minimum_dominating_set(graph: Graph, hops: int = 1, *, time_limit: float = 60.0) -> IntArray:
    """Find a smallest set of anchors with every node within `hops` of one of them, int64, ascending.

    Raises:
        PsgnnError: if optimality is not proven within `time_limit` seconds.
    """
    columns = _all_hops(graph)
    near = (columns >= 0) & (columns <= hops)
    program = _SetCover(near.shape[0], time_limit)
    return program.solve(near)


def metric_basis(graph: Graph, *, time_limit: float = 60.0) -> IntArray:
    """Find a smallest set of anchors that gives every node a distance vector of its own, int64, ascending.

    Its size is the metric dimension. Pairs of nodes become constraints only once a solution leaves them equal, so the
    program stays small.
    """
    columns = _all_hops(graph)
    num_nodes = columns.shape[0]
    if num_nodes == 1:
        return np.zeros(1, np.int64)
    program = _SetCover(num_nodes, time_limit)
    chosen = program.solve([np.arange(num_nodes) >= 0])
    while True:
        vectors = columns[:, chosen]
        order = np.lexsort(vectors.T)
        equal = (vectors[order[1:]] == vectors[order[:-1]]).all(axis=1)
        if not equal.any():
            return chosen
        # Neighbours in the order are all pairs that are needed: equal vectors stand side by side.
        pairs = zip(order[:-1][equal], order[1:][equal], strict=True)
        chosen = program.solve(columns[u] != columns[v] for u, v in pairs)


def _all_hops(graph: Graph) -> Any:
    adjacency = as_graph(graph).adjacency
    if not 1 <= adjacency.num_nodes <= MAX_NODES:
        raise InputError(
            f"exact anchors are for graphs of 1..{MAX_NODES} nodes, found {adjacency.num_nodes}; "
            "use select_anchors with greedy-coverage or greedy-resolving"
        )
    return hop_columns(adjacency, np.arange(adjacency.num_nodes))


class _SetCover:
    """Smallest subset of the nodes that hits every constraint added so far."""

    def __init__(self, num_nodes: int, time_limit: float) -> None:
        try:
            from ortools.sat.python import cp_model
        except ImportError:
            raise MissingExtraError("ortools", "exact", "an exact optimum") from None
        self._cp_model = cp_model
        self._model = cp_model.CpModel()
        self._chosen = [self._model.new_bool_var(f"{v}") for v in range(num_nodes)]
        self._model.minimize(sum(self._chosen))
        self._time_limit = time_limit

    def solve(self, constraints: Iterable[Any]) -> IntArray:
        """Add one constraint for each boolean mask over the nodes, and solve again."""
        for mask in constraints:
            self._model.add_bool_or([self._chosen[v] for v in np.flatnonzero(mask)])
        solver = self._cp_model.CpSolver()
        solver.parameters.max_time_in_seconds = self._time_limit
        solver.parameters.random_seed = 0
        solver.parameters.num_workers = 1  # the same optimum on every machine
        if solver.solve(self._model) != self._cp_model.OPTIMAL:
            raise InputError(f"no optimum was proven within {self._time_limit:g} s; raise time_limit")
        return np.flatnonzero([solver.value(var) for var in self._chosen])
