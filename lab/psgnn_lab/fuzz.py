"""Hostile input for every reader: mutations of valid files, read in processes that may crash or hang.

A `Target` is what is attacked: the bytes of its valid parts, how they are written, and what reads them. `TARGETS`
holds them by name, and `add` takes more. Case ``n`` of a target depends on the seed, its name and ``n`` alone, so
every failure can be made again. Anything but success or `PsgnnError` is a failure.
"""

from __future__ import annotations

import argparse
import base64
import json
import logging
import os
import queue
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from psgnn.errors import PsgnnError
from psgnn.paths import atomic_write
from psgnn_lab.fuzz_mutations import mutated

MEMORY_BYTES = 3 * 2**30  # that a case may take beyond what the process has
SECONDS = 30  # for one case, on a machine with other work
BATCH = 2000  # cases between two records
LONGEST_DETAIL = 1000
OUTCOMES = ("read", "refused", "failed")


@dataclass(frozen=True)
class Target:
    """Something that reads files.

    Args:
        name: What it is called.
        parts: Makes the valid parts that are mutated, such as files or members of an archive.
        write: Writes the parts, mutated or not, into a folder.
        read: Reads what is in the folder.
        share: How many cases it gets, beside others that get 1.
    """

    name: str
    parts: Callable[[], list[bytes]]
    write: Callable[[Path, Sequence[bytes]], None]
    read: Callable[[Path], object]
    share: float = 1.0


TARGETS: dict[str, Target] = {}


def add(target: Target) -> None:
    """Attack this too."""
    TARGETS[target.name] = replace(target, parts=cache(target.parts))


def file_target(
    name: str, file: str, content: Callable[[], bytes], read: Callable[[Path], object], share: float = 1.0
) -> None:
    """Add a target that is one file."""

    def write(folder: Path, parts: Sequence[bytes]) -> None:
        (folder / file).write_bytes(parts[0])

    add(Target(name, lambda: [content()], write, lambda folder: read(folder / file), share))


# Cases


def case_of(target: Target, seed: int, case: int) -> list[bytes]:
    """The parts of a case; one or, less often, several of them are mutated."""
    rng = random.Random(f"{seed}/{target.name}/{case}")
    parts = list(target.parts())
    for i in {rng.randrange(len(parts)) for _ in range(rng.choice((1, 1, 2)))}:
        parts[i] = mutated(parts[i], rng)
    return parts


# The process that reads


def load_targets() -> None:
    """Add all targets."""
    from psgnn_lab import fuzz_commands, fuzz_runs, fuzz_targets  # noqa: F401


def serve() -> None:
    """Answer cases, one per line, until the input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a reader prints is no answer
    # What is asked of a file is a `PsgnnError`, not a warning or a note.
    logging.disable(logging.CRITICAL)
    warm: set[str] = set()
    with tempfile.TemporaryDirectory(prefix="psgnn-fuzz-", dir=_fast_folder()) as root:
        for line in sys.stdin:
            asked = json.loads(line)
            if asked["target"] not in TARGETS:
                load_targets()
            target = TARGETS[asked["target"]]
            if target.name not in warm:  # compiles what it needs, before there is a limit
                _limit(None)
                _attempt(target, target.parts(), Path(root))
                warm.add(target.name)
                _limit(MEMORY_BYTES)
            given = asked.get("parts")
            parts = case_of(target, asked["seed"], asked["case"]) if given is None else _decoded(given)
            _alarm(SECONDS)
            answers.write(json.dumps(_attempt(target, parts, Path(root))) + "\n")
            _alarm(0)
            answers.flush()


def _fast_folder() -> str | None:
    """A folder in memory, where there is one."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def _decoded(parts: Iterable[str]) -> list[bytes]:
    return [base64.b64decode(part) for part in parts]


