"""Commands that write, ended before each of their file operations or killed at random: the repeat must be whole.

A command runs in a fork of a process that has imported everything (`psgnn_lab.crash_server`). Its repeat has to end as
an uninterrupted command does, with the same files, and with nothing left beside them or in the folder for temporary
files.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from psgnn.paths import atomic_write
from psgnn_lab.crash_server import ENDED

TRAIN = ("train", "../g.csv", "--model", "gcn", "--epochs", "3", "--option", "eval_every=1", "--quiet")
PRETRAIN = (
    "pretrain",
    "--task",
    "pair",
    "--without",
    "blocks,meetings,towns",
    "--graphs",
    "10",
    "--steps",
    "3",
)
COMMANDS: dict[str, tuple[str, ...]] = {
    "train": (*TRAIN, "--out", "out", "--no-refit"),
    "train --refit": (*TRAIN, "--out", "out", "--refit"),
    "train --tensorboard": (*TRAIN, "--out", "out", "--no-refit", "--tensorboard", "out-events"),
    "pretrain": (*PRETRAIN, "--quiet", "--out", "out"),
    "predict": ("predict", "../g.csv", "--top", "5", "--out", "out.csv"),
    "predict --for all": ("predict", "../g.csv", "--for", "all", "--top", "1", "--out", "out.parquet"),
    "embed": ("embed", "../run", "--out", "out.npz"),
    "distances": ("distances", "../g.parquet", "--out", "out.parquet"),
    "anchors": ("anchors", "../g.csv", "--out", "out.tsv", "--plot", "out.png"),
    "compare": ("compare", "../g.csv", "--models", "none", "--seeds", "1", "--out", "out.csv"),
    "report": ("report", "../run", "--out", "out.html"),
}
SPARK = (
    "--engine", "spark", "--master", "local[1]", "--spark", "spark.sql.shuffle.partitions=2",
    "--spark", "spark.ui.enabled=false", "--spark", "spark.driver.host=127.0.0.1",
)  # fmt: skip
BY_SPARK: dict[str, tuple[str, ...]] = {
    "distances --engine spark": (
        "distances", "../g.parquet", *SPARK, "--method", "degree", "--anchors", "3",
        "--out", "out",
    ),
    "embed --engine spark": ("embed", "../g.parquet", *SPARK, "--work", "out.work", "--out", "out"),
    "predict --engine spark": (
        "predict", "../g.parquet", *SPARK, "--work", "out.work", "--top", "5", "--out", "out.csv",
    ),
    "predict --engine spark --for all": (
        "predict", "../g.parquet", *SPARK, "--work", "out.work", "--for", "all", "--top", "1", "--out", "out",
    ),
}  # fmt: skip
AGAIN = ", again"  # with --force, over what is there
OLD = "what was there"
WITHOUT_FORCE = ("pretrain",)  # commands that replace nothing
THERE = ("pass --force", "holds a finished run", "has the weights")
PERISHABLE = ("seconds", "peak_memory_mb")  # of a record, and of the table of compare


class Forks:
    """Runs commands in forks of one process.

    Args:
        scratch: Where commands keep temporary files.
    """

    def __init__(self, scratch: Path) -> None:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "TMPDIR": str(scratch)}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "psgnn_lab.crash_server"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
        )  # fmt: skip

    def run(self, folder: Path, arguments: tuple[str, ...], **options: Any) -> dict[str, Any]:
        """Run a command in a folder; see `psgnn_lab.crash_server` for the options and the answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        asked = {"folder": str(folder), "arguments": arguments, **options}
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()


