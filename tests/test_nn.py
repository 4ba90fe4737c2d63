from __future__ import annotations

from itertools import combinations
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch

from conftest import data_of
from psgnn.errors import InputError
from psgnn.models import (
    ESTIMATORS,
    AnchorEncoder,
    AnchorLayer,
    AnchorSet,
    ConvEncoder,
    KSubset,
    RandomSets,
    RulePicker,
    ScorePicker,
    SequentialPicker,
    TensorView,
    build_model,
    view_of,
)
from psgnn.models._config import PICKERS, ModelConfig, make_config
from psgnn.models._messages import anchor_messages, dense_messages
from psgnn.models._pickers import spread_top_k
from psgnn.models._presets import CONVOLUTIONS, NAMED_MODELS
from psgnn.tasks import LinkPrediction

SHAPES = [
    nx.connected_caveman_graph(4, 5),
    nx.path_graph(9),
    nx.disjoint_union(nx.cycle_graph(7), nx.empty_graph(1)),
]


def three_views() -> TensorView:
    return view_of([data_of(shape) for shape in SHAPES])


# --- the fused messages


def message_arguments(far: bool, dtype: torch.dtype = torch.float64) -> dict[str, Any]:
    torch.manual_seed(0)
    rows, k, width, graphs, depths = 6, 3, 5, 2, 4

    def leaf(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, dtype=dtype, requires_grad=True)

    return {
        "table": leaf(depths, width),
        "near": torch.randint(0, depths, (rows, k), dtype=torch.int32),
        "base": leaf(rows, width),
        "weight": leaf(graphs, k),
        "graph": torch.tensor([0, 0, 0, 1, 1, 1]),
        "far": leaf(4, width) if far else None,
        "who": torch.randint(0, 4, (rows, k), dtype=torch.int32) if far else None,
    }


@pytest.mark.parametrize("far", [False, True])
@pytest.mark.parametrize("multiply", [False, True])
@pytest.mark.parametrize("reads", [False, True])
def test_fused_messages_and_their_gradients(far: bool, multiply: bool, reads: bool) -> None:
    arguments = message_arguments(far)
    readout = torch.randn(5, dtype=torch.float64, requires_grad=True) if reads else None
    leaves = {key: arguments[key] for key in ("table", "base", "weight", "far") if arguments[key] is not None}
    if readout is not None:
        leaves["readout"] = readout

    def fused(*values: torch.Tensor) -> torch.Tensor:
        changed = arguments | dict(zip(leaves, values, strict=True))
        return anchor_messages(**changed, multiply=multiply)

    assert torch.autograd.gradcheck(fused, tuple(leaves.values()))
    empty = torch.empty(0, 0, dtype=torch.float64)
    dense = dense_messages(
        arguments["table"], arguments["near"], arguments["base"], arguments["far"] if far else empty,
        arguments["who"] if far else empty, multiply, arguments["weight"], arguments["graph"],
        torch.empty(0) if readout is None else readout,
    )  # fmt: skip
    assert torch.allclose(fused(*leaves.values()), dense)


@pytest.mark.parametrize("form", ["own", "sum", "product"])
@pytest.mark.parametrize("reads", [False, True])
@pytest.mark.parametrize("width", [1, 16, 37, 64])
def test_messages_of_rows_as_wide_as_vectors(form: str, reads: bool, width: int) -> None:
    """Many nodes add to few rows, so an addition that does not wait for the one before it is seen."""
    generator = torch.Generator().manual_seed(width)
    rows = {"table": 3, "base": 40, "far": 4}
    leaves = {key: torch.randn(n, width, generator=generator, requires_grad=True) for key, n in rows.items()}
    leaves["weight"] = torch.rand(2, 6, generator=generator, requires_grad=True)
    if reads:
        leaves["readout"] = torch.randn(width, generator=generator, requires_grad=True)
    near, who = (torch.randint(n, (40, 6), generator=generator, dtype=torch.int32) for n in (3, 4))
    if form == "own":
        del leaves["far"]
    used: dict[str, Any] = {
        **leaves,
        "near": near,
        "graph": torch.arange(40) // 20,
        "multiply": form == "product",
    }
    fused = anchor_messages(**used, who=None if form == "own" else who)
    dense = dense_messages(**({"far": torch.empty(0, 0), "readout": torch.empty(0)} | used), who=who)
    torch.testing.assert_close(fused, dense, rtol=1e-4, atol=1e-5)
    slope = torch.randn(dense.shape, generator=generator)
    ours, theirs = (torch.autograd.grad(out, list(leaves.values()), slope) for out in (fused, dense))
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("reads", [False, True])
def test_padding_is_passed_over_with_the_same_gradients(reads: bool) -> None:
    arguments = message_arguments(far=True)
    arguments["weight"] = torch.tensor([[0.5, 0.0, 2.0], [1.0, 0.0, 0.0]], dtype=torch.float64)
    readout = torch.randn(5, dtype=torch.float64) if reads else torch.empty(0, dtype=torch.float64)
    leaves = [arguments[key] for key in ("table", "base", "far")]
    fused = anchor_messages(**arguments, multiply=True, readout=readout if reads else None)
    dense = dense_messages(**arguments, multiply=True, readout=readout)
    assert torch.allclose(fused, dense)
    slope = torch.randn_like(dense)
    ours, theirs = (torch.autograd.grad(out, leaves, slope) for out in (fused, dense))
    assert all(torch.allclose(a, b) for a, b in zip(ours, theirs, strict=True))


