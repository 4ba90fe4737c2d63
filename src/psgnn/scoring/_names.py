"""Nodes by name: names in, ids of the batch out, and back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from psgnn.distances._engine import check_nodes
from psgnn.errors import InputError
from psgnn.graph._graph import IntArray, to_numpy
from psgnn.graph._in_memory import named_pairs
from psgnn.graph._pair_space import pair_space
from psgnn.graph._read import read_pairs, unknown_node
from psgnn.paths import PathLike
from psgnn.scoring._scorer import Scorer, check_pairs, keep

# A node by name, by id, or by the number of its graph and its name.
Node: TypeAlias = "str | int | tuple[int, str]"


def all_names(scorer: Scorer) -> list[str]:
    """The name of every node of the batch; ``GRAPH:NODE`` where two graphs have a node of one name."""
    names = flat_names(scorer)
    if len(scorer.node_names) == 1 or len(set(names)) == len(names):
        return names
    return [f"{g}:{name}" for g, part in enumerate(scorer.names_by_number) for name in part]


def flat_names(scorer: Scorer) -> list[str]:
    """The name of every node in its graph, one graph after the other."""
    return [name for part in scorer.node_names for name in part]


def graph_numbers(scorer: Scorer, nodes: IntArray) -> IntArray:
    """The number of the graph of each node, among the graphs that were given."""
    numbers = np.array([g for g, part in enumerate(scorer.names_by_number) if part])
    return np.asarray(numbers[scorer.batch.graph_of[nodes]])


def name_of(scorer: Scorer, node: int) -> str:
    """The name of a node of the batch."""
    g = int(scorer.batch.graph_of[node])
    return scorer.node_names[g][node - int(scorer.batch.ptr[g])]


def find_nodes(scorer: Scorer, nodes: Iterable[Node]) -> IntArray:
    """The ids of nodes that are given by name, by id or as ``(graph, name)``, int64 ``[n]``."""
    place = keep(scorer, "names", lambda: {name: v for v, name in enumerate(all_names(scorer))})
    found = []
    for node in nodes:
        known = place.get(node) if isinstance(node, str) else None
        found.append(_find(scorer, node, place) if known is None else known)
    return np.array(found, np.int64)


def node_ids(scorer: Scorer, nodes: Any) -> IntArray:
    """The ids of nodes, int64 ``[n]``: all for None, integers as they are, anything else by name."""
    count = scorer.batch.num_nodes
    if nodes is None:
        return np.arange(count)
    if isinstance(nodes, str):
        return find_nodes(scorer, [nodes])
    if isinstance(nodes, (list, tuple)) and any(isinstance(node, (str, tuple)) for node in nodes):
        return find_nodes(scorer, nodes)
    found = to_numpy(nodes)
    if found.ndim == 1 and found.dtype.kind in "OTU":
        return find_nodes(scorer, found.tolist())
    return check_nodes(found, count, "node")


def pair_ids(scorer: Scorer, pairs: Any) -> IntArray:
    """The ids of pairs, int64 ``[2, P]``.

    Integers are ids and have the shape ``[2, P]``. Names come as a list of pairs, as an array ``[P, 2]`` or as a table
    whose columns ``source`` and ``target``, or the first two, hold the names.
    """
    if hasattr(pairs, "columns") and hasattr(pairs, "shape"):
        return listed_pairs(scorer, named_pairs(pairs))
    if isinstance(pairs, Iterator):  # such as zip(sources, targets)
        pairs = list(pairs)
    if isinstance(pairs, (list, tuple)) and (len(pairs) == 0 or any(_is_named(pair) for pair in pairs)):
        return listed_pairs(scorer, pairs)
    found = to_numpy(pairs)
    if found.ndim == 2 and found.dtype.kind in "OTU":
        return listed_pairs(scorer, found.tolist())
    return check_pairs(found, scorer.batch.num_nodes)


def named_pairs_of(scorer: Scorer, path: PathLike, header: bool | None = None) -> IntArray:
    """The ids ``[2, P]`` of the pairs of names in a file, once all of them are pairs that can be linked."""
    kinds = scorer.batch.kinds
    sides = None if kinds is None or kinds.sides is None else kinds.side_names
    return askable(scorer, read_pairs(path, *scorer.names_by_number, header=header, side_names=sides))


def askable(scorer: Scorer, pairs: IntArray) -> IntArray:
    """The pairs ``[2, P]``, or an error for the first that can be no link: it is within a side."""
    space = pair_space(scorer.batch)
    wrong = ~space.holds(pairs)
    if wrong.any():
        a, b = (name_of(scorer, int(v)) for v in pairs[:, wrong.argmax()])
        raise InputError(
            f"('{a}', '{b}') is not a pair of the two sides; name a node of the first, then one of the second"
        )
    return pairs


def _is_named(pair: Any) -> bool:
    return isinstance(pair, (list, tuple)) and any(isinstance(node, (str, tuple)) for node in pair)


def listed_pairs(scorer: Scorer, pairs: Sequence[Any]) -> IntArray:
    """The ids ``[2, P]`` of a list of pairs, each of two nodes of one graph, by name or by id."""
    for pair in pairs:
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            raise InputError(f"{pair!r} is not a pair; name two nodes, such as ('Ada', 'Rune')")
    found = find_nodes(scorer, (node for pair in pairs for node in pair)).reshape(-1, 2).T
    graph: npt.NDArray[Any] = scorer.batch.graph_of[found]
    wrong = np.flatnonzero((found[0] == found[1]) | (graph[0] != graph[1]))
    if wrong.size:
        a, b = pairs[int(wrong[0])]
        raise InputError(f"{(a, b)} is not a pair; name two nodes of one graph")
    return np.ascontiguousarray(found)


def _find(scorer: Scorer, node: Node, place: dict[str, int]) -> int:
    """The id of a node, or an error that says what to write instead."""
    if isinstance(node, (int, np.integer)):
        if 0 <= node < len(place):
            return int(node)
        hint = f"; its name is text: '{node}'" if str(node) in place else ""
        raise InputError(f"there is no node {node}; the graph has the nodes 0..{len(place) - 1}{hint}")
    name = _name_within(scorer, node, place) if isinstance(node, tuple) else str(node)
    if name in place:
        return place[name]
    graphs = [g for g, part in enumerate(scorer.names_by_number) if name in part]
    if graphs:
        g = graphs[0]
        raise InputError(f"{len(graphs)} graphs have a node '{name}'; write '{g}:{name}' or ({g}, '{name}')")
    raise InputError(unknown_node(name, list(place)))


def _name_within(scorer: Scorer, node: tuple[int, str], place: dict[str, int]) -> str:
    """The name by which ``(graph, name)`` is known in the batch."""
    names = scorer.names_by_number
    if len(node) != 2 or not isinstance(node[0], (int, np.integer)):
        raise InputError(f"{node!r} is no node; write its name, or (graph, name) such as (0, 'Ada')")
    g, name = int(node[0]), str(node[1])
    if not 0 <= g < len(names):
        raise InputError(f"there is no graph {g}; the graphs are 0..{len(names) - 1}")
    qualified = f"{g}:{name}"
    if len(names) > 1 and qualified in place:
        return qualified
    if name not in names[g]:
        raise InputError(unknown_node(name, names[g], f"graph {g}"))
    return name
