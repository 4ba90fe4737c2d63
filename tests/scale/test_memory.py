"""A cap on memory: columns go to files, results stay the same, and what does not fit is one line."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch

import psgnn
from conftest import Command
from psgnn import memory
from psgnn.errors import InputError
from psgnn.graph._table import ROW_BYTES
from psgnn.memory import describe, empty_columns, keep_columns, limit_memory, parse_size, save_columns
from psgnn.models import build_model
from psgnn.tasks import LinkPrediction
from psgnn.training import fit


@pytest.fixture
def all_in_files(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """As under a cap that columns do not fit into, without one; the sizes of what went to files."""
    sizes: list[int] = []
    in_file = memory._in_file
    monkeypatch.setattr(memory, "_cap", 1)
    monkeypatch.setattr(memory, "SMALL", 0)
    monkeypatch.setattr(
        memory, "_in_file", lambda *arguments: (sizes.append(arguments[2]), in_file(*arguments))[1]
    )
    return sizes


@pytest.mark.parametrize(
    ("text", "size"), [("512M", 2**29), ("4G", 2**32), ("1.5GB", 3 * 2**29), ("2 gib", 2**31), (1000, 1000)]
)
def test_sizes(text: str | int, size: int) -> None:
    assert parse_size(text) == size


def test_a_cap_beyond_all_memory_is_none() -> None:
    limit_memory("9000000T")
    limit_memory(None)


@pytest.mark.parametrize("text", ["", "much", "-1G", "0", "4X", "G"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(InputError, match="not an amount of memory"):
        parse_size(text)


def test_sizes_are_described() -> None:
    assert (describe(3 * 2**29), describe(2**29)) == ("1.5 GiB", "512 MiB")


def test_without_a_cap_columns_are_in_memory() -> None:
    assert empty_columns((3, 2**20), np.float32).base is None
    columns = np.ones((2**21, 1))
    assert keep_columns(columns) is columns


def test_columns_in_files_are_arrays(all_in_files: list[int]) -> None:
    columns = empty_columns((5, 3), np.float32)
    assert not columns.flags.owndata
    columns[...] = np.arange(15).reshape(5, 3)
    torch.from_numpy(columns).mul_(2)
    assert columns[4, 2] == 28
    kept = keep_columns(np.arange(6, dtype=np.int16).reshape(2, 3))
    assert kept.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert kept.dtype == np.int16
    assert all_in_files == [60, 12]


def test_training_with_columns_in_files_is_the_same(all_in_files: list[int]) -> None:
    task = LinkPrediction(psgnn.load_dataset("communities", communities=4, size=8))
    there = fit(build_model("psgnn", task), task, epochs=10)
    assert max(all_in_files) >= 4 * 6 * 32 * len(there.anchors[0])  # the channels are among them
    memory._cap = None
    here = fit(build_model("psgnn", task), task, epochs=10)
    assert there.test == here.test
    assert np.array_equal(there.score(task.test.pairs), here.score(task.test.pairs))


def test_a_full_disk_is_one_line(all_in_files: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(
        InputError, match=r"cannot be kept in .* \(No space left on device\); free some space"
    ):
        empty_columns((5, 3), np.float32)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not enforce it")
def test_the_cap_holds() -> None:
    """In a process of its own: more columns than the cap can be filled, and nothing else can go beyond it."""
    script = """
import numpy as np
from psgnn.memory import empty_columns, limit_memory, used_bytes
limit_memory("1G")
columns = [empty_columns((100, 2**20), np.uint8) for _ in range(12)]
for one in columns:
    one[:, ::4096] = 7
assert used_bytes() < 2**30, used_bytes()
try:
    np.ones(2**28)
except MemoryError:
    print("held")
limit_memory(None)
np.ones(2**28)
print("free")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.split() == ["held", "free"], done.stderr


def test_a_cap_where_the_system_has_no_limits() -> None:
    """Windows has no module ``resource``: columns still go to files, and nothing fails."""
    script = """
import sys
import psutil  # which on Linux has to find it
sys.modules["resource"] = None
import numpy as np
from psgnn.memory import empty_columns, limit_memory, memory_cap, used_bytes
limit_memory("1G")
columns = empty_columns((600, 2**20), np.uint8)
assert memory_cap() == 2**30
assert columns.base is not None
assert used_bytes() > 0
limit_memory(None)
print("done")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.split() == ["done"], done.stderr


def test_room_is_asked_for_before_a_file_is_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """By the number of rows, and more for names than for integers."""
    asked: list[int] = []
    monkeypatch.setattr("psgnn.graph._table.need_room", asked.append)
    for name, frame in {
        "integers": pl.DataFrame({"source": range(99), "target": range(1, 100)}),
        "names": pl.DataFrame({"source": [f"a{i}" for i in range(99)], "target": ["b"] * 99}),
    }.items():
        frame.write_csv(tmp_path / f"{name}.csv")
        frame.write_parquet(tmp_path / f"{name}.parquet")
        psgnn.read_graph(tmp_path / f"{name}.csv")
        psgnn.read_graph(tmp_path / f"{name}.parquet")
    few, many = (99 * ROW_BYTES[integers] for integers in (True, False))
    assert 99 * 100 < few < many
    assert asked[1::2] == [few, many]
    assert all(abs(one - other) <= other / 50 for one, other in zip(asked[::2], asked[1::2], strict=True))
    monkeypatch.undo()
    memory.need_room(2**60)  # without a cap anything goes
    monkeypatch.setattr(memory, "_cap", memory.used_bytes() + 2**30)
    memory.need_room(2**20)
    with pytest.raises(MemoryError, match=r"2\.0 GiB more do not fit"):
        memory.need_room(2**31)


def test_a_cap_below_psgnn_itself(run: Command) -> None:
    code, _, err = run("train", "communities", "--memory", "100M")
    assert code == 2
    assert "a memory cap of 100 MiB is too low; psgnn alone reserves about 1.0 GiB" in err
    code, _, err = run("predict", "communities", "--top", "3", "--memory", "lots")
    assert code == 2
    assert "not an amount of memory" in err


@pytest.mark.parametrize("suffix", ["npz", "csv", "parquet"])
def test_what_does_not_fit_is_one_line(tmp_path: Path, suffix: str) -> None:
    """The whole graph is more than the cap: no column could help. (polars ends or hangs where an allocation fails.)"""
    path = tmp_path / f"edges.{suffix}"
    edges = np.random.default_rng(0).integers(0, 2_000_000, (2, 12_000_000))
    frame = pl.DataFrame({"source": edges[0], "target": edges[1]})
    if suffix == "npz":
        np.savez(path, edge_index=edges)
    elif suffix == "csv":
        frame.head(5_000_000).write_csv(path)
    else:
        frame.write_parquet(path)
    command = [sys.executable, "-m", "psgnn", "train", str(path), "--memory", "1G"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 2, done.stderr[-500:]
    assert "does not fit into --memory 1.0 GiB, even with columns in files; raise it" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("shape", [(5, 3), (5, 0)])
def test_saved_columns_are_read_back(tmp_path: Path, shape: tuple[int, int]) -> None:
    columns = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    save_columns(tmp_path / "columns.npy", columns)
    np.testing.assert_array_equal(np.load(tmp_path / "columns.npy"), columns)
    assert np.load(tmp_path / "columns.npy").shape == shape


def test_a_full_disk_refuses_columns_in_one_line(small_disk: Path) -> None:
    with pytest.raises(
        InputError, match=r"columns of 1 MiB cannot be kept in .* \(No space left on device\)"
    ):
        save_columns(small_disk / "columns.npy", np.zeros(2**18, np.float32))
