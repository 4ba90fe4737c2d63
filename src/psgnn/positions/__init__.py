"""What is measured about nodes and pairs of nodes, seen from the anchors. Nothing is learned here."""

from typing import TYPE_CHECKING

from psgnn.doors import door

if TYPE_CHECKING:
    from psgnn.positions._embedding import PositionEmbedding
    from psgnn.positions._measure import Parts, Positions, positions_of
    from psgnn.positions._statistics import pair_statistics, statistic_names
    from psgnn.positions._view import View

_MODULE_OF = {
    "Parts": "psgnn.positions._measure",
    "PositionEmbedding": "psgnn.positions._embedding",  # imports scikit-learn
    "Positions": "psgnn.positions._measure",
    "View": "psgnn.positions._view",
    "pair_statistics": "psgnn.positions._statistics",
    "positions_of": "psgnn.positions._measure",
    "statistic_names": "psgnn.positions._statistics",
}

__all__ = [
    "Parts",
    "PositionEmbedding",
    "Positions",
    "View",
    "pair_statistics",
    "positions_of",
    "statistic_names",
]

__getattr__, __dir__ = door(__name__, _MODULE_OF)
