"""Scorers of pairs that need no training: rules, ready-made weights, and the search for missing links."""

from typing import TYPE_CHECKING

from psgnn.doors import door

if TYPE_CHECKING:
    from psgnn.distances._oracle import hops_between
    from psgnn.scoring._answers import answer, partners_of_all, predict, similar
    from psgnn.scoring._calibration import Calibration, calibrate
    from psgnn.scoring._changes import Changes
    from psgnn.scoring._evaluate import evaluate_against, evaluate_links
    from psgnn.scoring._explain import explain
    from psgnn.scoring._pretrained import Pretrained, PretrainedScorer, pretrained
    from psgnn.scoring._rules import HEURISTICS, score_pairs
    from psgnn.scoring._scorer import Scorer
    from psgnn.scoring._search import top_links

_MODULE_OF = {
    "Calibration": "psgnn.scoring._calibration",
    "Changes": "psgnn.scoring._changes",
    "HEURISTICS": "psgnn.scoring._rules",
    "Pretrained": "psgnn.scoring._pretrained",
    "PretrainedScorer": "psgnn.scoring._pretrained",
    "Scorer": "psgnn.scoring._scorer",
    "answer": "psgnn.scoring._answers",
    "calibrate": "psgnn.scoring._calibration",
    "evaluate_against": "psgnn.scoring._evaluate",
    "evaluate_links": "psgnn.scoring._evaluate",
    "explain": "psgnn.scoring._explain",
    "hops_between": "psgnn.distances._oracle",
    "partners_of_all": "psgnn.scoring._answers",
    "predict": "psgnn.scoring._answers",
    "pretrained": "psgnn.scoring._pretrained",
    "score_pairs": "psgnn.scoring._rules",
    "similar": "psgnn.scoring._answers",
    "top_links": "psgnn.scoring._search",
}

__all__ = [
    "HEURISTICS",
    "Calibration",
    "Changes",
    "Pretrained",
    "PretrainedScorer",
    "Scorer",
    "answer",
    "calibrate",
    "evaluate_against",
    "evaluate_links",
    "explain",
    "hops_between",
    "partners_of_all",
    "predict",
    "pretrained",
    "score_pairs",
    "similar",
    "top_links",
]

__getattr__, __dir__ = door(__name__, _MODULE_OF)
