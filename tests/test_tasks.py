import itertools
import logging
import os
import subprocess
import sys
from dataclasses import fields, replace

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import chisquare
from torch_geometric.data import Data

from psgnn.errors import InputError
from psgnn.graph import Adjacency, Graph, Reading
from psgnn.tasks import LinkPrediction, PairClassification

SEEDS = st.integers(0, 2**32 - 1)


def data_of(graph, y=None, **attributes):
    """A networkx graph as a Graph, from every edge in one direction only."""
    graph = nx.convert_node_labels_to_integers(graph)
    edges = np.array(list(graph.edges), np.int64).reshape(-1, 2).T
    return Graph.from_edges(edges, graph.number_of_nodes(), y=y, **attributes)


def pairs_of(pairs):
    return [tuple(pair) for pair in pairs.T.tolist()]


def entries_of(graph):
    """The entries of a Data's edge_index, or both directions of every edge of a Graph."""
    return pairs_of(graph.edge_index if isinstance(graph, Data) else graph.adjacency.edge_index())


def positives_and_negatives(split):
    pairs = np.array(pairs_of(split.pairs), dtype=np.int64).reshape(-1, 2)
    labels = split.labels
    return set(map(tuple, pairs[labels == 1].tolist())), set(map(tuple, pairs[labels == 0].tolist()))


def splits_of(task):
    return {"train": task.train, "val": task.val, "test": task.test}


def union_edges(graphs):
    """Undirected edges of the graphs in ids of the disjoint union, by brute force."""
    edges, start = set(), 0
    for graph in graphs:
        edges |= {(start + min(u, v), start + max(u, v)) for u, v in entries_of(graph) if u != v}
        start += graph.num_nodes
    return edges


def adjacency_edges(union):
    return set(pairs_of(union.adjacency.edges()))


def assert_well_formed(task):
    """What holds for every task: shapes, order, graphs, and that no pair is met twice anywhere."""
    seen = set()
    for split in splits_of(task).values():
        assert split.pairs.dtype == split.graph_ids.dtype == np.int64
        assert split.labels.dtype == np.float32
        assert split.pairs.shape == (2, len(split.labels))
        assert split.graph_ids.shape == split.labels.shape
        assert (split.pairs[0] < split.pairs[1]).all()
        for end in split.pairs:
            assert np.array_equal(np.searchsorted(task.ptr, end, side="right") - 1, split.graph_ids)
        pairs = pairs_of(split.pairs)
        assert len(set(pairs)) == len(pairs)
        assert not seen & set(pairs)
        seen |= set(pairs)
    assert task.ptr.tolist() == np.cumsum([0] + [graph.num_nodes for graph in task.graphs]).tolist()
    assert adjacency_edges(task.union) == union_edges(task.graphs)
    for graph in task.graphs:
        both = entries_of(graph)
        assert set(both) == {(v, u) for u, v in both}
        assert len(set(both)) == len(both)


def assert_no_leak(task, inputs):
    """Link prediction: the visible graph, the positives and the negatives partition what they should."""
    assert_well_formed(task)
    edges = union_edges([inputs[place] for place in task.kept])
    parts = {name: positives_and_negatives(split) for name, split in splits_of(task).items()}
    assert set.union(*(positives for positives, _ in parts.values())) == edges
    assert adjacency_edges(task.union) == parts["train"][0]
    for _, negatives in parts.values():
        assert not negatives & edges
    visible = set()
    for start, graph in zip(task.ptr[:-1], task.graphs, strict=True):
        visible |= {(start + u, start + v) for u, v in entries_of(graph)}
    held_out = parts["val"][0] | parts["test"][0]
    assert not visible & (held_out | {(v, u) for u, v in held_out})


@st.composite
def graph_lists(draw, max_nodes=12):
    """A list of PyG graphs of all densities, among them empty, complete and directed ones with repeats."""
    rng = np.random.default_rng(draw(SEEDS))
    graphs = []
    for n in draw(st.lists(st.integers(1, max_nodes), min_size=1, max_size=5)):
        linked = rng.random((n, n)) < draw(st.sampled_from([0.1, 0.3, 0.6, 0.9, 1.0]))
        edge_index = torch.from_numpy(np.stack(np.nonzero(linked)))
        graphs.append(Data(edge_index=edge_index, num_nodes=n, y=torch.from_numpy(rng.integers(-1, 3, n))))
    return graphs


