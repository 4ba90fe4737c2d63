"""The parts that learn from positions, and how they are trained: set decoder, channel encoder, best preset."""

from __future__ import annotations

import time
import weakref
from dataclasses import replace
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from scipy.sparse import issparse
from sklearn.metrics import roc_auc_score

import psgnn
import psgnn.anchors._rules as rules
import psgnn.models._decoders as decoders
import psgnn.positions._measure as positions_module
import psgnn.training._batches as batches
import psgnn.training._fit as training
from conftest import adjacency_of, data_of
from psgnn.graph._graph import GraphBatch
from psgnn.models import AnchorSet, TensorView, build_model, view_of
from psgnn.models._anchor_sets import channels_of
from psgnn.models._channels import ChannelEncoder, TraitEncoder
from psgnn.models._decoders import SetDecoder
from psgnn.models._presets import ABLATIONS
from psgnn.positions._measure import Parts, Positions, positions_of
from psgnn.tasks import LabelledPairs, LinkPrediction, PairClassification
from psgnn.training import Run, fit
from psgnn.training._steps import one_thread

RANDOM = nx.gnp_random_graph(18, 0.25, seed=3)
BROKEN = nx.disjoint_union(nx.connected_caveman_graph(3, 4), nx.empty_graph(1))


def small_communities() -> psgnn.Graph:
    return psgnn.load_dataset("communities", communities=4, size=8)[0]


def link_task() -> LinkPrediction:
    return LinkPrediction(small_communities())


def train(task: psgnn.tasks.Task, epochs: int = 4, out: Path | None = None, **options: Any) -> Run:
    options = {"eval_every": 2, "hidden": 8} | options
    return fit(build_model("psgnn", task, **options), task, epochs=epochs, out=out)


def decoder_of(**options: Any) -> SetDecoder:
    torch.manual_seed(0)
    settings: dict[str, Any] = {"dropout": 0.3, "anchor_dropout": 0.5, "network": True, "members": 2}
    return SetDecoder(Parts(), 8, **(settings | options))


def anchors(*rows: list[int]) -> AnchorSet:
    width = max(map(len, rows))
    return AnchorSet.plain(np.array([row + [-1] * (width - len(row)) for row in rows]))


def all_pairs(num_nodes: int) -> torch.Tensor:
    return torch.triu_indices(num_nodes, num_nodes, 1)


def tensors(split: LabelledPairs) -> tuple[torch.Tensor, torch.Tensor]:
    """Pairs and labels for a model."""
    return torch.from_numpy(split.pairs), torch.from_numpy(split.labels)


def calibrated(decoder: SetDecoder, view: TensorView, choice: AnchorSet) -> SetDecoder:
    decoder.calibrate(channels_of(view, choice, Parts()), all_pairs(int(view.union.sizes[0])))
    return decoder.eval()


# --- the set decoder


@pytest.mark.parametrize("in_training", [False, True])
def test_scores_do_not_depend_on_the_order_of_a_pair(in_training: bool) -> None:
    view, choice, pairs = view_of([data_of(RANDOM)]), anchors([2, 5, 9, 16]), all_pairs(18)
    decoder = calibrated(decoder_of(dropout=0.0), view, choice).train(in_training)
    positions = channels_of(view, choice, Parts())
    torch.manual_seed(1)
    there = decoder(positions, pairs)
    torch.manual_seed(1)
    torch.testing.assert_close(decoder(positions, pairs.flip(0)), there, rtol=1e-4, atol=1e-4)
    assert there.std() > 0.01


def test_scores_do_not_depend_on_the_order_of_the_anchors() -> None:
    view, pairs, chosen = view_of([data_of(RANDOM)]), all_pairs(18), [2, 5, 9, 16, 0]
    decoder = calibrated(decoder_of(), view, anchors(chosen))
    scores = decoder(channels_of(view, anchors(chosen), Parts()), pairs)
    shuffled = decoder(channels_of(view, anchors(chosen[::-1]), Parts()), pairs)
    torch.testing.assert_close(shuffled, scores, rtol=1e-3, atol=2e-3)
    others = decoder(channels_of(view, anchors([1, 3, 4, 7, 8]), Parts()), pairs)
    assert not torch.allclose(others, scores, rtol=1e-3, atol=2e-3)


