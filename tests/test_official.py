"""Link prediction on a published split."""

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given

from psgnn.datasets import load_dataset
from psgnn.errors import InputError
from psgnn.scoring import score_pairs
from psgnn.tasks import LinkPrediction, OfficialLinks, link_task
from psgnn.tasks._metrics import evaluate
from test_tasks import SEEDS, adjacency_edges, data_of, pairs_of, positives_and_negatives

PATH = {(n, n + 1) for n in range(7)}
SPLIT = {
    "valid_edge": [[5, 0], [1, 3]],
    "valid_edge_neg": [[0, 6], [4, 2]],
    "test_edge": [[7], [0]],
    "test_edge_neg": [[1, 5, 7], [7, 3, 4]],
}


def path_with_split(**changes):
    split = {name: np.array(pairs) for name, pairs in {**SPLIT, **changes}.items()}
    return replace(data_of(nx.path_graph(8)), split=split)


@given(SEEDS)
def test_the_split_is_the_given_one(seed):
    task = OfficialLinks(path_with_split(), seed=seed, folds=3)
    assert isinstance(task, LinkPrediction)
    assert (task.name, task.headline) == ("link", "hits@20")
    assert positives_and_negatives(task.val) == ({(1, 5), (0, 3)}, {(0, 4), (2, 6)})
    assert positives_and_negatives(task.test) == ({(0, 7)}, {(1, 7), (3, 5), (4, 7)})
    positives, negatives = positives_and_negatives(task.train)
    assert positives == adjacency_edges(task.union) == PATH
    assert len(negatives) == 7
    assert not negatives & PATH
    for split in (task.train, task.val, task.test):
        assert (split.pairs[0] < split.pairs[1]).all()
        assert split.pairs.shape == (2, len(split.labels)) == (2, len(split.graph_ids))
    folds = [task.fold(f) for f in range(3)]
    assert sorted(pair for fold in folds for pair in pairs_of(fold.positives)) == sorted(PATH)
    for fold in folds:
        assert adjacency_edges(fold.union) == PATH - set(pairs_of(fold.positives))
    # The visible graph keeps nothing of the held-out pairs.
    assert task.graphs[0].split == {}
    assert set(pairs_of(task.graphs[0].edges)) == PATH


def test_training_negatives_know_nothing_of_what_is_held_out():
    task = OfficialLinks(path_with_split())
    fresh = task.sample_negatives(4000, np.random.default_rng(0))
    found, counts = np.unique(fresh, axis=1, return_counts=True)
    assert len(counts) == 28 - 7  # all pairs but the training edges, held-out ones among them
    assert 120 < counts.min() <= counts.max() < 270


def test_seeds_and_ways_to_give_the_split():
    digests = [OfficialLinks(path_with_split(), seed=seed).digest for seed in (0, 0, 1)]
    assert digests[0] == digests[1] != digests[2]
    reversed_pairs = {name: np.array(pairs)[::-1, ::-1] for name, pairs in SPLIT.items()}
    assert OfficialLinks(data_of(nx.path_graph(8)), reversed_pairs).digest == digests[0]
    tensors = {name: torch.tensor(pairs) for name, pairs in SPLIT.items()}
    assert OfficialLinks(data_of(nx.path_graph(8)), tensors).digest == digests[0]
    assert OfficialLinks(path_with_split().to_pyg()).digest == digests[0]


def test_link_task_takes_the_official_split_where_there_is_one():
    official = link_task([path_with_split()], 3, folds=4, negatives="uniform")
    assert type(official) is OfficialLinks
    assert (official.folds, official.digest) == (4, OfficialLinks(path_with_split(), seed=3).digest)
    plain = link_task(data_of(nx.path_graph(8)), 3, negatives="degree")
    assert type(plain) is LinkPrediction
    assert plain.digest == LinkPrediction(data_of(nx.path_graph(8)), seed=3, negatives="degree").digest
    with pytest.raises(InputError, match="has an official split, which negatives/val would change"):
        link_task(path_with_split(), negatives="degree", val=0.2)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"test_edge": [[2], [3]]}, r"pair \(2, 3\) is in test_edge and the training edges"),
        ({"test_edge": [[4], [0]]}, r"pair \(0, 4\) is in valid_edge_neg and test_edge"),
        ({"test_edge_neg": [[1, 7], [7, 1]]}, r"pair \(1, 7\) is twice in test_edge_neg"),
        (
            {"valid_edge": [[5, 0], [1, 8]]},
            r"valid_edge has \(0, 8\) at place 1, which are not two nodes of 0\.\.7",
        ),
        ({"valid_edge": [[5, -1], [1, 3]]}, r"valid_edge has \(-1, 3\) at place 1"),
        ({"valid_edge": [[5, 3], [1, 3]]}, r"valid_edge has \(3, 3\) at place 1"),
        ({"valid_edge": [[5, 0, 2]]}, r"valid_edge must be integers of shape \[2, P\], found int64 \[1, 3\]"),
        ({"valid_edge": [[], []]}, r"valid_edge must be integers of shape \[2, P\], found float64 \[2, 0\]"),
        ({"valid_edge": [[0.5], [1.0]]}, "found float64"),
    ],
)
def test_bad_splits(changes, message):
    with pytest.raises(InputError, match=message) as error:
        OfficialLinks(path_with_split(**changes))
    assert "\n" not in str(error.value)


def test_missing_parts():
    with pytest.raises(InputError, match="the split lacks valid_edge_neg, test_edge; it needs"):
        OfficialLinks(data_of(nx.path_graph(8)), {"valid_edge": [[0], [2]], "test_edge_neg": [[0], [3]]})
    with pytest.raises(InputError, match="8 nodes and no edges to train on"):
        OfficialLinks(data_of(nx.empty_graph(8)), SPLIT)
    with pytest.raises(InputError, match="folds=1 is not"):
        OfficialLinks(path_with_split(), folds=1)


def test_ogbl_ddi_is_judged_on_its_official_split(shared_data):
    graphs = load_dataset("ogbl-ddi", shared_data)
    task = link_task(graphs)
    assert repr(task) == "OfficialLinks(graphs=1, nodes=4267, train=2135822, val=235371, test=229088)"
    for split, name in ((task.val, "valid_edge"), (task.test, "test_edge")):
        for label, part in ((1, graphs[0].split[name]), (0, graphs[0].split[f"{name}_neg"])):
            found = split.pairs[:, split.labels == label]
            assert np.array_equal(np.unique(found, axis=1), np.unique(np.sort(part, axis=0), axis=1))
    # What OGB's leaderboard has for common neighbours.
    common = score_pairs("common-neighbours", task.union, task.test.pairs)
    assert evaluate(task.test, common, ["hits@20"])["hits@20"] == pytest.approx(0.1773, abs=5e-5)
