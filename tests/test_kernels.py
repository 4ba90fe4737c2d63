"""Kernels stand in one package, and give the same compiled and as plain Python (``NUMBA_DISABLE_JIT=1``)."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from psgnn.kernels import _anchors as anchors
from psgnn.kernels import _bfs as bfs
from psgnn.kernels import _csr as csr
from psgnn.kernels import _drawing as drawing
from psgnn.kernels import _lengths as lengths
from psgnn.kernels import _messages as messages
from psgnn.kernels import _pairs as pairs
from psgnn.kernels import _profiles as profiles
from psgnn.kernels import _propagation as propagation
from psgnn.kernels import _sampling as sampling
from psgnn.kernels import _scoring as scoring
from psgnn.kernels import _text as text
from psgnn.kernels import _ways as ways

PACKAGE = Path(csr.__file__).parent.parent
Array = npt.NDArray[Any]
Results = list[Any]

CASES: dict[str, Callable[[], Results]] = {}


def case(*kernels: str) -> Callable[[Callable[[], Results]], Callable[[], Results]]:
    """Name the kernels that a case runs, ``module.function``."""

    def register(run: Callable[[], Results]) -> Callable[[], Results]:
        CASES.update(dict.fromkeys(kernels, run))
        return run

    return register


# --- inputs


def edges() -> tuple[Array, Array]:
    """A random part, a hub, a path, and isolated nodes: 76 nodes, each edge once or twice, with self-loops."""
    rng = np.random.default_rng(0)
    random = rng.integers(0, 40, (2, 110))
    hub = np.stack([np.zeros(30, np.int64), np.arange(10, 40)])
    path = np.stack([np.arange(39, 69), np.arange(40, 70)])
    rows, cols = np.concatenate([random, hub, path], axis=1)
    return rows, cols


NODES = 76


def graph() -> tuple[Array, Array]:
    """The same as a symmetric CSR, without the kernels."""
    table = np.zeros((NODES, NODES), bool)
    table[edges()] = True
    table |= table.T
    np.fill_diagonal(table, False)
    rows, cols = np.nonzero(table)
    indptr = np.zeros(NODES + 1, np.int64)
    np.cumsum(np.bincount(rows, minlength=NODES), out=indptr[1:])
    return indptr, cols.astype(np.int32)


def some_pairs(count: int = 40) -> tuple[Array, Array]:
    us, vs = np.random.default_rng(1).integers(0, NODES, (2, count))
    return np.sort(us), vs


def floats(*shape: int, dtype: Any = np.float32) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


# --- one case for every kernel


@case("_csr.bucket_edges", "_csr.transpose", "_csr.drop_repeats", "_csr.merge_rows", "_csr.in_order")
def build() -> Results:
    rows, cols = edges()
    there = csr.bucket_edges(rows, cols, NODES)
    back = csr.transpose(*there)
    one, two = csr.drop_repeats(*csr.transpose(*back)), csr.drop_repeats(*back)
    order = np.lexsort([cols, rows])
    ordered = (
        csr.in_order(rows, cols),
        csr.in_order(rows[order], cols[order]),
        csr.in_order(rows[:0], cols[:0]),
    )
    return [*there, *back, *one, *two, *csr.merge_rows(*one, *two), *ordered]


@case("_csr.is_symmetric", "_csr.edges_below", "_csr.mirror", "_csr.connected_components")
def symmetric() -> Results:
    indptr, indices = graph()
    rows = np.repeat(np.arange(NODES), np.diff(indptr))
    below = indices < rows
    lower = np.concatenate([[0], np.cumsum(np.bincount(rows[below], minlength=NODES))])
    return [
        csr.is_symmetric(indptr, indices),
        csr.is_symmetric(lower, indices[below]),
        csr.edges_below(indptr, indices),
        *csr.mirror(lower, indices[below]),
        csr.connected_components(indptr, indices),
    ]


@case("_bfs.bitset_bfs")
def bit_parallel() -> Results:
    found: Results = []
    nothing = np.zeros(NODES + 1, np.int64), np.empty(0, np.int32)
    for indptr, indices in (graph(), nothing):
        for nodes, lanes, cutoff, probe in (
            (np.arange(64), np.arange(64), bfs.NO_CUTOFF, False),
            (np.array([69, 60, 3, 3]), np.array([0, 0, 0, 1]), bfs.NO_CUTOFF, True),
            (np.array([0, 69]), np.array([0, 1]), 3, False),
        ):
            hops, sums = np.full((NODES, 64), -1, np.int16), np.zeros((3, NODES))
            state = bfs.bitset_bfs(indptr, indices, nodes, lanes, hops, 0, 30000, cutoff, probe, sums)
            found += [state, hops, sums]
    return found


@case("_bfs.queue_bfs", "_bfs.queue_columns", "_bfs.queue_sums", "_bfs.nearest_members")
def queues() -> Results:
    order, hops, queue = graph(), np.empty(NODES, np.int32), np.empty(NODES, np.int32)
    reached = bfs.queue_bfs(*order, np.array([0, 69]), hops, queue, bfs.NO_CUTOFF)
    nodes, starts = np.arange(0, 60, 2), np.concatenate([np.arange(0, 28), [30]])
    columns, sums = np.empty((NODES, 28), np.int16), np.zeros((3, NODES))
    state = bfs.queue_columns(*order, nodes, starts, columns, 0, -1, 30000, 20)
    bfs.queue_sums(*order, 1, 2, bfs.NO_CUTOFF, sums)
    near, who = np.full((NODES, 28), -1, np.int16), np.full((NODES, 28), -1, np.int32)
    bfs.nearest_members(*order, nodes, starts, 0, 1, near, who, 20)
    return [reached, hops, queue[:reached], state, columns, sums, near, who]


@case("_lengths.arcs_of", "_lengths.breadth_first_order", "_lengths.eliminate", "_lengths.fill_lengths")
def shortest_paths() -> Results:
    rows, cols = (ends.astype(np.int32) for ends in edges())
    each = np.random.default_rng(2).uniform(0.1, 2, rows.size)
    found: Results = [lengths.breadth_first_order(*graph()), *lengths.arcs_of(rows, cols, each, NODES, True)]
    order, gone, *arcs = lengths.eliminate(*lengths.arcs_of(rows, cols, each, NODES, False))
    found += [order, gone, *arcs]
    seeds, starts = np.arange(0, 60, 5).astype(np.int32), np.array([*range(11), 12])
    # buckets as they should be, so narrow that the search is given up, and none
    for step, buckets in ((0.25, 512), (1e-4, 2**17), (1.0, 0)):
        found.append(np.empty((NODES, 11), np.float32))
        lengths.fill_lengths(order, gone, *arcs, seeds, starts, 4.0, step, buckets, 0, 11, found[-1])
    return found


@case("_propagation.spread_rows", "_propagation.walk_rows", "_propagation.smooth_rows")
def walks() -> Results:
    indptr, indices = graph()
    width = 7 * 16  # lines of the cache: blocks of four, of two, and one
    x, scale = floats(NODES, width), floats(NODES)
    spread, walked, smooth = (np.empty_like(x) for _ in range(3))
    propagation.spread_rows(indptr, indices, x, scale, scale, spread, 0, NODES)
    sums = np.zeros((2, NODES, width - 5), np.float32)
    weights = np.array([0.25, 0.5], np.float32)
    propagation.walk_rows(indptr, indices, x, scale, weights, sums, walked, 0, NODES)
    graph_of = np.arange(NODES) // 10
    everywhere = floats(graph_of[-1] + 1, width)
    propagation.smooth_rows(
        indptr, indices, x, np.float32(0.5), scale, everywhere, graph_of, smooth, 0, NODES
    )
    return [spread, sums, walked, smooth]


@case("_propagation.degree_rows", "_propagation.sum_rows")
def around() -> Results:
    degrees, sums = np.zeros((4, NODES)), np.zeros(NODES)
    propagation.degree_rows(
        *graph(), np.diff(graph()[0]), np.log1p(np.arange(NODES, dtype=np.float64)), degrees, 0, NODES
    )
    propagation.sum_rows(*graph(), floats(NODES, dtype=np.float64), sums, 0, NODES)
    return [degrees, sums]


@case("_messages.sum_rows", "_messages.dots", "_messages.dots_backward")
def neighbours() -> Results:
    x, named = floats(NODES, 8), np.stack(some_pairs())
    sums, products, slope = np.empty_like(x), np.empty(named.shape[1], np.float32), np.zeros_like(x)
    messages.sum_rows(*graph(), x, 0, NODES, sums)
    messages.dots(x, named, products)
    messages.dots_backward(x, named, products, slope)
    return [sums, products, slope]


@case("_messages.sum_weighted", "_messages.sum_weighted_backward")
def heads() -> Results:
    indptr, indices = graph()
    weight, x = floats(indices.size, 2), floats(NODES, 2, 5)
    sums, grad_weight, grad_x = np.zeros_like(x), np.empty_like(weight), np.zeros_like(x)
    messages.sum_weighted(indptr, indices, weight, x, sums)
    messages.sum_weighted_backward(indptr, indices, weight, x, sums, grad_weight, grad_x)
    return [sums, grad_weight, grad_x]


@case("_messages.pool_forward", "_messages.read_forward", "_messages.backward")
def fused() -> Results:
    rng = np.random.default_rng(5)
    nodes, count, width, found = 12, 6, 20, []
    table, base, own, readout = floats(9, width), floats(nodes, width), floats(nodes, width), floats(width)
    near, who = rng.integers(0, 9, (nodes, count), np.int32), rng.integers(0, nodes, (nodes, count), np.int32)
    weight = np.array([[1, 0.5, 0, 2, 1, 0], [1, 1, 1, 0, 0, 3]], np.float32)
    of = np.repeat(np.arange(2), nodes // 2)
    for term, factor, named in ((None, None, None), (own, None, who), (None, own, who)):
        common = table, near, base, term, factor, named, weight, of
        pooled, read = np.empty((nodes, width), np.float32), np.empty((nodes, count), np.float32)
        messages.pool_forward(*common, 0, nodes, pooled)
        messages.read_forward(*common, readout, 0, nodes, read)
        for slope, by in ((pooled, None), (read, readout)):
            grads = [np.zeros_like(array) for array in (table, base, own, weight)]
            last = None if by is None else np.zeros_like(by)
            messages.backward(*common, by, 0, nodes, slope, *grads, last)
            found += [*grads, *([] if last is None else [last])]
        found += [pooled, read]
    return found


@case(
    "_csr.triangles",
    "_csr.add_triangles",
    "_pairs.shared_neighbours",
    "_pairs.pushed_pagerank",
    "_profiles.look_up",
)
def pair_scores() -> Results:
    (us, vs), shared, rank = some_pairs(), np.empty(40), np.empty(40)
    pairs.shared_neighbours(*graph(), us, vs, floats(NODES, dtype=np.float64), shared)
    pairs.pushed_pagerank(*graph(), us, vs, 0.15, 1e-4, rank)
    values, looked = floats(9, 3), np.empty((9, 3), np.float32)
    profiles.look_up(np.sort(floats(3, 4), axis=1), floats(3, 5), values, looked)
    return [csr.triangles(*graph()), shared, rank, looked]


@case("_pairs._pair_hops", "_pairs._local_walks", "_pairs.rows_of_walks")
def near_pairs() -> Results:
    (us, vs), hops, walked = some_pairs(), np.empty(40), np.empty((40, 6))
    pairs.pair_hops(*graph(), us, vs, bfs.NO_CUTOFF, hops)
    pairs.local_walks(*graph(), us, vs, 20, walked)
    indptr, indices = graph()
    wanted = np.zeros(NODES, np.bool_)
    pairs.rows_of_walks(indptr[:-1], indptr[1:], indices, us, vs, 20, wanted)
    return [hops, walked, wanted]


@case("_profiles.hop_profiles", "_profiles.channel_profiles")
def statistics() -> Results:
    us, vs = some_pairs(20)
    hops = np.random.default_rng(2).integers(-1, 9, (NODES, 5)).astype(np.int16)
    counts = np.tile([5, 3, 0, 1], 5)
    by_hops, by_channel = np.empty((20, 9), np.float32), np.empty((20, 14), np.float32)
    profiles.hop_profiles(hops, counts, us, vs, 30.0, by_hops)
    profiles.channel_profiles(floats(NODES, 5, 3), 1, counts, us, vs, by_channel)
    return [by_hops, by_channel]


@case("_ways.weighted_ways")
def weighted() -> Results:
    (us, vs), (indptr, indices) = some_pairs(), graph()
    weights, sizes = np.abs(floats(indices.size, dtype=np.float64)), 1 + np.diff(indptr).astype(np.float64)
    arcs, walked = (indptr, indices, weights), np.empty((2, us.size, ways.WAYS))
    for most, out in zip((10**6, 20), walked, strict=True):
        ways.weighted_ways(*arcs, *arcs, *arcs, sizes, sizes, us, vs, most, out)
    return [walked]


@case("_anchors.farthest_first", "_anchors.paired_after", "_anchors.newly_covered")
def greedy() -> Results:
    nearest, order, chosen = np.full(NODES, NODES, np.int32), np.arange(NODES)[::-1].copy(), np.full(12, -1)
    chosen[0] = 5
    anchors.farthest_first(*graph(), nearest, order, chosen, 1)
    columns = np.random.default_rng(3).integers(-1, 5, (NODES, 8)).astype(np.int16)
    together = anchors.paired_after(columns, order, np.array([0, 20, 21, NODES]))
    covered, reach = np.zeros(NODES, bool), np.full(NODES, -1, np.int32)
    queue = np.empty(NODES, np.int32)
    gains = [anchors.newly_covered(*graph(), v, 2, covered, reach, queue, True) for v in (0, 60, 1)]
    return [nearest, chosen, together, *gains, covered, reach]


@case("_profiles.add_moments")
def sums_over_columns() -> Results:
    hops = np.random.default_rng(4).integers(-1, 9, (NODES, 70)).astype(np.int16)
    sums = np.ones((NODES, 3), np.int64)
    profiles.add_moments(hops, np.arange(70), sums)
    return [sums]


@case("_anchors.add_flow", "_anchors.mix_neighbours", "_anchors.pair_cells", "_anchors.cell_gains")
def judged() -> Results:
    flow, load = np.zeros(NODES), np.zeros(NODES)
    anchors.add_flow(*graph(), 0, 2, False, flow)
    anchors.add_flow(*graph(), 0, 2, True, load)
    us, vs = some_pairs()
    hops = np.random.default_rng(4).integers(-1, 9, (NODES, 7)).astype(np.int16)
    cells, gains = np.empty((7, 40), np.uint8), np.empty(7)
    anchors.pair_cells(hops, us, vs, cells)
    anchors.cell_gains(cells, floats(40, dtype=np.float64), np.ones(40), gains)
    return [flow, load, anchors.mix_neighbours(*graph(), np.arange(NODES) % 3), cells, gains]


@case("_scoring.walk_partners_within")
def partners() -> Results:
    few, all_of_them = np.full((NODES, 6), -1, np.int32), np.full((NODES - 9, 6), -1, np.int32)
    scoring.walk_partners(*graph(), 0, 10, few)
    scoring.walk_partners(*graph(), 9, 5000, all_of_them)
    return [few, all_of_them]


@case("_sampling.count_at_most", "_sampling.pair_of_code", "_sampling.replacements")
def draws() -> Results:
    us, vs = some_pairs()
    found: Results = [sampling.count_at_most(us, np.sort(vs)), sampling.pair_of_code(np.arange(30))]
    for by_distance in (False, True):
        wanted = np.where(np.arange(40) % 2, sampling.AS_MODEL, 3)
        rng = np.random.default_rng(6)
        found += sampling.replacements(*graph(), *graph(), us, vs, wanted, by_distance, rng)
    return found


@case("_text.factorize_keys", "_text.has_padding")
def table_text() -> Results:
    keys = np.random.default_rng(7).integers(0, 900, 1500).astype(np.uint64) * np.uint64(2**53 + 1)
    padded = [
        text.has_padding(np.frombuffer(line, np.uint8)) for line in (b"1,2\n10,+3\n", b"1,007\n", b"0,1\n")
    ]
    return [*text.factorize_keys(keys), *padded]


@case("_drawing.move_nodes", "_drawing.spring")
def drawn() -> Results:
    indptr, indices = graph()
    labels, places = np.arange(NODES), floats(NODES, 2, dtype=np.float64)
    degrees = np.diff(indptr).astype(np.float64)
    wide = indices.astype(np.int64)
    drawing.move_nodes(indptr, wide, np.ones(indices.size), degrees, np.arange(NODES), labels)
    drawing.spring(places, *some_pairs(), 3)
    return [labels, places]


@case("_scoring.pool_adjacent")
def pooled() -> Results:
    rng = np.random.default_rng(8)
    return [*scoring.pool_adjacent(rng.integers(2, size=60).astype(np.float64), rng.random(60))]


# --- tests


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Array]:
    """The results of all cases in a process that compiles nothing."""
    path = tmp_path_factory.mktemp("plain") / "results.npz"
    subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", __file__, str(path)],
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
        check=True,
    )
    with np.load(path) as results:
        return dict(results)


@pytest.mark.parametrize("run", dict.fromkeys(CASES.values()), ids=lambda run: run.__name__)
def test_plain_python_gives_the_same(run: Callable[[], Results], plain: dict[str, Array]) -> None:
    results = run()
    assert len(results) == sum(name.startswith(f"{run.__name__} ") for name in plain)
    for place, result in enumerate(results):
        other, found = plain[f"{run.__name__} {place}"], np.asarray(result)
        if found.dtype.kind != "f":
            np.testing.assert_array_equal(other, found)
        else:  # compiled sums may be in another order
            assert other.dtype == found.dtype
            tolerance = 2e-5 if found.dtype == np.float32 else 1e-12
            np.testing.assert_allclose(other, found, rtol=tolerance, atol=tolerance)


def test_the_package_works_without_compilation() -> None:
    code = (
        "import psgnn, psgnn.models\n"
        "graph = psgnn.load_dataset('grid')[0]\n"
        "print(psgnn.select_anchors(graph, 'farthest-first', 4), psgnn.select_anchors(graph, 'betweenness', 4))\n"
        "print(psgnn.shortest_distances(graph, [0, 399]).sum(axis=0), psgnn.anchor_diagnostics(graph, [0, 399]))\n"
    )
    printed = [
        subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"NUMBA_DISABLE_JIT": without},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for without in "01"
    ]
    assert printed[0] == printed[1] != ""


def kernels_of(path: Path) -> dict[str, ast.FunctionDef]:
    """The functions of a module with ``@njit`` or ``@njit(...)``."""
    found = {}
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef):
            marks = [mark.func if isinstance(mark, ast.Call) else mark for mark in node.decorator_list]
            if any(ast.unparse(mark).endswith("jit") for mark in marks):
                found[node.name] = node
    return found


def test_every_kernel_is_in_the_package_of_kernels() -> None:
    outside = [
        f"{path.relative_to(PACKAGE)}: {name}"
        for path in PACKAGE.rglob("*.py")
        if path.parent != PACKAGE / "kernels"
        for name in kernels_of(path)
    ]
    assert outside == []


def test_every_kernel_has_a_case() -> None:
    """A helper that another kernel of its module calls is run by the case of that one."""
    missing = []
    for path in (PACKAGE / "kernels").glob("*.py"):
        kernels = kernels_of(path)
        calls = {
            name: {ast.unparse(call.func) for call in ast.walk(node) if isinstance(call, ast.Call)}
            for name, node in kernels.items()
        }
        run = {name for name in kernels if f"{path.stem}.{name}" in CASES}
        while found := {name for caller in run for name in calls[caller] & kernels.keys()} - run:
            run |= found
        missing += [f"{path.stem}.{name}" for name in kernels.keys() - run]
    assert missing == []


def test_work_in_threads_may_ask_for_threads() -> None:
    """In a process of its own, which could wait for itself forever."""
    code = (
        "from psgnn.kernels._compile import parallel_map\n"
        "def work(i): return sum(parallel_map(lambda j: 10 * i + j, range(4), 1e9))\n"
        "print(parallel_map(work, range(6), 1e9))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout.strip() == str([40 * i + 6 for i in range(6)])


if __name__ == "__main__":
    everything = {}
    for run in dict.fromkeys(CASES.values()):
        everything |= {f"{run.__name__} {place}": result for place, result in enumerate(run())}
    np.savez(sys.argv[1], **everything)