def test_blocks_on_many_threads_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    results = []
    for threads in (1, 3):
        monkeypatch.setattr("psgnn.kernels._compile.num_threads", lambda threads=threads: threads)
        monkeypatch.setattr("psgnn.kernels._compile.STEPS_WORTH_A_THREAD", 0)
        monkeypatch.setattr("psgnn.models._messages.BLOCK_WORK", 10)
        arguments = message_arguments(far=True, dtype=torch.float32)
        anchor_messages(**arguments).square().sum().backward()
        results.append([arguments[key].grad for key in ("table", "base", "weight", "far")])
    assert all(torch.equal(a, b) for a, b in zip(*results, strict=True))


# --- the layer against the paper's loops


def naive_layer(layer: AnchorLayer, h: torch.Tensor, view: TensorView, choice: AnchorSet) -> torch.Tensor:
    """Algorithm 1, part 2, node by node and anchor by anchor."""
    hops = view.oracle.hops(choice.nodes.numpy())
    rows = []
    for v in range(h.size(0)):
        g = int(view.graph[v])
        messages = []
        for k, anchor in enumerate(choice.nodes[g].tolist()):
            if anchor < 0:
                continue
            hop = int(hops[v, k])
            proximity = torch.tensor([0.0 if hop < 0 else 1 / (1 + hop)], dtype=h.dtype)
            distance = layer.f2(proximity)
            first = layer.distance_part(distance) + layer.node_part(h[v])
            if layer.anchor_part is not None and layer.multiply:
                first = distance * layer.anchor_part(h[anchor]) + layer.node_part(h[v])
            elif layer.anchor_part is not None:
                first = first + layer.anchor_part(h[anchor])
            message = torch.relu(first)
            if layer.out is not None:
                message = layer.out(message)
            messages.append(
                choice.weight[g, k] * (message if layer.scalar is None else layer.scalar(message))
            )
        stacked = torch.stack(messages)
        if layer.scalar is None:
            rows.append(stacked.mean(dim=0))
        else:
            rows.append(torch.nn.functional.pad(stacked[:, 0], (0, choice.nodes.size(1) - len(messages))))
    return torch.stack(rows)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"anchor": "add"},
        {"anchor": "multiply"},
        {"anchor": "multiply", "scalar_distance": True, "second_map": False},
    ],
)
def test_layer_equals_the_naive_loops(last: bool, options: dict[str, Any]) -> None:
    torch.manual_seed(1)
    view = three_views()
    choice = RulePicker("random", "log", seed=5)(view)
    choice = AnchorSet(choice.nodes, choice.weight * torch.rand_like(choice.weight))
    layer = AnchorLayer(6, 8, last=last, **options)
    h = torch.randn(view.union.num_nodes, 6)
    assert torch.allclose(layer(h, choice.measure(view)), naive_layer(layer, h, view, choice), atol=1e-5)


