"""Hops, walks, the spectral basis and components, all in one loop of steps: what a block does in each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from psgnn.distances._propagation import Floats, step_weights, whole_lines
from psgnn.graph._graph import IntArray
from psgnn.kernels._propagation import smooth_rows, walk_rows
from psgnn.positions._context import log_degrees
from psgnn.positions._measure import DIFFUSION_STEPS, RESTARTS
from psgnn.positions._spectral import regulariser, scales
from psgnn.spark._blocks import Block, Doubles, Plan, by_kind
from psgnn.spark._mail import REPORT, Arrays, Letter

STEPS = 20  # of PageRank
SMOOTHED = 16  # steps that smooth the basis
FOLDS = (4, 8, 12, 16)  # after which it is made orthonormal
WORD = 64
Numbers = npt.NDArray[np.floating[Any]]
Links = tuple[IntArray, npt.NDArray[np.int32], IntArray]


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
