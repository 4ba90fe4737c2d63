from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import psgnn.training._fit as training
from conftest import data_of
from psgnn.errors import InputError
from psgnn.models import build_model
from psgnn.models._models import LOSSES
from psgnn.models._presets import NAMED_MODELS
from psgnn.tasks import LinkPrediction, PairClassification, Task
from psgnn.tasks._metrics import auc_standard_error
from psgnn.training import Run, fit, load


def communities(groups: int = 6, size: int = 6) -> Data:
    data = data_of(nx.connected_caveman_graph(groups, size))
    data.y = torch.arange(groups * size) // size
    data.node_names = [f"n{v}" for v in range(groups * size)]
    return data


def link_task(seed: int = 0) -> LinkPrediction:
    return LinkPrediction(communities(), seed=seed)


def train(task: Task | None = None, name: str = "psgnn", epochs: int = 20, **options: Any) -> Run:
    task = link_task() if task is None else task
    out = options.pop("out", None)
    return fit(build_model(name, task, **options), task, epochs=epochs, out=out)


def same(a: Run, b: Run) -> None:
    assert a.test == b.test
    assert a.val == b.val
    assert a.history == b.history
    assert a.anchors == b.anchors
    assert np.array_equal(a.embed(), b.embed())


# --- results


@pytest.mark.parametrize(("name", "preset"), NAMED_MODELS)
def test_every_model_trains_saves_and_loads(name: str, preset: str, tmp_path: Path) -> None:
    task = PairClassification([communities(), communities(4, 7)])
    result = train(task, name, epochs=2, preset=preset, out=tmp_path / "run")
    assert {"auc", "auc_pooled", "ap"} <= set(result.test)
    loaded = load(tmp_path / "run")
    same(result, loaded)
    pairs = task.test.pairs
    assert np.array_equal(result.score(pairs), loaded.score(pairs))
    assert loaded.node_names == [graph.names for graph in task.graphs]


def test_learning_beats_chance_by_far() -> None:
    task = PairClassification(communities(8, 8))
    result = train(task, "psgnn", epochs=60)
    assert result.test["auc"] > 0.9
    assert result.history[-1]["loss"] < result.history[0]["loss"]


def test_the_best_epoch_by_validation_is_the_one_that_is_kept() -> None:
    result = train(epochs=60, eval_every=5, tolerance=0.0)
    best = max(reversed(result.history), key=lambda entry: entry["auc"])  # of equals the later
    assert result.val["auc"] == best["auc"]
    assert result.record["best_epoch"] == best["epoch"]


def test_of_epochs_that_validation_cannot_tell_apart_the_latest_is_kept() -> None:
    task = link_task()
    positives = int(task.val.labels.sum())
    for tolerance in (0.5, 2.0):
        result = train(task, epochs=60, eval_every=5, tolerance=tolerance, one_cycle=False)
        best, kept = -1.0, 0
        for entry in result.history:
            best = max(best, entry["auc"])
            slack = tolerance * auc_standard_error(best, positives, task.val.labels.size - positives)
            if entry["auc"] >= best - slack:
                kept = int(entry["epoch"])
        assert result.record["best_epoch"] == kept


def test_rounding_does_not_choose_anchors() -> None:
    """On constant features GENConv gives every node the same score, whatever the weights: ties decide, not digits."""
    result = train(
        PairClassification(communities(), seed=0), epochs=120, preset="paper", hidden=16, patience=500
    )
    anchors = [entry["anchors"] for entry in result.history]
    assert len(anchors) == 12
    assert all(chosen == anchors[0] for chosen in anchors)


def test_patience_ends_training() -> None:
    result = train(epochs=500, name="gcn", patience=20, eval_every=5)
    last = 0
    best = -1.0
    for entry in result.history:
        if entry["auc"] > best:
            best, last = entry["auc"], entry["epoch"]
    assert result.record["epochs_run"] == last + 20


@pytest.mark.parametrize("name", ["psgnn", "pgnn"])
def test_one_seed_gives_one_result(name: str) -> None:
    state = torch.random.get_rng_state()
    same(train(name=name), train(name=name))
    assert torch.equal(state, torch.random.get_rng_state())


def test_one_seed_gives_one_result_in_another_process() -> None:
    code = (
        "import sys; sys.path.insert(0, 'tests')\n"
        "from test_training import train\n"
        "result = train(epochs=5)\n"
        "print(result.embed().astype(float).sum(), result.anchors)"
    )
    root = Path(__file__).resolve().parent.parent
    command = [sys.executable, "-c", code]
    printed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    result = train(epochs=5)
    assert printed == f"{result.embed().astype(float).sum()} {result.anchors}\n"


