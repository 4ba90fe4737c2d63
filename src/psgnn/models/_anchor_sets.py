"""What a picker hands to an encoder: the anchors of every graph, and how far every node is from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from psgnn.console import shortened
from psgnn.graph._graph import GraphBatch, IntArray
from psgnn.models._view import TensorView
from psgnn.positions._frame import Match
from psgnn.positions._measure import Parts, Positions, positions_of


@dataclass(frozen=True)
class Measured:
    r"""Distances to the anchors as rows of a table.

    .. math:: s = 1 / (1 + d), \quad s = 0 \text{ if unreachable}

    ``proximity [D, 1]`` has one row a distinct distance (row 0 is "unreachable", row d + 1 is d hops), ``near``
    int32 ``[N, K]`` the row for each node and anchor, ``who`` int32 ``[N, K]`` the anchor itself (a node of the
    union), ``weight [G, K]`` its weight, 0 for padding, and ``graph`` int64 ``[N]``.
    """

    proximity: torch.Tensor
    near: torch.Tensor
    who: torch.Tensor
    weight: torch.Tensor
    graph: torch.Tensor

    @classmethod
    def of(cls, view: TensorView, hops: np.ndarray, who: torch.Tensor, weight: torch.Tensor) -> Measured:
        """From hops ``[N, K]`` with -1 for unreachable."""
        # Deviates: the paper feeds d itself, which has no value for unreachable nodes.
        proximity = 1 / (1 + torch.arange(int(hops.max(initial=0)) + 1))
        rows = torch.cat([torch.zeros(1), proximity])[:, None].to(view.x)
        near = torch.from_numpy(hops.astype(np.int32) + 1).to(view.x.device)
        return cls(rows, near, who, weight, view.graph)


@dataclass(frozen=True)
class AnchorSet:
    """Single nodes as anchors.

    ``nodes`` int64 ``[G, K]`` union ids, padded with -1; ``weight [G, K]`` by which messages are multiplied
    (0 for padding), through which gradients reach a scorer; ``log_prob [G]`` for score-function gradients.
    """

    nodes: torch.Tensor
    weight: torch.Tensor
    log_prob: torch.Tensor | None = None

    @classmethod
    def plain(cls, nodes: IntArray) -> AnchorSet:
        """Anchors that nothing is learned about."""
        table = torch.from_numpy(nodes)
        return cls(table, (table >= 0).to(torch.get_default_dtype()))

    def measure(self, view: TensorView, cutoff: int | None = None) -> Measured:
        """Distances in the view; beyond the cutoff is unreachable."""
        hops = view.oracle.hops(self.nodes.cpu().numpy())
        if cutoff is not None:
            hops = np.where(hops > cutoff, -1, hops)
        who = self.nodes.clamp_min(0).int()[view.graph]
        return Measured.of(view, hops, who, self.weight)

    @property
    def size(self) -> int:
        """Number of anchors in all graphs together."""
        return int((self.nodes >= 0).sum())

    def listed(self) -> list[int]:
        """Anchors of all graphs, union ids."""
        return [v for row in self.nodes.cpu().tolist() for v in row if v >= 0]

    def per_graph(self, view: TensorView) -> list[list[int]]:
        """Anchors of each graph, union ids."""
        return [[v for v in row if v >= 0] for row in self.nodes.cpu().tolist()]

    @property
    def single(self) -> IntArray:
        """The table of nodes as an array."""
        return np.asarray(self.nodes.cpu().numpy())

    def described(self, names: Sequence[str]) -> str:
        """A line about them."""
        return shortened([names[v] for v in self.listed()])

    def tensors(self) -> dict[str, torch.Tensor]:
        """To be saved with the weights."""
        return {"choice.weight": self.weight, "choice.nodes": self.nodes}

    def padded(self, width: int) -> AnchorSet:
        """With that many places per graph."""
        missing = (0, width - self.nodes.size(1))
        nodes = torch.nn.functional.pad(self.nodes, missing, value=-1)
        return AnchorSet(nodes, torch.nn.functional.pad(self.weight, missing))

    def carry(self, match: Match, view: TensorView) -> tuple[AnchorSet, dict[int, int]]:
        """The same nodes in another graph, and the old ids of those that are gone and of their replacements."""
        nodes, replaced = match.carry(self.single)
        return AnchorSet(torch.from_numpy(nodes).to(view.x.device), self.weight.to(view.x)), replaced

    def is_sound(self, union: GraphBatch) -> bool:
        """Whether these can be anchors: compiled code looks up distances by them without asking again."""
        nodes = torch.as_tensor(self.nodes)
        if not _is_tidy(nodes, self.weight, union):
            return False
        if nodes.shape != self.weight.shape or self.weight.size(1) > union.sizes.max():
            return False
        ptr = torch.from_numpy(union.ptr)
        present = nodes >= 0
        own = (nodes >= ptr[:-1, None]) & (nodes < ptr[1:, None])
        return bool(
            (own | (nodes == -1)).all() and present[:, 0].all() and (present[:, :-1] >= present[:, 1:]).all()
        )


@dataclass(frozen=True)
class RandomAnchorSets:
    """Sets of nodes as anchors: a node is as far from a set as from its nearest member.

    ``nodes[starts[j]:starts[j + 1]]`` are the members of set ``j`` in all graphs together, union ids; ``weight
    [G, K]`` is 1 where the graph has the set.
    """

    nodes: IntArray
    starts: IntArray
    weight: torch.Tensor
    log_prob: None = None

    def measure(self, view: TensorView, cutoff: int | None = None) -> Measured:
        """Distances in the view; beyond the cutoff is unreachable."""
        hops, who = view.oracle.nearest(self.nodes, self.starts, cutoff)
        return Measured.of(view, hops, torch.from_numpy(who).clamp_min(0).to(view.x.device), self.weight)

    @property
    def size(self) -> int:
        """Number of members of all sets together."""
        return self.nodes.size

    def listed(self) -> list[list[int]]:
        """The members of every set in all graphs together, union ids."""
        return [part.tolist() for part in np.split(self.nodes, self.starts[1:-1])]

    def per_graph(self, view: TensorView) -> list[list[list[int]]]:
        """The sets of each graph, union ids."""
        sets: list[list[list[int]]] = [[] for _ in range(view.union.num_graphs)]
        for members in np.split(self.nodes, self.starts[1:-1]):
            graph = view.union.graph_of[members]
            order = np.argsort(graph, kind="stable")
            present, first = np.unique(graph[order], return_index=True)
            for g, part in zip(present, np.split(members[order], first[1:]), strict=True):
                sets[g].append(part.tolist())
        return sets

    @property
    def single(self) -> None:
        """There is no table of single nodes."""

    def described(self, names: Sequence[str]) -> str:
        """A line about them."""
        return f"{len(self.listed())} sets of nodes"

    def tensors(self) -> dict[str, torch.Tensor]:
        """To be saved with the weights."""
        nodes, starts = torch.from_numpy(self.nodes), torch.from_numpy(self.starts)
        return {"choice.weight": self.weight, "choice.nodes": nodes, "choice.starts": starts}

    def padded(self, width: int) -> RandomAnchorSets:
        """Sets are as many as were asked for."""
        return self

    def carry(self, match: Match, view: TensorView) -> tuple[RandomAnchorSets, dict[int, int]]:
        """The same members in another graph; of a set that has lost all in a graph, the first is replaced."""
        sets = []
        for members in np.split(self.nodes, self.starts[1:-1]):
            there = match.new[members]
            kept = there[there >= 0]
            for g in np.setdiff1d(match.before.graph_of[members], match.after.graph_of[kept]):
                table = np.full((match.before.num_graphs, 1), -1, np.int64)
                table[g] = members[match.before.graph_of[members] == g][0]
                kept = np.append(kept, match.carry(table)[0][g])
            sets.append(kept)
        starts = np.cumsum([0, *(part.size for part in sets)])
        return RandomAnchorSets(np.concatenate(sets), starts, self.weight.to(view.x)), {}

    def is_sound(self, union: GraphBatch) -> bool:
        """Whether these can be anchor sets: compiled code looks up distances by them without asking again."""
        nodes, starts = torch.as_tensor(self.nodes), self.starts
        return bool(
            _is_tidy(nodes, self.weight, union)
            and nodes.dim() == starts.ndim == 1
            and starts.dtype == np.int64
            and starts.size == self.weight.size(1) + 1
            and starts[0] == 0
            and starts[-1] == nodes.numel()
            and (np.diff(starts) >= 0).all()
            and ((nodes >= 0) & (nodes < union.num_nodes)).all()
        )


def _is_tidy(nodes: torch.Tensor, weight: torch.Tensor, union: GraphBatch) -> bool:
    return bool(
        weight.dim() == 2
        and weight.size(1) > 0
        and nodes.dtype == torch.long
        and weight.dtype == torch.get_default_dtype()
        and weight.size(0) == union.num_graphs
        and weight.isfinite().all()
    )


AnyAnchors = AnchorSet | RandomAnchorSets


def channels_of(view: TensorView, choice: AnchorSet, parts: Parts) -> Positions:
    """Positions of all nodes of a view to single anchors."""
    return positions_of(view, choice.nodes.cpu().numpy(), parts)


def anchor_tensors(choice: AnyAnchors | None) -> dict[str, torch.Tensor]:
    """A choice as named tensors, to be saved with the weights."""
    return {} if choice is None else choice.tensors()


def anchors_of_tensors(tensors: dict[str, torch.Tensor]) -> AnyAnchors | None:
    """The choice among the tensors, as `anchor_tensors` put it there."""
    if "choice.nodes" not in tensors:
        return None
    nodes, weight = tensors["choice.nodes"], tensors["choice.weight"]
    if "choice.starts" in tensors:
        return RandomAnchorSets(nodes.numpy(), tensors["choice.starts"].numpy(), weight)
    return AnchorSet(nodes, weight)
