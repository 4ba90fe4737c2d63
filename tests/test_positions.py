"""What is measured about nodes and pairs, against plain loops; nothing here is learned."""

from __future__ import annotations

from dataclasses import fields, replace

import hypothesis.strategies as st
import networkx as nx
import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given, settings
from numba.core.errors import TypingError

from conftest import adjacency_of, data_of, random_graphs
from psgnn.anchors import select_anchors
from psgnn.distances._propagation import smooth, whole_lines
from psgnn.graph._graph import Graph, GraphBatch, IntArray
from psgnn.kernels._csr import triangles
from psgnn.kernels._pairs import local_walks
from psgnn.kernels._profiles import channel_profiles, hop_profiles
from psgnn.models import view_of
from psgnn.positions._measure import FLOOR, Parts, Positions, positions_of
from psgnn.positions._roles import ROLES
from psgnn.positions._spectral import MOST_VECTORS, _Smoother, anchor_basis
from psgnn.positions._statistics import UNKNOWN_HOPS, pair_statistics, statistic_groups, statistic_names
from psgnn.positions._view import View

PARTS = [part.name for part in fields(Parts) if part.type == "bool" and part.default]

# Two components and an isolated node; a random graph of one component; a path.
BROKEN = nx.disjoint_union_all(
    [nx.connected_caveman_graph(2, 4), nx.gnp_random_graph(9, 0.4, seed=2), nx.empty_graph(1)]
)
RANDOM = nx.gnp_random_graph(24, 0.2, seed=1)
PATH = nx.path_graph(7)


def union_of(*graphs: nx.Graph) -> GraphBatch:
    return GraphBatch.of_adjacencies([adjacency_of(graph) for graph in graphs])


def anchor_rows(union: GraphBatch, counts: list[int], seed: int = 0) -> IntArray:
    """Random anchors, ``counts[g]`` of graph g, padded with -1."""
    rng = np.random.default_rng(seed)
    table = np.full((union.num_graphs, max(counts)), -1, np.int64)
    for g, count in enumerate(counts):
        table[g, :count] = union.ptr[g] + rng.choice(union.sizes[g], count, replace=False)
    return table


def measured(view: View, anchors: IntArray, parts: Parts | None = None) -> Positions:
    return positions_of(view, anchors, parts or Parts())


def all_pairs(num_nodes: int) -> IntArray:
    return np.stack(np.triu_indices(num_nodes, 1)).astype(np.int64)


# --- the anchor-spectral basis


def smoothing_matrix(graph: nx.Graph) -> npt.NDArray[np.float64]:
    """S = D^-1/2 (A + tau / N) D^-1/2 with D = degrees + tau, written out."""
    a = nx.to_numpy_array(graph)
    tau = 0.1 * max(a.sum() / len(a), 1e-3)
    root = 1 / np.sqrt(a.sum(axis=1) + tau)
    return root[:, None] * (a + tau / len(a)) * root


@pytest.mark.parametrize("graph", [BROKEN, RANDOM, nx.cycle_graph(7), nx.star_graph(6), nx.empty_graph(5)])
@pytest.mark.parametrize("share", [0.4, 1.0])
def test_the_basis_is_orthonormal_and_diagonalises_the_matrix(graph: nx.Graph, share: float) -> None:
    union, s = union_of(graph), smoothing_matrix(graph)
    basis, values = anchor_basis(union, anchor_rows(union, [int(share * len(graph))]))
    np.testing.assert_allclose(basis.T @ basis, np.eye(basis.shape[1]), atol=2e-5)
    np.testing.assert_allclose(basis.T @ s @ basis, np.diag(values[0]), atol=2e-5)
    assert (np.diff(values[0]) <= 0).all()
    # By Cauchy's interlacing no Ritz value is above the eigenvalue of its rank; with all nodes they are equal.
    exact = np.linalg.eigvalsh(s)[::-1]
    assert (values[0] <= exact[: values.shape[1]] + 1e-5).all()
    if share == 1:
        np.testing.assert_allclose(values[0], exact, atol=2e-5)


