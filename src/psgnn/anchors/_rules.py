"""Anchor rules by name, and the centralities behind them (networkx's definitions, on all cores)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from psgnn.anchors._greedy import farthest_first, greedy_coverage, greedy_resolving
from psgnn.distances._engine import distance_sums
from psgnn.errors import InputError, check_integer, unknown_name
from psgnn.graph import Adjacency, Graph, GraphBatch, IntArray, as_graph
from psgnn.graph._names import distinct_ids
from psgnn.kernels._anchors import add_flow
from psgnn.kernels._compile import num_threads, parallel_map
from psgnn.registry import Registry, call_plugin


def named_anchors(anchors: Iterable[str | int], node_names: Sequence[Sequence[str]]) -> IntArray:
    """The ids of anchors that are given by name or id, int64 ``[K]``, in one graph with these names of nodes."""
    if len(node_names) != 1:
        raise InputError(f"anchors by name go with one graph, found {len(node_names)}; leave them out")
    return distinct_ids(anchors, node_names[0], "the list of anchors")


Scores = npt.NDArray[np.float64]


def degree(adjacency: Adjacency) -> Scores:
    """Share of the other nodes that are neighbours."""
    return adjacency.degrees / max(adjacency.num_nodes - 1, 1)


def closeness(adjacency: Adjacency) -> Scores:
    r"""Wasserman and Faust's :math:`\frac{r}{N - 1} \frac{r}{\sum_u d(u, v)}`, r other nodes in reach."""
    far, _, reached = distance_sums(adjacency)
    return np.asarray(reached**2 / np.maximum(far, 1) / max(adjacency.num_nodes - 1, 1))


def harmonic(adjacency: Adjacency) -> Scores:
    r"""Sum of inverse distances, :math:`\sum_u 1 / d(u, v)`."""
    return np.asarray(distance_sums(adjacency)[1])


def betweenness(adjacency: Adjacency) -> Scores:
    """Share of all shortest paths that pass through the node (Brandes)."""
    return _flow(adjacency, split_evenly=False)


def load(adjacency: Adjacency) -> Scores:
    """Betweenness where a node hands its packets on to its predecessors in equal parts (Newman, Goh)."""
    return _flow(adjacency, split_evenly=True)


def _flow(adjacency: Adjacency, *, split_evenly: bool) -> Scores:
    pieces = num_threads()

    def part(piece: int) -> Scores:
        scores = np.zeros(adjacency.num_nodes)
        add_flow(adjacency.indptr, adjacency.indices, piece, pieces, split_evenly, scores)
        return scores

    scores = np.asarray(
        sum(parallel_map(part, range(pieces), 3 * adjacency.indices.size * adjacency.num_nodes))
    )
    if not np.isfinite(scores).all():
        raise InputError(
            "the number of shortest paths exceeds what float64 holds; choose another anchor rule"
        )
    return scores / max((adjacency.num_nodes - 1) * (adjacency.num_nodes - 2), 1)


MOST_ROWS = 8_000_000  # pairs of a node and an anchor of one graph, with log^2 N anchors

Rule = Callable[[Adjacency, int, np.random.Generator], IntArray]


def _random(adjacency: Adjacency, k: int, rng: np.random.Generator) -> IntArray:
    return rng.choice(adjacency.num_nodes, k, replace=False)


def _largest(score: Callable[[Adjacency], Scores]) -> Rule:
    """The k nodes of the largest score; nodes equal to nine digits count as ties, in a random order."""

    def rule(adjacency: Adjacency, k: int, rng: np.random.Generator) -> IntArray:
        scores = score(adjacency)
        levels = np.round(scores / max(float(scores.max()), 1e-300), 9)
        return np.lexsort((rng.permutation(adjacency.num_nodes), -levels))[:k]

    return rule


