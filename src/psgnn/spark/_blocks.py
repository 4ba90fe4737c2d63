"""What the places of a graph do: blocks of nodes with their rows of links, in NumPy.

A *block* owns consecutive nodes. It has their rows, knows the degrees of all neighbours, and which of its nodes other
blocks need. Several *views* of the graph, each without some hidden links, are measured at the same time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from psgnn.distances._propagation import Floats, step_weights, whole_lines
from psgnn.graph._graph import IntArray
from psgnn.graph._sampling import pair_code
from psgnn.kernels._pairs import add_triangles
from psgnn.kernels._propagation import degree_rows, smooth_rows, spread_rows, sum_rows, walk_rows
from psgnn.kernels._sampling import pair_of_code
from psgnn.positions._context import log_degrees, shape_sums
from psgnn.positions._measure import DIFFUSION_STEPS, RESTARTS, Parts, channel_sums, fill_channels
from psgnn.positions._roles import role_columns
from psgnn.positions._spectral import regulariser, scales
from psgnn.spark._mail import REPORT, Arrays, Letter

STEPS = 20  # of PageRank
WORD = 64
PARTS = Parts(features=False)
Doubles = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.floating[Any]]


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
    )  # a third node that is no neighbour of an own node closes no triangle here
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


# Hops, walks and the spectral basis, all in one loop


@dataclass(frozen=True)
class Loop:
    """What a step of the loop needs besides the block: which step, and what all blocks found in the last one."""

    t: int
    anchors: IntArray
    turn: Numbers | None = None  # [V, r, r], to be multiplied into the basis first
    sums: Doubles | None = None  # [V, r], of the scaled basis over all nodes
    roots: Floats | None = None  # [V, K], square roots of the anchors' degrees
    far: tuple[int, ...] = ()  # the most hops of each view
    means: Numbers | None = None  # [V, C], of the channels
    log_means: Doubles | None = None  # [V], of the log degrees at the ends of links
    deviations: Floats | None = None
    rows_of: dict[int, IntArray] = field(default_factory=dict)  # the nodes that a view is asked about

    @property
    def vectors(self) -> int:
        """r."""
        return min(self.anchors.size, 64)


SMOOTHED = 16  # steps that smooth the basis
FOLDS = (4, 8, 12, 16)  # after which it is made orthonormal


def start(plan: Plan, loop: Loop, place: int, letters: list[Letter]) -> Iterator[Letter]:
    """Step 0: every anchor has reached itself."""
    kinds = by_kind(letters)
    block = Block(plan, place, kinds["block"][0].arrays)
    yield block.letter
    closed = kinds["closed"][0].arrays["closed"]
    for letter in kinds.get("closed elsewhere", []):
        closed[:, letter.arrays["nodes"] - block.first] += letter.arrays["closed"]
    views, count, r = len(plan.hidden), loop.anchors.size, loop.vectors
    here = np.flatnonzero((loop.anchors >= block.first) & (loop.anchors < block.last))
    nodes = loop.anchors[here] - block.first
    shape = (views, block.size)
    state: Arrays = {
        "closed": closed,
        "hops": np.full((*shape, count), -1, np.int16),
        "bits": np.zeros((*shape, -(-count // WORD)), np.uint64),
        "label": np.broadcast_to(np.arange(block.first, block.last), shape).copy(),
        "walk": np.zeros((*shape, count), np.float32),
        "ranks": np.zeros((views, len(RESTARTS), block.size, count), np.float32),
        "spreads": np.zeros((views, len(DIFFUSION_STEPS), block.size, count), np.float32),
        "basis": np.zeros((*shape, r), np.float32),
    }
    state["hops"][:, nodes, here] = 0
    for node, lane in zip(nodes.tolist(), here.tolist(), strict=True):
        state["bits"][:, node, lane // WORD] |= np.uint64(1 << lane % WORD)
    roots = np.zeros((views, count))
    logs = np.zeros((views, 2))
    for view in range(views):
        indptr, _, degrees = block.links(view)
        own = degrees[block.own]
        linked = np.maximum(own, 1).astype(np.float32)
        state["walk"][view, nodes, here] = 1 / linked[nodes]
        for j, restart in enumerate(RESTARTS):
            state["ranks"][view, j, nodes, here] = restart
        scale = scales(own, regulariser(plan.mean_degree(view)))
        some = here < r
        state["basis"][view, nodes[some], here[some]] = scale[nodes[some]]
        roots[view, here] = np.sqrt(linked[nodes])
        logs[view] = (log_degrees(own) * own).sum(), own.sum()
    sums = state["basis"].sum(axis=1, dtype=np.float64)
    yield Letter(REPORT, "start", {"sums": sums, "roots": roots, "logs": logs})
    yield Letter(place, "state", state)
    yield from _news(block, state, 0)


def _news(block: Block, state: Arrays, t: int) -> Iterator[Letter]:
    """What the next step needs of this one."""
    needed = {"bits": state["bits"], "label": state["label"]}
    if t < STEPS:
        needed["walk"] = state["walk"]
    if t <= SMOOTHED:
        needed["basis"] = state["basis"]
    yield from block.send("news", **needed)


def advance(plan: Plan, loop: Loop, place: int, letters: list[Letter]) -> Iterator[Letter]:
    """Step t: hops of t, a step of the walks and of the smoothing, and the least node that is known in reach."""
    kinds = by_kind(letters)
    block = Block(plan, place, kinds["block"][0].arrays)
    yield block.letter
    state, news, t = kinds["state"][0].arrays, kinds.get("news", []), loop.t
    views, r = len(plan.hidden), loop.vectors
    bits = block.gather(state["bits"], news, "bits")
    labels = block.gather(state["label"], news, "label")
    walk = block.gather(state["walk"], news, "walk") if t <= STEPS else None
    basis = block.gather(state["basis"], news, "basis") if t <= SMOOTHED + 1 else None
    reached = np.zeros(views, np.int64)
    relabelled = np.zeros(views, np.int64)
    sums, gram = np.zeros((views, r)), np.zeros((views, r, r))
    for view in range(views):
        indptr, indices, degrees = block.links(view)
        reached[view] = _spread_bits(block, indptr, indices, bits[view], state, view, t)
        relabelled[view] = _spread_labels(block, indptr, indices, labels[view], state["label"][view])
        if walk is not None:
            _walk(block, loop, (indptr, indices, degrees), walk[view], state, view)
        if basis is not None:
            sums[view], gram[view] = _smooth(
                block, loop, (indptr, indices, degrees), basis[view], state, view
            )
    found: Arrays = {"reached": reached, "relabelled": relabelled}
    if basis is not None:
        found |= {"sums": sums, "gram": gram}
    yield Letter(REPORT, "step", found)
    yield Letter(place, "state", state)
    yield from _news(block, state, t)


def _rows_with_links(block: Block, indptr: IntArray) -> tuple[IntArray, IntArray]:
    """Own nodes that have links, counted from the first, and where their rows begin."""
    own = indptr[block.at : block.at + block.size + 1]
    some = np.flatnonzero(np.diff(own))
    return some, own[some]


def _spread_bits(
    block: Block, indptr: IntArray, indices: npt.NDArray[np.int32],
    bits: npt.NDArray[np.uint64], state: Arrays, view: int, t: int,
) -> int:  # fmt: skip
    """What the neighbours reached a step ago and a node had not: its hops are t."""
    some, starts = _rows_with_links(block, indptr)
    hops, mine = state["hops"][view], np.zeros((block.size, bits.shape[1]), np.uint64)
    if some.size and bits.any():
        mine[some] = np.bitwise_or.reduceat(bits[indices], starts, axis=0)
    lanes = np.arange(hops.shape[1])
    came = (mine[:, lanes // WORD] >> (lanes % WORD).astype(np.uint64)) & np.uint64(1) > 0
    came &= hops < 0
    hops[came] = t
    fresh = np.zeros_like(mine)
    for word in range(mine.shape[1]):
        part = came[:, word * WORD : (word + 1) * WORD]
        weights = np.uint64(1) << np.arange(part.shape[1], dtype=np.uint64)
        fresh[:, word] = np.where(part, weights, np.uint64(0)).sum(axis=1, dtype=np.uint64)
    state["bits"][view] = fresh
    return int(came.sum())


def _spread_labels(
    block: Block, indptr: IntArray, indices: npt.NDArray[np.int32], labels: IntArray, own: IntArray
) -> int:
    some, starts = _rows_with_links(block, indptr)
    if not some.size:
        return 0
    least = np.minimum.reduceat(labels[indices], starts)
    changed = int((least < own[some]).sum())
    own[some] = np.minimum(own[some], least)
    return changed


Links = tuple[IntArray, npt.NDArray[np.int32], IntArray]


def _walk(block: Block, loop: Loop, links: Links, rows: Floats, state: Arrays, view: int) -> None:
    """A step of `psgnn.distances._propagation.walk_columns`."""
    indptr, indices, degrees = links
    count = rows.shape[1]
    x, y = whole_lines(block.ids.size, count), whole_lines(block.ids.size, count)
    x[:, :count] = rows
    linked = np.maximum(degrees, 1).astype(np.float32)
    sums = np.zeros((len(RESTARTS), block.ids.size, count), np.float32)
    sums[:, block.own] = state["ranks"][view]
    weights = step_weights(RESTARTS, loop.t, STEPS)
    walk_rows(indptr, indices, x, 1 / linked, weights, sums, y, block.at, block.at + block.size)
    state["ranks"][view] = sums[:, block.own]
    own = y[block.own, :count]
    state["walk"][view] = own
    if loop.t in DIFFUSION_STEPS:
        assert loop.roots is not None
        spread = own * np.sqrt(linked[block.own])[:, None]
        state["spreads"][view, DIFFUSION_STEPS.index(loop.t)] = spread * loop.roots[view]


def _smooth(
    block: Block, loop: Loop, links: Links, rows: Floats, state: Arrays, view: int
) -> tuple[Doubles, Doubles]:
    """A step of `psgnn.positions._spectral`: the sums of the scaled basis, and its Gram matrix or its image's."""
    indptr, indices, degrees = links
    plan, r = block.plan, rows.shape[1]
    assert loop.sums is not None
    if loop.turn is not None:
        rows = (rows.astype(np.float64) @ loop.turn[view]).astype(np.float32)
    tau = regulariser(plan.mean_degree(view))
    scale = scales(degrees, tau)
    kept = np.float32(0.5 if loop.t <= SMOOTHED else 0)
    x, y = whole_lines(block.ids.size, r), whole_lines(block.ids.size, r)
    x[:, :r] = rows
    everywhere = np.zeros((1, x.shape[1]), np.float32)
    everywhere[0, :r] = np.float32(tau / plan.nodes) * loop.sums[view]
    one_graph = np.zeros(block.ids.size, np.int64)
    weights = (1 - kept) * scale**2
    smooth_rows(indptr, indices, x, kept, weights, everywhere, one_graph, y, block.at, block.at + block.size)
    before, after = x[block.own, :r], y[block.own, :r]
    unscaled = scale[block.own, None]
    if loop.t > SMOOTHED:
        state["basis"][view] = before
        return np.zeros(r), (before / unscaled).T.astype(np.float64) @ (after / unscaled)
    state["basis"][view] = after
    basis = (after / unscaled).astype(np.float64)
    gram = basis.T @ basis if loop.t in FOLDS else np.zeros((r, r))
    return after.sum(axis=0, dtype=np.float64), gram


