"""What all scorers have in common: trained runs, ready-made weights, and whatever else ranks pairs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from psgnn.distances._propagation import Floats
from psgnn.errors import InputError
from psgnn.graph._graph import GraphBatch, IntArray, to_numpy

if TYPE_CHECKING:
    import polars

    from psgnn.scoring._names import Node

Similarity = Literal["dot", "distance", "product"]


@dataclass(frozen=True, eq=False)
class Evidence:
    """What the scores of pairs rest on: tables of numbers ``[P, S]`` and the kind of evidence of each column.

    ``score(tables, rows)`` scores the first pair as if other things were measured of it: score i reads the row
    ``rows[t][i]`` of table t. Rows that several scores share are read once.
    """

    tables: list[Floats]
    groups: list[npt.NDArray[np.str_]]
    score: Callable[[Sequence[Floats], Sequence[IntArray]], Floats]


class Scorer(Protocol):
    """Scores pairs of nodes of a batch of graphs and embeds its nodes; ids are those of the batch."""

    @property
    def batch(self) -> GraphBatch:
        """The graphs, as the scorer sees them."""

    @property
    def node_names(self) -> list[list[str]]:
        """The names of the nodes of every graph."""

    @property
    def names_by_number(self) -> list[list[str]]:
        """The same by the numbers of the graphs that were given; nothing for those that were left out."""

    @property
    def anchors(self) -> list[Any] | None:
        """The anchors of every graph, ids of the batch (sets of them for P-GNN); None without anchors."""

    @property
    def hidden(self) -> IntArray:
        """Links ``[2, H]`` that the scorer is not shown."""

    @property
    def similarity(self) -> Similarity | None:
        """How a score follows from two embeddings; None where it rests on more than these."""

    @property
    def embeds_some(self) -> bool:
        """Whether embedding some of the nodes takes less than embedding all of them."""

    def rehearsals(self) -> Iterator[tuple[Scorer, IntArray]]:
        """Scorers that do not see some links, each with these links ``[2, H]``; none where there are too few.

        How many of its best pairs are among them says how far to trust those of this scorer.
        """

    def score(self, pairs: npt.ArrayLike, *, show_progress: bool = False) -> Floats:
        """Score pairs ``[2, P]``: logits ``[P]``, higher means more likely."""

    def evidence(self, pairs: IntArray) -> Evidence | None:
        """What the scores of pairs ``[2, P]`` rest on; None where it has no separate parts."""

    def score_embedded(self, h: Floats, pairs: IntArray) -> Floats:
        """Score pairs of rows of the embeddings ``h [N, d]`` by their similarity."""

    def embed(self, nodes: npt.ArrayLike | None = None, *, show_progress: bool = False) -> Floats:
        """Embed some nodes ``[n]``, or all: ``[n, d]``."""


def check_pairs(pairs: Any, num_nodes: int) -> IntArray:
    """Pairs as int64 ``[2, P]``, or an error that says what is wrong with them."""
    found = to_numpy(pairs)
    if found.ndim != 2 or found.shape[0] != 2:
        raise InputError(
            f"pairs must have the shape [2, P], found {list(found.shape)}; names go in a list of pairs, "
            "such as [('Ada', 'Rune')]"
        )
    if found.size and found.dtype.kind not in "iu":
        raise InputError(f"pairs must be integers, found {found.dtype}")
    if found.size and not 0 <= found.min() <= found.max() < num_nodes:
        raise InputError(f"pairs name nodes {found.min()}..{found.max()} of 0..{num_nodes - 1}")
    return found.astype(np.int64, copy=False)


def blocks_of(count: int, size: int) -> Sequence[slice]:
    """Consecutive parts of a number of things, at least one."""
    return [slice(start, start + size) for start in range(0, max(count, 1), size)]


T = TypeVar("T")

_KEPT: WeakKeyDictionary[Any, dict[Hashable, Any]] = WeakKeyDictionary()


def keep(scorer: Any, key: Hashable, make: Callable[[], T]) -> T:
    """What `make` returns; the second call for the same scorer and key returns the same object."""
    known = _KEPT.setdefault(scorer, {})
    if key not in known:
        known[key] = make()
    found: T = known[key]
    return found


class Questions:
    """Methods of scorers: ready-made weights on graphs, and trained runs."""

    def predict(
        self,
        *,
        top: int | None = None,
        of: Node | Sequence[Node] | None = None,
        pairs: Any = None,
        missing: str | float | None = None,
        why: bool = False,
        seed: int = 0,
        show_progress: bool = False,
    ) -> polars.DataFrame:
        """Predict missing links by name: ``top=50``, ``of="Ada"`` or ``pairs=[("Ada", "Bob")]`` (`psgnn.predict`).

        ``seed`` is that of the search and of the sample that probabilities rest on.
        """
        from psgnn.scoring._answers import answer

        asked = {"top": top, "of": of, "pairs": pairs, "missing": missing, "why": why}
        return answer(self, **asked, seed=seed, show_progress=show_progress)  # type: ignore[arg-type]

    def similar(self, node: Node, top: int = 10) -> polars.DataFrame:
        """The nodes whose embeddings are nearest to that of a node: name, distance, and whether they are linked."""
        from psgnn.scoring._answers import similar

        return similar(self, node, top)  # type: ignore[arg-type]

    def explain(self, u: Node, v: Node) -> dict[str, Any]:
        """Why a pair has its score; see `psgnn.explain`."""
        from psgnn.scoring._explain import explain

        return explain(self, u, v)  # type: ignore[arg-type]

    def evaluate(self, links: Any, *, negatives: str = "uniform", seed: int = 0) -> dict[str, Any]:
        """Measure how well links that the graph lacks are found: a file, names or a table (`psgnn evaluate`).

        >>> run.evaluate("later-links.csv")["mrr"]
        """
        from psgnn.scoring._answers import asked_pairs
        from psgnn.scoring._evaluate import evaluate_links

        pairs = asked_pairs(self, links, None)  # type: ignore[arg-type]
        return evaluate_links(self, pairs, negatives=negatives, seed=seed)  # type: ignore[arg-type]
