"""One readable loop: fit a model, keep the best epoch by validation, read the test pairs once."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from psgnn import runs
from psgnn.console import Bar
from psgnn.errors import InputError, MissingExtraError
from psgnn.metrics import evaluate
from psgnn.nn.choices import AnyChoice, choice_of, choice_tensors
from psgnn.nn.models import PositionModel, model_of
from psgnn.nn.view import View, features, view_of
from psgnn.tasks import LinkPrediction, Split, Task

CHECKPOINT_SECONDS = 20.0
ONE_THREAD_NODES = 10_000


@dataclass(eq=False)
class Result:
    """A trained model on the graphs it was trained on.

    ``val`` and ``test`` hold ``auc`` (mean over graphs), ``auc_pooled`` and ``ap``; ``history`` one entry for each
    validation; ``anchors`` the union ids of each graph's anchors (sets of them for P-GNN).
    """

    model: PositionModel
    view: View
    choice: AnyChoice | None
    val: dict[str, float]
    test: dict[str, float]
    history: list[dict[str, float]]
    record: dict[str, Any]
    node_names: list[list[str]]

    @property
    def anchors(self) -> list[Any] | None:
        """Anchors of each graph, ids in the disjoint union; None for models without anchors."""
        if self.choice is None:
            return None
        return self.choice.per_graph(self.view)

    @torch.no_grad()
    def embed(self, graphs: list[Data] | None = None) -> torch.Tensor:
        """Embeddings ``[N, d]`` of the trained graphs, or of others that the model has not seen."""
        if graphs is None:
            return _embed(self.model, self.view, self.choice)
        view = view_of(graphs)
        if view.x.size(1) != self.view.x.size(1):
            raise InputError(
                f"the model was trained on {self.view.x.size(1)} features, the graphs have {view.x.size(1)}"
            )
        self.model.eval()
        return _embed(self.model, view, self.model.pick(view))

    @torch.no_grad()
    def score(self, pairs: torch.Tensor, graphs: list[Data] | None = None) -> torch.Tensor:
        """Logits ``[P]`` of pairs ``[2, P]`` (ids in the disjoint union); higher means more likely."""
        h = self.embed(graphs)
        pairs = torch.as_tensor(pairs)
        if pairs.dim() != 2 or pairs.size(0) != 2:
            raise InputError(f"pairs must have the shape [2, P], found {list(pairs.shape)}")
        if pairs.numel() and not 0 <= int(pairs.min()) <= int(pairs.max()) < h.size(0):
            raise InputError(f"pairs name nodes {int(pairs.min())}..{int(pairs.max())} of 0..{h.size(0) - 1}")
        return self.model.score(h, pairs)


def _embed(model: PositionModel, view: View, choice: AnyChoice | None) -> torch.Tensor:
    model.eval()
    h: torch.Tensor = model(view, choice)
    return h


@dataclass
class _State:
    """Where training stands; all that resuming needs, since every epoch draws from a stream of its own."""

    epoch: int = 0
    best_epoch: int = -1
    best_auc: float = -1.0
    best_weights: dict[str, torch.Tensor] = field(default_factory=dict)
    best_choice: AnyChoice | None = None
    best_val: dict[str, float] = field(default_factory=dict)
    history: list[dict[str, float]] = field(default_factory=list)
    seconds: float = 0.0


def fit(
    model: PositionModel,
    task: Task,
    *,
    epochs: int | None = None,
    seed: int = 0,
    out: str | Path | None = None,
    progress: bool = False,
    tensorboard: str | Path | None = None,
) -> Result:
    """Train a model on a task.

    The weights and anchors of the epoch with the best validation AUC are kept, training stops when
    `patience` epochs have brought no better one, and the test pairs are read once, at the end.

    Args:
        model: from `build_model`; it is trained in place.
        task: what it may see and is asked.
        epochs: at most; the model's own setting if None.
        seed: of everything that is random in training.
        out: a folder for the run. An interrupted run in it is resumed, with the result it would have had; a
            finished one is an error.
        progress: show a bar with loss, validation AUC and time left.
        tensorboard: a folder for TensorBoard's events.
    """
    folder = None if out is None else Path(out)
    trainer = _Trainer(model, task, epochs or model.config.epochs, seed)
    state = _open_run(folder, trainer) if folder is not None else _State()
    with _fitting_threads(trainer.view):
        trainer.run(state, folder, progress)
        result = trainer.finish(state, folder)
    if tensorboard is not None:
        _write_tensorboard(tensorboard, result)
    return result


@contextmanager
def _fitting_threads(view: View) -> Iterator[None]:
    """One thread of torch where the graph is small: its threads wait for one another longer than they work."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1 if view.union.num_nodes <= ONE_THREAD_NODES else threads)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


