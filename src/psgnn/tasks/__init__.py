"""What a model may see and what it is asked: splits of node pairs, without leaks.

::

    task = LinkPrediction(graph, val=0.1, test=0.1, seed=0)
    task.graphs[0].edges        # the visible graph: held-out edges are gone
    task.test.pairs             # int64 [2, P], u < v, ids in the disjoint union of the graphs
    task.test.labels            # float32 [P], 1 for positives and 0 for negatives

Pairs are unordered, positives and negatives never meet, and no pair is in two splits (but for the training
negatives of :class:`OfficialLinks`, and for ``negatives="pgnn-released"``, which breaks all of that on purpose:
:func:`ceiling`). A seed gives the same task bit by bit. Every graph has random streams of its own, numbered by its
place in the input, so that its split does not depend on the other graphs.
"""

from psgnn.tasks._base import LabelledPairs, Task
from psgnn.tasks._link import NEGATIVE_RULES, Fold, LinkPrediction
from psgnn.tasks._negatives import ceiling
from psgnn.tasks._official import OfficialLinks, link_task
from psgnn.tasks._pair import PairClassification

__all__ = [
    "NEGATIVE_RULES",
    "Fold",
    "LabelledPairs",
    "LinkPrediction",
    "OfficialLinks",
    "PairClassification",
    "Task",
    "ceiling",
    "link_task",
]
