"""Things break: processes are killed at any moment, disks are full, files are cut. Nothing is lost or half-written."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import psgnn

COMMAND = ("train", "g.parquet", "--epochs", "60", "--no-refit", "--out", "run")
# What a process does at a moment: it kills itself, as if the power failed.
KILLED = """
import os, signal, sys
import psgnn.training._fit, psgnn.training._run, psgnn.training._runs, psgnn.graph._read, psgnn.positions._measure
def die(*a, **k): os.kill(os.getpid(), signal.SIGKILL)
{moment}
sys.argv = ["psgnn", *{arguments!r}]
from psgnn import cli
cli.main()
"""
SAVING = "psgnn.training._fit.CHECKPOINT_SECONDS = 0.0\n"
MOMENTS = {
    "reading": "import psgnn.graph._edges; psgnn.graph._edges.number = die",
    "distances": "import psgnn.positions._measure; psgnn.positions._measure.anchor_basis = die",
    "training": SAVING
    + "step = psgnn.training._fit._Trainer._epoch\n"
    + "psgnn.training._fit._Trainer._epoch = lambda self, epoch: die() if epoch == 33 else step(self, epoch)",
    "saving a checkpoint": SAVING
    + "write, count = psgnn.training._runs.atomic_write, []\n"
    + "import contextlib\n"
    + "@contextlib.contextmanager\n"
    + "def cut(path, **options):\n"
    + "    with write(path, **options) as temporary:\n"
    + "        yield temporary\n"
    + "        count.append(path)\n"
    + "        if len(count) == 20: die()\n"
    + "psgnn.training._runs.atomic_write = cut",
    "writing the run": "psgnn.training._runs.write_record = die",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the edge list of a small graph."""
    edges = psgnn.load_dataset("communities", communities=5, size=8)[0].edges
    pl.DataFrame({"source": edges[0], "target": edges[1]}).write_parquet(tmp_path / "g.parquet")
    return tmp_path


def call(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    )


def psgnn_in(folder: Path, *arguments: str, moment: str = "") -> subprocess.CompletedProcess[str]:
    return call(KILLED.format(moment=moment, arguments=arguments), folder)


@pytest.mark.slow
def test_a_run_survives_a_kill_at_any_moment(folder: Path) -> None:
    assert psgnn_in(folder, *COMMAND[:-1], "whole").returncode == 0
    pairs = np.stack(np.triu_indices(40, 1))
    expected = psgnn.load(folder / "whole").score(pairs)
    for moment, code in MOMENTS.items():
        out = moment.replace(" ", "-")
        arguments = (*COMMAND[:-1], out)
        assert psgnn_in(folder, *arguments, moment=code).returncode == -signal.SIGKILL, moment
        assert not (folder / out / "record.json").exists(), moment
        done = psgnn_in(folder, *arguments)
        assert done.returncode == 0, (moment, done.stderr)
        assert np.array_equal(psgnn.load(folder / out).score(pairs), expected), moment
        left = [path.name for path in (folder / out).iterdir() if path.name.startswith(".psgnn-")]
        assert left == [] or moment == "saving a checkpoint"


# Disks that are full


def test_a_full_disk_ends_training_with_one_line(folder: Path, small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(330_000))
    arguments = (*COMMAND[:-1], str(small_disk / "run"))
    done = psgnn_in(folder, *arguments, moment=SAVING)
    assert done.returncode == 2
    (line,) = [line for line in done.stderr.splitlines() if "error" in line]
    assert "No space left on device" in line
    assert not (small_disk / "run" / "record.json").exists()
    assert not list((small_disk / "run").glob(".psgnn-*"))  # nor anything else: an empty folder is gone too
    # With room again, the same command ends what it began.
    ballast.unlink()
    done = psgnn_in(folder, *arguments)
    assert done.returncode == 0, done.stderr
    assert json.loads((small_disk / "run" / "record.json").read_text())["epochs_run"] == 60


def test_a_full_disk_leaves_no_half_table(folder: Path, small_disk: Path) -> None:
    (small_disk / "ballast").write_bytes(bytes(390_000))
    for arguments in (
        ("distances", "communities", "--anchors", "64", "--out", str(small_disk / "hops.csv")),
        ("embed", "communities", "--out", str(small_disk / "vectors.parquet")),
    ):
        done = psgnn_in(folder, *arguments)
        assert done.returncode == 2, done.stdout
        assert "No space left" in done.stderr
        assert [path.name for path in small_disk.iterdir()] == ["ballast"]


# Files that are cut


@pytest.mark.parametrize("share", [0.0, 0.3, 0.7, 0.99])
def test_a_truncated_parquet_is_refused(folder: Path, share: float) -> None:
    content = (folder / "g.parquet").read_bytes()
    (folder / "g.parquet").write_bytes(content[: int(share * len(content))])
    with pytest.raises(psgnn.PsgnnError, match=r"g\.parquet (is empty|cannot be read as Parquet)"):
        psgnn.read_graph(folder / "g.parquet")


def test_a_cut_checkpoint_is_refused_and_named(folder: Path) -> None:
    moment = MOMENTS["training"]
    assert psgnn_in(folder, *COMMAND, moment=moment).returncode == -signal.SIGKILL
    state = folder / "run" / "state.safetensors"
    state.write_bytes(state.read_bytes()[:-100])
    done = psgnn_in(folder, *COMMAND)
    assert done.returncode == 2
    assert "state.safetensors is damaged" in done.stderr
    assert psgnn_in(folder, *COMMAND, "--force").returncode == 0
    assert np.isfinite(psgnn.load(folder / "run").test["auc"])


# Two at once


def test_two_processes_in_one_folder(folder: Path) -> None:
    slow = (*COMMAND, "--option", "patience=100000")
    arguments = ("train", "g.parquet", "--epochs", "100000", *slow[4:])
    told = (
        "step = psgnn.training._fit._Trainer._epoch\n"
        "def tell(self, epoch):\n"
        "    if epoch == 0: print('here', flush=True)\n"
        "    return step(self, epoch)\n"
        "psgnn.training._fit._Trainer._epoch = tell"
    )
    code = KILLED.format(moment=told, arguments=arguments)
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=folder, stdout=subprocess.PIPE, text=True
    ) as first:
        try:
            assert first.stdout is not None
            assert first.stdout.readline() == "here\n"
            second = psgnn_in(folder, *arguments)
            assert second.returncode == 2
            assert "another process is at work in run" in second.stderr
        finally:
            first.kill()
