"""Which nodes are anchors: rules, diagnostics and exact optima."""

from psgnn.anchors._diagnostics import anchor_diagnostics
from psgnn.anchors._exact import metric_basis, minimum_dominating_set
from psgnn.anchors._rules import RULES, anchor_count, select_anchors

__all__ = [
    "RULES",
    "anchor_count",
    "anchor_diagnostics",
    "metric_basis",
    "minimum_dominating_set",
    "select_anchors",
]
