"""psgnn: Position-Sensing Graph Neural Networks.

The public names load on first use, so that ``import psgnn`` and ``psgnn --help`` import no torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from psgnn.doors import door

if TYPE_CHECKING:
    from psgnn.anchors import anchor_diagnostics, metric_basis, minimum_dominating_set, select_anchors
    from psgnn.datasets import load_dataset
    from psgnn.distances import DistanceOracle, shortest_distances
    from psgnn.errors import PsgnnError
    from psgnn.graph import Graph, read_graph
    from psgnn.models import build_model
    from psgnn.positions import PositionEmbedding
    from psgnn.scoring import explain, predict, pretrained
    from psgnn.tasks import LinkPrediction, PairClassification
    from psgnn.training import Run, fit, load

__version__ = "0.1.0"

__all__ = [
    "DistanceOracle",
    "Graph",
    "LinkPrediction",
    "PairClassification",
    "PositionEmbedding",
    "PsgnnError",
    "Run",
    "__version__",
    "anchor_diagnostics",
    "build_model",
    "explain",
    "fit",
    "load",
    "load_dataset",
    "metric_basis",
    "minimum_dominating_set",
    "predict",
    "pretrained",
    "read_graph",
    "select_anchors",
    "shortest_distances",
]


__getattr__, __dir__ = door(
    __name__,
    {
        "anchors": ["anchor_diagnostics", "metric_basis", "minimum_dominating_set", "select_anchors"],
        "datasets": ["load_dataset"],
        "distances": ["DistanceOracle", "shortest_distances"],
        "errors": ["PsgnnError"],
        "graph": ["Graph", "read_graph"],
        "models": ["build_model"],
        "positions": ["PositionEmbedding"],
        "scoring": ["explain", "predict", "pretrained"],
        "tasks": ["LinkPrediction", "PairClassification"],
        "training": ["Run", "fit", "load"],
    },
)
