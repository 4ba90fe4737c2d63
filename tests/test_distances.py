from __future__ import annotations

import math
import threading

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import psgnn.distances._engine as engine
from conftest import adjacency_of, data_of, random_graphs
from psgnn.distances import (
    DistanceOracle,
    diffusion_columns,
    distance_sums,
    hop_columns,
    pagerank_columns,
    set_columns,
    shortest_distances,
    walk_columns,
)
from psgnn.distances._propagation import spread
from psgnn.errors import InputError
from psgnn.graph._graph import GraphBatch
from psgnn.kernels._bfs import NO_CUTOFF, TOO_DEEP, TOO_SLOW, bitset_bfs, queue_columns
from psgnn.kernels._compile import kernel_threads, num_threads, parallel_map


def networkx_hops(graph: nx.Graph, cutoff: int | None = None) -> np.ndarray:
    num_nodes = graph.number_of_nodes()
    hops = np.full((num_nodes, num_nodes), -1, np.int16)
    for source, lengths in nx.all_pairs_shortest_path_length(graph, cutoff=cutoff):
        for node, length in lengths.items():
            hops[node, source] = length
    return hops


# Graphs of every shape that decides between the kernels: tiny and large diameter, dense, disconnected.
SHAPES = {
    "path": nx.path_graph(130),
    "cycle": nx.cycle_graph(301),
    "grid": nx.convert_node_labels_to_integers(nx.grid_2d_graph(13, 17)),
    "caveman": nx.connected_caveman_graph(12, 8),
    "power law": nx.barabasi_albert_graph(300, 3, seed=1),
    "complete": nx.complete_graph(70),
    "star": nx.star_graph(100),
    "islands": nx.disjoint_union_all([nx.path_graph(90), nx.complete_graph(20), nx.empty_graph(5)]),
    "edgeless": nx.empty_graph(7),
}


@pytest.mark.parametrize("cutoff", [2.5, -1, "2"])
def test_a_cutoff_is_a_number_of_hops(cutoff: object) -> None:
    with pytest.raises(InputError, match="is not an integer of 0 or more"):
        shortest_distances(np.array([[0], [1]]), cutoff=cutoff)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("cutoff", [None, 0, 1, 5])
def test_all_pairs_agree_with_networkx(name: str, cutoff: int | None) -> None:
    graph = SHAPES[name]
    edge_index = adjacency_of(graph).edge_index()
    hops = shortest_distances(edge_index, num_nodes=graph.number_of_nodes(), cutoff=cutoff)
    assert hops.dtype == np.int16
    assert np.array_equal(hops, networkx_hops(graph, cutoff))


@given(random_graphs(), st.data())
def test_any_sources_of_any_graph_agree_with_networkx(graph: nx.Graph, data: st.DataObject) -> None:
    nodes = np.array(data.draw(st.lists(st.sampled_from(sorted(graph.nodes)), max_size=150)), dtype=np.int64)
    hops = hop_columns(adjacency_of(graph), nodes)
    assert np.array_equal(hops, networkx_hops(graph)[:, nodes])


@pytest.mark.parametrize("name", [name for name in SHAPES if name != "edgeless"])
def test_the_two_kernels_agree(name: str) -> None:
    adjacency = adjacency_of(SHAPES[name])
    nodes = np.arange(min(64, adjacency.num_nodes))
    tables = []
    for kernel in ("bitset", "queue"):
        hops = np.full((adjacency.num_nodes, nodes.size + 2), -1, np.int16)
        csr = adjacency.indptr, adjacency.indices
        if kernel == "bitset":
            bitset_bfs(*csr, nodes, nodes, hops, 1, 30_000, NO_CUTOFF, False, np.empty((0, 0)))
        else:
            queue_columns(*csr, nodes, np.arange(nodes.size + 1), hops, 1, -1, 30_000, NO_CUTOFF)
        tables.append(hops)
    assert np.array_equal(*tables)
    assert (tables[0][:, [0, -1]] == -1).all()  # columns of others are left alone


def test_the_probe_tells_large_diameters_from_small(monkeypatch: pytest.MonkeyPatch) -> None:
    states = []
    kernel = engine.bitset_bfs
    monkeypatch.setattr(engine, "bitset_bfs", lambda *args: states.append(kernel(*args)) or states[-1])
    hop_columns(adjacency_of(nx.path_graph(2000)), np.arange(64))
    hop_columns(adjacency_of(SHAPES["power law"]), np.arange(64))
    assert states == [TOO_SLOW, 0]


