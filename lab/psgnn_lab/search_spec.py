"""What a hyperparameter search of a manifest consists of: a grid, models and rows, and how many settings are tried.

::

    [search]
    title = "Hyperparameter search"
    source = "the paper, Table 4"  # of the published settings
    preset = "paper"
    rows = ["communities-link"]
    trials = 8                     # settings that are tried, for every model and row
    seed = 0                       # of the split and the training of a trial
    seeds = 3                      # of the runs that test the best settings and the published ones
    settings = {epochs = 200}      # of all trials and runs

    [search.space]                 # the choices, for every model
    lr = [0.0005, 0.001, 0.002]

    [search.models.gat]
    trials = 16                    # for this one
    space = {heads = [1, 2, 3]}    # what only this one has
    published.communities-link = {lr = 0.001, heads = 2}
"""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from psgnn.errors import InputError

Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]*$")]
Value = bool | int | float | str
Params = dict[str, Value]
Space = dict[str, Annotated[tuple[Value, ...], Field(min_length=1)]]
Count = Annotated[int, Field(ge=1)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SearchedModel(_Strict):
    """A model, what only it can be set to, and the settings that somebody else has found best, by row."""

    title: str | None = None
    trials: Count | None = None
    space: Space = {}
    published: dict[str, Params]


class Search(_Strict):
    """A search: every model on every row, the same number of trials each time it is run."""

    title: str
    text: str = ""
    source: str
    preset: str = "best"
    rows: tuple[str, ...] = Field(min_length=1)
    trials: Count
    seed: int = Field(0, ge=0)
    sampler_seed: int = Field(0, ge=0)
    seeds: Count = 3
    settings: Params = {}
    space: Space
    models: dict[Name, SearchedModel] = Field(min_length=1)

    def space_of(self, model: str) -> Space:
        """The choices of a model by parameter."""
        return self.space | self.models[model].space

    def size(self, model: str) -> int:
        """Points of the grid of a model."""
        return math.prod(map(len, self.space_of(model).values()))

    def trials_of(self, model: str) -> int:
        """Trials of a model on a row; a grid that is smaller is tried as a whole."""
        return min(self.models[model].trials or self.trials, self.size(model))

    def run_names(self, model: str) -> tuple[str, str]:
        """Names of the methods that test the best settings of a model and the published ones."""
        return f"search-{model}", f"search-{model}-published"

    @property
    def names(self) -> set[str]:
        """By which `--methods` can name models and their runs."""
        return {name for model in self.models for name in (model, *self.run_names(model))}

    def check(self) -> None:
        """Every choice is there once, and what has been published is a point of the grid."""
        for model, entry in self.models.items():
            space = self.space_of(model)
            for parameter, choices in space.items():
                if parameter in self.settings:
                    raise InputError(f"search: '{parameter}' is in space and in settings; drop one")
                if len(set(choices)) < len(choices):
                    raise InputError(f"search: '{parameter}' has a choice twice in {list(choices)}; drop one")
            for row in entry.published:
                if row not in self.rows:
                    raise InputError(f"search.models.{model}.published: '{row}' is no row of the search")
            for row in self.rows:
                published = entry.published.get(row)
                if published is None:
                    raise InputError(f"search.models.{model}.published lacks row '{row}'; add it")
                if problem := _off_grid(published, space):
                    raise InputError(f"search.models.{model}.published.{row}: {problem}")


def _off_grid(params: Params, space: Space) -> str | None:
    """Why a point is not one of the grid."""
    if params.keys() != space.keys():
        return f"it sets {', '.join(params) or 'nothing'}, the space has {', '.join(space)}"
    for parameter, value in params.items():
        if value not in space[parameter]:
            return f"{parameter} = {value} is none of the choices {list(space[parameter])}"
    return None
