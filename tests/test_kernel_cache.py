"""Compiled kernels are kept in a folder that can be written, wherever the package is."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "psgnn"
FOLDERS = ("NUMBA_CACHE_DIR", "PSGNN_CACHE", "XDG_CACHE_HOME", "TMPDIR")
MAIN = "from psgnn.cli import main; main()"
WITHOUT_TEMPORARY = "import sys, tempfile; tempfile.tempdir = sys.argv.pop(1); "


class Container:
    """A machine where the package, the home and the working folder cannot be written."""

    def __init__(self, root: Path) -> None:
        self.root, self.home, self.work = root, root / "home", root / "work"
        self.site, self.temporary = root / "site", root / "tmp"
        skipped = shutil.ignore_patterns("__pycache__", "weights")
        shutil.copytree(SOURCE, self.site / "psgnn", ignore=skipped)
        for folder in (self.home, self.work, self.temporary):
            folder.mkdir()
        (self.work / "g.csv").write_text("source,target\na,b\nb,c\nc,d\nd,a\nd,e\n")
        self.read_only = [self.home, self.work, self.site]
        self.read_only += [path for path in self.site.rglob("*") if path.is_dir()]
        for folder in self.read_only:
            folder.chmod(0o555)

    def anchors(
        self, *options: str, code: str = MAIN, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Run ``psgnn anchors``; as root, without the right to write where permissions forbid it."""
        kept = {name: value for name, value in os.environ.items() if name not in FOLDERS}
        kept["PYTHONWARNINGS"] = "ignore"  # of other packages, on import
        paths = {"PYTHONPATH": self.site, "HOME": self.home, "TMPDIR": self.temporary}
        drop = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.getuid() == 0 else []
        arguments = [*options[:1], "anchors", "g.csv"] if code != MAIN else ["anchors", "g.csv", *options]
        return subprocess.run(
            [*drop, sys.executable, "-c", code, *arguments],
            cwd=self.work,
            env=kept | {name: str(path) for name, path in paths.items()} | environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def kernels(self) -> set[Path]:
        """The folders, below the root, that hold compiled kernels."""
        return {path.parent.parent.relative_to(self.root) for path in self.root.rglob("*.nbi")}


@pytest.fixture
def container(tmp_path: Path) -> Iterator[Container]:
    if sys.platform == "win32" or (os.getuid() == 0 and shutil.which("setpriv") is None):
        pytest.skip("permissions do not bind this user")
    made = Container(tmp_path)
    yield made
    for folder in made.read_only:
        folder.chmod(0o755)


def test_a_read_only_package_keeps_kernels_in_the_temporary_folder(container: Container) -> None:
    done = container.anchors()
    assert done.returncode == 0, done.stderr
    (kept,) = container.kernels()
    assert kept.parent == Path("tmp")
    assert (container.root / kept).stat().st_mode & 0o077 == 0  # compiled code of others is never loaded
    assert done.stderr.count("psgnn: compiling kernels, once") == 1
    before = {path: path.stat().st_mtime_ns for path in container.root.rglob("*.nb?")}
    warm = container.anchors()
    assert warm.returncode == 0
    assert "compiling" not in warm.stderr
    assert {path: path.stat().st_mtime_ns for path in container.root.rglob("*.nb?")} == before


def test_a_read_only_package_keeps_kernels_in_the_cache_of_the_user(container: Container) -> None:
    cache = container.root / "cache"
    done = container.anchors("--quiet", XDG_CACHE_HOME=str(cache))
    assert (done.returncode, done.stderr) == (0, "")
    assert container.kernels() == {Path("cache/psgnn/kernels")}


def test_a_folder_that_the_user_chose_comes_first(container: Container) -> None:
    mine = str(container.root / "mine")
    done = container.anchors("--json", NUMBA_CACHE_DIR=mine, XDG_CACHE_HOME=str(container.root))
    assert (done.returncode, done.stderr) == (0, "")
    assert container.kernels() == {Path("mine")}


def test_a_chosen_folder_that_cannot_be_written_is_passed_over(container: Container) -> None:
    done = container.anchors(
        NUMBA_CACHE_DIR=str(container.home / "mine"), XDG_CACHE_HOME=str(container.root / "cache")
    )
    assert done.returncode == 0, done.stderr
    assert container.kernels() == {Path("cache/psgnn/kernels")}


def test_a_temporary_folder_that_others_may_write_is_not_used(container: Container) -> None:
    planted = container.temporary / f"psgnn-kernels-{os.getuid()}"
    planted.mkdir()
    planted.chmod(0o777)
    done = container.anchors()
    assert done.returncode == 0, done.stderr
    assert container.kernels() == set()


def test_an_empty_cache_variable_names_no_folder(container: Container) -> None:
    container.work.chmod(0o755)
    done = container.anchors(XDG_CACHE_HOME="", NUMBA_CACHE_DIR="")
    assert done.returncode == 0, done.stderr
    assert {path.name for path in container.work.iterdir()} == {"g.csv"}


def test_without_any_folder_kernels_are_compiled_and_not_kept(container: Container) -> None:
    done = container.anchors(str(container.home), code=WITHOUT_TEMPORARY + MAIN)
    assert done.returncode == 0, done.stderr
    assert "anchors: " in done.stdout
    (note,) = [line for line in done.stderr.splitlines() if "compiling" in line]
    assert "once" not in note
    assert "NUMBA_CACHE_DIR" in note
    assert container.kernels() == set()


def test_a_package_that_can_be_written_keeps_kernels_beside_its_source(container: Container) -> None:
    for folder in container.read_only:
        folder.chmod(0o755)
    (container.work / "g.csv").write_text("source,target\n1,2\n2,\n")
    done = container.anchors()
    assert done.returncode == 2
    note, *progress, error = done.stderr.splitlines()  # the note does not wait for the command to succeed
    assert note.startswith("psgnn: compiling kernels")
    assert error.startswith("psgnn: error: ")
    assert all(re.fullmatch(r"psgnn: compiled \d+ kernels \.\.\.", line) for line in progress)
    assert {path.parent.name for path in container.root.rglob("*.nbi")} == {"__pycache__"}
