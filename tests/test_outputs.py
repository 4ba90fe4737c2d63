"""Outputs replace only what psgnn wrote or --force allows: no links are followed, no race is lost, no litter stays."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from conftest import Command
from psgnn.errors import InputError
from psgnn.graph._exports import write_table
from psgnn.paths import atomic_write

TRAIN = (
    "train",
    "communities",
    "--set",
    "communities=4",
    "--set",
    "size=8",
    "--epochs",
    "5",
    "--model",
    "gcn",
)
PREDICT = ("predict", "communities", "--set", "communities=4", "--set", "size=8", "--top", "3")


@pytest.mark.parametrize("name", ["config.toml", "record.json", "weights.safetensors", "graph.safetensors",
                                  "heldout.safetensors", ".lock-psgnn"])  # fmt: skip
def test_a_link_in_a_run_folder_is_replaced_and_not_followed(run: Command, tmp_path: Path, name: str) -> None:
    valuable = tmp_path / "valuable"
    valuable.write_text("mine")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / name).symlink_to("../valuable")
    code, _, err = run(*TRAIN, "--out", "run")
    assert valuable.read_text() == "mine"
    if name == "record.json":  # it might be a finished run
        assert code == 2
        assert "holds no run" in err
    else:
        assert code == 0, err
        assert not any(path.is_symlink() for path in (tmp_path / "run").iterdir())


def test_force_removes_links_and_not_what_they_point_to(run: Command, tmp_path: Path) -> None:
    assert run(*TRAIN, "--out", "run")[0] == 0
    weights = tmp_path / "run" / "weights.safetensors"
    weights.rename(tmp_path / "valuable")
    weights.symlink_to("../valuable")
    before = (tmp_path / "valuable").read_bytes()
    assert run(*TRAIN, "--seed", "1", "--out", "run", "--force")[0] == 0
    assert (tmp_path / "valuable").read_bytes() == before
    assert not weights.is_symlink()


@pytest.mark.parametrize("dangling", [True, False])
def test_a_link_at_out_is_replaced_and_not_followed(run: Command, tmp_path: Path, dangling: bool) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    target = elsewhere / "f.csv"
    if not dangling:
        target.write_text("mine")
    out = tmp_path / "p.csv"
    out.symlink_to(target)
    code, _, err = run(*PREDICT, "--out", out)
    assert code == 2
    assert f"{out} is a symbolic link; pass --force" in err
    assert run(*PREDICT, "--out", out, "--force")[0] == 0
    assert not out.is_symlink()
    assert out.read_text().startswith("source,target")
    if dangling:
        assert not target.exists()
    else:
        assert target.read_text() == "mine"


def test_a_run_goes_into_no_link_that_leads_nowhere(run: Command, tmp_path: Path) -> None:
    (tmp_path / "out").symlink_to(tmp_path / "nowhere")
    code, _, err = run("train", "communities", "--epochs", "1", "--out", tmp_path / "out", "--force")
    assert (code, err.count("\n")) == (2, 1)
    assert "out is a symbolic link that leads nowhere; remove it or choose another --out" in err
    assert not (tmp_path / "nowhere").exists()


def test_of_many_writers_without_force_one_wins(tmp_path: Path) -> None:
    for attempt in range(30):
        path = tmp_path / f"{attempt}.csv"
        start, done, refused = threading.Barrier(8), [], []

        def write(
            number: int, path: Path = path, start: threading.Barrier = start, done: list[int] = done,
            refused: list[str] = refused,
        ) -> None:  # fmt: skip
            start.wait()
            try:
                write_table(path, {"writer": [number]})
                done.append(number)
            except InputError as error:
                refused.append(str(error))

        threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(done) == 1
        assert path.read_text() == f"writer\n{done[0]}\n"
        assert len(refused) == 7
        assert all("exists; pass --force" in line for line in refused)
    assert not list(tmp_path.glob(".psgnn-*"))


def test_a_file_system_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    write_table(tmp_path / "t.csv", {"a": [1]})
    with pytest.raises(InputError, match="exists; pass --force"):
        write_table(tmp_path / "t.csv", {"a": [2]})
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"t.csv": "a\n1\n"}


def test_what_a_killed_process_left_is_removed_and_what_is_being_written_stays(tmp_path: Path) -> None:
    left = tmp_path / ".psgnn-0123456789abcdef.csv"
    left.write_text("half")
    parts = tmp_path / ".psgnn-0123456789abcdef.parts"
    parts.mkdir()
    (parts / "00000000.parquet").write_text("a part")
    mine = tmp_path / ".psgnn-notes"
    mine.write_text("of a user")
    with atomic_write(tmp_path / "slow.csv") as slow:
        slow.write_text("slow")
        slow.with_suffix(".parts").mkdir()
        write_table(tmp_path / "quick.csv", {"a": [1]})
        assert slow.exists()
        slow.with_suffix(".parts").rmdir()
    assert sorted(path.name for path in tmp_path.iterdir()) == [".psgnn-notes", "quick.csv", "slow.csv"]
    left.write_text("half")
    with pytest.raises(InputError, match="exists"):
        write_table(tmp_path / "quick.csv", {"a": [2]})
    assert not left.exists()


@pytest.mark.parametrize("file", ["essay.txt", "notes.safetensors/deep.txt"])
def test_pretraining_leaves_the_lessons_of_a_user(run: Command, tmp_path: Path, file: str) -> None:
    mine = tmp_path / "out" / "lessons" / file
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    code, _, err = run("pretrain", "--out", "out", "--graphs", "10", "--steps", "1", "--quiet")
    assert code == 2
    assert "out is not empty and holds no run of psgnn" in err
    assert mine.read_text() == "mine"
