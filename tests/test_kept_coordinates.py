"""A run on tomorrow's graph: the same anchors, scales and axes; what was added, what is gone, what moved."""

from __future__ import annotations

import json
from pathlib import Path

import networkx as nx
import numpy as np
import polars as pl
import pytest

import psgnn
from conftest import Command
from psgnn.graph import Graph
from psgnn.training import Run, fit

LENGTH = 80
Vectors = dict[str, np.ndarray]


def ladder() -> nx.Graph:
    """A graph that is long enough for its ends not to notice each other."""
    return nx.relabel_nodes(nx.ladder_graph(LENGTH), lambda v: f"n{v}")


def shuffled(graph: nx.Graph, seed: int) -> Graph:
    """The graph with its links, and so its nodes, in another order."""
    edges = list(graph.edges)
    np.random.default_rng(seed).shuffle(edges)
    return psgnn.read_graph(nx.Graph(map(tuple, edges)))


def trained_on(graph: Graph, model: str = "psgnn", **options: object) -> Run:
    task = psgnn.LinkPrediction(graph, seed=0)
    return fit(psgnn.build_model(model, task, hidden=8, **options), task, epochs=4)


@pytest.fixture(scope="module")
def yesterday() -> Run:
    return trained_on(shuffled(ladder(), 0), members=1)


def vectors(run: Run) -> Vectors:
    return dict(zip(run.node_names[0], run.embed(), strict=True))


def largest_change(before: Vectors, after: Vectors, names: set[str]) -> float:
    return max(float(np.abs(before[name] - after[name]).max()) for name in names)


def near(graph: nx.Graph, node: str, hops: int) -> set[str]:
    return set(nx.single_source_shortest_path_length(graph, node, cutoff=hops))


# --- the same coordinates


@pytest.mark.parametrize("model", ["psgnn", "pgnn", "agnn", "gcn"])
def test_the_order_of_lines_changes_no_vector(model: str) -> None:
    run = trained_on(shuffled(ladder(), 0), model)
    again = run.on(shuffled(ladder(), 1))
    assert run.node_names != again.node_names
    assert largest_change(vectors(run), vectors(again), set(ladder())) < 1e-5
    assert again.changes is not None
    assert again.changes.to_dict() == {"added": (), "gone": (), "moved": (), "replaced": {}}
    names = again.node_names[0]
    place = {name: v for v, name in enumerate(run.node_names[0])}
    pairs = np.random.default_rng(0).integers(0, len(names), (2, 50))
    there = np.vectorize(lambda v: place[names[v]])(pairs)
    np.testing.assert_allclose(again.score(pairs), run.score(there), atol=1e-3)


def test_nodes_far_from_a_new_node_keep_their_vectors(yesterday: Run) -> None:
    graph = ladder()
    graph.add_edge(f"n{LENGTH - 1}", "new")
    today = yesterday.on(shuffled(graph, 1))
    before, after = vectors(yesterday), vectors(today)
    around = near(graph, "new", 30)
    assert largest_change(before, after, set(before) - around) < 1e-5
    assert largest_change(before, after, near(graph, "new", 2) - {"new"}) > 1e-4
    assert today.changes is not None
    assert (today.changes.added, today.changes.gone) == (("new",), ())
    # It is placed among its neighbours.
    nearest = min(before, key=lambda name: float(np.linalg.norm(after[name] - after["new"])))
    assert nearest in near(graph, "new", 4)


def test_a_new_component_changes_no_vector(yesterday: Run) -> None:
    graph = ladder()
    nx.add_path(graph, ["a", "b", "c"])
    today = yesterday.on(shuffled(graph, 1))
    assert largest_change(vectors(yesterday), vectors(today), set(ladder())) < 1e-5
    assert today.changes is not None
    assert set(today.changes.added) == {"a", "b", "c"}
    assert not today.changes.moved
    assert np.isfinite(today.embed()).all()