def test_nothing_is_decided_by_the_test_pairs() -> None:
    """Shuffled test labels change the test metrics and nothing else."""
    task, other = link_task(), link_task()
    order = np.random.default_rng(0).permutation(other.test.labels.size)
    other.test = replace(other.test, labels=other.test.labels[order])
    a, b = train(task), train(other)
    assert a.test != b.test
    assert a.history == b.history
    assert a.anchors == b.anchors
    assert np.array_equal(a.evaluation_scorer().embed(), b.evaluation_scorer().embed())


def test_the_positives_of_a_step_are_hidden_from_its_graph() -> None:
    task = link_task()
    model = build_model("psgnn", task, "best")
    trainer = training._Trainer(model, task, 10, 0)
    for epoch in range(10):
        view, pairs, labels = trainer._batch(epoch, np.random.default_rng(0))
        seen = set(map(tuple, view.union.adjacency.edges().T.tolist()))
        positives = set(map(tuple, pairs[:, labels == 1].T.tolist()))
        assert positives
        assert not positives & seen
    paper = training._Trainer(build_model("psgnn", task, "paper"), task, 10, 0)
    assert paper._batch(0, np.random.default_rng(0))[0] is paper.view


@pytest.mark.slow
def test_no_collapse_over_twenty_seeds_on_a_grid() -> None:
    data = data_of(nx.grid_2d_graph(12, 12))
    for seed in range(20):
        task = LinkPrediction(data, seed=seed)
        options = {"picker": "sequential", "samples": 2, "encoder": "layers", "anchor": "add", "center": True}
        training_options = {"decoder": "distance", "layers": 2, "hidden": 64, "lr": 5e-3, "anchors": "log"}
        full_batches = {"batch": "all", "average": 0.0, "one_cycle": False, "negatives": 1, "tolerance": 0.0}
        full_batches |= {"dropout": 0.1, "weight_decay": 0.0}
        model = build_model("psgnn", task, seed=seed, **options, **training_options, **full_batches)
        result = fit(model, task, epochs=30, seed=seed)
        assert result.val["auc"] > 0.65, f"seed {seed} collapsed"


# --- interrupted runs


def test_an_interrupted_run_resumes_to_the_result_it_would_have_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = train(epochs=40)
    epoch = training._Trainer._epoch

    def interrupt_once(self: Any, number: int) -> float:
        if number == 23:
            raise KeyboardInterrupt
        return epoch(self, number)

    monkeypatch.setattr(training._Trainer, "_epoch", interrupt_once)
    with pytest.raises(KeyboardInterrupt):
        train(epochs=40, out=tmp_path / "run")
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["state.safetensors"]
    monkeypatch.setattr(training._Trainer, "_epoch", epoch)
    resumed = train(epochs=40, out=tmp_path / "run")
    same(whole, resumed)
    same(resumed, load(tmp_path / "run"))
    assert not (tmp_path / "run" / "state.safetensors").exists()


