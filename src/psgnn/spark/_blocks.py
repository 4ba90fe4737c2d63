"""What the places of a graph do: blocks of nodes with their rows of links, in NumPy.

A *block* owns consecutive nodes. It has their rows, knows the degrees of all neighbours, and which of its nodes other
blocks need. Several *views* of the graph, each without some hidden links, are measured at the same time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from psgnn.graph._graph import IntArray
from psgnn.graph._sampling import pair_code
from psgnn.kernels._csr import add_triangles
from psgnn.kernels._sampling import pair_of_code
from psgnn.positions._measure import Parts
from psgnn.spark._mail import REPORT, Arrays, Letter

PARTS = Parts(features=False)
Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Plan:
    """What all blocks know: where each begins ``bounds [B + 1]``, and of each view the links that are hidden in it."""

    bounds: IntArray
    links: int
    hidden: tuple[IntArray, ...] = (np.zeros((2, 0), np.int64),)

    @property
    def nodes(self) -> int:
        """N."""
        return int(self.bounds[-1])

    def owner(self, nodes: IntArray) -> IntArray:
        """The block of each node."""
        return np.asarray(np.searchsorted(self.bounds, nodes, side="right") - 1)

    def links_of(self, view: int) -> int:
        """The links that a view shows."""
        return self.links - int(self.hidden[view].shape[1])

    def mean_degree(self, view: int) -> float:
        """The mean degree in a view."""
        return 2 * self.links_of(view) / self.nodes


def by_kind(letters: Iterable[Letter]) -> dict[str, list[Letter]]:
    """Letters by their kind, in the order of their senders."""
    found: dict[str, list[Letter]] = {}
    for letter in letters:
        found.setdefault(letter.kind, []).append(letter)
    return found


def parts_by_owner(plan: Plan, nodes: IntArray) -> Iterator[tuple[int, slice]]:
    """The owners of sorted nodes, and which of them are theirs."""
    cuts = np.searchsorted(nodes, plan.bounds)
    for owner in np.flatnonzero(np.diff(cuts)).tolist():
        yield owner, slice(cuts[owner], cuts[owner + 1])


# Building the blocks


def build(plan: Plan, place: int, letters: list[Letter]) -> Iterator[Letter]:
    """Rows of links from their entries; ask the owners of neighbours for their degrees."""
    entries = [letter.arrays for letter in letters]
    first, last = plan.bounds[place : place + 2].tolist()
    sources, targets = (np.concatenate([part[name] for part in entries]) for name in ("source", "target"))
    order = np.lexsort((targets, sources))
    sources, targets = sources[order], targets[order]
    ids = np.union1d(targets, np.arange(first, last))
    indptr = np.concatenate([[0], np.cumsum(np.bincount(sources - first, minlength=last - first))])
    indices = np.searchsorted(ids, targets).astype(np.int32)
    yield Letter(
        place, "block", {"ids": ids, "first": np.array([first, last]), "indptr": indptr, "indices": indices}
    )
    for owner, part in parts_by_owner(plan, ids):
        if owner != place:
            yield Letter(owner, "wanted", {"nodes": ids[part]})


def answer_degrees(place: int, letters: list[Letter]) -> Iterator[Letter]:
    """Send degrees to the blocks that asked, and note what they need."""
    kinds = by_kind(letters)
    block = kinds["block"][0].arrays
    degrees = np.diff(block["indptr"])
    routes = [letter.arrays["nodes"] - block["first"][0] for letter in kinds.get("wanted", [])]
    to = np.array([letter.sender for letter in kinds.get("wanted", [])], np.int64)
    starts = np.concatenate([[0], np.cumsum([route.size for route in routes])]).astype(np.int64)
    route = np.concatenate([*routes, np.zeros(0, np.int64)]).astype(np.int64)
    yield Letter(place, "block", {**block, "to": to, "to_starts": starts, "route": route})
    for sender, part in zip(to.tolist(), routes, strict=True):
        yield Letter(sender, "degrees", {"degrees": degrees[part]})


def note_degrees(place: int, letters: list[Letter]) -> Iterator[Letter]:
    """Write down the degrees of all neighbours, and report how many links have their larger end here."""
    kinds = by_kind(letters)
    block = kinds["block"][0].arrays
    others = [letter.arrays["degrees"] for letter in kinds.get("degrees", [])]
    at = int(np.searchsorted(block["ids"], block["first"][0]))
    own = np.diff(block["indptr"])
    before = [
        part for part, letter in zip(others, kinds.get("degrees", []), strict=True) if letter.sender < place
    ]
    after = others[len(before) :]
    degrees = np.concatenate([*before, own, *after]).astype(np.int64)
    rows = np.repeat(np.arange(own.size), own) + at
    lower = int((block["indices"] < rows).sum())
    yield Letter(place, "block", {**block, "degrees": degrees})
    yield Letter(REPORT, "links", {"lower": np.array([place, lower, block["indices"].size - lower])})


class Block:
    """A block and its rows in each view; all local numbers keep the order of the nodes."""

    def __init__(self, plan: Plan, place: int, arrays: Arrays) -> None:
        self.plan, self.place, self.arrays = plan, place, arrays
        self.ids, self.degrees = arrays["ids"], arrays["degrees"]
        self.first, self.last = (int(v) for v in arrays["first"])
        self.size = self.last - self.first
        self.at = int(np.searchsorted(self.ids, self.first))
        self.own = slice(self.at, self.at + self.size)

    @property
    def letter(self) -> Letter:
        """The block, to itself."""
        return Letter(self.place, "block", self.arrays)

    def links(self, view: int) -> tuple[IntArray, npt.NDArray[np.int32], IntArray]:
        """``indptr`` over all local nodes, ``indices`` and degrees in a view; only own rows are filled."""
        indptr, indices, degrees = self.arrays["indptr"], self.arrays["indices"], self.degrees
        hidden = self.plan.hidden[view]
        if hidden.shape[1]:
            rows = np.repeat(np.arange(self.size), np.diff(indptr))
            gone = _hidden_entries(hidden, self.ids, self.at + rows, indices)
            kept = ~gone
            counts = np.bincount(rows[kept], minlength=self.size)
            indptr, indices = np.concatenate([[0], np.cumsum(counts)]), indices[kept]
            degrees = degrees - hidden_degrees(hidden, self.ids)
        whole = np.zeros(self.ids.size + 1, np.int64)
        whole[self.at : self.at + self.size + 1] = indptr
        whole[self.at + self.size + 1 :] = indptr[-1]
        return whole, np.ascontiguousarray(indices), degrees

    def send(self, kind: str, **arrays: npt.NDArray[np.generic]) -> Iterator[Letter]:
        """Rows ``[V, n, ...]`` of own nodes to the blocks that need them."""
        to, starts, route = (self.arrays[name] for name in ("to", "to_starts", "route"))
        for place, a, b in zip(to.tolist(), starts[:-1].tolist(), starts[1:].tolist(), strict=True):
            some = route[a:b]
            yield Letter(place, kind, {name: array[:, some] for name, array in arrays.items()})

    def gather(
        self, own: npt.NDArray[np.generic], letters: list[Letter], name: str
    ) -> npt.NDArray[np.generic]:
        """Rows ``[V, m, ...]`` of all local nodes: own ones, and those that other blocks sent."""
        parts = [letter.arrays[name] for letter in letters if letter.sender < self.place]
        after = [letter.arrays[name] for letter in letters if letter.sender > self.place]
        return np.concatenate([*parts, own, *after], axis=1)


def _hidden_entries(
    hidden: IntArray, ids: IntArray, rows: IntArray, indices: npt.NDArray[np.int32]
) -> npt.NDArray[np.bool_]:
    """Which entries of rows, both local numbers of sorted `ids`, are links ``[2, H]`` that are hidden."""
    both = np.concatenate([hidden, hidden[::-1]], axis=1)
    places = np.searchsorted(ids, both).clip(max=ids.size - 1)
    known = (ids[places] == both).all(axis=0)
    codes = np.sort(places[0, known] * ids.size + places[1, known])
    asked = rows * ids.size + indices
    if not codes.size:
        return np.zeros(asked.size, np.bool_)
    found = np.searchsorted(codes, asked).clip(max=codes.size - 1)
    return np.asarray(codes[found] == asked)


def hidden_degrees(hidden: IntArray, ids: IntArray) -> IntArray:
    """How many of the hidden links each of the sorted `ids` has."""
    ends = np.sort(hidden.ravel())
    return np.asarray(np.searchsorted(ends, ids, side="right") - np.searchsorted(ends, ids, side="left"))


# Triangles


def send_onward(plan: Plan, place: int, letters: list[Letter]) -> Iterator[Letter]:
    """Send the links of own nodes to nodes of larger degree to the blocks that need them."""
    block = Block(plan, place, letters[0].arrays)
    yield block.letter
    indptr, onward = _onward(block)
    to, starts, route = (block.arrays[name] for name in ("to", "to_starts", "route"))
    for other, a, b in zip(to.tolist(), starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        some = route[a:b]
        counts = np.diff(indptr)[some]
        entries = _entries(indptr[some], counts)
        yield Letter(other, "onward", {"counts": counts, "nodes": block.ids[onward[entries]]})


def _entries(starts: IntArray, counts: IntArray) -> IntArray:
    """The places of the entries of rows that begin at `starts`."""
    ends = np.cumsum(counts)
    return np.asarray(np.arange(ends[-1] if ends.size else 0) + np.repeat(starts - ends + counts, counts))


def _onward(block: Block) -> tuple[IntArray, npt.NDArray[np.int32]]:
    indptr, indices = block.arrays["indptr"], block.arrays["indices"]
    rows = np.repeat(np.arange(block.size), np.diff(indptr)) + block.at
    mine, other = block.degrees[rows], block.degrees[indices]
    kept = (other > mine) | ((other == mine) & (indices > rows))
    counts = np.bincount(rows[kept] - block.at, minlength=block.size)
    return np.concatenate([[0], np.cumsum(counts)]), indices[kept]


def count_triangles(plan: Plan, place: int, letters: list[Letter]) -> Iterator[Letter]:
    """Count the triangles that begin at own nodes, in every view, and send other nodes their shares."""
    kinds = by_kind(letters)
    block = Block(plan, place, kinds["block"][0].arrays)
    yield block.letter
    sent = kinds.get("onward", [])
    own_starts, own = _onward(block)
    empty = [np.zeros(0, np.int64)]
    parts = [
        [(letter.arrays["counts"], letter.arrays["nodes"]) for letter in sent if letter.sender < place],
        [(np.diff(own_starts), block.ids[own])],
        [(letter.arrays["counts"], letter.arrays["nodes"]) for letter in sent if letter.sender > place],
    ]
    counts = np.concatenate([*empty, *(count for group in parts for count, _ in group)])
    nodes = np.concatenate([*empty, *(found for group in parts for _, found in group)])
    local = np.searchsorted(block.ids, nodes).clip(max=block.ids.size - 1)
    known = (
        block.ids[local] == nodes
    )  # a third node that is not a neighbour of an own node closes no triangle here
    rows = np.repeat(np.arange(block.ids.size), counts)
    rows, local = rows[known], local[known]
    found = np.zeros((len(plan.hidden), block.ids.size))
    for view, hidden in enumerate(plan.hidden):
        kept = ~_hidden_entries(hidden, block.ids, rows, local.astype(np.int32))
        starts = np.concatenate([[0], np.cumsum(np.bincount(rows[kept], minlength=block.ids.size))])
        add_triangles(starts, local[kept].astype(np.int32), block.at, block.at + block.size, found[view])
    yield Letter(place, "closed", {"closed": found[:, block.own]})
    for owner, part in parts_by_owner(plan, block.ids):
        if owner != place:
            yield Letter(owner, "closed elsewhere", {"nodes": block.ids[part], "closed": found[:, part]})


# Links and other pairs by their ranks


def pairs_by_rank(
    plan: Plan, links: dict[int, IntArray], others: dict[int, IntArray], upper: IntArray, lower: IntArray,
    place: int, letters: list[Letter],
) -> Iterator[Letter]:  # fmt: skip
    """Report links by their ranks among all links, sorted by (u, v), and other pairs by their ranks in the first view.

    ``upper [B + 1]`` counts the links whose smaller end is in the blocks before each, ``lower [B + 1]`` those of the
    view whose larger end is.
    """
    block = Block(plan, place, next(letter.arrays for letter in letters if letter.kind == "block"))
    rows = np.repeat(np.arange(block.size), np.diff(block.arrays["indptr"])) + block.at
    onward = np.flatnonzero(block.arrays["indices"] > rows)
    found: Arrays = {}
    for key, ranks in links.items():
        mine = np.sort(ranks[(ranks >= upper[place]) & (ranks < upper[place + 1])]) - upper[place]
        entries = onward[mine]
        found[f"links {key}"] = block.ids[np.stack([rows[entries], block.arrays["indices"][entries]])]
    indptr, indices, _ = block.links(0)
    ends = np.repeat(np.arange(block.ids.size), np.diff(indptr))
    down = indices < ends
    a, b = block.first, block.last
    base = a * (a - 1) // 2
    codes = np.sort(pair_code(block.ids[np.stack([indices[down], ends[down]])])) - base
    start, end = base - lower[place], b * (b - 1) // 2 - lower[place + 1]
    for key, ranks in others.items():
        # As `psgnn.graph._sampling.NonEdges` finds the pair of a rank, among the pairs whose larger end is here.
        mine = ranks[(ranks >= start) & (ranks < end)] - start
        below = np.searchsorted(codes - np.arange(codes.size), mine, side="right")
        found[f"others {key}"] = pair_of_code(mine + below + base)
    yield Letter(REPORT, "pairs", found)
