"""The driver's part of measuring: one loop of steps over all blocks, and small problems in between."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from psgnn.distances._propagation import Floats
from psgnn.graph._graph import IntArray
from psgnn.positions._context import ShapeSums, shape_of
from psgnn.positions._measure import deviation_of
from psgnn.positions._spectral import inverse_root, rayleigh_ritz
from psgnn.spark import _blocks as blocks
from psgnn.spark._blocks import Doubles, Loop, Plan
from psgnn.spark._mail import Letter, Post, Work

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

    step("onward", partial(blocks.send_onward, plan))
    step("triangles", partial(blocks.count_triangles, plan))
    loop = Loop(0, anchors, rows_of=rows_of)
    reports = step("start", partial(blocks.start, plan, loop))
    views = len(plan.hidden)
    sums, logs = total(reports, "sums"), total(reports, "logs")
    roots = total(reports, "roots").astype(np.float32)
    far, turn, t = np.zeros(views, np.int64), None, 0
    moving = True
    while moving or t <= blocks.SMOOTHED or t < blocks.STEPS:
        t += 1
        loop = replace(loop, t=t, sums=sums, roots=roots, turn=turn)
        reports = step(f"step {t}", partial(blocks.advance, plan, loop))
        reached, relabelled = total(reports, "reached"), total(reports, "relabelled")
        far[reached > 0] = t
        moving = bool(reached.any() or relabelled.any())
        progress(f"step {t} reached {int(reached[0])} hops")
        turn = None
        if t <= blocks.SMOOTHED:
            sums = total(reports, "sums")
        if t in blocks.FOLDS:
            turn = np.stack([inverse_root(gram) for gram in total(reports, "gram")])
            sums = np.einsum("vr,vrs->vs", sums, turn)
        if t == blocks.SMOOTHED + 1:
            found = [rayleigh_ritz(small) for small in total(reports, "gram")]
            values = np.stack([value for value, _ in found])
            rotation = np.stack([turn for _, turn in found])
    loop = replace(loop, far=tuple(far.tolist()), turn=rotation)
    reports = step("sums", partial(blocks.finish_first, plan, loop))
    entries = plan.nodes * anchors.size
    means = (total(reports, "sums") / entries).astype(np.float32)
    loop = replace(loop, means=means, log_means=logs[:, 0] / np.maximum(logs[:, 1], 1))
    reports = step("squares", partial(blocks.finish_second, plan, loop))
    deviations = deviation_of((total(reports, "squares") / entries).astype(np.float32))
    shapes = [
        sum(
            (ShapeSums(*letter.arrays["shapes"][view]) for letter in reports[1:]),
            ShapeSums(*reports[0].arrays["shapes"][view]),
        )
        for view in range(views)
    ]
    loop = replace(loop, deviations=deviations)
    reports = step("positions", partial(blocks.finish_third, plan, loop))
    largest = np.max([letter.arrays["largest"] for letter in reports], axis=0)
    found_shapes = [shape_of(shapes[v], values[v], float(largest[v])) for v in range(views)]
    if 0 not in rows_of:
        step("traits", partial(blocks.spread_around, plan))
        step("more traits", partial(blocks.spread_around, plan))
    return Measured(plan, mail, np.array(found_shapes, np.float32), values, t)
