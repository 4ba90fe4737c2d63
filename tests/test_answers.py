"""Predictions by name, their probabilities, explanations and evaluations: what people ask after or without training."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path

import networkx as nx
import numpy as np
import polars as pl
import pytest

import psgnn
from conftest import Command
from psgnn.errors import InputError
from psgnn.graph import Graph
from psgnn.kernels._scoring import pool_adjacent
from psgnn.scoring import _evaluate as evaluate
from psgnn.scoring import (
    answer,
    calibrate,
    evaluate_links,
    explain,
    partners_of_all,
    pretrained,
    similar,
    top_links,
)
from psgnn.scoring._answers import partners
from psgnn.scoring._calibration import fit_calibration
from psgnn.training import Run, fit
from psgnn.training import _run as runs
from psgnn.training._run import save_run
from psgnn.training._runs import read_tensors, write_tensors

VILLAGE = Path(__file__).parent.parent / "examples" / "village.csv"


@pytest.fixture(scope="module")
def village() -> Graph:
    return psgnn.read_graph(VILLAGE)


@pytest.fixture(scope="module")
def trained(village: Graph, tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("run") / "run"
    task = psgnn.LinkPrediction(village, seed=0)
    fit(psgnn.build_model("psgnn", task, hidden=8, members=1), task, epochs=20, out=folder)
    return psgnn.load(folder)


# --- what a prediction sees


def test_a_run_predicts_from_all_links_and_is_measured_without_the_held_out_ones(
    village: Graph, trained: Run
) -> None:
    task = psgnn.LinkPrediction(village, seed=0)
    assert trained.batch.adjacency.num_edges == village.num_edges
    judged = trained.evaluation_scorer()
    assert judged.batch.adjacency.num_edges == task.graphs[0].num_edges < village.num_edges
    scores = judged.score(task.test.pairs)
    assert psgnn.tasks._metrics.roc_auc(task.test.labels, scores) == pytest.approx(trained.test["auc"])
    whole = trained.on([village])
    pairs = task.test.pairs[:, :9]
    assert not np.allclose(trained.score(pairs), judged.score(pairs))
    # The same anchors, found in the visible graph, on the whole graph.
    assert trained.anchors == judged.anchors
    assert whole.batch.adjacency.num_edges == village.num_edges


def test_predictions_are_no_known_links(village: Graph, trained: Run) -> None:
    linked = {frozenset((village.names[u], village.names[v])) for u, v in village.edges.T.tolist()}
    for frame in (trained.predict(top=60), psgnn.predict(village, top=60)):
        found = [frozenset(pair) for pair in frame.select("source", "target").rows()]
        assert len(set(found)) == 60
        assert not linked & set(found)


# --- probabilities


def test_probabilities_add_up_to_the_missing_links(village: Graph) -> None:
    scorer = pretrained().on([village])
    calibration = calibrate(scorer, 40)
    assert calibration is not None
    pairs, scores = top_links(scorer, 120 * 119 // 2)
    assert pairs.shape[1] == 120 * 119 // 2 - village.num_edges
    assert calibration.probability(scores).sum() == pytest.approx(40, rel=0.25)
    twice = calibrate(scorer, 80)
    assert twice is not None
    assert (twice.probability(scores) >= calibration.probability(scores)).all()


def test_a_link_that_was_all_a_node_had_raises_no_probability() -> None:
    """Most nodes here have one link. When it is missing they are in no file, so nobody can find it."""
    found = expected = 0.0
    for seed in (100, 101, 102):
        rng = np.random.default_rng(seed)
        tree = nx.barabasi_albert_graph(1500, 1, seed=seed)
        while tree.number_of_edges() < 2100:
            near = list(tree[int(rng.integers(1500))])
            a, b = rng.choice(near, 2).tolist()
            if a != b and min(tree.degree(a), tree.degree(b)) > 1:
                tree.add_edge(a, b)
        edges = np.array(tree.edges())
        missing = rng.random(edges.shape[0]) < 0.1
        truth = {frozenset(pair) for pair in edges[missing].astype(str).tolist()}
        rest = pl.DataFrame(edges[~missing].astype(str), schema=["source", "target"])
        frame = psgnn.predict(rest, top=1000, missing=len(truth))
        found += sum(frozenset(pair) in truth for pair in frame.select("source", "target").rows())
        expected += frame["probability"].sum()
    assert found == pytest.approx(expected, rel=0.15)


def test_probabilities_rise_with_scores_and_precision_is_their_mean(village: Graph) -> None:
    frame = psgnn.predict(village, top=100)
    likely = frame["probability"].to_numpy()
    assert (np.diff(likely) <= 0).all()
    assert ((likely > 0) & (likely < 1)).all()
    expected = np.cumsum(likely) / np.arange(1, 101)
    np.testing.assert_allclose(frame["expected_precision"].to_numpy(), expected)


@pytest.mark.parametrize("dataset", ["communities", "seal/USAir", "email"])
def test_as_many_removed_links_are_found_as_were_expected(dataset: str) -> None:
    graph = psgnn.load_dataset(dataset)[0]
    removed = np.random.default_rng(0).random(graph.num_edges) < 0.1
    frame = psgnn.predict(Graph.from_edges(graph.edges[:, ~removed], graph.num_nodes), top=200)
    true = {frozenset(map(str, edge)) for edge in graph.edges[:, removed].T.tolist()}
    hits = [frozenset(pair) in true for pair in frame.select("source", "target").rows()]
    assert frame["probability"].sum() == pytest.approx(sum(hits), rel=0.4)


def test_a_trained_run_knows_how_sure_it_is(trained: Run) -> None:
    frame = trained.predict(top=30)
    assert frame["probability"].null_count() == 0
    assert 0 < frame["expected_precision"][-1] < 1


def test_few_links_say_nothing_about_chances() -> None:
    frame = psgnn.predict(nx.path_graph(30), top=5)
    assert frame["probability"].null_count() == frame["expected_precision"].null_count() == 5


@pytest.mark.parametrize(
    ("missing", "message"),
    [("many", "5% or a number"), ("-3", "more than 0"), ("0", "more than 0"), ("90000", "only 6335 pairs")],
)
def test_a_wrong_number_of_missing_links_gets_one_line(village: Graph, missing: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        psgnn.predict(village, top=3, missing=missing)


def test_missing_links_are_a_share_or_a_number(village: Graph) -> None:
    frames = [psgnn.predict(village, top=9, missing=missing) for missing in ("20%", 161, 0.2)]
    assert frames[0].equals(frames[1])
    assert frames[0].equals(frames[2])


def test_pooled_blocks_are_the_isotonic_regression() -> None:
    from sklearn.isotonic import IsotonicRegression

    rng = np.random.default_rng(0)
    for size in (1, 2, 50, 400):
        y, w = rng.integers(2, size=size).astype(float), rng.uniform(0.1, 3, size)
        starts, means = pool_adjacent(y, w)
        fitted = np.repeat(means, np.diff(np.append(starts, size)))
        expected = IsotonicRegression().fit(np.arange(size), y, w).predict(np.arange(size))
        np.testing.assert_allclose(fitted, expected, atol=1e-9)


def test_one_lucky_link_at_the_top_is_no_evidence() -> None:
    rng = np.random.default_rng(0)
    scores = np.concatenate([np.linspace(3, 9, 60), rng.normal(size=5000), [9.0], rng.normal(1, 0.8, 200)])
    labels = np.repeat([0.0, 1.0], [5060, 201])
    found = fit_calibration(scores, labels, np.ones(scores.size), 201.0)
    # One of the 60 best pairs was a hidden link, so it and those beside it are unlikely.
    assert found.probability(np.array([9.0]))[0] < 0.25
    assert found.probability(scores[:60]).sum() < 15


def test_as_many_hits_are_expected_down_to_every_rank_as_links_were_hidden_there() -> None:
    rng = np.random.default_rng(3)
    # Chances fall with the rank among 3000 pairs, and 300 more stand for 300 each.
    scores, stands_for = np.linspace(9, 0, 3300), np.repeat([1.0, 300.0], [3000, 300])
    chance = np.append(0.6 * (1 + np.arange(3000) / 50) ** -0.8, np.full(300, 0.0008))
    hidden = np.repeat(scores, rng.poisson(chance * stands_for))
    labels = np.repeat([0.0, 1.0], [scores.size, hidden.size])
    weights = np.append(stands_for, np.ones(hidden.size))
    found = fit_calibration(np.append(scores, hidden), labels, weights, float(hidden.size))
    expected = np.cumsum(stands_for * found.probability(scores))
    for rank in (200, 1000, 3000, 3300):
        assert expected[rank - 1] == pytest.approx((hidden >= scores[rank - 1]).sum(), rel=0.12)


# --- a node


def test_the_best_partners_of_a_node_are_those_of_all_pairs(village: Graph) -> None:
    scorer = pretrained().on([village])
    node = village.names.index("Dina")
    frame = answer(scorer, of="Dina", top=7)
    assert set(frame["source"]) == {"Dina"}
    linked = {village.names[v] for edge in village.edges.T.tolist() for v in edge if node in edge}
    others = [v for v in range(120) if village.names[v] not in linked and v != node]
    scores = scorer.score(np.stack([np.full(len(others), node), others]))
    best = [village.names[others[i]] for i in np.argsort(-scores, kind="stable")[:7]]
    assert frame["target"].to_list() == best
    two = answer(scorer, of=["Dina", "Leo"], top=7)
    assert two.head(7).equals(frame)
    assert two.height == 14


def test_similar_nodes_are_the_nearest_embeddings(village: Graph, trained: Run) -> None:
    h = trained.embed()
    apart = np.linalg.norm(h - h[village.names.index("Dina")], axis=1)
    order = [village.names[v] for v in np.argsort(apart, kind="stable") if village.names[v] != "Dina"]
    assert trained.similar("Dina", 4)["node"].to_list() == order[:4]
    assert similar(trained, "Dina", 4).equals(trained.similar("Dina", 4))


def test_an_unknown_node_gets_the_nearest_name(village: Graph) -> None:
    with pytest.raises(InputError, match="no node 'Dinna'; did you mean 'Dina'"):
        psgnn.predict(village, of="Dinna")


def test_an_unknown_name_gets_several_that_are_as_near(village: Graph) -> None:
    with pytest.raises(InputError, match="no node 'Lea'; did you mean 'Leila', 'Leo' or 'Vera'"):
        psgnn.predict(village, of="Lea")


def test_a_name_in_other_case_is_the_nearest(village: Graph) -> None:
    with pytest.raises(InputError, match="no node 'dina'; did you mean 'Dina'"):
        similar(pretrained().on([village]), "dina")


def test_links_that_are_known_are_not_missing(village: Graph, caplog: pytest.LogCaptureFixture) -> None:
    asked = [("Dina", "Leo"), ("Dina", "Sunil"), ("Ada", "Leo")]
    frame = answer(pretrained().on([village]), pairs=asked)
    assert frame["probability"].is_null().to_list() == [False, True, False]
    assert "1 pair is linked already (Dina and Sunil)" in caplog.text


def test_a_node_without_links_is_pointed_out(village: Graph, caplog: pytest.LogCaptureFixture) -> None:
    graph = Graph.from_edges(village.edges, village.num_nodes + 1, names=[*village.names, "Alone"])
    scorer = pretrained().on([graph])
    assert answer(scorer, of="Alone", top=2).height == 2
    assert "Alone has no links, so its partners" in caplog.text
    assert similar(scorer, "Alone", 2).height == 2
    assert "Alone has no links, so its embedding" in caplog.text


def test_given_pairs_stay_in_order_unless_the_best_are_asked_for(village: Graph) -> None:
    asked = [("Ada", "Rune"), ("Dina", "Leo"), ("Mei", "Dina")]
    scorer = pretrained().on([village])
    assert scorer.predict(pairs=asked).select("source", "target").rows() == asked
    assert scorer.predict(pairs=asked, top=2).select("source", "target").rows() == [asked[1], asked[2]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"top": "5"}, "top='5' is not an integer"),
        ({"top": 0}, "top=0 is not an integer of 1 or more"),
        ({"of": "Ada", "top": 0}, "top=0 is not an integer of 1 or more"),
        ({"of": []}, "no node is asked about"),
        ({}, "ask for the best pairs"),
    ],
)
def test_wrong_arguments_get_one_line(village: Graph, options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        psgnn.predict(village, **options)


def test_a_scorer_is_evaluated_by_a_file_or_by_names(village: Graph) -> None:
    scorer, file = pretrained().on([village]), VILLAGE.with_name("village-forgotten.csv")
    named = pl.read_csv(file).rows()
    found = scorer.evaluate(file)
    assert (found["links"], found) == (73, scorer.evaluate(named))
    assert scorer.evaluate(named, negatives="per-node")["negatives"] == "per-node"


def test_no_link_is_missing_where_all_nodes_are_linked() -> None:
    with pytest.raises(InputError, match="all nodes are linked"):
        answer(pretrained().on([Graph.from_edges(np.array([[0, 0, 1], [1, 2, 2]]), 3)]), top=1)


def test_a_large_run_keeps_what_it_was_calibrated_by(
    trained: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "CALIBRATED_NODES", (0, 1000))
    save_run(tmp_path, trained)
    known = trained.predict(of="Dina", top=5)
    monkeypatch.setattr(Run, "rehearsals", None)  # it is not asked again
    assert psgnn.load(tmp_path).predict(of="Dina", top=5).equals(known)
    path = tmp_path / "calibration.safetensors"
    tensors, _ = read_tensors(path)
    write_tensors(path, {**tensors, "weights": -tensors["weights"]})
    with pytest.raises(InputError, match=r"calibration\.safetensors is damaged"):
        psgnn.load(tmp_path)


def test_pairs_are_asked_by_name(village: Graph, trained: Run) -> None:
    frame = trained.predict(pairs=[("Dina", "Leo"), ("Finn", "Umar")])
    place = {name: v for v, name in enumerate(village.names)}
    expected = trained.score([[place["Dina"], place["Finn"]], [place["Leo"], place["Umar"]]])
    np.testing.assert_allclose(frame["score"].to_numpy(), expected)
    with pytest.raises(InputError, match="two nodes of one graph"):
        trained.predict(pairs=[("Dina", "Dina")])


@pytest.mark.parametrize("kind", ["weights", "run"])
def test_pairs_and_nodes_are_named_everywhere(village: Graph, trained: Run, kind: str) -> None:
    scorer = trained if kind == "run" else pretrained().on([village])
    place = {name: v for v, name in enumerate(village.names)}
    named = [("Dina", "Leo"), ("Finn", "Umar"), ("Dina", "Umar")]
    ids = np.array([[place[name] for name in pair] for pair in named]).T
    expected = scorer.score(ids)
    frame = pl.DataFrame(named, schema=["source", "target"], orient="row")
    for asked in (named, np.array(named), zip(*frame, strict=True), frame, frame.to_pandas()):
        np.testing.assert_array_equal(scorer.score(asked), expected)
    shuffled = frame.select(
        pl.lit(0.5).alias("weight"), "target", "source"
    )  # known columns before the first two
    np.testing.assert_array_equal(scorer.score(shuffled), expected)
    np.testing.assert_allclose(scorer.score(named[:2]), expected[:2], rtol=1e-6)  # two pairs, not [2, P]
    assert scorer.score([]).shape == (0,)
    np.testing.assert_array_equal(scorer.embed(["Leo", "Dina"]), scorer.embed([place["Leo"], place["Dina"]]))
    np.testing.assert_array_equal(scorer.embed(pl.Series(["Leo"])), scorer.embed("Leo"))
    assert scorer.similar("Dina", 3).equals(similar(scorer, place["Dina"], 3))
    assert scorer.explain("Dina", "Leo")["score"] == pytest.approx(float(expected[0]))
    numbered = scorer.predict(pairs=[(place["Dina"], place["Leo"])])
    assert numbered.equals(scorer.predict(pairs=frame.head(1)))


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ([("Dina", "Loe")], "no node 'Loe'; did you mean 'Leo'"),
        ([("Dina",)], "is not a pair; name two nodes"),
        ([("Dina", "Dina")], "two nodes of one graph"),
        (("Dina", "Leo"), r"names go in a list of pairs"),
        ([(0, 1), (2, 3), (4, 5)], r"shape \[2, P\], found \[3, 2\]"),
        (pl.DataFrame({"a": ["Dina"]}), "needs two columns, found a"),
        (pl.DataFrame({"a": ["Dina"], "b": [None]}), "'b' is empty in row 0"),
    ],
)
def test_pairs_that_are_none_get_one_line(village: Graph, asked: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        pretrained().on([village]).score(asked)


def test_nodes_of_several_graphs_are_named_with_their_graph(village: Graph) -> None:
    scorer = pretrained().on([village, village])
    leo, dina = village.names.index("Leo"), village.names.index("Dina")
    expected = scorer.score([[dina + 120], [leo + 120]])
    np.testing.assert_array_equal(scorer.score([((1, "Dina"), (1, "Leo"))]), expected)
    np.testing.assert_array_equal(scorer.score([("1:Dina", "1:Leo")]), expected)
    assert scorer.predict(of=(1, "Dina"), top=1)["graph"].to_list() == [1]
    np.testing.assert_array_equal(scorer.embed([(1, "Leo")]), scorer.embed([leo + 120]))
    for asked, message in (
        ([("Dina", "Leo")], r"2 graphs have a node 'Dina'; write '0:Dina' or \(0, 'Dina'\)"),
        ([((0, "Dina"), (1, "Leo"))], "two nodes of one graph"),
        ([((2, "Dina"), (2, "Leo"))], r"no graph 2; the graphs are 0..1"),
        ([((1, "Dinna"), (1, "Leo"))], "graph 1 has no node 'Dinna'; did you mean 'Dina'"),
    ):
        with pytest.raises(InputError, match=message):
            scorer.score(asked)
    apart = pretrained().on([village, nx_graph("x")])
    assert apart.score([((0, "Dina"), "Leo")]).shape == (1,)
    with pytest.raises(InputError, match="graph 1 has no node 'Dina'"):
        apart.score([((1, "Dina"), "Leo")])


def nx_graph(prefix: str) -> Graph:
    """A graph whose names begin with a letter that no person's does."""
    return psgnn.read_graph(nx.relabel_nodes(nx.karate_club_graph(), lambda v: f"{prefix}{v}"))


