"""Weights that come with the package, on graphs that they have never seen."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

from psgnn.anchors._rules import batch_anchors, named_anchors
from psgnn.console import html_line, html_table, progress, shortened
from psgnn.distances._propagation import Floats
from psgnn.errors import InputError
from psgnn.graph._graph import Graph, GraphBatch, IntArray, as_graph
from psgnn.positions._context import SHAPE, context_of, lessons_of, rehearsal_links
from psgnn.positions._measure import positions_of
from psgnn.positions._statistics import pair_statistics, statistic_groups
from psgnn.positions._view import View
from psgnn.scoring._names import node_ids, pair_ids
from psgnn.scoring._network import Network, Seat, Weights, network_of, read_weights
from psgnn.scoring._scorer import Evidence, Questions, blocks_of

log = logging.getLogger(__name__)

MOST_SETS, SETS_OF_NODES = 3, 60_000
SLACK = 0.05  # of a range, that a graph may lie outside of it without a warning
ONE_THREAD_NODES = 10_000
AT_ONCE_NODES = (
    200  # of graphs that are answered at once: a second rehearsal would take as long as the first answer
)
PAIR_BLOCK, NODE_BLOCK = 2**12, 2**11  # whose rows are in memory at once


@dataclass(frozen=True, eq=False)
class Pretrained:
    """Weights that need no training: ``pretrained("best-link").on([graph])`` scores and embeds like a trained run.

    ``best-link`` says which nodes are linked, ``best-pair`` which belong together.

    ``about`` says what the weights were trained on and how.
    """

    network: Network
    about: dict[str, Any]

    def __repr__(self) -> str:
        return f"Pretrained({self.about['name']})"

    def on(
        self,
        graphs: Graph | Sequence[Graph],
        *,
        strict: bool = False,
        anchors: Sequence[str | int] | None = None,
    ) -> PretrainedScorer:
        """The weights on graphs; node features are not looked at.

        Unless `strict`, or if there are too few links, weights for links also hide some of the graphs' own links,
        look at how they differ from other pairs, and correct the scores by what would have found them. No weight of
        the network is changed by that.

        `anchors` are anchors of your own, by name or id, in a single graph. They replace all that are chosen by rule.
        """
        listed = list(graphs) if isinstance(graphs, (list, tuple)) else [graphs]
        known = [as_graph(graph, f"graph {place}") for place, graph in enumerate(listed)]
        names = [graph.names for graph in known]
        own = None if anchors is None else named_anchors(anchors, names)
        return self.on_union(GraphBatch.of(known), names, strict=strict, anchors=own)

    def on_union(
        self,
        union: GraphBatch,
        names: list[list[str]],
        *,
        strict: bool = False,
        sets: int | None = None,
        anchors: IntArray | None = None,
    ) -> PretrainedScorer:
        """The same on graphs that are laid side by side already.

        What one set of anchors does not see another does, so scores are the mean over `sets` of anchors. By default
        there are `MOST_SETS`, and fewer where the graph is large.
        """
        strict = strict or self.about["config"]["task"] != "link"
        if anchors is not None:
            sets = 1
        elif sets is None:
            sets = min(max(SETS_OF_NODES // max(union.num_nodes, 1), 1), MOST_SETS)
        with fitting_blas_threads(union.num_nodes):
            shared: dict[Any, Any] | None = {} if sets > 1 else None
            views = (View(union, shared=shared) for _ in range(sets))
            seats = tuple(self._seat(view, strict, place, anchors) for place, view in enumerate(views))
            if shared:
                shared.clear()  # it was measured from all anchors
        return PretrainedScorer(self, seats, names, strict, anchors)

    def _seat(self, view: View, strict: bool, place: int, own: IntArray | None) -> Seat:
        """The network on a view, from the anchors of one place in the order of sets."""
        config = self.about["config"]
        count = "log^2" if config["anchors"] == "log2" else config["anchors"]  # as older weights spell it
        by_rule = (config["picker"], count, config["seed"] + place)
        nodes = batch_anchors(view.union, *by_rule) if own is None else own[None]
        kinds = () if view.union.kinds is None or strict else view.union.kinds.names
        positions = positions_of(view, nodes, replace(self.network.parts, kinds=kinds))
        if place == 0:
            self._warn_of_unusual(context_of(positions).shape)
        seat = Seat(self.network, positions, strict)
        return seat if strict else replace(seat, correction=seat.correct(lessons_of(positions)))

    def _warn_of_unusual(self, shapes: Floats) -> None:
        """Say in which respects graphs of these shapes differ from all that the weights were trained on."""
        unusual: list[tuple[str, str, str]] = []
        for name, values in zip(SHAPE, shapes.T, strict=True):
            low, high = self.about["range"][name]
            slack = SLACK * (high - low)
            outside = values[(values < low - slack) | (values > high + slack)]
            if outside.size:
                value, limit = float(outside[0]), low if outside[0] < low else high
                bound = "at least" if outside[0] < low else "at most"
                if name.startswith("log "):
                    name, value, limit = name.removeprefix("log "), math.exp(value), math.exp(limit)
                unusual.append((name, f"{value:.3g}", f"{bound} {limit:.3g}"))
        if not unusual:
            return
        what, much, allowed = unusual[0]
        if what == "nodes":  # which says why the rest is unusual, too
            size = "smaller" if allowed.startswith("at least") else "larger"
            found = f"is {size} than any the ready-made weights were trained on ({much} nodes; {allowed})"
        else:
            parts = ", ".join(f"{what} {much} (there {allowed})" for what, much, allowed in unusual)
            found = f"is unlike those that the ready-made weights were trained on: {parts}"
        log.warning("this graph %s. Treat the scores with care, or train a model.", found)


@dataclass(frozen=True, eq=False)
class PretrainedScorer(Questions):
    """Ready-made weights on graphs: a `psgnn.scoring.Scorer`.

    ``seats`` are the network as seen from several sets of anchors; scores are their mean, embeddings are of the first.
    ``own_anchors`` are the ids of anchors that were given, not chosen by rule.
    """

    weights: Pretrained
    seats: tuple[Seat, ...]
    node_names: list[list[str]]
    strict: bool
    own_anchors: IntArray | None = None
    similarity = None
    embeds_some = True

    @property
    def batch(self) -> GraphBatch:
        """The graphs."""
        return self.seats[0].positions.view.union

    @property
    def hidden(self) -> IntArray:
        """Links that are not shown: none."""
        return np.zeros((2, 0), np.int64)

    @property
    def names_by_number(self) -> list[list[str]]:
        """The names of the nodes of every graph that was given."""
        return self.node_names

    def rehearsals(self) -> Iterator[tuple[PretrainedScorer, IntArray]]:
        """The same weights on the graphs without a twentieth of their links (2000 at most), and these links."""
        if self.task != "link":
            return
        for rest, links in rehearsal_links(self.batch):
            again = self.weights.on_union(
                rest, self.node_names, strict=self.strict, sets=len(self.seats), anchors=self.own_anchors
            )
            yield again, links
            if self.batch.num_nodes <= AT_ONCE_NODES:
                return

    @property
    def task(self) -> str:
        """What the scores are about: ``link`` or ``pair``."""
        return str(self.weights.about["config"]["task"])

    @property
    def record(self) -> dict[str, Any]:
        """Which weights these are, for the documents of commands."""
        about = self.weights.about
        return {"pretrained": about["name"], "strict": self.strict, "seed": about["config"]["seed"]}

    @property
    def anchors(self) -> list[list[int]]:
        """Anchors of each graph, ids in the batch."""
        return [[v for v in row if v >= 0] for row in self.seats[0].positions.nodes.tolist()]

    def score(self, pairs: Any, *, show_progress: bool = False) -> Floats:
        """Score pairs: logits ``[P]``, higher means more likely.

        Pairs are ids ``[2, P]`` in the batch, names ``[("Ada", "Rune"), ...]``, or a table of two columns of names.
        """
        found = pair_ids(self, pairs)
        scores = np.zeros(found.shape[1], np.float32)
        blocks = blocks_of(found.shape[1], PAIR_BLOCK)
        with fitting_blas_threads(self.batch.num_nodes):
            for block in progress(blocks, "scoring pairs", show=show_progress):
                some = found[:, block]  # one array for all seats: they share what does not depend on anchors
                for seat in self.seats:
                    scores[block] += seat.score(some)
        return scores / np.float32(len(self.seats))

    def evidence(self, pairs: IntArray) -> Evidence:
        """What the scores of pairs ``[2, P]`` rest on, by kind."""
        known = [pair_statistics(seat.positions, pairs) for seat in self.seats]
        groups = np.array(statistic_groups(self.seats[0].positions.parts))

        def score(mixed: Sequence[Floats], rows: Sequence[IntArray]) -> Floats:
            found = [
                seat.score_statistics(part[place], pairs[:, np.zeros_like(place)])
                for seat, part, place in zip(self.seats, mixed, rows, strict=True)
            ]
            return np.asarray(np.mean(found, axis=0))

        return Evidence(known, [groups] * len(known), score)

    def embed(self, nodes: Any = None, *, show_progress: bool = False) -> Floats:
        """Embed some nodes, by name or id, or all: ``[n, d]``; near nodes are likely to be linked."""
        chosen = node_ids(self, nodes)
        seat, blocks = self.seats[0], blocks_of(chosen.size, NODE_BLOCK)
        with fitting_blas_threads(self.batch.num_nodes):
            shown = progress(blocks, "embedding", show=show_progress)
            return np.concatenate([seat.network.embed(seat.positions, chosen[block]) for block in shown])

    def score_embedded(self, h: Floats, pairs: IntArray) -> Floats:
        r"""Score pairs by the distance of embeddings alone: :math:`b - e^s \lVert h_u - h_v \rVert_2`."""
        t = self.weights.network.tensors
        apart = np.square(h[pairs[0]] - h[pairs[1]]).sum(axis=1)
        distance = np.exp(t["embedding_decoder.scale"]) * np.sqrt(apart + 1e-8)
        return np.asarray(t["embedding_decoder.offset"] - distance, np.float32)

    def __repr__(self) -> str:
        sizes = f"nodes={self.batch.num_nodes}, edges={self.batch.adjacency.num_edges}"
        return f"PretrainedScorer({self.weights.about['name']}, graphs={self.batch.num_graphs}, {sizes})"

    def _repr_html_(self) -> str:
        """Which weights, on which graphs, and the names of the anchors, for notebooks; names are escaped."""
        names = [name for part in self.node_names for name in part]
        anchors = shortened([names[v] for row in self.anchors for v in row])
        batch = self.batch
        rows = [
            ["graphs", batch.num_graphs],
            ["nodes", batch.num_nodes],
            ["edges", batch.adjacency.num_edges],
        ]
        title = f"{self.weights.about['name']} (ready-made weights), {self.task} task"
        lines = html_line("not tested on these graphs") + html_line(f"anchors: {anchors}")
        lines += html_line(
            "ask: scorer.predict(top=50), scorer.predict(of=NODE), scorer.similar(NODE), scorer.explain(A, B)"
        )
        return html_table(title, ["seen", "count"], rows) + lines


@contextmanager
def fitting_blas_threads(num_nodes: int) -> Iterator[None]:
    """One thread of BLAS where the graph is small: threads wait for one another longer than they work."""
    with _libraries().limit(limits=1, user_api="blas") if num_nodes <= ONE_THREAD_NODES else nullcontext():
        yield


@cache
def _libraries() -> ThreadpoolController:
    """The libraries with threads of their own; to look for them anew takes a millisecond."""
    return ThreadpoolController()


def pretrained(name: str = "best-link") -> Pretrained:
    """Return the ready-made weights of this name, for any graph.

    >>> scorer = psgnn.pretrained("best-link").on([graph])
    >>> scorer.score([[0, 1], [2, 3]])
    """
    return from_weights(read_weights(name), name)


def from_weights(weights: Weights, name: str) -> Pretrained:
    """The same from weights that were read already."""
    try:
        config = weights.about["config"]
        if config["decoder"] != "context" or set(weights.about["range"]) != set(SHAPE):
            raise ValueError("they are of another kind")
        network = network_of(weights.tensors, config)
    except (KeyError, TypeError, ValueError) as error:
        reason = " ".join(str(error).split())[:100]
        raise InputError(f"the weights {name} are damaged ({reason}); install psgnn again") from None
    return Pretrained(network, weights.about)
