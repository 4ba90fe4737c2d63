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
import re
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from psgnn.errors import PsgnnError

MEMORY_BYTES = 3 * 2**30  # that a case may take beyond what the process has
SECONDS = 30  # for one case, on a machine with other work
NUMBERS = (
    0,
    1,
    2,
    127,
    128,
    255,
    2**15,
    2**16 - 1,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**62,
    2**63 - 1,
    2**63,
    2**64 - 1,
)
WORDS = (
    b"\n", b"\r\n", b",", b";", b"\t", b" ", b'"', b'""', b"#", b"%", b"\0", b"-1", b"nan", b"inf", b"1e999", b"0" * 40,
    b"9" * 19, b"9" * 30, b"9" * 5000, b"-0", b"+7", b"007", b"1.5", b"0,5", b"\xff", b"\xff\xfe", b"\xef\xbb\xbf",
    b"[", b"]", b"{", b"}", b"<", b">", b"&a;", b"source", b"target", b"\x1b]52;c;AA\x07", "\u202e\u6771".encode(),
    b" " * 3000, b"#\n" * 500,
)  # fmt: skip


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
    TARGETS[target.name] = target


def file_target(
    name: str, file: str, content: Callable[[], bytes], read: Callable[[Path], object], share: float = 1.0
) -> None:
    """Add a target that is one file."""

    def write(folder: Path, parts: Sequence[bytes]) -> None:
        (folder / file).write_bytes(parts[0])

    add(Target(name, lambda: [content()], write, lambda folder: read(folder / file), share))


# Mutations


def mutated(content: bytes, rng: random.Random) -> bytes:
    """The content with one to four changes."""
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 4))):
        content = rng.choice(MUTATIONS)(content, rng)
    return content


def _place(content: bytes, rng: random.Random, room: int = 1) -> int:
    """A place in the content, more often in its second half, which is less often a header."""
    last = max(1, len(content) - room + 1)
    return rng.randrange(last // 2 if rng.random() < 0.5 else 0, last)


def _flip(content: bytes, rng: random.Random) -> bytes:
    at = _place(content, rng)
    return (
        content[:at]
        + bytes(byte ^ (1 << rng.randrange(8)) for byte in content[at : at + 1])
        + content[at + 1 :]
    )


def _byte(content: bytes, rng: random.Random) -> bytes:
    at = _place(content, rng)
    return content[:at] + bytes([rng.randrange(256)]) + content[at + 1 :]


def _number(content: bytes, rng: random.Random) -> bytes:
    """Another number: in the digits of a text, or in the bytes of anything else."""
    if content.isascii() and b"\0" not in content:
        digits = [found.span() for found in re.finditer(rb"[0-9]+", content)] or [(0, 0)]
        start, end = rng.choice(digits)
        return content[:start] + str(rng.choice(NUMBERS)).encode() + content[end:]
    size = rng.choice((1, 2, 4, 8))
    at = _place(content, rng, size)
    at -= at % size if rng.random() < 0.7 else 0
    value = rng.choice(NUMBERS) & ((1 << 8 * size) - 1)
    return content[:at] + value.to_bytes(size, rng.choice(("little", "big"))) + content[at + size :]


def _cut(content: bytes, rng: random.Random) -> bytes:
    return content[: _place(content, rng)]


def _remove(content: bytes, rng: random.Random) -> bytes:
    at = _place(content, rng)
    return content[:at] + content[at + rng.randrange(1, 17) :]


def _repeat(content: bytes, rng: random.Random) -> bytes:
    at = _place(content, rng)
    return content[:at] + content[at : at + rng.randrange(1, 65)] * rng.choice((2, 3, 50)) + content[at:]


def _swap(content: bytes, rng: random.Random) -> bytes:
    a, b = sorted((_place(content, rng), _place(content, rng)))
    size = min(rng.randrange(1, 17), b - a)
    return (
        content[:a]
        + content[b : b + size]
        + content[a + size : b]
        + content[a : a + size]
        + content[b + size :]
    )


def _word(content: bytes, rng: random.Random) -> bytes:
    at, word = _place(content, rng), rng.choice(WORDS)
    return content[:at] + word + content[at + rng.choice((0, 0, 1, len(word))) :]


MUTATIONS = (_flip, _byte, _number, _number, _cut, _remove, _repeat, _swap, _word, _word)


def case_of(target: Target, seed: int, case: int) -> list[bytes]:
    """The parts of a case; one or, less often, several of them are mutated."""
    rng = random.Random(f"{seed}/{target.name}/{case}")
    parts = list(target.parts())
    for i in {rng.randrange(len(parts)) for _ in range(rng.choice((1, 1, 2)))}:
        parts[i] = mutated(parts[i], rng)
    return parts


# The process that reads


def serve() -> None:
    """Answer cases, one per line, until the input ends."""
    from psgnn_lab import fuzz_targets  # noqa: F401  (adds the targets)

    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a reader prints is no answer
    # What is asked of a file is a `PsgnnError`, not a warning or a note.
    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory(prefix="psgnn-fuzz-") as root:
        for target in TARGETS.values():
            _attempt(target, target.parts(), Path(root))  # compiles what it needs, before there is a limit
        _limit()
        for line in sys.stdin:
            asked = json.loads(line)
            target = TARGETS[asked["target"]]
            given = asked.get("parts")
            parts = case_of(target, asked["seed"], asked["case"]) if given is None else _decoded(given)
            _alarm(SECONDS)
            answers.write(json.dumps(_attempt(target, parts, Path(root))) + "\n")
            _alarm(0)
            answers.flush()


def _decoded(parts: Iterable[str]) -> list[bytes]:
    return [base64.b64decode(part) for part in parts]


def _attempt(target: Target, parts: Sequence[bytes], root: Path) -> dict[str, str]:
    with tempfile.TemporaryDirectory(dir=root) as folder:
        try:
            target.write(Path(folder), parts)
            target.read(Path(folder))
        except PsgnnError as error:
            if "\n" in str(error):
                return {"outcome": "failed", "detail": f"more than one line: {error!r}"}
            return {"outcome": "refused", "detail": str(error)[:300]}
        except BaseException as error:
            return {"outcome": "failed", "detail": "".join(traceback.format_exception(error))[-3000:]}
    return {"outcome": "read", "detail": ""}


def _limit() -> None:
    """Bound the memory of this process and of those that it starts."""
    with suppress(ImportError):  # Windows has no such limit
        import resource

        import psutil

        size = psutil.Process().memory_info().vms + MEMORY_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (size, size))


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
    """How often each target was read, refused or failed, and the failures."""

    counts: dict[str, Counter[str]] = field(default_factory=dict)
    failures: list[dict[str, Any]] = field(default_factory=list)

    def rows(self) -> list[dict[str, Any]]:
        """A row per target."""
        outcomes = ("read", "refused", "failed")
        return [
            {"target": name, "cases": counts.total(), **{outcome: counts[outcome] for outcome in outcomes}}
            for name, counts in sorted(self.counts.items())
        ]


