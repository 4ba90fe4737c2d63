"""What is measured about nodes and pairs of nodes, seen from the anchors. Nothing is learned here."""

from typing import TYPE_CHECKING

from psgnn.doors import door

if TYPE_CHECKING:
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

__getattr__, __dir__ = door(
    __name__,
    {
        "_embedding": ["PositionEmbedding"],
        "_measure": ["Parts", "Positions", "positions_of"],
        "_statistics": ["pair_statistics", "statistic_names"],
        "_view": ["View"],
    },
)