def test_axes_are_turned_to_those_of_the_run() -> None:
    """On a small world every node is near every change, so vectors are turned and not looked up."""
    graph = nx.relabel_nodes(nx.connected_watts_strogatz_graph(150, 6, 0.1, seed=0), lambda v: f"n{v}")
    run = trained_on(shuffled(graph, 0), members=1)
    graph.add_edges_from([("new", "n3"), ("new", "n4")])
    today, anew = (run.on(shuffled(graph, 1), new_anchors=new) for new in (False, True))
    before = vectors(run)
    size = np.median([np.linalg.norm(vector) for vector in before.values()])
    kept, turned = (
        np.median([np.linalg.norm(after[name] - before[name]) for name in before])
        for after in (vectors(today), vectors(anew))
    )
    assert kept < 0.05 * size < turned
    assert today.changes is not None
    assert len(today.changes.moved) < 10


def test_moved_nodes_are_those_that_changed_by_more_than_a_link(yesterday: Run) -> None:
    graph = ladder()
    graph.remove_edges_from(list(graph.edges("n0")))
    graph.add_edges_from(
        [("n0", f"n{LENGTH // 2}"), ("n0", f"n{LENGTH // 2 + 1}")]
    )  # from one end to the middle
    today = yesterday.on(shuffled(graph, 1))
    before, after = vectors(yesterday), vectors(today)
    link = np.median([np.linalg.norm(before[u] - before[v]) for u, v in ladder().edges])
    moved = {name for name in before if np.linalg.norm(before[name] - after[name]) > link}
    assert today.changes is not None
    assert set(today.changes.moved) == moved
    assert "n0" in moved
    assert len(moved) < LENGTH


# --- anchors that are gone, and other graphs


def test_the_nearest_neighbour_replaces_a_lost_anchor(
    yesterday: Run, caplog: pytest.LogCaptureFixture
) -> None:
    names = yesterday.node_names[0]
    anchors = {names[v] for v in yesterday.anchors[0]}  # type: ignore[index]
    lost = names[yesterday.anchors[0][0]]  # type: ignore[index]
    graph = ladder()
    graph.remove_node(lost)
    with caplog.at_level("INFO", "psgnn"):
        today = yesterday.on(shuffled(graph, 1))
    assert today.changes is not None
    assert today.changes.gone == (lost,)
    ((old, new),) = today.changes.replaced.items()
    hops = nx.single_source_shortest_path_length(ladder(), lost)
    assert old == lost
    assert hops[new] == min(hops[name] for name in set(graph) - anchors)
    assert f"{new} for {lost}" in caplog.text
    now = [today.node_names[0][v] for v in today.anchors[0]]  # type: ignore[index]
    assert set(now) == anchors - {lost} | {new}
    assert now[0] == new  # in the columns of the lost one
    assert today.embed().shape[1] == yesterday.embed().shape[1]


def test_a_graph_that_lost_most_nodes_still_has_vectors(yesterday: Run) -> None:
    today = yesterday.on(shuffled(ladder().subgraph([f"n{v}" for v in range(6)]), 0))
    assert today.embed().shape == (6, yesterday.embed().shape[1])
    assert np.isfinite(today.embed()).all()
    assert today.changes is not None
    assert len(today.changes.gone) == 2 * LENGTH - 6


@pytest.mark.parametrize("model", ["psgnn", "pgnn", "agnn"])
@pytest.mark.parametrize("nodes", [7, 300])
def test_graphs_of_other_names_get_new_anchors_and_vectors_as_wide(
    model: str, nodes: int, caplog: pytest.LogCaptureFixture
) -> None:
    run = trained_on(shuffled(ladder(), 0), model)
    with caplog.at_level("INFO", "psgnn"):
        other = run.on(psgnn.read_graph(nx.cycle_graph(nodes)))
    assert "no node has a name of the run's graph" in caplog.text
    assert other.changes is None
    assert other.embed().shape == (nodes, run.embed().shape[1])
    assert np.isfinite(other.embed()).all()


def test_a_graph_that_happens_to_use_the_names_is_another_graph(
    yesterday: Run, caplog: pytest.LogCaptureFixture
) -> None:
    graph = nx.relabel_nodes(nx.random_regular_graph(3, 100, seed=0), lambda v: f"n{v}")
    with caplog.at_level("INFO", "psgnn"):
        assert yesterday.on(shuffled(graph, 0)).changes is None
    assert "hardly any link" in caplog.text