# --- every node


@pytest.mark.parametrize("kind", ["weights", "run"])
def test_the_partners_of_every_node_are_those_of_each(village: Graph, trained: Run, kind: str) -> None:
    scorer = trained if kind == "run" else pretrained().on([village])
    frame = answer(scorer, of="all", top=3)
    each = answer(scorer, of=village.names, top=3)
    assert frame["source"].to_list() == each["source"].to_list()
    np.testing.assert_allclose(frame["score"].to_numpy(), each["score"].to_numpy(), rtol=1e-4, atol=1e-4)
    for column in ("probability", "expected_precision"):
        np.testing.assert_allclose(frame[column].to_numpy(), each[column].to_numpy(), rtol=1e-3)


def test_candidates_of_every_node_find_most_of_the_best_partners() -> None:
    graph = psgnn.read_graph(nx.powerlaw_cluster_graph(1500, 4, 0.3, seed=1))
    scorer = pretrained().on([graph])
    linked = {frozenset(edge) for edge in graph.edges.T.tolist()}
    found: dict[int, set[int]] = {}
    blocks = list(partners_of_all(scorer, 5))
    for pairs, scores in blocks:
        np.testing.assert_allclose(scorer.score(pairs), scores, rtol=1e-4, atol=1e-4)
        for u, v in pairs.T.tolist():
            found.setdefault(u, set()).add(v)
            assert u != v
            assert frozenset((u, v)) not in linked
    assert len(blocks) > 1
    assert list(found) == list(range(1500))
    assert {len(each) for each in found.values()} == {5}
    nodes = np.random.default_rng(0).choice(1500, 25, replace=False).tolist()
    true = [set(partners(scorer, v, 5)[0][1].tolist()) for v in nodes]
    assert np.mean([len(found[v] & best) / 5 for v, best in zip(nodes, true, strict=True)]) > 0.85


