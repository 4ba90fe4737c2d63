"""The anchors of a run on another graph: its own, found by name, or new ones."""

from __future__ import annotations

import logging
from copy import copy
from typing import TYPE_CHECKING, Any

import torch

from psgnn.errors import InputError
from psgnn.models._anchor_sets import AnyAnchors
from psgnn.models._models import PositionModel
from psgnn.models._view import TensorView
from psgnn.positions._frame import Match, match_graphs
from psgnn.scoring._changes import Kept, keep

if TYPE_CHECKING:
    from psgnn.training._run import Run

log = logging.getLogger(__name__)


def keep_anchors(
    run: Run, view: TensorView, names: list[list[str]], *, new_anchors: bool
) -> tuple[AnyAnchors | None, Kept | None]:
    """The anchors of a run in another view, found by name; or new ones, where that is asked for or it must be."""
    match = None if new_anchors else match_graphs(run.batch, run.node_names, view.union, names)
    if isinstance(match, Match):
        if run.choice is None:
            return None, keep(run, match, {})
        carried, replaced = run.choice.carry(match, view)
        return carried, keep(run, match, replaced)
    if match is not None and run.choice is not None:
        log.info("new anchors and axes: %s", match)
    return _fresh(run.model, view, names, run.choice), None


def find_states(run: Run, view: TensorView, names: list[list[str]]) -> torch.Tensor | None:
    """The row of each node of another view among the vectors of a run, -1 for new nodes; None where there are none."""
    if not run.model.config.states:
        return None
    match = match_graphs(run.batch, run.node_names, view.union, names)
    if not isinstance(match, Match):
        raise InputError(
            f"the run has a vector for each node of its own graph, and this is another one ({match}); "
            "train a model with --option states=0 for other graphs"
        )
    known = run.view.state_rows
    old = torch.from_numpy(match.old)
    return old if known is None else torch.where(old >= 0, known[old], -1)


@torch.no_grad()
def _fresh(
    model: PositionModel, view: TensorView, names: list[list[str]], like: AnyAnchors | None
) -> AnyAnchors | None:
    """Anchors that the model picks in another view, as many as it had, so that vectors have the same width.

    A graph with fewer nodes has fewer anchors, padded to that number.
    """
    if like is None:
        return None
    width = like.weight.size(1)
    picker: Any = copy(model.picker)
    picker.find(names)
    picker.resize(width, int(view.union.sizes.max()))
    picked: AnyAnchors = picker(view)
    return picked.padded(width)