@pytest.mark.parametrize("graph", [BROKEN, RANDOM, nx.connected_caveman_graph(6, 5)])
def test_leading_eigenvalues_and_their_space_are_found_from_few_anchors(graph: nx.Graph) -> None:
    union = union_of(graph)
    anchors = select_anchors(data_of(graph), "farthest-first", 10)[None]
    basis, values = anchor_basis(union, anchors)
    exact, vectors = np.linalg.eigh(smoothing_matrix(graph))
    np.testing.assert_allclose(values[0, :4], exact[::-1][:4], atol=0.01)
    # All of the leading eigenvector lies in the space, however the others are rotated.
    assert np.linalg.norm(basis.T @ vectors[:, -1]) == pytest.approx(1, abs=1e-3)


def test_a_union_has_the_basis_of_each_of_its_graphs() -> None:
    graphs, counts = (BROKEN, PATH, RANDOM), [5, 2, 8]
    union = union_of(*graphs)
    anchors = anchor_rows(union, counts)
    basis, values = anchor_basis(union, anchors)
    for g, (graph, count) in enumerate(zip(graphs, counts, strict=True)):
        own = slice(union.ptr[g], union.ptr[g + 1])
        alone, own_values = anchor_basis(union_of(graph), anchors[g : g + 1, :count] - union.ptr[g])
        np.testing.assert_allclose(values[g, :count], own_values[0], atol=1e-5)
        # Eigenvectors have no sign: compare what projects on each of them, where they are apart.
        gaps = np.abs(np.subtract.outer(own_values[0], own_values[0])) + np.eye(count)
        for j in np.flatnonzero(gaps.min(axis=1) > 0.02):
            assert abs(basis[own, j] @ alone[:, j]) == pytest.approx(1, abs=1e-3)
        assert not basis[own, count:].any()
        assert not values[g, count:].any()


def test_padding_of_anchors_changes_nothing() -> None:
    union = union_of(RANDOM)
    anchors = anchor_rows(union, [6])
    basis, values = anchor_basis(union, anchors)
    padded = np.concatenate([anchors, np.full((1, 3), -1)], axis=1)
    wider, wider_values = anchor_basis(union, padded)
    assert wider.shape == (24, 9)
    np.testing.assert_allclose(wider[:, :6], basis, atol=1e-5)
    np.testing.assert_allclose(wider_values[0, :6], values[0], atol=1e-6)
    assert not wider[:, 6:].any()


def test_a_smoother_does_not_mix_up_its_arrays() -> None:
    smoother = _Smoother(union_of(RANDOM))
    x = whole_lines(24, 16)
    given = np.random.default_rng(0).normal(size=x.shape).astype(np.float32)
    for _ in range(3):  # after an odd number of steps the array that is left over is the caller's
        x[...] = given
        np.testing.assert_allclose(smoother.towards(x, 1), (given + smoother(given)) / 2, atol=1e-5)
    assert smoother(whole_lines(24, 32)).shape == (24, 32)


def test_no_more_vectors_than_the_cap() -> None:
    graph = nx.gnp_random_graph(MOST_VECTORS + 10, 0.2, seed=0)
    union = union_of(graph)
    basis, values = anchor_basis(union, anchor_rows(union, [MOST_VECTORS + 5]))
    assert basis.shape == (len(graph), MOST_VECTORS)
    assert values.shape == (1, MOST_VECTORS)


