r"""Distances to named sets of nodes, beside those to random sets of nodes with the same degrees.

The distance from set A to set B is the closest measure of Guney et al. (2016, doi:10.1038/ncomms10331), in which A are
the targets of a drug and B the genes of a disease:

.. math:: d_c(A, B) = \frac{1}{|A|} \sum_{a \in A} \min_{b \in B} d(a, b), \qquad z = \frac{d_c - \mu}{\sigma}

The mean and the standard deviation are those of random sets. A random set has as many nodes from each bin of degrees as
the set itself, all different. A bin holds consecutive degrees and at least 100 nodes; the last joins the one before it
if it is smaller. A negative z means nearer than chance.

Paths that do not exist do not count: means are over the members that are reached, and random sets count where they are
reached. A z is null where fewer than two random sets count, or all of them are equally far.

Each random set is one breadth-first search from all its members, and 64 of them share a machine word. So a set costs
as much as 1000 anchors, whatever its size, and equal random sets are searched once. There is no table of all distances.
On 18,772 nodes it takes as long as the random sets of about 50 sets, and 336 MiB. With 50 members or more, minima over
its rows are slower than the searches; with a handful they are faster.
"""

from __future__ import annotations

import logging
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from psgnn.console import progress
from psgnn.distances._engine import Hops, set_columns
from psgnn.errors import InputError, check_integer
from psgnn.graph._graph import Adjacency, Graph, IntArray
from psgnn.graph._names import distinct_ids, read_sets
from psgnn.graph._read import read_graph
from psgnn.kernels._compile import parallel_rows
from psgnn.kernels._profiles import add_moments
from psgnn.paths import PathLike

log = logging.getLogger(__name__)

Doubles = npt.NDArray[np.float64]
Sets = Mapping[str, Iterable[str | int]]

SAMPLES = 1000
BIN_SIZE = 100
MOST_CELLS = 2**25  # of a block of columns
WIDEST = 1024  # columns of a block
TAKEN = 2**24  # cells of the table of drawn nodes


@dataclass(frozen=True, eq=False)
class Proximity:
    """What `measure_sets` found: a row per node and set, and a row per ordered pair of sets."""

    nodes: pl.DataFrame
    sets: pl.DataFrame


def set_distances(
    graph: Any,
    sets: Sets | PathLike,
    *,
    samples: int = SAMPLES,
    seed: int = 0,
    bin_size: int = BIN_SIZE,
) -> pl.DataFrame:
    """Measure how far every node is from each named set, and whether that is nearer than chance.

    Chance is `samples` random sets with the same degrees as the named set; the node stays.

    Args:
        graph: A `Graph`, or anything that `psgnn.read_graph` takes.
        sets: The members of each set, by name or id: ``{"disease": ["TP53", "MDM2"]}``. Or the path of a table of
            ``node,set`` lines.
        samples: Random sets per named set. 0 leaves out the z-scores.
        seed: Seed of the random sets. Those of a set depend on its name, not on the other sets.
        bin_size: Nodes that a bin of degrees has at least.

    Returns:
        One row per set and node. ``nearest`` is the hops to the nearest member, 0 for a member itself. ``mean`` is the
        mean over the members that are reached, ``reached`` of them. ``expected`` is the mean of ``nearest`` over the
        random sets, and ``z`` the difference in standard deviations. Where no member is reached, ``nearest``, ``mean``
        and ``z`` are null.

    Raises:
        InputError: If a set has no members or one twice, or a name is not a node of the graph.

    >>> import networkx as nx
    >>> frame = set_distances(nx.path_graph(5), {"ends": [0, 4]}, samples=0)
    >>> frame["nearest"].to_list(), frame["mean"].to_list()
    ([0, 1, 2, 1, 0], [2.0, 2.0, 2.0, 2.0, 2.0])
    """
    return measure_sets(graph, sets, samples=samples, seed=seed, bin_size=bin_size, between=False).nodes