def test_several_graphs_have_partners_of_their_own() -> None:
    small, large = nx.path_graph(4), nx.powerlaw_cluster_graph(600, 3, 0.3, seed=1)
    scorer = pretrained().on([psgnn.read_graph(small), psgnn.read_graph(large)])
    frame = answer(scorer, of="all", top=4)
    assert frame.filter(pl.col("graph") == 0).select("source", "target").rows() == [
        ("0", "2"), ("0", "3"), ("1", "3"), ("2", "0"), ("3", "1"), ("3", "0"),
    ]  # fmt: skip
    assert frame.filter(pl.col("graph") == 1).height == 2400


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".npz"])
def test_partners_of_every_node_are_written_as_they_come(run: Command, tmp_path: Path, suffix: str) -> None:
    graph = nx.powerlaw_cluster_graph(700, 3, 0.3, seed=1)
    names = {v: f"#{v}" if v == 5 else f"n{v}" for v in graph}  # '#' would begin a comment
    file, out = tmp_path / "g.csv", tmp_path / f"all{suffix}"
    psgnn.read_graph(nx.relabel_nodes(graph, names)).to_polars().write_csv(file, quote_style="always")
    assert run("predict", file, "--for", "all", "--top", 2, "--out", out, "--quiet") == (
        0,
        f"1400 pairs are in {out}\n",
        "",
    )
    if suffix == ".npz":
        with np.load(out) as arrays:
            written = pl.DataFrame({name: arrays[name] for name in arrays.files})
    else:
        read = pl.read_parquet if suffix == ".parquet" else pl.read_csv
        written = read(out, **({"separator": "\t"} if suffix == ".tsv" else {}))
    expected = psgnn.predict(file, of="all", top=2)
    assert written.select("source", "target").equals(expected.select("source", "target"))
    np.testing.assert_allclose(written["score"].to_numpy(), expected["score"].to_numpy(), rtol=1e-5)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["g.csv", out.name])


