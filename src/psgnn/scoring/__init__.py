"""Scorers of pairs that need no training: rules, ready-made weights, and the search for missing links."""

from typing import TYPE_CHECKING

from psgnn.doors import door

if TYPE_CHECKING:
    from psgnn.scoring._answers import answer, partners_of_all, predict, similar
    from psgnn.scoring._calibration import Calibration, calibrate
    from psgnn.scoring._changes import Changes
    from psgnn.scoring._evaluate import evaluate_against, evaluate_links
    from psgnn.scoring._explain import explain
    from psgnn.scoring._pretrained import Pretrained, PretrainedScorer, pretrained
    from psgnn.scoring._rules import HEURISTICS, score_pairs
    from psgnn.scoring._scorer import Scorer
    from psgnn.scoring._search import top_links

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
    "partners_of_all",
    "predict",
    "pretrained",
    "score_pairs",
    "similar",
    "top_links",
]

__getattr__, __dir__ = door(
    __name__,
    {
        "_answers": ["answer", "partners_of_all", "predict", "similar"],
        "_calibration": ["Calibration", "calibrate"],
        "_changes": ["Changes"],
        "_evaluate": ["evaluate_against", "evaluate_links"],
        "_explain": ["explain"],
        "_pretrained": ["Pretrained", "PretrainedScorer", "pretrained"],
        "_rules": ["HEURISTICS", "score_pairs"],
        "_scorer": ["Scorer"],
        "_search": ["top_links"],
    },
)
