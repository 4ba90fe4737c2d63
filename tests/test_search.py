"""The hyperparameter search: its grid, trials and storage, what is tested after it, and its table."""

from __future__ import annotations

import copy
import json
import multiprocessing
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.trial import TrialState

from psgnn.errors import InputError
from psgnn.models._config import make_config
from psgnn.models._presets import MODELS
from psgnn_lab import commands
from psgnn_lab import runner as runner_module
from psgnn_lab import search as search_module
from psgnn_lab import study as study_module
from psgnn_lab.manifest import Manifest, load_manifest
from psgnn_lab.plan import Run, plan
from psgnn_lab.records import find_record, write_record
from psgnn_lab.runner import Make, Outcome, Worker, execute, validate
from psgnn_lab.search import search_all
from psgnn_lab.tables import document, markdown
from psgnn_lab.trials import (
    SearchCell,
    Trial,
    best_of,
    read_trials,
    search_cells,
    seconds_left,
    trials_path,
    write_trials,
)
from search_stand_ins import fragile, steady

ROOT = Path(__file__).resolve().parent.parent

SMALL = """
title = "A small search"
page = "page.md"
first_seed = 100

[search]
title = "Search"
text = "How it is made."
source = "the paper"
preset = "paper"
rows = ["communities-pair", "grid-link"]
trials = 6
seeds = 2
settings = {epochs = 2}

[search.space]
lr = [0.01, 0.02, 0.04, 0.08]
hidden = [2, 4, 8]

[search.models.gcn]
title = "GCN"
published.communities-pair = {lr = 0.02, hidden = 8}
published.grid-link = {lr = 0.04, hidden = 2}

[search.models.gat]
trials = 4
space = {heads = [1, 2]}
published.communities-pair = {lr = 0.02, hidden = 8, heads = 2}
published.grid-link = {heads = 1, lr = 0.02, hidden = 2}

[[rows]]
name = "communities-pair"
title = "Communities, pair"
dataset = "communities"
dataset_options = {communities = 4, size = 5}
task = "pair"

[[rows]]
name = "grid-link"
title = "Grid, link"
dataset = "grid"
dataset_options = {rows = 5, cols = 6}
task = "link"
"""
WANTED = {("communities-pair", "gcn"): 6, ("communities-pair", "gat"): 4,
          ("grid-link", "gcn"): 6, ("grid-link", "gat"): 4}  # fmt: skip


def load(folder: Path, text: str = SMALL) -> Manifest:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "small.toml").write_text(text)
    return load_manifest("small", folder)


@pytest.fixture
def manifest(tmp_path: Path) -> Manifest:
    return load(tmp_path / "experiments")


def url(folder: Path) -> str:
    return f"sqlite:///{folder / 'trials.db'}"


class Here(Worker):
    """A worker without a process of its own, for what is not about processes."""

    def __init__(self, make: Make, root: Path | None) -> None:
        self.make = make
        self.connection, self.theirs = multiprocessing.Pipe()

    def start(self, run: Run) -> None:
        self.run = run
        try:
            self.theirs.send((self.make(run, None), None))
        except InputError as error:
            self.theirs.send(({}, str(error)))

    def result(self) -> tuple[Run, dict[str, Any], str | None]:
        run, self.run = self.run, None
        assert run is not None
        return run, *self.connection.recv()

    def kill(self) -> None:
        self.connection.close()
        self.theirs.close()


@pytest.fixture
def processes() -> None:
    """Workers are what they are."""