@given(random_graphs(min_nodes=2), st.data())
def test_sets_give_the_nearest_member(graph: nx.Graph, data: st.DataObject) -> None:
    sets = data.draw(st.lists(st.lists(st.sampled_from(sorted(graph.nodes)), max_size=4), max_size=70))
    nodes = np.array([node for members in sets for node in members], dtype=np.int64)
    starts = np.cumsum([0, *map(len, sets)])
    hops = set_columns(adjacency_of(graph), nodes, starts)
    every = networkx_hops(graph).astype(float)
    every[every < 0] = np.inf
    for j, members in enumerate(sets):
        nearest = every[:, members].min(axis=1, initial=np.inf)
        assert np.array_equal(hops[:, j], np.where(np.isinf(nearest), -1, nearest))


@given(random_graphs(max_nodes=25))
def test_distances_are_a_metric(graph: nx.Graph) -> None:
    hops = hop_columns(adjacency_of(graph), np.arange(graph.number_of_nodes())).astype(float)
    hops[hops < 0] = np.inf
    assert np.array_equal(hops, hops.T)
    assert (np.diag(hops) == 0).all()
    assert (hops[:, None, :] <= hops[:, :, None] + hops[None, :, :]).all()


@given(random_graphs(min_nodes=2), st.integers(0, 1000))
def test_relabelling_the_nodes_relabels_the_distances(graph: nx.Graph, seed: int) -> None:
    order = np.random.default_rng(seed).permutation(graph.number_of_nodes())
    moved = nx.relabel_nodes(graph, dict(enumerate(order.tolist())))
    everyone = np.arange(graph.number_of_nodes())
    renamed = nx.empty_graph(graph.number_of_nodes())
    renamed.add_edges_from(moved.edges)
    before = hop_columns(adjacency_of(graph), everyone)
    after = hop_columns(adjacency_of(renamed), everyone)
    assert np.array_equal(before, after[np.ix_(order, order)])


def test_direction_and_repeats_of_edges_do_not_matter() -> None:
    one_way = np.array([[0, 2, 2, 2], [1, 1, 3, 3]])
    both_ways = np.concatenate([one_way, one_way[::-1]], axis=1)
    hops = shortest_distances(one_way)
    assert np.array_equal(hops, shortest_distances(both_ways))
    assert np.array_equal(hops, shortest_distances(torch.from_numpy(both_ways), torch.arange(4)))


def test_a_path_too_long_for_int16_is_an_error_unless_cut_off() -> None:
    adjacency = adjacency_of(nx.path_graph(40_000))
    with pytest.raises(InputError, match="longer than the 32767 hops"):
        hop_columns(adjacency, np.array([0, 1, 2]))
    hops = hop_columns(adjacency, np.array([0]), cutoff=32_767)
    assert hops.max() == 32_767
    assert (hops[32_768:] == -1).all()


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        (np.array([5]), "source 5 is not a node; the graph has the nodes 0..2"),
        (np.array([-1]), "source -1 is not a node"),
        (np.array([0.5]), "must be integer node ids"),
    ],
)
def test_sources_outside_the_graph_are_refused(sources: np.ndarray, message: str) -> None:
    with pytest.raises(InputError, match=message):
        shortest_distances(np.array([[0, 1], [1, 2]]), sources)


def test_all_pairs_of_a_huge_graph_are_refused_before_memory_runs_out() -> None:
    with pytest.raises(InputError, match="GiB, more than half"):
        shortest_distances(np.array([[0], [1]]), num_nodes=10_000_000)


@pytest.mark.parametrize("name", SHAPES)
def test_distance_sums_are_the_row_sums_of_the_matrix(name: str) -> None:
    graph = SHAPES[name]
    hops = networkx_hops(graph).astype(float)
    with np.errstate(divide="ignore"):
        inverse = np.where(hops > 0, 1 / hops, 0)
    sums = distance_sums(adjacency_of(graph))
    assert np.allclose(sums, [(hops * (hops > 0)).sum(1), inverse.sum(1), (hops > 0).sum(1)])
    assert np.array_equal(distance_sums(adjacency_of(graph), cutoff=2)[2], ((hops > 0) & (hops <= 2)).sum(1))


# --- the oracle


def three_graphs() -> tuple[GraphBatch, np.ndarray]:
    shapes = [SHAPES["grid"], SHAPES["islands"], nx.path_graph(300)]
    union = GraphBatch.of([data_of(shape) for shape in shapes])
    every = networkx_hops(nx.disjoint_union_all(shapes))
    return union, every