def test_a_node_named_all_is_asked_for_in_a_list(run: Command, tmp_path: Path) -> None:
    names = ["all", *(f"n{v}" for v in range(1, 34))]
    graph = Graph.from_edges(psgnn.read_graph(nx.karate_club_graph()).edges, names=names)
    assert set(psgnn.predict([graph], of=["all"], top=2)["source"]) == {"all"}
    assert psgnn.predict([graph], of="all", top=2)["source"].n_unique() == 34
    graph.to_polars().write_csv(tmp_path / "g.csv")
    (tmp_path / "nodes.txt").write_text("all\n")
    code, out, _ = run("predict", tmp_path / "g.csv", "--for-file", tmp_path / "nodes.txt", "--json")
    assert (code, {pair["source"] for pair in json.loads(out)["pairs"]}) == (0, {"all"})


# --- asked again


def test_what_is_slow_is_done_once(village: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    scorer = pretrained().on([village])
    calls: list[str] = []
    kind = type(scorer)
    for name in ("rehearsals", "embed"):
        own = getattr(kind, name)
        monkeypatch.setattr(
            kind,
            name,
            lambda self, *a, _own=own, _name=name, **k: (calls.append(_name), _own(self, *a, **k))[1],
        )
    first = scorer.predict(of="Dina", top=3)
    assert scorer.predict(of="Dina", top=3).equals(first)
    assert (scorer.predict(of="Dina", top=3, missing=10)["probability"] < first["probability"]).all()
    assert scorer.similar("Dina").height == scorer.similar("Leo").height == 10
    assert sorted(calls) == ["embed", "rehearsals"]


def test_large_graphs_are_answered_from_a_part_of_their_nodes(
    village: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    scorer = pretrained().on([village])
    whole, near = answer(scorer, of="Dina", top=5), similar(scorer, "Finn", 6)
    for name, value in (("MOST_ROW", 10), ("MOST_COMPARED", 10), ("SLACK", 5), ("HUBS", 5)):
        monkeypatch.setattr(f"psgnn.scoring._answers.{name}", value)
    again = pretrained().on([village])
    assert answer(again, of="Dina", top=5)["target"].to_list() == whole["target"].to_list()
    assert similar(again, "Finn", 6)["node"].to_list() == near["node"].to_list()


# --- why


@pytest.mark.parametrize("kind", ["weights", "run"])
def test_contributions_add_up_to_the_score(village: Graph, trained: Run, kind: str) -> None:
    scorer = trained if kind == "run" else pretrained().on([village])
    found = explain(scorer, "Dina", "Leo")
    assert found["base"] + sum(found["contributions"].values()) == pytest.approx(found["score"], abs=1e-3)
    assert {"hops", "walks", "spectral", "roles", "local"} == set(found["contributions"])


def test_contributions_are_means_over_all_orders(village: Graph) -> None:
    """Shapley values by their definition, over the permutations of the groups."""
    from psgnn.scoring._explain import _coalitions

    scorer = pretrained().on([village])
    found = explain(scorer, "Dina", "Leo", seed=3)
    from psgnn.graph._sampling import NonEdges, distinct_integers

    pool = NonEdges(scorer.batch.ptr, village.edges)
    drawn = distinct_integers(int(pool.sizes.sum()), 64, np.random.default_rng(3))
    pair = np.array([village.names.index("Dina"), village.names.index("Leo")])
    evidence = scorer.evidence(np.concatenate([pair[:, None], pool.unrank(np.sort(drawn))], axis=1))
    groups = list(found["contributions"])
    values = _coalitions(evidence, groups)
    gains = dict.fromkeys(groups, 0.0)
    orders = list(permutations(range(len(groups))))
    for order in orders:
        mask = 0
        for i in order:
            gains[groups[i]] += float(values[mask | 1 << i] - values[mask]) / len(orders)
            mask |= 1 << i
    assert gains == pytest.approx(found["contributions"], abs=1e-4)


def test_facts_are_those_of_networkx(village: Graph) -> None:
    graph = village.to_networkx()
    found = psgnn.explain(pretrained().on([village]), "Dina", "Leo")
    assert set(found["shared_neighbours"]) <= set(nx.common_neighbors(graph, "Dina", "Leo"))
    assert found["num_shared"] == len(list(nx.common_neighbors(graph, "Dina", "Leo")))
    assert found["hops"] == nx.shortest_path_length(graph, "Dina", "Leo")
    shortest = {tuple(path) for path in nx.all_shortest_paths(graph, "Dina", "Leo")}
    assert {tuple(path) for path in found["paths"]} <= shortest
    assert len(found["paths"]) == min(3, len(shortest))
    for anchor in found["anchors"]["apart"] + found["anchors"]["together"]:
        assert anchor["hops_source"] == nx.shortest_path_length(graph, "Dina", anchor["anchor"])
        assert anchor["hops_target"] == nx.shortest_path_length(graph, "Leo", anchor["anchor"])


def test_models_that_read_all_evidence_at_once_say_so(village: Graph) -> None:
    task = psgnn.LinkPrediction(village, seed=0)
    result = fit(psgnn.build_model("gcn", task), task, epochs=2)
    found = result.explain("Dina", "Leo")
    assert found["contributions"] is None
    assert found["anchors"] is None


@pytest.mark.parametrize(
    ("pair", "message"), [(("Dina", "Dina"), "same node"), (("Dina", "Loe"), "did you mean")]
)
def test_what_cannot_be_explained_gets_one_line(village: Graph, pair: tuple[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        psgnn.explain(pretrained().on([village]), *pair)


# --- evaluation


def test_links_are_evaluated_per_node(village: Graph) -> None:
    removed = np.random.default_rng(1).random(village.num_edges) < 0.1
    rest = Graph.from_edges(village.edges[:, ~removed], names=village.names)
    scorer = pretrained().on([rest])
    links = village.edges[:, removed]
    found = evaluate_links(scorer, np.concatenate([links[::-1], links[:, :3], rest.edges[:, :2]], axis=1))
    assert (found["links"], found["known"]) == (links.shape[1], 2)
    # All pairs are few enough to be looked at one by one.
    ranks = []
    true = {frozenset(link) for link in links.T.tolist()}
    linked = {frozenset(edge) for edge in rest.edges.T.tolist()}
    for u, v in [*links.T.tolist(), *links[::-1].T.tolist()]:
        others = [w for w in range(120) if w not in (u, v) and frozenset((u, w)) not in true | linked]
        scores = scorer.score(np.stack([np.full(len(others) + 1, u), [v, *others]]))
        ranks.append(1 + (scores[1:] > scores[0]).sum() + (scores[1:] == scores[0]).sum() / 2)
    assert found["mrr"] == pytest.approx(np.mean(1 / np.array(ranks)), rel=1e-3)
    assert found["hits@10"] == pytest.approx(np.mean(np.array(ranks) <= 10), abs=0.02)
    best, _ = top_links(scorer, links.shape[1])
    hits = sum(frozenset(pair) in true for pair in best.T.tolist())
    assert found[f"precision@{links.shape[1]}"] == pytest.approx(hits / links.shape[1])
    with pytest.raises(InputError, match="all 2 links are in the graph"):
        evaluate_links(scorer, rest.edges[:, :2])


def test_links_are_evaluated_against_negatives_of_every_kind(village: Graph) -> None:
    removed = np.random.default_rng(4).random(village.num_edges) < 0.1
    rest = Graph.from_edges(village.edges[:, ~removed], village.num_nodes)
    links, scorer = village.edges[:, removed], pretrained().on([rest])
    found = {
        kind: evaluate_links(scorer, links, negatives=kind)
        for kind in ("uniform", "degree", "distance", "per-node")
    }
    assert [each["negatives"] for each in found.values()] == list(found)
    # Pairs as near as the links are harder than any; the rest does not depend on what AUC compares with.
    assert found["distance"]["auc"] < found["uniform"]["auc"]
    assert len({each["mrr"] for each in found.values()}) == 1
    hops = psgnn.shortest_distances(rest)
    asked = evaluate._like_links(scorer.batch, links, "distance", np.random.default_rng(0))
    assert asked.shape == links.shape
    linked = {frozenset(pair) for pair in village.edges.T.tolist()}
    assert not linked & {frozenset(pair) for pair in asked.T.tolist()}
    assert sorted(hops[tuple(asked)]) == pytest.approx(sorted(hops[tuple(links)]), abs=1)
    with pytest.raises(InputError, match="negatives are uniform, degree, distance or per-node"):
        evaluate_links(scorer, links, negatives="hard")


# --- the command line


def test_commands_answer_in_json_and_in_words(run: Command, tmp_path: Path) -> None:
    code, out, err = run("predict", VILLAGE, "--for", "Dina", "--top", 2, "--why", "--json")
    assert (code, err) == (0, "")
    (first, second) = json.loads(out)["pairs"]
    assert first["source"] == second["source"] == "Dina"
    assert first["because"].endswith("shared neighbours")
    assert "about" in run("predict", VILLAGE, "--top", 5)[1]
    (tmp_path / "nodes.txt").write_text("Dina\n\nLeo\n")
    code, out, err = run("predict", VILLAGE, "--for-file", tmp_path / "nodes.txt", "--top", 2, "--json")
    assert [pair["source"] for pair in json.loads(out)["pairs"]] == ["Dina", "Dina", "Leo", "Leo"]
    code, out, err = run("similar", VILLAGE, "Dina", "--top", 2, "--json")
    assert len(json.loads(out)["similar"]) == 2
    code, out, err = run("explain", VILLAGE, "Dina", "Leo", "--json")
    found = json.loads(out)
    assert found["base"] + sum(found["contributions"].values()) == pytest.approx(found["score"], abs=1e-3)
    words = run("explain", VILLAGE, "Dina", "Leo")[1]
    assert "shared neighbours: 10" in words
    assert "an average unlinked pair" in words
    links = pl.read_csv(VILLAGE.parent / "village-forgotten.csv")
    code, out, err = run("evaluate", VILLAGE, "--links", VILLAGE.parent / "village-forgotten.csv", "--json")
    assert json.loads(out)["links"] == links.height
    assert json.loads(out)["auc"] > 0.9


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("predict", VILLAGE, "--for", "Dinna"), "did you mean 'Dina'"),
        (("predict", VILLAGE, "--for", "Dina", "--pairs", "x.csv"), "pass one of --pairs FILE"),
        (("predict", VILLAGE, "--for-file", "nowhere.txt"), "nowhere.txt does not exist"),
        (("explain", VILLAGE, "Dina", "Dina"), "same node"),
        (("similar", VILLAGE, "Dinna"), "did you mean"),
        (("evaluate", VILLAGE, "--links", "nowhere.csv"), "nowhere.csv does not exist"),
        (("evaluate", VILLAGE, "--links", VILLAGE), "links are in the graph already"),
        (("predict", VILLAGE, "--for", "all", "--for", "Dina"), "--for all asks about every node"),
    ],
)
def test_wrong_questions_get_one_line(run: Command, arguments: tuple[str, ...], message: str) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
