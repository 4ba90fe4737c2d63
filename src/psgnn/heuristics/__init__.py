"""Training-free pair scores, the baselines that every model has to beat."""

from psgnn.heuristics.rules import HEURISTICS, hops_between, score_pairs

__all__ = ["HEURISTICS", "hops_between", "score_pairs"]
