"""Scorers of pairs that need no training: rules, ready-made weights, and the search for missing links."""

from typing import TYPE_CHECKING

from psgnn.doors import door

if TYPE_CHECKING:
    from psgnn.scoring._pretrained import Pretrained, PretrainedScorer, pretrained
    from psgnn.scoring._rules import HEURISTICS, hops_between, score_pairs
    from psgnn.scoring._scorer import Scorer
    from psgnn.scoring._search import top_links

_MODULE_OF = {
    "HEURISTICS": "psgnn.scoring._rules",
    "Pretrained": "psgnn.scoring._pretrained",
    "PretrainedScorer": "psgnn.scoring._pretrained",
    "Scorer": "psgnn.scoring._scorer",
    "hops_between": "psgnn.scoring._rules",
    "pretrained": "psgnn.scoring._pretrained",
    "score_pairs": "psgnn.scoring._rules",
    "top_links": "psgnn.scoring._search",
}

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

__getattr__, __dir__ = door(__name__, _MODULE_OF)
