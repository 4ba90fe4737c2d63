"""What a figure of a manifest consists of; every kind has a model of its own, so that a wrong word is found at once.

::

    [[figures]]
    name = "movement"              # docs/figures/movement.svg and .png
    kind = "movement"
    title = "Anchors move while the model learns"
    text = "What is to be seen."
    row = "communities-8-link"
    methods = ["trace-psgnn-paper", "trace-sequential"]

What is drawn over the course of training needs methods with ``trace = true``, whose records keep it.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]*$")]
Names = Annotated[tuple[str, ...], Field(min_length=1)]
Pair = tuple[int, int]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Figure(_Strict):
    name: Name
    title: str
    text: str = ""
    of: Name | None = None  # the manifest that its rows and methods are of, if it is another one
    traced: ClassVar[bool] = False  # whether it needs what only traced records hold

    @property
    def cells(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Rows and methods that it needs the records of."""
        return (), ()


class AnchorsFigure(_Figure):
    """The anchors of several methods on one graph, each coloured by the hops to the nearest anchor."""

    kind: Literal["anchors"]
    row: str
    methods: Names
    hops: int = Field(3, ge=0)  # of the coverage in the titles
    traced: ClassVar[bool] = True

    @property
    def cells(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """One row."""
        return (self.row,), self.methods


class SymmetryPanel(_Strict):
    """A set of anchors, perhaps empty."""

    title: str
    anchors: tuple[int, ...] = ()


class SymmetryFigure(_Figure):
    """A small graph, given by its edges and places, once for each set of anchors: which nodes look the same?"""

    kind: Literal["symmetry"]
    edges: tuple[Pair, ...] = Field(min_length=1)
    places: tuple[tuple[float, float], ...]
    nodes: Pair  # the two that are pointed at
    panels: tuple[SymmetryPanel, ...] = Field(min_length=1)


class CoveragePanel(_Strict):
    """Anchors by a rule."""

    title: str
    rule: str


class CoverageFigure(_Figure):
    """What the anchors of several rules cover, and how often."""

    kind: Literal["coverage"]
    dataset: str
    dataset_options: dict[str, int | bool | str] = {}
    anchors: int = Field(ge=1)
    hops: int = Field(ge=0)
    seed: int = Field(0, ge=0)
    panels: tuple[CoveragePanel, ...] = Field(min_length=1)


class SizePanel(_Strict):
    """Rows of growing size."""

    title: str
    rows: Names


class SizeFigure(_Figure):
    """The metric against the number of nodes, beside published values."""

    kind: Literal["size"]
    methods: Names
    panels: tuple[SizePanel, ...] = Field(min_length=1)

    @property
    def cells(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The rows of all panels."""
        return tuple(row for panel in self.panels for row in panel.rows), self.methods


class ResultsSeries(_Strict):
    """A method, or a group of which the best one of every row is drawn."""

    title: str
    method: str


class ResultsFigure(_Figure):
    """The metric of many rows, a mark per method."""

    kind: Literal["results"]
    rows: Names
    series: tuple[ResultsSeries, ...] = Field(min_length=1)

    @property
    def cells(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """All that is named."""
        return self.rows, tuple(line.method for line in self.series)


class CurvesFigure(_Figure):
    """Loss and validation metric by epoch, a line a seed."""

    kind: Literal["curves"]
    rows: Names
    methods: Names
    traced: ClassVar[bool] = True

    @property
    def cells(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """All that is named."""
        return self.rows, self.methods


class MovementFigure(_Figure):
    """Anchors at several moments of training, a line of pictures a method."""

    kind: Literal["movement"]
    row: str
    methods: Names
    moments: int = Field(6, ge=2)
    traced: ClassVar[bool] = True

    @property
    def cells(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """One row."""
        return (self.row,), self.methods


FigureSpec = Annotated[
    AnchorsFigure
    | SymmetryFigure
    | CoverageFigure
    | SizeFigure
    | ResultsFigure
    | CurvesFigure
    | MovementFigure,
    Field(discriminator="kind"),
]
