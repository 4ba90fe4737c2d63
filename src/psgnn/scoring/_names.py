"""Nodes by name: names in, ids of the batch out, and back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from psgnn.errors import InputError
from psgnn.graph._graph import IntArray
from psgnn.graph._read import nearest_name
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
    names = all_names(scorer)
    place: dict[str, int] = {}
    found = np.empty(len(nodes), np.int64)
    for i, node in enumerate(nodes):
        if isinstance(node, (int, np.integer)):
            if not 0 <= node < len(names):
                raise InputError(f"there is no node {node}; the graph has the nodes 0..{len(names) - 1}")
            found[i] = node
            continue
        place = place or {name: v for v, name in enumerate(names)}
        if node not in place:
            near = nearest_name(node, names)
            hint = f"did you mean '{near}'?" if near else f"it has {len(names)} others"
            raise InputError(f"the graph has no node '{node}'; {hint}")
        found[i] = place[node]
    return found
