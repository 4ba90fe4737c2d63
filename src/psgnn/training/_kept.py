"""The anchors of a run on another graph: its own, found by name, or new ones."""

from __future__ import annotations

import logging
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from psgnn.models._anchor_sets import AnchorSet, AnyAnchors, RandomAnchorSets
from psgnn.models._models import PositionModel
from psgnn.models._pickers import RandomSets
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
        carried, replaced = _carried(run.choice, match, view)
        return carried, keep(run, match, replaced)
    if match is not None and run.choice is not None:
        log.info("new anchors and axes: %s", match)
    return _fresh(run.model, view, names, run.choice), None


def _carried(choice: AnyAnchors, match: Match, view: TensorView) -> tuple[AnyAnchors, dict[int, int]]:
    """The anchors of a run in another graph, and the old ids of those that are gone and of their replacements."""
    weight = choice.weight.to(view.x)
    if isinstance(choice, AnchorSet):
        nodes, replaced = match.carry(choice.nodes.cpu().numpy())
        return AnchorSet(torch.from_numpy(nodes).to(view.x.device), weight), replaced
    sets = []
    for members in np.split(choice.nodes, choice.starts[1:-1]):
        there = match.new[members]
        kept = there[there >= 0]
        # Of a set that has lost all members in a graph, the first is replaced.
        for g in np.setdiff1d(match.before.graph_of[members], match.after.graph_of[kept]):
            table = np.full((match.before.num_graphs, 1), -1, np.int64)
            table[g] = members[match.before.graph_of[members] == g][0]
            kept = np.append(kept, match.carry(table)[0][g])
        sets.append(kept)
    starts = np.cumsum([0, *(part.size for part in sets)])
    return RandomAnchorSets(np.concatenate(sets), starts, weight), {}


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
    if isinstance(picker, RandomSets):
        picker.levels = round(width**0.5)
        found: AnyAnchors = picker(view)
        return found
    picker.k = min(width, int(view.union.sizes.max()))
    picked: AnchorSet = picker(view)
    missing = (0, width - picked.nodes.size(1))
    return AnchorSet(
        torch.nn.functional.pad(picked.nodes, missing, value=-1),
        torch.nn.functional.pad(picked.weight, missing),
    )
