"""A hyperparameter search: settings are tried in worker processes, and what came out is on record at once.

On one machine a single process asks and tells; :mod:`psgnn_lab.study` says how several share a search.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Sequence
from multiprocessing.connection import wait
from pathlib import Path
from typing import TYPE_CHECKING

from psgnn.console import Bar
from psgnn.errors import InputError
from psgnn_lab.estimate import as_time
from psgnn_lab.manifest import Manifest
from psgnn_lab.plan import Run
from psgnn_lab.runner import Make, Outcome, Worker, validate
from psgnn_lab.trials import SearchCell, read_trials, seconds_left

if TYPE_CHECKING:
    from psgnn_lab.study import Study

log = logging.getLogger(__name__)

BEAT_SECONDS = 20.0
POLL_SECONDS = 1.0


def search_all(
    manifest: Manifest,
    cells: Sequence[SearchCell],
    *,
    storage: str | None = None,
    jobs: int | None = None,
    root: Path | None = None,
    force: bool = False,
    show_progress: bool = False,
    make: Make = validate,
) -> Outcome:
    """Try settings until every cell has its trials, `jobs` at a time (a core each if None); each is on record at once.

    Args:
        manifest: the experiment.
        cells: what is searched; without anything to do, Optuna is not needed.
        storage: URL of a database that Optuna can use, for several machines; a SQLite file beside the manifest if None.
        jobs: workers.
        root: folder with datasets.
        force: forget what has been tried.
        show_progress: show a bar with the time left.
        make: what a worker does.
    """
    records = manifest.records
    cells = [cell for cell in cells if force or len(read_trials(records, cell)) < cell.wanted]
    if not cells:
        return Outcome()
    try:
        from psgnn_lab.study import Study, open_storage
    except ModuleNotFoundError as error:
        if error.name != "optuna":
            raise
        raise InputError("a hyperparameter search needs Optuna: pip install optuna") from None
    if storage is None:
        path = (manifest.folder / "search" / f"{manifest.name}.db").resolve()
        path.parent.mkdir(exist_ok=True)
        storage = f"sqlite:///{path}"
    with open_storage(storage) as opened:
        studies = [Study.open(cell, opened, records, force) for cell in cells]
        count = min(jobs or os.cpu_count() or 1, sum(study.missing for study in studies) or 1)
        workers = [Worker(make, root) for _ in range(count)]
        try:
            outcome = _loop(studies, workers, show_progress)
        finally:
            for worker in workers:
                worker.kill()
            for study in studies:
                study.give_up()
        for study in studies:
            study.write()
    return outcome


def _loop(studies: Sequence[Study], workers: Sequence[Worker], show_progress: bool) -> Outcome:
    outcome = Outcome()
    owners: dict[str, Study] = {}  # by the id of the run that is being made
    with Bar("searching", sum(study.cell.wanted for study in studies), show=show_progress) as bar:
        while True:
            for worker in workers:
                if worker.run is None:
                    asked = _asked(studies)
                    if asked is None:
                        break
                    run, study = asked
                    owners[run.id] = study
                    worker.start(run)
            busy = {worker.connection: worker for worker in workers if worker.run}
            if not busy:
                if not any(study.look().is_open for study in studies):
                    return outcome
                time.sleep(POLL_SECONDS)
                continue
            left = sum(seconds_left(studies[0].records, [study.cell for study in studies]).values())
            current = next(iter(owners.values())).cell
            note = f"{current}; about {as_time(left / len(workers))} left"
            bar.update(sum(len(study.complete) for study in studies), note)
            for connection in wait(list(busy), timeout=BEAT_SECONDS):
                run, measured, error = busy[connection].result()  # type: ignore[index]
                owner = owners.pop(run.id)
                error = owner.tell(run.id, measured, error)
                if error is not None:
                    outcome.failed.append((run, error))
                    log.debug("%s failed: %s", run, error)
                    continue
                outcome.done += 1
                counts = len(owner.complete), owner.cell.wanted
                value, seconds = measured["val"], measured["seconds"]
                log.debug("%s %d/%d: validation %.4f, %.1f s", owner.cell, *counts, value, seconds)
            for study in studies:
                study.beat()


def _asked(studies: Sequence[Study]) -> tuple[Run, Study] | None:
    """The next trial of the first study that lacks one."""
    for study in studies:
        while study.look().missing > 0:
            run = study.ask()
            if run is not None:
                return run, study
    return None
