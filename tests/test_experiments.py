"""Experiments: manifests, plans, records, the runner and the tables."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import psutil
import pytest
from hypothesis import given
from scipy import stats

from experiment_stand_ins import fragile, steady
from psgnn.datasets import load_dataset
from psgnn.errors import InputError
from psgnn.models import _presets as presets
from psgnn_lab.estimate import Estimate, as_time
from psgnn_lab.manifest import Manifest, MethodSpec, load_manifest, manifest_names
from psgnn_lab.plan import Run, having, parse_shard, plan
from psgnn_lab.records import find_record, read_cell, record_path, write_record
from psgnn_lab.runner import execute, execute_all
from psgnn_lab.statistics import against_best, difference, read_cells
from psgnn_lab.tables import document, markdown, with_tables, write_page

ROOT = Path(__file__).resolve().parent.parent

SMALL = """
title = "A small experiment"
text = "How it is made."
page = "page.md"
first_seed = 100

[methods.gcn]
kind = "model"
seeds = 2
options = {epochs = 2}

[methods.rules]
expand = "rules"
seeds = 3

[[rows]]
name = "grid-link"
title = "Grid, link"
dataset = "grid"
dataset_options = {rows = 5, cols = 6}
task = "link"
goal = 0.9
published = [{source = "the paper", value = 0.8}]

[[rows]]
name = "communities-pair"
title = "Communities, pair"
dataset = "communities"
dataset_options = {communities = 4, size = 5}
task = "pair"
seeds = 2

[[sections]]
name = "accuracy"
title = "Accuracy"
main = "gcn"
rows = ["grid-link", "communities-pair"]
methods = ["gcn", "rules"]

