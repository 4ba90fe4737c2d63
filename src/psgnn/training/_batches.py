"""What a training step sees: the graph, the pairs to score on it, their labels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from psgnn.graph._graph import IntArray
from psgnn.graph._pair_space import asked
from psgnn.models._config import ModelConfig
from psgnn.models._view import TensorView
from psgnn.positions._context import RIVAL
from psgnn.tasks import LinkPrediction, Task

MOST_STEP_PAIRS = 32_768
MOST_STEPS = 1500
# A fold of a large graph takes long to measure and much memory to keep, and its links are many: few folds are used, one
# after the other.
USED_FOLDS = 3


LABELS = 1, 0, RIVAL
Batch = tuple[TensorView, IntArray, npt.NDArray[np.float32]]  # the view, pairs [2, P] and labels [P]


@dataclass(frozen=True)
class Part:
    """Some of the graphs of a task: a view of them alone, and where in it the nodes of the task are, ``[N]``."""

    graphs: IntArray
    view: TensorView
    node: IntArray


class Batches:
    """The batches of a training run. Each depends on its epoch and a generator alone.

    On many graphs, where anchors need not be those of all of them (``whole``), a step sees a part of the graphs, and
    parts take turns.
    """

    rounds = 1  # steps until every positive has come once, where a step has all that are hidden together

    def __init__(
        self, task: Task, view: TensorView, config: ModelConfig, epochs: int, *, whole: bool = True
    ) -> None:
        self.task, self.view, self.config, self.epochs, self.whole = task, view, config, epochs, whole

    def draw(self, epoch: int, rng: np.random.Generator) -> Batch:
        """The batch of an epoch: view, pairs ``[2, P]`` and labels ``[P]``."""
        size = step_pairs(self.config, self.task)
        if self.parts:
            part = self.parts[epoch % len(self.parts)]
            some = self._from_every_graph(size, rng, part.graphs)
            return part.view, part.node[self.task.train.pairs[:, some]], self.task.train.labels[some]
        whole = self.config.batch == "all" and size == self.task.train.labels.size
        return self.pairs(epoch, rng, None if whole else size)

    def pairs(self, epoch: int, rng: np.random.Generator, size: int | None) -> Batch:
        """The graph to see, the pairs to score on it (a random `size` of them, or all), their labels."""
        split = self.task.train
        if size is None:
            return self.view, split.pairs, split.labels
        some = self._from_every_graph(size, rng, self._trained_graphs)
        return self.view, split.pairs[:, some], split.labels[some]

    @property
    def large(self) -> bool:
        """Whether the graph is so large that memory and time are saved."""
        return self.view.union.large

    @cached_property
    def parts(self) -> list[Part]:
        """Parts of the graphs of about `step_nodes` nodes each, shuffled; none if one is all."""
        most, graphs = self.config.step_nodes, self._trained_graphs
        if self.whole or most == 0:
            return []
        count = min(math.ceil(self.view.union.sizes[graphs].sum() / most), graphs.size)
        shuffled = np.random.default_rng(graphs.size).permutation(graphs)
        return [self._part(np.sort(some)) for some in np.array_split(shuffled, count)] if count > 1 else []

    def _part(self, graphs: IntArray) -> Part:
        inside = np.isin(self.view.union.graph_of, graphs)
        return Part(graphs, self.view.only(graphs, inside), np.cumsum(inside) - 1)

    @cached_property
    def _pair_counts(self) -> IntArray:
        return np.bincount(self.task.train.graph_ids)

    @cached_property
    def _trained_graphs(self) -> IntArray:
        return np.flatnonzero(self._pair_counts)

    def _from_every_graph(self, size: int, rng: np.random.Generator, graphs: IntArray) -> IntArray:
        """Places of random training pairs, as many from each graph: AUC is the mean over the graphs."""
        counts = self._pair_counts
        graph = rng.choice(graphs, size)
        within = (rng.random(size) * counts[graph]).astype(np.int64)
        return np.asarray(self._by_graph[(np.cumsum(counts) - counts)[graph] + within])

    @cached_property
    def _by_graph(self) -> IntArray:
        return np.argsort(self.task.train.graph_ids, kind="stable")


class LinkBatches(Batches):
    """Batches of links, with negatives that are drawn for the step.

    If the settings ask for it, positives are those of a fold and the graph is without them; a view of it is ``kept`` by
    fold, with all that was measured there.
    """

    task: LinkPrediction

    def __init__(self, task: LinkPrediction, view: TensorView, config: ModelConfig, epochs: int) -> None:
        super().__init__(task, view, config, epochs)
        self.hides = config.hide_positives
        self.kept: dict[int, tuple[IntArray, TensorView]] = {}

    @property
    def rounds(self) -> int:  # type: ignore[override]
        """As many as there are folds, where links are hidden."""
        return len(self.filled_folds) if self.hides else 1

    def pairs(self, epoch: int, rng: np.random.Generator, size: int | None) -> Batch:
        """The graph to see, links and other pairs to score on it (a random `size` of them, or all), their labels."""
        split = self.task.train
        if self.hides:
            # Deviates: the paper scores training edges on a graph that contains them.
            positives, view = self.fold(self.fold_of_step(epoch))
        else:
            positives, view = self._positives, self.view
        if size is not None:
            count = max(size // (1 + self.config.negatives), 1)
            positives = positives[:, rng.integers(positives.shape[1], size=count)]
        if self.config.fresh_negatives or self.hides or size is not None:
            negatives = self.task.sample_negatives(positives.shape[1] * self.config.negatives, rng)
        else:
            negatives = split.pairs[:, split.labels == 0]
        parts = [positives, negatives]
        if self.config.rivals:
            parts = [asked(self.task.space, positives), negatives, self.task.rivals(positives, rng)]
        sizes = [part.shape[1] for part in parts]
        labels = np.repeat(np.array(LABELS[: len(parts)], np.float32), sizes)
        pairs = np.concatenate(parts, axis=1)
        if self.config.rivals:
            # Links beside their rivals: each process of a job gets a run of the pairs.
            order = np.argsort(np.concatenate([np.arange(size) / size for size in sizes]), kind="stable")
            pairs, labels = pairs[:, order], labels[order]
        return view, pairs, labels

    @cached_property
    def _positives(self) -> IntArray:
        return self.task.train.pairs[:, self.task.train.labels == 1]

    @cached_property
    def filled_folds(self) -> list[int]:
        """Folds with something to predict; of few training edges, some have nothing."""
        wanted = range(USED_FOLDS if self.large else self.task.folds)
        return [f for f in wanted if self.task.fold(f).positives.size]

    def fold_of_step(self, step: int) -> int:
        """Folds take turns; those of a large graph have their part of training each."""
        folds = self.filled_folds
        return folds[
            min(step * len(folds) // self.epochs, len(folds) - 1) if self.large else step % len(folds)
        ]

    def fold(self, f: int) -> tuple[IntArray, TensorView]:
        """The positives of a fold, and the view without them."""
        if f not in self.kept:
            if self.large:
                for _, view in self.kept.values():
                    view.forget()
                self.kept.clear()
            fold = self.task.fold(f)
            self.kept[f] = fold.positives, self.view.without(fold.union)
        return self.kept[f]


def batches_of(task: Task, view: TensorView, config: ModelConfig, epochs: int, *, whole: bool) -> Batches:
    """The batches of a training run on a task."""
    if isinstance(task, LinkPrediction):
        return LinkBatches(task, view, config, epochs)
    return Batches(task, view, config, epochs, whole=whole)


def step_pairs(config: ModelConfig, task: Task) -> int:
    """How many training pairs a step has. The more there are to learn from, the more of them."""
    count = task.train.labels.size
    if config.batch == "all":
        return min(count, MOST_STEP_PAIRS)
    return min(max(count // 50, 256), 2048) if config.batch == "auto" else config.batch


def number_of_steps(config: ModelConfig, task: Task) -> int:
    """The epochs of the settings, or more where that few steps would not see all the training pairs."""
    if config.batch == "all" or task.union.large:
        return config.epochs
    passes = math.ceil(config.passes * task.train.labels.size / step_pairs(config, task))
    return max(config.epochs, min(passes, MOST_STEPS))
