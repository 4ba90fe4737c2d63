"""Figures: what they show is what records and graphs say, and their files are the same each time."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, get_args

import networkx as nx
import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from PIL import Image

from conftest import data_of
from psgnn.anchors._diagnostics import message_classes
from psgnn.datasets import load_dataset
from psgnn.errors import InputError
from psgnn.graph._graph import Adjacency
from psgnn.models import build_model
from psgnn.report.plot import ANCHOR_COLOUR, ORANGE, SKY, plot_anchors, plot_curves
from psgnn.training import fit
from psgnn.training._compare import make_task
from psgnn_lab import commands, figure_specs, figures
from psgnn_lab.drawing import caveman_layout, lattice_layout, plot_coverage
from psgnn_lab.manifest import Manifest, load_manifest, manifest_names
from psgnn_lab.plan import Run, plan
from psgnn_lab.records import find_record, record_path, write_record
from psgnn_lab.runner import execute
from psgnn_lab.tables import document, markdown, write_page

ROOT = Path(__file__).resolve().parent.parent
EXPERIMENTS = ROOT / "lab" / "experiments"

METHODS = """
title = "Figures of a test"
page = "page.md"
first_seed = 100

[methods.trace-paper]
kind = "model"
of = "psgnn"
preset = "paper"
title = "PSGNN"
seeds = 2
trace = true
options = {epochs = 40, eval_every = 10, hidden = 8, layers = 1}

[methods.trace-pgnn]
kind = "model"
of = "pgnn"
title = "P-GNN"
seeds = 1
trace = true
options = {epochs = 20, eval_every = 10, hidden = 8, layers = 1}

[methods.pagerank]
kind = "rule"
seeds = 3

[[rows]]
name = "caves"
title = "Caves"
dataset = "communities"
dataset_options = {communities = 4, size = 5}
task = "pair"

[[rows]]
name = "caves-link"
title = "Caves, link"
dataset = "communities"
dataset_options = {communities = 4, size = 5}
task = "link"

[[rows]]
name = "more-caves"
title = "More caves"
dataset = "communities"
dataset_options = {communities = 6, size = 5}
task = "pair"

[[sections]]
name = "table"
title = "Table"
layout = "matrix"
rows = ["caves", "more-caves"]
methods = ["pagerank"]
published = {pagerank = [0.7, 0.8]}
"""

# One for every kind.
EXAMPLES = {
    "anchors": """
row = "caves"
methods = ["trace-pgnn", "trace-paper"]
""",
    "symmetry": """
edges = [[0, 1], [1, 2], [2, 3], [3, 4]]
places = [[-2, 0], [-1, 0.5], [0, 0], [1, 0.5], [2, 0]]
nodes = [0, 4]
panels = [{title = "without"}, {title = "on the axis", anchors = [2]}, {title = "beside it", anchors = [1]}]
""",
    "coverage": """
dataset = "grid"
dataset_options = {rows = 6, cols = 7}
anchors = 3
hops = 2
panels = [{title = "central", rule = "closeness"}, {title = "spread", rule = "farthest-first"}]
""",
    "size": """
of = "figure"
methods = ["pagerank"]
panels = [{title = "Pairs", rows = ["caves", "more-caves"]}]
""",
    "results": """
rows = ["caves-link", "caves"]
series = [{title = "paper", method = "trace-paper"}, {title = "rule", method = "pagerank"}]
""",
    "curves": """
rows = ["caves", "caves-link"]
methods = ["trace-paper", "trace-pgnn"]
""",
    "movement": """
row = "caves-link"
methods = ["trace-paper"]
moments = 3
""",
}


def text_of(kind: str) -> str:
    return f'{METHODS}\n[[figures]]\nname = "it"\nkind = "{kind}"\ntitle = "A title"\ntext = "A text."{EXAMPLES[kind]}'


def manifest_of(folder: Path, kind: str, text: str | None = None) -> Manifest:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "figure.toml").write_text(text_of(kind) if text is None else text)
    return load_manifest("figure", folder)


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all runs that the examples need."""
    folder = tmp_path_factory.mktemp("recorded")
    for kind in EXAMPLES:
        manifest = manifest_of(folder, kind)
        for run in plan(manifest):
            if find_record(manifest.records, run) is None:
                write_record(manifest.records, run, execute(run))
    return folder


@pytest.fixture
def copied(recorded: Path, tmp_path: Path) -> Path:
    """The same, to be changed."""
    for path in (recorded / "records").rglob("*.json"):
        target = tmp_path / path.relative_to(recorded)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    return tmp_path


