"""Refitting: predictions of weights that were trained on all links, metrics of those that were not."""

from __future__ import annotations

import json
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from typer.testing import CliRunner

from conftest import data_of
from psgnn.cli import app
from psgnn.errors import InputError
from psgnn.models import build_model
from psgnn.tasks import LinkPrediction, PairClassification
from psgnn.training import Run, fit, load


def task_of(seed: int = 0) -> LinkPrediction:
    return LinkPrediction(data_of(nx.connected_caveman_graph(8, 8)), seed=seed)


def trained(task: LinkPrediction, name: str = "psgnn", **options: object) -> Run:
    return fit(build_model(name, task), task, epochs=20, **options)  # type: ignore[arg-type]


def test_all_links_are_visible_and_trained_on() -> None:
    task = task_of()
    whole = task.on_all_links()
    held_out = [split.pairs[:, split.labels == 1] for split in (task.val, task.test)]
    count = task.union.adjacency.num_edges + sum(part.shape[1] for part in held_out)
    assert whole.union.adjacency.num_edges == count == int(whole.train.labels.sum())
    positives = np.concatenate([whole.fold(f).positives for f in range(whole.folds)], axis=1)
    assert np.unique(positives, axis=1).shape[1] == count
    fresh = whole.sample_negatives(500, np.random.default_rng(0))
    assert not whole.true_labels(np.sort(fresh, axis=0)).any()
    assert task.union.adjacency.num_edges < count  # the task itself is as it was


@pytest.mark.parametrize("name", ["psgnn", "pgnn", "gcn"])
def test_metrics_stay_and_predictions_change(name: str, tmp_path: Path) -> None:
    task = task_of()
    plain, refitted = trained(task, name), trained(task, name, refit=True, out=tmp_path / "run")
    assert refitted.test == plain.test
    assert refitted.history == plain.history
    assert refitted.anchors == plain.anchors
    pairs = task.test.pairs
    before, now = plain.evaluation_scorer().score(pairs), refitted.evaluation_scorer().score(pairs)
    assert np.array_equal(before, now)
    assert not np.array_equal(plain.score(pairs), refitted.score(pairs))
    links = task.on_all_links().union.adjacency.num_edges
    about = refitted.record["refit"]
    assert (about["epochs"], about["links"]) == (refitted.record["best_epoch"], links)
    loaded = load(tmp_path / "run")
    assert np.array_equal(loaded.score(pairs), refitted.score(pairs))
    assert np.array_equal(loaded.evaluation_scorer().score(pairs), now)
    assert loaded.record["refit"] == about


def test_a_seed_gives_one_refit() -> None:
    task = task_of()
    a, b = (trained(task, refit=True) for _ in range(2))
    assert np.array_equal(a.embed(), b.embed())


def test_the_pair_task_has_nothing_to_refit_on() -> None:
    data = data_of(nx.connected_caveman_graph(6, 6))
    data.y = np.arange(36) // 6
    task = PairClassification(data)
    with pytest.raises(InputError, match="the pair task holds out none"):
        fit(build_model("psgnn", task), task, epochs=1, refit=True)


def test_the_command_says_what_the_metrics_belong_to(tmp_path: Path) -> None:
    graph = tmp_path / "g.csv"
    graph.write_text("\n".join(f"n{u},n{v}" for u, v in nx.connected_caveman_graph(6, 6).edges) + "\n")
    shown = CliRunner().invoke(app, ["train", str(graph), "--epochs", "4", "--out", str(tmp_path / "run")])
    assert shown.exit_code == 0, shown.output
    assert "refitted on all" in " ".join(shown.output.split())
    document = json.loads((tmp_path / "run" / "record.json").read_text())
    assert "before the refit" in document["refit"]["metrics"]


@pytest.mark.parametrize("why", ["--no-refit", "split", "large"])
def test_a_large_graph_and_a_split_of_ones_own_are_not_refitted_unasked(why: str, tmp_path: Path) -> None:
    graph = nx.gnm_random_graph(400, 5005, seed=0) if why == "large" else nx.connected_caveman_graph(6, 6)
    lines = [f"n{u},n{v}\n" for u, v in graph.edges]
    parts = {"graph": lines[:-4], "val": lines[-4:-2], "test": lines[-2:]}
    paths = {name: tmp_path / f"{name}.csv" for name in parts}
    for name, part in parts.items():
        paths[name].write_text("".join(part))
    out = tmp_path / "run"
    command = ["train", str(paths["graph"]), "--epochs", "1", "--model", "gcn", "--out", str(out)]
    command += ["--no-refit"] if why == "--no-refit" else []
    command += (
        ["--val-links", str(paths["val"]), "--test-links", str(paths["test"])] if why == "split" else []
    )
    shown = CliRunner().invoke(app, command)
    assert shown.exit_code == 0, shown.output
    assert "refit" not in json.loads((out / "record.json").read_text())
