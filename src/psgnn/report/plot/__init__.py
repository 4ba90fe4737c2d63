"""Figures. Every function returns a matplotlib ``Figure`` and leaves showing or saving to the caller."""

from psgnn.report.plot._graphs import Anchors, Places, plot_anchors
from psgnn.report.plot._runs import plot_embedding, plot_history, plot_scores
from psgnn.report.plot._style import (
    ANCHOR_COLOUR,
    BLACK,
    BLUE,
    GREEN,
    LINES,
    MARKERS,
    OKABE_ITO,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    YELLOW,
)

__all__ = [
    "ANCHOR_COLOUR",
    "BLACK",
    "BLUE",
    "GREEN",
    "LINES",
    "MARKERS",
    "OKABE_ITO",
    "ORANGE",
    "PURPLE",
    "SKY",
    "VERMILION",
    "YELLOW",
    "Anchors",
    "Places",
    "plot_anchors",
    "plot_embedding",
    "plot_history",
    "plot_scores",
]