class _Trainer:
    def __init__(self, model: PositionModel, task: Task, epochs: int, seed: int) -> None:
        if model.config.in_channels != features(task.graphs).size(1):
            raise InputError(
                f"the model expects {model.config.in_channels} features, the task's graphs have "
                f"{features(task.graphs).size(1)}; build the model for this task"
            )
        self.model, self.task, self.epochs, self.seed = model, task, epochs, seed
        self.config = model.config
        self.view = View(task.union, features(task.graphs))
        self.optimizer = torch.optim.AdamW(
            model.parameters(), lr=self.config.lr, weight_decay=self.config.weight_decay
        )
        self.hides = self.config.hide_positives and isinstance(task, LinkPrediction)
        self._folds: dict[int, tuple[torch.Tensor, View]] = {}

    def run(self, state: _State, folder: Path | None, progress: bool) -> None:
        """Train until the last epoch or until patience ends."""
        started = saved = time.perf_counter()
        before = state.seconds
        with torch.random.fork_rng(devices=[]), Bar("training", self.epochs, show=progress) as bar:
            try:
                while state.epoch < self.epochs and not self._out_of_patience(state):
                    loss = self._epoch(state.epoch)
                    state.epoch += 1
                    state.seconds = before + time.perf_counter() - started
                    if state.epoch % self.config.eval_every == 0 or state.epoch == self.epochs:
                        self._validate(state, loss)
                        bar.update(state.epoch, f"loss {loss:.3f}, validation AUC {state.best_auc:.4f}")
                    if folder is not None and time.perf_counter() - saved > CHECKPOINT_SECONDS:
                        _save_state(folder, self, state)
                        saved = time.perf_counter()
            except KeyboardInterrupt:
                if folder is not None:
                    _save_state(folder, self, state)
                raise

    def _out_of_patience(self, state: _State) -> bool:
        return state.epoch - max(state.best_epoch, 0) >= self.config.patience

    def _epoch(self, epoch: int) -> float:
        """One step; its random numbers depend on the seed and the number of the epoch alone."""
        stream = int(np.random.SeedSequence([self.seed, epoch]).generate_state(1, np.uint64)[0] >> 1)
        torch.manual_seed(stream)
        generator = torch.Generator().manual_seed(stream ^ 1)
        view, pairs, labels = self._batch(epoch, np.random.default_rng([self.seed, epoch]))
        self.model.train()
        exploration = 1 - epoch / self.epochs
        losses, log_probs = [], []
        for choice in self.model.explore(view, generator, exploration, self.config.samples):
            scores = self.model.score(self.model(view, choice), pairs)
            losses.append(torch.nn.functional.binary_cross_entropy_with_logits(scores, labels))
            log_probs.append(None if choice is None else choice.log_prob)
        total = torch.stack(losses).mean()
        if log_probs[0] is not None:
            total = total + _score_function(losses, log_probs)
        self.optimizer.zero_grad(set_to_none=True)
        total.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        return float(torch.stack(losses).mean().detach())

    def _batch(self, epoch: int, rng: np.random.Generator) -> tuple[View, torch.Tensor, torch.Tensor]:
        """The graph to see, the pairs to score on it, their labels."""
        split = self.task.train
        if not isinstance(self.task, LinkPrediction):
            return self.view, split.pairs, split.labels
        positives, view = split.pairs[:, split.labels == 1], self.view
        if self.hides:
            # Deviates: the paper scores training edges on a graph that contains them.
            positives, view = self._fold(epoch % self.task.folds)
        if self.config.fresh_negatives or self.hides:
            negatives = self.task.sample_negatives(positives.size(1), rng)
        else:
            negatives = split.pairs[:, split.labels == 0]
        labels = torch.cat([torch.ones(positives.size(1)), torch.zeros(negatives.size(1))])
        return view, torch.cat([positives, negatives], dim=1), labels

    def _fold(self, f: int) -> tuple[torch.Tensor, View]:
        assert isinstance(self.task, LinkPrediction)
        if f not in self._folds:
            fold = self.task.fold(f)
            self._folds[f] = fold.positives, self.view.without(fold.union)
        return self._folds[f]

    @torch.no_grad()
    def _validate(self, state: _State, loss: float) -> None:
        self.model.eval()
        choice = self.model.pick(self.view)
        metrics = self._measure(self.task.val, choice)
        state.history.append({"epoch": state.epoch, "loss": loss, **metrics})
        if metrics["auc"] > state.best_auc:
            state.best_auc, state.best_epoch, state.best_val = metrics["auc"], state.epoch, metrics
            state.best_choice = choice
            state.best_weights = {k: v.detach().clone() for k, v in self.model.state_dict().items()}

    @torch.no_grad()
    def _measure(self, split: Split, choice: AnyChoice | None) -> dict[str, float]:
        scores = self.model.score(_embed(self.model, self.view, choice), split.pairs)
        return evaluate(split, scores.numpy())

    def finish(self, state: _State, folder: Path | None) -> Result:
        """Go back to the best epoch and read the test pairs, once."""
        self.model.load_state_dict(state.best_weights)
        test = self._measure(self.task.test, state.best_choice)
        names = [
            [str(name) for name in graph.node_names] if "node_names" in graph else
            [str(v) for v in range(int(graph.num_nodes))]
            for graph in self.task.graphs
        ]  # fmt: skip
        result = Result(
            self.model, self.view, state.best_choice, state.best_val, test, state.history, {}, names
        )
        result.record.update(self._record(state, result))
        if folder is not None:
            _save_run(folder, result)
        return result

    def _record(self, state: _State, result: Result) -> dict[str, Any]:
        return {
            "seed": self.seed,
            "epochs": self.epochs,
            "epochs_run": state.epoch,
            "best_epoch": state.best_epoch,
            "val": state.best_val,
            "test": result.test,
            "history": state.history,
            "anchors": result.anchors,
            "task": {"name": self.task.name, "split": self.task.digest, "data": runs.data_hash(self.view)},
            "config": self.config.model_dump(),
            "seconds": round(state.seconds, 3),
            "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
            "versions": runs.versions(),
        }