class Place:
    """A folder with a graph, a run on it, and commands that work beside them."""

    def __init__(self, root: Path) -> None:
        import polars as pl

        self.root, self.work, self.scratch = root, root / "work", root / "scratch"
        self.scratch.mkdir()
        self.forks = Forks(self.scratch)
        edges = [(6 * k + i, 6 * k + j) for k in range(5) for i in range(6) for j in range(i)]
        edges += [(6 * k, (6 * k + 6) % 30) for k in range(5)]
        table = pl.DataFrame(edges, schema=["source", "target"], orient="row")
        table.write_csv(root / "g.csv")
        table.write_parquet(root / "g.parquet")
        self._fresh()
        done = self.forks.run(self.work, (*TRAIN, "--out", "../run"))
        if done["code"]:
            raise RuntimeError(done["text"])

    def _fresh(self, command: tuple[str, ...] = (), force: bool = False) -> None:
        """An empty folder to work in, or one with what the command is to replace."""
        shutil.rmtree(self.work, ignore_errors=True)
        self.work.mkdir()
        if not force:
            return
        for name in [name for name in command if name.startswith("out") and name != "out-events"]:
            if command[0] == "train":
                shutil.copytree(self.root / "run", self.work / name)
            else:
                (self.work / name).write_text(OLD)

    def _content(self) -> dict[str, Any]:
        """All files, temporary ones too, without what differs between two equal commands."""
        found: dict[str, Any] = {}
        for folder in (self.work, self.scratch):
            for path in sorted(folder.rglob("*")):
                if not (path.parent / "_SUCCESS").exists():  # files of a table have names of chance
                    found[str(path.relative_to(self.root))] = _stable(path)
        return found

    def attack(self, name: str, *, force: bool = False, kills: int = 0, seed: int = 0) -> dict[str, Any]:
        """End a command before each of its file operations, then kill it at random times.

        Returns:
            A row: ``command``, ``operations`` and ``kills``, and ``failures`` with a line for each repeat that is not
            whole.
        """
        command = (*COMMANDS[name], *(["--force"] if force else []))
        self._fresh(command, force)
        begun = time.perf_counter()
        done = self.forks.run(self.work, command)
        seconds = time.perf_counter() - begun
        if done["code"]:
            raise RuntimeError(done["text"])
        whole, operations, failures = self._content(), done["operations"], []
        for stop in range(1, operations + 1):
            self._fresh(command, force)
            if self.forks.run(self.work, command, stop=stop)["code"] != ENDED:
                operations = stop - 1  # the first time there was more to do, such as compiling
                break
            failures += self._repeat(command, whole, f"operation {stop} of {operations}")
        rng = random.Random(seed)
        for _ in range(kills):
            self._fresh(command, force)
            wait = rng.uniform(0, 1.1 * seconds)
            self.forks.run(self.work, command, seconds=wait)
            failures += self._repeat(command, whole, f"{wait:.3f} of {seconds:.3f} seconds")
        title = name + AGAIN if force else name
        return {"command": title, "operations": operations, "kills": kills, "failures": failures}

    def attack_by_spark(self, name: str) -> dict[str, Any]:
        """Begin a command on Spark again and again, and end it before each of its file operations once.

        What is done stays done, so that every beginning comes further. Two operations are one if they do the same to
        the same path. In the end, the files are those of a command that was never interrupted.
        """
        command, passed = BY_SPARK[name], list[str]()
        self._fresh()
        done = self.forks.run(self.work, command)
        if done["code"]:
            raise RuntimeError(done["text"])
        whole = self._content()
        self._fresh()
        while (done := self.forks.run(self.work, command, passed=passed))["code"] == ENDED:
            passed.append(done["last"])
            sys.stderr.write(f"{name}: ended before {done['last']}\n")
        there = any(words in done["text"] for words in THERE)
        failures = [f"after {passed[-1]}: {done['text'].strip()}"] if done["code"] and not there else []
        found = self._content()
        wrong = [path for path in {**whole, **found} if whole.get(path, 0) != found.get(path, 0)]
        failures += [f"in the end: {', '.join(wrong)}"] if wrong else []
        return {"command": name, "operations": len(passed), "kills": 0, "failures": failures}

    def _repeat(self, command: tuple[str, ...], whole: dict[str, Any], when: str) -> list[str]:
        """The repeat ends as an uninterrupted command, or says that the output is there; then it is whole."""
        again = self.forks.run(self.work, command)
        there = any(words in again["text"] for words in THERE)
        if again["code"] and (not there or "--force" in command):
            return [f"{when}: {again['text'].strip()}"]
        if there and command[0] == "anchors":  # two outputs, of which one is there: both, with --force
            again = self.forks.run(self.work, (*command, "--force"))
        found = self._content()
        wrong = [path for path in {**whole, **found} if whole.get(path, 0) != found.get(path, 0)]
        return [f"{when}: {', '.join(wrong)}"] if wrong else []


def _stable(path: Path) -> Any:
    if path.is_dir():
        import polars as pl

        table = pl.read_parquet(path / "*.parquet") if (path / "_SUCCESS").exists() else pl.DataFrame()
        return sorted(map(repr, table.rows()))
    content = path.read_bytes()
    if "tfevents" in path.name:  # named by what it holds, beside the times when it was written
        return len(content)
    if path.name == "record.json":
        return {key: value for key, value in json.loads(content).items() if key not in PERISHABLE}
    if path.suffix == ".csv" and b",seconds" in content.partition(b"\n")[0]:
        header, *rows = (line.split(b",") for line in content.splitlines())
        return [
            [cell for key, cell in zip(header, row, strict=True) if key.decode() not in PERISHABLE]
            for row in rows
        ]
    return content


@contextmanager
def place() -> Iterator[Place]:
    """A place in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="psgnn-crashes-") as root:
        found = Place(Path(root).resolve())
        try:
            yield found
        finally:
            found.forks.close()


def _with(rows: list[dict[str, Any]], row: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows with this one in place of an older one."""
    sys.stderr.write(json.dumps(row) + "\n")
    return [each for each in rows if each["command"] != row["command"]] + [row]


def main() -> None:
    """Attack every command, and record what became of the repeats."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=100, help="per command, at random times")
    parser.add_argument(
        "--command", action="append", choices=(*COMMANDS, *BY_SPARK), help="one of them; all by default"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="write the record here")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    if (
        options.json is not None and options.json.exists()
    ):  # commands that are not attacked now keep their rows
        rows = json.loads(options.json.read_text())["rows"]
    with place() as found:
        for name in options.command or (*COMMANDS, *BY_SPARK):
            if name in BY_SPARK:
                rows = _with(rows, found.attack_by_spark(name))
                continue
            for force in (False,) if name in WITHOUT_FORCE else (False, True):
                row = found.attack(name, force=force, kills=options.kills, seed=options.seed)
                rows = _with(rows, row)
    if options.json is not None:
        order = [*COMMANDS, *BY_SPARK]
        rows.sort(key=lambda row: (order.index(row["command"].removesuffix(AGAIN)), row["command"]))
        with atomic_write(options.json, force=True) as temporary:
            temporary.write_text(json.dumps({"seed": options.seed, "rows": rows}, indent=1) + "\n")
    sys.exit(any(row["failures"] for row in rows))


if __name__ == "__main__":
    main()
