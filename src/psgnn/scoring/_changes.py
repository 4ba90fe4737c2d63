"""What has changed since yesterday: nodes that were added, are gone, or moved in the same coordinates."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from psgnn.console import shortened
from psgnn.graph._graph import IntArray
from psgnn.positions._frame import Match
from psgnn.scoring._names import all_names
from psgnn.scoring._scorer import Scorer, blocks_of

log = logging.getLogger(__name__)

MOST_LINKS = 20_000  # whose distances say what is far
NODE_BLOCK = 2**11
ROUNDING = 1e-4  # of vectors; a change below it is none
SHOWN = 5  # names in a line


@dataclass(frozen=True)
class Changes:
    """How a graph differs from an older one, by the names of nodes.

    ``added`` are the new nodes, ``gone`` those that only the older graph has. ``moved`` are nodes whose vectors changed
    by more than the median distance of linked nodes in the older graph. ``replaced`` names the node that replaces each
    lost anchor.
    """

    added: tuple[str, ...]
    gone: tuple[str, ...]
    moved: tuple[str, ...]
    replaced: dict[str, str]

    def to_dict(self) -> dict[str, Any]:
        """The lists, for JSON."""
        return asdict(self)

    def lines(self) -> list[str]:
        """What a person wants to know first, in a few lines."""
        parts = {"added": self.added, "gone": self.gone, "moved": self.moved}
        return [f"{len(part)} {what}: {shortened(part, SHOWN)}" for what, part in parts.items() if part]


@dataclass(frozen=True, eq=False)
class Kept:
    """A scorer whose coordinates another one keeps, which nodes they share, and which replace lost anchors."""

    origin: Scorer
    match: Match
    replaced: dict[str, str]

    def changes(self, scorer: Scorer) -> Changes:
        """Compare the scorer that keeps the coordinates with the one that has them."""
        names, match = all_names(scorer), self.match
        common = np.flatnonzero(match.old >= 0)
        apart = _apart(scorer, common, self.origin, match.old[common])
        return Changes(
            added=_named(names, np.flatnonzero(match.old < 0)),
            gone=_named(all_names(self.origin), np.flatnonzero(match.new < 0)),
            moved=_named(names, common[apart > _link_length(self.origin)]),
            replaced=self.replaced,
        )


def _named(names: Sequence[str], nodes: IntArray) -> tuple[str, ...]:
    return tuple(names[v] for v in nodes.tolist())


def _apart(one: Scorer, nodes: IntArray, other: Scorer, others: IntArray) -> npt.NDArray[np.float32]:
    """How far the vectors of nodes are from those of nodes of another scorer, ``[n]``."""
    if not one.embeds_some:
        return np.asarray(np.linalg.norm(one.embed()[nodes] - other.embed()[others], axis=1))
    blocks = blocks_of(nodes.size, NODE_BLOCK)
    found = [np.linalg.norm(one.embed(nodes[block]) - other.embed(others[block]), axis=1) for block in blocks]
    return np.concatenate(found)


def _link_length(scorer: Scorer) -> float:
    """The median distance of linked nodes, of a sample where there are many."""
    edges = scorer.batch.adjacency.edges()
    if not edges.size:
        return np.inf
    if edges.shape[1] > MOST_LINKS:
        edges = edges[:, np.random.default_rng(0).choice(edges.shape[1], MOST_LINKS, replace=False)]
    return max(float(np.median(_apart(scorer, edges[0], scorer, edges[1]))), ROUNDING)


def keep(origin: Scorer, match: Match, replaced: dict[int, int]) -> Kept:
    """Note which coordinates are kept, and which anchors, by old ids, are replaced by which nodes."""
    added, gone = int((match.old < 0).sum()), int((match.new < 0).sum())
    log.info("the run's coordinates are kept (%d nodes added, %d gone)", added, gone)
    names = all_names(origin)
    by_name = {names[lost]: names[other] for lost, other in replaced.items()}
    if by_name:
        pairs = [f"{new} for {old}" for old, new in by_name.items()]
        log.info("anchors that are gone are replaced by a neighbour: %s", shortened(pairs, SHOWN))
    return Kept(origin, match, by_name)
