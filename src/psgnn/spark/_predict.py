"""Predictions by Spark with the ready-made weights: what `psgnn.predict` gives, for graphs of any size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from psgnn.anchors._rules import MOST_ROWS, anchor_count
from psgnn.distances._propagation import Floats
from psgnn.distances.spark import _digest, ends_of
from psgnn.errors import InputError
from psgnn.graph._graph import IntArray
from psgnn.graph._options import ReadOptions
from psgnn.graph._read import header_for
from psgnn.graph._sampling import distinct_integers
from psgnn.graph._tables import read_table
from psgnn.positions._context import (
    MOST_REHEARSALS,
    REHEARSAL_SEED,
    rehearsed_of,
    rehearsed_ranks,
)
from psgnn.scoring._answers import ALL, HUBS, LISTED, MOST_NEAR, MOST_ROW
from psgnn.scoring._calibration import (
    RANKED,
    REHEARSED,
    SAMPLED,
    SHARE_MISSING,
    Calibration,
    enough,
    fit_calibration,
    joined,
    parse_missing,
    ranked,
    rehearsal,
)
from psgnn.scoring._network import Network, weights_digest
from psgnn.scoring._pretrained import pretrained
from psgnn.spark._anchors import pick_anchors
from psgnn.spark._blocks import Plan
from psgnn.spark._every_node import embeddings, partners_table
from psgnn.spark._graph import Blocks, ids_of, in_blocks, names_of
from psgnn.spark._learn import NONE, Hidden, Learned, learn, links_of_ranks, scores_of
from psgnn.spark._mail import Letter, Post, check_place, work_folder
from psgnn.spark._search import Finder
from psgnn.spark._tasks import begin_walks, fetch, go_on_with_walks
from psgnn.spark._views import Progress, nothing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STEPS = 1  # raised when the letters of a step change, so that steps of an older version are not gone on with
DEFAULT_PARTITIONS = 200  # of Spark


@dataclass(eq=False)
class SparkScorer:
    """The ready-made weights on a graph that lies in blocks: ids of nodes in, scores and probabilities out."""

    post: Post
    graph: Blocks
    anchors: IntArray
    seed: int = 0
    progress: Progress = nothing
    _finders: dict[int, Finder] = field(default_factory=dict)

    @cached_property
    def network(self) -> Network:
        """The ready-made network."""
        return pretrained().network

    @cached_property
    def learned(self) -> Learned:
        """Positions of all nodes, and what the graph teaches of its own links."""
        self.progress("measuring positions")
        return learn(self.post, self.graph, self.anchors, self.network, progress=self.progress)

    @property
    def plan(self) -> Plan:
        """The blocks' bounds."""
        return self.graph.plan

    def score(self, pairs: IntArray, name: str = "asked pairs") -> Floats:
        """Scores of pairs ``[2, P]``, whether they are linked, and whether a node has no links, ``[P, 3]``."""
        return scores_of(self.post, self.learned, pairs, name)

    def best(self, n: int) -> tuple[IntArray, Floats]:
        """The best pairs that a search for the n best has found, and their scores."""
        for size, finder in self._finders.items():
            if size >= n:
                return finder.ranking
        self.progress("looking for candidates")
        finder = Finder(self.post, self.graph, self.learned, self.network, self.seed)
        finder.ranking = finder.find(n)
        self._finders[n] = finder
        return finder.ranking

    def partners(self, node: int, top: int) -> tuple[IntArray, Floats]:
        """The best partners of a node: pairs ``[2, n]`` and scores, best first."""
        nodes = self.plan.nodes
        others = np.arange(nodes) if nodes <= MOST_ROW else self._near(node)
        others = others[others != node]
        pairs = np.stack([np.full(others.size, node), others])
        found = self.score(pairs, f"partners of {node}")
        free = np.flatnonzero(found[:, 1] == 0)
        best = free[np.argsort(-found[free, 0], kind="stable")[:top]]
        return pairs[:, best], found[best, 0]

    def _near(self, node: int) -> IntArray:
        task = Letter(self.plan.bounds.size - 1, "nodes", {"nodes": np.array([node, node + 1])})
        tasks = self.post.kept(lambda: self.post.letters([task]), f"near {node}")
        go_on = partial(go_on_with_walks, self.plan, MOST_NEAR)
        walked, _ = fetch(
            self.post,
            self.graph.mail,
            tasks,
            self.plan,
            partial(begin_walks, self.plan),
            go_on,
            f"near {node}",
        )
        (done,) = self.post.read_kept(self.post.some(walked, ["done"]))
        hubs = pick_anchors(self.post, self.graph, "degree", min(HUBS, self.plan.nodes), 0)
        return np.union1d(done.arrays["pairs"][1], hubs)

    def calibration(self, missing: float | None) -> Calibration | None:
        """How scores become probabilities; None where the graph has too few links to rehearse with."""
        links, unlinked = self.plan.links, self._unlinked
        if unlinked < 1:
            raise InputError("all nodes are linked with one another, so no link can be missing")
        count = min(SHARE_MISSING * links, unlinked) if missing is None else missing
        if count > unlinked:
            raise InputError(
                f"--missing is {count:g}, but only {unlinked} pairs are not linked; make it smaller"
            )
        known = self._rehearsed
        return None if known is None else fit_calibration(known[0], known[1], known[2], count)

    @property
    def _unlinked(self) -> int:
        return self.plan.nodes * (self.plan.nodes - 1) // 2 - self.plan.links

    @cached_property
    def _rehearsed(self) -> Any:
        """As `psgnn.scoring._calibration` rehearses: links are hidden, and the scorer ranks them among other pairs."""
        links = self.plan.links
        count = rehearsed_of(links)
        if not count:
            return None
        best, now = self.best(RANKED)
        best, now = best[:, :REHEARSED], now[:REHEARSED]
        drawn = np.sort(
            distinct_integers(self._unlinked, min(SAMPLED, self._unlinked), np.random.default_rng(self.seed))
        )
        ranks = {
            place: np.sort(rehearsed_ranks(links, count, REHEARSAL_SEED + place))
            for place in range(MOST_REHEARSALS)
        }
        found, others = links_of_ranks(self.post, self.graph, NONE, ranks, {0: drawn}, "rehearsal: pairs")
        some = others[0]
        new = ranked(now, self.score(some, "rehearsal: others")[:, 0], self._unlinked)
        known = []
        for place, mine in ranks.items():
            self.progress(f"rehearsal {place + 1}")
            hidden = Hidden(mine, found[place])
            pairs = np.concatenate([found[place], best, some], axis=1)
            name = f"rehearsal {place}"
            before = learn(
                self.post, self.graph, self.anchors, self.network, hidden, np.unique(pairs),
                progress=self.progress, name=name,
            )  # fmt: skip
            judged = scores_of(self.post, before, pairs, f"{name}: scores").astype(np.float64)
            self.post.drop(before.measured.mail)
            of_links, of_best, of_some = np.split(judged[:, 0], [count, count + best.shape[1]])
            alone = judged[:count, 2] > 0
            known.append(rehearsal(of_links, alone, ranked(of_best, of_some, self._unlinked), new))
            if enough(known):
                break
        return joined(known)


