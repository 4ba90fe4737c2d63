"""The summary of runs against oracles, and the page as a file; tests/browser opens it."""

from __future__ import annotations

import base64
import hashlib
import json
import logging
import re
import shlex
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis.extra import numpy as hnp
from plotly.offline import get_plotlyjs
from sklearn.decomposition import PCA

import psgnn
from conftest import adjacency_of, data_of, random_graphs
from psgnn import cli
from psgnn.cli.arguments import parse_setting
from psgnn.console import Heartbeat
from psgnn.errors import InputError
from psgnn.models._config import make_config
from psgnn.report import make_page, plain, summarise, write_page
from psgnn.report._anchoring import final_units, moves, steps_of
from psgnn.report._answers import (
    LEAST_EXPLAINED,
    LEAST_NODES,
    LONGEST_PATH,
    MOST_EXPLAINED,
    MOST_NODES,
    PARTNERS,
)
from psgnn.report._drawing import Limits, Step, find_communities, fitting_steps, place_nodes, thin
from psgnn.report._measured import map_of, reliability, trained_negatives
from psgnn.report._page import MOST_BYTES, shown_name, shown_names, to_json
from psgnn.report._summary import MOST_RUNS, read_comparison
from psgnn.scoring import HEURISTICS
from psgnn.training import _runs as runs
from psgnn.training._compare import Method, measure
from psgnn.training._folder import HELD_OUT
from psgnn.training._heldout import part_of, read_held_out, write_held_out
from psgnn.training._run import Run
from report_runs import HOSTILE_NAMES, hostile_graph, large_summary, train


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of psgnn on a graph with hostile names and classes."""
    return train(hostile_graph(), tmp_path_factory.mktemp("report") / "run")


@pytest.fixture(scope="module")
def summary(folder: Path) -> dict[str, Any]:
    return summarise([folder])


# --- the summary against oracles


def test_hops_and_links_are_those_of_networkx(folder: Path, summary: dict[str, Any]) -> None:
    result = psgnn.load(folder)
    (drawn,) = summary["runs"][0]["drawn"]
    visible = nx.from_edgelist(result.view.union.adjacency.edges().T.tolist())
    visible.add_nodes_from(range(result.view.union.num_nodes))
    names = [shown_name(name) for name in result.node_names[0]]
    (anchors,) = result.anchors or []
    assert drawn["names"] == names
    assert {frozenset(link) for link in drawn["links"].T.tolist()} == {
        frozenset(link) for link in visible.edges
    }
    assert drawn["anchors"] == [shown_name(names[anchor], 60) for anchor in anchors]
    for place, anchor in enumerate(anchors):
        expected = nx.single_source_shortest_path_length(visible, anchor)
        assert drawn["hops"][place].tolist() == [expected.get(v, -1) for v in range(len(names))]
    reached = np.where(drawn["hops"] < 0, 99, drawn["hops"]).min(axis=0)
    assert drawn["nearest"].tolist() == np.where(reached == 99, -1, reached).tolist()


def test_rules_and_run_have_the_metrics_that_compare_gives(summary: dict[str, Any]) -> None:
    task = psgnn.LinkPrediction(hostile_graph(), seed=0)
    rows = {row["name"]: row for row in summary["runs"][0]["rules"]["rows"]}
    assert rows.keys() == {"this run", "this run, embeddings alone", *HEURISTICS}
    for rule in HEURISTICS:
        assert rows[rule]["auc"] == measure(Method(rule, "rule"), task, 0)["test"]["auc"]
    (run,) = summary["runs"]
    assert rows["this run"]["auc"] == pytest.approx(run["test"]["auc"], abs=1e-9)
    assert rows["this run, embeddings alone"]["ap"] == pytest.approx(run["embedding_test"]["ap"], abs=1e-9)
    aucs = [row["auc"] for row in summary["runs"][0]["rules"]["rows"]]
    assert aucs == sorted(aucs, reverse=True)


def test_histogram_counts_every_test_pair_once(summary: dict[str, Any]) -> None:
    task = psgnn.LinkPrediction(hostile_graph(), seed=0)
    scores = summary["runs"][0]["scores"]
    assert scores["positives"].sum() == task.test.labels.sum()
    assert scores["negatives"].sum() == (task.test.labels == 0).sum()
    assert (np.diff(scores["edges"]) > 0).all()
    assert scores["reliability"]["pairs"].sum() == task.test.labels.size


def test_predictions_are_unlinked_pairs_best_first(folder: Path, summary: dict[str, Any]) -> None:
    result = psgnn.load(folder)
    graph = nx.from_edgelist(result.batch.adjacency.edges().T.tolist())  # with the held-out links
    rows = summary["runs"][0]["predictions"]
    scores = [row["score"] for row in rows]
    assert scores == sorted(scores, reverse=True)
    (drawn,) = summary["runs"][0]["drawn"]
    assert drawn["ranks"].tolist() == [row["rank"] for row in rows] == list(range(1, len(rows) + 1))
    for row, (u, v) in zip(rows, drawn["predicted"].T.tolist(), strict=True):
        assert not graph.has_edge(u, v)
        assert {shown_name(drawn["names"][u], 60), shown_name(drawn["names"][v], 60)} == {
            row["source"], row["target"]
        }  # fmt: skip
        assert row["common"] == len(list(nx.common_neighbors(graph, u, v)))
        assert row["hops"] == (nx.shortest_path_length(graph, u, v) if nx.has_path(graph, u, v) else None)
        assert row["same_class"] is bool(u // 8 == v // 8)


def test_map_is_that_of_principal_components() -> None:
    points = np.random.default_rng(0).normal(size=(60, 7)) @ np.diag([5, 3, 1, 1, 1, 0.5, 0.1])
    places, shares = map_of(points)
    pca = PCA(2).fit(points)
    assert shares == pytest.approx(pca.explained_variance_ratio_.tolist())
    expected = pca.transform(points)
    expected /= np.abs(expected).max()
    signs = np.sign((places * expected).sum(axis=0))
    np.testing.assert_allclose(places, expected * signs, atol=1e-5)
    flat, shares = map_of(np.zeros((5, 1), np.float32))
    assert flat.tolist() == [[0, 0]] * 5
    assert shares == [0, 0]


def test_communities_are_as_modular_as_those_of_networkx() -> None:
    for graph in (
        nx.karate_club_graph(), nx.connected_caveman_graph(12, 7), nx.les_miserables_graph(),
        nx.planted_partition_graph(6, 30, 0.4, 0.02, seed=1),
    ):  # fmt: skip
        numbered = nx.Graph(nx.convert_node_labels_to_integers(graph).edges)
        found = find_communities(adjacency_of(numbered))
        parts = [set(np.flatnonzero(found == c).tolist()) for c in range(found.max() + 1)]
        theirs = nx.community.louvain_communities(numbered, weight=None, seed=0)
        ours = nx.community.modularity(numbered, parts, weight=None)
        assert ours > nx.community.modularity(numbered, theirs, weight=None) - 0.02
        assert [len(part) for part in parts] == sorted(map(len, parts), reverse=True)
    caves = find_communities(adjacency_of(nx.connected_caveman_graph(12, 7))).reshape(12, 7)
    assert (caves == caves[:, :1]).all()


@given(random_graphs())
def test_communities_and_places_of_any_graph(graph: nx.Graph) -> None:
    adjacency = adjacency_of(graph)
    found = find_communities(adjacency)
    assert set(found.tolist()) == set(range(int(found.max()) + 1))
    for part in nx.connected_components(graph):
        others = set(range(adjacency.num_nodes)) - part
        assert not set(found[sorted(part)].tolist()) & set(found[sorted(others)].tolist())
    places = place_nodes(adjacency)
    assert places.shape == (adjacency.num_nodes, 2)
    assert np.isfinite(places).all()
    assert np.abs(places).max() <= 1 + 1e-9
    np.testing.assert_array_equal(places, place_nodes(adjacency))


def test_a_stray_part_does_not_shrink_a_large_graph() -> None:
    graph = nx.disjoint_union(nx.gnm_random_graph(3100, 9000, seed=0), nx.path_graph(4))
    places = place_nodes(adjacency_of(graph))
    assert np.abs(places).max() == pytest.approx(1)
    assert np.ptp(places[:3100], axis=0).min() > 0.8


# --- what fits the page


def test_thinning_keeps_anchors_their_surroundings_and_something_of_the_rest() -> None:
    graph = adjacency_of(
        nx.grid_2d_graph(60, 60).__class__(nx.convert_node_labels_to_integers(nx.grid_2d_graph(60, 60)).edges)
    )
    anchors = np.array([0, 1000, 0, 2222])
    kept = thin(graph, anchors, 400, np.random.default_rng(0))
    assert kept.size == 400
    assert (np.diff(kept) > 0).all()
    assert set(anchors.tolist()) <= set(kept.tolist())
    hops = psgnn.shortest_distances(graph.edge_index(), anchors).min(axis=1)
    assert set(np.flatnonzero(hops <= 4).tolist()) <= set(kept.tolist())
    assert (hops[kept] > 20).sum() > 20
    many = thin(graph, np.arange(3000), 400, np.random.default_rng(0))
    assert many.size == 400
    assert (many < 3000).sum() < 400
    assert thin(graph, np.array([], np.int64), 10_000, np.random.default_rng(0)).size == 3600


def test_steps_are_left_out_evenly_until_the_anchors_fit() -> None:
    steps = [Step(10 * i, [(i,), (i + 1,), (500,)]) for i in range(200)]
    final = steps[77].units
    kept, units = fitting_steps(steps, final, 30)
    assert len(units) <= 30
    assert units[:3] == final
    epochs = [step.epoch for step in kept]
    assert (epochs[0], epochs[-1]) == (0, 1990)
    assert 770 in epochs
    assert all(unit in units for step in kept for unit in step.units)
    whole, units = fitting_steps(steps[:5], steps[2].units, 1000)
    assert whole == steps[:5]
    assert len(units) == 7
    _, few = fitting_steps([Step(None, [(i,) for i in range(50)])], [(i,) for i in range(50)], 10)
    assert few == [(i,) for i in range(10)]


def test_a_graph_of_100_000_nodes_fits(tmp_path: Path, summary: dict[str, Any]) -> None:
    big = large_summary(summary)
    (drawn,) = big["runs"][0]["drawn"]
    assert len(drawn["names"]) == 6000
    assert drawn["nodes"] == 100_000
    assert drawn["links"].shape[1] <= 20_000
    assert all((drawn["hops"] == 0).any(axis=1))  # every anchor is drawn
    assert write_page(big, tmp_path / "big.html") < MOST_BYTES
    assert "'unsafe-eval'" in (tmp_path / "big.html").read_text()[:2000]


def test_as_many_runs_as_allowed_fit() -> None:
    limits = Limits.shared_by(MOST_RUNS)
    # Bytes in base64: hops, two places of two floats, four numbers and two ends of links; then names.
    each = (limits.hops + limits.nodes * 32 + limits.links * 10) * 4 / 3 + limits.name_bytes
    # Partners of nodes and explanations, with every name as long as it may be.
    each += max(MOST_NODES // MOST_RUNS, LEAST_NODES) * PARTNERS * 300
    explained = max(MOST_EXPLAINED // MOST_RUNS, LEAST_EXPLAINED)
    each += explained * (20 + 3 * LONGEST_PATH + 10) * 4 * 60
    assert MOST_RUNS * each < MOST_BYTES - 5_500_000
    assert limits.nodes >= 1000


# --- kinds of runs


def test_fixed_anchors_come_one_after_another(folder: Path) -> None:
    result = psgnn.load(folder)
    (final,) = final_units(result)
    steps = steps_of(result, 0, final)
    assert [len(step.units) for step in steps] == list(range(1, len(final) + 1))
    assert steps[-1].units == final
    assert not moves(result)


def test_moving_anchors_are_those_of_the_history(folder: Path) -> None:
    result = psgnn.load(folder)
    history = [{"epoch": e, "loss": 1.0, "auc": 0.5, "anchors": [e, e + 1]} for e in range(5)]
    moving = replace(result, history=history)
    assert moves(moving)
    assert [step.units for step in steps_of(moving, 0, [(4,), (5,)])] == [[(e,), (e + 1,)] for e in range(5)]
    damaged = replace(result, history=[*history, {"epoch": 6, "anchors": [{"a": 1}]}])
    with pytest.raises(InputError, match="damaged history of anchors"):
        steps_of(damaged, 0, [(4,), (5,)])
    still = replace(result, history=[{**entry, "anchors": [1, 2]} for entry in history])
    assert not moves(still)


def test_learned_anchors_say_what_each_of_them_explains(tmp_path: Path) -> None:
    folder = train(data_of(nx.connected_caveman_graph(4, 6)), tmp_path / "run", preset="learned")
    (drawn,) = summarise([folder])["runs"][0]["drawn"]
    shares = [step["explained"] for step in drawn["steps"]]
    assert shares == psgnn.load(folder).record["explained"][0]
    assert len(shares) == 4
    assert 0 < shares[0] <= shares[-1] < 1


@pytest.mark.parametrize(("name", "kind"), [("pgnn", "sets"), ("gcn", "none"), ("agnn", "nodes")])
def test_other_models_and_several_graphs(tmp_path: Path, name: str, kind: str) -> None:
    graphs = [data_of(nx.connected_caveman_graph(3, 6)), data_of(nx.connected_caveman_graph(4, 5))]
    run = summarise([train(graphs, tmp_path / "run", name=name)])["runs"][0]
    assert run["anchors"]["kind"] == kind
    assert run["graphs"] == len(run["drawn"]) == 2
    assert [drawn["nodes"] for drawn in run["drawn"]] == [18, 20]
    assert all(len(drawn["steps"]) == 0 for drawn in run["drawn"]) is (kind == "none")
    assert sum(drawn["ranks"].size for drawn in run["drawn"]) == len(run["predictions"])
    if kind == "sets":
        result = psgnn.load(tmp_path / "run")
        for drawn, sets, start in zip(run["drawn"], result.anchors or [], (0, 18), strict=True):
            for hops, members in zip(drawn["hops"], dict.fromkeys(map(tuple, sets)), strict=True):
                assert np.flatnonzero(hops == 0).tolist() == sorted(v - start for v in members)
    make_page({"format": 1, "psgnn": "0", "runs": [{"name": "a", **run}], "comparison": None})


def test_pair_tasks_say_whether_a_predicted_pair_is_of_one_class(tmp_path: Path) -> None:
    graph = hostile_graph()
    graph.y[3] = -1
    run = summarise([train(graph, tmp_path / "run", task="pair")])["runs"][0]
    (drawn,) = run["drawn"]
    for row, (u, v) in zip(run["predictions"], drawn["predicted"].T.tolist(), strict=True):
        expected = None if 3 in (u, v) else u // 8 == v // 8
        assert row["same_class"] == expected
    assert drawn["class"].tolist() == graph.y.tolist()


def test_a_command_that_was_not_typed_has_the_same_settings(tmp_path: Path) -> None:
    folder = train(hostile_graph(), tmp_path / "run", dropout=0.1, roles=False)
    command = summarise([folder])["runs"][0]["command"]
    assert command["typed"] is False
    words = shlex.split(command["text"])
    options = dict(parse_setting(words[i + 1]) for i, word in enumerate(words) if word == "--option")
    given_options = {
        key: words[words.index(key) + 1] for key in ("--task", "--model", "--preset", "--seed", "--epochs")
    }
    assert given_options == {
        "--task": "link",
        "--model": "psgnn",
        "--preset": "best",
        "--seed": "0",
        "--epochs": "4",
    }
    made = make_config("psgnn", "link", 1, "best", 0, **options)
    kept = runs.read_config(folder)
    assert made.model_dump() | {"epochs": 0} == kept.model_dump() | {"epochs": 0}


def test_a_run_without_its_pairs_says_so(folder: Path, tmp_path: Path) -> None:
    old = tmp_path / "old"
    old.mkdir()
    for file in folder.iterdir():
        if file.name != HELD_OUT:
            (old / file.name).write_bytes(file.read_bytes())
    run = summarise([old])["runs"][0]
    assert "train it again" in run["rules"]["why"]
    assert "train it again" in run["scores"]["why"]
    assert run["drawn"][0]["class"] is None
    assert "same_class" not in run["predictions"][0]


# --- what is kept of the task


def test_held_out_pairs_come_back(tmp_path: Path) -> None:
    task = psgnn.LinkPrediction(hostile_graph(), seed=3)
    write_held_out(tmp_path, task)
    found = read_held_out(tmp_path, task.union)
    assert found is not None
    for ours, theirs in ((found.val, task.val), (found.test, task.test)):
        assert np.array_equal(ours.pairs, theirs.pairs)
        assert np.array_equal(ours.labels, theirs.labels)
        assert np.array_equal(ours.graph_ids, theirs.graph_ids)
    assert found.classes is not None
    assert np.array_equal(found.classes, hostile_graph().y)
    assert found.whole


def test_of_very_many_pairs_a_part_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = psgnn.LinkPrediction(hostile_graph(), seed=3)
    monkeypatch.setattr("psgnn.training._heldout.MOST_KEPT_PAIRS", 10)
    write_held_out(tmp_path, task, seed=1)
    found = read_held_out(tmp_path, task.union)
    assert found is not None
    assert not found.whole
    part = part_of(task.test, 10, 1)
    assert np.array_equal(found.test.pairs, part.pairs)
    assert {tuple(pair) for pair in part.pairs.T.tolist()} <= {
        tuple(pair) for pair in task.test.pairs.T.tolist()
    }
    assert not np.array_equal(part.pairs, part_of(task.test, 10, 2).pairs)


@pytest.mark.parametrize(
    "change",
    [
        {"test.pairs": torch.full((2, 3), 10**6, dtype=torch.int32), "test.labels": torch.ones(3, dtype=torch.uint8)},
        {"test.pairs": torch.full((2, 3), -1, dtype=torch.int32), "test.labels": torch.ones(3, dtype=torch.uint8)},
        {"test.labels": torch.ones(2, dtype=torch.uint8)},
        {"test.labels": torch.ones(2, 2, dtype=torch.uint8)},
        {"val.pairs": torch.zeros(2, 4), "val.labels": torch.ones(4, dtype=torch.uint8)},
        {"val.labels": None},
        {"classes": torch.zeros(3, dtype=torch.int64)},
    ],
)  # fmt: skip
def test_damaged_pairs_are_one_line(tmp_path: Path, change: dict[str, torch.Tensor | None]) -> None:
    task = psgnn.LinkPrediction(hostile_graph())
    write_held_out(tmp_path, task)
    tensors, metadata = runs.read_tensors(tmp_path / HELD_OUT)
    changed = {key: value for key, value in {**tensors, **change}.items() if value is not None}
    runs.write_tensors(tmp_path / HELD_OUT, changed, whole=True)
    with pytest.raises(InputError, match=r"does not hold pairs of this run \(.+\); train again"):
        read_held_out(tmp_path, task.union)
    (tmp_path / HELD_OUT).write_bytes(b"\x80\x04pickle")
    with pytest.raises(InputError, match="is damaged or not of psgnn"):
        read_held_out(tmp_path, task.union)


def test_a_run_that_is_replaced_leaves_no_pairs_behind(tmp_path: Path) -> None:
    folder = train(hostile_graph(), tmp_path / "run")
    assert (folder / HELD_OUT).exists()
    psgnn.training.remove_run(folder)
    assert list(folder.iterdir()) == []


# --- the page as a file


def plotly_js() -> str:
    text: str = get_plotlyjs()
    return text


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda e: st.lists(e) | st.dictionaries(st.text(), e),
    )
)
def test_json_on_a_page_means_the_same_and_has_nothing_that_html_reads(value: Any) -> None:
    text = to_json(value)
    assert json.loads(text) == value
    assert not re.search("[<>&\u2028\u2029]", text)


SHAPES = hnp.array_shapes(max_dims=2)


@given(
    hnp.arrays(st.sampled_from([np.int16, np.uint8]), SHAPES, elements=st.integers(0, 100))
    | hnp.arrays(np.int64, SHAPES, elements=st.integers(-1, 70_000))
    | hnp.arrays(np.float32, SHAPES, elements=st.floats(-1, 1, width=32))
)
def test_packed_arrays_come_back(array: Any) -> None:
    found = json.loads(to_json({"a": [array]}))["a"][0]
    raw = np.frombuffer(base64.b64decode(found["bytes"]), f"<{found['packed']}")
    np.testing.assert_array_equal(raw.astype(array.dtype).reshape(found["shape"]) + found["low"], array)


def test_the_page_is_whole_and_calls_nowhere(summary: dict[str, Any]) -> None:
    page = make_page(summary)
    assert len(page.encode()) < MOST_BYTES
    own = page.replace(plotly_js(), "")
    assert len(own) < len(page) - 1_000_000
    own = re.sub(r'(id="data">).*?(</script>)', r"\1\2", own, flags=re.DOTALL)
    assert set(re.findall(r"(?:src|href)=(.)(.)", own)) == {('"', "#")}
    assert "http://" not in own
    assert "https://" not in own
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    assert "default-src 'none'" in policy
    assert "unsafe-eval" not in policy
    assert "connect-src" not in policy
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    assert re.findall(r"'sha256-([^']*)'", policy) == hashes
    assert len(hashes) == 2


def test_hostile_names_are_only_in_the_json(summary: dict[str, Any]) -> None:
    page = make_page(summary)
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    names = json.loads(data)["runs"][0]["drawn"][0]["names"]
    assert names[: len(HOSTILE_NAMES)] == [shown_name(name) for name in HOSTILE_NAMES]
    rest = page.replace(data, "")
    for name in HOSTILE_NAMES:
        assert name[:40] not in rest
    assert page.count("<script") == 3
    assert page.count("<img") == rest.count("<img") == plotly_js().count("<img")


def test_names_are_short_and_do_not_turn_the_text_around_them() -> None:
    assert shown_name("Ærøskøbing (שלום)") == "Ærøskøbing (שלום)"
    assert shown_name("a\u202egnp.exe\x00\n\u2028\ud800") == "a\ufffdgnp.exe\ufffd\ufffd\ufffd\ufffd"
    assert len(shown_name("x" * 10_000)) == 120
    assert shown_name("x" * 10_000 + "end").endswith("end")
    names = [f"{'y' * 500}{i}" for i in range(100)]
    assert sum(map(len, shown_names(names, 4000))) <= 4000
    assert shown_names(["ab", "cd"], 4000) == ["ab", "cd"]
    assert max(map(len, shown_names(names, 1))) == 8


# --- comparisons from elsewhere, and the command line


def test_what_compare_printed_can_be_shown(tmp_path: Path, folder: Path) -> None:
    rows = psgnn.training._compare.compare(
        [hostile_graph()], "link", rules=["adamic-adar", "pagerank"], seeds=2
    )
    path = tmp_path / "compare.json"
    document = {"graph": "<b>g</b>", "task": "link", "seeds": [0, 1], "rows": rows}
    path.write_text(json.dumps(document))
    found = read_comparison(path)
    assert [row["name"] for row in found["rows"]] == [row["name"] for row in rows]
    assert [row["auc"] for row in found["rows"]] == [row["auc_mean"] for row in rows]
    assert summarise([folder], top=5, comparison=path)["comparison"] == found
    for damage in ("[]", "{", '{"rows": [1]}', json.dumps({**document, "rows": [{**rows[0], "auc_mean": "x"}]}),
                   json.dumps(document).replace('"auc_mean": 0', '"auc_mean": 1e999')):  # fmt: skip
        path.write_text(damage)
        with pytest.raises(InputError, match="is not what psgnn compare --json prints"):
            read_comparison(path)
    with pytest.raises(InputError, match="cannot read"):
        read_comparison(tmp_path / "none.json")


def call(monkeypatch: pytest.MonkeyPatch, *words: object) -> int:
    monkeypatch.setattr("sys.argv", ["psgnn", *map(str, words)])
    with pytest.raises(SystemExit) as exit_info:
        cli.main()
    return int(exit_info.value.code or 0)


def test_the_command_writes_the_page_and_prints_the_same_summary(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "report.html"
    assert call(monkeypatch, "report", folder, "-o", page, "--top", 9) == 0
    out, err = capsys.readouterr()
    assert f"the report is {page}" in out
    assert err == ""
    before = page.read_bytes()
    assert call(monkeypatch, "report", folder, "-o", page) == 2
    assert capsys.readouterr().err.endswith("pass --force to replace it or choose another --out\n")
    assert page.read_bytes() == before
    assert call(monkeypatch, "report", folder, "-o", page, "--force", "--top", 9) == 0
    assert page.read_bytes() == before
    capsys.readouterr()
    assert call(monkeypatch, "report", folder, "--top", 9, "--json") == 0
    out, err = capsys.readouterr()
    assert json.loads(out) == json.loads(json.dumps(plain(summarise([folder], top=9))))
    assert err == ""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["RUN"], "say where the page goes"),
        (["RUN", "-o", "report.pdf"], "the format is one of .html"),
        (["nowhere", "-o", "report.html"], "nowhere is not a finished run of psgnn"),
        (["RUN", "-o", "none/report.html"], "does not exist; create it"),
        (["RUN", "-o", "report.html", "--compare", "none.json"], "cannot read none.json"),
        ([*["RUN"] * 41, "-o", "report.html"], "41 runs do not fit one page"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    words: list[str], message: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert call(monkeypatch, "report", *[folder if word == "RUN" else word for word in words]) == 2
    out, err = capsys.readouterr()
    assert message in err
    assert err.count("\n") == 1
    assert out == ""
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_history_is_one_line(folder: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    for file in folder.iterdir():
        (damaged / file.name).write_bytes(file.read_bytes())
    record = json.loads((folder / "record.json").read_text())
    record["history"][0]["loss"] = "much"
    (damaged / "record.json").write_text(json.dumps(record))
    with pytest.raises(InputError):
        summarise([damaged])


def test_runs_of_one_name_are_told_apart(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / folder.name
    copy.mkdir()
    for file in folder.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    names = [run["name"] for run in summarise([folder, copy], top=3)["runs"]]
    assert names == [str(folder), str(copy)]


def test_result_is_not_changed_by_a_report(folder: Path) -> None:
    before: Run = psgnn.load(folder)
    scores = before.score(np.array([[0, 1], [9, 10]]))
    summarise([folder], top=3)
    assert np.array_equal(psgnn.load(folder).score(np.array([[0, 1], [9, 10]])), scores)


# Reliability


def test_scores_of_pair_classification_are_learned_among_as_many_negatives() -> None:
    told = {task: trained_negatives(make_config("psgnn", task, 1)) for task in ("link", "pair")}
    assert told == {"link": 3, "pair": 1}
    task = psgnn.PairClassification(psgnn.load_dataset("communities"))
    assert task.train.labels.mean() == 0.5


def test_reliability_of_honest_and_of_boastful_scores() -> None:
    rng = np.random.default_rng(0)
    logits = rng.normal(0, 2, 40_000)
    positive = rng.random(logits.size) < 1 / (1 + np.exp(-logits))
    honest = reliability(logits, positive, 1)
    assert honest["error"] < 0.02
    assert honest["pairs"].sum() == logits.size
    np.testing.assert_allclose(honest["probability"], honest["share"], atol=0.04)
    assert reliability(3 * logits, positive, 1)["error"] > 0.08
    # Three negatives for each positive in training lower the logits, and that is allowed for.
    assert reliability(logits - np.log(3), positive, 3)["error"] == honest["error"]
    # Rare positives count as much as many negatives.
    rare = ~positive | (rng.random(logits.size) < 0.1)
    assert reliability(logits[rare], positive[rare], 1)["error"] < 0.02


# Answers


def test_probabilities_and_partners_are_those_of_predict(folder: Path, summary: dict[str, Any]) -> None:
    result = psgnn.load(folder)
    run = summary["runs"][0]
    expected = result.predict(top=200)
    for column in ("probability", "expected_precision"):
        np.testing.assert_allclose([row[column] for row in run["predictions"]], expected[column].to_numpy())
    (drawn,) = run["drawn"]
    assert drawn["partners_whole"]
    assert sorted(each["node"] for each in drawn["partners"]) == list(range(48))
    for each in drawn["partners"][::9]:
        best = result.predict(of=each["node"], top=5, why=True)
        np.testing.assert_allclose(
            [row["score"] for row in each["rows"]], best["score"].to_numpy(), atol=1e-4
        )
        np.testing.assert_allclose(
            [row["probability"] for row in each["rows"]], best["probability"].to_numpy(), rtol=1e-4
        )
        assert [row["because"] for row in each["rows"]] == best["because"].to_list()


def test_explanations_are_those_of_explain(folder: Path, summary: dict[str, Any]) -> None:
    result = psgnn.load(folder)
    (drawn,) = summary["runs"][0]["drawn"]
    for found in summary["runs"][0]["explanations"][:5]:
        u, v = drawn["predicted"][:, found["rank"] - 1].tolist()
        expected = result.explain(u, v)
        assert found["contributions"] == expected["contributions"]
        assert found["shared"] == [shown_name(name, 60) for name in expected["shared_neighbours"]]
        total = found["base"] + sum(found["contributions"].values())
        assert total == pytest.approx(found["score"], abs=1e-3)


def test_reliability_counts_all_unlinked_pairs_and_hidden_links(
    folder: Path, summary: dict[str, Any]
) -> None:
    result = psgnn.load(folder)
    found = summary["runs"][0]["expectation"]
    unlinked = 48 * 47 // 2 - result.view.union.adjacency.num_edges - result.hidden.shape[1]
    assert abs(found["reliability"]["pairs"].sum() - unlinked) <= found["reliability"]["pairs"].size
    assert found["reliability"]["hidden"].sum() == result.hidden.shape[1]
    assert found["missing"] == pytest.approx(0.1 * result.batch.adjacency.num_edges)


def test_of_larger_graphs_the_page_has_candidates_of_some_nodes(tmp_path: Path) -> None:
    graph = data_of(nx.connected_watts_strogatz_graph(700, 6, 0.1, seed=0))
    run = summarise([train(graph, tmp_path / "run")], top=20)["runs"][0]
    (drawn,) = run["drawn"]
    assert not drawn["partners_whole"]
    assert 400 < len(drawn["partners"]) <= 500
    listed = {int(v) for v in drawn["predicted"].ravel()}
    assert listed <= {each["node"] for each in drawn["partners"]}
    for row, (u, v) in zip(run["predictions"], drawn["predicted"].T.tolist(), strict=True):
        (partners,) = (each["rows"] for each in drawn["partners"] if each["node"] == u)
        better = [each["score"] for each in partners if each["place"] != v]
        assert v in [each["place"] for each in partners] or min(better) >= row["score"] - 1e-4


def test_without_a_terminal_a_report_logs_that_it_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("psgnn").propagate = True
    with caplog.at_level("INFO", "psgnn"), Heartbeat("report", seconds=0.02) as beat:
        beat.note("drawing")
        time.sleep(0.2)
    assert len(caplog.messages) >= 2
    assert re.fullmatch(r"report: drawing \(\d+ s\)", caplog.messages[-1])
    with caplog.at_level("INFO", "psgnn"), Heartbeat("report", seconds=0.02, show=False):
        caplog.clear()
        time.sleep(0.1)
    assert caplog.messages == []
