"""What blocks of a graph find together is what one machine finds: the steps of the engine spark, without Java."""

from __future__ import annotations

import os
import tempfile
from functools import partial
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

import psgnn
from psgnn.graph import Graph
from psgnn.paths import locked
from psgnn.positions._context import context_of
from psgnn.positions._statistics import pair_statistics
from psgnn.scoring import calibrate, top_links
from psgnn.scoring._pretrained import PretrainedScorer
from psgnn.spark._anchors import RULES, pick_anchors
from psgnn.spark._every_node import partners_of_all
from psgnn.spark._mail import ANSWER, Letter, letters_of, pack, rows_of, unpack, work_folder
from psgnn.spark._predict import SparkScorer, answer
from psgnn.spark._tasks import Judge, describe
from spark_stand_ins import Desk, blocks_of

WEIGHTS = psgnn.pretrained()


def hubs() -> nx.Graph:
    """Two hubs with most of the links, paths between some leaves, and a component of its own."""
    graph = nx.barabasi_albert_graph(260, 3, seed=1)
    graph.add_edges_from((v % 2, v) for v in range(2, 200))
    graph.add_edges_from([(260, 261), (261, 262), (262, 263)])
    return graph


GRAPHS = {
    "hubs": hubs,
    "karate": nx.karate_club_graph,  # too few links for lessons
    "grid": lambda: nx.convert_node_labels_to_integers(
        nx.grid_2d_graph(40, 8)
    ),  # more levels than PageRank has steps
    "blocks": lambda: nx.planted_partition_graph(6, 30, 0.3, 0.01, seed=2),
}


def both(graph: nx.Graph, parts: int = 4) -> tuple[Graph, PretrainedScorer, SparkScorer]:
    """The weights on a graph, on this machine and in blocks, seen from the same anchors."""
    plain = psgnn.read_graph(graph)
    anchors = psgnn.select_anchors(plain, "mixed", "log^2", 0)
    here = WEIGHTS.on([plain], anchors=anchors.tolist())
    there = SparkScorer(Desk(), blocks_of(Desk(), plain, parts), anchors)  # type: ignore[arg-type]
    return plain, here, there


@pytest.mark.parametrize("name", GRAPHS)
def test_columns_and_statistics_are_those_of_one_machine(name: str) -> None:
    graph, here, there = both(GRAPHS[name]())
    measured, positions = there.learned.measured, here.seats[0].positions
    kept = sorted((m for m in measured.mail if m.kind == "positions 000"), key=lambda m: m.place)
    for part in ("hops", "channels", "roles"):
        found = np.concatenate([letter.arrays[part] for letter in kept])
        assert np.array_equal(found, getattr(positions, part)), part
    assert np.allclose(measured.shapes[0], context_of(positions).shape[0], rtol=1e-5, atol=1e-6)
    pairs = np.random.default_rng(0).integers(0, graph.num_nodes, (2, 800))
    pairs = pairs[:, pairs[0] != pairs[1]]
    judge = there.learned.judge
    raw = Judge(judge.plan, judge.anchors, judge.values)
    found = describe(there.post, measured.mail, raw, {0: pairs}, "statistics")[0]
    assert np.allclose(found, pair_statistics(positions, pairs), rtol=1e-4, atol=1e-5)
    # A statistic that lies on the bound of a bin may fall on its other side, so a few scores differ by more.
    scores = there.score(pairs)
    apart = np.abs(scores[:, 0] - here.score(pairs))
    assert np.quantile(apart, 0.9) < 1e-3
    assert apart.max() < 0.3
    linked = np.array([graph.adjacency.indices.size and graph_has(graph, u, v) for u, v in pairs.T])
    assert np.array_equal(scores[:, 1] > 0, linked)


def graph_has(graph: Graph, u: int, v: int) -> bool:
    """Whether two nodes are linked."""
    row = graph.adjacency.indices[graph.adjacency.indptr[u] : graph.adjacency.indptr[u + 1]]
    return v in row


def test_the_list_and_its_probabilities_are_those_of_one_machine() -> None:
    _, here, there = both(GRAPHS["blocks"]())
    best, scores = top_links(here, 100)
    found, found_scores = there.best(100)
    common = set(map(tuple, best.T.tolist())) & set(map(tuple, found[:, :100].T.tolist()))
    assert len(common) >= 95
    ours, theirs = there.calibration(None), calibrate(here)
    assert ours is not None
    assert theirs is not None
    assert ours.missing == theirs.missing
    assert np.allclose(ours.probability(found_scores[:100]), theirs.probability(scores), atol=0.05)


def test_candidates_hold_what_the_search_of_one_machine_finds() -> None:
    graph, here, there = both(nx.barabasi_albert_graph(600, 3, seed=3), parts=5)
    best, _ = top_links(here, 200)
    found = there.best(200)[0][:, :200]
    assert not any(graph_has(graph, u, v) for u, v in found.T)
    common = set(map(tuple, best.T.tolist())) & set(map(tuple, found.T.tolist()))
    assert len(common) >= 190


def test_partners_of_a_node_are_those_of_one_machine() -> None:
    _, here, there = both(GRAPHS["hubs"]())
    frame = psgnn.scoring.answer(here, of="7", top=20)
    pairs, _ = there.partners(7, 20)
    assert len(set(frame["target"].to_list()) & set(map(str, pairs[1].tolist()))) >= 19