def set_proximity(
    graph: Any,
    sets: Sets | PathLike,
    *,
    samples: int = SAMPLES,
    seed: int = 0,
    bin_size: int = BIN_SIZE,
) -> pl.DataFrame:
    """Measure how far named sets are from each other, and whether that is nearer than chance.

    The distance is the mean, over the members of one set, of the hops to the nearest member of the other (the closest
    measure of Guney et al. 2016). Chance is `samples` pairs of random sets with the same degrees.

    Args:
        graph: A `Graph`, or anything that `psgnn.read_graph` takes.
        sets: At least two sets, as in `set_distances`.
        samples: Random sets per named set. 0 leaves out the z-scores.
        seed: Seed of the random sets. Those of a set depend on its name, not on the other sets.
        bin_size: Nodes that a bin of degrees has at least.

    Returns:
        One row per ordered pair of sets: ``from``, ``to``, ``distance``, the mean (``expected``) and standard deviation
        (``sd``) over the random sets, ``z``, and ``unreached``, the members of ``from`` without a path to ``to``. They
        do not count in ``distance``, which is null if there are no others.

    Raises:
        InputError: If there are fewer than two sets, a set has no members or one twice, or a name is not a node.

    >>> import networkx as nx
    >>> frame = set_proximity(nx.path_graph(5), {"left": [0, 1], "right": [4]}, samples=0)
    >>> frame.select("from", "to", "distance").rows()
    [('left', 'right', 3.5), ('right', 'left', 3.0)]
    """
    found = measure_sets(graph, sets, samples=samples, seed=seed, bin_size=bin_size).sets
    if found.is_empty():
        raise InputError("the distance between sets needs two of them, found one; set_distances measures one")
    return found


def measure_sets(
    graph: Any,
    sets: Sets | PathLike,
    *,
    samples: int = SAMPLES,
    seed: int = 0,
    bin_size: int = BIN_SIZE,
    between: bool = True,
    show_progress: bool = False,
) -> Proximity:
    """Both tables at once, from the same random sets; without `between`, that of the nodes alone."""
    for option, value, least in (("samples", samples, 0), ("seed", seed, 0), ("bin_size", bin_size, 1)):
        check_integer(option, value, least)
    found = read_graph(graph)
    members = _members(sets, found)
    adjacency = found.adjacency
    names = list(members)
    starts = np.cumsum([0, *(nodes.size for nodes in members.values())])
    nearest = set_columns(adjacency, np.concatenate(list(members.values())), starts)  # [N, L]
    bin_of = degree_bins(adjacency.degrees, bin_size)
    drawn = [_random_sets(nodes, bin_of, samples, seed, name) for name, nodes in members.items()]
    for name, nodes in members.items():
        if samples and np.isin(bin_of, bin_of[nodes]).sum() == nodes.size:
            log.warning(
                "the set '%s' has no z-scores: no other node has a degree like those of its members; "
                "larger bins of degrees may help",
                name,
            )
    frames, rows = [], []
    for j in progress(range(len(names)), "random sets", show=show_progress):
        moments, apart = _chance(adjacency, drawn, j, between)
        frames.append(_node_rows(adjacency, found.names, names[j], members[names[j]], nearest[:, j], moments))
        if between:
            rows += [
                _set_row(names[i], names[j], nearest[members[names[i]], j], apart[i])
                for i in range(len(names))
                if i != j
            ]
    kinds = {"from": pl.String, "to": pl.String, "distance": pl.Float64, "expected": pl.Float64,
             "sd": pl.Float64, "z": pl.Float64, "unreached": pl.Int32}  # fmt: skip
    order = {name: i for i, name in enumerate(names)}
    rows.sort(key=lambda row: order[row[0]])
    return Proximity(pl.concat(frames), pl.DataFrame(rows, schema=kinds, orient="row"))


def _members(sets: Sets | PathLike, graph: Graph) -> dict[str, IntArray]:
    if isinstance(sets, (str, Path)):
        return read_sets(sets, graph.names)
    if not isinstance(sets, Mapping):
        raise InputError(f"sets must map names to nodes, found {type(sets).__name__}; pass {{'name': nodes}}")
    if not sets:
        raise InputError("no set was given; pass at least one")
    return {str(name): distinct_ids(nodes, graph.names, f"the set '{name}'") for name, nodes in sets.items()}


def degree_bins(degrees: IntArray, bin_size: int = BIN_SIZE) -> IntArray:
    """The bin of every node, ``[N]``: consecutive degrees together until they have `bin_size` nodes.

    >>> degree_bins(np.array([1, 1, 2, 3, 9]), 2)
    array([0, 0, 1, 1, 1])
    """
    values, counts = np.unique(degrees, return_counts=True)
    bins = np.zeros(values.size, np.int64)
    current = size = 0
    for i, count in enumerate(counts.tolist()):
        bins[i], size = current, size + count
        if size >= bin_size:
            current, size = current + 1, 0
    if size and current:
        bins[bins == current] -= 1
    return np.asarray(bins[np.searchsorted(values, degrees)])


def _random_sets(nodes: IntArray, bin_of: IntArray, samples: int, seed: int, name: str) -> IntArray:
    """Random sets ``[samples, m]`` with as many nodes of each bin as `nodes`."""
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    parts = []
    for which, count in zip(*np.unique(bin_of[nodes], return_counts=True), strict=True):
        pool = np.flatnonzero(bin_of == which)
        parts.append(pool[_subsets(rng, pool.size, int(count), samples)])
    return np.concatenate(parts, axis=1)