@pytest.fixture(autouse=True)
def here(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "processes" not in request.fixturenames:
        monkeypatch.setattr(search_module, "Worker", Here)
        monkeypatch.setattr(runner_module, "Worker", Here)


def search(manifest: Manifest, **options: Any) -> Outcome:
    options = {"jobs": 1, "make": steady, "storage": "sqlite:///:memory:"} | options
    return search_all(manifest, search_cells(manifest), **options)


def tried(manifest: Manifest) -> dict[tuple[str, str], list[Trial]]:
    return {
        (cell.row.name, cell.model): read_trials(manifest.records, cell) for cell in search_cells(manifest)
    }


def params(manifest: Manifest) -> dict[tuple[str, str], list[Any]]:
    return {key: [trial.params for trial in trials] for key, trials in tried(manifest).items()}


def cell_of(manifest: Manifest, row: str = "communities-pair", model: str = "gcn") -> SearchCell:
    (cell,) = search_cells(manifest, only=[row], methods=[model])
    return cell


def fill(manifest: Manifest, cell: SearchCell, values: dict[tuple[float, int], float]) -> None:
    """Trials of these learning rates and widths with these validation AUCs, in their order."""
    trials = [
        Trial(i, {"lr": lr, "hidden": hidden}, val, 1, 2, 3.0)
        for i, ((lr, hidden), val) in enumerate(values.items())
    ]
    write_trials(manifest.records, cell, trials)


SIX = {(0.02, 8): 0.7, (0.01, 2): 0.6, (0.02, 2): 0.9, (0.04, 2): 0.9, (0.08, 2): 0.1, (0.08, 4): 0.2}


# --- the grid


def test_the_grid_is_that_of_the_paper() -> None:
    search = load_manifest("table4", ROOT / "lab" / "experiments").search
    assert search is not None
    assert search.space == {
        "lr": tuple(pytest.approx(0.0005 * 2**i) for i in range(8)),
        "dropout": tuple(pytest.approx(i / 10) for i in range(10)),
        "layers": (2, 3, 4, 5),
        "hidden": tuple(2**i for i in range(10)),
        "batch_norm": (False, True),
    }
    assert search.space["lr"][-1] == 0.064
    assert set(search.models) == set(MODELS)
    assert {name for name, model in search.models.items() if model.space} == {"gat"}
    assert search.models["gat"].space == {"heads": (1, 2, 3, 4, 5)}
    assert {model: search.size(model) for model in ("gcn", "gat")} == {"gcn": 6400, "gat": 32000}
    assert search.rows == ("communities-pair", "communities-link")


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("task", ["pair", "link"])
def test_the_published_settings_are_those_of_the_preset(model: str, task: str) -> None:
    """Both were copied from the paper, each by itself."""
    manifest = load_manifest("table4", ROOT / "lab" / "experiments")
    published = cell_of(manifest, f"communities-{task}", model).published
    config = make_config(model, task, 1, "paper")
    assert {name: getattr(config, name) for name in published} == published
    assert published["batch_norm"] == (model not in ("pgnn", "psgnn"))


def test_batch_norm_is_an_option_of_every_model_that_is_searched() -> None:
    from psgnn.datasets import load_dataset
    from psgnn.models import build_model
    from psgnn.training._compare import make_task

    task = make_task(load_dataset("communities", communities=4, size=5), "pair", 0)
    for model in MODELS:
        weights = [
            len(build_model(model, task, "paper", 0, batch_norm=on).state_dict()) for on in (False, True)
        ]
        assert weights[0] < weights[1], model


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("lr = 0.04, hidden = 2}", "lr = 0.03, hidden = 2}",
         r"gcn.published.grid-link: lr = 0.03 is none of the choices \[0.01"),
        ("{heads = 1, lr", "{lr", "gat.published.grid-link: it sets lr, hidden, the space has lr, hidden, heads"),
        ("published.grid-link = {lr = 0.04, hidden = 2}", "", "gcn.published lacks row 'grid-link'"),
        ("published.grid-link = {lr", "published.grid-lnk = {lr", "'grid-lnk' is no row of the search"),
        ('rows = ["communities-pair", "grid-link"]', 'rows = ["communities"]', "unknown row 'communities'"),
        ("settings = {epochs = 2}", "settings = {hidden = 2}", "'hidden' is in space and in settings"),
        ("hidden = [2, 4, 8]", "hidden = [2, 2, 8]", "'hidden' has a choice twice"),
        ("hidden = [2, 4, 8]", "hidden = []", "search.space.hidden"),
        ("trials = 6", "trials = 0", "search.trials"),
        ("seeds = 2", "seads = 2", "search.seads: Extra inputs are not permitted"),
    ],
)  # fmt: skip
def test_a_wrong_search_gets_one_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in SMALL
    with pytest.raises(InputError, match=message) as error:
        load(tmp_path / "experiments", SMALL.replace(old, new))
    assert "\n" not in str(error.value)


