"""Colours, markers and empty figures that all pictures share."""

from __future__ import annotations

import io
from typing import Any, Literal

from matplotlib.figure import Figure

# The palette of Okabe and Ito, safe for the colour-blind; black last.
OKABE_ITO = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#f0e442", "#000000")
BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, YELLOW, BLACK = OKABE_ITO
LINES = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, "#8c8c8c", BLACK)  # yellow is too faint for a line
MARKERS = "osD^vPX*"
ANCHOR_COLOUR = VERMILION


class ShownFigure(Figure):
    """A figure that a notebook shows by itself; matplotlib's need pyplot and its inline backend for that."""

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png")
        return buffer.getvalue()


def new_figure(width: float, height: float, layout: Literal["constrained"] | None = "constrained") -> Figure:
    """An empty white figure, in inches."""
    return ShownFigure(figsize=(width, height), layout=layout, facecolor="white")


def line_style(place: int) -> tuple[str, str]:
    """Colour and marker of the line at a place."""
    return LINES[place % len(LINES)], MARKERS[place % len(MARKERS)]


def dot(colour: str, label: str) -> Any:
    """A dot for a legend."""
    from matplotlib.lines import Line2D

    style: dict[str, Any] = {"marker": "o", "linestyle": "none", "markeredgecolor": "#444444"}
    return Line2D([], [], color=colour, label=label, **style)