[[sections]]
name = "matrix"
title = "Matrix"
layout = "matrix"
baseline = "gcn"
rows = ["grid-link"]
methods = ["gcn", "rules"]
"""


def folder_of(path: Path, text: str = SMALL) -> Path:
    folder = path / "experiments"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "small.toml").write_text(text)
    return folder


@pytest.fixture
def manifest(tmp_path: Path) -> Manifest:
    return load_manifest("small", folder_of(tmp_path))


def fill(manifest: Manifest, values: dict[str, list[float]], row: str = "grid-link", **more: Any) -> None:
    """Records with these values of the AUC, one a seed."""
    for run in plan(manifest, only=[row], methods=list(values)):
        place = run.seed - manifest.first_seed
        if place < len(values[run.method.name]):
            auc = values[run.method.name][place]
            write_record(
                manifest.records, run, {"test": {"auc": auc, "ap": 0.5}, "val": None, "seconds": 2.0, **more}
            )


# --- manifests


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('title = "A small', 'title = A small', "not TOML.*line"),
        ('dataset = "grid"', 'dataset = "gird"', "unknown dataset 'gird'; did you mean 'grid'"),
        ("{rows = 5, cols", "{row = 5, cols", "unknown option of dataset 'grid' 'row'; did you mean 'rows'"),
        ('task = "pair"', 'task = "pairs"', "rows.1.task: Input should be 'link' or 'pair', found 'pairs'"),
        ("goal = 0.9", "gaol = 0.9", "rows.0.gaol: Extra inputs are not permitted"),
        ('name = "communities-pair"', 'name = "grid-link"', "rows: 'grid-link' is there twice"),
        ('methods = ["gcn", "rules"]', 'methods = ["gcn", "rule"]', "unknown method 'rule'; did you mean 'rules'"),
        ('main = "gcn"', 'main = "gin"', "unknown method of section 'accuracy' 'gin'; did you mean 'gcn'"),
        ('rows = ["grid-link"]', 'rows = ["grid"]', "unknown row 'grid'; did you mean 'grid-link'"),
        ("seeds = 3", "seeds = 0", "seeds"),
        ('expand = "rules"', 'expand = "ruels"', "expand"),
        ('name = "grid-link"', 'name = "../grid"', "rows.0.name"),
    ],
)  # fmt: skip
def test_a_wrong_manifest_gets_one_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in SMALL
    folder = folder_of(tmp_path, SMALL.replace(old, new))
    with pytest.raises(InputError, match=message) as error:
        load_manifest("small", folder)
    assert "\n" not in str(error.value)
    assert "small.toml" in str(error.value)


@pytest.mark.parametrize("base", ["small", "other", "last"])
def test_a_base_that_leads_back_is_refused(tmp_path: Path, base: str) -> None:
    folder = folder_of(tmp_path, f'base = "{base}"\n' + SMALL)
    (folder / "other.toml").write_text('base = "last"\n' + SMALL)
    (folder / "last.toml").write_text('base = "small"\n' + SMALL)
    with pytest.raises(InputError, match="unknown base"):
        load_manifest("small", folder)


def test_a_base_may_have_figures_alone(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, 'base = "other"\n' + SMALL)
    (folder / "other.toml").write_text('title = "Other"\n')
    assert load_manifest("small", folder).rows == load_manifest("small", folder_of(tmp_path / "alone")).rows


def test_all_experiments_can_be_asked_for_a_row_that_some_have(tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    (folder / "other.toml").write_text(SMALL.replace("grid-link", "lattice-link"))
    manifests = [load_manifest(name, folder) for name in ("other", "small")]
    (found,) = having(manifests, ["grid-link"], ["gcn"])
    assert (found[0].name, found[1], found[2]) == ("small", ["grid-link"], ["gcn"])
    assert [each[1] for each in having(manifests, ["lattice-link", "grid-link"], [])] == [
        ["lattice-link"],
        ["grid-link"],
    ]
    assert len(having(manifests, [], ["rules"])) == 2
    with pytest.raises(InputError, match="unknown row 'grid'; did you mean 'grid-link'"):
        having(manifests, ["grid"], [])
    with pytest.raises(InputError, match="unknown method 'page-rank'; did you mean 'pagerank'"):
        having(manifests, [], ["page-rank"])


def test_an_unknown_experiment_gets_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="unknown experiment 'smal'; did you mean 'small'"):
        load_manifest("smal", folder_of(tmp_path))


def test_the_manifests_of_the_repository_agree_on_their_names() -> None:
    """A name is a record file, so in all manifests it has to stand for the same run."""
    ids: dict[tuple[str, str], str] = {}
    for name in manifest_names(ROOT / "lab" / "experiments"):
        for run in plan(load_manifest(name, ROOT / "lab" / "experiments"), seeds=1):
            assert ids.setdefault((run.row.name, run.method.name), run.id) == run.id, str(run)
    assert ids


def test_the_pages_of_results_are_those_of_the_records() -> None:
    for name in manifest_names(ROOT / "lab" / "experiments"):
        manifest = load_manifest(name, ROOT / "lab" / "experiments")
        assert manifest.page is not None
        page = (ROOT / "lab" / "experiments" / manifest.page).read_text()
        assert f"<!-- {name} begin -->" in page
        assert with_tables(page, manifest) == page


# --- plans


def run_of(manifest: Manifest, row: str = "grid-link", method: str = "gcn") -> Run:
    return plan(manifest, only=[row], methods=[method])[0]


def test_an_id_changes_with_all_that_matters_and_with_nothing_else(manifest: Manifest) -> None:
    run = run_of(manifest)

    def changed(
        row: dict[str, Any] | None = None, method: dict[str, Any] | None = None, seed: int = 100
    ) -> str:
        return Run(run.row.model_copy(update=row), run.method.model_copy(update=method), seed).id

    different = [
        changed(row={"dataset": "communities", "dataset_options": {}}),
        changed(row={"dataset_options": {"rows": 5, "cols": 7}}),
        changed(row={"features": False}),
        changed(row={"task": "pair"}),
        changed(row={"task_options": {"folds": 5}}),
        changed(row={"official": True}),
        changed(method={"of": "gin"}),
        changed(method={"preset": "paper"}),
        changed(method={"options": {"epochs": 3}}),
        changed(seed=101),
    ]
    assert len({run.id, *different}) == len(different) + 1
    same = [
        changed(
            row={
                "title": "another",
                "goal": 1.0,
                "published": (),
                "seeds": 1,
                "metric": "ap",
                "name": "other",
            }
        ),
        changed(method={"title": "another", "name": "other", "seeds": 1}),
        changed(row={"dataset": "GRID"}),
        # An option that says what the settings are without it.
        changed(method={"options": {"epochs": 2, "samples": 1}}),
    ]
    assert set(same) == {run.id}


def test_an_id_changes_with_the_settings_of_large_graphs_where_the_graph_is_large(
    manifest: Manifest, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_of(manifest)
    psgnn = run.method.model_copy(update={"of": "psgnn"})
    datasets = (
        "grid",
        "scale/email-Enron",
        "protein",
    )  # small, large, and large only as a sum of small graphs
    ids = []
    for batch in (1024, 2048):
        monkeypatch.setitem(presets.BEST_LARGE, "psgnn", {"batch": batch})
        rows = [run.row.model_copy(update={"dataset": name, "dataset_options": {}}) for name in datasets]
        ids.append([Run(row, psgnn, 100).id for row in rows])
    assert [before == after for before, after in zip(*ids, strict=True)] == [True, False, True]


def test_an_id_changes_with_the_settings_for_words_where_nodes_have_some(
    manifest: Manifest, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_of(manifest)
    psgnn = run.method.model_copy(update={"of": "psgnn"})
    link = run.row.model_copy(update={"dataset": "cora", "dataset_options": {}, "task": "link"})
    rows = [link, link.model_copy(update={"features": False}), link.model_copy(update={"task": "pair"})]
    ids = []
    for shown in (True, False):
        monkeypatch.setitem(presets.BEST_WIDE, "psgnn", {"pair_features": shown})
        ids.append([Run(row, psgnn, 100).id for row in rows])
    assert [before == after for before, after in zip(*ids, strict=True)] == [False, True, True]


def test_options_with_their_default_are_the_same_run(manifest: Manifest) -> None:
    run = run_of(manifest)
    plain = run.row.model_copy(update={"dataset_options": {}})
    given_too = run.row.model_copy(update={"dataset_options": {"rows": 20, "cols": 20}})
    assert Run(plain, run.method, 100).id == Run(given_too, run.method, 100).id


def test_a_plan_has_the_seeds_of_rows_and_methods(manifest: Manifest) -> None:
    counts = {
        (row, method): [
            run.seed for run in plan(manifest) if (run.row.name, run.method.name) == (row, method)
        ]
        for row in ("grid-link", "communities-pair")
        for method in ("gcn", "pagerank")
    }
    assert counts == {
        ("grid-link", "gcn"): [100, 101],
        ("grid-link", "pagerank"): [100, 101, 102],
        ("communities-pair", "gcn"): [100, 101],
        ("communities-pair", "pagerank"): [100, 101],
    }
    assert [run.seed for run in plan(manifest)] == sorted(run.seed for run in plan(manifest))
    assert {run.seed for run in plan(manifest, seeds=1)} == {100}
    assert {run.method.name for run in plan(manifest, methods=["pagerank", "gcn"])} == {"pagerank", "gcn"}
    assert len(plan(manifest, methods=["rules"])) == len(plan(manifest)) - len(
        plan(manifest, methods=["gcn"])
    )


def test_a_plan_names_the_nearest_row_and_method(manifest: Manifest) -> None:
    with pytest.raises(InputError, match="unknown row 'grid'; did you mean 'grid-link'"):
        plan(manifest, only=["grid"])
    with pytest.raises(InputError, match="unknown method 'page-rank'; did you mean 'pagerank'"):
        plan(manifest, methods=["page-rank"])


def test_a_skipped_method_is_not_run(tmp_path: Path) -> None:
    text = SMALL.replace('task = "pair"', 'task = "pair"\nskip = ["pagerank"]')
    runs = plan(load_manifest("small", folder_of(tmp_path, text)), methods=["pagerank"])
    assert {run.row.name for run in runs} == {"grid-link"}


def test_a_skipped_method_that_is_unknown_gets_the_nearest(tmp_path: Path) -> None:
    text = SMALL.replace('task = "pair"', 'task = "pair"\nskip = ["page-rank"]')
    with pytest.raises(InputError, match="'page-rank'; did you mean 'pagerank'"):
        plan(load_manifest("small", folder_of(tmp_path, text)))


@given(parts=st.integers(1, 7))
def test_shards_share_nothing_and_miss_nothing(parts: int) -> None:
    manifest = load_manifest("accuracy", ROOT / "lab" / "experiments")
    every = [(run.row.name, run.method.name, run.seed) for run in plan(manifest, seeds=2)]
    found, files = [], []
    for part in range(1, parts + 1):
        runs = plan(manifest, seeds=2, shard=(part, parts))
        found += [(run.row.name, run.method.name, run.seed) for run in runs]
        files += sorted({(run.row.name, run.method.name) for run in runs})
    assert sorted(found) == sorted(every)
    assert len(files) == len(set(files))


@pytest.mark.parametrize("text", ["0/2", "3/2", "1", "a/b", "1/", "-1/2"])
def test_a_wrong_shard_gets_one_line(text: str) -> None:
    with pytest.raises(InputError, match="--shard takes i/n"):
        parse_shard(text)


# --- records


def test_a_record_counts_for_its_own_settings_only(manifest: Manifest) -> None:
    run = run_of(manifest)
    assert find_record(manifest.records, run) is None
    write_record(manifest.records, run, {"test": {"auc": 1 / 3}, "seconds": 1.0})
    record = find_record(manifest.records, run)
    assert record == {"seed": 100, "id": run.id, "test": {"auc": 0.333333}, "seconds": 1.0}
    other = Run(run.row, run.method.model_copy(update={"options": {"epochs": 9}}), 100)
    assert find_record(manifest.records, other) is None
    write_record(manifest.records, other, {"test": {"auc": 0.5}, "seconds": 1.0})
    assert find_record(manifest.records, run) is None  # one seed has one place
    assert len(read_cell(manifest.records, "grid-link", "gcn")) == 1


@pytest.mark.parametrize("content", ["", "[", "{}x", '[{"seed": 100}]', "[1]", "3", '{"seed": 1}'])
def test_a_damaged_record_gets_one_line(manifest: Manifest, content: str) -> None:
    path = record_path(manifest.records, "grid-link", "gcn")
    path.parent.mkdir(parents=True)
    path.write_text(content)
    with pytest.raises(InputError, match=r"gcn\.json is damaged"):
        find_record(manifest.records, run_of(manifest))


def test_a_result_that_is_no_number_leaves_the_old_file(manifest: Manifest) -> None:
    run = run_of(manifest)
    write_record(manifest.records, run, {"test": {"auc": 0.5}, "seconds": 1.0})
    before = record_path(manifest.records, "grid-link", "gcn").read_bytes()
    with pytest.raises(ValueError, match="JSON"):
        write_record(manifest.records, run, {"test": {"auc": float("nan")}, "seconds": 1.0})
    assert record_path(manifest.records, "grid-link", "gcn").read_bytes() == before
    assert [path.name for path in (manifest.records / "grid-link").iterdir()] == ["gcn.json"]


def test_writers_side_by_side_lose_nothing(manifest: Manifest) -> None:
    run = run_of(manifest)

    def write(first: int) -> None:
        for seed in range(first, first + 10):
            found = {"test": {"auc": seed / 1000}, "seconds": 1.0}
            write_record(manifest.records, Run(run.row, run.method, seed), found)

    threads = [threading.Thread(target=write, args=(first,)) for first in (0, 10, 20, 30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    records = read_cell(manifest.records, "grid-link", "gcn")
    assert {seed: record["test"]["auc"] for seed, record in records.items()} == {
        s: s / 1000 for s in range(40)
    }


# --- the runner


def test_a_run_that_fails_stops_no_other(manifest: Manifest) -> None:
    run = run_of(manifest)
    runs = [Run(run.row, run.method, seed) for seed in range(100, 107)]
    outcome = execute_all(runs, manifest.records, jobs=2, make=fragile)
    assert outcome.done == 2
    assert sorted(read_cell(manifest.records, "grid-link", "gcn")) == [105, 106]
    errors = {failed.seed: error for failed, error in outcome.failed}
    assert sorted(errors) == [100, 101, 102, 103, 104]
    assert errors[100] == "this graph is too small"
    assert "exit code 9" in errors[101]
    assert "JSON" in errors[102]
    assert "lack auc" in errors[103]
    assert re.search(r"RuntimeError: two\nlines \(experiment_stand_ins.py:\d+\)", errors[104])


def test_a_run_is_what_the_library_measures(manifest: Manifest) -> None:
    from psgnn.training._compare import Method, make_task, measure

    run = run_of(manifest, method="pagerank")
    task = make_task(load_dataset("grid", rows=5, cols=6), "link", 100)
    measured = execute(run)
    assert measured["test"] == measure(Method("pagerank", "rule"), task, 100)["test"]
    assert measured["split"] == task.digest[:16]


def test_a_long_run_resumes_where_it_was_stopped(manifest: Manifest, monkeypatch: pytest.MonkeyPatch) -> None:
    import psgnn.training._fit as training

    run = run_of(manifest)
    spec = run.method.model_copy(update={"resume": True, "options": {"epochs": 6, "eval_every": 2}})
    long = Run(run.row, spec, 100)
    whole, step = execute(long), training._Trainer._epoch
    seen: list[int] = []

    def stop_once(self: Any, number: int) -> float:
        seen.append(number)
        if seen == [0, 1, 2, 3]:
            raise KeyboardInterrupt
        return step(self, number)

    monkeypatch.setattr(training._Trainer, "_epoch", stop_once)
    with pytest.raises(KeyboardInterrupt):
        execute(long, records=str(manifest.records))
    again = execute(long, records=str(manifest.records))
    assert seen == [0, 1, 2, 3, 3, 4, 5]
    assert again["test"] == whole["test"]
    assert not list((manifest.records / ".unfinished").iterdir())


def test_features_are_dropped_where_the_manifest_says_so(shared_data: Path, manifest: Manifest) -> None:
    from psgnn_lab.runner import _task

    row = run_of(manifest).row.model_copy(
        update={"dataset": "cora", "dataset_options": {}, "features": False}
    )
    bare = _task(row.model_dump_json(), 0, str(shared_data))
    assert bare.graphs[0].x is None
    whole = _task(row.model_copy(update={"features": True}).model_dump_json(), 0, str(shared_data))
    assert whole.graphs[0].x is not None


MANY = """
title = "Many short runs"
[methods.pagerank]
kind = "rule"
seeds = 40
[methods.anchor-l1]
kind = "rule"
seeds = 40
[[rows]]
name = "grid-link"
title = "Grid, link"
dataset = "grid"
task = "link"
[[sections]]
name = "all"
title = "All"
rows = ["grid-link"]
methods = ["pagerank", "anchor-l1"]
"""


def start(folder: Path) -> subprocess.Popen[str]:
    """The experiment in a process of its own."""
    command = [sys.executable, str(ROOT / "tests" / "experiment_stand_ins.py"), str(folder)]
    return subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def recorded(folder: Path) -> dict[str, dict[int, Any]]:
    """All records; every file has to be whole."""
    return {
        method: read_cell(folder / "records", "grid-link", method) for method in ("pagerank", "anchor-l1")
    }


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def has_ended(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_a_stopped_experiment_goes_on_where_it_was(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, MANY)
    before: dict[str, dict[int, Any]] = {"pagerank": {}, "anchor-l1": {}}
    for how, code in ((signal.SIGKILL, -9), (signal.SIGINT, 130)):
        stopped = start(folder)
        enough = sum(map(len, before.values())) + 10
        wait_until(lambda enough=enough: sum(map(len, recorded(folder).values())) >= enough)
        workers = psutil.Process(stopped.pid).children(recursive=True)
        assert workers
        stopped.send_signal(how)
        _, err = stopped.communicate(timeout=60)
        assert stopped.returncode == code, err
        assert err == ("" if how == signal.SIGKILL else "psgnn: error: interrupted\n")
        wait_until(lambda workers=workers: all(map(has_ended, workers)))
        after = recorded(folder)
        assert sum(map(len, after.values())) < 80
        assert {name: {seed: after[name][seed] for seed in runs} for name, runs in before.items()} == before
        before = after
    manifest = load_manifest("small", folder)
    missing = [run for run in plan(manifest) if find_record(manifest.records, run) is None]
    assert execute_all(missing, manifest.records, jobs=2, make=steady).done == 80 - sum(
        map(len, before.values())
    )
    for run in plan(manifest):
        record = find_record(manifest.records, run)
        assert record is not None
        assert record["test"]["auc"] == pytest.approx(int(run.id, 16) / 16**16, abs=1e-6)
    assert {path.name for path in (folder / "records" / "grid-link").iterdir()} == {
        "pagerank.json",
        "anchor-l1.json",
    }


# --- estimates


def test_time_left_comes_from_the_records(manifest: Manifest) -> None:
    fill(manifest, {"gcn": [0.5]})
    runs = plan(manifest)
    estimate = Estimate(manifest.records, runs)
    assert estimate.seconds(run_of(manifest)) == 2.0
    assert estimate.seconds(run_of(manifest, "communities-pair")) == 2.0  # of the same method on another row
    assert estimate.seconds(run_of(manifest, method="pagerank")) == 1.0  # a guess
    rules = plan(manifest, methods=["rules"])
    assert estimate.total(runs) == 2.0 * 4 + 1.0 * len(rules)
    assert (as_time(48), as_time(600), as_time(7200)) == ("48 s", "10 min", "2.0 h")


# --- tables

GCN, PAGERANK = [0.91, 0.95], [0.93, 0.94, 0.99]


def test_cells_and_differences_are_those_of_scipy(manifest: Manifest) -> None:
    rng = np.random.default_rng(0)
    first, second = rng.uniform(0.8, 1.0, (2, 10)).round(6)
    text = (
        (manifest.folder / "small.toml")
        .read_text()
        .replace("seeds = 2", "seeds = 10")
        .replace("seeds = 3", "seeds = 10")
    )
    (manifest.folder / "small.toml").write_text(text)
    manifest = load_manifest("small", manifest.folder)
    fill(manifest, {"gcn": first.tolist(), "pagerank": second.tolist()[:7]})
    methods = manifest.section_methods(manifest.sections[0])
    cells = read_cells(manifest.records, manifest.row("grid-link"), methods, 100)
    found = difference(cells["gcn"], cells["pagerank"])
    assert found is not None
    expected = stats.ttest_rel(first[:7], second[:7])
    interval = expected.confidence_interval(0.95)
    assert found.seeds == 7
    assert [found.mean, found.p, found.low, found.high] == pytest.approx(
        [np.mean(first[:7] - second[:7]), expected.pvalue, interval.low, interval.high]
    )
    assert cells["gcn"].mean == pytest.approx(first.mean())


def test_the_best_other_is_the_hardest_on_common_seeds(manifest: Manifest) -> None:
    # The mean of adamic-adar is higher, but only because of a split that gcn has no record of.
    fill(manifest, {"gcn": GCN, "pagerank": [0.92, 0.93, 0.90], "adamic-adar": [0.90, 0.90, 1.0]})
    methods = manifest.section_methods(manifest.sections[0])
    cells = read_cells(manifest.records, manifest.row("grid-link"), methods, 100)
    found = against_best(cells["gcn"], cells)
    assert found is not None
    assert found.other.method.name == "pagerank"
    assert found.mean == pytest.approx(0.005)


def test_a_single_split_makes_no_best_other(manifest: Manifest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("psgnn_lab.statistics.ENOUGH_SEEDS", 2)
    fill(manifest, {"gcn": GCN, "pagerank": [0.5, 0.5], "adamic-adar": [0.99]})
    methods = manifest.section_methods(manifest.sections[0])
    cells = read_cells(manifest.records, manifest.row("grid-link"), methods, 100)
    found = against_best(cells["gcn"], cells)
    assert found is not None
    assert found.other.method.name == "pagerank"
    del cells["pagerank"]
    found = against_best(cells["gcn"], cells)
    assert found is not None
    assert found.other.method.name == "adamic-adar"


def test_equal_methods_have_no_p_value(manifest: Manifest) -> None:
    fill(manifest, {"gcn": [1.0, 1.0], "pagerank": [1.0, 1.0, 1.0]})
    page = markdown(manifest)
    assert (
        "| Grid, link | **1.0000 ± 0.0000 (2)** | **pagerank 1.0000 ± 0.0000 (3)** | +0.0000 (2) | - |"
        in page
    )


def test_the_page_shows_who_is_best_whoever_it_is(manifest: Manifest) -> None:
    fill(manifest, {"gcn": GCN, "pagerank": PAGERANK}, embedding={"auc": 0.77})
    page = markdown(manifest)
    assert (
        "| Grid, link | 0.9300 ± 0.0283 (2) | **pagerank 0.9533 ± 0.0321 (3)** | -0.0050 [-0.1956, +0.1856] (2) "
        "| 0.795 | 0.9, reached | the paper: 0.8 |"
    ) in page
    lines = page.splitlines()
    best = lines.index(
        "| [pagerank](records/grid-link/pagerank.json) | **0.9533 ± 0.0321 (3)** | 0.5000 | - | - | 0.7700 | 2.00 |"
    )
    assert lines[best + 1].startswith("| [gcn](records/grid-link/gcn.json) | 0.9300 ± 0.0283 (2) |")
    assert lines[best + 2].startswith("| adamic-adar | - | - |")
    # In the matrix: the difference to the baseline on common seeds.
    assert (
        "| pagerank | [**0.9533 ± 0.0321 (3)**, +0.0050](records/grid-link/pagerank.json) | 2.00 |" in lines
    )
    assert "Records of 5 of" in page
    assert "### Communities, pair\n\nThere are no records yet." in page


def test_a_matrix_may_show_the_best_rule_alone(tmp_path: Path) -> None:
    changed = 'layout = "matrix"\nmain = "gcn"\nbest_rule = true'
    manifest = load_manifest("small", folder_of(tmp_path, SMALL.replace('layout = "matrix"', changed)))
    fill(manifest, {"gcn": GCN, "pagerank": PAGERANK, "adamic-adar": [0.2, 0.3]})
    lines = markdown(manifest).partition("## Matrix")[2].splitlines()
    named = "[**0.9533 ± 0.0321 (3), pagerank**, +0.0050](records/grid-link/pagerank.json)"
    assert f"| best rule, in hindsight | {named} | - |" in lines
    assert "| gcn | [0.9300 ± 0.0283 (2)](records/grid-link/gcn.json) | 2.00 |" in lines
    assert not any(line.startswith(("| pagerank |", "| adamic-adar |")) for line in lines)
    # What is compared with the main method are other methods of its kind.
    assert document(manifest)["sections"][1]["rows"][0]["difference"] is None


def test_lines_say_how_far_others_are_from_the_baseline_on_common_splits(tmp_path: Path) -> None:
    changed = SMALL.replace('layout = "matrix"', 'layout = "lines"')
    manifest = load_manifest("small", folder_of(tmp_path, changed))
    # On the splits of gcn pagerank is better by .005; its mean, which has a third split, is better by .0233.
    fill(manifest, {"gcn": GCN, "pagerank": PAGERANK})
    lines = markdown(manifest).partition("## Matrix")[2].splitlines()
    title = "*mean difference to gcn (number of rows), on the splits that both have*"
    assert f"| {title} | - | +0.0050 (1) |" in lines


@pytest.mark.parametrize(
    ("goal", "values", "shown"),
    [
        ("0.93", [0.93, 0.93], "0.93, reached"),
        ("0.93", [0.9298, 0.93], "0.93, not reached"),
        ("1.0", [0.6, 0.7], "1, not reached"),
        ("0.93", [0.99], "0.93"),  # one of two runs decides nothing
    ],
)
def test_a_goal_is_reached_by_the_whole_mean(
    tmp_path: Path, goal: str, values: list[float], shown: str
) -> None:
    manifest = load_manifest("small", folder_of(tmp_path, SMALL.replace("goal = 0.9", f"goal = {goal}")))
    fill(manifest, {"gcn": values})
    assert f"| {shown} | the paper: 0.8 |" in markdown(manifest)


def test_without_records_the_page_says_so(manifest: Manifest) -> None:
    page = markdown(manifest)
    assert page.count("There are no records yet: `psgnn-lab reproduce small`") == 2
    assert document(manifest)["sections"][0]["rows"][0]["difference"] is None


def test_stale_records_are_not_shown(manifest: Manifest) -> None:
    fill(manifest, {"gcn": GCN})
    text = SMALL.replace("epochs = 2", "epochs = 3")
    assert "0.9300" in markdown(manifest)
    assert "0.9300" not in markdown(load_manifest("small", folder_of(manifest.folder.parent, text)))


def test_the_page_is_written_between_its_markers(manifest: Manifest) -> None:
    assert write_page(manifest) is None
    page = manifest.folder / "page.md"
    page.write_text("# Head\n\nno markers\n")
    assert write_page(manifest) is None
    page.write_text("# Head\n<!-- small begin -->\nold\n<!-- small end -->\ntail\n")
    fill(manifest, {"gcn": GCN})
    assert write_page(manifest) == page.resolve()
    first = page.read_bytes()
    assert first.startswith(b"# Head\n<!-- small begin -->\nHow it is made.")
    assert first.endswith(b"<!-- small end -->\ntail\n")
    assert write_page(manifest) == page.resolve()
    assert page.read_bytes() == first
    page.write_text("<!-- small begin -->\n")
    with pytest.raises(InputError, match="without '<!-- small end -->'"):
        write_page(manifest)
    assert page.read_text() == "<!-- small begin -->\n"


def test_every_link_of_the_page_leads_to_a_record(manifest: Manifest) -> None:
    fill(manifest, {"gcn": GCN, "pagerank": PAGERANK})
    targets = set(re.findall(r"\]\(([^)]+)\)", markdown(manifest)))
    assert len(targets) >= 4
    assert all((manifest.folder / target).exists() for target in targets)


def test_a_group_has_every_entry_of_its_registry(manifest: Manifest) -> None:
    from psgnn.scoring import HEURISTICS

    names = [method.name for method in manifest.expand("rules")]
    assert names == list(HEURISTICS)
    assert manifest.expand("gcn") == [
        MethodSpec(name="gcn", kind="model", of="gcn", options={"epochs": 2}, seeds=2, title="gcn")
    ]


def test_a_preset_is_measured_with_anchors_chosen_in_several_ways_and_numbers(tmp_path: Path) -> None:
    group = '[methods.chosen]\npickers = ["degree", "boosted"]\nseeds = 2\n'
    text = SMALL.replace("[methods.gcn]", group + "\n[methods.gcn]").replace(
        'methods = ["gcn", "rules"]', 'methods = ["gcn", "chosen"]'
    )
    few = load_manifest("small", folder_of(tmp_path, text)).expand("chosen")
    assert [(method.name, method.options) for method in few] == [
        ("learned-degree", {"picker": "degree"}),
        ("learned-boosted", {"picker": "boosted"}),
    ]
    text = text.replace("seeds = 2\n\n[methods.gcn]", "anchors = [2, 16]\n\n[methods.gcn]")
    many = load_manifest("small", folder_of(tmp_path, text)).expand("chosen")
    assert [method.name for method in many][:2] == ["learned-degree-2", "learned-degree-16"]
    assert many[1].options == {"picker": "degree", "anchors": 16}


# --- the graph of the leak check


def test_erdos_renyi_is_a_random_graph_of_the_asked_size() -> None:
    [graph] = load_dataset("erdos-renyi", nodes=60, degree=5, seed=3)
    edges = {tuple(edge) for edge in graph.adjacency.edge_index().T.tolist()}
    assert graph.num_nodes == 60
    assert len(edges) == 2 * 150
    assert all(u != v and (v, u) in edges for u, v in edges)
    [again] = load_dataset("erdos-renyi", nodes=60, degree=5, seed=3)
    assert np.array_equal(graph.edges, again.edges)
    [other] = load_dataset("erdos-renyi", nodes=60, degree=5, seed=4)
    assert not np.array_equal(graph.edges, other.edges)
    with pytest.raises(InputError, match="at most 4 neighbours"):
        load_dataset("erdos-renyi", nodes=5, degree=6)


def test_erdos_renyi_draws_every_edge_equally_often() -> None:
    counts = np.zeros((6, 6))
    for seed in range(600):
        [graph] = load_dataset("erdos-renyi", nodes=6, degree=2, seed=seed)
        counts[tuple(graph.adjacency.edge_index())] += 1
    observed = counts[np.triu_indices(6, 1)]  # 15 pairs, 6 edges a graph
    assert observed.sum() == 600 * 6
    assert stats.chisquare(observed).pvalue > 0.001