def drawn(folder: Path, kind: str) -> Figure:
    manifest = manifest_of(folder, kind)
    return figures.KINDS[kind](manifest.figures[0], manifest)


def records_of(manifest: Manifest, row: str, method: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(record_path(manifest.records, row, method).read_text())
    return found


def stars(axes: Any) -> np.ndarray:
    """Where the anchors are drawn."""
    found = [part for part in axes.collections if to_hex(part.get_facecolor()[0]) == ANCHOR_COLOUR]
    assert len(found) == 1
    return np.asarray(found[0].get_offsets())


def nodes_at(places: np.ndarray, positions: np.ndarray) -> set[int]:
    return {int(np.abs(places - position).sum(axis=1).argmin()) for position in positions}


def levels(axes: Any, places: np.ndarray) -> list[set[int]]:
    """The nodes of every colour, in the order of the hops."""
    dots = [line for line in axes.lines if line.get_marker() == "o"]
    return [nodes_at(places, np.stack(line.get_data(), axis=1)) for line in dots]


# --- kinds


def test_every_kind_is_drawn_and_tested() -> None:
    specs = get_args(get_args(figure_specs.FigureSpec)[0])
    kinds = {get_args(spec.model_fields["kind"].annotation)[0] for spec in specs}
    assert kinds == set(figures.KINDS) == set(EXAMPLES)
    for kind in kinds:
        assert f"test_{kind}_" in Path(__file__).read_text()


def test_anchors_are_those_of_the_records_in_the_colours_of_their_hops(recorded: Path) -> None:
    figure = drawn(recorded, "anchors")
    manifest = manifest_of(recorded, "anchors")
    sets = records_of(manifest, "caves", "trace-pgnn")[0]["anchors"][0]
    single = {members[0] for members in sets if len(members) == 1}
    assert len(sets) == 16
    assert single
    expected = [single, set(records_of(manifest, "caves", "trace-paper")[0]["anchors"][0])]
    graph, places = nx.connected_caveman_graph(4, 5), caveman_layout(4, 5)
    panels = figure.axes[:2]
    for axes, title, anchors in zip(panels, ("P-GNN", "PSGNN"), expected, strict=True):
        assert axes.get_title() == title
        assert nodes_at(places, stars(axes)) == anchors
        hops = nx.multi_source_dijkstra_path_length(graph, anchors)
        for level, shown in enumerate(levels(axes, places), start=1):
            assert shown == {v for v in graph if hops[v] == level}


def test_symmetry_is_broken_by_an_anchor_beside_the_axis(recorded: Path) -> None:
    figure = drawn(recorded, "symmetry")
    path = nx.path_graph(5)
    colours = []
    for axes, anchor in zip(figure.axes, (None, 2, 1), strict=True):
        colours.append([to_hex(colour) for colour in axes.collections[0].get_facecolors()])
        numbers = [text.get_text() for text in axes.texts[:5]]
        hops = nx.single_source_shortest_path_length(path, anchor) if anchor is not None else {}
        assert numbers == [str(hops.get(v, "")) for v in path]
    for mirrored in colours[:2]:
        assert mirrored[0] == mirrored[4] != mirrored[1] == mirrored[3] != "#ffffff"
        assert mirrored[2] == "#ffffff"
    assert colours[2] == ["#ffffff"] * 5
    kinds = [int(re.findall(r"(\d+) kinds", axes.get_title())[0]) for axes in figure.axes]
    assert kinds == [3, 3, 5]


def test_figures_are_of_the_data_that_runs_were_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def load(name: str, root: Path | None, **options: Any) -> Any:
        asked.append(root)
        return load_dataset(name, None, **options)

    monkeypatch.setattr("psgnn.datasets.load_dataset", load)
    manifest = manifest_of(tmp_path, "coverage")
    figures.write_figures(load_manifest(manifest.name, manifest.folder, tmp_path / "mine"))
    assert asked == [tmp_path / "mine"]


def test_coverage_counts_the_anchors_within_reach(recorded: Path) -> None:
    figure = drawn(recorded, "coverage")
    grid = nx.convert_node_labels_to_integers(nx.grid_2d_graph(6, 7))
    places = lattice_layout(6, 7)
    for axes in figure.axes:
        anchors = nodes_at(places, stars(axes))
        assert len(anchors) == 3
        reached = [set(nx.single_source_shortest_path_length(grid, v, cutoff=2)) for v in anchors]
        times = [sum(v in ball for ball in reached) for v in grid]
        nodes = max(axes.collections, key=lambda part: len(part.get_offsets()))
        expected = [("#ffffff", SKY, ORANGE, ORANGE)[count] for count in times]
        assert [to_hex(colour) for colour in nodes.get_facecolors()] == expected
        covered = sum(count > 0 for count in times)
        overlap = sum(count > 1 for count in times) / covered
        assert axes.get_title().endswith(f"coverage {covered / 42:.2f}, overlap {overlap:.2f}")


def test_size_has_means_spreads_and_published_values(copied: Path) -> None:
    manifest = manifest_of(copied, "size")
    [axes] = drawn(copied, "size").axes
    ours, published = axes.lines
    means, spreads = [], []
    for row in ("caves", "more-caves"):
        values = [record["test"]["auc"] for record in records_of(manifest, row, "pagerank")]
        assert len(values) == 3
        means.append(np.mean(values))
        spreads.append(np.std(values, ddof=1))
    assert ours.get_xdata() == pytest.approx([20, 30])
    assert ours.get_ydata() == pytest.approx(means)
    corners = axes.collections[0].get_paths()[0].vertices
    for nodes, mean, spread in zip((20, 30), means, spreads, strict=True):
        there = corners[corners[:, 0] == nodes, 1]
        assert [there.min(), there.max()] == pytest.approx([mean - spread, mean + spread])
    assert published.get_linestyle() == "--"
    assert np.stack(published.get_data(), axis=1).tolist() == [[20, 0.7], [30, 0.8]]
    # What is missing is left out, and the rest stays.
    record_path(manifest.records, "caves", "pagerank").unlink()
    ours, published = drawn(copied, "size").axes[0].lines
    assert ours.get_xdata() == pytest.approx([30])
    assert published.get_xdata() == pytest.approx([20, 30])


def test_results_have_a_mark_per_row_and_method(recorded: Path, copied: Path) -> None:
    manifest = manifest_of(recorded, "results")
    (axes,) = drawn(recorded, "results").axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["Caves", "Caves"]
    marks = {line.get_label(): np.asarray(line.get_xdata()) for line in axes.lines}
    for title, method in {"paper": "trace-paper", "rule": "pagerank"}.items():
        means = [
            np.mean([record["test"]["auc"] for record in records_of(manifest, row, method)])
            for row in ("caves-link", "caves")
        ]
        assert np.allclose(sorted(marks[title]), sorted(value for value in means if value >= 0.5))


def test_results_show_the_best_of_a_group() -> None:
    manifest = load_manifest("figure-results", EXPERIMENTS)
    figure = figures.KINDS["results"](manifest.figures[0], manifest)
    best = next(line for line in figure.axes[0].lines if line.get_label() == "best rule in hindsight")
    cells = figures.figure_cells(manifest, manifest.figures[0])["usair-link"]
    rules = [cell.mean for cell in cells.values() if cell.method.kind == "rule"]
    assert len(rules) > 5
    assert np.asarray(best.get_xdata())[0] == pytest.approx(max(rules))


def test_size_names_one_method_of_a_group(copied: Path) -> None:
    text = text_of("size").replace('[methods.pagerank]\nkind = "rule"', '[methods.rules]\nexpand = "rules"')
    manifest = manifest_of(
        copied, "size", text.replace('methods = ["pagerank"]\npub', 'methods = ["rules"]\npub')
    )
    assert list(figures.figure_cells(manifest, manifest.figures[0])["caves"]) == ["pagerank"]


def test_curves_are_the_histories(recorded: Path) -> None:
    manifest = manifest_of(recorded, "curves")
    panels = np.array(drawn(recorded, "curves").axes).reshape(2, 2)
    for column, row in enumerate(("caves", "caves-link")):
        runs = records_of(manifest, row, "trace-paper")
        assert len(runs) == 2
        for line, key in enumerate(("loss", "auc")):
            curves = [part for part in panels[line, column].lines if part.get_marker() == "None"]
            values = [[entry[key] for entry in run["history"]] for run in runs]
            for curve, expected in zip(curves, values, strict=False):
                assert curve.get_ydata() == pytest.approx(expected)
                assert curve.get_xdata() == pytest.approx([entry["epoch"] for entry in runs[0]["history"]])
            assert curves[2].get_ydata() == pytest.approx(np.mean(values, axis=0))
            kept = [part for part in panels[line, column].lines if part.get_marker() == "o"]
            assert [part.get_xdata()[0] for part in kept[:2]] == [run["best_epoch"] for run in runs]


def test_curves_of_runs_that_stop_early_have_a_mean_while_all_go_on() -> None:
    long, short = (
        [{"epoch": epoch, "loss": epoch / start, "auc": 0.5} for epoch in range(10, stop, 10)]
        for start, stop in ((1, 60), (2, 40))
    )
    loss = plot_curves({"row": {"model": [(long, 20), (short, 30)]}}).axes[0]
    mean = loss.lines[-1]
    assert mean.get_xdata() == pytest.approx([10, 20, 30])
    assert mean.get_ydata() == pytest.approx([7.5, 15, 22.5])


def test_movement_shows_the_first_the_last_and_moments_between(recorded: Path) -> None:
    manifest = manifest_of(recorded, "movement")
    history = records_of(manifest, "caves-link", "trace-paper")[0]["history"]
    panels = drawn(recorded, "movement").axes[:3]
    places, anchors = caveman_layout(4, 5), None
    at = {}
    for entry in history:
        anchors = at[entry["epoch"]] = entry.get("anchors", anchors)
    assert len(history) == 4
    for axes, epoch in zip(panels, (10, 30, 40), strict=True):
        assert axes.get_title().startswith(f"epoch {epoch}, AUC ")
        assert nodes_at(places, stars(axes)) == set(at[epoch])
    # Distances are those of the graph that the model has seen.
    task = make_task(load_dataset("communities", communities=4, size=5), "link", 100)
    seen = nx.Graph(task.graphs[0].edges.T.tolist())
    seen.add_nodes_from(range(20))
    hops = nx.multi_source_dijkstra_path_length(seen, set(at[40]))
    for level, shown in enumerate(levels(panels[2], places), start=1):
        assert {v for v in seen if hops.get(v) == level} <= shown


# --- graphs


def test_nodes_that_reach_no_anchor_are_farthest() -> None:
    graph = nx.disjoint_union(nx.path_graph(4), nx.path_graph(2))
    places = np.stack([np.arange(6), np.zeros(6)], axis=1).astype(float)
    figure = plot_anchors(data_of(graph), {"one": [0]}, places=places)
    assert levels(figure.axes[0], places) == [{1}, {2}, {3}, {4, 5}]


def test_an_anchor_may_cover_nothing_but_itself() -> None:
    figure = plot_coverage(data_of(nx.path_graph(3)), {"one": [1]}, 0)
    assert figure.axes[0].get_title() == "one\ncoverage 0.33, overlap 0.00"


def test_many_edges_are_drawn_once_each() -> None:
    graph = nx.gnm_random_graph(300, 2500, seed=1)
    places = np.random.default_rng(0).normal(size=(300, 2))
    axes = plot_anchors(data_of(graph), {"one": [0]}, places=places).axes[0]
    segments = []
    for line in axes.lines:
        if line.get_marker() == "None":
            points = np.stack(line.get_data(), axis=1).reshape(-1, 3, 2)
            assert np.isnan(points[:, 2]).all()
            segments += [
                tuple(sorted(int(np.abs(places - end).sum(axis=1).argmin()) for end in ends[:2]))
                for ends in points
            ]
    assert sorted(segments) == sorted(tuple(sorted(edge)) for edge in graph.edges)


@pytest.mark.parametrize(("communities", "size"), [(8, 8), (3, 5), (2, 2), (20, 20), (1, 6)])
def test_the_ring_of_communities_keeps_nodes_apart_and_neighbours_near(communities: int, size: int) -> None:
    places = caveman_layout(communities, size)
    assert np.abs(places).max() <= 1 + 1e-9
    apart = np.linalg.norm(places[:, None] - places, axis=2) + 2 * np.eye(len(places))
    assert apart.min() > 0.01
    community = np.arange(len(places)) // size
    for v in range(0, len(places), size) if communities > 2 else ():
        other = (v - 1) % len(places)  # the two ends of the edge between two communities
        between = apart[community == community[v]][:, community == community[other]]
        assert apart[v, other] < np.quantile(between, 0.25)


def test_the_lattice_has_edges_of_one_length() -> None:
    [graph] = load_dataset("grid", rows=4, cols=6)
    places = lattice_layout(4, 6)
    lengths = np.linalg.norm(places[graph.edges[0]] - places[graph.edges[1]], axis=1)
    assert np.ptp(lengths) == pytest.approx(0)
    assert places[0].tolist() == pytest.approx([-1, 0.6])  # the first node is on the upper left
    assert np.unique(places, axis=0).shape == (24, 2)


def test_classes_of_message_passing_are_those_of_colour_refinement() -> None:
    for seed in range(20):
        graph = nx.gnp_random_graph(12, 0.25, seed=seed)
        edges = np.array(graph.edges).reshape(-1, 2)
        found = message_classes(Adjacency.from_edges(edges[:, 0], edges[:, 1], 12))
        naive = dict.fromkeys(graph, 0)
        for _ in range(12):
            signatures = {v: (naive[v], sorted(naive[w] for w in graph[v])) for v in graph}
            names = {repr(s): i for i, s in enumerate(sorted(signatures.values()))}
            naive = {v: names[repr(signatures[v])] for v in graph}
        for v in graph:
            assert {w for w in graph if found[w] == found[v]} == {w for w in graph if naive[w] == naive[v]}


# --- traces


def test_a_traced_run_is_the_same_run_with_more_on_record(recorded: Path) -> None:
    manifest = manifest_of(recorded, "anchors")
    run = next(run for run in plan(manifest) if run.method.name == "trace-paper")
    plain = Run(run.row, run.method.model_copy(update={"trace": False}), run.seed)
    assert plain.id != run.id
    measured, traced = execute(plain), find_record(manifest.records, run)
    assert traced is not None
    assert {"history", "anchors"} == traced.keys() - measured.keys() - {"seed", "id"}
    assert measured["test"]["auc"] == pytest.approx(traced["test"]["auc"], abs=1e-6)
    assert [entry["epoch"] for entry in traced["history"]] == [10, 20, 30, 40]
    for entry in traced["history"]:
        assert entry["loss"] == round(entry["loss"], 5)
    at = {}
    anchors = None
    for entry in traced["history"]:
        assert entry.get("anchors") != anchors  # only those that are new
        anchors = at[entry["epoch"]] = entry.get("anchors", anchors)
    assert at[traced["best_epoch"]] == traced["anchors"][0]


@pytest.mark.parametrize(
    ("name", "preset"), [("psgnn", "paper"), ("pgnn", "best"), ("psgnn", "best"), ("gcn", "best")]
)
def test_history_has_the_anchors_that_training_can_change(
    name: str, preset: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("tensorboard", reason="the 'tensorboard' extra is not installed")
    task = make_task([*load_dataset("communities", communities=4, size=5)] * 2, "pair", 0)
    model = build_model(name, task, preset, eval_every=1, patience=9)
    result = fit(model, task, epochs=3, tensorboard=tmp_path)
    assert [entry["epoch"] for entry in result.history] == [1, 2, 3]
    listed = [entry.get("anchors") for entry in result.history]
    if name == "gcn" or model.fixed_anchors:
        assert listed == [None] * 3
    else:
        assert result.anchors is not None
        kept = listed[result.record["best_epoch"] - 1]
        if name == "pgnn":  # a set of the union has members in both graphs
            expected = [a + b for a, b in zip(*result.anchors, strict=True)]
            assert [sorted(members) for members in kept] == [sorted(members) for members in expected]
        else:
            assert kept == [v for graph in result.anchors for v in graph]
    # TensorBoard gets the numbers and only them.
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(tmp_path))
    events.Reload()
    assert {"loss", "validation/auc"} <= set(events.Tags()["scalars"])
    assert "validation/anchors" not in events.Tags()["scalars"]
    # Too many are left out.
    monkeypatch.setattr("psgnn.training._fit.MOST_TRACED_ANCHORS", 3)
    again = fit(build_model(name, task, preset, eval_every=1, patience=9), task, epochs=3)
    assert [entry.get("anchors") for entry in again.history] == [None] * 3
    assert again.test == result.test


def test_ids_of_runs_on_record_stay() -> None:
    """A change of these ids would throw away hours of runs; only a change of the protocol may."""
    manifest = load_manifest("accuracy", EXPERIMENTS)
    [run] = plan(manifest, seeds=1, only=["grid-link"], methods=["psgnn"])
    assert run.id == "b32708c1be6ee3cb"
    [rule] = plan(manifest, seeds=1, only=["grid-link"], methods=["pagerank"])
    assert rule.id == records_of(manifest, "grid-link", "pagerank")[0]["id"]


# --- manifests


@pytest.mark.parametrize(
    ("kind", "old", "new", "message"),
    [
        ("anchors", 'kind = "anchors"', 'kind = "anchor"', "figures.0.*'anchor'.*'anchors'"),
        ("anchors", 'row = "caves"\nmeth', 'rows = ["caves"]\nmeth', r"figures.0.anchors.row"),
        ("anchors", 'row = "caves"\nmeth', 'row = "cave"\nmeth', "unknown row 'cave'; did you mean 'caves'"),
        ("anchors", '"trace-pgnn", "trace', '"trace-pgn", "trace', "method of figure 'it' 'trace-pgn'; did you mean"),
        ("anchors", '"trace-pgnn", "trace', '"pagerank", "trace', "'pagerank' keeps only with trace = true"),
        ("curves", 'title = "P-GNN"\nseeds = 1\ntrace = true', "seeds = 1", "'trace-pgnn' keeps only with trace"),
        ("coverage", "seeds = 3", "seeds = 3\ntrace = true", "'pagerank' is a rule, which has no training"),
        ("movement", "moments = 3", "moments = 1", "figures.0.movement.moments"),
        ("symmetry", "nodes = [0, 4]", "nodes = [0, 4, 1]", "figures.0.symmetry.nodes"),
        ("size", 'name = "it"', 'name = "../it"', "figures.0.size.name"),
        ("size", 'methods = ["pagerank"]\npanels', "methods = []\npanels", "figures.0.size.methods"),
    ],
)  # fmt: skip
def test_a_wrong_figure_gets_one_line(tmp_path: Path, kind: str, old: str, new: str, message: str) -> None:
    assert old in text_of(kind)
    with pytest.raises(InputError, match=message) as error:
        manifest_of(tmp_path, kind, text_of(kind).replace(old, new))
    assert "\n" not in str(error.value)
    assert "figure.toml" in str(error.value)


@pytest.mark.parametrize(
    ("kind", "old", "new", "message"),
    [
        ("size", 'of = "figure"', 'of = "figur"', "figure 'it' of figure: unknown experiment 'figur'"),
        ("size", '["caves", "more-caves"]}]', '["caves", "morecaves"]}]', "unknown row 'morecaves'; did you"),
        ("size", 'methods = ["pagerank"]\npanels', 'methods = ["rank"]\npanels', "unknown method of figure 'rank'"),
        ("symmetry", "anchors = [1]", "anchors = [5]", "nodes 0..5 and has places for 5"),
        ("coverage", 'rule = "closeness"', 'rule = "closest"', "unknown anchor rule 'closest'"),
        ("movement", '["trace-paper"]', '["trace-best"]', "has anchors that never move"),
    ],
)  # fmt: skip
def test_what_cannot_be_drawn_gets_one_line(
    copied: Path, kind: str, old: str, new: str, message: str
) -> None:
    assert old in text_of(kind)
    best = '[methods.trace-best]\nkind = "model"\nof = "psgnn"\nseeds = 1\ntrace = true\noptions = {epochs = 20}\n'
    text = text_of(kind).replace(old, new).replace("[methods.pagerank]", f"{best}\n[methods.pagerank]")
    manifest = manifest_of(copied, kind, text)
    if "trace-best" in new:
        [run] = plan(manifest, methods=["trace-best"])
        write_record(manifest.records, run, execute(run))
    with pytest.raises(InputError, match=message) as error:
        figures.write_figures(manifest)
    assert "\n" not in str(error.value)
    assert not (copied / "figures").exists()


def test_figures_of_one_name_and_manifests_of_nothing_get_one_line(tmp_path: Path) -> None:
    twice = text_of("coverage") + text_of("coverage")[len(METHODS) :]
    with pytest.raises(InputError, match="figures: 'it' is there twice"):
        manifest_of(tmp_path, "coverage", twice)
    with pytest.raises(InputError, match="neither sections nor figures"):
        manifest_of(tmp_path, "coverage", 'title = "Nothing"\n')
    alone = 'title = "A figure alone"\n' + text_of("coverage")[len(METHODS) :]
    assert plan(manifest_of(tmp_path, "coverage", alone)) == []


def test_figures_ask_for_their_own_runs_and_for_no_other(tmp_path: Path) -> None:
    table = {("caves", "pagerank"), ("more-caves", "pagerank")}
    wanted = {
        "coverage": set(),
        "size": set(),
        "movement": {("caves-link", "trace-paper")},
        "curves": {(row, f"trace-{name}") for row in ("caves", "caves-link") for name in ("paper", "pgnn")},
    }
    for kind, more in wanted.items():
        runs = plan(manifest_of(tmp_path, kind))
        assert {(run.row.name, run.method.name) for run in runs} == table | more


# --- files

FIGURE_NAMES = sorted(
    (name, figure.name)
    for name in manifest_names(EXPERIMENTS)
    for figure in load_manifest(name, EXPERIMENTS).figures
)


def has_pinned_versions() -> bool:
    pins = dict(re.findall(r"^([a-z]+)==([^;\s]+)", (ROOT / "constraints.txt").read_text(), re.MULTILINE))
    return all(version(name) == pins[name] for name in ("matplotlib", "pillow"))


@pytest.mark.skipif(
    not has_pinned_versions(), reason="other versions of matplotlib or Pillow make other bytes"
)
@pytest.mark.parametrize(("name", "figure"), FIGURE_NAMES)
def test_the_figures_of_the_repository_are_those_of_the_records(name: str, figure: str) -> None:
    manifest = load_manifest(name, EXPERIMENTS)
    spec = next(each for each in manifest.figures if each.name == figure)
    made = figures.render(spec, manifest) if figures.has_records(manifest, spec) else {}
    for suffix in figures.SUFFIXES:
        path = figures.figure_path(manifest, spec, suffix)
        current = path.read_bytes() if path.exists() else None
        assert current == made.get(suffix), f"{path} is not current; run make docs"
        assert len(current or b"") < {".png": 150_000, ".svg": 300_000}[suffix]


def test_the_figures_of_the_repository_have_names_of_their_own_and_no_others_are_there() -> None:
    names = [figure for _, figure in FIGURE_NAMES]
    assert len(names) == len(set(names)) >= 6
    files = {path.name for path in (ROOT / "docs" / "figures").iterdir()}
    assert files <= {name + suffix for name in names for suffix in figures.SUFFIXES}


def test_another_process_with_other_settings_makes_the_same_bytes(recorded: Path, tmp_path: Path) -> None:
    (tmp_path / "matplotlibrc").write_text("font.size: 20\nfigure.facecolor: black\nsvg.fonttype: none\n")
    code = (
        "import sys; sys.path.insert(0, 'tests')\n"
        "from pathlib import Path\n"
        "from test_figures import manifest_of, figures\n"
        "for kind in sys.argv[2:]:\n"
        "    manifest = manifest_of(Path(sys.argv[1]), kind)\n"
        "    for suffix, content in figures.render(manifest.figures[0], manifest).items():\n"
        "        Path(sys.argv[1], kind + suffix).write_bytes(content)\n"
    )
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "records").symlink_to(recorded / "records")
    others = {
        "MATPLOTLIBRC": str(tmp_path),
        "TZ": "Asia/Tokyo",
        "PYTHONHASHSEED": "7",
        "SOURCE_DATE_EPOCH": "1",
    }
    command = [sys.executable, "-c", code, str(tmp_path / "copy"), *EXAMPLES]
    subprocess.run(command, cwd=ROOT, check=True, env={**os.environ, **others})
    for kind in EXAMPLES:
        manifest = manifest_of(recorded, kind)
        for suffix, content in figures.render(manifest.figures[0], manifest).items():
            assert (tmp_path / "copy" / (kind + suffix)).read_bytes() == content, kind