def test_a_setting_that_no_model_has_gets_the_nearest(tmp_path: Path) -> None:
    manifest = load(tmp_path / "experiments", SMALL.replace("hidden", "hiden"))
    with pytest.raises(InputError, match="unknown option 'hiden'; did you mean 'hidden'"):
        [run.id for run in plan(manifest)]


# --- trials


def test_a_search_makes_its_trials_with_the_published_settings_first(manifest: Manifest) -> None:
    assert search(manifest).done == sum(WANTED.values())
    found = tried(manifest)
    assert {key: len(trials) for key, trials in found.items()} == WANTED
    for cell in search_cells(manifest):
        trials = found[cell.row.name, cell.model]
        assert trials[0].params == cell.published
        points = {tuple(sorted(trial.params.items())) for trial in trials}
        assert len(points) == len(trials)
        for trial in trials:
            assert trial.val == pytest.approx(int(cell.run(trial.params).id, 16) / 16**16, abs=1e-6)
    assert search(manifest, make=fragile).done == 0  # all is there


def test_a_grid_that_is_smaller_than_the_trials_is_tried_as_a_whole(tmp_path: Path) -> None:
    text = SMALL.replace("trials = 6", "trials = 50").replace(
        '["communities-pair", "grid-link"]', '["grid-link"]'
    )
    text = re.sub("published.communities-pair.*\n", "", text)
    manifest = load(tmp_path / "experiments", text)
    search(manifest)
    found = params(manifest)
    assert len(found["grid-link", "gcn"]) == 12
    assert len(found["grid-link", "gat"]) == 4


def one_cell(folder: Path, trials: int = 2, more: str = "") -> Manifest:
    """A search of one model on one row."""
    text = SMALL.replace("trials = 6", f"trials = {trials}\n{more}").replace(
        '["communities-pair", "grid-link"]', '["grid-link"]'
    )
    text = re.sub("published.communities-pair.*\n", "", text)
    return load(folder, text[: text.index("[search.models.gat]")] + text[text.index("[[rows]]") :])


def test_a_search_is_the_same_every_time(tmp_path: Path) -> None:
    found = []
    for name, more in [("first", ""), ("second", ""), ("other", "sampler_seed = 1")]:
        manifest = one_cell(tmp_path / name, 8, more)
        search(manifest)
        found.append(params(manifest))
    assert found[0] == found[1] != found[2]


def test_two_workers_try_different_settings(tmp_path: Path) -> None:
    manifest = one_cell(tmp_path / "experiments", 8)
    search(manifest, jobs=2)
    points = {tuple(sorted(point.items())) for point in params(manifest)["grid-link", "gcn"]}
    assert len(points) == count(manifest) == 8


def start(folder: Path, storage: str) -> subprocess.Popen[str]:
    command = [sys.executable, str(ROOT / "tests" / "search_stand_ins.py"), str(folder), storage]
    return subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 200
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def count(manifest: Manifest) -> int:
    return sum(map(len, tried(manifest).values()))


