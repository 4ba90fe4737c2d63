"""What a run was asked, on disk: its validation and test pairs, and the classes of its nodes where they are known.

RUN/heldout.safetensors. Models and weights do without it; a report shows scores and compares rules with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from psgnn.errors import InputError
from psgnn.graph._graph import GraphBatch, IntArray, node_classes
from psgnn.tasks import LabelledPairs, Task
from psgnn.training import _runs as runs
from psgnn.training._folder import HELD_OUT

MOST_KEPT_PAIRS = 500_000  # of a split; a few megabytes


@dataclass(frozen=True, eq=False)
class HeldOut:
    """The pairs of ``val`` and ``test``, ``whole`` unless they are a random part, and ``classes`` int64 ``[N]``.

    A node of unknown class has -1; ``classes`` is None where no class is known.
    """

    val: LabelledPairs
    test: LabelledPairs
    whole: bool
    classes: IntArray | None


def part_of(split: LabelledPairs, most: int, seed: int) -> LabelledPairs:
    """The split, or a random part of it."""
    count = split.labels.size
    if count <= most:
        return split
    if split.own_negatives:
        return _some_positives(split, most // (1 + split.own_negatives), seed)
    some = np.sort(np.random.default_rng(seed).choice(count, most, replace=False))
    return LabelledPairs(split.pairs[:, some], split.labels[some], split.graph_ids[some])


def _some_positives(split: LabelledPairs, most: int, seed: int) -> LabelledPairs:
    """Random positives, one at least, each with all its own negatives."""
    positives, each = int(split.labels.sum()), split.own_negatives
    some = np.sort(np.random.default_rng(seed).choice(positives, max(most, 1), replace=False))
    negatives = positives + (some[:, None] * each + np.arange(each)).ravel()
    places = np.concatenate([some, negatives])
    return LabelledPairs(split.pairs[:, places], split.labels[places], split.graph_ids[places], each)


def write_held_out(folder: Path, task: Task, seed: int = 0) -> None:
    """Write the pairs that the model is measured on, or a random part of very many."""
    tensors: dict[str, torch.Tensor] = {}
    for name, split in (("val", task.val), ("test", task.test)):
        part = part_of(split, MOST_KEPT_PAIRS, seed)
        tensors[f"{name}.pairs"] = torch.from_numpy(part.pairs.astype(np.int32))
        tensors[f"{name}.labels"] = torch.from_numpy(part.labels.astype(np.uint8))
    classes = _classes(task)
    if classes is not None:
        tensors["classes"] = torch.from_numpy(classes)
    whole = max(task.val.labels.size, task.test.labels.size) <= MOST_KEPT_PAIRS
    runs.write_tensors(folder / HELD_OUT, tensors, whole=whole)


def read_held_out(folder: Path, union: GraphBatch) -> HeldOut | None:
    """What `write_held_out` wrote for the run over this union; None if the run has none of it."""
    path = folder / HELD_OUT
    if not path.exists():
        return None
    tensors, metadata = runs.read_tensors(path)
    try:
        val, test = (_split(tensors, name, union) for name in ("val", "test"))
        classes = tensors.get("classes")
        if classes is not None and (classes.dtype != torch.int64 or classes.shape != (union.num_nodes,)):
            raise ValueError(f"classes of the shape {list(classes.shape)}")
    except (KeyError, ValueError) as error:
        raise InputError(
            f"{path} does not hold pairs of this run ({error}); train again or remove the file"
        ) from None
    return HeldOut(val, test, metadata.get("whole") is True, None if classes is None else classes.numpy())


def _split(tensors: dict[str, torch.Tensor], name: str, union: GraphBatch) -> LabelledPairs:
    pairs, labels = tensors[f"{name}.pairs"], tensors[f"{name}.labels"]
    if pairs.dtype != torch.int32 or labels.dtype != torch.uint8 or labels.dim() != 1:
        raise ValueError(f"{name} is of another type")
    if pairs.shape != (2, labels.numel()) or not labels.numel():
        raise ValueError(f"{name} has {list(pairs.shape)} pairs for {labels.numel()} labels")
    if int(pairs.min()) < 0 or int(pairs.max()) >= union.num_nodes or int(labels.max()) > 1:
        raise ValueError(f"{name} names a node or a label that there is not")
    ids = union.graph_of[pairs.numpy()]
    if not np.array_equal(ids[0], ids[1]):
        raise ValueError(f"{name} has a pair across two graphs")
    return LabelledPairs(pairs.numpy().astype(np.int64), labels.numpy().astype(np.float32), ids[0])


def _classes(task: Task) -> IntArray | None:
    """The classes of all nodes, where every graph has them."""
    found = []
    for graph in task.graphs:
        classes = node_classes(graph)
        if classes is None:
            return None
        found.append(classes)
    return np.concatenate(found)
