"""The negatives of P-GNN's released code, and what they cost: for comparison only.

That code (github.com/JiaxuanYou/P-GNN at 74a7d3e, ``get_edge_mask_link_negative`` of ``utils.py``) keeps every
positive in one direction and draws negatives, independently, from the *ordered* pairs that are not among them. So
the reverse of a positive is a negative like any other, with the label 0 on the same two nodes. Negatives of val and
test avoid the positives of all splits, those of train only the positives of train: a held-out positive can be a
training negative in both directions.

Here pairs are unordered, so a pool holds what is drawn in two directions twice and what is drawn in one once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from psgnn.graph._graph import IntArray
from psgnn.graph._sampling import Joined, ListedPairs, Pool

if TYPE_CHECKING:
    from psgnn.tasks._base import Task

RELEASED = "pgnn-released"


def released_pools(
    positives: Pool, others: Pool, drawn: Sequence[IntArray], counts: IntArray
) -> tuple[Joined, Joined, Joined]:
    """What the negatives of train, val and test are drawn from.

    Args:
        positives: all pairs that are positives by the data.
        others: all pairs that are not.
        drawn: the positives of train, val and test, ``[2, P]`` each, graph by graph.
        counts: their numbers in every graph, ``[G, 3]``.
    """
    held_out = [ListedPairs(drawn[part], counts[:, part]) for part in (1, 2)]
    evaluation = Joined(positives, others, others)
    return Joined(positives, *held_out, others, others), evaluation, evaluation


def ceiling(task: Task) -> float:
    r"""Test AUC, the mean over graphs, of a scorer that knows which pairs are positives by the data.

    It is 1 but for the negatives ``"pgnn-released"``: of a graph's test negatives a share :math:`r` are positives in
    truth, they tie with all positives, and the AUC is :math:`1 - r / 2`.

    Of those who go by what a pair is nobody does better, but for luck: which true pair is a positive of the test and
    which a negative is chance. A model passes it by telling the parts of the split apart; in link prediction it can
    learn that what it sees as an edge is no test positive.
    """
    split = task.test
    negative = split.labels == 0
    graph = split.graph_ids[negative]
    wrong = np.bincount(graph, task.true_labels(split.pairs[:, negative]))
    counts = np.bincount(graph)
    asked = counts > 0  # not all graphs are, where whole graphs are held out
    return float((1 - wrong[asked] / counts[asked] / 2).mean())
