"""Letters that are delivered in this process: the same steps as on Spark, without Java."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby, pairwise
from typing import Any

import numpy as np

from psgnn.graph import Graph
from psgnn.spark._blocks import Plan
from psgnn.spark._graph import Blocks, _cut, finished
from psgnn.spark._mail import REPORT, Letter, Work, pack, unpack

Mail = list[Letter]


class Desk:
    """A `psgnn.spark._mail.Post` of lists. Letters are packed and unpacked on their way, as Spark does it."""

    def __init__(self) -> None:
        self.spark = None
        self.tasks = 2
        self.told: dict[str, int] = {}  # bytes that the driver read, by step
        self.log: list[dict[str, Any]] = []

    def kept(self, make: Callable[[], Mail], name: str) -> Mail:
        return make()

    def spread(self, mail: Mail, work: Work) -> Mail:
        there = sorted((m for m in mail if m.place >= 0), key=lambda m: (m.place, m.kind, m.sender))
        found = []
        for place, letters in groupby(there, key=lambda m: m.place):
            for letter in work(place, list(letters)):
                found.append(Letter(letter.place, letter.kind, unpack(pack(letter.arrays)), place))
        return found

    def some(
        self, mail: Mail, kinds: Sequence[str] = (), *, first: int | None = None, last: int | None = None
    ) -> Mail:
        low, high = -(2**62) if first is None else first, 2**62 if last is None else last
        return [m for m in mail if low <= m.place < high and (not kinds or m.kind.startswith(tuple(kinds)))]

    def both(self, one: Mail, other: Mail) -> Mail:
        return [*one, *other]

    def step(self, name: str, mail: Mail, work: Work) -> tuple[Mail, Mail]:
        found = self.spread(mail, work)
        told = self.read(found, REPORT)
        self.told[name] = sum(len(pack(letter.arrays)) for letter in told)
        return found, told

    def read(self, mail: Mail, place: int) -> Mail:
        return sorted((m for m in mail if m.place == place), key=lambda m: (m.kind, m.sender))

    def read_kept(self, mail: Mail) -> Mail:
        return mail

    def letters(self, letters: Iterable[Letter]) -> Mail:
        return list(letters)

    def drop(self, *tables: Mail) -> None:
        pass


def blocks_of(desk: Desk, graph: Graph, parts: int) -> Blocks:
    """A graph in blocks."""
    adjacency = graph.adjacency
    filled = adjacency.degrees
    bounds = _cut(filled, 1, graph.num_nodes, parts)
    plan = Plan(bounds, adjacency.num_edges)
    rows, cols = adjacency.rows.astype(np.int64), adjacency.indices.astype(np.int64)
    mail = []
    for place, (a, b) in enumerate(pairwise(bounds)):
        some = (rows >= a) & (rows < b)
        mail.append(Letter(place, "entries", {"source": rows[some], "target": cols[some]}))
    return finished(desk, plan, mail, None)  # type: ignore[arg-type]
