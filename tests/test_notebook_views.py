"""What a notebook shows of results and anchors, and the figures of a run."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

import psgnn
from conftest import data_of
from psgnn.anchors._diagnostics import describe_anchors
from psgnn.console import html_table, shortened
from psgnn.errors import InputError
from psgnn.report import plot
from psgnn.tasks import Task
from psgnn.training import Run

HOSTILE = '<script>alert("x")</script>&amp;<img src=x onerror=alert(1)>'
ALLOWED = {"table", "caption", "thead", "tbody", "tr", "th", "td", "p"}


class Page(HTMLParser):
    """The tags of a page and the text between them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.text: list[str] = []
        self.feed(html)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert [name for name, _ in attrs] in ([], ["style"])
        self.tags.append(tag)
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


@pytest.fixture(scope="module")
def trained() -> tuple[Task, Run]:
    edges = np.array(nx.connected_caveman_graph(8, 6).edges).T
    graph = psgnn.Graph.from_edges(edges, names=[f"{HOSTILE}{v}" for v in range(48)])
    task = psgnn.LinkPrediction(graph, seed=0)
    return task, psgnn.fit(psgnn.build_model("psgnn", task), task, epochs=20)


def test_a_result_shows_its_metrics_and_anchors(trained: tuple[Task, Run]) -> None:
    _, result = trained
    page = Page(result._repr_html_())
    assert set(page.tags) <= ALLOWED
    assert "psgnn (best), link task, seed 0" in page.text
    for part in (result.val, result.test):
        assert f"{part['auc']:.4f}" in page.text
    told = "".join(page.text)
    assert result.anchors is not None
    for v in result.anchors[0][:5]:
        assert f"{HOSTILE}{v}" in told
    assert "48 nodes" in told


@pytest.mark.parametrize(("model", "told"), [("pgnn", "sets of nodes"), ("gcn", None)])
def test_models_with_sets_or_without_anchors_are_shown_too(model: str, told: str | None) -> None:
    graphs = [data_of(nx.connected_caveman_graph(6, 6)) for _ in range(2)]
    task = psgnn.LinkPrediction(graphs, seed=0)
    result = psgnn.fit(psgnn.build_model(model, task), task, epochs=10)
    html = result._repr_html_()
    assert "2 graphs, 72 nodes" in html
    assert (told in html) if told else ("anchors:" not in html)


def test_a_result_on_other_graphs_has_no_metrics(trained: tuple[Task, Run]) -> None:
    _, result = trained
    measured = result.test["auc"]
    elsewhere = result.on([data_of(nx.connected_caveman_graph(5, 7))])
    assert (elsewhere.val, elsewhere.test, elsewhere.embedding_test, elsewhere.history) == ({}, {}, None, [])
    # No number of the training graphs is left in the record either, and what describes the model stays.
    assert not {"val", "test", "embedding_test", "history", "anchors", "task"} & elsewhere.record.keys()
    assert elsewhere.record["config"] == result.record["config"]
    with pytest.raises(InputError, match="no auc: the model was not tested on these graphs"):
        elsewhere.test["auc"]
    with pytest.raises(InputError, match="no history"):
        plot.plot_history(elsewhere)
    page = Page(elsewhere._repr_html_())
    assert "not tested on these graphs" in page.text
    assert f"{measured:.4f}" not in page.text
    assert (result.test["auc"], result.record["test"]["auc"]) == (measured, measured)


def test_pretrained_weights_have_no_metrics() -> None:
    edges = np.array(nx.connected_caveman_graph(5, 7).edges).T
    graph = psgnn.Graph.from_edges(edges, names=[f"{HOSTILE}{v}" for v in range(35)])
    scorer = psgnn.pretrained().on([graph])
    page = Page(scorer._repr_html_())
    assert set(page.tags) <= ALLOWED
    assert "best-link (ready-made weights), link task" in page.text
    assert "not tested on these graphs" in page.text
    assert f"anchors: {HOSTILE}{scorer.anchors[0][0]}" in "".join(page.text)
    assert not hasattr(scorer, "test")
    assert not hasattr(scorer, "val")


def test_a_graph_shows_how_large_it_is_and_of_which_kind() -> None:
    graph = psgnn.Graph.from_edges([[0, 1], [1, 2]], 4, names=[f"{HOSTILE}{v}" for v in range(4)])
    page = Page(graph._repr_html_())
    shown = dict(zip(page.text[3::2], page.text[4::2], strict=False))
    assert set(page.tags) <= ALLOWED
    assert (shown["nodes"], shown["edges"], shown["kind"]) == ("4", "2", "undirected")
    assert (shown["nodes without a link"], shown["connected components"]) == ("1", "2")
    assert f"{HOSTILE}0" in "".join(page.text)
    assert Page(psgnn.Graph.from_edges(np.zeros((2, 0), np.int64), 0)._repr_html_()).tags


