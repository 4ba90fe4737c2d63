"""Several processes that train one model: each scores its part of a step's pairs, and gradients are averaged.

``torchrun --nproc-per-node 2 -m psgnn train ...`` starts them; alone, a process is a team of one.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import distributed, nn

from psgnn.errors import PsgnnError
from psgnn.memory import SMALL, save_columns

PATIENCE = timedelta(minutes=30)  # that one process waits for the others
Objective = Callable[..., tuple[torch.Tensor, torch.Tensor]]
Columns = Mapping[str, npt.NDArray[Any]]


class LostWorkerError(PsgnnError):
    """Another process of the team is gone."""


@dataclass(frozen=True)
class Team:
    """The processes of a job: this one is number ``rank`` of ``size``, and number ``seat`` on its ``machine``."""

    rank: int = 0
    size: int = 1
    machine: int = 0
    seat: int = 0

    @property
    def leads(self) -> bool:
        """Whether this process writes and prints for all."""
        return self.rank == 0

    def part(self, count: int) -> slice:
        """The part of `count` things that is this process's own; parts differ by one at most."""
        return slice(self.rank * count // self.size, (self.rank + 1) * count // self.size)

    def part_of_mean(self, count: int) -> tuple[slice, float]:
        """The part of a mean over `count` things, and the weight with which the mean over it counts here.

        A process for which there is nothing left looks at the first thing, which counts nothing.
        """
        own = self.part(count)
        if own.start == own.stop:
            return slice(0, 1), 0.0
        return own, (own.stop - own.start) * self.size / count

    def share(self, objective: Objective, module: nn.Module) -> Objective:
        """The same function of the module, but the gradients of what it gives first are means over the processes.

        All that depends on the module's weights has to be computed in it.
        """
        if self.size == 1:
            return objective
        # Models may leave some of their weights out of a step.
        return nn.parallel.DistributedDataParallel(_Called(module, objective), find_unused_parameters=True)

    def mean(self, value: torch.Tensor) -> torch.Tensor:
        """The mean over the processes of a number."""
        if self.size == 1:
            return value
        total = value.detach().clone()
        distributed.all_reduce(total)
        return total / self.size

    def agree(self, document: Any) -> Any:
        """What the first process has, so that all decide alike."""
        if self.size == 1:
            return document
        box = [document]
        distributed.broadcast_object_list(box, src=0)
        return box[0]

    def once(self, measure: Callable[[], Columns]) -> Columns:
        """The arrays that `measure` gives, measured by one process of each machine and mapped by all of it.

        All processes have to come here. What goes wrong in one of them ends all.
        """
        if self.size == 1:
            return measure()
        with tempfile.TemporaryDirectory(prefix="psgnn-columns-", ignore_cleanup_errors=True) as folder:
            problem: Exception | None = None
            if self.seat == 0:
                try:
                    for name, column in measure().items():
                        save_columns(Path(folder, f"{name}.npy"), column)
                except (PsgnnError, MemoryError, OSError) as error:
                    problem = error
            told: list[Any] = [None] * self.size
            distributed.all_gather_object(told, (self.machine, self.seat, folder, problem and str(problem)))
            if problem is not None:
                raise problem
            for machine, _, _, reason in told:
                if reason is not None:
                    raise PsgnnError(
                        f"columns could not be measured on machine {machine} of the job: {reason}"
                    )
            (place,) = {there for machine, seat, there, _ in told if (machine, seat) == (self.machine, 0)}
            mapped = {path.stem: _map(path) for path in sorted(Path(place).glob("*.npy"))}
            self.wait()  # the files have no names from here on; they are gone with the last process that maps them
        return mapped

    def wait(self) -> None:
        """Until all are here."""
        if self.size > 1:
            distributed.barrier()


def _map(path: Path) -> npt.NDArray[Any]:
    """The array in a file. Its pages belong to the system, so a cap on the memory of a process does not count them."""
    found: npt.NDArray[Any] = np.load(path, mmap_mode="r+" if path.stat().st_size > SMALL else None)
    return found


class _Called(nn.Module):
    """A function of a module as a module: what is called is the function."""

    def __init__(self, module: nn.Module, objective: Objective) -> None:
        super().__init__()
        self.module, self._objective = module, objective

    def forward(self, *arguments: Any) -> tuple[torch.Tensor, torch.Tensor]:
        """What the function gives."""
        return self._objective(*arguments)


def place() -> tuple[int, int]:
    """The number of this process and of all of them, as torchrun says."""
    if not distributed.is_torchelastic_launched():
        return 0, 1
    return int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


@contextmanager
def joined(device: torch.device) -> Iterator[Team]:
    """This process as a part of its job; a worker that is lost ends it with `LostWorkerError`."""
    rank, size = place()
    if size == 1:
        yield Team()
        return
    # What is no tensor of a GPU goes by gloo.
    distributed.init_process_group(
        "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo", timeout=PATIENCE
    )
    try:
        yield Team(rank, size, int(os.environ["GROUP_RANK"]), int(os.environ["LOCAL_RANK"]))
    except RuntimeError as error:
        # gloo and nccl say it in many ways, and nothing else in a step talks to others.
        if not _is_about_others(error):
            raise
        reason = " ".join(str(error).split())[:120]
        raise LostWorkerError(f"another process of the job is gone ({reason})") from error
    finally:
        distributed.destroy_process_group()


def _is_about_others(error: RuntimeError) -> bool:
    words = ("gloo", "nccl", "peer", "socket", "connection", "timed out")
    return any(word in str(error).lower() for word in words)