def test_a_killed_search_goes_on_and_finds_what_it_would_have_found(tmp_path: Path) -> None:
    whole, broken = (load(tmp_path / name / "experiments") for name in ("whole", "broken"))
    search(whole)
    storage = url(tmp_path)
    killed = start(broken.folder, storage)
    try:
        wait_until(lambda: count(broken) >= 3)
    finally:
        killed.send_signal(signal.SIGKILL)
        output = killed.communicate(timeout=60)
    assert output == ("", "")
    before = params(broken)
    assert 3 <= sum(map(len, before.values())) < 20
    search(broken, storage=storage)
    after = params(broken)
    assert {key: len(trials) for key, trials in after.items()} == WANTED
    assert after == params(whole)
    assert all(after[key][: len(trials)] == trials for key, trials in before.items())
    states = {
        trial.state
        for summary in optuna.get_all_study_summaries(storage)
        for trial in optuna.load_study(study_name=summary.study_name, storage=storage).trials
    }
    assert states <= {TrialState.COMPLETE, TrialState.FAIL}


@pytest.mark.parametrize("attempt", range(3))
def test_several_share_the_work_of_one_storage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, attempt: int
) -> None:
    """Each has a connection and a folder of its own, as on machines of a cluster."""
    monkeypatch.setattr(search_module, "POLL_SECONDS", 0.05)
    monkeypatch.setattr(study_module, "RETRY_SECONDS", 0.05)
    storage = url(tmp_path)
    manifests = [one_cell(tmp_path / name, 10) for name in ("first", "second", "third")]
    outcomes: list[Outcome] = []
    threads = [
        threading.Thread(target=lambda each=each: outcomes.append(search(each, storage=storage)))
        for each in manifests
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(outcome.done for outcome in outcomes) == 10
    assert len([outcome for outcome in outcomes if outcome.done]) > 1
    for each in manifests:
        assert count(each) == 10
        assert tried(each) == tried(manifests[0])


def elsewhere(manifest: Manifest, storage: str) -> tuple[optuna.Study, optuna.Trial]:
    """A trial that somebody else has begun."""
    (cell,) = search_cells(manifest)
    name = f"grid-link/gcn/{cell.id}"
    study = optuna.create_study(study_name=name, storage=storage, direction="maximize")
    choices = {
        key: optuna.distributions.CategoricalDistribution(values)
        for key, values in cell.search.space_of("gcn").items()
    }
    return study, study.ask(choices)


@pytest.mark.parametrize("how", ["its process is gone", "long silence", "not a word"])
def test_a_trial_that_has_fallen_silent_is_counted_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    manifest = one_cell(tmp_path / "experiments")
    study, trial = elsewhere(manifest, url(tmp_path))
    if how == "its process is gone":
        dead = subprocess.Popen([sys.executable, "-c", ""])
        dead.wait()
        trial.set_user_attr("alive", [socket.gethostname(), dead.pid, time.time()])
    elif how == "long silence":
        trial.set_user_attr("alive", ["far away", 1, time.time() - 10_000])
    else:
        monkeypatch.setattr(study_module, "STALE_SECONDS", 0.0)
    search(manifest, storage=url(tmp_path))
    assert count(manifest) == 2
    assert study.trials[0].state == TrialState.FAIL


def test_a_trial_that_is_alive_elsewhere_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_module, "POLL_SECONDS", 0.02)
    manifest = one_cell(tmp_path / "experiments")
    study, trial = elsewhere(manifest, url(tmp_path))
    trial.set_user_attr("alive", ["far away", 1, time.time()])

    def finish() -> None:
        wait_until(lambda: count(manifest) == 1)  # the other one
        trial.set_user_attr("result", {"best_epoch": 7, "epochs": 8, "seconds": 9.0})
        study.tell(trial, 0.99)

    thread = threading.Thread(target=finish)
    thread.start()
    outcome = search(manifest, storage=url(tmp_path))
    thread.join()
    assert outcome.done == 1
    assert count(manifest) == 2
    (cell,) = search_cells(manifest)
    best = best_of(read_trials(manifest.records, cell))
    assert (best.params, best.val, best.best_epoch, best.seconds) == (trial.params, 0.99, 7, 9.0)


