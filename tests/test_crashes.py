"""Every command that writes, ended before each of its file operations or killed at random: its repeat is whole.

`python lab/benchmarks/crashes.py` does the same with more kills.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from psgnn_lab import crashes

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="forks and memory files are Linux's"),
]


@pytest.fixture(scope="module")
def place() -> Iterator[crashes.Place]:
    with crashes.place() as found:
        yield found


# What is killed in a run with a refit is killed in a run without too; two more take minutes, and are on record.
LEFT_OUT = ("train", "train --tensorboard", "pretrain")


@pytest.mark.parametrize("name", [name for name in crashes.COMMANDS if name not in LEFT_OUT])
def test_a_command_that_ends_at_any_moment_can_be_repeated(place: crashes.Place, name: str) -> None:
    row = place.attack(name, kills=2)
    assert row["failures"] == []
    assert row["operations"] >= 4


@pytest.mark.parametrize("name", ["train", "predict --for all"])
def test_what_a_command_replaces_is_the_old_or_the_new_one(place: crashes.Place, name: str) -> None:
    assert place.attack(name, force=True, kills=1)["failures"] == []
