"""P-GNN's released negatives: which pairs and how often, against brute force; their ceiling; what stays the same."""

import itertools
import json
from collections import Counter
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import chisquare
from sklearn.metrics import roc_auc_score

from psgnn import cli
from psgnn.datasets import load_dataset
from psgnn.errors import InputError
from psgnn.graph._sampling import Joined, ListedPairs, WithinBlocks, running_total
from psgnn.models import build_model
from psgnn.tasks import LinkPrediction, OfficialLinks, PairClassification, ceiling
from psgnn.tasks._metrics import evaluate
from psgnn.training import fit
from psgnn.training._compare import Method, make_task, measure
from psgnn.training._peers import PEERS
from psgnn_lab.manifest import load_manifest, manifest_names
from test_tasks import SEEDS, adjacency_edges, data_of, entries_of, graph_lists, labelled, pairs_of, splits_of

ROOT = Path(__file__).resolve().parent.parent
RELEASED = "pgnn-released"
TASKS = [LinkPrediction, PairClassification]


def positives_of(split):
    return pairs_of(split.pairs[:, split.labels == 1])


def negatives_of(split):
    return pairs_of(split.pairs[:, split.labels == 0])


def truth_of(task, graphs):
    """The pairs that are positives, from the input alone."""
    positives = set()
    for start, place in zip(task.ptr[:-1], task.kept, strict=True):
        graph = graphs[place]
        if task.name == "link":
            found = {(min(u, v), max(u, v)) for u, v in entries_of(graph) if u != v}
        else:
            y = graph.y.tolist()
            found = {
                (u, v) for u, v in itertools.combinations(range(len(y)), 2) if y[u] == y[v] and y[u] >= 0
            }
        positives |= {(start + u, start + v) for u, v in found}
    return positives


def ordered_weights(nodes, avoided):
    """How many of the ordered pairs that are not `avoided` (each in one direction) fall on each pair u < v."""
    ordered = set(itertools.permutations(nodes, 2)) - set(avoided)
    return Counter((min(pair), max(pair)) for pair in ordered)


def assert_drawn_by(weights, drawn):
    """The drawn pairs are a sample in proportion to the weights."""
    assert set(drawn) <= set(weights)
    counts = Counter(drawn)
    pairs = sorted(weights)
    expected = np.array([weights[pair] for pair in pairs]) * (len(drawn) / sum(weights.values()))
    assert expected.min() > 5
    assert chisquare([counts[pair] for pair in pairs], expected).pvalue > 1e-3


# --- the pool


@given(st.lists(st.integers(0, 6), min_size=1, max_size=5), st.integers(1, 4), SEEDS)
def test_joined_pools_have_the_pairs_of_all_graph_by_graph(sizes, number, seed):
    rng = np.random.default_rng(seed)
    every = WithinBlocks(running_total(np.array(sizes)))
    pools = [every]
    for _ in range(number - 1):
        chosen = np.flatnonzero(rng.random(every.starts[-1]) < 0.5)
        pools.append(ListedPairs(every.unrank(chosen), np.diff(np.searchsorted(chosen, every.starts))))
    joined = Joined(*pools)
    assert joined.sizes.tolist() == sum(pool.sizes for pool in pools).tolist()
    listed = joined.unrank(np.arange(joined.sizes.sum()))
    for g, (start, end) in enumerate(itertools.pairwise(running_total(joined.sizes))):
        expected = Counter()
        for pool in pools:
            own = slice(*running_total(pool.sizes)[g : g + 2])
            expected.update(map(tuple, pool.unrank(np.arange(pool.sizes.sum()))[:, own].T.tolist()))
        assert Counter(map(tuple, listed[:, start:end].T.tolist())) == expected
    shuffled = rng.permutation(joined.sizes.sum())
    assert np.array_equal(joined.unrank(shuffled), listed[:, shuffled])


# --- what is drawn


@pytest.mark.parametrize("task", TASKS)
def test_held_out_negatives_avoid_every_positive_in_one_direction_only(task):
    graph = labelled(nx.cycle_graph(9), 3)  # 9 edges and 9 same-class pairs, of 36
    drawn = [task(graph, 0.2, 0.2, seed, negatives=RELEASED) for seed in range(800)]
    positives = truth_of(drawn[0], [graph])
    weights = ordered_weights(range(9), positives)
    assert {weights[pair] for pair in positives} == {1}
    assert set(weights.values()) == {1, 2}
    for part in ("val", "test"):
        assert_drawn_by(weights, [pair for each in drawn for pair in negatives_of(getattr(each, part))])


