"""The peak of memory that a record reports, in bytes on every system."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from psgnn.memory import peak_bytes

MIB = 2**20


def test_the_peak_counts_what_was_freed() -> None:
    script = (
        "from psgnn.memory import peak_bytes\n"
        "before = peak_bytes()\n"
        "block = bytearray(b'x') * (300 * 2**20)\n"
        "del block\n"
        "print(before, peak_bytes())"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    before, after = map(int, found.stdout.split())
    assert (
        10 * MIB < before < 1000 * MIB
    )  # the libraries; KiB taken for bytes would be less, and bytes for KiB more
    assert 250 * MIB < after - before < 350 * MIB


def test_the_peak_is_not_that_of_the_process_that_started_this_one() -> None:
    """Linux counts a process from its parent's peak on, if asked by getrusage."""
    script = (
        "import subprocess, sys\n"
        "block = bytearray(b'x') * (900 * 2**20)\n"
        "del block\n"
        "own = 'from psgnn.memory import peak_bytes; print(peak_bytes())'\n"
        "print(subprocess.run([sys.executable, '-c', own], capture_output=True, text=True, check=True).stdout)"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert 10 * MIB < int(found.stdout) < 800 * MIB


@pytest.mark.parametrize(("system", "reported"), [("darwin", 700 * MIB), ("freebsd14", 700 * 1024)])
def test_the_unit_of_getrusage_depends_on_the_system(
    system: str, reported: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = SimpleNamespace(ru_maxrss=reported)
    stand_in: Any = SimpleNamespace(RUSAGE_SELF=0, getrusage=lambda _: usage)
    monkeypatch.setitem(sys.modules, "resource", stand_in)
    monkeypatch.setattr(sys, "platform", system)
    assert peak_bytes() == 700 * MIB


def test_windows_knows_the_peak_of_its_working_set(monkeypatch: pytest.MonkeyPatch) -> None:
    info = SimpleNamespace(rss=300 * MIB, peak_wset=700 * MIB)
    monkeypatch.setitem(sys.modules, "resource", None)  # there is none
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(psutil, "Process", lambda: SimpleNamespace(memory_info=lambda: info))
    assert peak_bytes() == 700 * MIB
