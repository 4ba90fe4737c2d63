"""Several processes train one model, devices, and one process at a time in a run's folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import psgnn
import psgnn.training._fit as training
from far_device import FAR, Far, FarDevice
from psgnn.errors import InputError
from psgnn.models import MODELS, build_model
from psgnn.models._team import Team
from psgnn.scoring._search import top_links
from psgnn.tasks import LinkPrediction
from psgnn.training import fit
from psgnn.training._compare import compare
from psgnn.training._steps import pick_device

# Dropout draws its masks in each process by itself, so results agree to the last digits without it alone.
SETTINGS = (
    "--set",
    "communities=6",
    "--set",
    "size=8",
    "--epochs",
    "40",
    "--option",
    "dropout=0.0",
    "--option",
    "eval_every=10",
    "--no-refit",
)


def command(processes: int, *arguments: str) -> list[str]:
    start = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    return [sys.executable, *(start if processes > 1 else []), "-m", "psgnn", *arguments]


def run(processes: int, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        command(processes, *arguments),
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.slow
def test_two_processes_train_what_one_does(tmp_path: Path) -> None:
    records = []
    for processes in (1, 2):
        out = f"run-{processes}"
        done = run(processes, tmp_path, "train", "communities", *SETTINGS, "--out", out, "--json")
        assert done.returncode == 0, done.stderr
        records.append(json.loads(done.stdout))  # one document, whatever the number of processes
    one, two = records
    assert two["test"]["auc"] == pytest.approx(one["test"]["auc"], abs=0.01)
    for before, after in zip(one["history"], two["history"], strict=True):
        assert after["loss"] == pytest.approx(before["loss"], rel=1e-2)
    pairs = torch.triu_indices(48, 48, 1)
    scores = [psgnn.load(tmp_path / f"run-{processes}").score(pairs) for processes in (1, 2)]
    np.testing.assert_allclose(scores[1], scores[0], atol=2e-2, rtol=2e-2)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [("estimator=reinforce", "structural=true"), ("picker=sequential",)],
    ids=["reinforce", "sequential"],
)
def test_two_processes_learn_anchors_as_one_does(options: tuple[str, ...], tmp_path: Path) -> None:
    settings = ("--preset", "paper", "--anchors", "4", "--epochs", "10")
    chosen = [part for option in ("samples=3", "dropout=0.0", *options) for part in ("--option", option)]
    records = []
    for processes in (1, 2):
        done = run(processes, tmp_path, "train", "communities", *SETTINGS[:4], *settings, *chosen, "--json")
        assert done.returncode == 0, done.stderr
        records.append(json.loads(done.stdout))
    for before, after in zip(records[0]["history"], records[1]["history"], strict=True):
        assert after["loss"] == pytest.approx(before["loss"], rel=1e-3)


# A job that tells which of its processes measured channels, and how every one has them.
TOLD = """
import json, os, sys
from pathlib import Path
import numpy as np
import psgnn.models._team
from psgnn.positions import _measure as positions
psgnn.models._team.SMALL = 0
told = {"measured": 0, "mapped": set()}
measure, seen = positions.measure_channels, positions._measure
def measure_channels(view, nodes, parts, *more):
    told["measured"] += 1
    if os.environ.get("PSGNN_TEST_FAIL"):
        raise MemoryError("no room")
    return measure(view, nodes, parts, *more)
def measured(view, nodes, parts):
    found = seen(view, nodes, parts)
    told["mapped"].add(isinstance(found.channels, np.memmap))
    return found
positions.measure_channels, positions._measure = measure_channels, measured
sys.argv = ["psgnn", *sys.argv[1:]]
from psgnn import cli
try:
    cli.main()
finally:
    told["mapped"] = sorted(told["mapped"])
    Path(f"told-{os.environ['RANK']}.json").write_text(json.dumps(told))