@pytest.mark.parametrize("task", TASKS)
def test_training_negatives_avoid_the_training_positives_only(task):
    graph = labelled(nx.cycle_graph(9), 3)
    found, expected = Counter(), Counter()
    for seed in range(1000):
        split = task(graph, 0.2, 0.2, seed, negatives=RELEASED)
        train = set(positives_of(split.train))
        kind = dict.fromkeys(truth_of(split, [graph]), "held out") | dict.fromkeys(train, "train")
        weights = ordered_weights(range(9), train)
        for pair, weight in weights.items():
            expected[kind.get(pair, "other")] += weight * len(train) / sum(weights.values())
        found.update(kind.get(pair, "other") for pair in negatives_of(split.train))
    kinds = ["train", "held out", "other"]
    assert chisquare([found[name] for name in kinds], [expected[name] for name in kinds]).pvalue > 1e-3


def test_fresh_negatives_are_drawn_like_those_of_training():
    task = LinkPrediction(data_of(nx.cycle_graph(9)), 0.2, 0.2, seed=1, negatives=RELEASED)
    fresh = pairs_of(task.sample_negatives(20_000, np.random.default_rng(1)))
    assert_drawn_by(ordered_weights(range(9), positives_of(task.train)), fresh)


@given(graph_lists(), st.sampled_from([(0.1, 0.1), (0.3, 0.2), (0.05, 0.6)]), SEEDS, st.sampled_from(TASKS))
def test_all_but_the_negatives_is_as_it_was(graphs, shares, seed, make):
    try:
        usual = make(graphs, *shares, seed)
    except InputError:
        assume(False)
    task = make(graphs, *shares, seed, negatives=RELEASED)
    assert task.negatives == RELEASED
    assert usual.negatives == "uniform"
    assert (task.kept, task.dropped) == (usual.kept, usual.dropped)
    assert adjacency_edges(task.union) == adjacency_edges(usual.union)
    for split, plain in zip(splits_of(task).values(), splits_of(usual).values(), strict=True):
        assert positives_of(split) == positives_of(plain)
        positive = split.labels == 1
        assert np.array_equal(
            split.graph_ids[positive], split.graph_ids[~positive]
        )  # as many, graph by graph
        assert (split.pairs[0] < split.pairs[1]).all()
        assert np.array_equal(task.union.graph_of[split.pairs[0]], split.graph_ids)
        assert np.array_equal(task.union.graph_of[split.pairs[1]], split.graph_ids)
    assert make(graphs, *shares, seed, negatives=RELEASED).digest == task.digest


@pytest.mark.parametrize("task", TASKS)
def test_a_split_does_not_depend_on_the_other_graphs(task):
    grid, cave = labelled(nx.grid_2d_graph(6, 7), 4), labelled(nx.caveman_graph(4, 6), 3)
    alone, together = task(grid, seed=3, negatives=RELEASED), task([grid, cave], seed=3, negatives=RELEASED)
    for a, b in zip(splits_of(alone).values(), splits_of(together).values(), strict=True):
        assert np.array_equal(a.pairs, b.pairs[:, b.graph_ids == 0])
    assert task(grid, seed=4, negatives=RELEASED).digest != alone.digest != task(grid, seed=3).digest


@pytest.mark.parametrize(
    ("row", "make"), [("grid-link", LinkPrediction), ("communities-pair", PairClassification)]
)
def test_usual_splits_are_those_of_the_records(row, make):
    graphs = load_dataset(row.partition("-")[0])
    records = json.loads((ROOT / "lab" / "experiments" / "records" / row / "pagerank.json").read_text())
    assert len(records) > 2
    for record in records:
        assert make(graphs, seed=record["seed"]).digest[:16] == record["split"]
        assert make(graphs, seed=record["seed"], negatives="uniform").digest[:16] == record["split"]


def test_an_unknown_rule_gets_the_nearest():
    graph = labelled(nx.cycle_graph(9), 3)
    with pytest.raises(InputError, match="unknown negatives 'pgnn-release'; did you mean 'pgnn-released'"):
        LinkPrediction(graph, negatives="pgnn-release")
    with pytest.raises(InputError, match="unknown negatives of the pair task 'pgnn'") as error:
        PairClassification(graph, negatives="pgnn")
    assert "valid: pgnn-released, uniform" in str(error.value)