def fuzz(cases: int, *, seed: int = 0, jobs: int = 2, targets: Sequence[str] = ()) -> Findings:
    """Read this many mutated cases, shared among the targets."""
    from psgnn_lab import fuzz_targets  # noqa: F401  (adds the targets)

    chosen = [TARGETS[name] for name in targets or TARGETS]
    whole = sum(target.share for target in chosen)
    waiting: queue.SimpleQueue[tuple[str, int]] = queue.SimpleQueue()
    numbered = [
        (case / target.share, target.name, case)
        for target in chosen
        for case in range(max(1, round(cases * target.share / whole)))
    ]
    for _, name, case in sorted(numbered):
        waiting.put((name, case))
    findings, lock = Findings({target.name: Counter() for target in chosen}), threading.Lock()

    def work() -> None:
        reader = Reader()
        try:
            while True:
                name, case = waiting.get_nowait()
                answer = reader.ask(name, seed=seed, case=case)
                with lock:
                    findings.counts[name][answer["outcome"]] += 1
                    if answer["outcome"] == "failed":
                        findings.failures.append({"target": name, "seed": seed, "case": case, **answer})
        except queue.Empty:
            pass
        finally:
            reader.close()

    threads = [threading.Thread(target=work) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return findings


def main() -> None:
    """Fuzz by command; see lab/fuzz.py."""
    parser = argparse.ArgumentParser(description="Read mutated files in processes that may crash.")
    parser.add_argument("--cases", type=int, default=3000, help="how many, all targets together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument(
        "--target", action="append", default=[], help="attack this one alone; can be repeated"
    )
    parser.add_argument("--json", type=Path, help="write the counts and the failures")
    parser.add_argument("--case", type=int, help="write this case of one --target into the folder --keep")
    parser.add_argument("--keep", type=Path, help="folder for --case")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve()
        return
    from psgnn_lab import fuzz_targets  # noqa: F401  (adds the targets)

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
    findings = fuzz(options.cases, seed=options.seed, jobs=options.jobs, targets=options.target)
    document = {"seed": options.seed, "rows": findings.rows(), "failures": findings.failures}
    if options.json is not None:
        options.json.write_text(json.dumps(document, indent=2) + "\n")
    sys.stdout.write(json.dumps(document, indent=2) + "\n")
    sys.exit(1 if findings.failures else 0)


if __name__ == "__main__":
    # The targets are added to the module by its name, not to this copy of it.
    from psgnn_lab import fuzz as module

    module.main()