@pytest.mark.parametrize("copies", [None, 1, 2])
def test_sets_are_as_near_as_their_nearest_member(copies: int | None) -> None:
    view = three_views()
    picker = RandomSets(seed=2, copies=copies).eval()
    choice = picker(view)
    seen = choice.measure(view)
    sets = choice.per_graph(view)
    levels = [int(np.log2(n)) for n in view.union.sizes]
    assert [len(parts) for parts in sets] == [level * (copies or level) for level in levels]
    for g, parts in enumerate(sets):
        first, last = view.union.ptr[g], view.union.ptr[g + 1]
        for j, part in enumerate(parts):
            assert len(part) == max(int(view.union.sizes[g]) >> (1 + j // (copies or levels[g])), 1)
            shape = nx.convert_node_labels_to_integers(SHAPES[g])
            lengths = nx.multi_source_dijkstra_path_length(shape, {v - int(first) for v in part})
            expected = [lengths.get(v, -1) + 1 for v in range(last - first)]
            assert seen.near[first:last, j].tolist() == expected
    truncated = choice.measure(view, cutoff=2)
    assert int(truncated.near.max()) == 3
    assert torch.equal(torch.where(seen.near > 3, 0, seen.near), truncated.near)


# --- the paper's claim


def test_message_passing_cannot_tell_symmetric_nodes_apart_but_anchors_can() -> None:
    torch.manual_seed(0)
    view = view_of([data_of(nx.path_graph(7))])  # v and 6 - v are symmetric
    mirror = torch.arange(6, -1, -1)
    for conv in CONVOLUTIONS:
        if conv != "gen":
            h = ConvEncoder(1, 8, 3, conv=conv).eval()(view)
            assert torch.allclose(h, h[mirror], atol=1e-6), conv
    layer = AnchorLayer(1, 16, last=False)

    def pooled(*anchors: int) -> torch.Tensor:
        return layer(view.x, AnchorSet.plain(np.array([anchors])).measure(view))

    symmetric, asymmetric = pooled(1, 5), pooled(1, 4)
    assert torch.allclose(symmetric, symmetric[mirror], atol=1e-6)
    apart = (asymmetric - asymmetric[mirror]).abs().sum(dim=1)
    assert (apart[[0, 1, 2, 4, 5, 6]] > 1e-4).all()  # all but the middle, which is its own mirror image


def test_relabelling_the_nodes_relabels_the_embeddings() -> None:
    torch.manual_seed(0)
    graph = nx.barabasi_albert_graph(30, 2, seed=1)
    order = np.random.default_rng(0).permutation(30)
    moved = nx.empty_graph(30)
    moved.add_edges_from((order[u], order[v]) for u, v in graph.edges)
    encoder = AnchorEncoder(1, 16, 3, anchor="add", center=True).eval()
    anchors = np.array([[2, 5, 11]])
    here = encoder(view_of([data_of(graph)]), AnchorSet.plain(anchors))
    there = encoder(view_of([data_of(moved)]), AnchorSet.plain(order[anchors]))
    assert torch.allclose(here, there[order], atol=1e-5)


@pytest.mark.parametrize(
    "options", [{}, {"anchor": "add", "center": True}, {"anchor": "multiply", "normalize": True}]
)
def test_a_batch_of_graphs_equals_the_graphs_one_by_one(options: dict[str, Any]) -> None:
    torch.manual_seed(0)
    view = three_views()
    choice = RulePicker("farthest-first", "log")(view)
    encoder = AnchorEncoder(1, 16, 2, **options).eval()
    together = encoder(view, choice)
    for g, shape in enumerate(SHAPES):
        alone = view_of([data_of(shape)])
        own = [[v - int(view.union.ptr[g]) for v in choice.nodes[g].tolist() if v >= 0]]
        embedded = encoder(alone, AnchorSet.plain(np.array(own)))
        part = together[view.union.ptr[g] : view.union.ptr[g + 1]]
        assert torch.allclose(part[:, : len(own[0])], embedded, atol=1e-5)
        assert (part[:, len(own[0]) :] == 0).all()


# --- k-subsets


def test_marginals_match_brute_force_over_all_subsets() -> None:
    torch.manual_seed(0)
    logits = torch.randn(3, 7, dtype=torch.float64, requires_grad=True)
    sizes, k = torch.tensor([7, 5, 3]), torch.tensor([3, 2, 3])
    subset = KSubset(logits, sizes, k)
    marginals = subset.marginals()
    for g in range(3):
        members = list(combinations(range(int(sizes[g])), int(k[g])))
        weights = torch.stack([logits[g, list(chosen)].sum() for chosen in members]).softmax(0)
        expected = torch.zeros(7, dtype=torch.float64)
        for chosen, weight in zip(members, weights, strict=True):
            expected[list(chosen)] += weight
            mask = torch.zeros(3, 7, dtype=torch.bool)
            mask[g, list(chosen)] = True
            assert torch.allclose(subset.log_prob(mask)[g].exp(), weight)
        assert torch.allclose(marginals[g], expected)
    assert torch.autograd.gradcheck(lambda t: KSubset(t, sizes, k).marginals(), [logits])


def test_samples_have_k_members_and_the_right_frequencies() -> None:
    torch.manual_seed(0)
    logits = torch.randn(2, 6, requires_grad=True)
    subset = KSubset(logits, torch.tensor([6, 4]), torch.tensor([3, 1]))
    generator = torch.Generator().manual_seed(0)
    draws = torch.stack([subset.sample(generator) for _ in range(3000)])
    assert (draws.sum(dim=2) == torch.tensor([3, 1])).all()
    assert torch.allclose(draws.float().mean(dim=0), subset.marginals(), atol=0.04)


# --- pickers


def test_equal_scores_are_spread_and_deterministic() -> None:
    view = view_of([data_of(nx.grid_2d_graph(10, 10)), data_of(nx.path_graph(5))])
    scores = np.ones(105)
    nodes = spread_top_k(view, scores, np.array([6, 2]), seed=1)
    assert np.array_equal(nodes, spread_top_k(view, scores, np.array([6, 2]), seed=1))
    assert (nodes[1, 2:] == -1).all()
    hops = view.oracle.hops(nodes)
    apart = hops[nodes[0]][:, :6].astype(float)
    np.fill_diagonal(apart, np.inf)
    assert apart.min() >= 5  # the first six in order of number would be neighbours


def test_the_best_scores_win_before_any_spreading() -> None:
    view = view_of([data_of(nx.grid_2d_graph(5, 5))])
    nodes = spread_top_k(view, np.arange(25.0), np.array([3]))
    assert nodes.tolist() == [[24, 23, 22]]


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_gradients_reach_the_scorer(estimator: str) -> None:
    torch.manual_seed(0)
    view = three_views()
    picker = ScorePicker(1, "log", estimator=estimator, structural=True, unit_scores=True)
    encoder = AnchorEncoder(1, 8, 2)
    choice = picker(view, torch.Generator().manual_seed(0), 1.0)
    h = encoder(view, choice)
    loss = h.square().mean()
    if choice.log_prob is not None:
        loss = loss.detach() * choice.log_prob.mean()
    loss.backward()
    grads = [parameter.grad for parameter in picker.affine.parameters()]
    assert max(float(grad.abs().max()) for grad in grads if grad is not None) > 0
    assert all(len(set(row)) == len(row) for row in choice.per_graph(view))


@pytest.mark.parametrize("conv", CONVOLUTIONS)
def test_every_convolution_can_score(conv: str) -> None:
    view = three_views()
    picker = ScorePicker(1, "log", conv=conv, structural=True).eval()
    scores = picker.scores(view)
    norms = torch.zeros(3).index_add(0, view.graph, scores.detach() ** 2)
    assert torch.allclose(norms, torch.ones(3), atol=1e-4)


@pytest.mark.parametrize("k", ["log", "log^2", 3])
@pytest.mark.parametrize("name", [name for name in PICKERS if name not in ("none", "named")])
def test_every_picker_takes_k_per_graph_and_is_fixed_in_evaluation(name: str, k: int | str) -> None:
    from psgnn.anchors import anchor_count
    from psgnn.models._models import model_of

    view = three_views()
    options: dict[str, Any] = {"picker": name, "encoder": "layers", "decoder": "dot"}
    if name != "random-sets":  # of which there are log^2 N whatever is asked
        options["anchors"] = k
    model = model_of(make_config("psgnn", "pair", 1, "best", 0, **options)).eval()
    picks = [model.pick(view) for _ in range(2)]
    assert picks[0] is not None
    assert picks[1] is not None
    assert picks[0].per_graph(view) == picks[1].per_graph(view)
    if name != "random-sets":
        sizes = view.union.sizes.tolist()
        expected = [min(k, n) if isinstance(k, int) else anchor_count(n, k) for n in sizes]
        assert [len(row) for row in picks[0].per_graph(view)] == expected
    model.train()
    exploring = {
        str(model.pick(view, torch.Generator().manual_seed(s), 1.0).per_graph(view)) for s in range(5)
    }  # type: ignore[union-attr]
    # Rules are as they are; what is learned before training does not change during it.
    explores = name in ("score", "sequential", "random-sets", "random")
    assert (len(exploring) > 1) == explores


def test_a_sequential_picker_never_takes_a_node_twice() -> None:
    view = view_of([data_of(nx.cycle_graph(6))])
    picker = SequentialPicker(6)
    for training in (True, False):
        picker.train(training)
        assert sorted(picker(view, torch.Generator().manual_seed(0)).nodes[0].tolist()) == list(range(6))


# --- building


@pytest.mark.parametrize(("name", "preset"), NAMED_MODELS)
def test_every_model_is_built_alike_from_one_seed(name: str, preset: str) -> None:
    task = LinkPrediction(data_of(nx.connected_caveman_graph(4, 6)))
    state = torch.random.get_rng_state()
    weights = [build_model(name, task, preset, seed=seed).state_dict() for seed in (1, 1, 2)]
    assert torch.equal(state, torch.random.get_rng_state())
    assert all(torch.equal(weights[0][key], weights[1][key]) for key in weights[0])
    assert any(not torch.equal(weights[0][key], weights[2][key]) for key in weights[0])


def test_the_paper_preset_has_the_papers_hyperparameters() -> None:
    task = LinkPrediction(data_of(nx.connected_caveman_graph(4, 6)))
    config = build_model("psgnn", task, "paper").config
    assert (config.lr, config.dropout, config.hidden, config.layers) == (0.001, 0.3, 128, 4)
    assert (config.noise, config.anchors, config.epochs, config.scorer) == (0.5, "log", 2000, "gen")
    departures = (
        config.hide_positives,
        config.fresh_negatives,
        config.center,
        config.structural,
        config.anneal,
    )
    assert not any(departures)
    gat = build_model("gat", task, "paper").config
    assert (gat.lr, gat.heads, gat.layers, gat.batch_norm) == (0.004, 2, 4, True)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("psgn", {}, "unknown model 'psgn'; did you mean 'psgnn'"),
        ("psgnn", {"preset": "bst"}, "unknown preset 'bst'; did you mean 'best'"),
        ("psgnn", {"estimater": "gate"}, "unknown option 'estimater'; did you mean 'estimator'"),
        ("psgnn", {"estimator": "gat"}, "unknown estimator 'gat'; did you mean 'gate'"),
        ("psgnn", {"hidden": "big"}, "option hidden='big' cannot be used"),
        ("psgnn", {"dropout": 1.5}, "option dropout=1.5 cannot be used"),
        ("psgnn", {"anchors": "many"}, r"anchors must be log, log\^2 or an integer"),
    ],
)
def test_settings_that_cannot_be_used_are_named(name: str, options: dict[str, Any], message: str) -> None:
    task = LinkPrediction(data_of(nx.connected_caveman_graph(4, 6)))
    with pytest.raises(InputError, match=message):
        build_model(name, task, **options)


@pytest.mark.parametrize(
    "option", [key for key, field in ModelConfig.model_fields.items() if field.annotation is float]
)
@pytest.mark.parametrize("value", ["inf", "-inf", "nan"])
def test_every_number_has_to_be_finite(option: str, value: str) -> None:
    with pytest.raises(InputError, match=f"^option {option}={value} cannot be used: .*$"):
        make_config("psgnn", "link", 1, **{option: float(value)})


def test_encoders_run_elsewhere_than_on_the_cpu() -> None:
    """The meta device has shapes and no values: what stays on the CPU by mistake raises."""
    layer = AnchorLayer(3, 8, last=True, anchor="add").to("meta")
    view = three_views()
    seen = RulePicker("degree", "log")(view).measure(view)
    moved = type(seen)(
        *(getattr(seen, name).to("meta") for name in ("proximity", "near", "who", "weight", "graph"))
    )
    out = layer(torch.empty(view.union.num_nodes, 3, device="meta"), moved)
    assert out.device.type == "meta"
    assert out.shape == seen.near.shape