def _mixed(adjacency: Adjacency, k: int, rng: np.random.Generator) -> IntArray:
    """Half of them farthest-first, which spreads them; the others by chance, in proportion to the degree."""
    spread = farthest_first(adjacency, (k + 1) // 2, rng)
    if k == 1:
        return spread
    others = np.delete(np.arange(adjacency.num_nodes), spread)
    weight = adjacency.degrees[others] + 1e-3  # a node without links comes last
    drawn = rng.choice(others, k - spread.size, replace=False, p=weight / weight.sum())
    # Alternately, so that the first of them are of both kinds.
    return np.insert(spread, np.arange(1, drawn.size + 1), drawn)


_BUILTIN: dict[str, Rule] = {
    "random": _random,
    "degree": _largest(degree),
    "betweenness": _largest(betweenness),
    "harmonic": _largest(harmonic),
    "closeness": _largest(closeness),
    "load": _largest(load),
    "farthest-first": farthest_first,
    "greedy-resolving": greedy_resolving,
    "greedy-coverage": greedy_coverage,
    "mixed": _mixed,
}

# Pickers of `psgnn.models._config` that are no rules, and ``all`` of the command line.
_RESERVED = (
    "all",
    "named",
    "score",
    "sequential",
    "boosted",
    "random-search",
    "random-sets",
    "none",
)


def _checked(title: str, function: Callable[..., Any]) -> Rule:
    """A plugin's rule whose answer is ``[k]`` distinct nodes of the graph, or one line that names it."""

    def rule(adjacency: Adjacency, k: int, rng: np.random.Generator) -> IntArray:
        answer = call_plugin(title, function, adjacency, k, rng)
        nodes: npt.NDArray[Any] = call_plugin(title, np.asarray, answer)
        problem = None
        if nodes.ndim != 1 or nodes.dtype.kind not in "iu":
            problem = f"an array of {nodes.dtype} of shape {list(nodes.shape)}"
        elif nodes.size != k:
            problem = f"{nodes.size} nodes"
        elif nodes.min() < 0 or nodes.max() >= adjacency.num_nodes:
            problem = f"nodes {nodes.min()}..{nodes.max()} of a graph of {adjacency.num_nodes}"
        elif np.unique(nodes).size != k:
            problem = f"only {np.unique(nodes).size} distinct nodes"
        if problem is not None:
            raise InputError(
                f"{title} must return {k} distinct node ids in 0..{adjacency.num_nodes - 1}, found {problem}; "
                "report it to its authors"
            )
        return nodes.astype(np.int64)

    return rule


RULES: Registry[Rule] = Registry("anchor rule", "psgnn.anchor_rules", _BUILTIN, _checked, _RESERVED)


def anchor_count(num_nodes: int, k: int | str) -> int:
    """K for a graph: a number, ``"log"`` for log2 N or ``"log^2"`` for its square (at least 1, at most N).

    >>> anchor_count(400, "log"), anchor_count(400, "log^2"), anchor_count(400, 5)
    (8, 74, 5)
    """
    if k in ("log", "log^2"):
        count = int(math.log2(max(num_nodes, 1)) ** (1 if k == "log" else 2))
        return min(max(count, 1), num_nodes)
    if not isinstance(k, (int, np.integer)):
        raise InputError(f"the number of anchors must be log, log^2 or an integer, found '{k}'")
    count = int(k)
    if not 1 <= count <= num_nodes:
        raise InputError(
            f"{count} anchors were asked of a graph of {num_nodes} nodes; ask for 1..{num_nodes}"
        )
    return count


def select_anchors(graph: Graph, method: str, k: int | str, seed: int = 0) -> IntArray:
    """Pick anchors by a rule.

    Args:
        graph: A graph.
        method: One of `psgnn.anchors.RULES`.
        k: How many: a number, ``"log"`` for log2 N, or ``"log^2"`` for its square.
        seed: Decides between equal nodes, and draws where the rule draws.

    Returns:
        Node ids, int64 ``[k]``, best first.

    >>> from psgnn.graph import Graph
    >>> star = Graph.from_edges([[0, 0, 0], [1, 2, 3]])
    >>> select_anchors(star, "degree", 1)
    array([0])
    """
    if not isinstance(method, str):
        raise InputError(f"the method is the name of a rule, such as 'degree', found {type(method).__name__}")
    if method not in RULES:
        raise unknown_name("anchor rule", method, RULES)
    check_integer("seed", seed, 0)
    adjacency = as_graph(graph).adjacency
    count = anchor_count(adjacency.num_nodes, k)
    anchors = RULES[method](adjacency, count, np.random.default_rng(seed))
    return anchors.astype(np.int64)


def anchor_counts(batch: GraphBatch, k: int | str) -> IntArray:
    """K of every graph, ``[G]``; of several graphs, those with fewer nodes than asked give all of them, but not all do.

    log^2 N anchors of very large graphs would not fit memory: there, as many as `MOST_ROWS` allows, log N at least.
    """
    if isinstance(k, str) or batch.num_graphs == 1:
        found = np.array([anchor_count(int(size), k) for size in batch.sizes])
        if k == "log^2":
            fewest = np.array([anchor_count(int(size), "log") for size in batch.sizes])
            found = np.minimum(found, np.maximum(fewest, MOST_ROWS // batch.sizes))
        return found
    return np.minimum(anchor_count(int(batch.sizes.max()), k), batch.sizes)


def batch_anchors(batch: GraphBatch, rule: str, k: int | str, seed: int) -> IntArray:
    """The anchors that a rule picks in every graph of a batch: ids of the batch ``[G, K]``, padded with -1."""
    many = anchor_counts(batch, k)
    nodes = np.full((batch.num_graphs, int(many.max())), -1, np.int64)
    for g, count in enumerate(many):
        rng = np.random.default_rng([seed, g])
        nodes[g, :count] = batch.ptr[g] + RULES[rule](batch.graph(g), int(count), rng)
    return nodes