def _score_function(losses: list[torch.Tensor], log_probs: list[Any]) -> torch.Tensor:
    """REINFORCE with the mean of the other samples as the baseline (of one sample: none is left, so zero)."""
    values = torch.stack(losses).detach()
    baseline = (values.sum() - values) / max(len(losses) - 1, 1)
    advantage = values - baseline if len(losses) > 1 else values
    return (advantage[:, None] * torch.stack(log_probs)).mean()


def _write_tensorboard(folder: str | Path, result: Result) -> None:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise MissingExtraError("tensorboard", "tensorboard", "--tensorboard") from None
    with SummaryWriter(str(folder)) as writer:
        for entry in result.history:
            for name, value in entry.items():
                if name != "epoch":
                    tag = "loss" if name == "loss" else f"validation/{name}"
                    writer.add_scalar(tag, value, int(entry["epoch"]))


# --- on disk


def _identity(trainer: _Trainer) -> dict[str, Any]:
    """What has to be equal for a run to be resumed."""
    return {
        "config": trainer.config.model_dump(),
        "split": trainer.task.digest,
        "seed": trainer.seed,
        "epochs": trainer.epochs,
    }


def _open_run(folder: Path, trainer: _Trainer) -> _State:
    """A new run, or the state of one that was interrupted."""
    runs.check_folder(folder)
    if (folder / runs.RECORD).exists():
        raise InputError(f"{folder} holds a finished run; choose another --out or pass --force to replace it")
    if not (folder / runs.STATE).exists():
        if folder.exists() and any(folder.iterdir()):
            raise InputError(f"{folder} is not empty and holds no run of psgnn; choose another --out")
        folder.mkdir(parents=True, exist_ok=True)
        return _State()
    tensors, metadata = runs.read_tensors(folder / runs.STATE)
    if metadata.get("identity") != _identity(trainer):
        raise InputError(
            f"{folder} holds an interrupted run of other settings, data or seed; "
            "repeat its command to resume it, or choose another --out"
        )
    return _load_state(tensors, metadata, trainer)