@pytest.mark.parametrize(
    ("graph", "anchors", "rank"),
    [
        (RANDOM, [3, 3, 5, 5, 5, 9], 3),  # repeated anchors start from equal columns
        (nx.cycle_graph(12), list(range(12)), 11),  # smoothing wipes out the alternating vector
        (nx.complete_bipartite_graph(3, 3), list(range(6)), 5),
        (nx.empty_graph(4), [1, 1], 1),
    ],
)
def test_dependent_directions_become_zero_and_never_nan(
    graph: nx.Graph, anchors: list[int], rank: int
) -> None:
    basis, values = anchor_basis(union_of(graph), np.array([anchors]))
    assert np.isfinite(basis).all()
    assert np.isfinite(values).all()
    squares = np.linalg.svd(basis, compute_uv=False) ** 2
    np.testing.assert_allclose(squares, np.arange(len(anchors)) < rank, atol=1e-4)
    np.testing.assert_allclose(basis.T @ smoothing_matrix(graph) @ basis, np.diag(values[0]), atol=2e-5)


# --- kernels against loops


@settings(max_examples=20)
@given(random_graphs(min_nodes=2, max_nodes=14))
def test_triangles_are_those_of_networkx(graph: nx.Graph) -> None:
    adjacency = adjacency_of(graph)
    found = triangles(adjacency.indptr, adjacency.indices)
    assert found.tolist() == [nx.triangles(graph)[v] for v in graph]


def test_triangles_of_more_nodes_than_a_word_has_bits() -> None:
    graph = nx.barabasi_albert_graph(300, 8, seed=0)
    adjacency = adjacency_of(graph)
    assert triangles(adjacency.indptr, adjacency.indices).tolist() == [nx.triangles(graph)[v] for v in graph]


@settings(max_examples=20)
@given(random_graphs(min_nodes=2, max_nodes=12))
def test_short_walks_are_counted_as_by_hand(graph: nx.Graph) -> None:
    adjacency, pairs = adjacency_of(graph), all_pairs(len(graph))
    found = np.full((pairs.shape[1], 6), np.nan)
    local_walks(adjacency.indptr, adjacency.indices, *pairs, 10**6, found)
    degree = dict(graph.degree)
    for row, (u, v) in zip(found, pairs.T.tolist(), strict=True):
        common = sorted(nx.common_neighbors(graph, u, v))
        paths = [
            (w, z)
            for w in graph[u]
            for z in graph[v]
            if w != v and z != u and w != z and graph.has_edge(w, z)
        ]
        expected = [
            graph.has_edge(u, v),
            len(common),
            sum(1 / np.log(degree[w]) for w in common),
            sum(1 / degree[w] for w in common),
            len(paths),
            sum(1 / (degree[w] * degree[z]) for w, z in paths),
        ]
        np.testing.assert_allclose(row, expected, rtol=1e-12)


@pytest.mark.parametrize("most", [10, 10**6])
def test_walks_of_a_pair_do_not_depend_on_the_pairs_before_it(most: int) -> None:
    adjacency = adjacency_of(nx.barabasi_albert_graph(30, 3, seed=0))
    csr, pairs = (adjacency.indptr, adjacency.indices), all_pairs(30)
    together, alone = np.empty((2, pairs.shape[1], 6))
    order = np.random.default_rng(0).permutation(pairs.shape[1])
    for sequence in (np.arange(order.size), order, np.argsort(pairs[1], kind="stable")):
        found = np.empty_like(together)
        local_walks(*csr, *pairs[:, sequence], most, found)
        together[sequence] = found
        for i in range(order.size):
            local_walks(*csr, *pairs[:, i : i + 1], most, alone[i : i + 1])
        assert np.array_equal(together, alone)


def test_sampled_walks_keep_their_expected_number() -> None:
    """In a complete graph every neighbour stands for the others exactly as well."""
    adjacency, pair = adjacency_of(nx.complete_graph(31)), np.array([[0], [1]])
    whole, part = np.empty((1, 6)), np.empty((1, 6))
    local_walks(adjacency.indptr, adjacency.indices, *pair, 10**6, whole)
    local_walks(adjacency.indptr, adjacency.indices, *pair, 300, part)
    assert part[0, 4] != whole[0, 4]
    np.testing.assert_allclose(part[0, 4:], whole[0, 4:], rtol=0.15)
    np.testing.assert_allclose(part[0, :4], whole[0, :4])  # what is cheap is never sampled


