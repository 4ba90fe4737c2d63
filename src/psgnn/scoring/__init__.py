"""Training-free pair scores, the baselines that every model has to beat."""

from psgnn.scoring._rules import HEURISTICS, hops_between, score_pairs

__all__ = ["HEURISTICS", "hops_between", "score_pairs"]
