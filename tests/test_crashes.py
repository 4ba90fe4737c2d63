"""Every command that writes, ended before each of its file operations or killed at random: its repeat is whole."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from crash_server import ENDED

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="forks and memory files are Linux's"),
]
Ask = Callable[..., dict[str, Any]]
TRAIN = ("train", "../g.csv", "--model", "gcn", "--epochs", "3", "--option", "eval_every=1", "--quiet")
COMMANDS: dict[str, tuple[str, ...]] = {
    "train": (*TRAIN, "--out", "out"),
    "train again": (*TRAIN, "--out", "out", "--force"),
    "predict": ("predict", "../g.csv", "--top", "5", "--out", "out.csv"),
    "predict again": ("predict", "../g.csv", "--top", "5", "--out", "out.csv", "--force"),
    "embed": ("embed", "../run", "--out", "out.npz"),
    "distances": ("distances", "../g.csv", "--out", "out.parquet"),
    "anchors": ("anchors", "../g.csv", "--out", "out.tsv"),
    "report": ("report", "../run", "--out", "out.html"),
}
PERISHABLE = ("seconds", "peak_memory_mb")


@pytest.fixture(scope="module")
def ask() -> Iterator[Ask]:
    server = Path(__file__).with_name("crash_server.py")
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        [sys.executable, str(server)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None

        def answer(folder: Path, arguments: tuple[str, ...], **options: Any) -> dict[str, Any]:
            asked = {"folder": str(folder), "arguments": arguments, **options}
            process.stdin.write(json.dumps(asked) + "\n")  # type: ignore[union-attr]
            process.stdin.flush()  # type: ignore[union-attr]
            return json.loads(process.stdout.readline())  # type: ignore[union-attr, no-any-return]

        yield answer
        process.kill()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, ask: Ask) -> Path:
    """A folder with a graph, and a run on it."""
    place = tmp_path_factory.mktemp("crashes").resolve()
    edges = [(6 * k + i, 6 * k + j) for k in range(5) for i in range(6) for j in range(i)]
    edges += [(6 * k, (6 * k + 6) % 30) for k in range(5)]
    (place / "g.csv").write_text("source,target\n" + "".join(f"{u},{v}\n" for u, v in edges))
    (place / "first").mkdir()
    done = ask(place / "first", (*TRAIN, "--out", "../run"))
    assert done["code"] == 0, done["text"]
    return place


def _content(folder: Path) -> dict[str, Any]:
    """All files below a folder, without what differs between two equal runs."""
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_dir():
            continue
        content: Any = path.read_bytes()
        if path.name == "record.json":
            content = {k: v for k, v in json.loads(content).items() if k not in PERISHABLE}
        found[str(path.relative_to(folder))] = content
    return found


def _start(place: Path, name: str) -> Path:
    """A folder to work in, with what the command is to replace."""
    folder = place / "work"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    if name == "train again":
        shutil.copytree(place / "run", folder / "out")
    if name == "predict again":
        (folder / "out.csv").write_text("old")
    return folder


def _check(ask: Ask, folder: Path, command: tuple[str, ...], whole: dict[str, Any], when: str) -> None:
    """The repeat ends as an uninterrupted command, or says that the output is there, and it is whole."""
    again = ask(folder, command)
    if again["code"] != 0:
        assert "exists; pass --force" in again["text"] or "holds a finished run" in again["text"], (
            when,
            again,
        )
        assert "--force" not in command
    assert _content(folder) == whole, when


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_that_ends_at_any_file_operation_can_be_repeated(ask: Ask, place: Path, name: str) -> None:
    command = COMMANDS[name]
    folder = _start(place, name)
    done = ask(folder, command)
    assert done["code"] == 0, done["text"]
    whole = _content(folder)
    assert done["operations"] >= 4
    for stop in range(1, done["operations"] + 1):
        folder = _start(place, name)
        assert ask(folder, command, stop=stop)["code"] == ENDED, stop
        _check(ask, folder, command, whole, f"operation {stop} of {done['operations']}")


@pytest.mark.parametrize("name", ["train", "predict"])
def test_a_command_that_is_killed_at_any_time_can_be_repeated(ask: Ask, place: Path, name: str) -> None:
    rng = random.Random(0)
    command = COMMANDS[name]
    folder = _start(place, name)
    assert ask(folder, command)["code"] == 0
    whole = _content(folder)
    for _ in range(8):
        seconds = rng.uniform(0.0, 0.8)
        folder = _start(place, name)
        ask(folder, command, seconds=seconds)
        _check(ask, folder, command, whole, f"{seconds:.3f} seconds")