@pytest.mark.parametrize(
    ("name", "where"),
    [
        *(("psgnn", where) for where in ("_validate", "_measure", "_take_average", "_slack")),
        *(("gcn", where) for where in ("_validate", "_measure", "_slack")),
    ],
)
def test_wherever_a_run_is_interrupted_it_resumes_to_the_same_result(
    name: str, where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = train(name=name, epochs=60)
    monkeypatch.setattr(training, "CHECKPOINT_SECONDS", 0.0)
    original, calls = getattr(training._Trainer, where), 0

    def interrupted(self: Any, *arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 2:
            original(self, *arguments)
            raise KeyboardInterrupt  # as late as can be
        return original(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(training._Trainer, where, interrupted)
        with pytest.raises(KeyboardInterrupt):
            train(name=name, epochs=60, out=tmp_path / "run")
    same(whole, train(name=name, epochs=60, out=tmp_path / "run"))


def test_a_run_interrupted_after_a_step_resumes_to_the_same_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = train(name="gcn", epochs=30)
    monkeypatch.setattr(training, "CHECKPOINT_SECONDS", 0.0)
    epoch = training._Trainer._epoch

    def interrupted(self: Any, number: int) -> float:
        loss = epoch(self, number)
        if number == 13:
            raise KeyboardInterrupt  # the weights have changed, the number of the epoch has not
        return loss

    with monkeypatch.context() as patch:
        patch.setattr(training._Trainer, "_epoch", interrupted)
        with pytest.raises(KeyboardInterrupt):
            train(name="gcn", epochs=30, out=tmp_path / "run")
    same(whole, train(name="gcn", epochs=30, out=tmp_path / "run"))


def test_an_interrupted_run_is_not_resumed_with_other_features_or_folds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def task(folds: int = 4, scale: float = 1.0) -> LinkPrediction:
        data = communities()
        data.x = scale * torch.arange(72.0).reshape(36, 2)
        return LinkPrediction(data, folds=folds)

    def interrupt(self: Any, number: int) -> float:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(training._Trainer, "_epoch", interrupt)
        with pytest.raises(KeyboardInterrupt):
            train(task(), out=tmp_path / "run")
    with pytest.raises(InputError, match="interrupted run of other data"):
        train(task(scale=2.0), out=tmp_path / "run")
    with pytest.raises(InputError, match=r"interrupted run of folds 4 \(now 5\)"):
        train(task(folds=5), out=tmp_path / "run")


@pytest.mark.parametrize("picker", ["random", "score", "sequential"])
def test_the_random_numbers_of_the_caller_change_nothing(picker: str) -> None:
    results = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        results.append(train(epochs=4, picker=picker, anchors=4))
    same(*results)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"anchors": 1000}, "1000 anchors were asked of a graph of 36 nodes"),
        ({"anchors": 1000, "picker": "score"}, "1000 anchors were asked of a graph of 36 nodes"),
        ({"device": "cuda"}, "no cuda device here"),
    ],
)
def test_what_cannot_begin_leaves_the_run_that_it_was_to_replace(
    wrong: dict[str, Any], message: str, tmp_path: Path
) -> None:
    train(epochs=2, out=tmp_path / "run")
    before = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()}
    task, device = link_task(), wrong.pop("device", "cpu")
    for folder in ("run", "new"):
        with pytest.raises(InputError, match=message):
            fit(
                build_model("psgnn", task, **wrong),
                task,
                epochs=2,
                out=tmp_path / folder,
                device=device,
                force=True,
            )
    assert {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()} == before
    assert not (tmp_path / "new").exists()


def test_force_removes_nothing_where_no_run_is(tmp_path: Path) -> None:
    mine = {"config.toml": "mine", "record.json": "{}", "main.py": "print()"}
    for name, text in mine.items():
        (tmp_path / name).write_text(text)
    task = link_task()
    with pytest.raises(InputError, match="is not empty and holds no run"):
        fit(build_model("gcn", task), task, epochs=2, out=tmp_path, force=True)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == mine


def test_force_leaves_what_lies_beside_a_run(tmp_path: Path) -> None:
    task = link_task()
    fit(build_model("gcn", task), task, epochs=2, out=tmp_path / "run")
    (tmp_path / "run" / "embeddings.csv").write_text("mine")
    result = fit(build_model("gcn", task, seed=1), task, epochs=3, out=tmp_path / "run", force=True)
    same(result, load(tmp_path / "run"))
    assert (tmp_path / "run" / "embeddings.csv").read_text() == "mine"


def test_tensorboard_is_looked_at_before_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training._Trainer, "_epoch", lambda *_: pytest.fail("it trains"))
    (tmp_path / "file").write_text("")
    task = link_task()
    for place in ("file", "file/below"):
        with pytest.raises(InputError, match="file is a file, and --tensorboard needs a folder"):
            fit(build_model("gcn", task), task, epochs=2, tensorboard=tmp_path / place)


def test_force_replaces_a_run(tmp_path: Path) -> None:
    train(epochs=2, out=tmp_path / "run")
    task = link_task()
    fit(build_model("psgnn", task), task, epochs=4, out=tmp_path / "run", force=True)
    assert load(tmp_path / "run").record["epochs"] == 4


@pytest.mark.parametrize("wrong", [{"epochs": 0}, {"epochs": -1}, {"epochs": 2.5}, {"seed": -1}])
def test_numbers_that_cannot_be_are_refused(wrong: dict[str, Any]) -> None:
    task = link_task()
    with pytest.raises(InputError, match="is not an integer of"):
        fit(build_model("psgnn", task), task, **wrong)


def test_a_single_feature_is_looked_at() -> None:
    data = communities()
    rng = np.random.default_rng(0)
    data.y = torch.from_numpy(rng.permutation(36) % 2)
    task = PairClassification(data)
    data.x = data.y[:, None].float() - 0.5
    alone, without = PairClassification(data), task
    assert train(alone, epochs=60).test["auc"] > 0.95 > train(without, epochs=60).test["auc"]