def test_a_trial_that_fails_is_told_and_stops_no_other(manifest: Manifest, processes: None) -> None:
    outcome = search(manifest, make=fragile, jobs=2)
    found = tried(manifest)
    # Where everything fails, a few failures are enough.
    failed = [(run.row.name, error) for run, error in outcome.failed]
    few = 2 * study_module.MOST_FAILURES
    assert few <= failed.count(("grid-link", "the data is gone")) <= few + 2
    assert found["grid-link", "gcn"] == found["grid-link", "gat"] == []
    others = [error for row, error in failed if row != "grid-link"]
    assert all(re.search("exit code 9|is nan", error) for error in others)
    assert len(found["communities-pair", "gcn"]) == 6
    for trial in found["communities-pair", "gcn"]:
        assert (trial.params["lr"], trial.params["hidden"]) not in ((0.01, 4), (0.02, 4))
    # Once what was wrong is mended, the published settings are the first again.
    assert search(manifest).failed == []
    assert {key: len(trials) for key, trials in tried(manifest).items()} == WANTED
    assert params(manifest)["grid-link", "gcn"][0] == {"lr": 0.04, "hidden": 2}


def test_what_is_on_record_outlives_its_storage(tmp_path: Path) -> None:
    manifest = one_cell(tmp_path / "experiments", 3)
    assert search(manifest, storage=None).done == 3
    before = tried(manifest)["grid-link", "gcn"]
    database = manifest.folder / "search" / "small.db"
    assert database.is_file()
    database.unlink()
    assert search(manifest, storage=None).done == 0
    assert not database.exists()
    manifest = one_cell(tmp_path / "experiments", 5)
    assert search(manifest, storage=None).done == 2
    after = tried(manifest)["grid-link", "gcn"]
    assert len(after) == 5
    assert after[:3] == before


def test_force_forgets_what_was_tried(tmp_path: Path) -> None:
    manifest = one_cell(tmp_path / "experiments", 6)
    fill(manifest, cell_of(manifest, "grid-link"), SIX)
    assert search(manifest).done == 0
    assert search(manifest, storage=url(tmp_path), force=True).done == 6
    assert {trial.seconds for trial in tried(manifest)["grid-link", "gcn"]} == {0.05}
    assert search(manifest, storage=url(tmp_path), force=True).done == 6
    assert count(manifest) == 6


@pytest.mark.parametrize(
    ("old", "new", "counted"),
    [
        ("epochs = 2", "epochs = 3", 0),
        ('preset = "paper"', 'preset = "best"', 0),
        ("seeds = 2", "seed = 1", 0),
        ("{communities = 4,", "{communities = 5,", 0),
        ("hidden = [2, 4, 8]", "hidden = [2, 8]", 5),  # one of the six has left the grid
        ("trials = 6", "trials = 9", 6),
        ('title = "GCN"', 'title = "other"', 6),
    ],
)
def test_a_trial_counts_for_its_own_settings_only(
    manifest: Manifest, old: str, new: str, counted: int
) -> None:
    fill(manifest, cell_of(manifest), SIX)
    assert old in SMALL
    changed = load(manifest.folder, SMALL.replace(old, new))
    assert len(read_trials(changed.records, cell_of(changed))) == counted


