"""The paper's tables: manifests on top of others, published values beside ours, what a cell shows."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from psgnn.datasets import load_dataset
from psgnn.errors import InputError
from psgnn.models import build_model
from psgnn.models._pickers import RulePicker
from psgnn.models._view import view_of
from psgnn.tasks import LinkPrediction, PairClassification, Task
from psgnn.training import _batches as batches
from psgnn.training import _fit as training
from psgnn.training._compare import Method, make_task, measure
from psgnn_lab.manifest import Manifest, load_manifest, manifest_names
from psgnn_lab.plan import plan
from psgnn_lab.records import write_record
from psgnn_lab.tables import markdown

ROOT = Path(__file__).resolve().parent.parent
PAPER = next((ROOT.parent / "shared" / "paper").glob("*.txt"), None)

BASE = """
title = "Base"
first_seed = 100

[methods.gcn]
kind = "model"
seeds = 2

[methods.random]
kind = "model"
of = "psgnn"
seeds = 2
complexity = "O(K)"

[[rows]]
name = "grid-link"
title = "Grid, link"
dataset = "grid"
dataset_options = {rows = 5, cols = 6}
task = "link"

[[rows]]
name = "unused-link"
title = "Unused"
dataset = "grid"
task = "link"

[[sections]]
name = "base"
title = "Base"
rows = ["unused-link"]
methods = ["gcn"]
"""

TABLE = """
title = "Table"
base = "base"
first_seed = 100

[methods.gcn]
kind = "model"
title = "GCN"
seeds = 3

[[rows]]
name = "wide-link"
title = "Wide"
dataset = "grid"
dataset_options = {rows = 2, cols = 15}
task = "link"

[[sections]]
name = "table"
title = "Table"
layout = "matrix"
digits = 3
seconds = true
picking = true
rows = ["wide-link", "grid-link"]
methods = ["gcn", "random"]
source = "the paper, Table 9"

[sections.published]
gcn = [0.5, [0.6, 0.125]]
random = [{value = 0.7, seconds = 12.0}, 0.75]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "base.toml").write_text(BASE)
    (tmp_path / "table.toml").write_text(TABLE)
    return tmp_path


def fill(manifest: Manifest, row: str, method: str, values: list[float], **more: Any) -> None:
    runs = plan(manifest, only=[row], methods=[method])
    for run, auc in zip(runs, values, strict=False):
        write_record(manifest.records, run, {"test": {"auc": auc}, "val": None, "seconds": 2.0, **more})


def test_a_manifest_has_the_methods_of_its_base_and_the_rows_that_it_shows(folder: Path) -> None:
    manifest = load_manifest("table", folder)
    assert [row.name for row in manifest.rows] == ["grid-link", "wide-link"]
    (gcn,) = manifest.expand("gcn")
    assert (gcn.title, gcn.seeds) == ("GCN", 3)
    assert [run.seed for run in plan(manifest, only=["grid-link"], methods=["random"])] == [100, 101]


def test_runs_of_a_table_are_those_of_its_base(folder: Path) -> None:
    base = (folder / "base.toml").read_text().replace('["unused-link"]', '["grid-link"]')
    (folder / "base.toml").write_text(base)
    ours, theirs = (
        {run.seed: run.id for run in plan(load_manifest(name, folder), only=["grid-link"], methods=["gcn"])}
        for name in ("table", "base")
    )
    assert theirs == {seed: ours[seed] for seed in (100, 101)}


def test_published_values_stand_beneath_ours(folder: Path) -> None:
    manifest = load_manifest("table", folder)
    fill(manifest, "wide-link", "gcn", [0.5, 0.6])
    fill(manifest, "grid-link", "random", [0.8125, 0.9375], picking_seconds=0.25)
    lines = [line for line in markdown(manifest).splitlines() if line.startswith("| ")]
    header = "|  | Wide | Grid, link | stated complexity | seconds to choose anchors | seconds a run |"
    assert lines[0] == header
    assert lines[2].startswith("| GCN | [**0.550 ± 0.071 (2)**, 2.00 s](")
    assert lines[2].endswith("| - | - | - | 2.00 |")
    assert lines[3] == "| *GCN: the paper, Table 9* | *0.500* | *0.600 ± 0.125* | - | - | - |"
    assert "[**0.875 ± 0.088 (2)**, 2.00 s](" in lines[4]
    assert lines[4].endswith("| O(K) | 0.25 | 2.00 |")
    assert lines[5] == "| *random: the paper, Table 9* | *0.700, 12 s* | *0.750* | - | - | - |"


