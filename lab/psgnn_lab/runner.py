"""Make the runs that have no record yet, on several cores; what is finished is on disk at once.

Every worker is a process with one thread, of torch and of our kernels. A run that fails, even one that takes its
worker with it, is reported at the end and stops no other.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import shutil
import signal
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from psgnn.console import Bar
from psgnn.errors import PsgnnError
from psgnn_lab.estimate import Estimate, as_time
from psgnn_lab.manifest import Row
from psgnn_lab.plan import Run
from psgnn_lab.records import write_record

log = logging.getLogger(__name__)

Make = Callable[[Run, str | None], dict[str, Any]]
UNFINISHED = ".unfinished"  # folder of runs that are resumed, beside the records


@dataclass
class Outcome:
    """What became of the runs."""

    done: int = 0
    failed: list[tuple[Run, str]] = field(default_factory=list)


def execute(run: Run, root: str | None = None, *, records: str | None = None) -> dict[str, Any]:
    """Make one run: its test and validation metrics, its time, and what else the method tells.

    A run that may be resumed is kept in a folder beside the ``records`` until it is measured.
    """
    from psgnn.kernels._compile import kernel_threads
    from psgnn.training._compare import Method, measure
    from psgnn.training._runs import versions
    from psgnn.training._steps import one_thread

    spec = run.method
    task = _task(run.row.model_dump_json(), run.seed, root)
    options = dict(spec.options)
    scorer = None
    if options.pop("without", None) == "row":  # weights that have never seen the family of graphs of the row
        from psgnn_lab.pretraining.pretrain import left_out

        scorer = (
            left_out(run.row.dataset_options["family"])
            .on_union(
                task.union,
                [graph.names for graph in task.graphs],
                strict=options.get("strict", False),
                sets=1,
            )
            .score
        )
    method = Method(spec.of, spec.kind, preset=spec.preset, options=options, label=spec.title)
    kept_in = Path(records, UNFINISHED, run.id) if spec.resume and records is not None else None
    with ExitStack() as limits:
        if not spec.resume:  # a core runs one worker
            limits.enter_context(one_thread())
            limits.enter_context(kernel_threads(1))
        measured = measure(method, task, run.seed, trace=spec.trace, scorer=scorer, out=kept_in)
    if kept_in is not None:
        shutil.rmtree(kept_in)
    kept = {name: version for name, version in versions().items() if name in ("psgnn", "torch", "numpy")}
    if spec.trace:
        measured["history"] = _short(measured["history"])
    return {**measured, "split": task.digest[:16], "versions": kept}


def validate(run: Run, root: str | None = None) -> dict[str, Any]:
    """Make one run of a model up to its validation metric, with the test pairs out of reach.

    ``seconds`` are those of the processor: trials of a search are many, and often share it with other work.
    """
    from psgnn.kernels._compile import kernel_threads
    from psgnn.models import build_model
    from psgnn.training import fit
    from psgnn.training._steps import one_thread

    blind = _task(run.row.model_dump_json(), run.seed, root).blind()
    start = time.process_time()
    spec = run.method
    with one_thread(), kernel_threads(1):
        model = build_model(spec.of, blind, spec.preset, run.seed, **spec.options)
        result = fit(model, blind, seed=run.seed, device="cpu")
    return {
        "val": result.val[run.row.metric],
        "best_epoch": result.record["best_epoch"],
        "epochs": result.record["epochs_run"],
        "seconds": time.process_time() - start,
    }


def _short(history: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A history that is small enough for a record: few digits, and anchors only where they are new."""
    entries, before = [], None
    for entry in history:
        short = {key: round(value, 5) if isinstance(value, float) else value for key, value in entry.items()}
        if short.get("anchors") == before:
            short.pop("anchors", None)
        else:
            before = short["anchors"]
        entries.append(short)
    return entries


@lru_cache(maxsize=1)
def _task(row: str, seed: int, root: str | None) -> Any:
    """The task of a row, kept for the next method on the same split."""
    from psgnn.training._compare import make_task

    wanted = Row.model_validate_json(row)
    graphs = _graphs(row, root)
    if wanted.official:
        from psgnn.tasks import OfficialLinks

        return OfficialLinks(graphs[0], seed=seed)
    return make_task(graphs, wanted.task, seed, **wanted.task_options)


