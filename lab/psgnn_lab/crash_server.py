"""Runs commands in forks of a process that has imported everything, and ends them at a chosen file operation.

Reads lines of JSON: ``{"folder", "arguments", "stop", "seconds", "passed"}``, and answers ``{"code", "operations",
"last"}``. `stop` is the number of the file operation below the folder before which the process ends; `seconds` the time
until SIGKILL; `passed` names operations, and the process ends before the first that is not among them; `last` is the
name of the last. What a driver of Spark asks Java to do with files counts too. All drivers share one Java machine, and
their sessions end with them.
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
JAVA_EVENTS = (
    "delete",
    "mkdirs",
    "rename",
    "parquet",
)  # methods of Hadoop's file systems, and of Spark's writers
EVENTS = ("open", "os.rename", "os.link", "os.remove", "os.mkdir", "os.rmdir", "os.symlink", "os.truncate")


def watch(folder: str, asked: dict[str, Any], report: int, java: bool) -> None:
    """Count the operations on files below the folder, and end the process before number `stop`, or what is new."""
    stop, passed = asked.get("stop", 0), asked.get("passed")
    count = 0
    sync = os.fsync

    def step(what: str) -> None:
        nonlocal count
        count += 1
        os.ftruncate(report, 0)
        os.pwrite(report, f"{count} {what}".encode(), 0)
        if count == stop or (passed is not None and what not in passed):
            os._exit(ENDED)

    def hook(event: str, arguments: Any) -> None:
        if event not in EVENTS or not isinstance(arguments[0], (str, bytes, os.PathLike)):
            return
        # Not resolved: links count by their own place.
        if str(Path.cwd() / os.fsdecode(arguments[0])).startswith(folder):
            step(event)

    def counted(file: Any) -> None:
        step("fsync")
        sync(file)

    sys.addaudithook(hook)
    os.fsync = counted  # type: ignore[assignment]
    if java:
        from py4j.java_gateway import JavaMember

        call = JavaMember.__call__

        def called(member: Any, *arguments: Any) -> Any:
            # Readers have a method of the same name, which takes a sequence of paths.
            if member.name in JAVA_EVENTS and (member.name == "parquet") == isinstance(arguments[0], str):
                where = str(arguments[0])
                if folder in where:
                    step(f"{member.name} {where.split(folder)[1]}")
            return call(member, *arguments)

        JavaMember.__call__ = called


def start_java() -> Any:
    """A Java machine that the drivers of Spark in forks connect to."""
    import pyspark.java_gateway

    launch: Any = pyspark.java_gateway.launch_gateway
    gateway = launch()
    os.environ["PYSPARK_GATEWAY_PORT"] = str(gateway.gateway_parameters.port)
    os.environ["PYSPARK_GATEWAY_SECRET"] = gateway.gateway_parameters.auth_token
    return gateway


def end_session(gateway: Any) -> None:
    """End what a driver left in the Java machine, as the end of its machine would."""
    found = gateway.jvm.org.apache.spark.sql.SparkSession.getDefaultSession()
    if found.isDefined():
        found.get().stop()


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
    gateway = None
    for line in sys.stdin:
        asked = json.loads(line)
        java = "spark" in asked["arguments"]
        if java and gateway is None:
            gateway = start_java()
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
            watch(asked["folder"] + os.sep, asked, report, java)
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
        if java:
            end_session(gateway)
        operations, _, last = os.pread(report, 4096, 0).decode().partition(" ")
        os.close(report)
        answer: dict[str, Any] = {"code": os.waitstatus_to_exitcode(status), "last": last}
        answer["operations"] = int(operations or 0)
        answer["text"] = Path(asked["folder"] + ".log").read_text()
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    serve()