# --- the ceiling


def auc_by_graph(split, scores):
    """Mean AUC over the graphs, by scikit-learn."""
    found = []
    for g in np.unique(split.graph_ids):
        own = split.graph_ids == g
        found.append(roc_auc_score(split.labels[own], scores[own]))
    return np.mean(found)


@given(graph_lists(), SEEDS, st.sampled_from(TASKS), st.sampled_from([RELEASED, "uniform"]))
def test_the_ceiling_is_the_auc_of_the_truth(graphs, seed, make, negatives):
    try:
        task = make(graphs, 0.2, 0.3, seed, negatives=negatives)
    except InputError:
        assume(False)
    positives = truth_of(task, graphs)
    for split in splits_of(task).values():
        truth = [float(pair in positives) for pair in pairs_of(split.pairs)]
        assert task.true_labels(split.pairs).tolist() == truth
    scores = np.array([float(pair in positives) for pair in pairs_of(task.test.pairs)])
    assert ceiling(task) == pytest.approx(auc_by_graph(task.test, scores), abs=1e-12)
    if negatives == "uniform":
        assert ceiling(task) == 1.0


def test_unknown_classes_are_no_positives():
    task = PairClassification(data_of(nx.cycle_graph(9), y=[0, 0, 0, 1, 1, 1, -1, -1, 0]))
    assert task.true_labels(np.array([[0, 6, 0, 5], [8, 7, 3, 6]])).tolist() == [1, 0, 0, 0]


def test_other_tasks_have_no_ceiling_below_one():
    graph = data_of(nx.barabasi_albert_graph(60, 3, seed=1))
    for negatives in ("degree", "distance"):
        assert ceiling(LinkPrediction(graph, negatives=negatives)) == 1.0
    held_out = {"valid_edge": [[0], [2]], "valid_edge_neg": [[0], [3]]}
    held_out |= {"test_edge": [[0], [4]], "test_edge_neg": [[0], [5]]}
    official = OfficialLinks(data_of(nx.path_graph(8)), held_out)
    assert ceiling(official) == 1.0
    assert official.negatives == "official"


def test_the_ceiling_does_not_depend_on_how_many_pairs_are_asked():
    graph = labelled(nx.cycle_graph(60), 2)  # 870 same-class and 900 other pairs
    found = [
        np.mean([ceiling(PairClassification(graph, seed=seed, negatives=RELEASED, **more)) for seed in range(100)])
        for more in ({}, {"max_pairs": 100})
    ]  # fmt: skip
    assert found == pytest.approx([1 - 870 / (870 + 2 * 900) / 2] * 2, abs=0.02)


def test_whole_graphs_can_be_held_out():
    graphs = [labelled(nx.cycle_graph(20), 2) for _ in range(10)]
    task = PairClassification(graphs, 0.2, 0.3, seed=1, holdout="graphs", negatives=RELEASED)
    assert len(np.unique(task.test.graph_ids)) == 3
    scores = task.true_labels(task.test.pairs)
    assert ceiling(task) == pytest.approx(auc_by_graph(task.test, scores))
    assert ceiling(task) < 1