def test_the_page_says_where_ours_is_below(folder: Path) -> None:
    manifest = load_manifest("table", folder)
    fill(manifest, "wide-link", "gcn", [0.4])
    fill(manifest, "grid-link", "gcn", [0.6])
    fill(manifest, "grid-link", "random", [0.7])
    sentence = "in brackets ours and theirs: GCN on Wide (0.400 (1), 0.500); random on Grid, link (0.700 (1), 0.750)."
    assert sentence in markdown(manifest)
    fill(manifest, "wide-link", "gcn", [0.5])
    fill(manifest, "grid-link", "random", [0.75])
    assert "Below the published" not in markdown(manifest)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('base = "base"', 'base = "bass"', "unknown base 'bass'; did you mean 'base'"),
        ('base = "base"', 'base = "table"', "unknown base 'table'"),
        ("gcn = [0.5, [0.6, 0.125]]", "gcn = [0.5]", "has 2 rows and 1 published values of gcn; give one for each row"),
        ("gcn = [0.5, [0.6, 0.125]]", "gnc = [0.5, 0.6]", "method of section 'table' 'gnc'; did you mean 'gcn'"),
        ("[0.6, 0.125]", "[0.6, 0.1, 0.2]", "published.gcn.1"),
        ('"wide-link", "grid-link"', '"wide-link", "grad-link"', "unknown row 'grad-link'"),
    ],
)  # fmt: skip
def test_a_wrong_table_gets_one_line(folder: Path, old: str, new: str, message: str) -> None:
    assert old in TABLE
    (folder / "table.toml").write_text(TABLE.replace(old, new, 1))
    with pytest.raises(InputError, match=message) as error:
        load_manifest("table", folder)
    assert "\n" not in str(error.value)


@pytest.mark.skipif(PAPER is None, reason="the paper's source is not here")
def test_published_values_are_those_of_the_paper() -> None:
    """Every line of ours is a line of the LaTeX source, number by number."""
    assert PAPER is not None
    source = PAPER.read_text()
    lines = [re.findall(r"(0\.\d{3}) \\pm (0\.\d{3})", line) for line in source.splitlines()]
    checked = 0
    for name in manifest_names(ROOT / "lab" / "experiments"):
        manifest = load_manifest(name, ROOT / "lab" / "experiments")
        for section in manifest.sections:
            for cells in section.published.values():
                if cells[0].sd is None:
                    for cell in cells:  # the table of numbers of anchors has a line for each cell
                        assert f"${cell.value:.3f}$ & ${cell.seconds:.2f}$" in source
                else:
                    values = [(f"{cell.value:.3f}", f"{cell.sd:.3f}") for cell in cells]
                    assert values in lines, (name, section.name, values)
                checked += 1
    assert checked >= 7 * 4 + 7 + 4


def test_a_preset_is_in_the_name_of_a_group(folder: Path) -> None:
    text = '\n[methods.paper-models]\nexpand = "models"\npreset = "paper"\n\n[[sections]]'
    (folder / "table.toml").write_text(TABLE.replace("\n[[sections]]", text))
    names = {method.name: method for method in load_manifest("table", folder).expand("paper-models")}
    assert names.keys() >= {"psgnn-paper", "gin-paper"}
    assert "psgnn" not in names
    assert all(method.preset == "paper" and method.of == name[:-6] for name, method in names.items())


# --- what the tables need of the models


def test_a_rule_picks_once_for_a_view(monkeypatch: pytest.MonkeyPatch) -> None:
    view = view_of(load_dataset("grid", rows=5, cols=6))
    picker = RulePicker("betweenness", "log")
    first = picker(view)
    monkeypatch.setattr(RulePicker, "_pick", None)
    assert picker(view) is first
    with pytest.raises(TypeError):  # another number of anchors is another choice
        RulePicker("betweenness", "log^2")(view)
    with pytest.raises(TypeError):  # and so is another view
        picker(view.without(view.union))


def test_a_redrawing_rule_picks_in_every_training_step() -> None:
    view = view_of(load_dataset("grid", rows=5, cols=6))
    picker = RulePicker("random", "log", redraw=True)
    generator = torch.Generator().manual_seed(0)
    drawn = {tuple(picker(view, generator).nodes.flatten().tolist()) for _ in range(5)}
    assert len(drawn) == 5
    picker.eval()
    assert picker(view) is picker(view)


