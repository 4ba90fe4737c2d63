"""Methods side by side: names, records, options of the task, ablations."""

from __future__ import annotations

import importlib
import sys
from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np
import pytest

from conftest import Command, adjacency_of
from psgnn import Graph
from psgnn.errors import InputError, MissingExtraError
from psgnn.models import MODELS, build_model
from psgnn.models._presets import ABLATIONS
from psgnn.scoring import HEURISTICS, score_pairs
from psgnn.tasks import LinkPrediction, OfficialLinks, PairClassification
from psgnn.tasks._metrics import evaluate
from psgnn.training import fit
from psgnn.training._compare import Method, ablations, compare, make_task, measure, parse_models
from psgnn.training._peers import PEERS


@pytest.fixture(scope="module")
def graphs() -> list[Graph]:
    edges = adjacency_of(nx.connected_caveman_graph(6, 6)).edges()
    return [Graph.from_edges(edges, y=np.arange(36) // 6)]


# --- names


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (("psgn", "model"), "unknown model 'psgn'; did you mean 'psgnn'"),
        (("node2vek", "peer"), "unknown peer 'node2vek'; did you mean 'node2vec'"),
        (("shortest", "rule"), "unknown rule 'shortest'; did you mean 'shortest-path'"),
        (("psgnn", "modell"), "unknown kind of method 'modell'; did you mean 'model'"),
        (("psgnn", "model", "papr"), "unknown preset 'papr'; did you mean 'paper'"),
        (("degree-product", "rule", "best", {}), "unknown rule"),
        (("boosting", "peer", "best", {"trees": 3}), "the peer boosting has no options, found trees"),
    ],
)
def test_a_method_that_does_not_exist_is_an_error_at_once(fields: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Method(*fields)


def test_titles() -> None:
    assert Method("psgnn", "model").title == "psgnn"
    assert Method("psgnn", "model", "paper").title == "psgnn/paper"
    assert Method("psgnn", "model", "paper", label="as published").title == "as published"
    assert len({Method("psgnn", "model", options={"layers": 1}), Method("gcn", "model")}) == 2


def test_parse_models() -> None:
    assert parse_models("all") == list(MODELS)
    assert parse_models("none") == []
    assert parse_models("psgnn/paper, gcn,node2vec") == ["psgnn/paper", "gcn", "node2vec"]
    with pytest.raises(InputError, match="unknown model 'gpt'; did you mean 'gat'"):
        parse_models("psgnn,gpt")
    with pytest.raises(InputError, match="unknown preset 'papr'"):
        parse_models("psgnn/papr")


# --- tasks


def test_the_options_of_a_task(graphs: list[Graph]) -> None:
    assert isinstance(make_task(graphs, "link", 0, folds=3), LinkPrediction)
    small = make_task(graphs, "pair", 0, max_pairs=20)
    assert isinstance(small, PairClassification)
    assert sum(int(part.labels.sum()) for part in (small.train, small.val, small.test)) == 20
    plain, matched = (make_task(graphs, "link", 0, negatives=rule) for rule in ("uniform", "degree"))
    assert plain.digest != matched.digest
    with pytest.raises(InputError, match="unknown option of the link task 'fold'; did you mean 'folds'"):
        make_task(graphs, "link", 0, fold=3)
    with pytest.raises(InputError, match="unknown negatives of the pair task 'degree'"):
        make_task(graphs, "pair", 0, negatives="degree")


def test_an_official_split_is_taken(graphs: list[Graph]) -> None:
    path = Graph(adjacency_of(nx.path_graph(12)))
    held_out = {"valid_edge": [[0], [2]], "valid_edge_neg": [[0], [3]]}
    held_out |= {"test_edge": [[0], [4]], "test_edge_neg": [[0], [5]]}
    split = {name: np.array(pairs) for name, pairs in held_out.items()}
    task = make_task([replace(path, split=split)], "link", 0)
    assert isinstance(task, OfficialLinks)
    assert task.test.pairs.tolist() == [[0, 0], [4, 5]]


# --- one measurement


@pytest.mark.parametrize("name", ["common-neighbours", "spectral-cosine"])
def test_a_rule_is_measured_on_both_splits(graphs: list[Graph], name: str) -> None:
    task = make_task(graphs, "link", 1)
    found = measure(Method(name, "rule"), task, 1)
    assert found.pop("seconds") > 0
    for part in ("val", "test"):
        split = getattr(task, part)
        expected = evaluate(split, score_pairs(name, task.union, split.pairs, 1))
        pooled = {metric: value for metric, value in found.pop(part).items() if "per_node" not in metric}
        assert pooled == pytest.approx(expected, abs=1e-12)
    assert not found


def test_a_model_is_built_with_its_preset_and_options_and_trained(graphs: list[Graph]) -> None:
    task = make_task(graphs, "link", 0)
    found = measure(Method("gcn", "model", "paper", {"hidden": 8}), task, 0, epochs=5)
    expected = fit(build_model("gcn", task, "paper", 0, hidden=8), task, epochs=5, seed=0)
    assert found["test"] == expected.test
    assert found["val"] == expected.val
    assert found["embedding"] == expected.embedding_test
    assert (found["best_epoch"], found["epochs_run"]) == (expected.record["best_epoch"], 5)


def test_a_peer_is_measured_by_its_scores(graphs: list[Graph], monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def oracle(task: Any, seed: int) -> Any:
        seen.append(seed)
        positives = {tuple(pair) for pair in task.test.pairs[:, task.test.labels == 1].T.tolist()}
        return lambda pairs: np.array([float(tuple(pair) in positives) for pair in pairs.T.tolist()])

    monkeypatch.setitem(PEERS, "boosting", oracle)
    found = measure(Method("boosting", "peer"), make_task(graphs, "link", 0), 7)
    assert seen == [7]
    assert found["test"]["auc"] == 1
    assert found["val"]["auc"] == 0.5  # the pairs of validation are no test positives: all scores are equal


# --- tables


def test_rows_hold_every_seed_and_its_record(graphs: list[Graph]) -> None:
    rows = compare(graphs, "link", seeds=2, first_seed=5, records=True)
    assert sorted(row["name"] for row in rows) == sorted(HEURISTICS)
    assert [row["auc_mean"] for row in rows] == sorted((row["auc_mean"] for row in rows), reverse=True)
    for row in rows:
        assert [record["seed"] for record in row["records"]] == [5, 6]
        for metric in row["records"][0]["test"]:
            assert row[metric] == [record["test"][metric] for record in row["records"]]
            assert row[f"{metric}_mean"] == pytest.approx(np.mean(row[metric]))
            assert row[f"{metric}_sd"] == pytest.approx(abs(row[metric][0] - row[metric][1]) / 2**0.5)
        again = measure(Method(row["name"], "rule"), make_task(graphs, "link", 6), 6)
        assert again["test"] == row["records"][1]["test"]


def test_methods_of_all_kinds_in_one_table(graphs: list[Graph]) -> None:
    own = Method("gcn", "model", options={"layers": 1}, label="one layer")
    rows = compare(
        graphs, "pair", models=["gcn", "gcn/paper", own, "best-column"], peers=["best-column"],
        rules=["shortest-path"], preset="best", seeds=1, epochs=2,
    )  # fmt: skip
    kinds = {row["name"]: row["kind"] for row in rows}
    assert kinds == {
        "gcn": "model", "gcn/paper": "model", "one layer": "model", "best-column": "peer", "shortest-path": "rule",
    }  # fmt: skip
    assert len(rows) == 5
    assert all("records" not in row and row["auc_sd"] is None for row in rows)


def test_models_without_torch_are_refused_at_once_and_rules_are_not(
    graphs: list[Graph], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"needs torch: pip install 'psgnn\[train\]'"):
        compare(graphs, "link", models=["gcn"], seeds=1)
    rows = compare(graphs, "link", models=[], rules=["common-neighbours"], seeds=1)
    assert [row["name"] for row in rows] == ["common-neighbours"]


def test_two_methods_of_one_name_are_an_error(graphs: list[Graph]) -> None:
    with pytest.raises(InputError, match="two methods have the name 'gcn'"):
        compare(graphs, "link", models=["gcn", Method("gcn", "model", options={"layers": 1})], seeds=1)


def test_the_options_of_the_task_reach_the_splits(graphs: list[Graph]) -> None:
    rules = ["shortest-path"]
    (easy,) = compare(graphs, "link", rules=rules, seeds=2)
    (hard,) = compare(graphs, "link", rules=rules, seeds=2, task_options={"negatives": "distance"})
    assert hard["auc_mean"] == pytest.approx(0.5, abs=0.1)  # hops say nothing about pairs of equal hops
    assert easy["auc_mean"] > hard["auc_mean"] + 0.2
    with pytest.raises(InputError, match="seeds must be 1 or more, found 0"):
        compare(graphs, "link", seeds=0)


def test_every_ablation_is_a_setting_of_psgnn(graphs: list[Graph]) -> None:
    task = make_task(graphs, "link", 0)
    first, *others = ablations()
    assert [first.title, *(method.title for method in others)] == ["psgnn", *ABLATIONS]
    whole = build_model("psgnn", task).config
    for method in others:
        changed = build_model("psgnn", task, **method.options).config
        differences = {key for key, value in changed.model_dump().items() if value != getattr(whole, key)}
        assert differences == set(method.options)


def test_ablate_compares_psgnn_with_its_parts_left_out(
    graphs: list[Graph], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("psgnn.training._compare.ABLATIONS", {"without roles": {"roles": False}})
    rows = compare(graphs, "link", models=["gcn"], ablate=True, seeds=1, epochs=2)
    assert {row["name"] for row in rows} == {"psgnn", "without roles"}


def test_ctrl_c_shows_what_was_measured(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    comparing = importlib.import_module(
        "psgnn.training._compare"
    )  # psgnn.training._compare is the function, too
    measured: list[str] = []

    def interrupted(method: Method, *arguments: Any, **options: Any) -> dict[str, Any]:
        measured.append(method.title)
        if len(measured) == 10:
            raise KeyboardInterrupt
        return measure(method, *arguments, **options)

    monkeypatch.setattr(comparing, "measure", interrupted)
    code, out, err = run("compare", "communities", "--models", "none", "--seeds", "2")
    assert code == 130
    assert "until the interruption" in out
    assert "interrupted" in err
    lines = [line.split() for line in out.splitlines()]
    splits = {line[0]: line[-2] for line in lines if line and line[0] in measured}
    # Eight rules on the first split, one of them on the second, too.
    assert sorted(splits.values()) == ["1"] * 7 + ["2"]
    measured.clear()
    code, out, _ = run("compare", "communities", "--models", "none", "--seeds", "2", "--json")
    assert (code, out) == (130, "")
