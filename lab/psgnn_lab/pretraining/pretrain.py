"""Learn from synthetic graphs to tell links, or nodes that belong together, from other pairs, on any graph."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch.nn.functional import binary_cross_entropy_with_logits

from psgnn.console import Bar
from psgnn.errors import InputError, unknown_name
from psgnn.models._channels import ChannelEncoder
from psgnn.models._config import make_config
from psgnn.models._decoders import ContextDecoder
from psgnn.models._models import PositionModel, model_of
from psgnn.positions._context import SHAPE
from psgnn.scoring._network import SUFFIX, WEIGHTS, feature_definition, parse_weights, read_weights
from psgnn.scoring._pretrained import Pretrained, from_weights
from psgnn.tasks._metrics import roc_auc
from psgnn.training._checkpoints import State, open_run, save_state
from psgnn.training._fit import CHECKPOINT_SECONDS
from psgnn.training._folder import STATE, alone_in
from psgnn.training._runs import read_tensors, versions, write_tensors
from psgnn.training._steps import one_cycle, one_thread
from psgnn_lab.pretraining.corpus import CHECKED, make_corpus
from psgnn_lab.pretraining.store import LessonStore

GRAPHS, STEPS = 200, 8000
LEFT_OUT_GRAPHS, LEFT_OUT_STEPS = 40, 3000
BATCH = 1024  # pairs of a step, of random graphs
EMBEDDED = 256  # pairs of one graph, for the embeddings
LR = 3e-3
CHECK_EVERY = 500


def pretrain(
    folder: str | Path,
    *,
    task: str = "link",
    seed: int = 0,
    graphs: int = GRAPHS,
    steps: int = STEPS,
    without: Sequence[str] = (),
    large: bool = True,
    resumable: bool = True,
    show_progress: bool = False,
) -> Path:
    """Make the weights ``best-link`` or ``best-pair`` in a folder, and give their path; an interrupted run goes on.

    Args:
        folder: for the weights and, until they are there, for the state of training.
        task: ``link``, or ``pair`` for nodes that belong together.
        seed: of the graphs, the first weights and the order of what is learned.
        graphs: The number from every family.
        steps: of training.
        without: families to leave out, to see how well the others prepare for them.
        large: whether one graph of ten is large, which takes most of the time; of task link.
        resumable: whether what is measured is kept in the folder until the weights are there (over 1 GB), for a run
            that is interrupted.
        show_progress: show bars with the time left.
    """
    if f"best-{task}" not in WEIGHTS:
        raise unknown_name("task", task, [name.removeprefix("best-") for name in WEIGHTS])
    folder = Path(folder)
    # One thread adds up in one order, so that the same seed gives the same weights; and many graphs are small.
    with one_thread(), torch.random.fork_rng(devices=[]), alone_in(folder):
        made = _Pretraining(task, seed, graphs, steps, without, large)
        return made.run(folder, show_progress, resumable=resumable)


class _Pretraining:
    def __init__(
        self, task: str, seed: int, graphs: int, steps: int, without: Sequence[str], large: bool
    ) -> None:
        config = make_config("psgnn", task, 1, "best", seed, init="pretrained")
        self.name = f"best-{task}"
        self.model: PositionModel = model_of(config)
        assert isinstance(self.model.decoder, ContextDecoder)
        self.decoder = self.model.decoder
        self.seed, self.steps, self.graphs, self.without, self.large = seed, steps, graphs, without, large
        made = {"seed": seed, "graphs": graphs, "steps": steps, "without": sorted(without), "large": large}
        self.identity: dict[str, Any] = {"task": task, **made, "features": feature_definition()}
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=LR, weight_decay=config.weight_decay)
        self.whole = True  # weights and the number of the step belong together

    def _prepare(self, store: LessonStore, show_progress: bool) -> None:
        """Draw the graphs and measure them, or take what the store has of them."""
        corpus = make_corpus(
            self.model,
            self.graphs,
            self.seed,
            without=self.without,
            large=self.large,
            store=store,
            show_progress=show_progress,
        )
        self.checked = corpus[CHECKED - 1 :: CHECKED]
        self.lessons = [lesson for i, lesson in enumerate(corpus) if i % CHECKED != CHECKED - 1]
        self.kept = [lesson for lesson in self.lessons if lesson.view is not None]
        self.statistics = torch.cat([lesson.statistics for lesson in self.lessons])
        self.context = torch.cat([lesson.context for lesson in self.lessons])
        self.labels = torch.cat([lesson.labels for lesson in self.lessons])
        sizes = torch.tensor([lesson.labels.numel() for lesson in self.lessons])
        self.starts, self.sizes = sizes.cumsum(0) - sizes, sizes

    def run(self, folder: Path, show_progress: bool, *, resumable: bool) -> Path:
        """Train until the last step and write the weights."""
        about = {key: self.identity[key] for key in ("seed", "graphs", "large", "features")}
        store = LessonStore(folder if resumable else None, {"task": self.model.config.task, **about})
        if (folder / f"{self.name}{SUFFIX}").exists():
            self._clear(folder, store)  # a run that was killed just before its end
            raise InputError(f"{folder} has the weights {self.name}; choose another --out or remove them")
        state = open_run(folder, self.identity, self.model, self.optimizer, otherwise="choose another --out")
        self._prepare(store, show_progress)
        if state.epoch == 0:
            self._calibrate()
        saved = time.perf_counter()
        with Bar("pretraining", self.steps, show=show_progress) as bar:
            try:
                self._check_if_due(state)
                while state.epoch < self.steps:
                    state.loss = self._step(state.epoch)
                    state.epoch += 1
                    self.whole = True
                    self._check_if_due(state)
                    if state.epoch % 20 == 0:
                        known = state.history[-1]["auc"] if state.history else float("nan")
                        bar.update(state.epoch, f"loss {state.loss:.3f}, AUC on other graphs {known:.4f}")
                    if time.perf_counter() - saved > CHECKPOINT_SECONDS:
                        self._save(folder, state)
                        saved = time.perf_counter()
            except KeyboardInterrupt:
                if self.whole:  # halfway through a change of the weights the last checkpoint stands
                    self._save(folder, state)
                raise
        path = self._write(folder, state)
        self._clear(folder, store)
        return path

    def _clear(self, folder: Path, store: LessonStore) -> None:
        """Remove what a run of these settings no longer needs once its weights are there."""
        if (folder / STATE).exists():
            if read_tensors(folder / STATE)[1].get("identity") != self.identity:
                return
            (folder / STATE).unlink()
        store.clear()

    def _save(self, folder: Path, state: State) -> None:
        save_state(folder, state, self.identity, self.model, self.optimizer)

    def _calibrate(self) -> None:
        self.decoder.standardise_by(self.statistics, torch.stack([lesson.shape for lesson in self.lessons]))
        views = [(lesson.view, lesson.choice) for lesson in self.kept if lesson.view is not None]
        encoder = self.model.encoder
        assert isinstance(encoder, ChannelEncoder)
        assert encoder.traits is not None
        traits = [torch.from_numpy(self.model.positions(*each).traits_of(slice(None))) for each in views]
        encoder.traits.standardise_by(torch.cat(traits))

    def _step(self, step: int) -> float:
        """One step; its random numbers depend on the seed and the number of the step alone."""
        rng = np.random.default_rng([self.seed, step])
        torch.manual_seed(int(rng.integers(2**62)))
        self.model.train()
        for group in self.optimizer.param_groups:
            group["lr"] = LR * one_cycle(step / self.steps)
        chosen = torch.from_numpy(rng.integers(len(self.lessons), size=BATCH))
        rows = self.starts[chosen] + (torch.from_numpy(rng.random(BATCH)) * self.sizes[chosen]).long()
        context = self.context[rows]
        # Half of the graphs come without their ratios, so that one network serves with and without.
        strict = torch.from_numpy(rng.random(len(self.lessons)) < 0.5)[chosen]
        context[strict, : -len(SHAPE)] = 0
        scores = self.decoder.read(self.statistics[rows], context)
        loss = binary_cross_entropy_with_logits(scores, self.labels[rows][:, None].expand_as(scores))
        total = loss + self._embedding_loss(rng)
        self.optimizer.zero_grad(set_to_none=True)
        total.backward()  # type: ignore[no-untyped-call]
        self.whole = False
        self.optimizer.step()
        return float(loss.detach())

    def _embedding_loss(self, rng: np.random.Generator) -> torch.Tensor:
        lesson = self.kept[int(rng.integers(len(self.kept)))]
        assert lesson.view is not None
        assert self.model.embedding_decoder is not None
        some = torch.from_numpy(rng.permutation(lesson.labels.numel())[:EMBEDDED])
        embedded = self.model.embedded(lesson.view, lesson.choice, lesson.pairs[:, some])
        return binary_cross_entropy_with_logits(self.model.embedding_decoder(*embedded), lesson.labels[some])

    def _check_if_due(self, state: State) -> None:
        """Every some steps, and after the last; a run that goes on may have been about to."""
        due = state.epoch % CHECK_EVERY == 0 or state.epoch == self.steps
        if state.epoch == 0 or not due or (state.history and state.history[-1]["step"] == state.epoch):
            return
        state.history.append({"step": state.epoch, "loss": state.loss, **self.check()})

    @torch.no_grad()
    def check(self) -> dict[str, float]:
        """Mean AUC on the graphs that are kept from training: strict, and with the graphs' own ratios."""
        self.model.eval()
        found: dict[str, list[float]] = {"auc_strict": [], "auc": []}
        for lesson in self.checked:
            for name, values in found.items():
                context = lesson.context.clone()
                if name == "auc_strict":
                    context[:, : -len(SHAPE)] = 0
                scores = self.decoder.read(lesson.statistics, context).mean(dim=1)
                values.append(roc_auc(lesson.labels.numpy(), scores.numpy()))
        return {name: fmean(values) for name, values in found.items()}

    def _write(self, folder: Path, state: State) -> Path:
        shapes = torch.stack([lesson.shape for lesson in self.lessons])
        low, high = shapes.amin(dim=0).tolist(), shapes.amax(dim=0).tolist()
        path = folder / f"{self.name}{SUFFIX}"
        write_tensors(
            path,
            self.model.state_dict(),
            name=self.name,
            features=self.identity["features"],
            config=self.model.config.model_dump(),
            made={key: value for key, value in self.identity.items() if key != "features"},
            range={name: [a, b] for name, a, b in zip(SHAPE, low, high, strict=True)},
            check=state.history[-1],
            machine=machine(),
        )
        return path


