"""Link prediction on a split that was published with the graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from psgnn.errors import InputError, check_integer
from psgnn.graph._graph import OFFICIAL_SPLIT, Graph, GraphBatch, IntArray, to_numpy
from psgnn.graph._sampling import NonEdges, distinct_integers, pair_code
from psgnn.kernels._sampling import pair_of_code
from psgnn.tasks._base import NEGATIVES, Task, checked_graphs
from psgnn.tasks._link import LinkPrediction, sorted_edges


def link_task(graphs: Graph | Sequence[Graph], seed: int = 0, **options: Any) -> LinkPrediction:
    """The link task of the graphs: on their official split if they carry one, else on a random one.

    ``options`` are those of :class:`LinkPrediction`; an official split leaves only ``folds`` to choose.
    """
    listed = checked_graphs(graphs, seed)
    if len(listed) > 1 or not all(name in listed[0].split for name in OFFICIAL_SPLIT):
        return LinkPrediction(listed, seed=seed, **options)
    if options.get("negatives") == "uniform":  # the default of LinkPrediction
        del options["negatives"]
    refused = options.keys() - {"folds"}
    if refused:
        raise InputError(
            f"the graph has an official split, which {'/'.join(sorted(refused))} would change; leave it out, "
            f"or use LinkPrediction for another split"
        )
    return OfficialLinks(listed[0], seed=seed, **options)


class OfficialLinks(LinkPrediction):
    """Which pairs of nodes are linked, on a published split, such as that of ogbl-ddi.

    The graph has the training edges; ``valid_edge``, ``valid_edge_neg``, ``test_edge`` and
    ``test_edge_neg`` are integers ``[2, P]``, given as ``splits`` or else as ``graph.split``. The seed
    draws nothing but the negatives to train on and the folds.

    Negatives to train on are any pairs but the training edges, as in OGB's own baselines: held-out pairs can
    be among them, since to leave those out would make use of the answers.
    """

    headline = "hits@20"
    negatives = "official"

    def __init__(
        self,
        graph: Graph,
        splits: Mapping[str, npt.ArrayLike] | None = None,
        seed: int = 0,
        *,
        folds: int = 10,
    ) -> None:
        (graph,) = checked_graphs(graph, seed)
        check_integer("folds", folds, 2)
        self.folds = int(folds)
        adjacency = graph.adjacency
        # Not that of LinkPrediction, which would make a split of its own.
        Task.__init__(
            self,
            [graph],
            seed,
            np.array([adjacency.num_edges > 0]),
            lambda _: (
                f"it has {adjacency.num_nodes} nodes and no edges to train on; use a graph that has some"
            ),
        )
        self.union = GraphBatch.of_adjacencies([adjacency])
        edges = sorted_edges(adjacency)
        held_out = _held_out(graph.split if splits is None else splits, edges, adjacency.num_nodes)
        self._train_counts = np.array([adjacency.num_edges])
        self._free_pairs = NonEdges(self.ptr, edges)
        size = min(adjacency.num_edges, int(self._free_pairs.sizes[0]))
        ranks = distinct_integers(int(self._free_pairs.sizes[0]), size, self._rng(NEGATIVES, 0))
        negatives = self._free_pairs.unrank(np.sort(ranks))
        self._set_splits(
            [edges, held_out["valid_edge"], held_out["test_edge"]],
            [negatives, held_out["valid_edge_neg"], held_out["test_edge_neg"]],
        )


def _held_out(splits: Mapping[str, Any], edges: IntArray, num_nodes: int) -> dict[str, IntArray]:
    """The held-out pairs, ``u < v`` and sorted as edges are, once every pair is found to stand there once."""
    absent = [name for name in OFFICIAL_SPLIT if name not in splits]
    if absent:
        raise InputError(f"the split lacks {', '.join(absent)}; it needs {', '.join(OFFICIAL_SPLIT)}")
    codes = {name: np.sort(pair_code(_pairs(name, splits[name], num_nodes))) for name in OFFICIAL_SPLIT}
    everything = np.concatenate([*codes.values(), pair_code(edges)])
    source = np.repeat(np.arange(5), [*map(len, codes.values()), edges.shape[1]])
    order = np.argsort(everything, kind="stable")
    twice = np.flatnonzero(np.diff(everything[order]) == 0)
    if twice.size:
        first, second = source[order[twice[0] : twice[0] + 2]]
        names = (*OFFICIAL_SPLIT, "the training edges")
        u, v = pair_of_code(everything[order[twice[:1]]])[:, 0]
        where = f"twice in {names[first]}" if first == second else f"in {names[first]} and {names[second]}"
        raise InputError(f"the pair ({u}, {v}) is {where}; every pair may stand in one place only, once")
    return {name: pair_of_code(code) for name, code in codes.items()}


def _pairs(name: str, values: Any, num_nodes: int) -> IntArray:
    """The pairs of one part of the split, ``[2, P]`` with ``u < v``."""
    pairs = to_numpy(values)
    if pairs.ndim != 2 or pairs.shape[0] != 2 or not pairs.size or pairs.dtype.kind not in "iu":
        raise InputError(f"{name} must be integers of shape [2, P], found {pairs.dtype} {list(pairs.shape)}")
    wrong = np.flatnonzero(
        (pairs.min(axis=0) < 0) | (pairs.max(axis=0) >= num_nodes) | (pairs[0] == pairs[1])
    )
    if wrong.size:
        u, v = pairs[:, wrong[0]]
        raise InputError(
            f"{name} has ({u}, {v}) at place {wrong[0]}, which are not two nodes of 0..{num_nodes - 1}"
        )
    return np.sort(pairs.astype(np.int64), axis=0)