def test_a_union_of_graphs_with_different_numbers_of_anchors_scores_as_the_graphs_alone() -> None:
    union, own = view_of([data_of(RANDOM), data_of(BROKEN)]), ([2, 5, 9, 16, 0, 11], [1, 6])
    both = anchors(own[0], [18 + v for v in own[1]])
    decoder = calibrated(decoder_of(), union, both)
    for graph, chosen, first in ((RANDOM, own[0], 0), (BROKEN, own[1], 18)):
        pairs = all_pairs(len(graph))
        alone = decoder(channels_of(view_of([data_of(graph)]), anchors(chosen), Parts()), pairs)
        together = decoder(channels_of(union, both, Parts()), pairs + first)
        torch.testing.assert_close(together, alone, rtol=1e-3, atol=2e-3)


@pytest.mark.parametrize("in_training", [False, True])
def test_padding_of_graphs_with_few_anchors_is_not_looked_at_and_scores_stay(
    in_training: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    graphs = [RANDOM, BROKEN, nx.path_graph(9)]
    view = view_of([data_of(graph) for graph in graphs])
    choice = anchors([2, 5, 9, 16, 0, 11, 7, 8], [19, 24], [33])
    pairs = torch.cat([all_pairs(len(g)) + f for g, f in zip(graphs, (0, 18, 31), strict=True)], dim=1)
    pairs = pairs[:, torch.randperm(pairs.size(1), generator=torch.Generator().manual_seed(0))]
    positions = channels_of(view, choice, Parts())

    def outcome(groups: int) -> tuple[torch.Tensor, list[torch.Tensor], int]:
        """Scores, gradients, and how many pairs of node and anchor the network has seen."""
        monkeypatch.setattr(decoders, "GROUPS", groups)
        decoder = calibrated(decoder_of(dropout=0.0), view, choice).train(in_training)
        assert decoder.phi is not None
        seen: list[int] = []
        decoder.phi.register_forward_hook(lambda module, args, out: seen.append(out[..., 0].numel()))
        torch.manual_seed(3)  # a step of training that leaves out the one anchor of the path
        scores = decoder(positions, pairs)
        scores.square().mean().backward()
        return scores.detach(), [w.grad for w in decoder.parameters() if w.grad is not None], sum(seen)

    scores, gradients, looked_at = outcome(1)
    for groups in (8, 1000):
        others, other_gradients, fewer = outcome(groups)
        torch.testing.assert_close(others, scores, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(other_gradients, gradients, rtol=1e-3, atol=1e-3)
        assert fewer < 0.8 * looked_at


def test_gradients_reach_every_parameter() -> None:
    data = data_of(RANDOM)
    data.x = torch.randn(18, 5, generator=torch.Generator().manual_seed(0))
    task = LinkPrediction(data)
    model = build_model("psgnn", task, hidden=8)
    view = view_of(task.graphs)
    choice, pairs, labels = model.pick(view), *tensors(task.train)
    model.calibrate(view, choice, pairs)
    torch.manual_seed(0)
    model.train().loss(view, choice, pairs, labels).backward()
    untouched = [
        name for name, weight in model.named_parameters() if weight.grad is None or not weight.grad.any()
    ]
    assert not untouched


def test_the_score_is_the_mean_of_its_members_and_they_differ() -> None:
    view, choice, pairs = view_of([data_of(RANDOM)]), anchors([2, 5, 9]), all_pairs(18)
    decoder = calibrated(decoder_of(members=3), view, choice)
    positions = channels_of(view, choice, Parts())
    members = decoder.member_scores(positions, pairs)
    assert members.shape == (pairs.size(1), 3)
    torch.testing.assert_close(decoder(positions, pairs), members.mean(dim=1))
    assert not torch.allclose(members[:, 0], members[:, 1], atol=1e-2)


def test_statistics_are_standardised_by_the_pairs_of_the_calibration() -> None:
    view, choice = view_of([data_of(RANDOM)]), anchors([2, 5, 9])
    decoder = calibrated(decoder_of(), view, choice)
    seen: list[torch.Tensor] = []
    decoder.linear.register_forward_hook(lambda module, args, out: seen.append(args[0]))
    decoder(channels_of(view, choice, Parts()), all_pairs(18))
    assert seen[0].abs().max() <= 6
    varies = seen[0].std(dim=0) > 0.1
    assert varies.float().mean() > 0.8
    assert seen[0][:, varies].mean(dim=0).abs().max() < 0.3  # the cut at 6 moves a mean a little


# --- embeddings


def test_the_embedding_of_some_nodes_is_that_of_all_at_their_rows() -> None:
    data = [data_of(RANDOM), data_of(BROKEN)]
    for g, graph in enumerate(data):
        graph.x = torch.randn(graph.num_nodes, 3, generator=torch.Generator().manual_seed(g))
    view, choice = view_of(data), anchors([2, 5, 9], [19, 24])
    torch.manual_seed(0)
    encoder = ChannelEncoder(Parts(), 8, dropout=0.5, in_channels=3).eval()
    encoder.calibrate(channels_of(view, choice, Parts()))
    nodes = torch.tensor([30, 4, 18, 4, 0])
    whole = encoder(view, choice)
    assert whole.size(0) == 31
    torch.testing.assert_close(encoder(view, choice, nodes), whole[nodes])


def test_embeddings_alone_reproduce_their_test_metrics() -> None:
    task = link_task()
    result = train(task, epochs=10)
    h = result.evaluation_scorer().embed()
    apart = np.linalg.norm(h[task.test.pairs[0]] - h[task.test.pairs[1]], axis=1)
    assert result.embedding_test is not None
    assert result.embedding_test["auc"] == pytest.approx(roc_auc_score(task.test.labels, -apart))
    assert result.record["embedding_test"] == result.embedding_test


@pytest.mark.parametrize("decoder", ["dot", "distance"])
def test_scores_of_a_model_that_can_be_indexed_follow_its_embeddings(decoder: str) -> None:
    task = PairClassification(small_communities())
    result = train(task, epochs=6, decoder=decoder)
    pairs = all_pairs(32).numpy()
    h = result.embed().astype(np.float64)
    a, b = h[pairs[0]], h[pairs[1]]
    near = (a * b).sum(axis=1) if decoder == "dot" else -np.linalg.norm(a - b, axis=1)
    scores = result.score(pairs).astype(np.float64)
    order = near.argsort()
    assert (np.diff(scores[order]) >= -1e-4).all()
    assert np.corrcoef(scores, near)[0, 1] > 0.9999  # both are linear in it, rising
    assert scores.std() > 1e-3
    assert result.embedding_test is None  # the scores are the embeddings'


def test_predictions_in_blocks_are_predictions_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    result, pairs = train(link_task(), epochs=2), all_pairs(32)
    whole = result.score(pairs)
    for module in ("psgnn.models._models", "psgnn.training._run"):
        monkeypatch.setattr(f"{module}.PAIR_BLOCK", 37)
    np.testing.assert_allclose(result.score(pairs), whole, rtol=1.3e-6, atol=1e-5)


# --- node features


def featured_task(change: float = 0.0) -> PairClassification:
    x = np.random.default_rng(0).standard_normal((32, 5)).astype(np.float32)
    x[:, 3] += change * np.arange(32)
    return PairClassification(replace(small_communities(), x=x))


@pytest.mark.parametrize("decoder", ["set", "distance"])
@pytest.mark.parametrize("used", [True, False])
def test_features_count_unless_they_are_switched_off(decoder: str, used: bool) -> None:
    task = featured_task()
    result = train(task, epochs=3, decoder=decoder, features=used)
    pairs = all_pairs(32)
    changed = featured_task(0.5).graphs
    before, after = result.on(task.graphs), result.on(changed)
    assert np.array_equal(before.score(pairs), after.score(pairs)) is not used
    assert np.array_equal(before.embed(), after.embed()) is not used


def words(num_nodes: int, columns: int, *, each: int = 3) -> np.ndarray[Any, np.dtype[np.float32]]:
    """A few words per node."""
    x = np.zeros((num_nodes, columns), np.float32)
    x[np.arange(num_nodes)[:, None], np.random.default_rng(0).integers(0, columns, (num_nodes, each))] = 1
    return x


def wide_view(columns: int = 3000) -> TensorView:
    graph = nx.disjoint_union(nx.random_regular_graph(3, 400, seed=0), nx.empty_graph(2))
    return view_of([psgnn.Graph(adjacency_of(graph), x=words(402, columns))])


def described(view: TensorView, parts: Parts) -> tuple[Positions, TraitEncoder]:
    """What is known of the nodes, and an encoder of it."""
    positions = positions_of(view, np.array([[0]]), parts)
    torch.manual_seed(0)
    encoder = TraitEncoder(parts, view.x.size(1), 32, dropout=0.0)
    encoder.calibrate(positions)
    return positions, encoder


def test_words_are_kept_sparse_and_mean_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    view = wide_view()
    sparse, encoder = described(view, Parts())
    nodes = (
        torch.arange(402).flip(0)[:, None].expand(-1, 2).reshape(-1)
    )  # some twice, those without links too
    encoded = encoder(sparse, nodes)
    encoded.square().sum().backward()
    slopes = [weight.grad.clone() for weight in encoder.parameters() if weight.grad is not None]
    assert issparse(sparse.traits)
    assert sparse.traits.nnz < sparse.traits.shape[0] * sparse.traits.shape[1] / 50

    monkeypatch.setattr(positions_module, "SPARSE", 0)
    view.forget()
    dense, encoder = described(view, Parts())
    assert isinstance(dense.traits, np.ndarray)
    np.testing.assert_allclose(sparse.traits_of(slice(None)), dense.traits, rtol=1e-5, atol=1e-6)
    expected = encoder(dense, nodes)
    expected.square().sum().backward()
    torch.testing.assert_close(encoded, expected, rtol=1e-4, atol=1e-4)
    for slope, weight in zip(slopes, encoder.parameters(), strict=True):
        torch.testing.assert_close(slope, weight.grad, rtol=1e-3, atol=1e-3 * float(slope.abs().max()))


def test_what_words_add_to_a_step_is_less_than_half_of_what_dense_rows_would(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    view = wide_view()
    nodes = torch.arange(256)

    def seconds() -> float:
        positions, encoder = described(view, Parts())
        taken = []
        for _ in range(5):
            start = time.thread_time()
            encoder(positions, nodes).sum().backward()
            taken.append(time.thread_time() - start)
        return min(taken)

    with one_thread():
        sparse = seconds()
        monkeypatch.setattr(positions_module, "SPARSE", 0)
        view.forget()
        assert sparse < seconds() / 2


def test_training_on_words_gives_what_dense_rows_give(monkeypatch: pytest.MonkeyPatch) -> None:
    task = PairClassification(replace(small_communities(), x=words(32, 2000)))
    sparse = train(task, epochs=4)
    monkeypatch.setattr(positions_module, "SPARSE", 0)
    dense = train(task, epochs=4)
    pairs = all_pairs(32)
    np.testing.assert_allclose(sparse.score(pairs), dense.score(pairs), rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(sparse.embed(), dense.embed(), rtol=1e-3, atol=1e-3)


# --- ablations


@pytest.mark.parametrize("label", ABLATIONS)
def test_every_ablation_trains(label: str) -> None:
    task = link_task()
    result = train(task, epochs=2, **ABLATIONS[label])
    fresh = build_model("psgnn", task, hidden=8, **ABLATIONS[label])
    moved = [
        not torch.equal(weight, fresh.get_parameter(name)) for name, weight in result.model.named_parameters()
    ]
    assert all(moved)
    assert all(np.isfinite(entry["loss"]) for entry in result.history)
    assert np.isfinite(result.score(all_pairs(32))).all()
    assert fresh.config != build_model("psgnn", task, hidden=8).config  # something was switched off


# --- training with the best preset


@pytest.mark.parametrize("eval_every", [2, 9])  # what is kept is from before, and from after the interruption
def test_an_interrupted_run_of_the_best_preset_resumes_to_the_result_it_would_have_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, eval_every: int
) -> None:
    task = link_task()
    whole = train(task, epochs=9, eval_every=eval_every)
    config = whole.model.config
    assert (config.average, config.one_cycle, config.batch, config.members) == (0.98, True, "auto", 4)
    epoch = training._Trainer._epoch

    def interrupt(self: Any, number: int) -> float:
        if number == 5:
            raise KeyboardInterrupt
        return epoch(self, number)

    with monkeypatch.context() as patch:
        patch.setattr(training._Trainer, "_epoch", interrupt)
        with pytest.raises(KeyboardInterrupt):
            train(task, epochs=9, eval_every=eval_every, out=tmp_path / "run")
    resumed = train(task, epochs=9, eval_every=eval_every, out=tmp_path / "run")
    assert resumed.history == whole.history
    assert resumed.anchors == whole.anchors
    assert (resumed.val, resumed.test, resumed.embedding_test) == (
        whole.val,
        whole.test,
        whole.embedding_test,
    )
    weights = whole.model.state_dict()
    assert all(torch.equal(value, weights[key]) for key, value in resumed.model.state_dict().items())


def test_the_averaged_weights_are_validated_and_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """The average is rebuilt here from the weights after every step."""
    task, average = link_task(), 0.75
    steps: list[dict[str, torch.Tensor]] = []
    validated: list[dict[str, torch.Tensor]] = []

    def copy(self: Any) -> dict[str, torch.Tensor]:
        return {key: value.detach().clone() for key, value in self.model.state_dict().items()}

    epoch, measure = training._Trainer._epoch, training._Trainer._measure

    def after_step(self: Any, number: int) -> float:
        loss = epoch(self, number)
        steps.append(copy(self))
        return loss

    def while_measured(self: Any, *args: Any, **options: Any) -> dict[str, float]:
        validated.append(copy(self))
        return measure(self, *args, **options)

    monkeypatch.setattr(training._Trainer, "_epoch", after_step)
    monkeypatch.setattr(training._Trainer, "_measure", while_measured)
    result = train(task, epochs=6, eval_every=6, average=average, lr=0.05)
    expected = steps[0]
    for number, step in enumerate(steps[1:], start=2):
        share = max(1 - average, 1 / (1 + number / 10))
        expected = {key: value + share * (step[key] - value) for key, value in expected.items()}
    kept = result.model.state_dict()
    for key, value in expected.items():
        torch.testing.assert_close(validated[0][key], value, rtol=1e-4, atol=1e-5)
        assert torch.equal(kept[key], validated[0][key])
    assert not torch.allclose(kept["decoder.linear.weight"], steps[-1]["decoder.linear.weight"], atol=1e-4)


def test_training_goes_on_from_the_weights_and_not_from_their_average() -> None:
    """How often the average is looked at changes nothing about the steps."""
    often = train(link_task(), epochs=6, eval_every=1)
    once = train(link_task(), epochs=6, eval_every=6)
    assert often.history[-1] == once.history[-1]


def test_only_a_part_of_many_validation_pairs_is_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    task = link_task()
    model = build_model("psgnn", task, hidden=8)
    assert training._Trainer(model, task, 2, 0).watched is task.val
    monkeypatch.setattr(training, "MOST_WATCHED_PAIRS", 10)
    watched = training._Trainer(model, task, 2, 0).watched
    known = {(u, v): y for u, v, y in zip(*task.val.pairs.tolist(), task.val.labels.tolist(), strict=True)}
    found = list(zip(*watched.pairs.tolist(), strict=True))
    assert len(set(found)) == len(found) == watched.labels.size == watched.graph_ids.size == 10
    assert [known[pair] for pair in found] == watched.labels.tolist()
    assert np.array_equal(training._Trainer(model, task, 2, 0).watched.pairs, watched.pairs)
    assert not np.array_equal(training._Trainer(model, task, 2, 1).watched.pairs, watched.pairs)
    result = train(task, epochs=2)
    assert result.val["auc"] == pytest.approx(
        roc_auc_score(task.val.labels, result.evaluation_scorer().score(task.val.pairs))
    )  # all of them, once, at the end


def test_the_learning_rate_rises_and_falls(monkeypatch: pytest.MonkeyPatch) -> None:
    rates: list[float] = []
    step = torch.optim.AdamW.step

    def record(self: Any, *args: Any, **options: Any) -> Any:
        rates.append(self.param_groups[0]["lr"])
        return step(self, *args, **options)

    monkeypatch.setattr(torch.optim.AdamW, "step", record)
    train(link_task(), epochs=20, eval_every=20, lr=0.01, decoder="distance")
    assert np.argmax(rates) == 4
    assert max(rates) == pytest.approx(0.01)
    assert (np.diff(rates[:5]) > 0).all()
    assert (np.diff(rates[4:]) < 0).all()
    assert max(rates[0], rates[-1]) < 0.0005


@pytest.mark.parametrize(("batch", "pairs"), [(40, 40), ("auto", 256)])
def test_a_batch_has_its_size_and_share_of_negatives(batch: int | str, pairs: int) -> None:
    task = link_task()
    trainer = training._Trainer(build_model("psgnn", task, hidden=8, batch=batch), task, 2, 0)
    view, found, labels = trainer._batch(3, np.random.default_rng(0))
    assert found.shape == (2, pairs)
    assert labels.sum() == pairs // 4  # three negatives to a positive
    positives = set(map(tuple, found[:, labels == 1].T.tolist()))
    assert positives <= set(map(tuple, task.fold(3).positives.T.tolist()))
    assert not positives & set(map(tuple, view.union.adjacency.edges().T.tolist()))


def test_small_batches_see_all_training_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two passes at least, unless somebody says how many epochs, and never more than the bound."""
    task = link_task()
    count = task.train.labels.size
    config = build_model("psgnn", task, hidden=8, batch=2).config.model_copy(update={"epochs": 5})
    assert batches.number_of_steps(config, task) == count  # two passes of two pairs a step
    assert batches.number_of_steps(config.model_copy(update={"epochs": 2 * count}), task) == 2 * count
    monkeypatch.setattr(batches, "MOST_STEPS", 7)
    assert batches.number_of_steps(config, task) == 7
    told = build_model("psgnn", task, hidden=8, batch=2, epochs=3)
    assert batches.number_of_steps(told.config, task) == 3
    whole = build_model("psgnn", task, hidden=8, batch="all")
    assert batches.number_of_steps(whole.config, task) == whole.config.epochs


def test_a_batch_of_labelled_pairs_is_shared_evenly_by_the_graphs() -> None:
    """A graph with few pairs counts as much in the mean AUC as one with many."""
    graphs = [data_of(nx.connected_caveman_graph(3, size)) for size in (4, 12)]
    for graph in graphs:
        graph.y = torch.arange(graph.num_nodes) * 3 // graph.num_nodes
    task = PairClassification(graphs)
    trainer = training._Trainer(build_model("psgnn", task, hidden=8, batch=400), task, 2, 0)
    _, pairs, labels = trainer._batch(0, np.random.default_rng(0))
    own = np.bincount(task.train.graph_ids)
    assert own[1] > 5 * own[0]
    drawn = np.bincount(task.union.graph_of[pairs[0]])
    assert 160 < drawn[0] < 240
    known = {
        (u, v): y for u, v, y in zip(*task.train.pairs.tolist(), task.train.labels.tolist(), strict=True)
    }
    assert [known[pair] for pair in zip(*pairs.tolist(), strict=True)] == labels.tolist()


# Large graphs, on small ones


def test_embeddings_learn_from_every_so_many_pairs() -> None:
    task = link_task()
    view, (pairs, labels) = view_of(task.graphs), tensors(task.train)
    losses = {}
    for every in (1, 3):
        model = build_model("psgnn", task, hidden=8, embed_every=every).eval()
        choice = model.pick(view)
        losses[every] = model.loss(view, choice, pairs, labels)
        scores = model.embedding_decoder(*model.embedded(view, choice, pairs[:, ::every]))  # type: ignore[misc]
        losses[every] -= torch.nn.functional.binary_cross_entropy_with_logits(scores, labels[::every])
    torch.testing.assert_close(losses[1], losses[3])  # that of the scores is left, of all pairs


def test_large_graphs_use_few_folds_one_after_the_other(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    task = link_task()
    usual = build_model("psgnn", task).config
    monkeypatch.setattr("psgnn.graph._graph.LARGE_NODES", 10)
    config = build_model("psgnn", task).config
    assert (usual.members, usual.batch, usual.embed_every) == (4, "auto", 1)
    assert (config.members, config.batch, config.embed_every) == (1, 1024, 2)
    assert (task.folds, link_task().folds, LinkPrediction(small_communities(), folds=7).folds) == (10, 40, 7)
    assert build_model("psgnn", task, members=3).config.members == 3  # what is asked for counts
    assert build_model("psgnn", task, preset="paper").config.batch == "all"
    with caplog.at_level("INFO", "psgnn"):
        trainer = training._Trainer(build_model("psgnn", task, hidden=8), task, 9, 0)
    assert "a large graph: 3 of the folds are used" in caplog.text
    assert [trainer.batches.fold_of_step(step) for step in range(9)] == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    measured = []
    for step in range(9):
        trainer._epoch(step)
        ((f, (_, view)),) = trainer.batches.kept.items()
        assert f == step // 3
        if not measured or measured[-1]() is not view.positions[1]:  # type: ignore[index]
            measured.append(weakref.ref(view.positions[1]))  # type: ignore[index]
    del view
    assert [positions() is None for positions in measured] == [True, True, False]
    whole = train(task, epochs=9)
    step = training._Trainer._epoch

    def interrupt(self: Any, epoch: int) -> float:
        if epoch == 5:
            raise KeyboardInterrupt
        return step(self, epoch)

    with monkeypatch.context() as patch:
        patch.setattr(training._Trainer, "_epoch", interrupt)
        with pytest.raises(KeyboardInterrupt):
            train(task, epochs=9, out=tmp_path / "run")
    resumed = train(task, epochs=9, out=tmp_path / "run")
    pairs = all_pairs(32)
    assert np.array_equal(resumed.score(pairs), whole.score(pairs))


def test_metrics_of_many_pairs_are_those_of_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "MOST_MEASURED_PAIRS", 10)
    monkeypatch.setattr(training, "MOST_EMBEDDED_PAIRS", 8)
    sizes = []
    measure = training.evaluate

    def counting(split: Any, scores: Any, *arguments: Any) -> dict[str, float]:
        sizes.append(len(scores))
        return measure(split, scores, *arguments)

    monkeypatch.setattr(training, "evaluate", counting)
    task = link_task()
    assert task.test.labels.size > 10
    train(task, epochs=2)
    assert sizes[-3:] == [10, 10, 8]


def test_log2_anchors_of_a_large_graph_fit_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = GraphBatch.of([data_of(nx.path_graph(256))])
    assert rules.anchor_counts(batch, "log^2").tolist() == [64]
    monkeypatch.setattr(rules, "MOST_ROWS", 256 * 20)
    assert rules.anchor_counts(batch, "log^2").tolist() == [20]
    monkeypatch.setattr(rules, "MOST_ROWS", 256)
    assert rules.anchor_counts(batch, "log^2").tolist() == rules.anchor_counts(batch, "log").tolist() == [8]
    assert rules.anchor_counts(batch, 100).tolist() == [100]


def test_positions_do_not_depend_on_the_blocks_they_are_made_in(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = channels_of(view_of([data_of(RANDOM), data_of(BROKEN)]), anchors([0, 5], [20, 22]), Parts())
    monkeypatch.setattr(positions_module, "BLOCK", 7 * whole.channels[0].nbytes)  # 7 of 31 rows
    parts = channels_of(view_of([data_of(RANDOM), data_of(BROKEN)]), anchors([0, 5], [20, 22]), Parts())
    assert np.array_equal(parts.channels, whole.channels)


def test_what_two_nodes_have_in_common_is_seen_where_links_are_between_nodes_of_the_same_words(
    tmp_path: Path,
) -> None:
    rng = np.random.default_rng(0)
    groups = np.arange(120) % 30
    words = (rng.random((120, 90)) < 0.02) | (np.arange(90) % 30 == groups[:, None])
    same = [(u, v) for u in range(120) for v in range(u) if groups[u] == groups[v]]
    graph = nx.Graph(same + [tuple(pair) for pair in rng.integers(0, 120, (60, 2)) if pair[0] != pair[1]])
    data = data_of(graph)
    data.x = torch.from_numpy(words.astype(np.float32))[list(graph)]
    task = LinkPrediction(data, seed=0)
    assert build_model("psgnn", task).config.pair_features
    assert not build_model("psgnn", PairClassification(small_communities(), seed=0)).config.pair_features
    assert not build_model("psgnn", link_task()).config.pair_features
    run = train(task, epochs=40, out=tmp_path / "run", members=1)
    alone = train(task, epochs=40, members=1, pair_features=False)
    assert run.test["auc"] != alone.test["auc"]
    loaded = psgnn.load(tmp_path / "run")
    assert np.array_equal(loaded.score(task.test.pairs), run.score(task.test.pairs))
    assert "features" in run.explain("0", "30")["contributions"]
