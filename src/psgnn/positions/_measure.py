"""Where the nodes of a view are, seen from its anchors: all that is measured, nothing that is learned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from psgnn.distances._propagation import Floats, spread
from psgnn.graph._graph import Adjacency, GraphBatch, IntArray
from psgnn.memory import empty_columns, keep_columns
from psgnn.positions._kinds import KindMeasures
from psgnn.positions._roles import roles_of
from psgnn.positions._spectral import anchor_basis
from psgnn.positions._view import FeatureMeasures, Features, View

if TYPE_CHECKING:
    from scipy.sparse import csr_array

RESTARTS = (0.15, 0.5)
DIFFUSION_STEPS = (2, 4)
HEATS = (1.0, 4.0, 16.0)  # times of heat at which embeddings see the spectral basis
FARTHEST_FROM_MEAN = 6.0  # standard deviations, beyond which networks see a measured number cut off
FLOOR = 1e-6  # the smallest probability; less counts as none
LEAST_DEVIATION = 1e-4  # of a channel that does not vary
BLOCK = 2**19  # bytes of channels
SPARSE = (
    1 / 4
)  # share of entries other than zero, below which sparse rows of traits cost less than dense ones
PAIR_LOOKS = (
    20_000  # edges that the walks between two nodes pass, and twice those that the search for hops looks at
)


@dataclass(frozen=True)
class Parts:
    """Which kinds of position are measured, each of which can be left out, and how closely pairs are looked at."""

    hops: bool = True
    pagerank: bool = True
    diffusion: bool = True
    spectral: bool = True
    roles: bool = True
    local: bool = True
    features: bool = True
    pair_features: bool = False  # what the features of two nodes have in common; for graphs that have some
    pair_looks: int = PAIR_LOOKS
    kinds: tuple[str, ...] = ()  # what the graphs have beyond plain edges, as `Kinds.names` says it

    @property
    def channels(self) -> list[str]:
        """What a node has for each anchor."""
        names = ["proximity", "hops"] * self.hops
        names += [f"log PageRank, restart {restart}" for restart in RESTARTS] * self.pagerank
        return names + [f"log diffusion, {steps} steps" for steps in DIFFUSION_STEPS] * self.diffusion


@dataclass(frozen=True, eq=False)
class Positions:
    """What a view says about its nodes, given the anchors ``nodes [G, K]``, padded with -1.

    ``channels [N, K, C]`` from node to anchor, zero-mean and unit-variance in every graph, zero for padding; ``counts
    [G]`` how many of the K are anchors; ``hops`` int16 ``[N, K]``; ``basis [N, r]`` and ``values [G, r]`` of the
    anchor-spectral basis; ``roles [N, 10]``. A part that is left out has no columns. ``mean`` and ``deviation [G, C]``
    are the scales of the channels. A view that keeps the coordinates of another graph has the scales of that one.
    """

    view: View
    parts: Parts
    nodes: IntArray
    channels: Floats
    counts: IntArray
    hops: npt.NDArray[np.int16]
    basis: Floats
    values: Floats
    roles: Floats
    mean: Floats
    deviation: Floats

    @property
    def farthest(self) -> npt.NDArray[np.int16]:
        """The most hops from a node to an anchor of its graph, ``[G]``."""
        return np.asarray(np.maximum.reduceat(self.hops.max(axis=1), self.view.union.ptr[:-1]))

    @cached_property
    def kind_measures(self) -> KindMeasures:
        """What directions, sides, strengths, lengths and times say of the nodes."""
        return KindMeasures(self.view.union, self.nodes, self.parts.kinds)

    @cached_property
    def feature_measures(self) -> FeatureMeasures:
        """What the features of two nodes, and of those around them, have in common."""
        known = self.view.fixed
        if "features" not in known:
            known["features"] = Features(self.view.features)
        return FeatureMeasures.of(known["features"], self.view.union.adjacency)

    def oriented(self, pairs: IntArray) -> IntArray:
        """Pairs ``[2, P]`` with the node of side 0 first, where there are sides and no directions."""
        return pairs if not self.parts.kinds else np.stack(self.kind_measures.oriented(*pairs))

    @cached_property
    def traits(self) -> Floats | csr_array:
        """Roles and node features, and their means over the neighbours one and two steps away, ``[N, 3 (10 + F)]``.

        Where features are wide and mostly zero, such as words, a sparse matrix.
        """
        known = [self.roles]
        if self.parts.features and self.view.has_features:
            known.append(self.view.features)
        x = np.concatenate(known, axis=1)
        adjacency = self.view.union.adjacency
        one = np.ones(x.shape[0], np.float32)
        share = (1 / np.maximum(adjacency.degrees, 1)).astype(np.float32)
        if len(known) > 1 and _stays_sparse(adjacency, x):
            from scipy.sparse import csr_array, diags_array, hstack

            square = x.shape[0], x.shape[0]
            weights = np.repeat(share, adjacency.degrees)
            mean = csr_array((weights, adjacency.indices, adjacency.indptr), shape=square)
            alone = diags_array((adjacency.degrees == 0).astype(np.float32))  # such a node is its own mean
            mean = csr_array(mean + alone)
            rows = csr_array(x)
            around = mean @ rows
            return csr_array(hstack([rows, around, mean @ around], format="csr"))
        columns = [x, spread(adjacency, x, one, share)]
        columns.append(spread(adjacency, columns[-1], one, share))
        traits = empty_columns((x.shape[0], 3 * x.shape[1]), np.float32)
        return np.concatenate(columns, axis=1, out=traits)

    def traits_of(self, nodes: IntArray | slice) -> Floats:
        """Rows of the traits, dense."""
        rows = self.traits[nodes]
        return rows if isinstance(rows, np.ndarray) else rows.toarray()


def _stays_sparse(adjacency: Adjacency, x: Floats) -> bool:
    """Whether few entries of x and of its means over two steps differ from zero, by a bound on the work, too."""
    entries = [np.count_nonzero(x, axis=1, keepdims=True).astype(np.float32)]
    one = np.ones(x.shape[0], np.float32)
    for _ in range(2):
        entries.append(np.minimum(spread(adjacency, entries[-1], one, one), np.float32(x.shape[1])))
    return bool(sum(float(part.sum()) for part in entries) < SPARSE * 3 * x.size)


def positions_of(view: View, nodes: IntArray, parts: Parts) -> Positions:
    """Positions of all nodes of a view to the anchors ``nodes [G, K]``, kept with the view for the next call."""
    key = nodes.tobytes(), parts
    if view.positions is None or view.positions[0] != key:
        view.positions = key, _measure(view, nodes, parts)
    found: Positions = view.positions[1]
    return found


def measure_channels(
    view: View, nodes: IntArray, parts: Parts, farthest: npt.NDArray[np.int16] | None = None
) -> tuple[npt.NDArray[np.int16], Floats]:
    """Hops ``[N, K]`` and the channels ``[N, K, C]`` as they are measured, in their own units.

    ``nodes [G, K]`` are the anchors of every graph, padded with -1. Unreachable is one hop more than ``farthest [G]``,
    by default the most hops of each graph.
    """
    union, oracle = view.union, view.oracle
    hops = keep_columns(oracle.hops(nodes))
    channels: Floats = empty_columns((*hops.shape, len(parts.channels)), np.float32)
    far = 1 + (np.maximum.reduceat(hops.max(axis=1), union.ptr[:-1]) if farthest is None else farthest)
    flows = oracle.walks(
        nodes,
        restarts=RESTARTS if parts.pagerank else (),
        diffusion=DIFFUSION_STEPS if parts.diffusion else (),
    )
    for rows in _blocks(channels):
        some = [flow[rows] for flow in flows]
        fill_channels(parts, hops[rows], far[union.graph_of[rows], None], some, channels[rows])
    return hops, channels


def fill_channels(
    parts: Parts, hops: npt.NDArray[np.int16], far: npt.NDArray[Any], flows: Sequence[Floats], out: Floats
) -> None:
    """Write the channels ``out [n, K, C]`` of some nodes in their own units.

    Args:
        parts: Which channels there are.
        hops: To the anchors, ``[n, K]``.
        far: What unreachable counts as, ``[n, 1]``.
        flows: PageRank and diffusion, ``[n, K]`` each.
        out: Where they are written.
    """
    if parts.hops:
        out[:, :, 0] = np.where(hops >= 0, 1 / (1 + np.maximum(hops, 0)), 0)
        out[:, :, 1] = np.where(hops >= 0, hops, far)
    for place, flow in enumerate(flows, 2 * parts.hops):
        out[:, :, place] = np.log(flow + np.float32(FLOOR))


def channel_sums(block: Floats, power: int) -> npt.NDArray[np.float64]:
    """The sums ``[n, C]`` over the anchors of a power of channels ``[n, K, C]``."""
    return np.asarray(np.einsum("nkc->nc", block**power, dtype=np.float64))


def deviation_of(moment: Floats) -> Floats:
    """The scale of channels by their mean square after the mean is taken off."""
    return np.asarray(np.sqrt(moment + np.float32(LEAST_DEVIATION**2)))


def _measure(view: View, nodes: IntArray, parts: Parts) -> Positions:
    union = view.union
    counts = (nodes >= 0).sum(axis=1)
    kept: Positions | None = None if view.frame is None else view.frame.positions(parts)

    def columns() -> dict[str, npt.NDArray[Any]]:
        hops, channels = measure_channels(view, nodes, parts, None if kept is None else kept.farthest)
        scales = None
        if kept is not None:  # a channel that did not vary has no scale to keep
            scales = kept.mean, np.where(kept.deviation > 2 * LEAST_DEVIATION, kept.deviation, np.float32(1))
        mean, deviation = _standardise(channels, counts, union, scales)
        nothing = np.zeros((union.num_nodes, 0), np.float32)
        basis, values = anchor_basis(union, nodes) if parts.spectral else (nothing, nothing[:0])
        roles = view.alike("roles", lambda: roles_of(union)) if parts.roles else nothing
        if kept is not None and parts.roles:
            roles = view.frame.keep_component_sizes(roles)
        return {
            "hops": hops, "channels": channels, "basis": keep_columns(basis), "values": values, "roles": roles,
            "mean": mean, "deviation": deviation,
        }  # fmt: skip

    return Positions(view=view, parts=parts, nodes=nodes, counts=counts, **view.once(columns))


def _standardise(
    channels: Floats, counts: IntArray, union: GraphBatch, scales: tuple[Floats, Floats] | None
) -> tuple[Floats, Floats]:
    """Make every channel zero-mean and unit-variance in every graph, in place; padding becomes zero.

    Returns the mean and the deviation of every channel, ``[G, C]`` each. If these are given, they are used.
    """
    places = np.arange(channels.shape[1])
    padded = bool((counts < places.size).any())
    entries = (counts * union.sizes)[:, None]
    sums = np.empty((channels.shape[0], channels.shape[2]))
    mean = np.zeros((union.num_graphs, channels.shape[2]), np.float32) if scales is None else scales[0]
    for power in (1, 2) if scales is None else (2,):  # first the mean, then the variance of what is left
        for rows in _blocks(channels):
            block, graph = channels[rows], union.graph_of[rows]
            if power == 2:
                block -= mean[graph, None]
            if padded:
                block[places >= counts[graph, None]] = 0
            sums[rows] = channel_sums(block, power)
        moment = (np.add.reduceat(sums, union.ptr[:-1]) / entries).astype(np.float32)
        if power == 1:
            mean = moment
    deviation = deviation_of(moment) if scales is None else scales[1]
    for rows in _blocks(channels):
        channels[rows] /= deviation[union.graph_of[rows], None]
    return mean, deviation


def _blocks(channels: Floats) -> list[slice]:
    """Rows that are worked on at once, few enough to stay in the processor's cache from one step to the next."""
    rows = max(BLOCK // max(channels[:1].nbytes, 1), 1)
    return [slice(start, start + rows) for start in range(0, channels.shape[0], rows)]
