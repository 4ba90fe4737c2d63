"""Views of a graph, measured: one loop of steps over all blocks, small problems in between, and what is made of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from psgnn.distances._propagation import Floats
from psgnn.graph._graph import IntArray
from psgnn.kernels._propagation import degree_rows, spread_rows, sum_rows
from psgnn.positions._context import ShapeSums, log_degrees, shape_of, shape_sums
from psgnn.positions._measure import channel_sums, deviation_of, fill_channels
from psgnn.positions._roles import role_columns
from psgnn.positions._spectral import inverse_root, rayleigh_ritz, regulariser, scales
from psgnn.spark._blocks import (
    PARTS,
    Block,
    Doubles,
    Plan,
    by_kind,
    count_triangles,
    parts_by_owner,
    send_onward,
)
from psgnn.spark._mail import REPORT, Arrays, Letter, Post, Work
from psgnn.spark._steps import FOLDS, SMOOTHED, STEPS, Loop, advance, start

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Progress = Callable[[str], None]


def nothing(text: str) -> None:
    """Show no progress."""


@dataclass(frozen=True)
class Measured:
    """Views that were measured: their positions are in ``mail``, by block; ``shapes [V, 13]`` and ``values [V, r]``."""

    plan: Plan
    mail: DataFrame
    shapes: Floats
    values: Floats
    levels: int


def total(letters: list[Letter], name: str) -> Doubles:
    """The sum of what all blocks report."""
    return np.asarray(np.sum([letter.arrays[name] for letter in letters], axis=0))


def measure(
    post: Post,
    mail: DataFrame,
    plan: Plan,
    anchors: IntArray,
    rows_of: dict[int, IntArray],
    *,
    progress: Progress = nothing,
    name: str = "graph",
) -> Measured:
    """Measure all views of a plan from these anchors; ``rows_of`` has the nodes of views that are not needed whole."""
    given = mail

    def step(stage: str, work: Work) -> list[Letter]:
        nonlocal mail
        before = mail
        mail, found = post.step(f"{name} {stage}", mail, work)
        if before is not given:
            post.drop(before)
        return found

    step("onward", partial(send_onward, plan))
    step("triangles", partial(count_triangles, plan))
    loop = Loop(0, anchors, rows_of=rows_of)
    reports = step("start", partial(start, plan, loop))
    views = len(plan.hidden)
    sums, logs = total(reports, "sums"), total(reports, "logs")
    roots = total(reports, "roots").astype(np.float32)
    far, turn, t = np.zeros(views, np.int64), None, 0
    moving = True
    while moving or t <= SMOOTHED or t < STEPS:
        t += 1
        loop = replace(loop, t=t, sums=sums, roots=roots, turn=turn)
        reports = step(f"step {t}", partial(advance, plan, loop))
        reached, relabelled = total(reports, "reached"), total(reports, "relabelled")
        far[reached > 0] = t
        moving = bool(reached.any() or relabelled.any())
        progress(f"step {t} reached {int(reached[0])} hops")
        turn = None
        if t <= SMOOTHED:
            sums = total(reports, "sums")
        if t in FOLDS:
            turn = np.stack([inverse_root(gram) for gram in total(reports, "gram")])
            sums = np.einsum("vr,vrs->vs", sums, turn)
        if t == SMOOTHED + 1:
            found = [rayleigh_ritz(small) for small in total(reports, "gram")]
            values = np.stack([value for value, _ in found])
            rotation = np.stack([turn for _, turn in found])
    loop = replace(loop, far=tuple(far.tolist()), turn=rotation)
    reports = step("sums", partial(finish_first, plan, loop))
    entries = plan.nodes * anchors.size
    means = (total(reports, "sums") / entries).astype(np.float32)
    loop = replace(loop, means=means, log_means=logs[:, 0] / np.maximum(logs[:, 1], 1))
    reports = step("squares", partial(finish_second, plan, loop))
    deviations = deviation_of((total(reports, "squares") / entries).astype(np.float32))
    shapes = [
        sum(
            (ShapeSums(*letter.arrays["shapes"][view]) for letter in reports[1:]),
            ShapeSums(*reports[0].arrays["shapes"][view]),
        )
        for view in range(views)
    ]
    loop = replace(loop, deviations=deviations)
    reports = step("positions", partial(finish_third, plan, loop))
    largest = np.max([letter.arrays["largest"] for letter in reports], axis=0)
    found_shapes = [shape_of(shapes[v], values[v], float(largest[v])) for v in range(views)]
    if 0 not in rows_of:
        step("traits", partial(spread_around, plan))
        step("more traits", partial(spread_around, plan))
    return Measured(plan, mail, np.array(found_shapes, np.float32), values, t)


# What blocks make of the steps


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