@given(graph_lists(), st.sampled_from([(0.1, 0.1), (0.3, 0.2), (0.05, 0.6), (0.6, 0.39)]), SEEDS)
def test_link_prediction_never_leaks(graphs, shares, seed):
    splittable = [
        place
        for place, graph in enumerate(graphs)
        if 3 <= len(union_edges([graph])) <= graph.num_nodes * (graph.num_nodes - 1) // 2 - 3
    ]
    if not splittable:
        with pytest.raises(InputError, match=r"can(not)? be split"):
            LinkPrediction(graphs, *shares, seed)
        return
    task = LinkPrediction(graphs, *shares, seed, folds=3)
    assert task.kept == splittable
    assert sorted(task.kept + task.dropped) == list(range(len(graphs)))
    assert_no_leak(task, graphs)
    for g, place in enumerate(task.kept):
        num_edges = len(union_edges([graphs[place]]))
        num_pairs = graphs[place].num_nodes * (graphs[place].num_nodes - 1) // 2
        counts = np.array(
            [
                [((s.graph_ids == g) & (s.labels == label)).sum() for s in splits_of(task).values()]
                for label in (1, 0)
            ]
        )
        assert (counts >= 1).all()
        assert counts.sum(axis=1).tolist() == [num_edges, min(num_edges, num_pairs - num_edges)]
        if num_pairs >= 2 * num_edges:
            assert np.array_equal(counts[0], counts[1])


@given(graph_lists(), SEEDS, st.integers(2, 12))
def test_folds_partition_the_training_edges_and_hide_them(graphs, seed, folds):
    try:
        task = LinkPrediction(graphs, seed=seed, folds=folds)
    except InputError:
        assume(False)
    train = adjacency_edges(task.union)
    graph_of = {
        pair: int(g) for pair, g in zip(pairs_of(task.train.pairs), task.train.graph_ids, strict=True)
    }
    met, sizes = [], np.zeros((folds, len(task.kept)), dtype=int)
    for f in range(folds):
        fold = task.fold(f)
        hidden = pairs_of(fold.positives)
        assert fold.positives.dtype == np.int64
        assert fold.union.num_nodes == task.union.num_nodes
        assert np.array_equal(fold.union.ptr, task.ptr)
        assert adjacency_edges(fold.union) == train - set(hidden)
        # The quick construction gives the very CSR that the general one does.
        rebuilt = Adjacency.from_edges(*fold.union.adjacency.edges(), task.union.num_nodes)
        assert np.array_equal(rebuilt.indptr, fold.union.adjacency.indptr)
        assert np.array_equal(rebuilt.indices, fold.union.adjacency.indices)
        met += hidden
        for pair in hidden:
            sizes[f, graph_of[pair]] += 1
    assert sorted(met) == sorted(train)
    assert (np.ptp(sizes, axis=0) <= 1).all()


def test_folds_of_many_small_graphs_are_even_in_all():
    task = LinkPrediction([data_of(nx.path_graph(6)) for _ in range(200)], folds=10)  # 3 training edges each
    sizes = [task.fold(f).positives.shape[1] for f in range(10)]
    assert sum(sizes) == 600
    assert 35 < min(sizes) <= max(sizes) < 85


def test_usual_split_sizes():
    task = LinkPrediction(data_of(nx.connected_caveman_graph(20, 20)))
    assert task.name == "link"
    assert [int(s.labels.sum()) for s in splits_of(task).values()] == [3040, 380, 380]
    assert [len(s.labels) for s in splits_of(task).values()] == [6080, 760, 760]
    assert repr(task) == "LinkPrediction(graphs=1, nodes=400, train=6080, val=760, test=760)"


def test_what_is_kept_of_the_input():
    path = data_of(
        nx.path_graph(10), x=np.arange(20.0).reshape(10, 2), y=list(range(10)), names=list("abcdefghij")
    )
    graph = replace(
        path, split={"test_edge": np.array([[0], [9]])}, reading=Reading(10, 9, 9, 0, 0, 0, False)
    )
    before = graph.adjacency.edge_index()
    (visible,) = LinkPrediction(graph).graphs
    assert visible.x is graph.x
    assert visible.y is graph.y
    assert visible.names == graph.names == list("abcdefghij")
    assert (visible.split, visible.reading) == ({}, None)  # would hold the hidden edges
    assert visible.num_edges == 7
    assert np.array_equal(graph.adjacency.edge_index(), before)


