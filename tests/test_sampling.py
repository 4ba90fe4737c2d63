import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from psgnn.errors import InputError
from psgnn.graph._sampling import (
    DifferentClass,
    NonEdges,
    SameClass,
    WithinBlocks,
    distinct_integers,
    pair_code,
    running_total,
)
from psgnn.kernels._sampling import count_at_most, pair_of_code

SIZES = st.lists(st.integers(0, 7), min_size=1, max_size=5)  # nodes of every graph, empty ones too


def all_pairs(sizes):
    """Every pair inside a graph of the disjoint union, by brute force, graph by graph."""
    ptr = running_total(np.array(sizes))
    return [set(itertools.combinations(range(a, b), 2)) for a, b in itertools.pairwise(ptr)]


def assert_numbers(pool, expected):
    """Every rank gives another of the expected pairs, all are given, and graphs own consecutive ranks."""
    assert pool.sizes.tolist() == [len(pairs) for pairs in expected]
    listed = pool.unrank(np.arange(pool.sizes.sum()))
    assert listed.shape == (2, pool.sizes.sum())
    assert listed.dtype == np.int64
    for (start, end), pairs in zip(itertools.pairwise(running_total(pool.sizes)), expected, strict=True):
        assert sorted(map(tuple, listed[:, start:end].T.tolist())) == sorted(pairs)


def test_pair_codes_count_up_column_by_column():
    u, v = np.tril_indices(60, k=-1)[::-1]
    assert pair_code(np.stack([u, v])).tolist() == list(range(u.size))
    assert np.array_equal(pair_of_code(np.arange(u.size)), np.stack([u, v]))


def test_pair_codes_are_exact_up_to_the_largest_graph():
    # The float square root errs at the first and the last pair of a column, downwards on graphs of some
    # thousand nodes and upwards beyond a hundred million.
    v = np.concatenate([2 ** np.arange(2, 31), 2**31 - 2 - np.arange(1000)])
    v = np.concatenate([v, np.random.default_rng(0).integers(2, 2**31 - 1, size=10_000)])
    for u in (np.zeros_like(v), np.ones_like(v), v // 2, v - 2, v - 1):
        pairs = np.stack([u, v])
        assert np.array_equal(pair_of_code(pair_code(pairs)), pairs)
    assert pair_code(np.array([[2**31 - 3], [2**31 - 2]])).tolist() == [(2**31 - 1) * (2**30 - 1) - 1]


@given(SIZES)
def test_within_blocks_numbers_every_pair(sizes):
    pool = WithinBlocks(running_total(np.array(sizes)))
    assert_numbers(pool, all_pairs(sizes))
    ranks = np.arange(pool.sizes.sum())
    assert np.array_equal(pool.rank(pool.unrank(ranks)), ranks)


def test_pairs_of_one_graph_may_be_small_integers():
    pairs = np.array([[0], [69_999]], np.int32)
    assert WithinBlocks(np.array([0, 70_000])).rank(pairs).tolist() == [69_999 * 69_998 // 2]


@given(SIZES, st.floats(0, 1), st.integers(0, 2**32 - 1))
def test_non_edges_number_every_pair_that_is_not_excluded(sizes, density, seed):
    rng = np.random.default_rng(seed)
    pairs = all_pairs(sizes)
    excluded = [pair for graph in pairs for pair in sorted(graph) if rng.random() < density]
    rng.shuffle(excluded)
    pool = NonEdges(running_total(np.array(sizes)), np.array(excluded, dtype=np.int64).reshape(-1, 2).T)
    assert_numbers(pool, [graph - set(map(tuple, excluded)) for graph in pairs])


@given(SIZES, st.integers(0, 2**32 - 1))
def test_class_pools_number_every_pair_of_known_classes(sizes, seed):
    y = np.random.default_rng(seed).integers(-1, 3, size=sum(sizes))
    ptr = running_total(np.array(sizes))
    known = [{(u, v) for u, v in graph if min(y[u], y[v]) >= 0} for graph in all_pairs(sizes)]
    assert_numbers(SameClass(ptr, y), [{(u, v) for u, v in graph if y[u] == y[v]} for graph in known])
    assert_numbers(DifferentClass(ptr, y), [{(u, v) for u, v in graph if y[u] != y[v]} for graph in known])


@given(st.integers(0, 300), st.data())
def test_distinct_integers_are_distinct_and_in_range(high, data):
    size = data.draw(st.integers(0, high))
    drawn = distinct_integers(high, size, np.random.default_rng(0))
    assert drawn.size == size == len(set(drawn.tolist()))
    assert not size or 0 <= drawn.min() <= drawn.max() < high
    assert np.array_equal(drawn, distinct_integers(high, size, np.random.default_rng(0)))


@pytest.mark.parametrize(("high", "size"), [(7, 3), (5, 3), (40, 2)])  # draws, permutation, draws
def test_distinct_integers_are_uniform_over_ordered_samples(high, size):
    rng = np.random.default_rng(0)
    samples = np.array([distinct_integers(high, size, rng) for _ in range(20_000)])
    _, counts = np.unique(samples @ high ** np.arange(size), return_counts=True)
    outcomes = np.prod(np.arange(high - size + 1, high + 1))
    assert counts.size == outcomes
    assert chisquare(counts).pvalue > 1e-3


def test_distinct_integers_tops_up_when_draws_repeat():
    class Repeating(np.random.Generator):
        """Its first draw holds one value only."""

        calls = 0

        def integers(self, *args, **kwargs):
            self.calls += 1
            drawn = super().integers(*args, **kwargs)
            return np.zeros_like(drawn) if self.calls == 1 else drawn

    rng = Repeating(np.random.PCG64(0))
    drawn = distinct_integers(1000, 400, rng)
    assert rng.calls > 1
    assert len(set(drawn.tolist())) == 400


def test_large_draws_need_no_more_memory_than_the_sample():
    drawn = distinct_integers(10**15, 1000, np.random.default_rng(0))
    assert len(set(drawn.tolist())) == 1000
    # Uniform to the last digit: no value is rounded to what a float can hold.
    assert 400 < (drawn % 2).sum() < 600


def test_more_distinct_integers_than_there_are():
    with pytest.raises(InputError, match="cannot draw 4 distinct integers out of 3"):
        distinct_integers(3, 4, np.random.default_rng(0))


@given(st.lists(st.integers(0, 50), max_size=40), st.lists(st.integers(-5, 60), max_size=40))
def test_counts_of_sorted_values_are_those_of_a_binary_search(values, asked):
    values, asked = (np.sort(np.array(each, np.int64)) for each in (values, asked))
    assert np.array_equal(count_at_most(values, asked), np.searchsorted(values, asked, side="right"))


@given(SIZES, st.integers(0, 1000))
def test_other_pairs_are_the_same_whatever_the_order_and_number_of_the_ranks(sizes, seed):
    ptr = running_total(np.array(sizes))
    rng = np.random.default_rng(seed)
    everything = WithinBlocks(ptr)
    total = int(everything.sizes.sum())
    pool = NonEdges(ptr, everything.unrank(rng.permutation(total)[: total // 2]))
    ranks = np.arange(pool.sizes.sum())
    listed = pool.unrank(ranks)  # one pass
    shuffled = rng.permutation(ranks)
    assert np.array_equal(pool.unrank(shuffled), listed[:, shuffled])
    for rank in ranks[:5]:
        assert np.array_equal(pool.unrank(np.array([rank]))[:, 0], listed[:, rank])