def _subsets(rng: np.random.Generator, size: int, count: int, samples: int) -> IntArray:
    """Random subsets ``[samples, count]`` of 0..size-1, all equally likely (Floyd's algorithm, many at once)."""
    found = np.empty((samples, count), np.int64)
    step = max(TAKEN // size, 1)
    for first in range(0, samples, step):
        rows = np.arange(min(step, samples - first))
        taken = np.zeros((rows.size, size), np.bool_)
        for k in range(count):
            last = size - count + k
            node = rng.integers(0, last + 1, rows.size)
            node[taken[rows, node]] = last
            taken[rows, node] = True
            found[first : first + step, k] = node
    return found


def _chance(
    adjacency: Adjacency, drawn: list[IntArray], j: int, between: bool
) -> tuple[IntArray, list[Doubles]]:
    """Of the random sets of set `j`: sums over them per node ``[N, 3]``, and the distances of each set's random sets.

    Random sets that are equal are searched once, which is much where a set has few members.
    """
    moments = np.zeros((adjacency.num_nodes, 3), np.int64)
    samples = drawn[j].shape[0]
    apart = [np.full(samples if between else 0, np.nan) for _ in drawn]
    if not samples:
        return moments, apart
    lanes, lane_of, times = np.unique(
        np.sort(drawn[j], axis=1), axis=0, return_inverse=True, return_counts=True
    )
    lane_of = lane_of.reshape(-1)  # NumPy 2.0 gives it another shape
    width = max(min(MOST_CELLS // adjacency.num_nodes // 64 * 64, WIDEST), 64)
    for first in range(0, lanes.shape[0], width):
        block = lanes[first : first + width]
        hops = set_columns(adjacency, block.ravel(), np.arange(block.shape[0] + 1) * block.shape[1])
        _add(hops, times[first : first + width], moments)
        here = np.flatnonzero((lane_of >= first) & (lane_of < first + width))
        for i, others in enumerate(drawn if between else []):
            if i != j:
                apart[i][here] = _means(hops[others[here], (lane_of[here] - first)[:, None]])
    return moments, apart


def _add(hops: Hops, weights: IntArray, moments: IntArray) -> None:
    parallel_rows(
        lambda first, last: add_moments(hops[first:last], weights, moments[first:last]),
        hops.shape[0],
        hops.size,
    )


def _means(hops: Hops) -> Doubles:
    """The mean of each row over what is reached; NaN where nothing is."""
    reached = hops >= 0
    with np.errstate(invalid="ignore"):
        return np.asarray((hops * reached).sum(axis=1) / reached.sum(axis=1))


def _node_rows(
    adjacency: Adjacency, names: list[str], name: str, members: IntArray, nearest: Hops, moments: IntArray
) -> pl.DataFrame:
    """The rows of one set."""
    own = np.zeros_like(moments)
    width = max(MOST_CELLS // adjacency.num_nodes // 64 * 64, 64)
    for first in range(0, members.size, width):
        part = members[first : first + width]
        _add(set_columns(adjacency, part, np.arange(part.size + 1)), np.ones(part.size, np.int64), own)
    count, total, squares = moments.T.astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean, expected = own[:, 1] / own[:, 0], total / count
        sd = np.sqrt(count * squares - total**2) / count  # exact zeros, for all are integers
        z = np.where((nearest >= 0) & (sd > 0), (nearest - expected) / sd, np.nan)
    frame = pl.DataFrame(
        {
            "set": pl.Series([name], dtype=pl.String).new_from_index(0, len(names)),
            "node": pl.Series(names, dtype=pl.String),
            "nearest": nearest.astype(np.int32),
            "mean": mean,
            "reached": own[:, 0].astype(np.int32),
            "expected": expected,
            "z": z,
        }
    )
    return frame.with_columns(pl.col("nearest").replace(-1, None), pl.col(pl.Float64).fill_nan(None))


def _set_row(source: str, target: str, hops: Hops, apart: Doubles) -> tuple[Any, ...]:
    distance = _number(_means(hops[None])[0])
    known = apart[~np.isnan(apart)]
    expected, sd = (float(known.mean()), float(known.std())) if known.size else (None, None)
    spread = known.size > 1 and float(np.ptp(known)) > 0
    z = (
        (distance - expected) / sd
        if spread and distance is not None and expected is not None and sd
        else None
    )
    return source, target, distance, expected, sd, z, int((hops < 0).sum())


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