def test_what_is_kept_of_a_pyg_graph():
    path = data_of(
        nx.path_graph(10), x=np.arange(20.0).reshape(10, 2), y=list(range(10)), names=list("abcdefghij")
    )
    graph = path.to_pyg()
    graph.edge_attr = torch.rand(18, 3)
    graph.adj_t = "would hold the hidden edges"
    before = graph.edge_index.clone()
    (visible,) = LinkPrediction(graph).graphs
    assert set(vars(visible)) <= {field.name for field in fields(Graph)}
    assert visible.kind == frozenset()
    assert np.array_equal(visible.x, graph.x)
    assert np.array_equal(visible.y, graph.y)
    assert visible.names == graph.node_names
    assert torch.equal(graph.edge_index, before)


def test_a_split_does_not_depend_on_the_other_graphs():
    def first(task, split):
        own = split.graph_ids == 0
        return split.pairs[:, own].tolist(), split.labels[own].tolist()

    caveman, grid, tiny = (
        data_of(nx.caveman_graph(4, 6)),
        data_of(nx.grid_2d_graph(6, 7)),
        data_of(nx.path_graph(2)),
    )
    for alone, together in [
        (LinkPrediction(caveman, seed=7), LinkPrediction([caveman, tiny, grid], seed=7)),
        (LinkPrediction([caveman, grid], seed=7), LinkPrediction([caveman, grid, grid], seed=7)),
    ]:
        for a, b in zip(splits_of(alone).values(), splits_of(together).values(), strict=True):
            assert first(alone, a) == first(together, b)
    # Nor on whether a graph before it was left out.
    after_tiny = LinkPrediction([tiny, grid], seed=7)
    after_caveman = LinkPrediction([caveman, grid], seed=7)
    own = after_caveman.test.graph_ids == 1
    assert np.array_equal(after_tiny.test.pairs, after_caveman.test.pairs[:, own] - caveman.num_nodes)


def test_equal_graphs_at_different_places_are_split_differently():
    graph = data_of(nx.grid_2d_graph(6, 6))
    task = LinkPrediction([graph, graph])
    one, two = (task.test.pairs[:, task.test.graph_ids == g] - task.ptr[g] for g in (0, 1))
    assert not np.array_equal(one, two)


def test_every_edge_and_every_unlinked_pair_is_held_out_equally_often():
    graph = data_of(nx.path_graph(8))  # 7 edges and 21 unlinked pairs, one of each in test
    drawn = [LinkPrediction(graph, seed=seed).test.pairs for seed in range(2000)]
    for column, outcomes in [(0, 7), (1, 21)]:
        pairs = np.stack([pairs[:, column] for pairs in drawn])
        _, counts = np.unique(pairs, axis=0, return_counts=True)
        assert counts.size == outcomes
        assert chisquare(counts).pvalue > 1e-3


@given(graph_lists(), SEEDS, st.integers(0, 60))
def test_fresh_negatives_avoid_positives_and_held_out_negatives(graphs, seed, size):
    try:
        task = LinkPrediction(graphs, seed=seed)
    except InputError:
        assume(False)
    fresh = task.sample_negatives(size, np.random.default_rng(seed))
    assert fresh.shape == (2, size)
    assert np.array_equal(fresh, task.sample_negatives(size, np.random.default_rng(seed)))
    forbidden = set(pairs_of(task.val.pairs)) | set(pairs_of(task.test.pairs)) | adjacency_edges(task.union)
    assert not set(pairs_of(fresh)) & forbidden
    graph, other = task.union.graph_of[fresh]
    assert np.array_equal(graph, other)
    # Every graph gets its share by training edges, to the next integer below or above.
    train = np.bincount(task.train.graph_ids[task.train.labels == 1], minlength=len(task.kept))
    found = np.bincount(graph, minlength=len(task.kept))
    assert (np.abs(found - size * train / train.sum()) < 1 + 1e-9).all()


