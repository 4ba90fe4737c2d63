"""One readable loop: fit a model, keep the best epoch by validation, read the test pairs once."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from copy import deepcopy
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from psgnn.console import Bar
from psgnn.errors import InputError, check_integer
from psgnn.graph._graph import IntArray
from psgnn.models._anchor_sets import AnyAnchors
from psgnn.models._interfaces import Seen
from psgnn.models._models import PositionModel
from psgnn.models._team import Team, joined
from psgnn.models._view import TensorView
from psgnn.positions._context import RIVAL
from psgnn.positions._view import features_of
from psgnn.tasks import LabelledPairs, Task
from psgnn.tasks._metrics import METRICS, auc_standard_error, evaluate
from psgnn.training import _runs as runs
from psgnn.training._batches import USED_FOLDS, batches_of, number_of_steps, step_pairs
from psgnn.training._checkpoints import State, open_run, record_of, save_state
from psgnn.training._folder import alone_in, check_out, remove_run
from psgnn.training._heldout import part_of, write_held_out
from psgnn.training._record import check_tensorboard, write_tensorboard
from psgnn.training._run import Run, load, save_run
from psgnn.training._steps import (
    fitting_threads,
    move_average,
    one_cycle,
    pick_device,
    score_function,
    seed_torch,
)

__all__ = ["Run", "fit", "load", "remove_run"]

log = logging.getLogger(__name__)

CPU, ALONE = torch.device("cpu"), Team()
CHECKPOINT_SECONDS = 20.0
MOST_WATCHED_PAIRS = 20_000
MOST_MEASURED_PAIRS, MOST_EMBEDDED_PAIRS = 400_000, 200_000  # of more, a random part says as much
MOST_WATCHED_LARGE = 5000
MOST_TRACED_ANCHORS = 1000


def fit(
    model: PositionModel,
    task: Task,
    *,
    epochs: int | None = None,
    seed: int = 0,
    out: str | Path | None = None,
    progress: bool = False,
    tensorboard: str | Path | None = None,
    command: str | None = None,
    device: str = "auto",
    force: bool = False,
    refit: bool = False,
) -> Run:
    """Train a model on a task, and read the test pairs once, at the end.

    The weights and anchors of the best epoch by validation are kept, by AUC or the `headline` of the task. Training
    stops when `patience` epochs have brought no better one. An epoch is one step: on a random `batch` of the training
    pairs, or on all of them, at most `MOST_STEP_PAIRS`.

    Under torchrun all processes of the job train one model (`psgnn.models._team`); the first one writes.

    Args:
        model: From `build_model`. It is trained in place.
        task: What the model may see and is asked.
        epochs: The most epochs. Default: the model's own setting, or enough for its `passes` over the training pairs.
        seed: Of everything that is random in training.
        out: A folder for the run. An interrupted run in it resumes and ends with the same result, bit for bit. A
            finished run or other files in it are an error, which is raised before any work is done.
        progress: Show a bar with loss, validation AUC and time left.
        tensorboard: A folder for TensorBoard's events.
        command: What a person typed to train the model, for the record.
        device: ``cpu``, ``cuda``, ``mps``, or ``auto`` for a GPU where there is one. The model is moved there.
        force: Replace a run in the folder, once it is known that the new one can begin.
        refit: After the test, train again from the start on all links, also the held-out ones, for as many epochs as
            were best and from the same anchors. Predictions use the new weights. The metrics stay those of the first
            ones, which `Run.evaluation_scorer` has.

    Returns:
        The run: a scorer on the whole graph, with its metrics.

    Raises:
        InputError: If the folder is taken, or training diverges.
    """
    folder = None if out is None else Path(out)
    if refit and not task.holds_out_links:
        raise InputError("refit trains on held-out links, and the pair task holds out none; leave it out")
    check_integer("seed", seed, 0)
    if epochs is not None:
        check_integer("epochs", epochs, 1)
    if folder is not None:
        check_out(folder, force=force)
    if tensorboard is not None:
        check_tensorboard(tensorboard)
    where = pick_device(device)
    with joined(where) as team, ExitStack() as held:
        if folder is not None and team.leads:
            held.enter_context(alone_in(folder))
        trainer = _Trainer(
            model, task, epochs or number_of_steps(model.config, task), seed, command, where, team
        )
        fresh = deepcopy(model) if refit else None
        state = trainer.open(folder, force=force) if folder is not None else State()
        numbers = model.config.states * step_pairs(model.config, task)
        with fitting_threads(trainer.view.union.num_nodes, numbers):
            trainer.run(state, folder, progress)
            result = trainer.finish(state)
            if tensorboard is not None and team.leads:
                # Before the run is written: the repeat of a finished one would write no events.
                trainer.save(folder, state)
                write_tensorboard(tensorboard, result.history)
            if fresh is not None:
                trainer.save(folder, state)
                result = trainer.refit(result, fresh, progress)
            trainer.write(result, folder)
    return result


class _Trainer:
    def __init__(
        self,
        model: PositionModel,
        task: Task,
        epochs: int,
        seed: int,
        command: str | None = None,
        device: torch.device = CPU,
        team: Team = ALONE,
        anchors: AnyAnchors | None = None,
    ) -> None:
        if model.config.in_channels != features_of(task.graphs).shape[1]:
            raise InputError(
                f"the model expects {model.config.in_channels} features, the task's graphs have "
                f"{features_of(task.graphs).shape[1]}; build the model for this task"
            )
        self.model, self.task, self.epochs, self.seed = model.to(device), task, epochs, seed
        self.config, self.command, self.device, self.team = model.config, command, device, team
        self.view = TensorView(task.union, torch.from_numpy(features_of(task.graphs)).to(device), team)
        self.objective = team.share(self._objective, model)
        self.optimizer = torch.optim.AdamW(
            model.parameters(),
            lr=self.config.lr,
            weight_decay=self.config.weight_decay,
            fused=device.type == "cpu",
        )
        self.batches = batches_of(task, self.view, self.config, epochs, whole=model.fixed_anchors)
        if self.batches.large and team.leads:
            log.info(
                "a large graph: %d of the folds are used, %d validation pairs are watched, and metrics are those of "
                "at most %d random pairs",
                USED_FOLDS,
                MOST_WATCHED_LARGE,
                MOST_MEASURED_PAIRS,
            )
        # A training run looks at the validation pairs many times.
        self.watched = part_of(
            task.val, MOST_WATCHED_LARGE if self.batches.large else MOST_WATCHED_PAIRS, seed
        )
        self.whole = True  # weights, their average and the number of the epoch belong together
        self.fixed = anchors
        self.learning: dict[str, Any] = {}  # of anchors before training: what the record says about it
        if anchors is not None:
            return
        if model.picker is not None and model.picker.learns_first:
            start = time.perf_counter()
            model.picker.learn(self.view, self._training_pairs(), (self.view, task.val))
            self.learning["choosing_seconds"] = round(time.perf_counter() - start, 3)
            self.learning["explained"] = model.picker.explained
        model.find_anchors([graph.names for graph in task.graphs])
        model.eval()
        # Anchors that training changes are picked too, so that a number of them that cannot be is known at once.
        first = model.pick(self.view)
        self.fixed = first if model.fixed_anchors else None

    @cached_property
    def _identity(self) -> dict[str, Any]:
        """What has to be equal for a run to be resumed."""
        return {
            "config": self.config.model_dump(),
            "split": self.task.digest,
            "graph": runs.data_hash(self.view),
            "folds": self.task.folds,
            "seed": self.seed,
            "epochs": self.epochs,
        }

    def open(self, folder: Path, *, force: bool = False) -> State:
        """The state of the run in the folder, or of a new one; the first process makes the folder."""
        replaced = False
        if not self.team.leads:
            self.team.wait()
        elif force:
            replaced = remove_run(folder)
        state = open_run(
            folder, self._identity, self.model, self.optimizer, union=self.view.union, beside=replaced
        )
        if self.team.leads:
            self.team.wait()
        return state

    def save(self, folder: Path | None, state: State) -> None:
        """Write where training stands."""
        if folder is not None and self.team.leads:
            save_state(folder, state, self._identity, self.model, self.optimizer)

    def _training_pairs(self) -> list[Seen]:
        """Every training pair once, in the graph that hides it if need be, for anchors that are learned beforehand."""
        streams = (np.random.default_rng([self.seed, step, 1]) for step in range(self.batches.rounds))
        found = (self.batches.pairs(step, rng, None) for step, rng in enumerate(streams))
        asked = ((view, pairs[:, labels != RIVAL], labels[labels != RIVAL]) for view, pairs, labels in found)
        return [
            (view, LabelledPairs(pairs, labels, view.union.graph_of[pairs[0]]))
            for view, pairs, labels in asked
        ]

    def run(self, state: State, folder: Path | None, progress: bool) -> None:
        """Train until the last epoch or until patience ends."""
        started = saved = time.perf_counter()
        before = state.seconds
        with torch.random.fork_rng(devices=[]), Bar("training", self.epochs, show=progress) as bar:
            try:
                if state.epoch == 0:
                    self._calibrate()
                self._validate_if_due(state, bar)
                while state.epoch < self.epochs and state.epoch - state.improved_epoch < self.config.patience:
                    self._step(state)
                    state.seconds = before + time.perf_counter() - started
                    self._validate_if_due(state, bar)
                    if time.perf_counter() - saved > CHECKPOINT_SECONDS:
                        self.save(folder, state)
                        saved = time.perf_counter()
            except (KeyboardInterrupt, RuntimeError) as error:
                # Halfway through a change of the weights the last checkpoint stands.
                if self.whole and (isinstance(error, KeyboardInterrupt) or self.team.size > 1):
                    self.save(folder, state)
                raise

    def _calibrate(self) -> None:
        seed_torch(self.seed, self.device)
        self.model.train()
        view, pairs, _ = self._batch(0, np.random.default_rng([self.seed, self.epochs]))
        self.model.calibrate(view, self.fixed or self.model.pick(view), pairs)

    def _step(self, state: State) -> None:
        """One epoch, whose end changes weights, average and number of the epoch together."""
        state.loss = self._epoch(state.epoch)
        if not math.isfinite(state.loss):
            raise InputError(
                f"training diverged: the loss of epoch {state.epoch} is not a number; train again with a lower lr "
                f"(--option lr={self.config.lr / 10:g})"
            )
        state.epoch += 1
        if self.config.average:
            self._take_average(state)
        self.whole = True

    def _epoch(self, epoch: int) -> float:
        """One step; its random numbers depend on the seed and the number of the epoch alone."""
        stream = int(np.random.SeedSequence([self.seed, epoch]).generate_state(1, np.uint64)[0] >> 1)
        seed_torch(stream, self.device)
        generator = torch.Generator().manual_seed(stream ^ 1)
        view, pairs, labels = self._batch(epoch, np.random.default_rng([self.seed, epoch]))
        self.model.train()
        for group in self.optimizer.param_groups:
            group["lr"] = self.config.lr * (one_cycle(epoch / self.epochs) if self.config.one_cycle else 1.0)
        objective, loss = self.objective(view, generator, 1 - epoch / self.epochs, pairs, labels)
        self.optimizer.zero_grad(set_to_none=True)
        objective.backward()  # type: ignore[no-untyped-call]
        loss = self.team.mean(loss)
        if self.config.clip:
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config.clip)
        self.whole = False
        self.optimizer.step()
        return float(loss)

    def _objective(
        self,
        view: TensorView,
        generator: torch.Generator,
        exploration: float,
        pairs: torch.Tensor,
        labels: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """What a step makes smaller, of this process's part of the pairs, and the mean loss in it."""
        own, weight = self.team.part_of_mean(labels.numel())
        losses, log_probs = [], []
        for choice in self._anchor_sets(view, generator, exploration):
            losses.append(self.model.loss(view, choice, pairs[:, own], labels[own]) * weight)
            log_probs.append(None if choice is None else choice.log_prob)
        mean = torch.stack(losses).mean()
        if log_probs[0] is None:
            return mean, mean.detach()
        return mean + score_function(losses, log_probs), mean.detach()

    def _anchor_sets(
        self, view: TensorView, generator: torch.Generator, exploration: float
    ) -> Sequence[AnyAnchors | None]:
        if self.fixed is not None:
            return [self.fixed]
        return self.model.explore(view, generator, exploration, self.config.samples)

    def _batch(self, epoch: int, rng: np.random.Generator) -> tuple[TensorView, torch.Tensor, torch.Tensor]:
        view, pairs, labels = self.batches.draw(epoch, rng)
        return view, torch.from_numpy(pairs).to(self.device), torch.from_numpy(labels).to(self.device)

    def _validate_if_due(self, state: State, bar: Bar) -> None:
        """Look at the validation pairs every some epochs, and after the last; a resumed run may have been about to."""
        due = state.epoch % self.config.eval_every == 0 or state.epoch == self.epochs
        if state.epoch == 0 or not due or (state.history and state.history[-1]["epoch"] == state.epoch):
            return
        self._validate(state)
        bar.update(
            state.epoch, f"loss {state.loss:.3f}, validation {self.task.headline} {state.best_value:.4f}"
        )

    @torch.no_grad()
    def _validate(self, state: State) -> None:
        weights = {key: value.detach().clone() for key, value in self.model.state_dict().items()}
        try:
            if state.average:
                self.model.load_state_dict(state.average)
            self.model.eval()
            choice = self.fixed or self.model.pick(self.view)
            asked = dict.fromkeys(["auc", "ap", self.task.headline])
            metrics = self.team.agree(self._measure(self.watched, choice, asked, self.view))
            validated = {k: v.detach().clone() for k, v in self.model.state_dict().items()}
        finally:  # whoever interrupts it finds the weights of training
            self.model.load_state_dict(weights)
        value = metrics[self.task.headline]
        if value > state.best_value:
            state.best_value, state.improved_epoch = value, state.epoch
        # Of epochs that the validation pairs can hardly tell apart the latest: it has been trained for longer.
        if self.config.keep == "last" or value >= state.best_value - self._slack(state.best_value):
            state.best_epoch, state.best_choice, state.best_weights = state.epoch, choice, validated
        entry: dict[str, Any] = {"epoch": state.epoch, "loss": state.loss, **metrics}
        if choice is not None and self.fixed is None and choice.size <= MOST_TRACED_ANCHORS:
            entry["anchors"] = choice.listed()  # training can change them
        state.history.append(entry)

    def _slack(self, value: float) -> float:
        """How much worse than the best an epoch may be and still count as equal."""
        if not self.config.tolerance or self.task.headline != "auc":
            return 0.0
        positives = int(self.watched.labels.sum())
        error = auc_standard_error(value, positives, self.watched.labels.size - positives)
        return self.config.tolerance * error

    def _take_average(self, state: State) -> None:
        """Move the running average of the weights, which is what is validated and kept, by one step."""
        # The first steps count fully, or the average would remember the random start.
        share = max(1 - self.config.average, 1 / (1 + state.epoch / 10))
        move_average(state.average, self.model.state_dict(), share)

    def _measure(
        self, split: LabelledPairs, choice: AnyAnchors | None, metrics: Iterable[str], view: TensorView
    ) -> dict[str, float]:
        self.model.eval()
        return evaluate(split, self._scores(choice, view)(split.pairs), tuple(metrics))

    def _scores(
        self, choice: AnyAnchors | None, view: TensorView
    ) -> Callable[[IntArray], npt.NDArray[np.float32]]:
        """A function that scores pairs ``[2, P]`` of a view."""

        @torch.no_grad()
        def score(pairs: IntArray) -> npt.NDArray[np.float32]:
            return np.asarray(self.model.predict(view, choice, torch.from_numpy(pairs).to(self.device)).cpu())

        return score

    @torch.no_grad()
    def _measure_embedding(self, choice: AnyAnchors | None, view: TensorView) -> dict[str, float] | None:
        """How well the embeddings alone rank the test pairs, where scores rest on more."""
        if self.model.embedding_decoder is None:
            return None
        test = part_of(self.task.test, MOST_EMBEDDED_PAIRS, self.seed)
        scores = self.model.predict_embedded(view, choice, torch.from_numpy(test.pairs).to(self.device))
        return evaluate(test, scores.cpu().numpy())

    def refit(self, measured: Run, fresh: PositionModel, progress: bool) -> Run:
        """Train a fresh model on all links, for as many epochs as were best and from the same anchors."""
        epochs = int(measured.record["best_epoch"])
        everything = self.task.on_all_links()
        again = _Trainer(
            fresh, everything, self.epochs, self.seed, self.command, self.device, self.team, measured.choice
        )
        again.repeat(epochs, progress)
        links = again.view.union.adjacency.num_edges
        about = "val, test, embedding_test and history are of the weights before the refit, without held-out links"
        measured.record["refit"] = {"epochs": epochs, "links": links, "metrics": about}
        return replace(measured, model=again.model, evaluated=measured.model)

    def repeat(self, epochs: int, progress: bool) -> None:
        """Train for so many epochs, without looking at any validation pairs."""
        state = State()
        with torch.random.fork_rng(devices=[]), Bar("refitting", epochs, show=progress) as bar:
            self._calibrate()
            while state.epoch < epochs:
                self._step(state)
                bar.update(state.epoch, f"loss {state.loss:.3f}")
        if state.average:
            self.model.load_state_dict(state.average)
        self.model.eval()

    def finish(self, state: State) -> Run:
        """Go back to the best epoch and read the test pairs, once."""
        self.model.load_state_dict(state.best_weights)
        choice, shown = state.best_choice, self.task.test_union
        seen = self.view if shown is self.view.union else self.view.without(shown)
        asked = dict.fromkeys([*METRICS, self.task.headline])
        val, test = (
            self._measure(part_of(split, MOST_MEASURED_PAIRS, self.seed), choice, asked, view)
            for split, view in ((self.task.val, self.view), (self.task.test, seen))
        )
        test |= self.task.metrics_per_node(self._scores(choice, seen), self.seed)
        embedding_test = self._measure_embedding(choice, seen)
        names = [graph.names for graph in self.task.graphs]
        result = Run(
            self.model, self.view, state.best_choice, val, test, state.history, {}, names, embedding_test,
            self.task.hidden_links, numbers=tuple(self.task.kept) if self.task.dropped else (),
            whole=self.task.whole_kinds,
        )  # fmt: skip
        about = {"command": self.command, "seed": self.seed, "epochs": self.epochs, **self.learning}
        result.record.update(record_of(self.task, self.config, state, result, about))
        return result

    def write(self, result: Run, folder: Path | None) -> None:
        """Write what the run was asked and the run itself, its record last."""
        if folder is not None and self.team.leads:
            write_held_out(folder, self.task, self.seed)
            save_run(folder, result)
        self.team.wait()