# What is made of them


def finish_first(plan: Plan, loop: Loop, place: int, letters: list[Letter]) -> Iterator[Letter]:
    """Sums of the channels; sizes of components to the blocks that own their labels; walks to the neighbours."""
    kinds = by_kind(letters)
    block = Block(plan, place, kinds["block"][0].arrays)
    yield block.letter
    state = kinds["state"][0].arrays
    views = len(plan.hidden)
    sums = np.zeros((views, len(PARTS.channels)))
    walks = np.zeros((views, block.size))
    for view in range(views):
        for rows in _row_blocks(block.size):
            sums[view] += channel_sums(_channels(state, view, loop, rows), 1).sum(axis=0)
        indptr, indices, degrees = block.links(view)
        walks[view] = _degrees_around(block, indptr, indices, degrees)[1]
        labels, counts = np.unique(state["label"][view], return_counts=True)
        for owner, part in parts_by_owner(plan, labels):
            found = {"view": np.array([view]), "labels": labels[part], "counts": counts[part]}
            yield Letter(owner, f"members {view:03d}", found)
    yield Letter(REPORT, "sums", {"sums": sums})
    yield Letter(place, "state", {**state, "walks": walks})
    yield from block.send("walks", walks=walks)


def _row_blocks(size: int) -> list[slice]:
    return [slice(first, min(first + 2**12, size)) for first in range(0, size, 2**12)]