"""


def told_job(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    (folder / "job.py").write_text(TOLD)
    (folder / "tmp").mkdir(exist_ok=True)
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "job.py"]
    return subprocess.run(
        [sys.executable, *launch, "train", "communities", *SETTINGS, "--out", "run"],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1", "TMPDIR": str(folder / "tmp"), **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.slow
def test_one_process_of_a_machine_measures_and_all_map_its_columns(tmp_path: Path) -> None:
    done = told_job(tmp_path)
    assert done.returncode == 0, done.stderr
    first, second = (json.loads((tmp_path / f"told-{rank}.json").read_text()) for rank in (0, 1))
    assert first["measured"] == 11  # the visible graph and ten folds
    assert second["measured"] == 0
    assert first["mapped"] == second["mapped"] == [True]
    assert not list((tmp_path / "tmp").glob("psgnn-columns-*"))


@pytest.mark.slow
def test_columns_that_cannot_be_measured_end_all_processes(tmp_path: Path) -> None:
    done = told_job(tmp_path, PSGNN_TEST_FAIL="1")
    assert done.returncode != 0
    assert "columns could not be measured on machine 0 of the job: no room" in done.stderr
    assert not list((tmp_path / "tmp").glob("psgnn-columns-*"))


@pytest.mark.slow
def test_a_full_disk_while_columns_are_shared_ends_all_processes_with_a_reason(
    tmp_path: Path, small_disk: Path
) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(380_000))
    done = told_job(tmp_path, TMPDIR=str(small_disk))
    assert done.returncode != 0
    lines = [line for line in done.stderr.splitlines() if "psgnn: error" in line]
    assert any("No space left on device" in line and "TMPDIR" in line for line in lines), done.stderr
    assert "requested and" not in done.stderr  # which is how NumPy says it
    assert not (tmp_path / "run" / "record.json").exists()
    assert not list(small_disk.glob("psgnn-columns-*"))
    # With room again, the same command ends what it began.
    ballast.unlink()
    done = told_job(tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run" / "record.json").exists()


# A job whose second process kills itself in a step, after the first has written a checkpoint.
KILLED = """
import os, signal, sys
import psgnn.training._fit
psgnn.training._fit.CHECKPOINT_SECONDS = 0.0
step = psgnn.training._fit._Trainer._epoch
def epoch(self, number):
    if number == 25 and self.team.rank == 1 and os.environ.get("PSGNN_TEST_KILL"):
        os.kill(os.getpid(), signal.SIGKILL)
    return step(self, number)
psgnn.training._fit._Trainer._epoch = epoch
sys.argv = ["psgnn", *sys.argv[1:]]
from psgnn import cli
cli.main()
"""


@pytest.mark.slow
def test_a_killed_worker_ends_the_job_and_the_run_resumes(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(KILLED)
    launch = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        "2",
        "job.py",
    ]

    def job(out: str, **environment: str) -> subprocess.CompletedProcess[str]:
        arguments = ("train", "communities", *SETTINGS, "--out", out)
        settings = {**os.environ, "OMP_NUM_THREADS": "1", **environment}
        return subprocess.run(
            [*launch, *arguments], cwd=tmp_path, env=settings, capture_output=True, text=True, timeout=300
        )

    assert job("whole").returncode == 0
    broken = job("run", PSGNN_TEST_KILL="1")
    assert broken.returncode != 0
    assert "Signal 9" in broken.stderr or "is gone" in broken.stderr
    assert (tmp_path / "run" / "state.safetensors").exists()
    assert not (tmp_path / "run" / "record.json").exists()
    resumed = job("run")
    assert resumed.returncode == 0, resumed.stderr
    pairs = torch.triu_indices(48, 48, 1)
    whole, run = (psgnn.load(tmp_path / name).score(pairs) for name in ("whole", "run"))
    np.testing.assert_allclose(run, whole, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(("count", "size"), [(10, 3), (7, 7), (2, 4), (1, 1)])
def test_parts_are_a_partition(count: int, size: int) -> None:
    parts = [range(count)[Team(rank, size).part(count)] for rank in range(size)]
    assert [i for part in parts for i in part] == list(range(count))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


@pytest.mark.parametrize(("count", "size"), [(10, 3), (7, 7), (2, 4), (1, 3)])
def test_parts_of_a_mean_add_up_to_it(count: int, size: int) -> None:
    values, total = torch.arange(count) + 1.0, 0.0
    for rank in range(size):
        own, weight = Team(rank, size).part_of_mean(count)
        assert values[own].numel() > 0  # the mean of nothing is not a number
        total += weight * float(values[own].mean()) / size
    assert total == pytest.approx(float(values.mean()))


# One process at a time


def test_a_folder_is_trained_in_by_one_process(tmp_path: Path) -> None:
    from psgnn.training._folder import alone_in

    task = LinkPrediction(psgnn.load_dataset("communities", communities=3, size=6))
    with alone_in(tmp_path / "run"), pytest.raises(InputError, match="another process is at work in"):
        fit(build_model("gcn", task), task, epochs=2, out=tmp_path / "run")
    fit(build_model("gcn", task), task, epochs=2, out=tmp_path / "run")
    assert not list((tmp_path / "run").glob(".*"))


def test_the_lock_of_a_killed_process_blocks_nobody(tmp_path: Path) -> None:
    script = (
        "import os, sys\nfrom pathlib import Path\nfrom psgnn.training._folder import alone_in\n"
        "with alone_in(Path(sys.argv[1])): os._exit(9)"
    )
    folder = tmp_path / "run"
    task = LinkPrediction(psgnn.load_dataset("communities", communities=3, size=6))
    for force in (False, True):
        assert subprocess.run([sys.executable, "-c", script, str(folder)]).returncode == 9
        fit(build_model("gcn", task), task, epochs=2, out=folder, force=force)
        assert not list(folder.glob(".*"))


def test_a_lock_is_held_by_one_process_at_a_time(tmp_path: Path) -> None:
    """Four processes add to one number; removing the lock's file must let no two in at once."""
    script = """
import sys
from dataclasses import replace
from pathlib import Path
from psgnn.paths import locked
folder = Path(sys.argv[1])
for _ in range(200):
    with locked(folder):
        count = folder / "count"
        count.write_text(str(int(count.read_text()) + 1))
"""
    (tmp_path / "count").write_text("0")
    workers = [subprocess.Popen([sys.executable, "-c", script, str(tmp_path)]) for _ in range(4)]
    assert [worker.wait() for worker in workers] == [0] * 4
    assert (tmp_path / "count").read_text() == "800"
    assert [path.name for path in tmp_path.iterdir()] == ["count"]


