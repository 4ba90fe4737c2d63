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

_MODULE_OF = {
    "DistanceOracle": "psgnn.distances",
    "Graph": "psgnn.graph",
    "LinkPrediction": "psgnn.tasks",
    "PairClassification": "psgnn.tasks",
    "PositionEmbedding": "psgnn.positions",
    "PsgnnError": "psgnn.errors",
    "Run": "psgnn.training",
    "anchor_diagnostics": "psgnn.anchors",
    "build_model": "psgnn.models",
    "explain": "psgnn.scoring",
    "fit": "psgnn.training",
    "load": "psgnn.training",
    "load_dataset": "psgnn.datasets",
    "metric_basis": "psgnn.anchors",
    "minimum_dominating_set": "psgnn.anchors",
    "predict": "psgnn.scoring",
    "pretrained": "psgnn.scoring",
    "read_graph": "psgnn.graph",
    "select_anchors": "psgnn.anchors",
    "shortest_distances": "psgnn.distances",
}

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


__getattr__, __dir__ = door(__name__, _MODULE_OF)