@pytest.mark.parametrize("name", ["psgnn", "gcn"])
def test_one_column_of_features_is_as_wide_whether_it_varies_or_not(name: str) -> None:
    varying, constant = communities(), communities()
    varying.x = torch.arange(36.0)[:, None]
    constant.x = torch.full((36, 1), 3.0)
    for seen, stranger in ((varying, constant), (constant, varying)):
        result = train(LinkPrediction(seen), name, epochs=2)
        assert np.isfinite(result.on([stranger]).embed()).all()


@pytest.mark.parametrize(("columns", "width"), [(None, 1), (torch.ones(36, 2), 2), (torch.randn(36, 3), 3)])
def test_other_features_are_as_wide_as_they_are(columns: torch.Tensor | None, width: int) -> None:
    data = communities()
    data.x = columns
    assert build_model("psgnn", LinkPrediction(data)).config.in_channels == width


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"node_names": ["a"] * 36}, "36 nodes are called 'a'"),
        ({"node_names": ["a"]}, "1 node_names for 36 nodes"),
        ({"x": torch.ones(72, 2)}, r"36 nodes, but x has the shape \[72, 2\]"),
        ({"x": torch.full((36, 2), float("nan"))}, "NaN or infinite"),
    ],
)
def test_features_and_names_that_are_not_those_of_the_nodes(attributes: dict[str, Any], message: str) -> None:
    data = communities()
    for key, value in attributes.items():
        data[key] = value
    with pytest.raises(InputError, match=message):
        LinkPrediction(data)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bool])
def test_pairs_that_are_no_nodes_are_refused(dtype: torch.dtype) -> None:
    result = train(epochs=2)
    with pytest.raises(InputError, match="pairs must be integers"):
        result.score(torch.ones(2, 3).to(dtype))


def test_an_interrupted_run_of_other_settings_is_not_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(self: Any, number: int) -> float:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(training._Trainer, "_epoch", interrupt)
        with pytest.raises(KeyboardInterrupt):
            train(out=tmp_path / "run")
    with pytest.raises(InputError, match=r"interrupted run of hidden 32 \(now 16\)"):
        train(out=tmp_path / "run", hidden=16)


def test_a_finished_run_is_not_overwritten(tmp_path: Path) -> None:
    train(epochs=2, out=tmp_path / "run")
    with pytest.raises(InputError, match="holds a finished run"):
        train(epochs=2, out=tmp_path / "run")


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "precious.txt").write_text("mine")
    with pytest.raises(InputError, match="is not empty and holds no run"):
        train(epochs=2, out=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["precious.txt"]


def test_the_folder_is_looked_at_before_the_work_begins(tmp_path: Path) -> None:
    train(epochs=2, out=tmp_path / "run")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "precious.txt").write_text("mine")
    # A model of other features is refused when training begins.
    task, other = link_task(), link_task()
    other.graphs[0] = replace(other.graphs[0], x=np.random.default_rng(0).random((36, 3), np.float32))
    model = build_model("gcn", other)
    with pytest.raises(InputError, match="the model expects 3 features"):
        fit(model, task, epochs=2, out=tmp_path / "new")
    with pytest.raises(InputError, match=r"holds a finished run; .* --force to replace it$"):
        fit(model, task, epochs=2, out=tmp_path / "run")
    for force in (False, True):
        with pytest.raises(InputError, match="mine is not empty and holds no run of psgnn"):
            fit(model, task, epochs=2, out=tmp_path / "mine", force=force)
    with pytest.raises(InputError, match="the model expects 3 features"):
        fit(model, task, epochs=2, out=tmp_path / "run", force=True)


# --- damaged and foreign runs


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    train(epochs=2, out=folder)
    return folder


