"""Splits of one's own, and how many links and pairs a task can ask about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from psgnn.errors import InputError
from psgnn.graph._graph import Graph, IntArray, to_numpy
from psgnn.graph._pair_space import PairSpace, TwoSided


def countable(graph: Graph) -> tuple[int, int]:
    """How many links and how many pairs of nodes a task can ask about."""
    n = graph.num_nodes
    if graph.sides is None:
        return graph.num_edges, n * (n - 1) // (1 if graph.directed else 2)
    space = TwoSided(np.array([0, n]), np.asarray(graph.sides), graph.directed)
    return int(space.holds(graph.edges).sum()), int(space.sizes[0])


def given_pairs(
    parts: Mapping[str, npt.ArrayLike], links: IntArray, space: PairSpace, names: Sequence[str]
) -> dict[str, IntArray]:
    """The pairs of a given split by name, sorted by rank, once every pair is found to stand there once.

    ``links [2, E]`` are those of the graph, ``names`` those of its nodes.
    """
    ranks = {
        name: np.sort(space.rank(listed_pairs(name, part, space, names))) for name, part in parts.items()
    }
    everything = np.concatenate([*ranks.values(), space.rank(links)])
    source = np.repeat(np.arange(len(parts) + 1), [*map(len, ranks.values()), links.shape[1]])
    order = np.argsort(everything, kind="stable")
    twice = np.flatnonzero(np.diff(everything[order]) == 0)
    if twice.size:
        first, second = source[order[twice[0] : twice[0] + 2]]
        places = (*parts, "the training edges")
        u, v = (names[node] for node in space.unrank(everything[order[twice[:1]]])[:, 0])
        where = f"twice in {places[first]}" if first == second else f"in {places[first]} and {places[second]}"
        raise InputError(f"the pair ({u}, {v}) is {where}; every pair may stand in one place only, once")
    return {name: space.unrank(rank) for name, rank in ranks.items()}


def listed_pairs(name: str, values: Any, space: PairSpace, names: Sequence[str]) -> IntArray:
    """The pairs of one part of a split, ``[2, P]``, as the space writes them."""
    pairs = to_numpy(values)
    if pairs.ndim != 2 or pairs.shape[0] != 2 or not pairs.size or pairs.dtype.kind not in "iu":
        raise InputError(f"{name} must be integers of shape [2, P], found {pairs.dtype} {list(pairs.shape)}")
    num_nodes = len(names)
    wrong = np.flatnonzero(
        (pairs.min(axis=0) < 0) | (pairs.max(axis=0) >= num_nodes) | (pairs[0] == pairs[1])
    )
    if wrong.size:
        u, v = pairs[:, wrong[0]]
        raise InputError(
            f"{name} has ({u}, {v}) at place {wrong[0]}, which are not two nodes of 0..{num_nodes - 1}"
        )
    pairs = space.oriented(pairs.astype(np.int64))
    outside = np.flatnonzero(~space.holds(pairs))
    if outside.size:
        u, v = (names[node] for node in pairs[:, outside[0]])
        raise InputError(
            f"{name} has ({u}, {v}) at place {outside[0]}, which is not a pair of the two sides; "
            "give a node from each"
        )
    return pairs