def test_a_loaded_result_is_shown_as_the_trained_one(tmp_path: Path) -> None:
    task = psgnn.LinkPrediction(data_of(nx.connected_caveman_graph(6, 6)), seed=1)
    result = psgnn.fit(psgnn.build_model("psgnn", task), task, epochs=10, seed=1, out=tmp_path / "run")
    assert psgnn.load(tmp_path / "run")._repr_html_() == result._repr_html_()


def test_diagnostics_stay_a_dict_and_show_a_table() -> None:
    data = data_of(nx.path_graph(5))
    found = psgnn.anchor_diagnostics(data, [0, 4], hops=1)
    assert isinstance(found, dict)
    assert found == {"coverage": 0.8, "overlap": 0.0, "resolving": 1.0, "symmetric_pairs": 1}
    assert json.loads(json.dumps(found)) == found
    assert repr(found).startswith("{'coverage': 0.8")
    page = Page(found._repr_html_())
    assert page.text == ["Anchor diagnostics", "measure", "value", "coverage", "0.800", "overlap", "0.000",
                         "resolving", "1.000", "symmetric_pairs", "1"]  # fmt: skip


def test_rules_side_by_side_show_a_table() -> None:
    chosen = describe_anchors([data_of(nx.path_graph(9))], ["degree", "random"], 2)
    page = Page(chosen._repr_html_())
    assert page.tags.count("tr") == 3
    assert {"rule", "degree", "random"} <= set(page.text)


def test_tables_escape_titles_columns_and_cells() -> None:
    page = Page(html_table(HOSTILE, [HOSTILE], [[HOSTILE], [3]]))
    assert page.text == [HOSTILE] * 3 + ["3"]


def test_long_lists_are_shortened() -> None:
    assert shortened(["a", "b"], 2) == "a, b"
    assert shortened(["a", "b", "c"], 2) == "a, b, ... (3 in all)"


# --- figures


def test_history_has_the_loss_and_the_auc_of_every_validation(trained: tuple[Task, Run]) -> None:
    _, result = trained
    figure = plot.plot_history(result)
    assert isinstance(figure, Figure)
    loss, auc = (axes.lines[0].get_ydata() for axes in figure.axes)
    assert list(loss) == [entry["loss"] for entry in result.history]
    assert list(auc) == [entry["auc"] for entry in result.history]


def test_a_map_of_embeddings_keeps_the_main_plane() -> None:
    rng = np.random.default_rng(0)
    flat = rng.normal(size=(50, 2)) * (5, 2)
    turn = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    embedding = np.concatenate([flat, np.zeros((50, 4))], axis=1) @ turn
    points = plot.plot_embedding(torch.from_numpy(embedding)).axes[0].collections[0].get_offsets()
    apart = np.linalg.norm(flat[:, None] - flat[None], axis=2)
    assert np.allclose(np.linalg.norm(points[:, None] - points[None], axis=2), apart)


def test_classes_are_coloured_named_and_may_be_unknown() -> None:
    embedding = np.random.default_rng(0).normal(size=(30, 3))
    classes = np.arange(30) % 3 - 1
    figure = plot.plot_embedding(embedding, classes, names=["_a $x$", "b"])
    unknown, first, second = figure.axes[0].collections
    assert [len(part.get_offsets()) for part in (unknown, first, second)] == [10, 10, 10]
    (legend,) = figure.legends
    assert [text.get_text().strip() for text in legend.get_texts()] == [r"_a \$x\$", "b"]
    figure.canvas.draw()
    many = plot.plot_embedding(embedding, np.arange(30))
    assert len(many.axes) == 2  # a colour bar instead of thirty names


@pytest.mark.parametrize("shape", [(5, 1), (1, 4)])
def test_a_map_of_one_column_or_one_node(shape: tuple[int, int]) -> None:
    points = plot.plot_embedding(np.ones(shape)).axes[0].collections[0].get_offsets()
    assert points.shape == (shape[0], 2)
    assert np.isfinite(points).all()


def test_maps_refuse_what_does_not_fit() -> None:
    with pytest.raises(InputError, match=r"shape \[N, d\], found \[3\]"):
        plot.plot_embedding(np.ones(3))
    with pytest.raises(InputError, match="2 classes for 3 embeddings"):
        plot.plot_embedding(np.ones((3, 2)), [0, 1])


def test_score_histograms_count_every_pair(trained: tuple[Task, Run]) -> None:
    task, result = trained
    figure = plot.plot_scores(result, task.test)
    (axes,) = figure.axes
    counts = [sum(bar.get_height() for bar in bars) for bars in axes.containers]
    positives = int(task.test.labels.sum())
    assert counts == [task.test.labels.size - positives, positives]
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == [f"not linked ({counts[0]:.0f})", f"linked ({counts[1]:.0f})"]


def test_a_notebook_shows_a_figure_without_pyplot(trained: tuple[Task, Run]) -> None:
    data = data_of(nx.path_graph(6))
    for figure in (plot.plot_history(trained[1]), plot.plot_anchors(data, {"ends": [0, 5]})):
        assert figure._repr_png_().startswith(b"\x89PNG")