def kept_by_pgnn(graph):
    """The proteins of P-GNN's code: 20 nodes or more, same-class pairs at most a quarter of N^2."""
    _, counts = np.unique(graph.y, return_counts=True)
    return graph.num_nodes >= 20 and (counts * (counts - 1) // 2).sum() <= graph.num_nodes**2 / 4


@pytest.mark.parametrize(
    ("name", "make", "known", "seeds"),
    [
        ("grid", LinkPrediction, 0.998, 50),
        ("communities", LinkPrediction, 0.988, 50),
        ("communities", PairClassification, 0.988, 50),
        ("email", PairClassification, 0.936, 50),
    ],
)
def test_ceilings_of_the_papers_datasets(shared_data, name, make, known, seeds):
    graphs = load_dataset(name, shared_data)
    found = [ceiling(make(graphs, seed=seed, negatives=RELEASED)) for seed in range(seeds)]
    error = np.std(found, ddof=1) / np.sqrt(seeds)
    assert 0 < error < 0.002
    assert np.mean(found) == pytest.approx(known, abs=0.0005 + 3 * error)


@pytest.mark.parametrize(("pgnn", "number", "known"), [(True, 365, 0.842), (False, 1013, 0.811)])
def test_the_ceiling_of_protein_depends_on_which_graphs_are_kept(shared_data, pgnn, number, known):
    graphs = load_dataset("protein", shared_data, attributes=False)
    graphs = [graph for graph in graphs if kept_by_pgnn(graph)] if pgnn else graphs
    tasks = [PairClassification(graphs, seed=seed, negatives=RELEASED) for seed in range(3)]
    assert len(tasks[0].kept) == number
    # Ten thousand and more test negatives, but the mean over graphs weighs those of the small graphs most.
    assert np.mean([ceiling(task) for task in tasks]) == pytest.approx(known, abs=0.008)


def test_who_tells_visible_edges_from_held_out_ones_passes_the_ceiling():
    (graph,) = load_dataset("communities")
    task = LinkPrediction(graph, seed=5, negatives=RELEASED)
    visible = adjacency_edges(task.union)
    seen = np.array([float(pair in visible) for pair in pairs_of(task.test.pairs)])
    assert seen[task.test.labels == 1].sum() == 0
    assert seen[task.test.labels == 0].sum() > 0
    assert auc_by_graph(task.test, task.true_labels(task.test.pairs) - seen) > ceiling(task)


# --- methods, command line, experiment


@pytest.mark.parametrize("name", ["link", "pair"])
def test_the_oracle_is_measured_like_any_method(name):
    task = make_task([labelled(nx.connected_caveman_graph(5, 6), 3)], name, 2, negatives=RELEASED)
    found = measure(Method("ceiling", "oracle"), task, 2)
    assert found["test"]["auc"] == pytest.approx(ceiling(task))
    assert found["val"] == evaluate(task.val, task.true_labels(task.val.pairs))
    assert found["test"]["auc"] < 1
    with pytest.raises(InputError, match="unknown oracle 'floor'"):
        Method("floor", "oracle")


@pytest.mark.parametrize(("name", "model"), [("link", "psgnn"), ("link", "gcn"), ("pair", "psgnn")])
def test_models_train_on_it_and_the_record_says_so(name, model):
    task = make_task([labelled(nx.connected_caveman_graph(5, 6), 3)], name, 2, negatives=RELEASED)
    result = fit(build_model(model, task), task, epochs=2)
    assert result.record["task"]["negatives"] == RELEASED
    assert 0 <= result.test["auc"] <= 1


def test_a_peer_learns_from_it():
    task = make_task([data_of(nx.connected_caveman_graph(5, 6))], "link", 2, negatives=RELEASED)
    assert np.isfinite(PEERS["boosting"](task, 0)(task.test.pairs)).all()


@pytest.mark.parametrize("name", ["link", "pair"])
def test_on_the_command_line_it_is_labelled(name, monkeypatch, capsys):
    words = ["psgnn", "compare", "communities", "--set", "communities=6", "--set", "size=6", "--task", name]
    words += ["--models", "none", "--seeds", "1", "--negatives", RELEASED]

    def printed(*more):
        monkeypatch.setattr("sys.argv", [*words, *more])
        with pytest.raises(SystemExit) as exit_info:
            cli.main()
        assert not exit_info.value.code
        return capsys.readouterr().out

    assert f"{name} task with {RELEASED} negatives" in printed()
    document = json.loads(printed("--json"))
    assert document["negatives"] == RELEASED
    graphs = load_dataset("communities", communities=6, size=6)
    task = make_task(graphs, name, 0, negatives=RELEASED)
    (row,) = [row for row in document["rows"] if row["name"] == "pagerank"]
    assert row["auc"] == [measure(Method("pagerank", "rule"), task, 0)["test"]["auc"]]


def test_the_experiment_is_on_it_and_no_other_is():
    for name in manifest_names(ROOT / "lab" / "experiments"):
        manifest = load_manifest(name, ROOT / "lab" / "experiments")
        rules = {row.task_options.get("negatives") for row in manifest.rows}
        assert (rules == {RELEASED}) if name == "sampler" else (RELEASED not in rules)


def test_the_recorded_ceilings_are_those_of_the_tasks():
    manifest = load_manifest("sampler", ROOT / "lab" / "experiments")
    for row in manifest.rows:
        if row.dataset in ("grid", "communities"):
            records = json.loads((manifest.records / row.name / "ceiling.json").read_text())
            assert len(records) == 10
            for record in records[:3]:
                seed = record["seed"]
                task = make_task(load_dataset(row.dataset), row.task, seed, **row.task_options)
                assert record["test"]["auc"] == round(ceiling(task), 6)
