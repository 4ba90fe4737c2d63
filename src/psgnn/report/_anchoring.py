"""The anchors of a run: how they came to be chosen, and how good they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from psgnn.anchors._diagnostics import anchor_diagnostics
from psgnn.anchors._rules import select_anchors
from psgnn.console import progress
from psgnn.errors import InputError
from psgnn.graph._graph import Graph, IntArray
from psgnn.report._drawing import Step, Unit, nearest_hops
from psgnn.training._run import Run

HOPS = 3  # an anchor covers the nodes within this many
REFERENCES = ("random", "degree", "farthest-first")
MOST_MEASURED = 50_000_000  # nodes x anchors that are worth the time
MOST_COUNTED_HOPS = 20


def final_units(run: Run) -> list[list[Unit]]:
    """The anchors of each graph, local ids; none for a model without anchors."""
    ptr = run.view.union.ptr
    if run.anchors is None:
        return [[] for _ in range(ptr.size - 1)]
    return [_units(anchors, int(start)) for anchors, start in zip(run.anchors, ptr, strict=False)]


def steps_of(run: Run, g: int, final: list[Unit]) -> list[Step]:
    """How the anchors of graph `g` came to be.

    Where training moves them, they are those of each validation. Where they are fixed single nodes, they come one
    after another, in the order of the picker. Fixed sets are one step.
    """
    if not final:
        return []
    if moves(run):
        try:
            return [
                Step(int(entry["epoch"]), _of_graph(entry["anchors"], run.view.union.ptr, g))
                for entry in run.history
                if "anchors" in entry
            ]
        except (KeyError, TypeError, ValueError):
            raise InputError("the record of the run has a damaged history of anchors; train again") from None
    if any(len(unit) > 1 for unit in final):
        return [Step(None, final)]
    shares = _explained(run, g, len(final))
    return [Step(None, final[: k + 1], shares[k]) for k in range(len(final))]


def _explained(run: Run, g: int, count: int) -> list[float | None]:
    """What the first 1, 2, ... anchors of a graph explain, where they were learned."""
    graphs = run.record.get("explained", [])
    shares = graphs[g] if g < len(graphs) else []
    return [*shares] if len(shares) == count else [None] * count


def moves(run: Run) -> bool:
    """Whether the history shows more than one choice of anchors."""
    traced = [entry["anchors"] for entry in run.history if "anchors" in entry]
    return any(anchors != traced[0] for anchors in traced[1:])


def describe(run: Run, final: list[list[Unit]], *, show_progress: bool = False) -> dict[str, Any]:
    """Kind and number of the anchors, how they were chosen, their diagnostics, and how far the nodes are."""
    config = run.model.config
    count = sum(map(len, final))
    if not count:
        return {"kind": "none", "picker": config.picker, "count": 0, "moves": False,
                "diagnostics": [], "reached": [], "unreached": 0, "why": "this model has no anchors"}  # fmt: skip
    sets = any(len(unit) > 1 for units in final for unit in units)
    union = run.view.union
    nearest = np.concatenate([nearest_hops(union.graph(g), units) for g, units in enumerate(final)])
    within = np.bincount(nearest[nearest >= 0].astype(np.int64))
    if within.size > MOST_COUNTED_HOPS:
        within = np.append(within[: MOST_COUNTED_HOPS - 1], within[MOST_COUNTED_HOPS - 1 :].sum())
    rows, why = _diagnostics(run, final, sets, show_progress)
    return {
        "kind": "sets" if sets else "nodes",
        "picker": config.picker,
        "count": count,
        "moves": moves(run),
        "diagnostics": rows,
        "reached": within.tolist(),
        "unreached": int((nearest < 0).sum()),
        "why": why,
    }


def _diagnostics(
    run: Run, final: list[list[Unit]], sets: bool, show_progress: bool
) -> tuple[list[dict[str, Any]], str | None]:
    """Coverage, overlap, resolving power and symmetric pairs, beside rules that pick as many; or why not."""
    if sets:
        return [], "the diagnostics are those of single nodes; this model measures distances to sets"
    union = run.view.union
    sizes = [int(size) * len(units) for size, units in zip(union.sizes, final, strict=True)]
    if sum(sizes) > MOST_MEASURED:
        return [], f"{union.num_nodes} nodes and {sum(map(len, final))} anchors are too many to measure here"
    rules: dict[str, list[dict[str, float]]] = {}
    for g, units in progress(list(enumerate(final)), "measuring anchors", show=show_progress):
        if not units:
            continue
        graph = Graph(union.graph(g))
        chosen = {"this run": np.array([unit[0] for unit in units])}
        chosen |= {rule: select_anchors(graph, rule, len(units)) for rule in REFERENCES}
        for rule, nodes in chosen.items():
            rules.setdefault(rule, []).append(anchor_diagnostics(graph, nodes, HOPS))
    rows = [
        {"rule": rule, **{key: float(np.mean([one[key] for one in found])) for key in found[0]}}
        for rule, found in rules.items()
    ]
    return rows, None


def _units(anchors: list[Any], start: int) -> list[Unit]:
    return [tuple(v - start for v in (unit if isinstance(unit, list) else [unit])) for unit in anchors]


def _of_graph(anchors: list[Any], ptr: IntArray, g: int) -> list[Unit]:
    """Of anchors of all graphs together, what lies in graph `g`."""
    first, last = int(ptr[g]), int(ptr[g + 1])
    inside = [
        [v for v in (unit if isinstance(unit, list) else [unit]) if first <= v < last] for unit in anchors
    ]
    return _units([unit for unit in inside if unit], first)