def _channels(state: Arrays, view: int, loop: Loop, rows: slice) -> Floats:
    """The channels of some own nodes in their own units, ``[n, K, C]``."""
    hops = state["hops"][view, rows]
    out = np.empty((*hops.shape, len(PARTS.channels)), np.float32)
    far = np.full((hops.shape[0], 1), 1 + loop.far[view])
    fill_channels(PARTS, hops, far, [*state["ranks"][view][:, rows], *state["spreads"][view][:, rows]], out)
    return out


def _degrees_around(
    block: Block, indptr: IntArray, indices: npt.NDArray[np.int32], degrees: IntArray
) -> Doubles:
    logs = np.log1p(np.arange(int(degrees.max(initial=0)) + 1, dtype=np.float64))
    out = np.zeros((4, block.ids.size))
    degree_rows(indptr, indices, degrees, logs, out, block.at, block.at + block.size)
    return out[:, block.own]


def finish_second(plan: Plan, loop: Loop, place: int, letters: list[Letter]) -> Iterator[Letter]:
    """Squares of the channels, what the shape of the graph is made of, and walks of three steps; component sizes."""
    kinds = by_kind(letters)
    block = Block(plan, place, kinds["block"][0].arrays)
    yield block.letter
    state = kinds["state"][0].arrays
    views = len(plan.hidden)
    assert loop.means is not None
    assert loop.log_means is not None
    squares, further, shapes = np.zeros((views, len(PARTS.channels))), np.zeros((views, block.size)), []
    walks = np.asarray(block.gather(state["walks"], kinds.get("walks", []), "walks"), np.float64)
    for view in range(views):
        for rows in _row_blocks(block.size):
            channels = _channels(state, view, loop, rows) - loop.means[view].astype(np.float32)
            squares[view] += channel_sums(channels, 2).sum(axis=0)
        indptr, indices, degrees = block.links(view)
        out = np.zeros(block.ids.size)
        sum_rows(indptr, indices, np.ascontiguousarray(walks[view]), out, block.at, block.at + block.size)
        further[view] = out[block.own]
        own, logs = degrees[block.own].astype(np.float64), log_degrees(degrees)
        here = np.repeat(logs[block.own], np.diff(indptr)[block.own])
        mean = float(loop.log_means[view])
        shapes.append(
            shape_sums(
                own, state["closed"][view], state["hops"][view], here, logs[indices],
                plan.mean_degree(view), (mean, mean),
            )
        )  # fmt: skip
        members = kinds.get(f"members {view:03d}", [])
        if members:
            labels = np.concatenate([letter.arrays["labels"] for letter in members])
            counts = np.concatenate([letter.arrays["counts"] for letter in members])
            distinct, places = np.unique(labels, return_inverse=True)
            total = np.bincount(places, counts)
            for letter in members:
                sizes = total[np.searchsorted(distinct, letter.arrays["labels"])].astype(np.int64)
                yield Letter(
                    letter.sender, f"sizes {view:03d}", {"labels": letter.arrays["labels"], "sizes": sizes}
                )
    yield Letter(REPORT, "squares", {"squares": squares, "shapes": np.array(shapes, np.float64)})
    yield Letter(place, "state", {**state, "further": further})