# Devices


def test_devices_that_are_not_there() -> None:
    assert pick_device("cpu").type == "cpu"
    with pytest.raises(InputError, match="did you mean 'cuda'"):
        pick_device("cuda0")
    if not torch.cuda.is_available():
        with pytest.raises(InputError, match="no cuda device here"):
            pick_device("cuda")


def test_auto_takes_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert pick_device("auto") == torch.device("cuda", 1)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert pick_device("auto") == torch.device("mps")


def test_fit_takes_a_gpu_where_there_is_one_and_comparisons_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def pick(name: str) -> torch.device:
        asked.append(name)
        return torch.device("cpu")

    monkeypatch.setattr(training, "pick_device", pick)
    graphs = psgnn.load_dataset("communities", communities=3, size=6)
    task = LinkPrediction(graphs)
    fit(build_model("gcn", task), task, epochs=1)
    compare(graphs, "link", models=["gcn"], rules=[], seeds=1, epochs=1)
    assert asked == ["auto", "cpu"]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("preset", ["best", "paper"])
def test_nothing_stays_behind_on_the_cpu(name: str, preset: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A whole training on a device that is not there: an operation on tensors of two devices is an error."""
    (graph,) = psgnn.load_dataset("communities", communities=3, size=6)
    # Of constant features alone some gradients are nothing but rounding.
    graph = replace(graph, x=torch.rand(18, 4, generator=torch.Generator().manual_seed(0)).numpy())
    task = LinkPrediction(graph)
    near = fit(build_model(name, task, preset, hidden=8), task, epochs=6)
    monkeypatch.setattr(training, "pick_device", lambda _: FAR)
    torch.__future__.set_swap_module_params_on_conversion(True)
    try:
        with FarDevice():
            model = build_model(name, task, preset, hidden=8)
            far = fit(model, task, epochs=6, device="cuda")
            scores, embeddings = far.score(task.test.pairs), far.embed()
            found = top_links(far, 5)
            assert far.on([graph]).embed().shape == embeddings.shape
    finally:
        torch.__future__.set_swap_module_params_on_conversion(False)
    assert all(isinstance(parameter, Far) for parameter in model.parameters())
    assert isinstance(far.view.x, Far)
    assert far.history[-1]["loss"] == pytest.approx(near.history[-1]["loss"], rel=0.02)
    # Elsewhere sums are made in another order. Before a batch norm, the gradient of a bias is nothing but rounding, of
    # which Adam makes whole steps; running means, which count in the end, take part of them in.
    np.testing.assert_allclose(scores, near.score(task.test.pairs), atol=0.3, rtol=0.1)
    np.testing.assert_allclose(embeddings, near.embed(), atol=0.3, rtol=0.1)
    assert [type(part) for part in found] == [np.ndarray] * 2


@pytest.mark.parametrize(
    ("name", "options"), [("psgnn", {}), ("psgnn", {"decoder": "distance"}), ("gcn", {})]
)
def test_what_was_interrupted_goes_on_elsewhere_than_on_the_cpu(
    name: str, options: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (graph,) = psgnn.load_dataset("communities", communities=3, size=6)
    task = LinkPrediction(graph)
    monkeypatch.setattr(training, "pick_device", lambda _: FAR)
    torch.__future__.set_swap_module_params_on_conversion(True)
    epoch = training._Trainer._epoch

    def interrupted(self: training._Trainer, number: int) -> float:
        if number == 30:
            raise KeyboardInterrupt
        return epoch(self, number)

    def train() -> psgnn.Run:
        model = build_model(name, task, hidden=8, **options)
        return fit(model, task, epochs=40, device="cuda", out=tmp_path / "run")

    try:
        with FarDevice():
            with monkeypatch.context() as patch:
                patch.setattr(training._Trainer, "_epoch", interrupted)
                with pytest.raises(KeyboardInterrupt):
                    train()
            result = train()
            assert len(top_links(result, 5)[1]) == 5
    finally:
        torch.__future__.set_swap_module_params_on_conversion(False)
    assert result.record["epochs_run"] == 40


def test_what_stayed_behind_is_found() -> None:
    with FarDevice():
        far = torch.ones(3).to(FAR)
        assert (far + far).cpu().tolist() == [2, 2, 2]
        with pytest.raises(AssertionError, match="stayed on the CPU"):
            far + torch.ones(3)
