"""Scorers of pairs that need no training: rules, ready-made weights, and the search for missing links."""

from psgnn.scoring._pretrained import Pretrained, PretrainedScorer, pretrained
from psgnn.scoring._rules import HEURISTICS, hops_between, score_pairs
from psgnn.scoring._scorer import Scorer
from psgnn.scoring._search import top_links

__all__ = [
    "HEURISTICS",
    "Pretrained",
    "PretrainedScorer",
    "Scorer",
    "hops_between",
    "pretrained",
    "score_pairs",
    "top_links",
]