def test_fresh_negatives_are_uniform_and_cover_all_that_is_free():
    task = LinkPrediction(data_of(nx.cycle_graph(9)), val=0.2, test=0.2)
    taken = adjacency_edges(task.union) | set(pairs_of(task.val.pairs)) | set(pairs_of(task.test.pairs))
    free = set(itertools.combinations(range(9), 2)) - taken
    fresh = task.sample_negatives(20_000, np.random.default_rng(1))
    pairs, counts = np.unique(fresh, axis=1, return_counts=True)
    assert set(pairs_of(pairs)) == free
    assert chisquare(counts).pvalue > 1e-3
    # In random order, so that any batch of them is a sample.
    assert chisquare(np.unique(fresh[:, :5000], axis=1, return_counts=True)[1]).pvalue > 1e-3


def test_dense_graph_shares_its_few_unlinked_pairs():
    graph = nx.complete_graph(30)
    graph.remove_edges_from([(u, u + 1) for u in range(20)])
    data = data_of(graph)  # 415 edges, 20 unlinked pairs
    task = LinkPrediction(data)
    assert_no_leak(task, [data])
    assert [int((s.labels == 0).sum()) for s in splits_of(task).values()] == [16, 2, 2]


@pytest.mark.parametrize(
    ("graph", "found"),
    [
        (nx.path_graph(3), "2 edges and 1 unlinked pairs"),
        (nx.complete_graph(8), "28 edges and 0 unlinked pairs"),
        (nx.empty_graph(5), "0 edges and 10 unlinked pairs"),
        (nx.path_graph(4), None),
    ],
)
def test_smallest_graphs(graph, found):
    data = data_of(graph)
    if found is None:
        assert_no_leak(LinkPrediction(data), [data])
        return
    with pytest.raises(InputError, match=found) as error:
        LinkPrediction(data)
    assert "\n" not in str(error.value)


def test_graphs_that_cannot_be_split_are_left_out_and_logged(caplog):
    graphs = [data_of(graph) for graph in (nx.path_graph(3), nx.path_graph(9), nx.complete_graph(4))]
    with caplog.at_level(logging.INFO, logger="psgnn"):
        task = LinkPrediction(graphs)
    assert (task.kept, task.dropped) == ([1], [0, 2])
    assert "left out 2 of 3 graphs, such as graph 0: it has 2 edges" in caplog.text
    assert_no_leak(task, graphs)
    with pytest.raises(InputError, match="none of the 2 graphs can be split, graph 0: it has 2 edges"):
        LinkPrediction([graphs[0], graphs[2]])


def labelled(graph, classes):
    return data_of(graph, y=[v % classes for v in range(graph.number_of_nodes())])


@given(graph_lists(), st.sampled_from([(0.1, 0.1), (0.3, 0.2), (0.05, 0.6)]), SEEDS, st.booleans())
def test_pair_classification_labels_and_splits(graphs, shares, seed, whole_graphs):
    holdout, need = ("graphs", 1) if whole_graphs else ("pairs", 3)
    totals = {}
    for place, graph in enumerate(graphs):
        known = [
            (u, v)
            for u, v in itertools.combinations(range(graph.num_nodes), 2)
            if min(graph.y[u], graph.y[v]) >= 0
        ]
        same = sum(int(graph.y[u] == graph.y[v]) for u, v in known)
        if min(same, len(known) - same) >= need and union_edges([graph]):
            totals[place] = (same, min(same, len(known) - same))
    if len(totals) < (3 if whole_graphs else 1):
        with pytest.raises(InputError):
            PairClassification(graphs, *shares, seed, holdout=holdout)
        return
    task = PairClassification(graphs, *shares, seed, holdout=holdout)
    assert task.name == "pair"
    assert task.kept == list(totals)
    assert_well_formed(task)
    assert union_edges(task.graphs) == union_edges([graphs[place] for place in task.kept])
    y = np.concatenate([graphs[place].y for place in task.kept])
    for split in splits_of(task).values():
        ends = y[split.pairs]
        assert (ends >= 0).all()
        assert np.array_equal(ends[0] == ends[1], split.labels)
    counts = np.zeros((len(totals), 3, 2), dtype=int)
    for part, split in enumerate(splits_of(task).values()):
        np.add.at(counts, (split.graph_ids, part, (split.labels == 0).astype(int)), 1)
    assert counts.sum(axis=1).tolist() == [list(total) for total in totals.values()]
    if whole_graphs:
        assert (np.count_nonzero(counts.sum(axis=2), axis=1) == 1).all()
        assert (counts.sum(axis=0) > 0).all()
    else:
        assert (counts >= 1).all()