@pytest.mark.parametrize("name", ["config.toml", "record.json", "weights.safetensors", "graph.safetensors"])
@pytest.mark.parametrize("damage", ["missing", "empty", "cut", "noise", "foreign"])
def test_damaged_runs_get_a_clear_error(finished: Path, tmp_path: Path, name: str, damage: str) -> None:
    folder = tmp_path / "run"
    shutil.copytree(finished, folder)
    path = folder / name
    content = path.read_bytes()
    if damage == "missing":
        path.unlink()
    elif damage == "foreign":
        path.write_bytes(
            b"{}" if name.endswith("json") else b"key = 1\n" if name.endswith("toml") else b"\0" * 64
        )
    else:
        path.write_bytes({"empty": b"", "cut": content[: len(content) // 3], "noise": b"\xff" * 200}[damage])
    with pytest.raises(InputError) as error:
        load(folder)
    assert str(folder) in str(error.value)
    assert "\n" not in str(error.value)


def test_a_run_of_another_version_is_refused(finished: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(finished, folder)
    record = json.loads((folder / "record.json").read_text())
    (folder / "record.json").write_text(json.dumps(record | {"format": 99}))
    with pytest.raises(InputError, match="is of format 99, this version of psgnn reads format 1"):
        load(folder)


def test_weights_of_another_model_are_refused(finished: Path, tmp_path: Path) -> None:
    folder, other = tmp_path / "run", tmp_path / "other"
    shutil.copytree(finished, folder)
    train(epochs=2, hidden=16, out=other)
    shutil.copy(other / "weights.safetensors", folder / "weights.safetensors")
    with pytest.raises(InputError, match="the weights do not fit the settings"):
        load(folder)


def test_the_record_has_what_a_reader_needs(finished: Path) -> None:
    record = json.loads((finished / "record.json").read_text())
    assert {"seed", "versions", "history", "anchors", "seconds", "peak_memory_mb", "test", "val"} <= set(
        record
    )
    assert set(record["task"]) == {"name", "negatives", "split", "data"}
    assert record["task"]["split"] == link_task().digest


# --- graphs that the model has not seen


def test_a_model_embeds_and_scores_graphs_it_has_not_seen() -> None:
    task = PairClassification([communities(n, 7) for n in (4, 5, 6, 7, 8)], holdout="graphs")
    result = train(task, epochs=60)
    assert result.test["auc"] > 0.8
    stranger = communities(5, 9)
    there = result.on([stranger])
    assert there.embed().shape[0] == 45
    scores = there.score([[0, 0], [1, 30]])
    assert scores[0] > scores[1]
    assert not there.val
    assert not there.test  # they are of the graphs that it was trained on


def test_graphs_with_other_features_are_refused() -> None:
    result = train(epochs=2)
    stranger = communities()
    stranger.x = torch.randn(36, 5)
    with pytest.raises(InputError, match="trained on 1 features, the graphs have 5"):
        result.on([stranger])


@pytest.mark.parametrize(
    ("pairs", "message"), [(torch.tensor([[0], [99]]), "pairs name nodes"), (torch.tensor([0, 1]), "shape")]
)
def test_pairs_that_do_not_fit_are_refused(pairs: torch.Tensor, message: str) -> None:
    with pytest.raises(InputError, match=message):
        train(epochs=2).score(pairs)


def test_an_interrupted_command_writes_its_events_when_it_is_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("tensorboard", reason="the 'tensorboard' extra is not installed")
    task, paths = link_task(), {"out": tmp_path / "run", "tensorboard": tmp_path / "events"}

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("psgnn.training._fit.write_tensorboard", killed)
        with pytest.raises(KeyboardInterrupt):
            fit(build_model("gcn", task), task, epochs=3, **paths)
    again = fit(build_model("gcn", task), task, epochs=3, **paths)
    assert len(list((tmp_path / "events").iterdir())) == 1
    assert again.test == fit(build_model("gcn", task), task, epochs=3).test


def test_tensorboard_gets_the_curves(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="the 'tensorboard' extra is not installed")
    task = link_task()
    for _ in range(2):
        fit(build_model("gcn", task), task, epochs=10, tensorboard=tmp_path)
    assert len(list(tmp_path.iterdir())) == 1  # the same training again replaces its events
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(tmp_path))
    events.Reload()
    assert {"loss", "validation/auc"} <= set(events.Tags()["scalars"])


# --- losses


def test_the_pairwise_loss_is_its_formula() -> None:
    scores = torch.tensor([[2.0, 0.0], [1.0, 1.0], [0.5, -1.0], [0.0, 3.0], [-1.0, 0.0]])
    labels = torch.tensor([1.0, 1.0, 0.0, 0.0, 0.0])
    gaps = [(1 - scores[p] + scores[n]) ** 2 for p, n in ((0, 2), (1, 3), (0, 4))]
    assert torch.allclose(LOSSES["pairwise"](scores, labels), torch.stack(gaps).mean())
    assert LOSSES["pairwise"](scores[:2], labels[:2]) == 0


def test_a_model_learns_by_the_pairwise_loss() -> None:
    by_pairs = train(epochs=60, loss="pairwise")
    assert by_pairs.test["auc"] > 0.9
    assert by_pairs.test != train(epochs=60).test
    with pytest.raises(InputError, match="option loss='auc' cannot be used"):
        build_model("psgnn", link_task(), loss="auc")