def test_partners_of_all_nodes_are_those_of_one_machine() -> None:
    _, here, there = both(nx.barabasi_albert_graph(520, 2, seed=4), parts=3)
    frame = psgnn.scoring.answer(here, of="all", top=3)
    mail, count = partners_of_all(there, 3)
    rows = [letter.arrays for letter in mail if letter.place == ANSWER]
    found = {name: np.concatenate([row[name] for row in rows]) for name in rows[0]}
    assert count == found["source"].size == frame.height
    ours = set(zip(map(str, found["source"].tolist()), map(str, found["target"].tolist()), strict=True))
    theirs = set(zip(frame["source"], frame["target"], strict=True))
    assert len(ours & theirs) > 0.9 * len(theirs)
    assert np.isfinite(found["probability"]).all()


@pytest.mark.parametrize("rule", RULES)
def test_anchors_are_distinct_nodes_whatever_the_rule(rule: str) -> None:
    plain = psgnn.read_graph(hubs())
    desk = Desk()
    blocks = blocks_of(desk, plain, 3)
    found = pick_anchors(desk, blocks, rule, 20, 1)  # type: ignore[arg-type]
    assert np.unique(found).size == 20
    assert np.array_equal(found, pick_anchors(desk, blocks, rule, 20, 1))  # type: ignore[arg-type]
    if rule == "degree":
        assert set(found[:2].tolist()) == {0, 1}
    if rule == "farthest-first":
        hops = psgnn.shortest_distances(plain, found[:10].tolist())
        assert hops[:260].min(axis=1).mean() < psgnn.shortest_distances(plain, list(range(10)))[:260].mean()


def test_letters_of_any_size_arrive_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = {"a": np.arange(70_000), "none": np.zeros((2, 0), np.int16), "flags": np.array([True, False])}
    back = unpack(pack(arrays))
    assert all(
        np.array_equal(back[name], arrays[name]) and back[name].dtype == arrays[name].dtype for name in arrays
    )
    monkeypatch.setattr("psgnn.spark._mail.PART", 1000)
    rows = list(rows_of(Letter(3, "kind", arrays), 5))
    assert len(rows) > 500
    (letter,) = letters_of(sorted(rows, key=lambda row: row[:4]))
    assert (letter.place, letter.kind, letter.sender) == (3, "kind", 5)
    assert np.array_equal(letter.arrays["a"], arrays["a"])


def test_what_the_driver_is_told_does_not_grow_with_the_graph() -> None:
    told = []
    for nodes in (200, 800):
        plain = psgnn.read_graph(nx.barabasi_albert_graph(nodes, 3, seed=1))
        desk = Desk()
        scorer = SparkScorer(desk, blocks_of(desk, plain, 3), np.arange(8))  # type: ignore[arg-type]
        assert scorer.learned.measured.levels >= 20
        told.append(max(size for name, size in desk.told.items() if "lessons" not in name))
    assert told[1] < 1.1 * told[0]


def test_given_pairs_are_answered_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    _, here, there = both(nx.karate_club_graph())
    monkeypatch.setattr(
        "psgnn.spark._predict.ids_of", lambda _, names: np.array([int(name) for name in names])
    )
    monkeypatch.setattr("psgnn.spark._predict.names_of", lambda _, ids: {int(v): str(v) for v in ids})
    rows = answer(there, pairs=[("5", "3"), ("0", "1"), ("9", "20")])
    assert [row[:2] for row in rows] == [("5", "3"), ("0", "1"), ("9", "20")]
    expected = here.score([("5", "3"), ("0", "1"), ("9", "20")])
    assert np.allclose([row[2] for row in rows], expected, atol=1e-3)
    assert all(row[3] is None for row in rows)  # too few links to rehearse with


def test_what_a_killed_job_left_is_removed_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    left, link, other = (tmp_path / f"psgnn-spark-{name}" for name in ("left", "link", "other"))
    kept = tmp_path / "kept"
    for folder in (left, other, kept):
        (folder / "0000-links").mkdir(parents=True)
    link.symlink_to(kept)
    for folder in (left, other):
        os.utime(folder, (0, 0))
    with locked(other):  # by a process that is at work
        os.utime(other, (0, 0))
        with work_folder(None) as folder:
            assert Path(folder).parent == tmp_path
            assert not left.exists()
            with work_folder("hdfs://there/work") as named:
                assert named == "hdfs://there/work"
            with work_folder(None) as beside:
                assert Path(beside).is_dir()
        assert (other / "0000-links").is_dir()
    assert not Path(folder).exists()
    assert (kept / "0000-links").is_dir()
    assert link.is_symlink()


def test_a_step_names_what_it_does() -> None:
    desk = Desk()
    letter = Letter(0, "a", {"x": np.arange(3)})
    mail, told = desk.step("twice", [letter], partial(twice))
    assert [m.arrays["x"].tolist() for m in mail] == [[0, 2, 4]]
    assert told == []


def twice(place: int, letters: list[Letter]) -> list[Letter]:
    """Every letter back, with its numbers doubled."""
    return [Letter(place, "b", {"x": 2 * letter.arrays["x"]}) for letter in letters]
