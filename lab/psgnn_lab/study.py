"""A search in Optuna's storage: which settings are next, who is trying them, and what came out.

Several processes and machines can share a storage. Whoever begins a trial writes it down first and then looks who was
before; a running trial says now and then that it is alive, and one that has fallen silent is counted out by whoever
notices. What is tried next depends on the trials so far and the seed of the sampler alone, so a search that was killed
and goes on tries what it would have tried.
"""

from __future__ import annotations

import math
import os
import re
import socket
import time
import uuid
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.exceptions import StorageInternalError, UpdateFinishedTrialError
from optuna.storages import BaseStorage, RDBStorage
from optuna.trial import FrozenTrial, TrialState, create_trial
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from psgnn.errors import InputError
from psgnn_lab.plan import Run
from psgnn_lab.search_spec import Params
from psgnn_lab.trials import SearchCell, Trial, read_trials, write_trials

STALE_SECONDS = 120.0
LOCK_SECONDS = 60.0
RETRY_SECONDS = 0.5
MOST_RETRIES = 20
MOST_REPEATS = 50
MOST_FAILURES = 3  # of a cell, in one command: then something else than the settings is wrong

ALIVE, TOKEN = "alive", "token"  # of a running trial: the host, the process and the time; what it is known by
RESULT = "result"  # of a finished one, beside its value
MEASURED = ("best_epoch", "epochs", "seconds")

Point = frozenset[tuple[str, Any]]


@dataclass
class Study:
    """The study of a cell, as it was when we last looked, and those of its trials that are made here."""

    cell: SearchCell
    study: optuna.Study
    storage: BaseStorage
    records: Path
    flying: dict[str, FrozenTrial] = field(default_factory=dict)  # by the id of the run
    tokens: set[str] = field(default_factory=set)
    failing: set[Point] = field(default_factory=set)
    complete: list[Trial] = field(default_factory=list)
    running: list[FrozenTrial] = field(default_factory=list)

    @classmethod
    def open(cls, cell: SearchCell, storage: BaseStorage, records: Path, force: bool) -> Study:
        """The study as the storage and the records know it."""
        name = f"{cell.row.name}/{cell.model}/{cell.id}"
        if force:
            write_trials(records, cell, [], anew=True)
            with suppress(KeyError):
                optuna.delete_study(study_name=name, storage=storage)
        study = optuna.create_study(
            storage=storage, study_name=name, direction="maximize", load_if_exists=True
        )
        opened = cls(cell, study, storage, records).look()
        known = {_point(trial.params) for trial in opened.complete}
        for trial in read_trials(records, cell):
            if _point(trial.params) not in known:
                measured = {name: getattr(trial, name) for name in MEASURED}
                study.add_trial(
                    create_trial(
                        params=trial.params,
                        distributions=opened.distributions,
                        value=trial.val,
                        user_attrs={RESULT: measured},
                    )
                )
        return opened.look()

    def look(self) -> Study:
        """See what is done and what is under way, here and elsewhere; a trial that has fallen silent is counted out."""
        if len(self.complete) >= self.cell.wanted:
            return self
        done: dict[Point, Trial] = {}
        self.running = []
        for frozen in self.study.get_trials(deepcopy=False):
            if frozen.state == TrialState.COMPLETE and frozen.value is not None:
                trial = Trial(frozen.number, frozen.params, frozen.value, **frozen.user_attrs[RESULT])
                done.setdefault(_point(frozen.params), trial)
            elif frozen.state == TrialState.RUNNING:
                if frozen.user_attrs.get(TOKEN) in self.tokens or _is_alive(frozen):
                    self.running.append(frozen)
                else:
                    self._fail(frozen.number)
        self.complete = list(done.values())
        return self

    @property
    def taken(self) -> set[Point]:
        """Points that need no other trial: done, under way, or known to fail."""
        done = {_point(trial.params) for trial in self.complete}
        return done | {_point(frozen.params) for frozen in self.running} | self.failing

    @property
    def missing(self) -> int:
        """Trials that are to be started."""
        if len(self.failing) >= MOST_FAILURES:
            return 0
        untried = self.cell.search.size(self.cell.model) - len(self.taken)
        return min(self.cell.wanted - len(self.complete) - len(self.running), untried)

    @property
    def is_open(self) -> bool:
        """Whether there is something to start, or others are at work on what is missing."""
        elsewhere = len(self.complete) < self.cell.wanted and len(self.running) > len(self.flying)
        return elsewhere or self.missing > 0

    @property
    def distributions(self) -> dict[str, BaseDistribution]:
        """The space in Optuna's words."""
        space = self.cell.search.space_of(self.cell.model)
        return {name: CategoricalDistribution(choices) for name, choices in space.items()}

    def ask(self) -> Run | None:
        """The run of the next trial; None if another process was quicker to begin it."""
        params, token = self._next(), uuid.uuid4().hex
        self.tokens.add(token)
        alive = [socket.gethostname(), os.getpid(), time.time()]
        self.study.add_trial(
            create_trial(
                state=TrialState.RUNNING,
                params=params,
                distributions=self.distributions,
                user_attrs={ALIVE: alive, TOKEN: token},
            )
        )
        (mine,) = [frozen for frozen in self.look().running if frozen.user_attrs.get(TOKEN) == token]
        # Numbers are given one after another, so of all that begin in one moment each sees those before it.
        before = [trial.params for trial in self.complete if trial.number < mine.number]
        before += [frozen.params for frozen in self.running if frozen.number < mine.number]
        if len(before) >= self.cell.wanted or params in before:
            self._fail(mine.number)
            return None
        run = self.cell.run(params)
        self.flying[run.id] = mine
        return run

    def _next(self) -> Params:
        """The published settings, then what the sampler suggests that has not been tried."""
        taken = self.taken
        if _point(self.cell.published) not in taken:
            return self.cell.published
        stream = [self.cell.search.sampler_seed, zlib.crc32(str(self.cell).encode()), len(taken)]
        rng = np.random.default_rng(stream)
        # In memory, where a suggestion that is not taken leaves no trace.
        study = optuna.create_study(
            direction="maximize",
            sampler=optuna.samplers.TPESampler(
                n_startup_trials=self.cell.wanted // 2, seed=int(rng.integers(2**32))
            ),
        )
        for trial in self.complete:
            study.add_trial(
                create_trial(params=trial.params, distributions=self.distributions, value=trial.val)
            )
        for frozen in self.running:
            study.add_trial(frozen)
        for _ in range(MOST_REPEATS):
            params: Params = study.ask(self.distributions).params
            if _point(params) not in taken:
                return params
        space = self.cell.search.space_of(self.cell.model)
        points = [dict(zip(space, values, strict=True)) for values in product(*space.values())]
        untried = [point for point in points if _point(point) not in taken]
        return untried[rng.integers(len(untried))]

    def tell(self, id: str, measured: dict[str, Any], error: str | None) -> str | None:
        """Take in what came of a run, and put it on record; what was wrong with it, or None."""
        frozen = self.flying.pop(id)
        if error is None and not math.isfinite(measured["val"]):
            error = f"its validation metric is {measured['val']}"
        if error is not None:
            self.failing.add(_point(frozen.params))
            self._fail(frozen.number)
            return error
        self._note(frozen.number, RESULT, {name: measured[name] for name in MEASURED})
        self.study.tell(frozen.number, measured["val"], skip_if_finished=True)
        self.look().write()
        return None

    def _note(self, number: int, key: str, value: Any) -> None:
        """Write something beside a running trial."""
        study_id = self.storage.get_study_id_from_name(self.study.study_name)
        trial_id = self.storage.get_trial_id_from_study_id_trial_number(study_id, number)
        with suppress(UpdateFinishedTrialError):  # by a process that has held this one for dead
            self.storage.set_trial_user_attr(trial_id, key, value)

    def write(self) -> None:
        """Put what is done, here and elsewhere, on record."""
        write_trials(self.records, self.cell, self.complete)

    def beat(self) -> None:
        """Say that the trials that are made here are alive."""
        for frozen in self.flying.values():
            self._note(frozen.number, ALIVE, [socket.gethostname(), os.getpid(), time.time()])

    def give_up(self) -> None:
        """Count out the trials that are made here: they will not end."""
        while self.flying:
            _, frozen = self.flying.popitem()
            self._fail(frozen.number)

    def _fail(self, number: int) -> None:
        with suppress(UpdateFinishedTrialError):  # by another process, in the same moment
            self.study.tell(number, state=TrialState.FAIL, skip_if_finished=True)


