"""Link prediction on a split that was published with the graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from psgnn.errors import InputError, check_integer
from psgnn.graph._graph import OFFICIAL_SPLIT, Graph, GraphBatch, to_numpy
from psgnn.graph._pair_space import KnownLinks
from psgnn.graph._sampling import NonEdges, distinct_integers
from psgnn.tasks._base import NEGATIVES, Task, checked_graphs
from psgnn.tasks._link import LinkPrediction
from psgnn.tasks._links import given_pairs, listed_pairs
from psgnn.tasks._metrics import check_metric

TEST_SPLIT = OFFICIAL_SPLIT[2:]
CARVED = 0.05  # share of the links of a published graph that validate, where its split has a test alone


def link_task(graphs: Graph | Sequence[Graph], seed: int = 0, **options: Any) -> LinkPrediction:
    """The link task of the graphs: on their official split if they carry one, else on a random one.

    ``options`` are those of :class:`LinkPrediction`. An official split leaves ``folds`` and ``headline`` to choose,
    and ``val`` if it has a test alone: then the validation links are a share of the graph's, and they are visible when
    the test pairs are scored.
    """
    listed = checked_graphs(graphs, seed)
    split = listed[0].split
    if len(listed) > 1 or not all(name in split for name in TEST_SPLIT):
        return LinkPrediction(listed, seed=seed, **options)
    if options.get("negatives") == "uniform":  # the default of LinkPrediction
        del options["negatives"]
    if options.get("split") == "random":
        del options["split"]
    whole = all(name in split for name in OFFICIAL_SPLIT)
    refused = options.keys() - ({"folds", "headline"} if whole else {"folds", "headline", "val"})
    if refused:
        raise InputError(
            f"the graph has an official split, which {'/'.join(sorted(refused))} would change; leave it out, "
            f"or use LinkPrediction for another split"
        )
    if whole:
        return OfficialLinks(listed[0], seed=seed, **options)
    options = {"val": CARVED, "test_sees_validation": True, **options}
    options |= {"test_links": split["test_edge"], "test_nonlinks": split["test_edge_neg"]}
    return LinkPrediction([replace(listed[0], split={})], seed=seed, **options)


class OfficialLinks(LinkPrediction):
    """Predict links on a published split, such as that of ogbl-ddi.

    The graph has the training edges. The splits are ``valid_edge``, ``valid_edge_neg``, ``test_edge`` and
    ``test_edge_neg``, integers ``[2, P]``, given as ``splits`` or else as ``graph.split``. The seed draws only the
    negatives to train on and the folds.

    Negatives to train on are any pairs but the training edges, as in OGB's own baselines. Held-out pairs can be among
    them, since leaving them out would use the answers.

    Negatives ``[2, P, K]`` are K for each positive, which is ranked among these alone (HeaRT, ogbl-citation2). They
    are used as published: some may be links.
    """

    headline: str = "hits@20"
    negatives = "official"

    def __init__(
        self,
        graph: Graph,
        splits: Mapping[str, npt.ArrayLike] | None = None,
        seed: int = 0,
        *,
        folds: int = 10,
        headline: str | None = None,
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
        asked = {name: _checked_shape(name, parts[name]) for name in OFFICIAL_SPLIT}
        own = {name: pairs for name, pairs in asked.items() if pairs.ndim == 3}
        shared = {name: pairs for name, pairs in asked.items() if name not in own}
        held_out = given_pairs(shared, edges, self.space, graph.names)
        for name, pairs in own.items():
            of = asked[name.removesuffix("_neg")]
            if pairs.shape[1] != of.shape[1]:
                raise InputError(
                    f"{name} has negatives of {pairs.shape[1]} positives, there are {of.shape[1]}"
                )
            order = np.argsort(self.space.rank(self.space.oriented(of.astype(np.int64))), kind="stable")
            held_out[name] = listed_pairs(name, pairs[:, order].reshape(2, -1), self.space, graph.names)
        self._train_counts = np.array([edges.shape[1]])
        self._free_pairs = NonEdges(self.space, edges)
        size = min(edges.shape[1], int(self._free_pairs.sizes[0]))
        ranks = distinct_integers(int(self._free_pairs.sizes[0]), size, self._rng(NEGATIVES, 0))
        negatives = self._free_pairs.unrank(np.sort(ranks))
        self._set_splits(
            [edges, held_out["valid_edge"], held_out["test_edge"]],
            [negatives, held_out["valid_edge_neg"], held_out["test_edge_neg"]],
        )
        each = {name: pairs.shape[2] for name, pairs in own.items()}
        self.val = replace(self.val, own_negatives=each.get("valid_edge_neg", 0))
        self.test = replace(self.test, own_negatives=each.get("test_edge_neg", 0))
        self.headline = check_metric(headline or ("mrr" if own else "hits@20"))


def _checked_shape(name: str, values: Any) -> npt.NDArray[Any]:
    """The pairs as an array; what is wrong with two-dimensional ones is found later."""
    pairs = to_numpy(values)
    if pairs.ndim == 3 and not (
        name.endswith("_neg") and pairs.shape[0] == 2 and pairs.size and pairs.dtype.kind in "iu"
    ):
        raise InputError(f"{name} must be integers of shape [2, P], found {pairs.dtype} {list(pairs.shape)}")
    return pairs
