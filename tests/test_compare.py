"""Methods of every kind on the same splits."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from conftest import data_of
from psgnn.compare import Method, compare, make_task, measure, parse_models
from psgnn.errors import InputError
from psgnn.heuristics import HEURISTICS, score_pairs
from psgnn.metrics import evaluate
from psgnn.nn import config
from psgnn.peers import PEERS
from psgnn.tasks import OfficialLinks, Task

RULES = ["shortest-path", "common-neighbours"]


@pytest.fixture
def graph() -> Data:
    return data_of(nx.connected_caveman_graph(5, 6))


@pytest.fixture
def _oracle(monkeypatch: pytest.MonkeyPatch) -> None:
    """A peer named oracle: minus the id of the first node."""
    monkeypatch.setitem(PEERS, "oracle", lambda task, seed: lambda pairs: -pairs[0].double() - seed)


def test_a_rule_is_measured_on_test_and_validation(graph: Data) -> None:
    task = make_task([graph], "link", 4)
    found = measure(Method("pagerank", "rule"), task, 4)
    for part in ("val", "test"):
        split = getattr(task, part)
        assert found[part] == evaluate(split, score_pairs("pagerank", task.union, split.pairs.numpy(), 4))
    assert found["seconds"] > 0


@pytest.mark.usefixtures("_oracle")
def test_a_peer_is_measured_by_its_scores(graph: Data) -> None:
    task = make_task([graph], "link", 4)
    found = measure(Method("oracle", "peer"), task, 4)
    assert found["test"] == evaluate(task.test, -task.test.pairs[0].double())
    assert found["val"] == evaluate(task.val, -task.val.pairs[0].double())


def test_a_model_is_measured_with_its_preset_and_options(graph: Data) -> None:
    task = make_task([graph], "link", 0)
    method = Method("gcn", "model", "paper", {"hidden": 8, "eval_every": 1})
    found = measure(method, task, 0, epochs=3)
    assert found["epochs_run"] == 3
    assert 1 <= found["best_epoch"] <= 3
    assert set(found["test"]) == set(found["val"])
    again = measure(pickle.loads(pickle.dumps(method)), task, 0, epochs=3)  # as processes pass it on
    assert (again["test"], again["val"]) == (found["test"], found["val"])


def test_test_labels_change_no_other_number(graph: Data) -> None:
    task, blind = make_task([graph], "link", 0), make_task([graph], "link", 0)
    blind.test = dataclasses.replace(blind.test, labels=1 - blind.test.labels)
    for method in (Method("gcn", "model", options={"eval_every": 1}), Method("shortest-path", "rule")):
        seen, unseen = (measure(method, t, 0, epochs=3) for t in (task, blind))
        assert seen["val"] == unseen["val"]
        assert seen["test"]["auc"] == pytest.approx(1 - unseen["test"]["auc"])


@pytest.mark.usefixtures("_oracle")
def test_compare_takes_models_rules_and_peers(graph: Data) -> None:
    rows = compare(
        [graph], "link", models=["gcn"], rules=RULES, peers=["oracle"], seeds=2, epochs=1, records=True
    )
    assert {row["name"]: row["kind"] for row in rows} == {
        "gcn": "model", "oracle": "peer", "shortest-path": "rule", "common-neighbours": "rule"
    }  # fmt: skip
    assert [row["auc_mean"] for row in rows] == sorted((row["auc_mean"] for row in rows), reverse=True)
    for row in rows:
        assert [record["seed"] for record in row["records"]] == [0, 1]
        for metric, value in row["records"][0]["test"].items():
            values = [record["test"][metric] for record in row["records"]]
            assert row[metric] == values
            assert row[f"{metric}_mean"] == pytest.approx(np.mean(values))
            assert row[f"{metric}_sd"] == pytest.approx(np.std(values, ddof=1))
            assert isinstance(value, float)


def test_compare_runs_every_rule_unless_told_otherwise(graph: Data) -> None:
    rows = compare([graph], "link", seeds=1)
    assert {row["name"] for row in rows} == set(HEURISTICS)
    assert all(row["auc_sd"] is None and "records" not in row for row in rows)


def test_compare_starts_at_the_first_seed(graph: Data) -> None:
    both = compare([graph], "link", rules=RULES[:1], seeds=2, first_seed=7)[0]["auc"]
    last = compare([graph], "link", rules=RULES[:1], seeds=1, first_seed=8)[0]["auc"]
    assert both[1:] == last


def test_compare_passes_options_to_the_task(graph: Data) -> None:
    row = compare([graph], "link", rules=RULES[:1], seeds=1, task_options={"val": 0.3, "test": 0.3})[0]
    task = make_task([graph], "link", 0, val=0.3, test=0.3)
    assert row["auc"] == [measure(Method(RULES[0], "rule"), task, 0)["test"]["auc"]]
    assert task.test.labels.sum() > make_task([graph], "link", 0).test.labels.sum()


def test_presets_after_a_slash_are_rows_of_their_own(graph: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[tuple[str, str]] = []

    def build(name: str, task: Task, preset: str, seed: int, **options: Any) -> Any:
        from psgnn.nn import build_model

        built.append((name, preset))
        return build_model(name, task, preset, seed, **options)

    monkeypatch.setattr("psgnn.compare.build_model", build)
    rows = compare([graph], "link", models=parse_models("gcn,gcn/paper"), rules=[], seeds=1, epochs=1)
    assert {row["name"] for row in rows} == {"gcn", "gcn/paper"}
    assert sorted(built) == [("gcn", "best"), ("gcn", "paper")]


def test_ablations_are_psgnn_and_its_changes(graph: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    changes = {"one layer": {"layers": 1}, "dot": {"decoder": "dot"}}
    monkeypatch.setattr(config, "ABLATIONS", changes, raising=False)
    configs = []

    def fit(model: Any, task: Task, **options: Any) -> Any:
        from psgnn.training import fit

        configs.append(model.config)
        return fit(model, task, **options)

    monkeypatch.setattr("psgnn.compare.fit", fit)
    rows = compare([graph], "link", ablate=True, seeds=1, epochs=1)
    assert {row["name"] for row in rows} == {"psgnn", *changes}
    full, *changed = configs
    for options, found in zip(changes.values(), changed, strict=True):
        assert found == full.model_copy(update=options)
        assert found != full


def test_a_graph_with_an_official_split_keeps_it(graph: Data) -> None:
    pairs = torch.triu_indices(30, 30, 1)
    linked = set(map(tuple, graph.edge_index.T.tolist()))
    free = pairs[:, [tuple(pair) not in linked for pair in pairs.T.tolist()]]
    for start, name in enumerate(("valid_edge", "valid_edge_neg", "test_edge", "test_edge_neg")):
        graph[name] = free[:, 5 * start : 5 * start + 5]
    task = make_task([graph], "link", 0)
    assert isinstance(task, OfficialLinks)
    assert set(map(tuple, task.test.pairs.T.tolist())) == set(map(tuple, free[:, 10:20].T.tolist()))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("psgn", "unknown model 'psgn'; did you mean 'psgnn'"),
        ("psgnn/papr", "unknown preset 'papr'; did you mean 'paper'"),
        ("gcn,nod2vec", "unknown model 'nod2vec'; did you mean 'node2vec'"),
    ],
)
def test_unknown_models_get_the_nearest_name(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_models(text)


def test_names_of_models_and_peers_are_parsed() -> None:
    assert parse_models("psgnn, psgnn/paper,node2vec") == ["psgnn", "psgnn/paper", "node2vec"]
    assert parse_models("none") == []
    assert "node2vec" not in parse_models("all")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("gcn", "modell"), "unknown kind of method 'modell'; did you mean 'model'"),
        (("degree", "rule"), "unknown rule 'degree'"),
        (("boost", "peer"), "unknown peer 'boost'; did you mean 'boosting'"),
        (("gcn", "model", "bets"), "unknown preset 'bets'; did you mean 'best'"),
        (("boosting", "peer", "best", {"layers": 2}), "boosting .*options.*layers"),
    ],
)
def test_methods_that_do_not_exist_are_refused_at_once(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Method(*arguments)


def test_wrong_tasks_seeds_and_options_are_refused(graph: Data) -> None:
    with pytest.raises(InputError, match="unknown task 'lnk'; did you mean 'link'"):
        make_task([graph], "lnk", 0)
    with pytest.raises(InputError, match="option of the link task 'fold'; did you mean 'folds'"):
        make_task([graph], "link", 0, fold=3)
    with pytest.raises(InputError, match="seeds must be 1 or more"):
        compare([graph], "link", seeds=0)