def test_writers_of_one_file_lose_nothing(manifest: Manifest) -> None:
    cell = cell_of(manifest)
    points = [(lr, hidden) for lr in (0.01, 0.02, 0.04, 0.08) for hidden in (2, 4, 8)]

    def write(mine: list[tuple[float, int]]) -> None:
        for i, (lr, hidden) in enumerate(mine):
            write_trials(manifest.records, cell, [Trial(i, {"lr": lr, "hidden": hidden}, 0.5, 1, 2, 3.0)])

    threads = [threading.Thread(target=write, args=(points[i::3],)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    trials = read_trials(manifest.records, cell)
    assert {(trial.params["lr"], trial.params["hidden"]) for trial in trials} == set(points)
    assert [path.name for path in trials_path(manifest.records, cell).parent.iterdir()] == ["gcn.json"]


# --- the test pairs


class Sealed:
    """Raises when anything of it is read."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"the search reads {name} of the test pairs")


def test_the_test_pairs_are_out_of_reach(manifest: Manifest, monkeypatch: pytest.MonkeyPatch) -> None:
    for row, model, settings in [
        ("communities-pair", "gat", {"heads": 1}),
        ("grid-link", "gcn", {}),
    ]:
        run = cell_of(manifest, row, model).run({"lr": 0.01, "hidden": 4, **settings})
        honest = execute(run)
        make = runner_module._task

        def sealed(row: str, seed: int, root: str | None, make: Any = make) -> Any:
            task = copy.copy(make(row, seed, root))
            task.test = Sealed()
            return task

        with monkeypatch.context() as patch:
            patch.setattr(runner_module, "_task", sealed)
            found = validate(run)
            with pytest.raises(AssertionError, match="the search reads"):
                execute(run)  # which does read them
        assert found["val"] == honest["val"]["auc"]
        assert (found["best_epoch"], found["epochs"]) == (honest["best_epoch"], honest["epochs_run"])


# --- what is tested


def test_the_best_trial_is_the_first_of_the_best_validation(manifest: Manifest) -> None:
    cell = cell_of(manifest)
    fill(manifest, cell, SIX)
    assert best_of(read_trials(manifest.records, cell)).params == {"lr": 0.02, "hidden": 2}


def names(runs: list[Run]) -> list[tuple[str, str, int]]:
    return [(run.row.name, run.method.name, run.seed) for run in runs]


def test_the_best_settings_are_run_once_the_search_is_complete(manifest: Manifest) -> None:
    published = [(row, f"search-{model}-published", seed) for seed in (100, 101) for row, model in WANTED]
    assert names(plan(manifest)) == published
    cell = cell_of(manifest)
    fill(manifest, cell, dict(list(SIX.items())[:5]))
    assert names(plan(manifest)) == published
    fill(manifest, cell, SIX)
    new = [run for run in plan(manifest) if (run.row.name, run.method.name, run.seed) not in published]
    assert names(new) == [("communities-pair", "search-gcn", 100), ("communities-pair", "search-gcn", 101)]
    assert new[0].method.options == {"epochs": 2, "lr": 0.02, "hidden": 2}
    assert names(plan(manifest, methods=["search-gcn"])) == names(new)
    assert len(plan(manifest, methods=["gcn"])) == 6
    assert len(plan(manifest, methods=["gcn"], only=["grid-link"], seeds=1)) == 1


def test_settings_that_are_the_best_as_published_are_run_once(manifest: Manifest) -> None:
    fill(manifest, cell_of(manifest), dict.fromkeys(SIX, 0.0) | {(0.02, 8): 0.3})
    assert "search-gcn" not in {run.method.name for run in plan(manifest)}


@pytest.mark.parametrize("parts", [1, 2, 3, 5])
def test_shards_of_a_search_share_nothing_and_miss_nothing(manifest: Manifest, parts: int) -> None:
    fill(manifest, cell_of(manifest), SIX)
    cells, runs = [], []
    for part in range(1, parts + 1):
        mine = [(cell.row.name, cell.model) for cell in search_cells(manifest, shard=(part, parts))]
        planned = plan(manifest, shard=(part, parts))
        # What a part searches it also tests.
        assert {(run.row.name, run.method.of) for run in planned} == set(mine)
        cells += mine
        runs += names(planned)
    assert sorted(cells) == sorted(WANTED)
    assert sorted(runs) == sorted(names(plan(manifest)))


def test_time_left_comes_from_the_trials(manifest: Manifest) -> None:
    fill(manifest, cell_of(manifest), dict(list(SIX.items())[:2]))
    left = seconds_left(manifest.records, search_cells(manifest))
    assert left["communities-pair, gcn"] == 4 * 3.0
    assert left["grid-link, gcn"] == 6 * 3.0  # of the same model on another row
    assert left["grid-link, gat"] == 4 * 10.0  # a guess
    again = seconds_left(manifest.records, search_cells(manifest), force=True)
    assert again["communities-pair, gcn"] == 6 * 3.0


# --- the table


def test_the_table_has_both_settings_side_by_side(manifest: Manifest) -> None:
    assert "There are no records yet: `psgnn-lab reproduce small` makes the 20 trials." in markdown(manifest)
    fill(manifest, cell_of(manifest), SIX)
    for run in plan(manifest, only=["communities-pair"], methods=["gcn"]):
        auc = {"search-gcn": 0.8, "search-gcn-published": 0.6}[run.method.name] + (run.seed - 100) / 10
        write_record(manifest.records, run, {"test": {"auc": auc}, "seconds": 1.0})
    page = markdown(manifest)
    assert (
        "The grid: lr 0.01, 0.02, 0.04, 0.08; hidden 2, 4, 8 (12 points); for gat also heads 1, 2 (24 points)."
        in page
    )
    assert "Records of 6 of 20 trials" in page
    assert (
        "| GCN | [6 of 12](records/search/communities-pair/gcn.json) | lr 0.02, hidden 2 | 0.9000 "
        "| [0.8500 ± 0.0707 (2)](records/communities-pair/search-gcn.json) | lr 0.02, hidden 8 | 0.7000 "
        "| [0.6500 ± 0.0707 (2)](records/communities-pair/search-gcn-published.json) | 3.00 |"
    ) in page
    assert "| gat | 0 of 24 | - | - | - | lr 0.02, hidden 2, heads 1 | - | - | - |" in page
    first = document(manifest)["search"][0]
    assert first["best"] == {
        "params": {"lr": 0.02, "hidden": 2}, "val": 0.9, "test": {100: 0.8, 101: 0.9},
    }  # fmt: skip
    assert first["published"]["test"] == {100: 0.6, 101: 0.7}
    targets = set(re.findall(r"\]\(([^)]+)\)", page))
    assert all((manifest.folder / target).exists() for target in targets)


# --- bad luck


def command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: object
) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["psgnn-lab", "reproduce", *map(str, words)])
    with pytest.raises(SystemExit) as exit_info:
        commands.main()
    code = exit_info.value.code
    captured = capsys.readouterr()
    return int(code or 0), captured.out, captured.err


@pytest.mark.parametrize(
    ("storage", "message"),
    [
        ("{folder}/damaged.db", "not a database.*delete it, or name another with --storage"),
        ("{folder}/no/such/folder/x.db", "unable to open database file"),
        ("nonsense", "the storage of --storage cannot be used"),
        ("nodriver://reader:secret@host/db", r"the storage nodriver://reader:\*\*\*@host/db cannot be used"),
    ],
)
def test_a_storage_that_cannot_be_used_gets_one_line(
    manifest: Manifest, tmp_path: Path, storage: str, message: str,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    (tmp_path / "damaged.db").write_bytes(b"this is not a database, whatever it is" * 100)
    fill(manifest, cell_of(manifest), SIX)
    before = sorted(manifest.folder.rglob("*"))
    where = storage.format(folder=f"sqlite:///{tmp_path}")
    code, out, err = command(monkeypatch, capsys, "small", "--folder", manifest.folder, "--storage", where)
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1, err
    assert re.search(message, err), err
    assert "secret" not in err
    assert sorted(manifest.folder.rglob("*")) == before


@pytest.mark.parametrize(
    "content",
    ["", "[", "3", "[1]", '[{"id": "a"}]', "[{}]",
     '[{"id": "a", "number": 0, "params": 3, "val": 0.5, "best_epoch": 1, "epochs": 1, "seconds": 1.0}]',
     '[{"id": "a", "number": 0, "params": {}, "val": "x", "best_epoch": 1, "epochs": 1, "seconds": 1.0}]',
     '[{"id": "a", "number": 0, "params": {}, "val": 7.0, "best_epoch": 1, "epochs": 1, "seconds": 1.0}]'],
)  # fmt: skip
def test_a_damaged_record_of_trials_gets_one_line(
    manifest: Manifest, content: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = trials_path(manifest.records, cell_of(manifest))
    path.parent.mkdir(parents=True)
    path.write_text(content)
    for option in ("--from-records", "--dry-run", "-q"):
        code, out, err = command(monkeypatch, capsys, "small", "--folder", manifest.folder, option)
        assert (code, out) == (2, "")
        assert re.fullmatch(r"psgnn: error: .*gcn\.json is damaged \(.*\n", err), err
    assert path.read_text() == content


def test_without_optuna_the_records_are_enough(
    manifest: Manifest, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    monkeypatch.delitem(sys.modules, "psgnn_lab.study")
    folder = ("--folder", manifest.folder)
    fill(manifest, cell_of(manifest), SIX)
    code, out, err = command(monkeypatch, capsys, "small", *folder, "--from-records")
    assert (code, err) == (0, "")
    assert "| GCN | [6 of 12]" in out
    assert search_all(manifest, [cell_of(manifest)]).done == 0
    with pytest.raises(InputError, match="needs Optuna: pip install optuna"):
        search(manifest)
    code, out, err = command(monkeypatch, capsys, "small", *folder)
    assert (code, out) == (2, "")
    assert err == "psgnn: error: a hyperparameter search needs Optuna: pip install optuna\n"


# --- the command


def test_the_command_searches_tests_and_writes_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest = one_cell(tmp_path / "experiments")
    page = manifest.folder / "page.md"
    page.write_text("<!-- small begin -->\n<!-- small end -->\n")
    words = ("small", "--folder", manifest.folder, "--jobs", 1, "--json")
    code, out, _ = command(monkeypatch, capsys, *words, "--dry-run")
    described = json.loads(out)
    assert (code, described["runs"]) == (0, 2)
    assert described["rows"][1] | {"seconds": None} == {
        "row": "grid-link, search", "runs": 2, "recorded": 0, "missing": 2, "seconds": None,
    }  # fmt: skip
    code, out, err = command(monkeypatch, capsys, *words)
    assert (code, err) == (0, "")
    (found,) = json.loads(out)["search"]
    assert [len(found["trials"]), len(found["published"]["test"]), len(found["best"]["test"])] == [2, 2, 2]
    assert found["trials"][0]["params"] == found["published"]["params"] == {"lr": 0.04, "hidden": 2}
    (cell,) = search_cells(manifest)
    for trial in found["trials"]:
        assert validate(cell.run(trial["params"]))["val"] == pytest.approx(trial["val"], abs=1e-6)
    assert all(find_record(manifest.records, run) for run in plan(manifest))
    written = page.read_bytes()
    assert b"## Search" in written
    code, out, _ = command(monkeypatch, capsys, "small", "--folder", manifest.folder, "--from-records")
    assert code == 0
    assert page.read_bytes() == written
    code, out, _ = command(monkeypatch, capsys, *words, "--dry-run")
    assert [row["missing"] for row in json.loads(out)["rows"]] == [0, 0]


def test_a_storage_for_an_experiment_without_search_gets_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("accuracy", "--folder", ROOT / "lab" / "experiments", "--storage", "sqlite://", "--dry-run")
    code, out, err = command(monkeypatch, capsys, *words)
    assert (code, out) == (2, "")
    assert "accuracy has none" in err