@settings(max_examples=20)
@given(random_graphs(min_nodes=3, max_nodes=14), st.integers(0, 3), st.integers(0, 99))
def test_hop_profiles_as_by_hand(graph: nx.Graph, padding: int, seed: int) -> None:
    count = np.random.default_rng(seed).integers(1, len(graph) + 1)
    union = union_of(graph)
    anchors = anchor_rows(union, [int(count)], seed)
    table = np.concatenate([anchors, np.full((1, padding), -1)], axis=1)
    hops = View(union).oracle.hops(table)
    pairs = all_pairs(len(graph))
    found = np.full((pairs.shape[1], 9), np.nan, np.float32)
    hop_profiles(hops, np.full(pairs.shape[1], count), *pairs, 99.0, found)
    lengths = dict(nx.all_pairs_shortest_path_length(graph))
    for row, (u, v) in zip(found, pairs.T.tolist(), strict=True):
        ends = [(lengths[a].get(u), lengths[a].get(v)) for a in anchors[0].tolist()]
        shared = [(a, b) for a, b in ends if a is not None and b is not None]
        single = sum((a is None) != (b is None) for a, b in ends)
        apart = np.array([abs(a - b) for a, b in shared], float)
        lower = apart.max(initial=0)
        upper = min((a + b for a, b in shared), default=99.0)
        many = max(len(shared), 1)
        expected = [
            lower, np.log1p(lower), upper, np.log1p(upper), 1 / (1 + upper), apart.sum() / many,
            np.sqrt((apart**2).sum() / many), (apart == 0).sum() / many, single / count,
        ]  # fmt: skip
        np.testing.assert_allclose(row, expected, rtol=1e-6)
        if v in lengths[u] and shared:
            assert lower <= lengths[u][v] <= upper