def test_files_have_no_date_and_a_white_ground(recorded: Path) -> None:
    for kind in EXAMPLES:
        manifest = manifest_of(recorded, kind)
        made = figures.render(manifest.figures[0], manifest)
        svg = made[".svg"].decode()
        assert "dc:date" not in svg
        assert "Matplotlib v" not in svg
        assert not re.search(r' (d|x|y)="[^"]*\.\d{3}', svg)
        path = recorded / "figure.png"
        path.write_bytes(made[".png"])
        with Image.open(path) as image:
            assert image.info.keys() <= {"dpi"}
            corners = [(0, 0), (image.width - 1, image.height - 1)]
            assert [image.convert("RGB").getpixel(corner) for corner in corners] == [(255, 255, 255)] * 2


def test_a_current_file_is_left_alone_and_another_is_replaced(copied: Path) -> None:
    manifest = manifest_of(copied, "anchors")
    paths = figures.write_figures(manifest)
    assert [path.name for path in paths] == ["it.svg", "it.png"]
    assert {path.parent for path in paths} == {copied.resolve() / "figures"}
    whole = [path.read_bytes() for path in paths]
    for path in paths:
        os.utime(path, (1, 1))
    paths[1].write_bytes(b"old")
    assert figures.write_figures(manifest) == paths
    assert [path.read_bytes() for path in paths] == whole
    assert paths[0].stat().st_mtime == 1
    assert sorted(path.name for path in paths[0].parent.iterdir()) == ["it.png", "it.svg"]