@lru_cache(maxsize=1)
def _graphs(row: str, root: str | None) -> Any:
    from psgnn.datasets import load_dataset

    wanted = Row.model_validate_json(row)
    graphs = load_dataset(wanted.dataset, root, **wanted.dataset_options)
    return graphs if wanted.features else [replace(graph, x=None) for graph in graphs]


def execute_all(
    runs: Sequence[Run],
    records: Path,
    *,
    jobs: int | None = None,
    root: Path | None = None,
    show_progress: bool = False,
    make: Make | None = None,
) -> Outcome:
    """Make the runs in their order, `jobs` at a time (a core each if None), and write each record as it comes."""
    make = make or partial(execute, records=str(records))
    estimate = Estimate(records, runs)
    outcome = Outcome()
    waiting = list(reversed(runs))
    workers = [Worker(make, root) for _ in range(min(jobs or os.cpu_count() or 1, len(runs)))]
    with Bar("running", len(runs), show=show_progress) as bar:
        try:
            while waiting or any(worker.run for worker in workers):
                for worker in workers:
                    if worker.run is None and waiting:
                        worker.start(waiting.pop())
                pending = [worker.run for worker in workers if worker.run] + waiting
                left = as_time(estimate.total(pending) / len(workers))
                bar.update(len(runs) - len(pending), f"{pending[0]}; about {left} left")
                busy = {worker.connection: worker for worker in workers if worker.run}
                for connection in wait(list(busy)):
                    worker = busy[connection]  # type: ignore[index]
                    _finish(worker, records, outcome, len(runs))
        finally:
            for worker in workers:
                worker.kill()
    return outcome


def _finish(worker: Worker, records: Path, outcome: Outcome, total: int) -> None:
    run, measured, error = worker.result()
    if error is None and run.row.metric not in measured["test"]:
        error = f"its test metrics lack {run.row.metric}, which the row asks for"
    if error is None:
        try:
            write_record(records, run, measured)
        except PsgnnError:
            raise  # the disk is full or not ours: no other record could be written either
        except ValueError as problem:
            error = f"its result is no JSON: {problem}"
    if error is not None:
        outcome.failed.append((run, error))
        log.debug("%s failed: %s", run, error)
        return
    outcome.done += 1
    number = outcome.done + len(outcome.failed)
    value, seconds = measured["test"][run.row.metric], measured["seconds"]
    log.debug("%d/%d %s: %s %.4f, %.1f s", number, total, run, run.row.metric, value, seconds)


class Worker:
    """A process that makes one run after another."""

    run: Run | None = None

    def __init__(self, make: Make, root: Path | None) -> None:
        self._arguments = make, None if root is None else str(root)
        self._open()

    def _open(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, *self._arguments), daemon=True)
        self._process.start()
        theirs.close()  # so that the end of the process is the end of the connection

    def start(self, run: Run) -> None:
        """Give it a run."""
        self.run = run
        with suppress(BrokenPipeError):  # if it has died, `result` will say so
            self.connection.send(run)

    def result(self) -> tuple[Run, dict[str, Any], str | None]:
        """The run that it had, with its result or what went wrong; a worker that has died gets a successor."""
        run, self.run = self.run, None
        assert run is not None
        try:
            measured, error = self.connection.recv()
        except (EOFError, OSError):
            self._process.join()
            measured, error = (
                {},
                f"its process ended with exit code {self._process.exitcode} (out of memory?)",
            )
            self.kill()
            self._open()
        return run, measured, error

    def kill(self) -> None:
        """End the process, whatever it does."""
        self._process.kill()
        self._process.join()
        self.connection.close()


def _serve(connection: Connection[Any, Any], make: Make, root: str | None) -> None:
    """The life of a worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends the workers
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while True:
        try:
            run = connection.recv()
        except (EOFError, OSError):  # the parent is gone
            return
        answer: tuple[dict[str, Any], str | None]
        try:
            answer = make(run, root), None
        except PsgnnError as error:
            answer = {}, str(error)
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            answer = {}, f"{type(error).__name__}: {error} ({Path(place.filename).name}:{place.lineno})"
        try:
            connection.send(answer)
        except OSError:  # the parent was killed meanwhile; what it asked for has no reader
            return


def _end_with_parent() -> None:
    """A parent that was killed cannot end its workers, so they watch it."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