def _point(params: Params) -> Point:
    return frozenset(params.items())


def _is_alive(frozen: FrozenTrial) -> bool:
    """Whether somebody is still at work on a running trial, as far as can be seen from here."""
    started = frozen.datetime_start.timestamp() if frozen.datetime_start else 0.0
    host, process, when = frozen.user_attrs.get(ALIVE, (None, 0, started))
    if host == socket.gethostname():
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass
    return time.time() - float(when) < STALE_SECONDS


def _connected(url: str, options: dict[str, Any]) -> RDBStorage:
    for attempts_left in reversed(range(MOST_RETRIES)):
        try:
            return RDBStorage(url, engine_kwargs=options)
        except DBAPIError as error:
            # Another process makes the tables of a new storage in the same moment.
            if not attempts_left or not re.search(
                "already exists|unique|duplicate", str(error), re.IGNORECASE
            ):
                raise
            time.sleep(RETRY_SECONDS)
        except RuntimeError as error:  # made by another version of Optuna
            raise StorageInternalError(str(error)) from None
    raise AssertionError("unreachable")


@contextmanager
def open_storage(url: str) -> Iterator[BaseStorage]:
    """The storage behind a URL; what goes wrong with it is reported in one line."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    shown = "of --storage"
    try:
        parsed = make_url(url)
        shown = parsed.render_as_string(hide_password=True)
        options: dict[str, Any] = {}
        if parsed.get_backend_name() == "sqlite":
            options["connect_args"] = {"timeout": LOCK_SECONDS}  # while another process writes
        storage = _connected(url, options)
        try:
            yield storage
        finally:
            storage.engine.dispose()
    except (SQLAlchemyError, StorageInternalError, ImportError) as error:
        reason = " ".join(str(error.__cause__ or error).split())[:150]
        raise InputError(
            f"the storage {shown} cannot be used ({reason}); trials on record are safe: delete it, or name another "
            "with --storage"
        ) from None
