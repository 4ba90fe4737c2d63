"""What a run answers about pairs and nodes: how sure it is, why, and the best partners of a node."""

from __future__ import annotations

from typing import Any

import numpy as np

from psgnn.graph._graph import IntArray
from psgnn.graph._pair_space import links_of, pair_space
from psgnn.report._page import shown_name
from psgnn.scoring import Calibration, explain
from psgnn.scoring._calibration import reliability_of
from psgnn.scoring._candidates import near_partners
from psgnn.scoring._explain import main_reason
from psgnn.training._run import Run

# Of all runs of a page together.
MOST_EXPLAINED = 50
MOST_NODES = 500
LEAST_EXPLAINED, LEAST_NODES = 1, 10  # of each run
EXPLAINED_EDGES = 20_000_000  # that explanations may look at: of larger graphs fewer pairs are explained
PARTNERS = 5  # of a node
MOST_SCORED = 20_000  # pairs, to find partners
CANDIDATES = 16  # at two hops, and as many at three
LONGEST_PATH = 12
NAME = 60
NO_LINKS = "this run predicts shared classes, not links, so no probability of a link belongs to its scores"
FEW_LINKS = "the graph has too few links to say how likely a missing link is"


def expectation(run: Run, calibration: Calibration | None) -> dict[str, Any]:
    """How many links are taken for missing, and how far the probabilities can be trusted; or why there are none."""
    if calibration is None:
        return {"why": NO_LINKS if run.task != "link" else FEW_LINKS, "missing": None, "reliability": None}
    return {"why": None, "missing": calibration.missing, "reliability": reliability_of(calibration)}