def _attempt(target: Target, parts: Sequence[bytes], root: Path) -> dict[str, str]:
    with tempfile.TemporaryDirectory(dir=root) as folder:
        try:
            target.write(Path(folder), parts)
            target.read(Path(folder))
        except PsgnnError as error:
            return {"outcome": "refused", "detail": str(error)[:300]}
        except BaseException as error:
            return {
                "outcome": "failed",
                "detail": "".join(traceback.format_exception(error))[-LONGEST_DETAIL:],
            }
    return {"outcome": "read", "detail": ""}


def _limit(more: int | None) -> None:
    """Let this process, and those that it starts, have so many bytes more; None takes the limit away."""
    with suppress(ImportError):  # Windows has no such limit
        import resource

        import psutil

        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        size = hard if more is None else psutil.Process().memory_info().vms + more
        resource.setrlimit(resource.RLIMIT_AS, (size, hard))


def _alarm(seconds: int) -> None:
    if hasattr(signal, "alarm"):
        signal.alarm(seconds)


# The pool


class Reader:
    """A process that reads cases, started again when one of them ended it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def ask(self, target: str, **case: Any) -> dict[str, str]:
        """What became of a case: ``read``, ``refused`` or ``failed``, and why."""
        process = self._process or self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        line = ""
        with suppress(OSError):
            process.stdin.write(json.dumps({"target": target, **case}) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        if line:
            answer: dict[str, str] = json.loads(line)
            return answer
        code = process.wait()
        self.close()
        name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        what = f"took more than {SECONDS} seconds" if name == "SIGALRM" else f"ended by {name}"
        return {"outcome": "failed", "detail": what}

    def read(self, target: str, *parts: bytes) -> dict[str, str]:
        """What becomes of these parts."""
        return self.ask(target, parts=[base64.b64encode(part).decode() for part in parts])

    def _start(self) -> subprocess.Popen[str]:
        environment = {
            **os.environ,
            "POLARS_MAX_THREADS": "1",
            "NUMBA_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
        }
        self._process = subprocess.Popen(
            [sys.executable, "-m", "psgnn_lab.fuzz", "--serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )
        return self._process

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


@dataclass
class Findings:
    """How often each target was read, refused or failed, the failures, and those that have been repaired since."""

    seed: int = 0
    counts: dict[str, Counter[str]] = field(default_factory=dict)
    failures: list[dict[str, Any]] = field(default_factory=list)
    repaired: list[dict[str, Any]] = field(default_factory=list)

    def add(self, target: str, case: int, answer: Mapping[str, str]) -> None:
        """Count what became of a case."""
        self.counts.setdefault(target, Counter())[answer["outcome"]] += 1
        if answer["outcome"] == "failed":
            self.failures.append({"target": target, "case": case, "detail": answer["detail"]})

    def document(self) -> dict[str, Any]:
        """The record: a row per target, and every failure."""
        rows = [
            {"target": name, "cases": counts.total(), **{outcome: counts[outcome] for outcome in OUTCOMES}}
            for name, counts in sorted(self.counts.items())
        ]
        return {"seed": self.seed, "rows": rows, "failures": self.failures, "repaired": self.repaired}

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Findings:
        """What a record says."""
        counts = {row["target"]: Counter({name: row[name] for name in OUTCOMES}) for row in document["rows"]}
        return cls(document["seed"], counts, document["failures"], document["repaired"])


class Pool:
    """Processes that read cases side by side."""

    def __init__(self, jobs: int) -> None:
        self.readers = [Reader() for _ in range(jobs)]

    def run(self, cases: Iterable[tuple[str, int]], findings: Findings) -> None:
        """Read cases, each of a target and a number."""
        waiting: queue.SimpleQueue[tuple[str, int]] = queue.SimpleQueue()
        for case in cases:
            waiting.put(case)
        lock = threading.Lock()

        def work(reader: Reader) -> None:
            with suppress(queue.Empty):
                while True:
                    name, case = waiting.get_nowait()
                    answer = reader.ask(name, seed=findings.seed, case=case)
                    with lock:
                        findings.add(name, case, answer)

        workers = [threading.Thread(target=work, args=(reader,)) for reader in self.readers]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

    def close(self) -> None:
        """End the processes."""
        for reader in self.readers:
            reader.close()


def waiting_cases(cases: int, findings: Findings, targets: Sequence[str] = ()) -> list[tuple[str, int]]:
    """The cases up to this number of all, shared among the targets, that have not been read."""
    chosen = [TARGETS[name] for name in targets or TARGETS]
    whole = sum(target.share for target in chosen)
    numbered = [
        (case / target.share, target.name, case)
        for target in chosen
        for case in range(
            findings.counts.get(target.name, Counter()).total(), max(1, round(cases * target.share / whole))
        )
    ]
    return [(name, case) for _, name, case in sorted(numbered)]


def fuzz(
    cases: int,
    *,
    seed: int = 0,
    pool: Pool,
    targets: Sequence[str] = (),
    record: Path | None = None,
    seconds: float = float("inf"),
) -> Findings:
    """Read this many mutated cases, shared among the targets.

    Args:
        cases: How many, with those that the record has.
        seed: Of the mutations.
        pool: What reads.
        targets: Some of them, by name, in place of all.
        record: A file that is written now and then. What it has is kept, and failures in it are tried again.
        seconds: Begin nothing after this time.
    """
    load_targets()
    begun = time.monotonic()
    findings = Findings(seed)
    if record is not None and record.exists():
        findings = Findings.of(json.loads(record.read_text()))
    _repeat_failures(findings, pool)
    waiting = waiting_cases(cases, findings, targets)
    for start in range(0, max(len(waiting), 1), BATCH):
        if time.monotonic() - begun < seconds:
            pool.run(waiting[start : start + BATCH], findings)
        if record is not None:
            with atomic_write(record, force=True) as temporary:
                temporary.write_text(json.dumps(findings.document(), indent=1) + "\n")
    return findings


def _repeat_failures(findings: Findings, pool: Pool) -> None:
    """Try the failures of a record again."""
    before, findings.failures = findings.failures, []
    for failure in before:
        findings.counts[failure["target"]]["failed"] -= 1
    pool.run([(failure["target"], failure["case"]) for failure in before], findings)
    still = [(failure["target"], failure["case"]) for failure in findings.failures]
    findings.repaired += [each for each in before if (each["target"], each["case"]) not in still]


def main() -> None:
    """Run cases, or answer them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--target", action="append", default=[], help="one of the targets; all by default")
    parser.add_argument("--json", type=Path, help="record of the findings; what it has is gone on with")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin nothing after this time")
    parser.add_argument("--case", type=int, help="write this case of the target, in place of reading it")
    parser.add_argument("--keep", type=Path, help="folder for --case")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve()
        return
    load_targets()
    unknown = [name for name in options.target if name not in TARGETS]
    if unknown:
        parser.error(f"unknown target {unknown[0]}; known are {', '.join(sorted(TARGETS))}")
    if options.case is not None:
        if len(options.target) != 1 or options.keep is None:
            parser.error("--case goes with one --target and --keep FOLDER")
        options.keep.mkdir(parents=True, exist_ok=True)
        target = TARGETS[options.target[0]]
        target.write(options.keep, case_of(target, options.seed, options.case))
        return
    pool = Pool(options.jobs)
    given = {
        "seed": options.seed,
        "targets": options.target,
        "record": options.json,
        "seconds": options.seconds,
    }
    try:
        findings = fuzz(options.cases, pool=pool, **given)
    finally:
        pool.close()
    sys.stdout.write(json.dumps(findings.document(), indent=1) + "\n")
    sys.exit(1 if findings.failures else 0)


if __name__ == "__main__":
    # The targets are added to the module by its name, not to this copy of it.
    from psgnn_lab import fuzz as module

    module.main()