def test_several_graphs_are_matched_by_their_place(caplog: pytest.LogCaptureFixture) -> None:
    graphs = [shuffled(nx.ladder_graph(size), 0) for size in (12, 15)]
    task = psgnn.LinkPrediction(graphs, seed=0)
    run = fit(psgnn.build_model("psgnn", task, hidden=8), task, epochs=2)
    again = run.on([shuffled(nx.ladder_graph(size), 1) for size in (12, 15)])
    for g, names in enumerate(again.node_names):
        ours, theirs = again.embed()[again.batch.ptr[g] :], run.embed()[run.batch.ptr[g] :]
        order = [run.node_names[g].index(name) for name in names]
        np.testing.assert_allclose(ours[: len(names)], theirs[order], atol=1e-5)
    with caplog.at_level("INFO", "psgnn"):
        assert run.on(graphs[0]).embed().shape == (24, run.embed().shape[1])
    assert "there are 1 graphs, and the run has 2" in caplog.text


def test_a_run_on_another_graph_goes_back_to_its_own(yesterday: Run) -> None:
    graph = ladder()
    graph.add_edge("n0", "new")
    again = yesterday.on(shuffled(graph, 1)).on(shuffled(ladder(), 2))
    assert largest_change(vectors(yesterday), vectors(again), set(ladder())) < 1e-5


def test_probabilities_on_another_graph_are_of_its_own_links(yesterday: Run) -> None:
    graph = ladder()
    graph.add_edge("n0", "new")
    frame = yesterday.on(shuffled(graph, 1)).predict(of="new", top=3)
    assert frame["probability"].null_count() == 0


# --- the commands


def test_the_commands_keep_coordinates(run: Command, tmp_path: Path) -> None:
    def write(name: str, graph: nx.Graph, seed: int) -> None:
        lines = [f"{u},{v}" for u, v in graph.edges]
        np.random.default_rng(seed).shuffle(lines)
        (tmp_path / name).write_text("source,target\n" + "\n".join(lines) + "\n")

    graph = ladder()
    write("yesterday.csv", graph, 0)
    graph.remove_node(f"n{LENGTH}")
    graph.add_edges_from([(f"n{LENGTH - 1}", "new"), ("newer", "new")])
    write("today.csv", graph, 1)
    assert run("train", "yesterday.csv", "--out", "run", "--epochs", 2, "-q")[0] == 0
    assert run("embed", "run", "-o", "before.csv")[0] == 0
    code, out, err = run("embed", "run", "--graph", "today.csv", "-o", "after.csv")
    assert code == 0
    assert "2 added: new, newer\n" in out or "2 added: newer, new\n" in out
    assert f"1 gone: n{LENGTH}\n" in out
    assert "the run's coordinates are kept (2 nodes added, 1 gone)" in err
    before, after = (pl.read_csv(f"{name}.csv").sort("node") for name in ("before", "after"))
    assert before.columns == after.columns
    middle = [f"n{LENGTH // 2}", f"n{LENGTH + LENGTH // 2}"]
    ours, theirs = (frame.filter(pl.col("node").is_in(middle)).drop("node") for frame in (before, after))
    np.testing.assert_allclose(ours.to_numpy(), theirs.to_numpy(), atol=1e-5)
    code, out, err = run("embed", "run", "--graph", "today.csv", "-o", "after.csv", "--force", "--json")
    changes = json.loads(out)["changes"]
    assert (set(changes["added"]), changes["gone"]) == ({"new", "newer"}, [f"n{LENGTH}"])
    code, out, err = run("embed", "run", "--graph", "today.csv", "-o", "x.csv", "--new-anchors", "--json")
    assert json.loads(out)["changes"] is None
    for command in (
        ["predict", "run", "--for", "new", "--top", 2], ["similar", "run", "new"], ["explain", "run", "new", "n3"],
    ):  # fmt: skip
        assert run(*command, "--graph", "today.csv")[0] == 0
    code, out, err = run("predict", "run", "--top", 3, "--new-anchors")
    assert (code, out) == (2, "")
    assert "--new-anchors goes with --graph" in err