def prepare(
    post: Post,
    links: DataFrame,
    *,
    anchors: Sequence[Any] | None = None,
    method: str = "mixed",
    seed: int = 0,
    least: int = 1,
    progress: Progress = nothing,
) -> SparkScorer:
    """A scorer of a graph whose links stand in both directions in the columns ``a`` and ``b``."""
    progress("numbering nodes")
    graph = in_blocks(post, links, least=least)
    if anchors is None:
        count = anchor_count(graph.plan.nodes, "log^2")
        fewest = anchor_count(graph.plan.nodes, "log")
        count = min(count, max(fewest, MOST_ROWS // graph.plan.nodes))
        progress(f"picking {count} anchors")
        chosen = pick_anchors(post, graph, method, count, seed)
    else:
        chosen = ids_of(graph.nodes, anchors)
        if np.unique(chosen).size < chosen.size or not chosen.size:
            raise InputError("name each anchor once, and at least one")
    return SparkScorer(post, graph, chosen, seed, progress)


def answer(
    scorer: SparkScorer,
    *,
    top: int | None = None,
    of: Sequence[Any] | None = None,
    pairs: Sequence[tuple[Any, Any]] | None = None,
    missing: str | float | None = None,
) -> list[tuple[Any, Any, float, float | None, float | None]]:
    """Predictions as rows of source, target, score, probability and expected precision, in the order of `predict`."""
    wanted = parse_missing(missing, scorer.plan.links)
    known = np.zeros(0, bool)
    if pairs is not None:
        listed = [(a, b) for a, b in pairs]
        ids = ids_of(scorer.graph.nodes, [name for pair in listed for name in pair]).reshape(-1, 2).T
        if (ids[0] == ids[1]).any():
            raise InputError(f"{listed[int((ids[0] == ids[1]).argmax())]} is not a pair; name two nodes")
        found = scorer.score(ids)
        if top is not None:
            best = np.argsort(-found[:, 0], kind="stable")[:top]
            ids, found = ids[:, best], found[best]
        lists = [(ids, found[:, 0])]
        known = found[:, 1] > 0
    elif of is not None:
        nodes = ids_of(scorer.graph.nodes, of)
        lists = [scorer.partners(int(node), top or LISTED) for node in nodes]
    else:
        if (top or 1) <= RANKED:
            scorer.best(RANKED)  # serves the probabilities, too
        best, scores = scorer.best(top or 1)
        lists = [(best[:, :top], scores[:top])]
    calibration = scorer.calibration(wanted)
    names = names_of(scorer.graph.nodes, np.concatenate([ids.ravel() for ids, _ in lists]))
    rows: list[tuple[Any, Any, float, float | None, float | None]] = []
    for ids, scores in lists:
        likely: list[float | None] = [None] * scores.size
        means = likely
        if calibration is not None:
            chance = calibration.probability(scores)
            none = known if known.size else np.zeros(scores.size, bool)
            likely = [None if linked else float(p) for p, linked in zip(chance, none, strict=True)]
            running = np.cumsum(np.where(none, 0, chance)) / np.arange(1, scores.size + 1)
            means = running.tolist()
        sources, targets = ([names[v] for v in end] for end in ids.tolist())
        rows += zip(sources, targets, scores.tolist(), likely, means, strict=True)
    return rows


def predict(
    spark: SparkSession,
    edges: DataFrame,
    *,
    top: int | None = None,
    of: Any = None,
    pairs: Any = None,
    missing: str | float | None = None,
    source: str | None = None,
    target: str | None = None,
    anchors: Sequence[Any] | None = None,
    method: str = "mixed",
    seed: int = 0,
    work: str | None = None,
    out: str | None = None,
) -> DataFrame:
    """Predict missing links of an edge list that a Spark session holds, with the ready-made weights.

    The graph is undirected and plain; weights, directions and times are not looked at. What is large stays with the
    workers, which need psgnn without torch.

    Args:
        spark: A live session.
        edges: A table of links.
        top: How many predictions; with `of`, per node.
        of: A node or several, by name: their best partners. ``"all"`` is every node, and needs `out`.
        pairs: Pairs to score: ``[("ada", "bob"), ...]``, or a table of two columns.
        missing: How many links are missing: ``"5%"`` of the known ones, or a number. Default: a tenth.
        source: The column of the one node of a link. Default: by its name, or the first column.
        target: That of the other.
        anchors: Anchors by name, instead of those of `method`.
        method: ``mixed``, ``farthest-first``, ``degree`` or ``random``.
        seed: Of random choices.
        work: A folder that all workers see. A job that was killed goes on there, and it is removed in the end. By
            default a temporary folder, which is enough for a session on one machine.
        out: A new folder, to which partners of all nodes are written as Parquet.

    Returns:
        A table with the columns of `psgnn.predict`: ``source``, ``target``, ``score``, ``probability`` and
        ``expected_precision``.

    Example:
        >>> psgnn.spark.predict(spark, spark.read.parquet("edges.parquet"), top=100).show()  # doctest: +SKIP
    """
    check_question(top, of, pairs)
    columns = None if source is None or target is None else (source, target)
    links = ends_of(edges, columns, "the table")
    nodes = None if of is None else [of] if isinstance(of, (str, int)) else list(of)
    if (nodes == [ALL]) != (out is not None):
        raise InputError("partners of all nodes go with out=FOLDER, and other answers without it")
    if hasattr(pairs, "collect"):
        pairs = [tuple(row)[:2] for row in pairs.collect()]
    with work_folder(work) as folder:
        post = post_of(spark, folder, links, [top, nodes, pairs, anchors, method, seed])
        scorer = prepare(post, links, anchors=anchors, method=method, seed=seed)
        if out is not None:
            write_partners(scorer, out, top=top, missing=missing)
            post.clear()
            return spark.read.parquet(out)
        rows = answer(scorer, top=top, of=nodes, pairs=pairs, missing=missing)
        kind = dict(scorer.graph.nodes.dtypes)["name"]
        post.clear()
    fields = f"source {kind}, target {kind}, score double, probability double, expected_precision double"
    return spark.createDataFrame(rows, fields)


def embed(
    spark: SparkSession,
    edges: DataFrame,
    out: str,
    *,
    source: str | None = None,
    target: str | None = None,
    anchors: Sequence[Any] | None = None,
    method: str = "mixed",
    seed: int = 0,
    work: str | None = None,
) -> DataFrame:
    """Write a vector per node of an edge list that a Spark session holds: near nodes are likely to be linked.

    Args:
        spark: A live session.
        edges: A table of links.
        out: A new folder for Parquet.
        source: The column of the one node of a link. Default: by its name, or the first column.
        target: That of the other.
        anchors: Anchors by name, instead of those of `method`.
        method: ``mixed``, ``farthest-first``, ``degree`` or ``random``.
        seed: Of random choices.
        work: As for `predict`.

    Returns:
        A table with the columns ``node`` and ``embedding``.
    """
    columns = None if source is None or target is None else (source, target)
    links = ends_of(edges, columns, "the table")
    with work_folder(work) as folder:
        post = post_of(spark, folder, links, ["embed", anchors, method, seed])
        scorer = prepare(post, links, anchors=anchors, method=method, seed=seed)
        write_embeddings(scorer, out)
        post.clear()
    return spark.read.parquet(out)


def write_partners(
    scorer: SparkScorer, out: str, *, top: int | None, missing: str | float | None, force: bool = False
) -> int:
    """Write the best partners of every node as Parquet, and say how many there are."""
    check_place(scorer.post.spark, out, force=force)
    wanted = parse_missing(missing, scorer.plan.links)
    table, count = partners_table(scorer, top or LISTED, wanted)
    scorer.post.deliver(table, out, force=force)
    return count


def write_embeddings(scorer: SparkScorer, out: str, *, force: bool = False) -> None:
    """Write a vector per node as Parquet."""
    check_place(scorer.post.spark, out, force=force)
    scorer.post.deliver(embeddings(scorer), out, force=force)


def post_of(spark: SparkSession, folder: str, links: DataFrame, question: Any) -> Post:
    """Where letters are kept: a folder in this one, of this graph and this question."""
    identity = _digest(links, [STEPS, weights_digest("best-link"), repr(question)])
    return Post(spark, f"{folder.rstrip('/')}/{identity}", tasks_of(spark))


def tasks_of(spark: SparkSession) -> int:
    """How many tasks a step has: as many as Spark has cores, or ``spark.sql.shuffle.partitions`` where it is set."""
    said = int(spark.conf.get("spark.sql.shuffle.partitions") or DEFAULT_PARTITIONS)
    return said if said != DEFAULT_PARTITIONS else max(int(spark.sparkContext.defaultParallelism), 1)


def check_question(top: int | None, of: Any, pairs: Any) -> None:
    """One of the three questions has to be asked."""
    if (of is not None and pairs is not None) or (of is None and pairs is None and top is None):
        raise InputError(
            "ask for the best pairs (top), the partners of a node (of), or the scores of pairs (pairs)"
        )


def read_named_pairs(path: Any, header: bool | None = None) -> list[tuple[str, str]]:
    """The pairs of names in a small file."""
    how = ReadOptions(header=header_for(path, header))
    table = read_table(Path(path).expanduser(), pairs=True, how=how)
    ends = [column.cast(pl.String).to_list() for column in (table.first, table.second)]
    return list(zip(*ends, strict=True))