def explanations(run: Run, pairs: IntArray, runs: int) -> list[dict[str, Any]]:
    """Why the first of these pairs ``[2, n]`` have their scores, by rank, with names as a page shows them."""
    adjacency = run.batch.adjacency
    fitting = EXPLAINED_EDGES // max(adjacency.num_nodes + adjacency.indices.size, 1)
    most = max(min(MOST_EXPLAINED // runs, fitting), LEAST_EXPLAINED)
    return [
        {"rank": i + 1, **_shown(explain(run, u, v))} for i, (u, v) in enumerate(pairs[:, :most].T.tolist())
    ]


def _shown(found: dict[str, Any]) -> dict[str, Any]:
    """An explanation with short names and paths."""
    anchors = found["anchors"]
    return {
        "score": round(found["score"], 4),
        "hops": found["hops"],
        "num_shared": found["num_shared"],
        "shared": [shown_name(name, NAME) for name in found["shared_neighbours"]],
        "linked_back": found.get("linked_back"),
        "paths": [_short([shown_name(name, NAME) for name in path]) for path in found["paths"]],
        "ways": [_short_ways(ways) for ways in found.get("path_directions", [])],
        "anchors": None
        if anchors is None
        else {
            kind: [
                [shown_name(each["anchor"], NAME), each["hops_source"], each["hops_target"]] for each in some
            ]
            for kind, some in anchors.items()
        },
        "base": found["base"],
        "contributions": found["contributions"],
    }


def _short(path: list[str]) -> list[str]:
    if len(path) <= LONGEST_PATH:
        return path
    half = LONGEST_PATH // 2
    return [*path[:half], f"… {len(path) - 2 * half} more …", *path[-half:]]


def _short_ways(ways: list[str]) -> list[str]:
    """The directions of the links of a path, as `_short` leaves them."""
    if len(ways) < LONGEST_PATH:
        return ways
    half = LONGEST_PATH // 2
    return [*ways[: half - 1], "-", "-", *ways[1 - half :]]


def add_partners(
    run: Run, drawn: list[dict[str, Any]], predicted: IntArray, calibration: Calibration | None, runs: int
) -> None:
    """Give every drawn graph the best partners of its nodes: ``partners``, and whether all pairs were scored.

    The nodes of predictions come first, then others by chance, up to `MOST_NODES` of a page. Small graphs have all
    their pairs scored. In larger ones the candidates are nodes two and three hops away and the listed predictions.
    In directed graphs ``partners`` are the nodes that a node will point to, and ``partners_in`` those that will point
    to it.
    """
    _add_list(run, drawn, predicted, calibration, runs, "partners")
    if run.batch.kinds is not None and run.batch.kinds.directed:
        _add_list(run, drawn, predicted[::-1], calibration, runs, "partners_in")


def _add_list(
    run: Run,
    drawn: list[dict[str, Any]],
    predicted: IntArray,
    calibration: Calibration | None,
    runs: int,
    key: str,
) -> None:
    """Add one list of partners of every node; of ``partners_in`` the pairs ``[2, P]`` are target and source."""
    turn = [1, 0] if key == "partners_in" else [0, 1]
    most = max(MOST_NODES // runs, LEAST_NODES) // len(drawn)
    room = MOST_SCORED // len(drawn)
    asked = [_candidates(run, g, graph, predicted, most, room, turn) for g, graph in enumerate(drawn)]
    pairs = np.concatenate([each for each, _ in asked], axis=1)
    best, scores = _best(pairs, run.score(pairs[turn]))
    likely = None if calibration is None else calibration.probability(scores)
    because = main_reason(run, best[turn])
    for g, (graph, (_, whole)) in enumerate(zip(drawn, asked, strict=True)):
        first, last = run.batch.ptr[g : g + 2].tolist()
        place = {int(v) + first: i for i, v in enumerate(graph["shown"])}
        listed: dict[int, list[dict[str, Any]]] = {}
        for i in np.flatnonzero((best[0] >= first) & (best[0] < last)).tolist():
            u, v = best[:, i].tolist()
            listed.setdefault(place[u], []).append(
                {
                    "place": place.get(v, -1),
                    "name": None if v in place else shown_name(run.node_names[g][v - first], NAME),
                    "score": round(float(scores[i]), 4),
                    "probability": None if likely is None else float(likely[i]),
                    "because": because[i],
                }
            )
        graph[key] = [{"node": node, "rows": rows} for node, rows in listed.items()]
        graph["partners_whole"] = whole


def _candidates(
    run: Run, g: int, graph: dict[str, Any], predicted: IntArray, most: int, room: int, turn: list[int]
) -> tuple[IntArray, bool]:
    """Unlinked pairs ``[2, P]`` of some drawn nodes of a graph with others, and whether these are all others."""
    batch = run.batch
    first, last = batch.ptr[g : g + 2].tolist()
    own = predicted[:, (predicted[0] >= first) & (predicted[0] < last)]
    shown = graph["shown"] + first
    chance = np.random.default_rng(0).permutation(shown)
    order = np.concatenate([own.T.ravel()[np.isin(own.T.ravel(), shown)], chance])
    nodes = order[np.sort(np.unique(order, return_index=True)[1])][: max(most, 1)]
    whole = nodes.size * (last - first) <= room
    if whole:
        us, vs = np.repeat(nodes, last - first), np.tile(np.arange(first, last), nodes.size)
    else:
        nodes = nodes[: max(room // (2 * CANDIDATES), 1)]
        us, vs = near_partners(batch.adjacency, nodes, CANDIDATES)
        both = np.concatenate([own, own[::-1]], axis=1)
        both = both[:, np.isin(both[0], nodes)]
        us, vs = np.concatenate([us, both[0]]), np.concatenate([vs, both[1]])
    pairs = np.unique(np.stack([us, vs]), axis=1)
    space = pair_space(batch)
    pairs = pairs[:, space.holds(pairs[turn])]
    linked = np.isin(space.rank(space.oriented(pairs[turn])), space.rank(links_of(batch, space)))
    return pairs[:, ~linked], whole


def _best(pairs: IntArray, scores: Any) -> tuple[IntArray, Any]:
    """The pairs of the `PARTNERS` best scores of each first node, best first."""
    order = np.lexsort([-scores, pairs[0]])
    pairs, scores = pairs[:, order], scores[order]
    start = np.searchsorted(pairs[0], pairs[0])  # where the pairs of this node begin
    kept = np.arange(scores.size) - start < PARTNERS
    return pairs[:, kept], scores[kept]
