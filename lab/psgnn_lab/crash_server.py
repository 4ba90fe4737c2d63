"""Runs commands in forks of a process that has imported everything, and ends them at a chosen file operation.

Reads lines of JSON: ``{"folder", "arguments", "stop", "seconds"}``, and answers ``{"code", "operations"}``. `stop` is
the number of the file operation below the folder before which the process ends; `seconds` the time until SIGKILL.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

ENDED = 99
EVENTS = ("open", "os.rename", "os.link", "os.remove", "os.mkdir", "os.rmdir", "os.symlink", "os.truncate")


def watch(folder: str, stop: int, report: int) -> None:
    """Count the operations on files below the folder, and end the process before number `stop`."""
    count = 0
    sync = os.fsync

    def step() -> None:
        nonlocal count
        count += 1
        if count == stop:
            os._exit(ENDED)
        os.pwrite(report, count.to_bytes(8, "little"), 0)

    def hook(event: str, arguments: Any) -> None:
        if event not in EVENTS or not isinstance(arguments[0], (str, bytes, os.PathLike)):
            return
        # Not resolved: links count by their own place.
        if str(Path.cwd() / os.fsdecode(arguments[0])).startswith(folder):
            step()

    def counted(file: Any) -> None:
        step()
        sync(file)

    sys.addaudithook(hook)
    os.fsync = counted  # type: ignore[assignment]


def serve() -> None:
    """Answer until the input ends."""
    import torch

    import psgnn.graph._exports
    import psgnn.report._page
    import psgnn.report._summary
    import psgnn.scoring
    import psgnn.training._compare
    import psgnn.training._fit
    import psgnn_lab.pretraining.pretrain as pretraining
    from psgnn import cli
    from psgnn_lab import commands

    torch.set_num_threads(1)
    psgnn.training._fit.CHECKPOINT_SECONDS = 0.0  # a checkpoint after every epoch
    vars(pretraining)["CHECKPOINT_SECONDS"] = 0.0
    for line in sys.stdin:
        asked = json.loads(line)
        report = os.memfd_create("operations")
        child = os.fork()
        if child == 0:
            os.chdir(asked["folder"])
            quiet = os.open(os.devnull, os.O_RDWR)
            log = os.open(asked["folder"] + ".log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(quiet, 0)
            os.dup2(log, 1)
            os.dup2(log, 2)
            sys.argv = ["psgnn", *asked["arguments"]]
            watch(asked["folder"] + os.sep, asked.get("stop", 0), report)
            code = 1
            try:
                (commands if asked["arguments"][0] == "pretrain" else cli).main()
            except SystemExit as end:
                code = int(end.code or 0)
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        if "seconds" in asked:
            timer = threading.Timer(asked["seconds"], os.kill, (child, signal.SIGKILL))
            timer.start()
        _, status = os.waitpid(child, 0)
        if "seconds" in asked:
            timer.cancel()
            timer.join()
        operations = int.from_bytes(os.pread(report, 8, 0), "little")
        os.close(report)
        answer: dict[str, Any] = {"code": os.waitstatus_to_exitcode(status), "operations": operations}
        answer["text"] = Path(asked["folder"] + ".log").read_text()
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    serve()