def test_max_pairs_caps_the_positives_in_proportion():
    graphs = [labelled(nx.cycle_graph(n), 2) for n in (40, 80, 6)]  # 380, 1560 and 6 same-class pairs
    task = PairClassification(graphs, max_pairs=100)
    assert_well_formed(task)
    positives = np.zeros(3, dtype=int)
    for split in splits_of(task).values():
        positives += np.bincount(split.graph_ids[split.labels == 1], minlength=3)
        assert int((split.labels == 1).sum()) == int((split.labels == 0).sum())
    assert positives.sum() == 100
    beyond_three = np.array([377, 1557, 3])  # every graph has three, the rest is shared
    assert positives - 3 == pytest.approx(91 * beyond_three / beyond_three.sum(), abs=1)
    with pytest.raises(InputError, match="max_pairs=8 is not an integer of 9 or more"):
        PairClassification(graphs, max_pairs=8)


def test_held_out_graphs_are_chosen_by_the_seed():
    graphs = [labelled(nx.cycle_graph(8), 2) for _ in range(20)]

    def parts(seed):
        splits = splits_of(PairClassification(graphs, 0.2, 0.3, seed, holdout="graphs"))
        return [sorted(set(split.graph_ids.tolist())) for split in splits.values()]

    assert [len(part) for part in parts(0)] == [10, 4, 6]
    assert sorted(itertools.chain(*parts(0))) == list(range(20))
    assert parts(0) == parts(0) != parts(1)


@pytest.mark.parametrize(
    ("graphs", "options", "message"),
    [
        ([], {}, "no graph was given"),
        ([data_of(nx.path_graph(9)), "cora"], {}, "graph 1 is a str; psgnn.read_graph makes a Graph of it"),
        ([Data(num_nodes=3)], {}, "graph 0 is a Data; psgnn.read_graph makes a Graph of it"),
        (data_of(nx.path_graph(9)), {"val": 0}, "val=0 is not a share"),
        (data_of(nx.path_graph(9)), {"test": float("nan")}, "test=nan is not a share"),
        (data_of(nx.path_graph(9)), {"val": "a"}, "val='a' is not a share"),
        (data_of(nx.path_graph(9)), {"val": 0.5, "test": 0.5}, "leave nothing for training"),
        (data_of(nx.path_graph(9)), {"seed": -1}, "seed=-1 is not an integer of 0 or more"),
        (data_of(nx.path_graph(9)), {"seed": 1.5}, "seed=1.5 is not an integer"),
    ],
)
@pytest.mark.parametrize("task", [LinkPrediction, PairClassification])
def test_bad_arguments(task, graphs, options, message):
    with pytest.raises(InputError, match=message) as error:
        task(graphs, **options)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("graphs", "options", "message"),
    [
        (data_of(nx.path_graph(9)), {}, "graph 0 has no node classes"),
        (data_of(nx.path_graph(9), y=[0, 1]), {}, r"9 nodes, but its y is int64 of shape \[2\]"),
        (data_of(nx.path_graph(9), y=[0.5] * 9), {}, "its y is float64"),
        (data_of(nx.path_graph(9), y=[4] * 9), {}, "all its 9 labelled nodes are of class 4"),
        (data_of(nx.path_graph(9), y=[-1] * 9), {}, "0 same-class and 0 different-class pairs"),
        (data_of(nx.path_graph(3), y=[0, 0, 1]), {}, "1 same-class and 2 different-class pairs, at least 3"),
        (data_of(nx.empty_graph(9), y=[0, 1, 2] * 3), {}, "9 nodes and no edges"),
        ([data_of(nx.path_graph(9), y=[4] * 9)] * 3, {}, "none of the 3 graphs can be split.* of class 4"),
        (labelled(nx.path_graph(9), 3), {"max_pairs": 2}, "max_pairs=2 is not an integer of 3 or more"),
        (labelled(nx.path_graph(9), 3), {"holdout": "graph"}, "did you mean 'graphs'"),
        ([labelled(nx.path_graph(9), 3)] * 2, {"holdout": "graphs"}, "needs at least 3 graphs.*found 2"),
    ],
)
def test_bad_classes(graphs, options, message):
    with pytest.raises(InputError, match=message) as error:
        PairClassification(graphs, **options)
    assert "\n" not in str(error.value)