@pytest.mark.parametrize("first", [0, 2])
@pytest.mark.parametrize("seed", range(3))
def test_channel_profiles_as_by_hand(first: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    channels = rng.normal(size=(8, 6, 3)).astype(np.float32)
    pairs = all_pairs(8)
    counts = rng.integers(2, 7, pairs.shape[1])
    found = np.full((pairs.shape[1], 7 * (3 - first)), np.nan, np.float32)
    channel_profiles(channels, first, counts, *pairs, found)
    for row, (u, v), count in zip(found, pairs.T, counts, strict=True):
        expected = []
        for c in range(first, 3):
            a, b = channels[u, :count, c].astype(float), channels[v, :count, c].astype(float)
            apart = abs(a - b)
            # Rows that hardly vary are correlated with nothing: hence the 1e-8.
            correlation = np.cov(a, b, bias=True)[0, 1] / np.sqrt(a.var() * b.var() + 1e-8)
            expected += [apart.mean(), np.sqrt((apart**2).mean()), apart.max(), correlation]
            expected += [(a + b).max(), a.mean() + b.mean(), abs(a.mean() - b.mean())]
        np.testing.assert_allclose(row, expected, rtol=1e-5, atol=1e-6)


# --- positions


def test_channels_are_standardised_in_every_graph_and_padding_is_zero() -> None:
    view = view_of([data_of(graph) for graph in (BROKEN, PATH, RANDOM)])
    counts = [9, 3, 6]
    positions = measured(view, anchor_rows(view.union, counts))
    assert positions.counts.tolist() == counts
    for g, count in enumerate(counts):
        own = positions.channels[view.union.ptr[g] : view.union.ptr[g + 1]]
        np.testing.assert_allclose(own[:, :count].mean(axis=(0, 1)), 0, atol=1e-4)
        np.testing.assert_allclose(own[:, :count].var(axis=(0, 1)), 1, rtol=1e-3)
        assert not own[:, count:].any()


@pytest.mark.parametrize(("graph", "anchors"), [(RANDOM, [3, 11, 20]), (BROKEN, [2, 9, 17])])
def test_channels_are_what_their_names_say(graph: nx.Graph, anchors: list[int]) -> None:
    """Each, up to its mean and scale, is the quantity that networkx or dense algebra gives."""
    positions = measured(view_of([data_of(graph)]), np.array([anchors]))
    a = nx.to_numpy_array(graph)
    a += np.diag(a.sum(axis=0) == 0)  # who has no link keeps what it has
    degree = a.sum(axis=0)
    lengths = dict(nx.all_pairs_shortest_path_length(graph))
    hops = np.array([[lengths[k].get(v, -1) for k in anchors] for v in graph])
    assert (positions.hops == hops).all()
    seeds = np.eye(len(graph))[:, anchors]
    walk, smooth = a / degree, a / np.sqrt(np.outer(degree, degree))
    far = np.where(hops >= 0, hops, hops.max() + 1)  # unreachable is one farther than all others
    columns = [np.where(hops >= 0, 1 / (1 + far), 0), far]
    for restart in (0.15, 0.5):
        p = seeds
        for _ in range(20):
            p = restart * seeds + (1 - restart) * walk @ p
        columns.append(np.log(p + FLOOR))
    columns += [np.log(np.linalg.matrix_power(smooth, t) @ seeds + FLOOR) for t in (2, 4)]
    assert len(columns) == len(Parts().channels)
    for c, column in enumerate(columns):
        standard = (column - column.mean()) / column.std()
        np.testing.assert_allclose(positions.channels[:, :, c], standard, atol=2e-3)


def test_the_number_of_cores_changes_no_bit_of_statistics(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = nx.barabasi_albert_graph(300, 3, seed=0)
    positions = measured(view_of([data_of(graph)]), np.arange(40)[None])
    pairs = np.random.default_rng(0).integers(300, size=(2, 9001))
    found = []
    for cores in (1, 3):
        monkeypatch.setattr("psgnn.kernels._compile.num_threads", lambda cores=cores: cores)
        found.append(pair_statistics(positions, pairs))
    assert np.array_equal(*found)


@pytest.mark.parametrize("lines", [1, 2, 3, 4, 7])
def test_smoothing_agrees_with_dense_algebra(lines: int) -> None:
    graphs = [nx.disjoint_union(nx.barabasi_albert_graph(80, 2, seed=0), nx.empty_graph(2)), nx.path_graph(9)]
    union = union_of(*graphs)
    smoother, x = _Smoother(union), whole_lines(91, 16 * lines)
    x[...] = np.random.default_rng(0).normal(size=x.shape)
    dense = np.zeros((91, 91))
    for graph, own in zip(graphs, (slice(0, 82), slice(82, 91)), strict=True):
        links = nx.to_numpy_array(graph)
        tau = 0.1 * links.sum() / len(graph)
        scale = 1 / np.sqrt(links.sum(axis=0) + tau)
        dense[own, own] = scale[:, None] * (links + tau / len(graph)) * scale
    np.testing.assert_allclose(smoother(x), dense @ x, atol=1e-5)
    half = (np.eye(91) + dense) / 2
    np.testing.assert_allclose(smoother.towards(x.copy(), 3), half @ half @ half @ x, atol=1e-5)


def test_rows_that_are_no_whole_lines_are_not_read() -> None:
    adjacency, one = union_of(nx.path_graph(3)).adjacency, np.ones(3, np.float32)
    for width, out_width in ((5, 5), (16, 32)):
        x, out = (np.ones((3, columns), np.float32) for columns in (width, out_width))
        with pytest.raises(ValueError, match="whole lines"):
            smooth(adjacency, x, 0.5, one, x[:1], np.zeros(3, np.int64), out)
    with pytest.raises(ValueError, match="share memory"):
        smooth(adjacency, whole := whole_lines(3, 16), 0.5, one, whole[:1], np.zeros(3, np.int64), whole)
    doubles = np.ones((3, 16)), np.zeros((3, 16))
    with pytest.raises(TypingError, match="float32"):
        smooth(adjacency, doubles[0], 0.5, one, doubles[0][:1], np.zeros(3, np.int64), doubles[1])


def test_lines_begin_where_those_of_the_cache_do() -> None:
    for nodes, width in ((1, 1), (7, 16), (1000, 21)):
        lines = whole_lines(nodes, width)
        assert lines.ctypes.data % 64 == 0
        assert lines.shape == (nodes, 16 * -(-width // 16))
        assert lines.flags.c_contiguous
        assert not lines.any()


def test_roles_as_networkx_has_them() -> None:
    positions = measured(view_of([data_of(BROKEN)]), np.array([[0, 5]]))
    degree = np.array([BROKEN.degree[v] for v in BROKEN])
    around = [sorted(BROKEN[v]) for v in BROKEN]
    size = np.array([len(nx.node_connected_component(BROKEN, v)) for v in BROKEN])
    a = nx.to_numpy_array(BROKEN)
    expected = {
        "log degree": np.log1p(degree),
        "mean log degree of neighbours": [np.log1p(degree[w]).mean() if len(w) else 0 for w in around],
        "log of two-step walks": np.log1p(a @ degree),
        "clustering": [nx.clustering(BROKEN, v) for v in BROKEN],
        "share of leaves around": [(degree[w] == 1).mean() if len(w) else 0 for w in around],
        "log size of the component": np.log(size),
        "share of the component": size / len(BROKEN),
        "no link": degree == 0,
        "log of three-step walks": np.log1p(a @ a @ degree),
        "log of the largest degree around": [np.log1p(degree[w].max(initial=0)) for w in around],
    }
    assert tuple(expected) == ROLES
    np.testing.assert_allclose(positions.roles, np.stack(list(expected.values()), axis=1), rtol=1e-6)


def test_traits_are_means_over_neighbours_and_leave_features_out_when_told() -> None:
    x = np.arange(14, dtype=np.float32).reshape(7, 2) ** 2
    data = Graph(adjacency_of(PATH), x=x)
    traits = measured(view_of([data]), np.array([[0]])).traits
    assert traits.shape == (7, 3 * (len(ROLES) + 2))
    width = len(ROLES) + 2
    np.testing.assert_allclose(traits[:, len(ROLES) : width], x)
    mean = np.stack([x[sorted(PATH[v])].mean(axis=0) for v in PATH])
    np.testing.assert_allclose(traits[:, width + len(ROLES) : 2 * width], mean, rtol=1e-6)
    without = measured(view_of([data]), np.array([[0]]), Parts(features=False))
    assert without.traits.shape == (7, 3 * len(ROLES))


def test_a_union_is_measured_as_its_graphs_alone() -> None:
    graphs, counts = (BROKEN, PATH, RANDOM), [8, 3, 6]
    view = view_of([data_of(graph) for graph in graphs])
    anchors = anchor_rows(view.union, counts)
    together = measured(view, anchors)
    for g, (graph, count) in enumerate(zip(graphs, counts, strict=True)):
        first, last = view.union.ptr[g : g + 2]
        alone = measured(view_of([data_of(graph)]), anchors[g : g + 1, :count] - first)
        np.testing.assert_allclose(together.channels[first:last, :count], alone.channels, atol=1e-5)
        np.testing.assert_allclose(together.roles[first:last], alone.roles, rtol=1e-6)
        pairs = all_pairs(len(graph))
        in_union, by_itself = pair_statistics(together, pairs + first), pair_statistics(alone, pairs)
        np.testing.assert_allclose(in_union, by_itself, rtol=1e-3, atol=2e-3)


def test_positions_are_kept_and_measured_anew_for_other_anchors_or_parts() -> None:
    view = view_of([data_of(RANDOM)])
    first = measured(view, np.array([[1, 2]]))
    assert measured(view, np.array([[1, 2]])) is first
    assert (measured(view, np.array([[1, 3]])).hops[:, 1] != first.hops[:, 1]).any()
    assert measured(view, np.array([[1, 3]]), Parts(hops=False)).channels.shape[2] == 4


# --- statistics of pairs


@pytest.mark.parametrize("off", [None, *PARTS])
def test_every_column_has_a_name_and_parts_take_theirs_with_them(off: str | None) -> None:
    parts = Parts() if off is None else replace(Parts(), **{off: False})
    view = view_of([data_of(BROKEN)])
    anchors, pairs = np.array([[0, 6, 12, 17]]), all_pairs(len(BROKEN))
    positions = measured(view, anchors, parts)
    names = statistic_names(parts)
    found = pair_statistics(positions, pairs)
    assert found.shape == (pairs.shape[1], len(names))
    assert len(set(names)) == len(names)
    assert positions.channels.shape[2] == len(parts.channels)
    everything = statistic_names(Parts())
    assert len(names) < len(everything) or off in (None, "features")  # features are no statistics of pairs
    # The columns that are left are those of the same name.
    whole = pair_statistics(measured(view, anchors), pairs)
    np.testing.assert_allclose(found, whole[:, [everything.index(name) for name in names]], atol=1e-5)


def test_statistics_say_what_their_names_say() -> None:
    pairs = all_pairs(len(BROKEN))
    found = pair_statistics(measured(view_of([data_of(BROKEN)]), np.array([[0, 6, 12, 17]])), pairs)
    column = dict(zip(statistic_names(Parts()), found.T, strict=True))
    lengths = dict(nx.all_pairs_shortest_path_length(BROKEN))
    hops = np.array([lengths[u].get(v, -1) for u, v in pairs.T.tolist()])
    assert (column["linked"] == (hops == 1)).all()
    assert (column["two hops"] == (hops == 2)).all()
    assert (column["three hops"] == (hops == 3)).all()
    assert (column["far or unreachable"] == (hops < 0)).all()
    assert (column["hops"][hops >= 0] == hops[hops >= 0]).all()
    reach = (hops >= 0) & (column["smallest hop sum"] < UNKNOWN_HOPS)
    assert (column["largest hop difference"][reach] <= hops[reach]).all()
    assert (column["smallest hop sum"][reach] >= hops[reach]).all()
    for name, values in column.items():
        if "cosine" in name or "correlation" in name:
            assert np.abs(values).max() <= 1 + 1e-3, name


@pytest.mark.parametrize("graph", [BROKEN, RANDOM])
def test_statistics_do_not_depend_on_the_order_of_a_pair(graph: nx.Graph) -> None:
    positions = measured(view_of([data_of(graph)]), anchor_rows(union_of(graph), [7]))
    pairs = all_pairs(len(graph))
    there, back = pair_statistics(positions, pairs), pair_statistics(positions, pairs[::-1].copy())
    np.testing.assert_allclose(there, back, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_statistics_do_not_depend_on_the_numbering_of_nodes(seed: int) -> None:
    graph = nx.disjoint_union(nx.gnp_random_graph(20, 0.2, seed=seed), nx.path_graph(3))
    graph.add_node(23)
    new = np.random.default_rng(seed).permutation(24)
    other = nx.empty_graph(24)
    other.add_edges_from((new[u], new[v]) for u, v in graph.edges)
    anchors, pairs = anchor_rows(union_of(graph), [6], seed), all_pairs(24)
    before = pair_statistics(measured(view_of([data_of(graph)]), anchors), pairs)
    after = pair_statistics(measured(view_of([data_of(other)]), new[anchors]), new[pairs])
    np.testing.assert_allclose(before, after, rtol=1e-3, atol=2e-3)
    # Pairs of other nodes do have other statistics.
    assert not np.allclose(before, np.roll(after, 1, axis=0), rtol=1e-3, atol=2e-3)


@settings(max_examples=20)
@given(random_graphs(min_nodes=2, max_nodes=16), st.integers(0, 99))
def test_statistics_are_finite_on_any_graph(graph: nx.Graph, seed: int) -> None:
    """Isolated nodes, graphs without edges, anchors that nobody reaches."""
    union = union_of(graph)
    count = int(np.random.default_rng(seed).integers(1, len(graph) + 1))
    positions = measured(view_of([data_of(graph)]), anchor_rows(union, [count], seed))
    assert np.isfinite(positions.channels).all()
    assert np.isfinite(positions.traits).all()
    found = pair_statistics(positions, all_pairs(len(graph)))
    assert np.isfinite(found).all()
    assert np.abs(found).max() < 1e3


# --- what features have in common


def feature_columns(x: np.ndarray, graph: nx.Graph) -> dict[str, np.ndarray]:
    data = data_of(graph)
    data.x = torch.from_numpy(x.astype(np.float32))
    parts = Parts(pair_features=True)
    pairs = all_pairs(len(graph))
    found = pair_statistics(measured(view_of([data]), np.array([[0, 3]]), parts), pairs)
    assert found.shape[1] == len(statistic_names(parts)) == len(statistic_groups(parts))
    return dict(zip(statistic_names(parts), found.T, strict=True))


def cosines(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    return (a * b).sum(axis=1) / np.where(lengths > 1e-6, lengths, np.inf)


@pytest.mark.parametrize("width", [40, 90])  # as they are, and in outlines
def test_words_are_compared_as_their_names_say(width: int) -> None:
    rng = np.random.default_rng(0)
    words = (rng.random((80, width)) < 0.08).astype(float)
    words[5] = 0
    graph = nx.gnp_random_graph(80, 0.06, seed=2)
    us, vs = all_pairs(80)
    column = feature_columns(words, graph)
    weighted = words * np.log(81 / (1 + words.sum(axis=0)))
    np.testing.assert_allclose(column["cosine of features"], cosines(weighted[us], weighted[vs]), atol=1e-5)
    np.testing.assert_allclose(
        np.expm1(column["shared features"]), (words[us] * words[vs]).sum(axis=1), atol=1e-4
    )
    rows = weighted / np.maximum(np.linalg.norm(weighted, axis=1, keepdims=True), 1e-9)
    left, sizes, _ = np.linalg.svd(rows)
    outline = (left[:, :64] * sizes[:64]) if width > 64 else rows
    near = np.stack([outline[list(graph[v]) or [v]].mean(axis=0) for v in range(80)])
    expected = {
        "cosine of outlines": cosines(outline[us], outline[vs]),
        "outline of one and of the other's neighbours": (
            cosines(outline[us], near[vs]) + cosines(near[us], outline[vs])
        )
        / 2,
        "cosine of neighbours' outlines": cosines(near[us], near[vs]),
    }
    for name, values in expected.items():
        np.testing.assert_allclose(column[name], values, atol=1e-4, err_msg=name)


def test_features_that_are_no_words_are_standardised() -> None:
    x = np.random.default_rng(1).normal(3, 2, (30, 5))
    column = feature_columns(x, nx.cycle_graph(30))
    us, vs = all_pairs(30)
    scaled = (x - x.mean(axis=0)) / (x.std(axis=0) + 1e-3)
    np.testing.assert_allclose(column["cosine of features"], cosines(scaled[us], scaled[vs]), atol=1e-4)
    units = scaled / np.linalg.norm(scaled, axis=1, keepdims=True)
    gaps = np.square(units[us] - units[vs]).sum(axis=1)
    np.testing.assert_allclose(column["shared features"], -np.log1p(gaps), atol=1e-4)
