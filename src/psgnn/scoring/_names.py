"""Nodes by name: names in, ids of the batch out, and back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from psgnn.graph._graph import IntArray
from psgnn.graph._names import node_ids
from psgnn.scoring._scorer import Scorer


def all_names(scorer: Scorer) -> list[str]:
    """The name of every node of the batch; ``GRAPH:NODE`` where two graphs have a node of one name."""
    names = [name for part in scorer.node_names for name in part]
    if len(scorer.node_names) == 1 or len(set(names)) == len(names):
        return names
    return [f"{g}:{name}" for g, part in enumerate(scorer.names_by_number) for name in part]


def graph_numbers(scorer: Scorer, nodes: IntArray) -> IntArray:
    """The number of the graph of each node, among the graphs that were given."""
    numbers = np.array([g for g, part in enumerate(scorer.names_by_number) if part])
    return np.asarray(numbers[scorer.batch.graph_of[nodes]])


def name_of(scorer: Scorer, node: int) -> str:
    """The name of a node of the batch."""
    g = int(scorer.batch.graph_of[node])
    return scorer.node_names[g][node - int(scorer.batch.ptr[g])]


def find_nodes(scorer: Scorer, nodes: Sequence[str | int]) -> IntArray:
    """The ids of nodes that are given by name or by id, int64 ``[n]``."""
    return node_ids(nodes, all_names(scorer))
