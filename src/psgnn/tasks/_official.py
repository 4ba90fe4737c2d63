"""Link prediction on a split that was published with the graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from psgnn.errors import InputError, check_integer
from psgnn.graph._graph import OFFICIAL_SPLIT, Graph, GraphBatch
from psgnn.graph._links import KnownLinks
from psgnn.graph._sampling import NonEdges, distinct_integers
from psgnn.tasks._base import NEGATIVES, Task, checked_graphs
from psgnn.tasks._link import LinkPrediction
from psgnn.tasks._links import given_pairs


def link_task(graphs: Graph | Sequence[Graph], seed: int = 0, **options: Any) -> LinkPrediction:
    """The link task of the graphs: on their official split if they carry one, else on a random one.

    ``options`` are those of :class:`LinkPrediction`; an official split leaves only ``folds`` to choose.
    """
    listed = checked_graphs(graphs, seed)
    if len(listed) > 1 or not all(name in listed[0].split for name in OFFICIAL_SPLIT):
        return LinkPrediction(listed, seed=seed, **options)
    if options.get("negatives") == "uniform":  # the default of LinkPrediction
        del options["negatives"]
    if options.get("split") == "random":
        del options["split"]
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
        self.split = "random"
        self.union = GraphBatch.of([graph])
        self._links = KnownLinks(self.union)
        edges = self._links.pairs
        parts = graph.split if splits is None else splits
        absent = [name for name in OFFICIAL_SPLIT if name not in parts]
        if absent:
            raise InputError(f"the split lacks {', '.join(absent)}; it needs {', '.join(OFFICIAL_SPLIT)}")
        held_out = given_pairs({name: parts[name] for name in OFFICIAL_SPLIT}, edges, self.space, graph.names)
        self._train_counts = np.array([edges.shape[1]])
        self._free_pairs = NonEdges(self.space, edges)
        size = min(edges.shape[1], int(self._free_pairs.sizes[0]))
        ranks = distinct_integers(int(self._free_pairs.sizes[0]), size, self._rng(NEGATIVES, 0))
        negatives = self._free_pairs.unrank(np.sort(ranks))
        self._set_splits(
            [edges, held_out["valid_edge"], held_out["test_edge"]],
            [negatives, held_out["valid_edge_neg"], held_out["test_edge_neg"]],
        )