@pytest.mark.parametrize("small_table", [0, 2**26])
def test_oracle_measures_each_node_to_the_anchors_of_its_own_graph(
    small_table: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("psgnn.distances._oracle.SMALL_TABLE", small_table)
    monkeypatch.setattr("psgnn.distances._oracle.BLOCK", 3)
    union, every = three_graphs()
    oracle = DistanceOracle(union)
    rng = np.random.default_rng(0)
    for _ in range(3):
        anchors = np.stack([rng.integers(union.ptr[g], union.ptr[g + 1], 5) for g in range(3)])
        anchors[1, 3:] = -1
        hops = oracle.hops(anchors)
        assert hops.dtype == np.int16
        for v in range(0, union.num_nodes, 7):
            for k in range(5):
                anchor = anchors[union.graph_of[v], k]
                assert hops[v, k] == (-1 if anchor < 0 else every[v, anchor])


def test_oracle_stays_under_its_cap_and_computes_nothing_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("psgnn.distances._oracle.SMALL_TABLE", 0)
    union = GraphBatch.of([data_of(SHAPES["power law"])])
    oracle = DistanceOracle(union, memory=20 * union.num_nodes)
    computed = []
    original = engine.compact_columns

    def counting(adjacency: object, nodes: np.ndarray, starts: np.ndarray) -> np.ndarray:
        computed.extend(nodes.tolist())
        return original(adjacency, nodes, starts)

    monkeypatch.setattr("psgnn.distances._oracle.compact_columns", counting)
    every = networkx_hops(SHAPES["power law"])
    for first in (0, 3, 6, 250, 0):
        nodes = np.arange(first, first + 10)
        assert np.array_equal(oracle.hops(nodes), every[:, nodes])
        assert oracle.cached_bytes <= oracle.memory
    assert computed == [*range(16), *range(250, 260), *range(6)]  # 0..5 were dropped for 250..259
    with pytest.raises(InputError, match=r"11 distance columns of 300 nodes need .* above the cap"):
        oracle.hops(np.arange(11))


def test_oracle_keeps_bytes_while_they_hold_the_distances(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("psgnn.distances._oracle.SMALL_TABLE", 0)
    short, long = (GraphBatch.of([data_of(nx.path_graph(n))]) for n in (255, 256))
    for union, width in ((short, 1), (long, 2)):
        oracle = DistanceOracle(union)
        assert oracle.hops([0])[-1, 0] == union.num_nodes - 1
        assert oracle.cached_bytes == width * union.num_nodes
        oracle.hops([union.num_nodes - 1] * 2)  # one column, though asked for twice
        assert oracle.cached_bytes == 2 * width * union.num_nodes


def test_oracle_refuses_anchors_of_another_graph() -> None:
    union, _ = three_graphs()
    with pytest.raises(InputError, match="anchor 3 of graph 1 is outside its nodes 221"):
        DistanceOracle(union).hops([[0], [3], [-1]])
    with pytest.raises(InputError, match="anchors have 1 rows for 3 graphs"):
        DistanceOracle(union).hops([0, 1])


# --- PageRank and diffusion


@given(random_graphs(min_nodes=2))
def test_pagerank_agrees_with_dense_algebra(graph: nx.Graph) -> None:
    adjacency = adjacency_of(graph)
    dense = nx.to_numpy_array(graph)
    dense[np.diag_indices_from(dense)] = dense.sum(axis=0) == 0  # a walk on an isolated node stays there
    walk = dense / dense.sum(axis=0)
    nodes = np.array([0, graph.number_of_nodes() - 1])
    exact = 0.3 * np.linalg.inv(np.eye(len(dense)) - 0.7 * walk)[:, nodes]
    columns = pagerank_columns(adjacency, nodes, restart=0.3, steps=60)
    assert np.allclose(columns, exact, atol=1e-5)
    assert np.allclose(columns.sum(axis=0), 1, atol=1e-5)


@given(random_graphs(min_nodes=2))
def test_diffusion_agrees_with_dense_algebra(graph: nx.Graph) -> None:
    dense = nx.to_numpy_array(graph)
    alone = dense.sum(axis=0) == 0
    dense[np.diag_indices_from(dense)] = alone
    scale = 1 / np.sqrt(dense.sum(axis=0))
    step = scale[:, None] * dense * scale
    two, five = diffusion_columns(adjacency_of(graph), np.array([0, 1]), steps=(2, 5))
    assert np.allclose(two, np.linalg.matrix_power(step, 2)[:, :2], atol=1e-6)
    assert np.allclose(five, np.linalg.matrix_power(step, 5)[:, :2], atol=1e-6)


@given(random_graphs(min_nodes=2))
def test_one_walk_gives_pagerank_and_diffusion(graph: nx.Graph) -> None:
    adjacency, nodes = adjacency_of(graph), np.array([0, graph.number_of_nodes() - 1])
    columns = walk_columns(adjacency, nodes, restarts=(0.15, 0.5), diffusion=(2, 4), steps=7)
    expected = [pagerank_columns(adjacency, nodes, restart=r, steps=7) for r in (0.15, 0.5)]
    for found, exact in zip(columns, [*expected, *diffusion_columns(adjacency, nodes)], strict=True):
        assert np.allclose(found, exact, atol=1e-6)
    four, one = walk_columns(adjacency, nodes, diffusion=(4, 1))  # in any order
    assert np.allclose(four, columns[3], atol=1e-6)
    assert np.allclose(one, diffusion_columns(adjacency, nodes, steps=(1,))[0], atol=1e-6)
    # Diffusion beyond the last step of PageRank does not change it.
    assert np.array_equal(
        walk_columns(adjacency, nodes, restarts=(0.5,), diffusion=(9,), steps=7)[0], columns[1]
    )


@pytest.mark.parametrize("count", [1, 16, 17, 33, 65, 113])
def test_walks_of_any_number_of_anchors(count: int) -> None:
    graph = nx.disjoint_union(nx.barabasi_albert_graph(150, 3, seed=0), nx.empty_graph(2))
    adjacency, nodes = adjacency_of(graph), np.random.default_rng(0).permutation(152)[:count]
    columns = walk_columns(adjacency, nodes, restarts=(0.15, 0.5), diffusion=(2, 4))
    expected = [pagerank_columns(adjacency, nodes, restart=r) for r in (0.15, 0.5)]
    for found, exact in zip(columns, [*expected, *diffusion_columns(adjacency, nodes)], strict=True):
        assert found.shape == (152, count)
        np.testing.assert_allclose(found, exact, atol=1e-6)


def test_threads_do_not_change_a_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = nx.barabasi_albert_graph(3000, 5, seed=0)
    adjacency, nodes = adjacency_of(graph), np.arange(200)
    results = []
    for threads in (1, 3):
        monkeypatch.setattr("psgnn.kernels._compile.num_threads", lambda threads=threads: threads)
        results.append(
            (
                hop_columns(adjacency, nodes),
                pagerank_columns(adjacency, nodes),
                walk_columns(adjacency, nodes, restarts=(0.15,))[0],
            )
        )
    for one, three in zip(*results, strict=True):
        assert np.array_equal(one, three)


def test_oracle_walks_from_the_anchors_of_each_graph() -> None:
    union, _ = three_graphs()
    oracle = DistanceOracle(union)
    anchors = [[0, 5], [230, -1], [400, 401]]
    columns, two = oracle.walks(anchors, restarts=(0.15,), diffusion=(2,))
    per_graph = np.add.reduceat(columns, union.ptr[:-1])
    assert np.allclose(per_graph, [[1, 1], [1, 0], [1, 1]], atol=1e-5)
    single = GraphBatch.of([data_of(SHAPES["grid"])])
    alone = DistanceOracle(single).walks([0, 5], restarts=(0.15,), diffusion=(2,))
    for found, expected in zip((columns, two), alone, strict=True):
        assert np.allclose(found[: single.num_nodes], expected)
    nodes, starts = np.array([230]), np.array([0, 1])
    (expected,) = diffusion_columns(union.adjacency, nodes, starts, steps=(2,))
    own = slice(union.ptr[1], union.ptr[2])
    assert np.allclose(two[own, :1], expected[own], atol=1e-6)
    assert not two[own, 1].any()


@pytest.mark.parametrize(("restart", "steps"), [(0.0, 20), (1.0, 20), (0.15, 0)])
def test_pagerank_refuses_meaningless_settings(restart: float, steps: int) -> None:
    with pytest.raises(InputError, match="0 < restart < 1 and steps >= 1"):
        pagerank_columns(adjacency_of(nx.path_graph(3)), np.array([0]), restart=restart, steps=steps)


def test_too_deep_for_a_byte_is_reported_by_both_kernels() -> None:
    adjacency = adjacency_of(nx.path_graph(300))
    for nodes in (np.array([0]), np.array([0, 1])):
        hops = np.empty((300, nodes.size), np.uint8)
        assert engine.fill_columns(adjacency, nodes, np.arange(nodes.size + 1), hops, 255, 254) == TOO_DEEP


def test_kernels_keep_to_the_threads_they_are_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {0, 1, 2, 3}, raising=False)
    assert num_threads() == 4
    with kernel_threads(1):
        assert num_threads() == 1
        caller = threading.get_ident()
        assert parallel_map(lambda piece: threading.get_ident(), range(4), math.inf) == 4 * [caller]
    assert num_threads() == 4


def test_rows_in_another_order_of_memory_give_the_same() -> None:
    adjacency = adjacency_of(nx.path_graph(4))
    ones, x = np.ones(4, np.float32), np.arange(8, dtype=np.float32).reshape(4, 2)
    for rows in (x, np.asfortranarray(x)):
        assert spread(adjacency, rows, ones, ones).tolist() == [[2, 3], [4, 6], [8, 10], [4, 5]]