def test_a_blind_copy_draws_the_negatives_of_the_task():
    task = LinkPrediction(data_of(nx.connected_caveman_graph(6, 6)), seed=3)
    blind = task.blind()
    assert blind.test is task.val
    drawn = [each.sample_negatives(200, np.random.default_rng(0)) for each in (task, blind)]
    assert np.array_equal(*drawn)
    linked, _ = positives_and_negatives(task.test)
    assert not linked & set(pairs_of(blind.sample_negatives(5000, np.random.default_rng(1))))


@pytest.mark.parametrize("kind", [LinkPrediction, PairClassification])
def test_a_blind_copy_has_the_digest_of_its_own_splits(kind):
    def task():
        return kind(data_of(nx.connected_caveman_graph(5, 6), y=np.arange(30) // 6), seed=2)

    seen, unread = task(), task()
    assert seen.digest != seen.blind().digest  # even where that of the task is known already
    assert seen.blind().digest == unread.blind().digest
    assert seen.digest == unread.digest


def test_bad_folds_and_sizes():
    task = LinkPrediction(data_of(nx.path_graph(9)), folds=4)
    with pytest.raises(InputError, match=r"no fold 4; the task has folds 0\.\.3"):
        task.fold(4)
    with pytest.raises(InputError, match="size=-1"):
        task.sample_negatives(-1, np.random.default_rng(0))
    with pytest.raises(InputError, match="folds=1 is not an integer of 2 or more"):
        LinkPrediction(data_of(nx.path_graph(9)), folds=1)


DIGESTS = """
import numpy as np
from psgnn import Graph
from psgnn.tasks import LinkPrediction, PairClassification
nodes = np.arange(50)
graphs = [Graph.from_edges([nodes, (step * nodes + 7) % 50], 50, y=nodes // 8) for step in (3, 1)]
digests = [task(graphs, seed=seed).digest for task in (LinkPrediction, PairClassification) for seed in (3, 4)]
"""


def test_digests_agree_across_processes_and_tell_seeds_apart():
    here: dict[str, list[str]] = {}
    exec(DIGESTS, here)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1", "PYTHONHASHSEED": "1"}
    command = [sys.executable, "-c", DIGESTS + "print(*digests)"]
    there = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    assert there.split() == here["digests"]
    assert len(set(there.split())) == 4


def test_callers_stream_of_the_same_seed_is_another_one(monkeypatch):
    # A caller may well draw from default_rng(seed) or default_rng([seed, n]); the task must not, too.
    used, make = [], np.random.default_rng

    def recorded(entropy):
        used.append(make(entropy).integers(2**63))
        return make(entropy)

    monkeypatch.setattr(np.random, "default_rng", recorded)
    LinkPrediction([data_of(nx.cycle_graph(20))] * 3, seed=5).fold(0)
    PairClassification([labelled(nx.cycle_graph(20), 2)] * 3, seed=5, holdout="graphs")
    own = set(used)
    assert len(own) == 3 * 3 + 1  # positives, negatives and folds of each graph; held-out graphs
    assert make(5).integers(2**63) not in own


def test_pair_classification_of_the_protein_graphs(shared_data):
    root = shared_data / "proteins_full"
    edges = np.loadtxt(root / "PROTEINS_full_A.txt.gz", delimiter=",", dtype=np.int64) - 1
    graph = np.loadtxt(root / "PROTEINS_full_graph_indicator.txt", dtype=np.int64) - 1
    y = np.loadtxt(root / "PROTEINS_full_node_labels.txt", dtype=np.int64)
    ptr = np.searchsorted(graph, np.arange(graph[-1] + 2))
    edges = edges[np.argsort(graph[edges[:, 0]], kind="stable")]
    cuts = np.searchsorted(graph[edges[:, 0]], np.arange(graph[-1] + 2))
    graphs = [
        Graph.from_edges(
            edges[cuts[g] : cuts[g + 1]].T - ptr[g], int(ptr[g + 1] - ptr[g]), y=y[ptr[g] : ptr[g + 1]]
        )
        for g in range(graph[-1] + 1)
    ]
    assert len(graphs) == 1113
    task = PairClassification(graphs)
    assert len(task.kept) > 1000
    positives = sum(int(split.labels.sum()) for split in splits_of(task).values())
    assert positives <= 1_000_000
    both = np.concatenate([y[ptr[place] : ptr[place + 1]] for place in task.kept])[task.test.pairs]
    assert np.array_equal(both[0] == both[1], task.test.labels)
