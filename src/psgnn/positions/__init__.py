"""What is measured about nodes and pairs of nodes, seen from the anchors. Nothing is learned here."""

from psgnn.positions._embedding import PositionEmbedding
from psgnn.positions._measure import Parts, Positions, positions_of
from psgnn.positions._statistics import pair_statistics, statistic_names
from psgnn.positions._view import View

__all__ = [
    "Parts",
    "PositionEmbedding",
    "Positions",
    "View",
    "pair_statistics",
    "positions_of",
    "statistic_names",
]
