"""Answers about directed, two-sided and timed graphs: candidates, partners, probabilities, metrics, runs on disk."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch

from psgnn.errors import InputError
from psgnn.graph import Graph
from psgnn.graph._kinds import merged_graph
from psgnn.graph._pair_space import pair_space
from psgnn.models import build_model
from psgnn.models._models import rivalry
from psgnn.models._view import view_of
from psgnn.positions._context import RIVAL
from psgnn.scoring import answer, evaluate_links, explain, predict, pretrained, top_links
from psgnn.scoring._scorer import Scorer
from psgnn.tasks import LinkPrediction
from psgnn.training import fit, load
from psgnn.training._batches import batches_of

PEOPLE, FILMS = 60, 140


def two_sided(seed: int = 0, *, directed: bool = False, times: bool = False) -> Graph:
    """People of two tastes, films of two kinds; films have the smaller ids."""
    rng = np.random.default_rng(seed)
    people, films = rng.integers(0, PEOPLE, 2500), rng.integers(0, FILMS, 2500)
    alike = (people % 2 == films % 2) | (rng.random(2500) < 0.1)
    ends = np.stack([people + FILMS, films])[:, alike]
    names = [f"film {v}" for v in range(FILMS)] + [f"person {v}" for v in range(PEOPLE)]
    when = rng.integers(0, 1000, ends.shape[1]) if times else None
    sides = np.repeat(np.array([1, 0], np.int8), [FILMS, PEOPLE])
    return merged_graph(ends, FILMS + PEOPLE, directed=directed, sides=sides, times=when, node_names=names)


def follows(seed: int = 0, nodes: int = 300, *, times: bool = True) -> Graph:
    """Fans follow stars of their own colour; a third of the stars follow back."""
    rng = np.random.default_rng(seed)
    fans, stars = rng.integers(0, nodes, 6000), rng.integers(0, nodes // 5, 6000)
    alike = fans % 3 == stars % 3
    ends = np.stack([fans, stars])[:, alike]
    back = ends[::-1, rng.random(ends.shape[1]) < 0.3]
    ends = np.concatenate([ends, back], axis=1)
    when = rng.integers(0, 1000, ends.shape[1]) if times else None
    return merged_graph(ends, nodes, directed=True, times=when, node_names=[f"n{v}" for v in range(nodes)])


GRAPHS = {
    "sides": two_sided(),
    "sides, times": two_sided(1, times=True),
    "directed, sides": two_sided(2, directed=True),
    "directed, times": follows(),
    "directed": follows(1, times=False),
}
SCORERS: dict[str, Scorer] = {}
each = pytest.mark.parametrize("kind", GRAPHS)


def scorer_of(kind: str) -> Scorer:
    if kind not in SCORERS:
        SCORERS[kind] = pretrained().on(GRAPHS[kind])
    return SCORERS[kind]


def known(graph: Graph) -> set[tuple[int, int]]:
    pairs = set(map(tuple, graph.edges.T.tolist()))
    return pairs if graph.directed else pairs | {(v, u) for u, v in pairs}


def check(graph: Graph, frame: pl.DataFrame) -> None:
    """Every row is a pair that can be a link and is none, once."""
    place = {name: v for v, name in enumerate(graph.names)}
    pairs = [(place[a], place[b]) for a, b in frame.select("source", "target").rows()]
    asked = pairs if graph.directed else [tuple(sorted(pair)) for pair in pairs]
    assert len(set(asked)) == len(pairs)
    assert not set(pairs) & known(graph)
    if graph.sides is not None:
        sides = [(int(graph.sides[u]), int(graph.sides[v])) for u, v in pairs]
        assert set(sides) <= ({(0, 1)} if graph.directed else {(0, 1), (1, 0)})


@each
def test_the_best_pairs_are_possible_and_the_best(kind: str) -> None:
    graph, scorer = GRAPHS[kind], scorer_of(kind)
    frame = answer(scorer, top=40, why=True)
    assert frame.height == 40
    check(graph, frame)
    if graph.sides is not None:
        assert frame["source"].str.starts_with("person").all()
    expected = frame["probability"].sum()
    assert 0 < expected <= 40
    pairs, scores = top_links(scorer, 40)
    assert np.allclose(scores, frame["score"].to_numpy())
    everything = np.stack(np.divmod(np.arange(graph.num_nodes**2), graph.num_nodes))
    space = pair_space(scorer.batch)
    everything = everything[:, space.holds(everything) & (everything[0] != everything[1])]
    if not space.ordered:
        everything = everything[:, everything[0] < everything[1]]
    links = known(graph)
    free = np.array([tuple(pair) not in links for pair in everything.T.tolist()])
    best = np.sort(scorer.score(everything[:, free]))[::-1][:40]
    assert np.isin(np.round(scores, 3), np.round(best, 3)).mean() > 0.8


@each
def test_partners_of_a_node(kind: str) -> None:
    graph, scorer = GRAPHS[kind], scorer_of(kind)
    node = "person 3" if graph.sides is not None else "n250"
    frame = answer(scorer, of=node, top=8)
    check(graph, frame)
    assert frame["source"].to_list() == [node] * 8
    assert (frame["score"].diff().drop_nulls() <= 0).all()
    if graph.sides is not None:
        if graph.directed:
            with pytest.raises(InputError, match="links go from the other side"):
                answer(scorer, of="film 3")
        else:
            film = answer(scorer, of="film 3", top=8)
            check(graph, film)
            assert film["source"].to_list() == ["film 3"] * 8


def test_fans_are_told_stars_of_their_colour() -> None:
    """Nobody follows n250, and whom it will follow is a star."""
    scorer = scorer_of("directed")
    targets = answer(scorer, of="n250", top=10)["target"].str.strip_prefix("n").cast(pl.Int64)
    assert (targets < 60).all()
    assert ((targets % 3) == 250 % 3).mean() >= 0.8


def test_a_node_that_is_linked_to_all_of_the_other_side_has_no_partner_left() -> None:
    """It is told apart from a node that links only come to."""
    films, people = np.divmod(np.arange(48), 8)
    ends = np.stack([people + 6, films])[:, np.flatnonzero((films == 0) | (people % 2 == 0))]
    sides = np.repeat(np.array([1, 0], np.int8), [6, 8])
    graph = merged_graph(ends, 14, directed=False, sides=sides)
    assert predict(graph, of=0, top=3).height == 0
    assert predict(graph, of=1, top=9).height == 4
    graph = merged_graph(ends, 14, directed=True, sides=sides)
    with pytest.raises(InputError, match="links go from the other side to '0'"):
        predict(graph, of=0, top=3)


@each
def test_partners_of_all(kind: str) -> None:
    graph, scorer = GRAPHS[kind], scorer_of(kind)
    frame = answer(scorer, of="all", top=2)
    asked = frame if graph.directed else frame.filter(pl.col("source").str.starts_with("person"))
    check(graph, asked)
    sources = (
        {name for name in graph.names if name.startswith("person")}
        if graph.sides is not None
        else graph.names
    )
    assert set(asked["source"]) >= set(sources)
    assert asked.group_by("source").len()["len"].max() == 2


def test_an_answer_to_a_link_is_a_candidate() -> None:
    scorer = scorer_of("directed")
    back = {(v, u) for u, v in known(GRAPHS["directed"])} - known(GRAPHS["directed"])
    found = answer(scorer, of="all", top=3)
    pairs = {(int(a[1:]), int(b[1:])) for a, b in found.select("source", "target").rows()}
    assert pairs & back
    reasons = answer(scorer, pairs=[(f"n{u}", f"n{v}") for u, v in list(back)[:3]], why=True)["because"]
    assert reasons.to_list() == ["linked the other way"] * 3


def test_pairs_within_a_side_are_refused() -> None:
    scorer = scorer_of("sides")
    for ask in (
        lambda: answer(scorer, pairs=[("person 1", "film 2"), ("person 1", "person 2")]),
        lambda: explain(scorer, "person 1", "person 2"),
        lambda: evaluate_links(scorer, np.array([[0], [1]])),
    ):
        with pytest.raises(InputError, match="is not a pair of the two sides"):
            ask()
    either = answer(scorer, pairs=[("film 2", "person 1"), ("person 1", "film 2")])
    assert either["source"].to_list() == ["person 1"] * 2
    assert either["score"][0] == either["score"][1]
    with pytest.raises(InputError, match="is not a pair of the two sides"):
        answer(scorer_of("directed, sides"), pairs=[("film 2", "person 1")])


@each
def test_evaluation_asks_between_possible_pairs(kind: str) -> None:
    graph = GRAPHS[kind]
    keep = np.random.default_rng(0).random(graph.num_edges) < 0.9
    columns: dict[str, Any] = {}
    for name in ("times", "last_times"):
        column = getattr(graph, name)
        columns[name] = None if column is None else column[keep]
    seen = replace(
        Graph.from_edges(graph.edges[:, keep], graph.num_nodes), sides=graph.sides, **columns,
        arcs=graph.edges[:, keep] if graph.directed else None,
    )  # fmt: skip
    found = evaluate_links(pretrained().on(seen), graph.edges[:, ~keep])
    assert found["links"] == (~keep).sum()
    assert found["auc"] > 0.7


def test_the_order_of_a_pair_counts_in_directed_graphs() -> None:
    scorer = scorer_of("directed")
    there, back = (answer(scorer, pairs=[pair])["score"][0] for pair in (("n250", "n1"), ("n1", "n250")))
    assert there > back + 1
    found = explain(scorer, "n250", "n1")
    assert np.isclose(found["base"] + sum(found["contributions"].values()), found["score"], atol=1e-3)
    assert found["contributions"]["direction"] > 0
    graph = GRAPHS["directed"]
    arcs = {(graph.names[u], graph.names[v]) for u, v in graph.edges.T.tolist()}
    assert (found["linked"], found["linked_back"]) == (("n250", "n1") in arcs, ("n1", "n250") in arcs)
    for path, ways in zip(found["paths"], found["path_directions"], strict=True):
        links = zip(path[:-1], ways, path[1:], strict=True)
        assert all(("<" in way, ">" in way) == ((v, u) in arcs, (u, v) in arcs) for u, way, v in links)


def test_two_sides_are_no_direction() -> None:
    scorer = scorer_of("sides")
    pair = scorer.predict(top=1).row(0)[:2]
    groups = explain(scorer, *pair)["contributions"].keys()
    assert "sides" in groups
    assert "direction" not in groups


def test_a_file_free_door() -> None:
    frame = predict(two_sided(5), of=["person 1"], top=3)
    assert frame.height == 3


@pytest.mark.parametrize("kind", ["sides, times", "directed, times"])
def test_runs_know_the_kind_of_their_graph(kind: str, tmp_path: Path) -> None:
    graph = GRAPHS[kind]
    task = LinkPrediction(graph, seed=0)
    model = build_model("psgnn", task, seed=0)
    assert model.config.kinds == sorted(graph.kind)
    run = fit(model, task, epochs=10, seed=0, out=tmp_path / "run")
    assert run.test["auc"] > 0.6
    again = load(tmp_path / "run")
    assert again.batch.kinds is not None
    links = np.concatenate([task.train.pairs[:, task.train.labels == 1], run.hidden], axis=1)
    assert set(map(tuple, again.batch.kinds.edges.T.tolist())) == set(map(tuple, links.T.tolist()))
    for name in ("times", "last_times"):
        mine, theirs = getattr(graph, name), getattr(again.batch.kinds, name)
        assert (mine is None) == (theirs is None)
        if mine is not None:
            assert np.array_equal(mine, theirs)
    pairs = task.test.pairs[:, :50]
    assert np.array_equal(run.score(pairs), again.score(pairs))
    judged = again.evaluation_scorer()
    assert np.array_equal(judged.score(pairs), run.evaluation_scorer().score(pairs))
    assert judged.batch.kinds is not None
    assert np.array_equal(judged.batch.kinds.edges, task.union.kinds.edges)  # type: ignore[union-attr]
    check(graph, again.predict(top=10))
    plain = Graph.from_edges(graph.edges, graph.num_nodes)
    with pytest.raises(InputError, match="the model was trained on graphs with"):
        again.on(plain)
    assert again.on(graph).score(pairs).shape == (50,)


def test_vectors_of_a_directed_graph_say_which_way_links_go() -> None:
    """Fans follow stars: from the first half of a fan's vector to the second half of a star's it is near."""
    task = LinkPrediction(GRAPHS["directed"], seed=0)
    run = fit(build_model("psgnn", task, seed=0), task, epochs=80, seed=0)
    h = run.embed()
    rng = np.random.default_rng(0)
    pairs = np.stack([rng.integers(150, 300, 400), rng.integers(0, 60, 400)])  # of a fan and a star
    there, back = run.score_embedded(h, pairs), run.score_embedded(h, np.ascontiguousarray(pairs[::-1]))
    assert (there > back).mean() > 0.9
    a, b = h[pairs[0], : h.shape[1] // 2], h[pairs[1], h.shape[1] // 2 :]
    apart = np.linalg.norm(a - b, axis=1)
    assert np.corrcoef(apart, there)[0, 1] < -0.999
    np.testing.assert_allclose(run.embed([5, 200]), h[[5, 200]], rtol=1e-5, atol=1e-6)
    assert run.embedding_test is not None
    assert run.embedding_test["auc"] > 0.8


def test_rivals_are_about_the_partners_of_a_node() -> None:
    """What is added to all scores of a node changes nothing, and links of other nodes are not compared."""
    firsts = torch.tensor([4, 7, 4, 9, 7, 4, 1])
    labels = torch.tensor([1, 1, 0, 0, RIVAL, RIVAL, RIVAL])
    scores = torch.tensor([[0.5], [2.0], [-1.0], [3.0], [2.5], [0.25], [9.0]])
    loss = rivalry(scores, firsts, labels)
    gaps = torch.tensor([2.5 - 2.0, 0.25 - 0.5])
    assert torch.isclose(loss, torch.log1p(gaps.exp()).mean())
    assert torch.isclose(loss, rivalry(scores + firsts[:, None], firsts, labels))
    assert rivalry(scores[:4], firsts[:4], labels[:4]) == 0


@pytest.mark.parametrize("kind", ["sides, times", "directed"])
def test_a_part_of_a_step_has_links_beside_their_rivals(kind: str) -> None:
    """So each process of a job compares its own links."""
    task = LinkPrediction(GRAPHS[kind], seed=0)
    config = build_model("psgnn", task, seed=0).config
    assert config.rivals
    view = view_of(task.graphs)
    batches = batches_of(task, view, config, 100, whole=True)
    _, pairs, labels = batches.draw(0, np.random.default_rng(0))
    links = (labels == 1).sum()
    assert (labels == 0).sum() == config.negatives * links
    assert (labels == RIVAL).sum() == links
    for part in np.array_split(np.arange(labels.size), 3):
        some, firsts = labels[part], pairs[0, part]
        met = np.isin(firsts[some == RIVAL], firsts[some == 1])
        assert met.mean() > 0.5


def test_anchors_of_a_directed_graph_are_learned_from_links_and_other_pairs_alone() -> None:
    """Rivals have a label of their own, which a picker that learns first does not know."""
    task = LinkPrediction(GRAPHS["directed"], seed=0)
    model = build_model("psgnn", task, seed=0, picker="boosted", anchors=4)
    assert model.config.rivals
    run = fit(model, task, epochs=3, seed=0)
    assert run.anchors is not None
    assert len(set(run.anchors[0])) == 4