@lru_cache(maxsize=2)
def left_out(family: str) -> Pretrained:
    """A model that has never seen a graph of this family, from a smaller training than the shipped weights had."""
    with TemporaryDirectory() as folder:
        path = pretrain(
            folder,
            graphs=LEFT_OUT_GRAPHS,
            steps=LEFT_OUT_STEPS,
            without=[family],
            large=False,
            resumable=False,
        )
        return from_weights(parse_weights(path.read_bytes(), path.stem), path.stem)


def machine() -> dict[str, str]:
    """What the last bits of weights depend on: instructions of the processor, and versions of what computes."""
    known = versions()
    return {
        "processor": torch.backends.cpu.get_cpu_capability(),
        **{name: known[name] for name in ("torch", "numpy", "numba")},
    }


@dataclass(frozen=True)
class Comparison:
    """Weights that were made beside those of their name that come with the package.

    ``difference`` is the largest of any number, infinite where they are not of one shape. ``auc`` and ``shipped_auc``
    are what each had, strict, on the graphs that were kept from training; ``made_on`` is the `machine` of the shipped
    ones, if they say so.
    """

    difference: float
    auc: float
    shipped_auc: float
    made_on: dict[str, str] | None


def compare_with_shipped(path: Path) -> Comparison:
    """The weights in a file beside those that come with the package."""
    made = parse_weights(path.read_bytes(), str(path))
    shipped = read_weights(made.about["name"])
    shapes = [{key: value.shape for key, value in each.tensors.items()} for each in (made, shipped)]
    difference = float("inf")
    if shapes[0] == shapes[1]:
        difference = max(
            float(np.abs(value.astype(np.float64) - shipped.tensors[key]).max())
            for key, value in made.tensors.items()
        )
    auc, shipped_auc = (each.about["check"]["auc_strict"] for each in (made, shipped))
    return Comparison(difference, auc, shipped_auc, shipped.about.get("machine"))