def _save_state(folder: Path, trainer: _Trainer, state: _State) -> None:
    tensors = {f"model.{key}": value for key, value in trainer.model.state_dict().items()}
    tensors |= {f"best.{key}": value for key, value in state.best_weights.items()}
    tensors |= choice_tensors(state.best_choice)
    for index, slots in trainer.optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{index}.{slot}": torch.as_tensor(value) for slot, value in slots.items()}
    numbers = {key: getattr(state, key) for key in ("epoch", "best_epoch", "best_auc", "best_val", "seconds")}
    runs.write_tensors(
        folder / runs.STATE, tensors, identity=_identity(trainer), numbers=numbers, history=state.history
    )


def _load_state(tensors: dict[str, torch.Tensor], metadata: dict[str, Any], trainer: _Trainer) -> _State:
    def part(prefix: str) -> dict[str, torch.Tensor]:
        return {key[len(prefix) :]: value for key, value in tensors.items() if key.startswith(prefix)}

    trainer.model.load_state_dict(part("model."))
    optimizer = trainer.optimizer.state_dict()
    slots: dict[int, dict[str, torch.Tensor]] = {}
    for key, value in part("optimizer.").items():
        index, slot = key.split(".", 1)
        slots.setdefault(int(index), {})[slot] = value
    optimizer["state"] = slots
    trainer.optimizer.load_state_dict(optimizer)
    return _State(
        **metadata["numbers"],
        history=metadata["history"],
        best_weights=part("best."),
        best_choice=choice_of(tensors),
    )


def _save_run(folder: Path, result: Result) -> None:
    """The record comes last: a run that has one is whole."""
    runs.write_config(folder, result.model.config)
    runs.write_view(folder, result.view, result.node_names)
    tensors = {f"model.{key}": value for key, value in result.model.state_dict().items()}
    runs.write_tensors(folder / runs.WEIGHTS, tensors | choice_tensors(result.choice))
    runs.write_record(folder, result.record)
    (folder / runs.STATE).unlink(missing_ok=True)


def remove_run(folder: Path) -> None:
    """Remove the files of a run, and nothing else; an empty folder stays."""
    runs.check_folder(folder)
    for name in (runs.RECORD, runs.STATE, runs.CONFIG, runs.WEIGHTS, runs.GRAPH):
        (folder / name).unlink(missing_ok=True)


def load(run_dir: str | Path) -> Result:
    """The result of a finished run; its embeddings and scores are bit-identical to those after training."""
    folder = Path(run_dir)
    record = runs.read_record(folder)
    config = runs.read_config(folder)
    view, names = runs.read_view(folder)
    tensors, _ = runs.read_tensors(folder / runs.WEIGHTS)
    model = model_of(config)
    try:
        model.load_state_dict({k[6:]: v for k, v in tensors.items() if k.startswith("model.")})
        metrics = record["val"], record["test"], record["history"]
    except (RuntimeError, KeyError) as error:
        reason = " ".join(str(error).split())[:150]
        raise InputError(f"{folder}: the weights do not fit the settings ({reason}); train again") from None
    return Result(model, view, choice_of(tensors), *metrics, record, names)