def test_the_time_to_choose_anchors_is_measured_where_there_are_some() -> None:
    task = make_task(load_dataset("grid", rows=5, cols=6), "link", 0)
    with_anchors = measure(Method("psgnn", "model", options={"epochs": 1}), task, 0)
    assert 0 < with_anchors["picking_seconds"] < with_anchors["seconds"]
    assert "picking_seconds" not in measure(Method("gcn", "model", options={"epochs": 1}), task, 0)
    assert "picking_seconds" not in measure(Method("shortest-path", "rule"), task, 0)


def test_a_step_on_all_pairs_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    task = make_task(load_dataset("communities", communities=4, size=6), "pair", 0)
    model = build_model("gcn", task, "paper")
    whole = training._Trainer(model, task, 1, 0)._batch(0, np.random.default_rng(0))[1]
    assert np.array_equal(whole, task.train.pairs)
    monkeypatch.setattr(batches, "MOST_STEP_PAIRS", 10)
    some = training._Trainer(model, task, 1, 0)._batch(0, np.random.default_rng(0))[1]
    known = {tuple(pair) for pair in task.train.pairs.T.tolist()}
    assert some.shape[1] == 10
    assert known.issuperset(map(tuple, some.T.tolist()))


@pytest.mark.parametrize("holdout", ["pairs", "graphs"])
@pytest.mark.parametrize("name", ["gcn", "pgnn", "psgnn"])
def test_of_many_graphs_a_step_sees_a_part(name: str, holdout: str) -> None:
    sizes = (4, 5, 6, 7, 8)
    graphs = [
        replace(
            load_dataset("communities", communities=3, size=size)[0],
            x=np.arange(3 * size, dtype=np.float32)[:, None] + np.array([100 * size, 0], np.float32),
        )
        for size in sizes
    ]
    task = PairClassification(graphs, seed=0, holdout=holdout)
    model = build_model(name, task, "paper", hidden=8, step_nodes=35)
    trainer = training._Trainer(model, task, 1, 0)
    features = trainer.view.x
    known = {
        (*features[u].tolist(), *features[v].tolist()): (int(label), int(g))
        for (u, v), label, g in zip(
            task.train.pairs.T.tolist(), task.train.labels, task.train.graph_ids, strict=True
        )
    }
    seen: list[set[int]] = []
    for step in range(len(trainer.batches.parts)):
        view, pairs, labels = trainer._batch(step, np.random.default_rng(step))
        met = [
            (known[(*view.x[u].tolist(), *view.x[v].tolist())], label)
            for (u, v), label in zip(pairs.T.tolist(), labels.tolist(), strict=True)
        ]
        assert all(of_pair[0] == label for of_pair, label in met)
        seen.append({of_pair[1] for of_pair, _ in met})
        assert len(seen[-1]) == view.union.num_graphs
        alone = {degree for g in seen[-1] for degree in trainer.view.union.graph(g).degrees.tolist()}
        assert alone == set(view.union.adjacency.degrees.tolist())
    trained = set(task.train.graph_ids.tolist())
    assert len(seen) == -(-int(task.union.sizes[sorted(trained)].sum()) // 35) > 1
    assert sum(map(len, seen)) == len(trained)
    assert set.union(*seen) == trained
    trainer._epoch(0)  # of the part, and it can be learned from


def test_parts_are_for_those_whose_anchors_need_not_be_the_same_for_all() -> None:
    def parts(name: str, task: Task, preset: str, step_nodes: int) -> int:
        model = build_model(name, task, preset, step_nodes=step_nodes)
        return len(training._Trainer(model, task, 1, 0).batches.parts)

    one = make_task(load_dataset("communities", communities=4, size=6), "pair", 0)
    many = PairClassification(2 * load_dataset("communities", communities=4, size=6), seed=0)
    linked = LinkPrediction(2 * load_dataset("communities", communities=4, size=6), seed=0)
    assert parts("gcn", one, "paper", 5) == 0
    assert parts("gcn", many, "paper", 5) == 2
    assert parts("gcn", many, "paper", 48) == parts("gcn", many, "paper", 0) == 0
    assert parts("gcn", linked, "paper", 5) == 0
    assert parts("psgnn", many, "best", 5) == 0
