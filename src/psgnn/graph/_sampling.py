r"""Exact uniform sampling of node pairs by rank, without rejection and without an ``N x N`` mask.

A *pool* is a set of pairs that is numbered ``0, 1, 2, ...`` graph by graph. It knows how many
pairs each graph has (``sizes [G]``) and turns ranks into pairs (``unrank``), so a uniform sample without
replacement is distinct ranks and nothing else, on dense graphs as on sparse ones, in
:math:`O(P + E)` memory. Pairs are int64 ``[2, P]`` in ids of the disjoint union, with ``u < v`` unless a space of
ordered pairs (`psgnn.graph._pair_space`) is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np

from psgnn.errors import InputError
from psgnn.graph._graph import IntArray
from psgnn.kernels._sampling import count_at_most, pair_of_code

if TYPE_CHECKING:
    from psgnn.graph._pair_space import PairSpace


class Pool(Protocol):
    """Numbered pairs: graph ``g`` owns ``sizes[g]`` ranks, after those of the graphs before it."""

    @property
    def sizes(self) -> IntArray:
        """Pairs of every graph, ``[G]``."""

    def unrank(self, ranks: IntArray) -> IntArray:
        """The pairs of these ranks, ``[2, P]``."""


def running_total(counts: IntArray) -> IntArray:
    """``[0, c_0, c_0 + c_1, ...]``: where each of the counted things starts, and the end."""
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def block_of(starts: IntArray, values: IntArray) -> IntArray:
    """The last ``b`` with ``starts[b] <= value``, ``[P]``, or ``[1]`` where all have the same owner."""
    if starts.size == 2:
        return np.zeros(1, dtype=np.int64)
    return np.searchsorted(starts, values, side="right") - 1


def distinct_integers(high: int, size: int, rng: np.random.Generator) -> IntArray:
    """``size`` distinct integers of ``0..high - 1``, uniform and in random order, in O(size) memory."""
    if not 0 <= size <= high:
        raise InputError(f"cannot draw {size} distinct integers out of {high}; ask for 0..{high}")
    if 2 * size >= high:
        return rng.permutation(high)[:size]
    # Whatever their number, the distinct values of independent draws are a uniform set of that size. So
    # draw more than gives `size` distinct ones in expectation, and top up in the rare case that it fails.
    values = _distinct(rng.integers(high, size=size + size * size // high + 8))
    while values.size < size:
        more = rng.integers(high, size=2 * (size - values.size))
        values = _distinct(np.concatenate([values, more]))
    return rng.permutation(values)[:size]


def _distinct(values: IntArray) -> IntArray:
    """The sorted distinct values; ``np.unique`` hashes integers, which is many times slower here."""
    values = np.sort(values)
    first = np.ones(values.size, dtype=bool)
    np.not_equal(values[1:], values[:-1], out=first[1:])
    return values[first]


def pair_code(pairs: IntArray) -> IntArray:
    r"""Number pairs :math:`u < v` by :math:`v (v - 1) / 2 + u`: ``(0,1) (0,2) (1,2) (0,3) ...``."""
    codes: IntArray = pairs[1] * (pairs[1] - 1) // 2 + pairs[0]
    return codes


@dataclass(frozen=True, eq=False)
class WithinBlocks:
    """All pairs inside the same block; block ``b`` owns the ids ``ptr[b]:ptr[b + 1]``.

    With graphs as blocks these are all pairs of the disjoint union, sorted by ``(graph, v, u)``.
    """

    ptr: IntArray

    @cached_property
    def sizes(self) -> IntArray:
        """Pairs of every block, ``[B]``."""
        nodes: IntArray = np.diff(self.ptr)
        sizes: IntArray = nodes * (nodes - 1) // 2
        return sizes

    @cached_property
    def starts(self) -> IntArray:
        """Rank of the first pair of every block and, last, their number, ``[B + 1]``."""
        return running_total(self.sizes)

    @property
    def _plain(self) -> bool:
        """Whether there is one block, of the ids from 0 on, so that ranks are codes."""
        return self.ptr.size == 2 and self.ptr[0] == 0

    def rank(self, pairs: IntArray) -> IntArray:
        """The ranks ``[P]`` of pairs that lie inside a block each."""
        if self._plain:
            return pair_code(pairs.astype(np.int64, copy=False))
        block = block_of(self.ptr, pairs[0])
        ranks: IntArray = pair_code(pairs - self.ptr[block]) + self.starts[block]
        return ranks

    def unrank(self, ranks: IntArray) -> IntArray:
        """The pairs ``[2, P]`` of these ranks."""
        pairs: IntArray
        if self._plain:
            pairs = pair_of_code(ranks)
        else:
            block = block_of(self.starts, ranks)
            pairs = pair_of_code(ranks - self.starts[block]) + self.ptr[block]
        return pairs


@dataclass(frozen=True, eq=False)
class ListedPairs:
    """The given ``pairs [2, P]``, graph by graph, ``sizes [G]`` of them."""

    pairs: IntArray
    sizes: IntArray

    def unrank(self, ranks: IntArray) -> IntArray:
        """The pairs ``[2, P]`` of these ranks."""
        return np.take(self.pairs, ranks, axis=1)


class Joined:
    """Several pools as one, graph by graph; what is in two of them, or in one that is given twice, has two ranks."""

    def __init__(self, *pools: Pool) -> None:
        self._pools = pools
        sizes = np.stack([pool.sizes for pool in pools], axis=1)  # [G, pools]
        self.sizes: IntArray = sizes.sum(axis=1)
        self._starts = running_total(sizes.ravel())

    def unrank(self, ranks: IntArray) -> IntArray:
        """The pairs ``[2, P]`` of these ranks."""
        piece = np.searchsorted(self._starts, ranks, side="right") - 1
        graph, place = np.divmod(piece, len(self._pools))
        pairs = np.empty((2, ranks.size), dtype=np.int64)
        for i, pool in enumerate(self._pools):
            own = place == i
            within = ranks[own] - self._starts[piece[own]]
            pairs[:, own] = pool.unrank(within + running_total(pool.sizes)[graph[own]])
        return pairs


class NonEdges:
    r"""All pairs of a space but for the ``excluded`` ones: ``[2, E]``, distinct, in any order.

    The ``ptr`` of a batch stands for all unordered pairs inside the same graph.

    With the excluded ranks :math:`c_0 < c_1 < ...`, there are :math:`c_i - i` other pairs below
    :math:`c_i`, so the other pair of rank :math:`r` has :math:`|\{i : c_i - i \le r\}|` excluded
    ones below it.
    """

    def __init__(self, space: IntArray | PairSpace, excluded: IntArray) -> None:
        self.pairs = WithinBlocks(space) if isinstance(space, np.ndarray) else space
        # Stable means timsort, which merges in O(E) what comes in sorted runs, as edges of a CSR do.
        ranks = np.sort(self.pairs.rank(excluded), kind="stable")
        self.sizes = self.pairs.sizes - np.diff(np.searchsorted(ranks, self.pairs.starts))
        self._below = ranks - np.arange(ranks.size)  # [E], not decreasing

    def unrank(self, ranks: IntArray) -> IntArray:
        """The pairs ``[2, P]`` of these ranks; sorted ranks are by far the fastest to look up."""
        many = ranks.size * np.log2(self._below.size + 1) > self._below.size
        if many and (ranks[1:] >= ranks[:-1]).all():
            return self.pairs.unrank(ranks + count_at_most(self._below, ranks))
        return self.pairs.unrank(ranks + np.searchsorted(self._below, ranks, side="right"))


class _Classes:
    """The labelled nodes of all graphs, sorted by ``(graph, class)``; a class ``< 0`` means unknown."""

    def __init__(self, ptr: IntArray, classes: IntArray) -> None:
        graph = np.repeat(np.arange(ptr.size - 1), np.diff(ptr))
        known = np.flatnonzero(classes >= 0)
        self.nodes = known[np.lexsort((classes[known], graph[known]))]  # [n]
        key = np.stack([graph[self.nodes], classes[self.nodes]])
        new = np.flatnonzero((key[:, 1:] != key[:, :-1]).any(axis=0)) + 1
        self.block_ptr = np.concatenate([[0], new, [self.nodes.size]]).astype(np.int64)  # [B + 1]
        self.graph_ptr = np.searchsorted(key[0], np.arange(ptr.size))  # [G + 1]

    def pairs(self, places: IntArray) -> IntArray:
        """The nodes at these places, smaller id first, ``[2, P]``."""
        return np.sort(self.nodes[places], axis=0)


class SameClass(_Classes):
    """All pairs of nodes of the same graph and the same class, given ``classes [N]``."""

    def __init__(self, ptr: IntArray, classes: IntArray) -> None:
        super().__init__(ptr, classes)
        self._blocks = WithinBlocks(self.block_ptr)
        first_block = np.searchsorted(self.block_ptr, self.graph_ptr)
        self.sizes = np.diff(self._blocks.starts[first_block])

    def unrank(self, ranks: IntArray) -> IntArray:
        """The pairs ``[2, P]`` of these ranks."""
        return self.pairs(self._blocks.unrank(ranks))


class DifferentClass(_Classes):
    """All pairs of nodes of the same graph and of different classes, given ``classes [N]``."""

    def __init__(self, ptr: IntArray, classes: IntArray) -> None:
        super().__init__(ptr, classes)
        place = np.arange(self.nodes.size)
        self._class_end = self.block_ptr[np.searchsorted(self.block_ptr, place, side="right")]
        graph_end = self.graph_ptr[np.searchsorted(self.graph_ptr, place, side="right")]
        # A node is paired with the nodes of its graph's later classes: consecutive places, consecutive ranks.
        self._starts = running_total(graph_end - self._class_end)  # [n + 1]
        self.sizes = np.diff(self._starts[self.graph_ptr])

    def unrank(self, ranks: IntArray) -> IntArray:
        """The pairs ``[2, P]`` of these ranks."""
        place = np.searchsorted(self._starts, ranks, side="right") - 1
        return self.pairs(np.stack([place, self._class_end[place] + ranks - self._starts[place]]))