def finish_third(plan: Plan, loop: Loop, place: int, letters: list[Letter]) -> Iterator[Letter]:
    """Positions: of view 0 all rows, of the others those of the nodes that are asked about."""
    kinds = by_kind(letters)
    block = Block(plan, place, kinds["block"][0].arrays)
    yield block.letter
    state = kinds["state"][0].arrays
    assert loop.means is not None
    assert loop.deviations is not None
    assert loop.turn is not None
    largest = np.zeros(len(plan.hidden))
    for view in range(len(plan.hidden)):
        indptr, indices, degrees = block.links(view)
        own = degrees[block.own]
        sent = kinds.get(f"sizes {view:03d}", [])
        labels = np.concatenate([letter.arrays["labels"] for letter in sent])
        sizes = np.concatenate([letter.arrays["sizes"] for letter in sent])
        order = np.argsort(labels)
        members = sizes[order][np.searchsorted(labels[order], state["label"][view])]
        logs, walks, leaves, most = _degrees_around(block, indptr, indices, degrees)
        around = logs, walks, leaves, most, state["further"][view]
        roles = role_columns(own.astype(np.float64), around, members, plan.nodes, state["closed"][view])
        largest[view] = roles[:, 6].max(initial=0)
        asked = loop.rows_of.get(view)
        if asked is None:
            rows = np.arange(block.size)
        else:
            rows = asked[(asked >= block.first) & (asked < block.last)] - block.first
        channels = np.empty((rows.size, loop.anchors.size, len(PARTS.channels)), np.float32)
        for some in _row_blocks(rows.size):
            part = _channels(state, view, loop, rows[some])  # type: ignore[arg-type]
            part -= loop.means[view].astype(np.float32)
            channels[some] = part / loop.deviations[view]
        scale = scales(own, regulariser(plan.mean_degree(view)))
        basis = (state["basis"][view] / scale[:, None])[rows] @ loop.turn[view].astype(np.float32)
        yield Letter(
            place,
            f"positions {view:03d}",
            {
                "nodes": rows + block.first, "hops": state["hops"][view, rows], "channels": channels,
                "basis": basis, "roles": roles[rows],
            },
        )  # fmt: skip
        if view == 0 and asked is None:
            yield from block.send("around", x=roles[None])
            yield Letter(place, "roles", {"x": roles})
    yield Letter(REPORT, "largest", {"largest": largest})


def spread_around(plan: Plan, place: int, letters: list[Letter]) -> Iterator[Letter]:
    """Means over the neighbours, one step further: the second time the traits are whole."""
    kinds = by_kind(letters)
    block = Block(plan, place, kinds["block"][0].arrays)
    yield block.letter
    yield from (letter for letter in letters if letter.kind.startswith("positions"))
    traits = kinds["roles"][0].arrays["x"]
    last = traits[:, -10:]
    x = np.ascontiguousarray(block.gather(last[None], kinds.get("around", []), "x")[0], np.float32)
    indptr, indices, degrees = block.links(0)
    y = np.empty_like(x)
    one = np.ones(block.ids.size, np.float32)
    share = (1 / np.maximum(degrees, 1)).astype(np.float32)
    spread_rows(indptr, indices, x, one, share, y, block.at, block.at + block.size)
    own = y[block.own]
    yield Letter(place, "roles", {"x": np.concatenate([traits, own], axis=1)})
    yield from block.send("around", x=own[None])


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