@pytest.mark.parametrize(
    ("kind", "row", "damage", "message"),
    [
        ("anchors", "caves", {"anchors": None}, r"trace-paper\.json is damaged"),
        ("curves", "caves", {"history": [{"epoch": 10}]}, r"trace-paper\.json is damaged"),
        ("curves", "caves", {"best_epoch": "x"}, r"trace-paper\.json is damaged"),
        ("movement", "caves-link", {"history": "none"}, r"trace-paper\.json is damaged"),
        ("movement", "caves-link", {"split": "0" * 16}, r"trace-paper\.json: seed 100 is of another split"),
    ],
)
def test_a_damaged_trace_gets_one_line_and_leaves_the_old_figure(
    copied: Path, kind: str, row: str, damage: dict[str, Any], message: str
) -> None:
    manifest = manifest_of(copied, kind)
    paths = figures.write_figures(manifest)
    whole = [path.read_bytes() for path in paths]
    records = records_of(manifest, row, "trace-paper")
    records[0] |= damage
    record_path(manifest.records, row, "trace-paper").write_text(json.dumps(records))
    with pytest.raises(InputError, match=message) as error:
        figures.write_figures(manifest)
    assert "\n" not in str(error.value)
    assert [path.read_bytes() for path in paths] == whole


def test_without_records_there_is_no_figure_and_the_page_says_so(tmp_path: Path) -> None:
    for kind in ("anchors", "size", "curves", "movement"):
        manifest = manifest_of(tmp_path, kind)
        assert figures.write_figures(manifest) == []
        assert "**A title.** A text.\n\nThere are no records yet: `psgnn-lab reproduce figure`" in markdown(
            manifest
        )
    assert not (tmp_path / "figures").exists()


