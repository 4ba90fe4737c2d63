from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import ParameterGrid
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from torch_geometric.data import Data

import psgnn
from conftest import data_of, random_graphs
from psgnn import PositionEmbedding
from psgnn.anchors import RULES
from psgnn.errors import InputError


def caves() -> nx.Graph:
    return nx.connected_caveman_graph(6, 8)


def shuffled(graph: nx.Graph, seed: int = 0) -> tuple[nx.Graph, list[Any]]:
    """The same graph, its nodes and edges in another order; and that order."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(list(graph.nodes)).tolist()
    other = nx.Graph()
    other.add_nodes_from(order)
    other.add_edges_from(rng.permutation(list(graph.edges)).tolist())
    return other, order


# --- what a position is


def test_columns_are_the_distances_to_the_anchors() -> None:
    graph = nx.path_graph(6)
    embedding = PositionEmbedding(n_anchors=2, method="farthest-first", parts=("hops",)).fit(graph)
    columns = dict(zip(embedding.get_feature_names_out(), embedding.transform(graph).T, strict=True))
    assert len(columns) == 4
    for anchor in embedding.anchor_names_:
        hops = np.array([abs(v - int(anchor)) for v in range(6)])
        for channel, expected in (("hops", hops), ("proximity", 1 / (1 + hops))):
            # Up to one affine map a channel, the same for both anchors.
            assert np.corrcoef(columns[f"{channel}_{anchor}"], expected)[0, 1] > 1 - 1e-6
    scale = embedding.scales_ * 2  # 2 channels, 2 anchors
    first = int(embedding.anchor_names_[0])
    assert np.allclose(columns[f"hops_{first}"][first] * scale[1] + embedding.means_[1], 0, atol=1e-5)


def test_every_part_weighs_the_same() -> None:
    x = PositionEmbedding(n_anchors=5, parts=("hops", "pagerank", "diffusion", "spectral")).fit_transform(
        caves()
    )
    assert x.shape == (48, 6 * 5 + 5)
    weights = [(x[:, part * 10 : part * 10 + 10] ** 2).sum(axis=1).mean() for part in range(4)]
    assert np.allclose(weights, 1, atol=0.01)


@pytest.mark.parametrize("method", RULES)
def test_every_rule_gives_finite_positions_the_same_each_time(method: str) -> None:
    first = PositionEmbedding(n_anchors=4, method=method, random_state=3).fit_transform(caves())
    again = PositionEmbedding(n_anchors=4, method=method, random_state=3).fit_transform(caves())
    assert np.isfinite(first).all()
    assert np.array_equal(first, again)
    assert first.dtype == np.float32


def test_anchors_are_those_of_select_anchors() -> None:
    data = data_of(caves())
    embedding = PositionEmbedding(random_state=7).fit(data)
    assert embedding.anchors_.tolist() == psgnn.select_anchors(data, "mixed", "log^2", 7).tolist()
    others = {tuple(PositionEmbedding(n_anchors=4, random_state=s).fit(data).anchors_) for s in range(5)}
    assert len(others) > 1


def test_random_state_of_numpy_and_none_draw_anew() -> None:
    state = np.random.RandomState(0)
    drawn = [
        tuple(PositionEmbedding(n_anchors=4, method="random", random_state=state).fit(caves()).anchors_)
        for _ in range(4)
    ]
    assert len(set(drawn)) > 1
    PositionEmbedding(n_anchors=4, random_state=None).fit(caves())


def test_linked_nodes_are_nearer_than_others() -> None:
    (data,) = psgnn.load_dataset("communities", communities=12, size=8)
    task = psgnn.LinkPrediction(data, seed=0)
    x = PositionEmbedding().fit_transform(task.graphs[0])
    u, v = task.test.pairs
    distance = np.linalg.norm(x[u] - x[v], axis=1)
    linked = task.test.labels == 1
    assert np.median(distance[linked]) < 0.5 * np.median(distance[~linked])


# --- kinds of graphs


def test_all_kinds_of_graphs_give_the_same_positions(tmp_path: Path) -> None:
    graph = nx.convert_node_labels_to_integers(caves())
    edge_index = torch.tensor(list(graph.edges)).T
    path = tmp_path / "edges.csv"
    path.write_text("".join(f"{u},{v}\n" for u, v in graph.edges))
    expected = PositionEmbedding().fit_transform(graph)
    kinds: list[Any] = [
        scipy.sparse.csr_array(nx.to_scipy_sparse_array(graph)),
        scipy.sparse.coo_matrix(nx.to_scipy_sparse_array(graph)),
        psgnn.Graph.from_edges(edge_index, 48),
        Data(edge_index=edge_index, num_nodes=48),
        edge_index,
        edge_index.int(),
        edge_index.numpy(),
        path,
        str(path),
    ]
    for kind in kinds:
        assert np.array_equal(PositionEmbedding().fit_transform(kind), expected), type(kind)


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (np.eye(4), r"an array is taken for edges, integers \[2, E\]"),
        (np.ones((3, 4), int), r"found int64 of shape \[3, 4\]; pass a matrix as scipy"),
        (np.zeros((2, 0), int), "no edges between different nodes"),
        (torch.zeros(2, 0, dtype=torch.long), "no edges between different nodes"),
        (nx.empty_graph(5), "no edges between different nodes"),
        ([(0, 1)], "cannot read a graph from list"),
    ],
)
def test_what_is_no_graph_is_refused(graph: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        PositionEmbedding().fit(graph)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_anchors": 49}, "49 anchors were asked of a graph of 48 nodes"),
        ({"n_anchors": "many"}, r"must be log, log\^2 or an integer"),
        ({"method": "degre"}, "did you mean 'degree'"),
        ({"parts": ("hop",)}, "did you mean 'hops'"),
        ({"parts": "hops"}, "parts must name one or more"),
        ({"parts": ()}, "parts must name one or more"),
    ],
)
def test_wrong_options_are_refused_when_fitting(options: dict[str, Any], message: str) -> None:
    embedding = PositionEmbedding(**options)  # scikit-learn: a constructor only keeps what it is given
    with pytest.raises(InputError, match=message):
        embedding.fit(caves())


@given(random_graphs(min_nodes=2, max_nodes=25))
def test_disconnected_graphs_and_lonely_nodes_have_finite_positions(graph: nx.Graph) -> None:
    if graph.number_of_edges() == 0:
        return
    x = PositionEmbedding(n_anchors="log", parts=("hops", "pagerank", "diffusion", "spectral")).fit_transform(
        graph
    )
    assert np.isfinite(x).all()
    assert len(x) == graph.number_of_nodes()


def test_components_are_told_apart() -> None:
    graph = nx.disjoint_union(nx.complete_graph(10), nx.complete_graph(10))
    found = make_pipeline(PositionEmbedding(), KMeans(2, n_init=3, random_state=0)).fit_predict(graph)
    assert adjusted_rand_score([0] * 10 + [1] * 10, found) == 1


# --- the same anchors elsewhere


def test_transform_of_the_fitted_graph_is_fit_transform() -> None:
    embedding = PositionEmbedding()
    first = embedding.fit_transform(caves())
    assert np.array_equal(embedding.transform(caves()), first)
    assert np.array_equal(PositionEmbedding().fit(caves()).transform(caves()), first)


@given(st.integers(0, 1000))
def test_the_order_of_the_nodes_does_not_matter(seed: int) -> None:
    graph = nx.gnp_random_graph(40, 0.12, seed=seed)
    embedding = PositionEmbedding(
        n_anchors=12, parts=("hops", "pagerank", "diffusion", "spectral"), random_state=seed
    ).fit(graph)
    other, order = shuffled(graph, seed)
    assert np.allclose(embedding.transform(other), embedding.transform(graph)[order], atol=2e-3)


@pytest.mark.parametrize(
    "graph",
    [caves(), nx.cycle_graph(40), nx.grid_2d_graph(6, 6), nx.disjoint_union(caves(), nx.star_graph(5))],
)
def test_the_order_does_not_matter_where_eigenvectors_can_be_turned(graph: nx.Graph) -> None:
    """Equal eigenvalues leave a rotation open, which rounding decides."""
    graph = nx.convert_node_labels_to_integers(graph)
    embedding = PositionEmbedding(parts=("spectral",)).fit(graph)
    for seed in range(3):
        other, order = shuffled(graph, seed)
        assert np.allclose(embedding.transform(other), embedding.transform(graph)[order], atol=5e-3)


def test_a_graph_that_has_grown_is_seen_from_the_same_anchors() -> None:
    graph = nx.relabel_nodes(caves(), lambda v: f"n{v}")
    embedding = PositionEmbedding(n_anchors=8).fit(graph)
    before = embedding.transform(graph)
    grown = graph.copy()
    grown.add_edge("new", "n0")
    grown.add_edge("new", "n1")
    after = embedding.transform(grown)
    assert after.shape == (49, before.shape[1])
    moved = np.linalg.norm(after[:48] - before, axis=1)
    assert moved.max() < 0.5 * np.linalg.norm(before[:, None] - before[None], axis=2).max()
    nearest = np.linalg.norm(after[:48] - after[48], axis=1).argsort()[:8]
    assert set(nearest) <= set(range(8))  # the clique that it was linked to


def test_anchors_that_are_missing_are_named() -> None:
    graph = nx.relabel_nodes(caves(), lambda v: f"n{v}")
    embedding = PositionEmbedding(n_anchors=3, method="degree").fit(graph)
    gone = graph.copy()
    gone.remove_node(embedding.anchor_names_[1])
    with pytest.raises(
        InputError, match=rf"no node '{embedding.anchor_names_[1]}'.*1 of 3 anchors are missing"
    ):
        embedding.transform(gone)


# --- scikit-learn's conventions


def test_parameters_can_be_read_set_and_cloned() -> None:
    embedding = PositionEmbedding(n_anchors=5, method="degree", parts=("hops",), random_state=2)
    assert embedding.get_params() == {
        "n_anchors": 5, "method": "degree", "parts": ("hops",), "random_state": 2,
    }  # fmt: skip
    embedding.fit(caves())
    copy = clone(embedding)
    assert copy.get_params() == embedding.get_params()
    assert not hasattr(copy, "anchors_")
    assert copy.set_params(n_anchors=3) is copy
    assert copy.fit_transform(caves()).shape == (48, 6)
    with pytest.raises(ValueError, match="Invalid parameter 'anchors'"):
        copy.set_params(anchors=3)
    assert "n_anchors=5" in repr(embedding)


def test_nothing_is_known_before_fit() -> None:
    for call in (lambda e: e.transform(caves()), lambda e: e.get_feature_names_out()):
        with pytest.raises(NotFittedError):
            call(PositionEmbedding())


def test_fit_returns_itself_and_leaves_the_parameters_alone() -> None:
    embedding = PositionEmbedding()
    before = embedding.get_params()
    assert embedding.fit(caves(), y=[0] * 48) is embedding
    assert embedding.get_params() == before


def test_columns_have_names_of_their_own() -> None:
    embedding = PositionEmbedding(n_anchors=4).fit(caves())
    names = embedding.get_feature_names_out()
    assert len(set(names)) == embedding.transform(caves()).shape[1] == names.size
    assert names[0] == f"proximity_{embedding.anchor_names_[0]}"
    assert names[-1] == "spectral_3"


def test_output_as_a_polars_frame() -> None:
    frame = PositionEmbedding(n_anchors=3).set_output(transform="polars").fit_transform(caves())
    assert frame.shape == (48, 15)
    assert frame.columns[-1] == "spectral_2"


def test_pipelines_that_classify_and_cluster() -> None:
    graph = caves()
    y = np.repeat(np.arange(6), 8)
    classify = Pipeline([("where", PositionEmbedding()), ("who", LogisticRegression(C=10))])
    assert classify.fit(graph, y).score(graph, y) == 1
    classify.set_params(where__n_anchors="log")
    assert classify.fit(graph, y).named_steps["where"].anchors_.size == 5
    cluster = make_pipeline(PositionEmbedding(), PCA(5), KMeans(6, n_init=5, random_state=0))
    assert adjusted_rand_score(y, cluster.fit_predict(graph)) == 1
    both = FeatureUnion([(rule, PositionEmbedding(3, rule)) for rule in ("degree", "random")])
    assert both.fit_transform(graph).shape == (48, 30)
    assert both.get_feature_names_out()[0].startswith("degree__proximity_")


def test_settings_can_be_searched() -> None:
    graph, y = caves(), np.repeat(np.arange(6), 8)
    scores = {}
    for options in ParameterGrid({"n_anchors": [1, "log^2"], "method": ["random"], "parts": [("hops",)]}):
        x = clone(PositionEmbedding()).set_params(**options).fit_transform(graph)
        scores[options["n_anchors"]] = LogisticRegression(C=10).fit(x, y).score(x, y)
    assert scores["log^2"] > scores[1]