def test_the_page_shows_the_figure_and_its_text(copied: Path) -> None:
    (copied / "page.md").write_text("<!-- figure begin -->\n<!-- figure end -->\n")
    manifest = manifest_of(copied, "curves")
    figures.write_figures(manifest)
    assert write_page(manifest) == (copied / "page.md").resolve()
    page = (copied / "page.md").read_text()
    assert "![A title](figures/it.svg)\n\n**A title.** A text. ([PNG](figures/it.png))" in page
    for target in re.findall(r"\]\(([^)]+)\)", page):
        assert (copied / target).exists(), target
    assert document(manifest)["sections"][0]["section"] == "table"


# --- the command

Run_ = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run_:
    def call(*args: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["psgnn-lab", *map(str, args)])
        with pytest.raises(SystemExit) as exit_info:
            commands.main()
        captured = capsys.readouterr()
        return int(exit_info.value.code or 0), captured.out, captured.err

    return call


def test_reproduce_makes_missing_runs_and_figures(run: Run_, tmp_path: Path) -> None:
    manifest = manifest_of(tmp_path, "movement")
    common = ("--folder", tmp_path, "--json")
    code, out, _ = run("reproduce", "figure", "--from-records", *common)
    assert (code, json.loads(out)["figures"]) == (0, [])
    code, out, err = run("reproduce", "figure", "--methods", "trace-paper", "--jobs", 1, *common)
    assert (code, err) == (0, "")
    paths = [Path(path) for path in json.loads(out)["figures"]]
    assert paths == [
        figures.figure_path(manifest, manifest.figures[0], suffix) for suffix in (".svg", ".png")
    ]
    before = [path.read_bytes() for path in paths]
    for path in paths:
        path.unlink()
    code, out, _ = run("reproduce", "all", "--from-records", *common)
    assert code == 0
    assert [path.read_bytes() for path in paths] == before
    code, out, _ = run("reproduce", "--list", *common)
    assert json.loads(out)[0]["figures"] == ["it"]


def test_reproduce_all_draws_the_records_of_others_after_them(run: Run_, copied: Path) -> None:
    figure = text_of("size")[len(METHODS) :].replace('of = "figure"', 'of = "table"')
    (copied / "a-figure.toml").write_text(f'title = "It"\n{figure}')
    (copied / "table.toml").write_text(METHODS)
    code, out, err = run("reproduce", "all", "--from-records", "--json", "--folder", copied)
    assert (code, err) == (0, "")
    experiments = json.loads(out)
    assert [each["experiment"] for each in experiments] == ["table", "a-figure"]
    assert [Path(path).name for path in experiments[1]["figures"]] == ["it.svg", "it.png"]
