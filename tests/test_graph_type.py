"""psgnn.Graph: made from edges, given to other libraries and back, and never changed in place."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import polars as pl
import pytest
import scipy.sparse
import torch
from hypothesis import given
from torch_geometric.data import Data

import psgnn
from conftest import adjacency_of, random_graphs
from psgnn import Graph
from psgnn.errors import InputError, MissingExtraError
from psgnn.graph import as_graph

NAMES = ["ann", "bob", "cy", "dan"]


def village() -> Graph:
    """A path of three, and dan by himself."""
    x = np.arange(8, dtype=np.float32).reshape(4, 2)
    return Graph.from_edges([[1, 1], [0, 2]], names=NAMES, x=x, y=[0, 0, 1, -1])


def same(one: Graph, other: Graph) -> bool:
    """Whether two graphs agree in all but what was read."""
    arrays = [(one.edges, other.edges), (one.x, other.x), (one.y, other.y)]
    arrays += [(one.split[key], other.split[key]) for key in one.split]
    return (
        one.names == other.names
        and one.split.keys() == other.split.keys()
        and all((a is None) == (b is None) for a, b in arrays)
        and all(np.array_equal(a, b) for a, b in arrays if a is not None)
    )


# From edges


@pytest.mark.parametrize(
    "kind",
    [
        list,
        np.array,
        lambda edges: np.array(edges, np.int32),
        lambda edges: np.array(edges, np.uint64),
        lambda edges: np.asfortranarray(edges),
        torch.tensor,
        lambda edges: torch.tensor(edges, dtype=torch.int32),
    ],
)
def test_edges_of_any_kind_and_order_give_the_simple_graph(kind: Callable[[Any], Any]) -> None:
    graph = Graph.from_edges(kind([[4, 0, 1, 0, 2, 2], [2, 1, 0, 1, 2, 1]]))
    assert graph.edges.tolist() == [[0, 1, 2], [1, 2, 4]]
    assert graph.edges.dtype == np.int64
    assert (graph.num_nodes, graph.num_edges) == (5, 3)
    assert (graph.x, graph.y, graph.reading, graph.split) == (None, None, None, {})


@given(random_graphs())
def test_edges_come_back_as_they_were_given(drawn: nx.Graph) -> None:
    edges = np.array(sorted(drawn.edges), np.int64).reshape(-1, 2).T
    graph = Graph.from_edges(edges, drawn.number_of_nodes())
    assert np.array_equal(graph.edges, edges)
    assert graph.num_nodes == drawn.number_of_nodes()
    assert np.array_equal(graph.adjacency.indices, adjacency_of(drawn).indices)


@pytest.mark.parametrize("edges", [[[], []], np.zeros((2, 0), int), torch.zeros(2, 0, dtype=torch.long)])
def test_a_graph_may_have_no_edges_and_no_nodes(edges: Any) -> None:
    graph = Graph.from_edges(edges, 3)
    assert (graph.num_nodes, graph.num_edges) == (3, 0)
    assert graph.edges.shape == (2, 0)
    assert graph.to_polars().shape == (0, 2)
    assert graph.to_scipy().shape == (3, 3)
    assert graph.to_networkx().number_of_nodes() == 3
    assert graph.to_pyg().edge_index.shape == (2, 0)
    nothing = Graph.from_edges(edges)
    assert (nothing.num_nodes, nothing.names, repr(nothing)) == (0, [], "Graph(nodes=0, edges=0)")


def test_arrays_of_any_kind_become_numpy() -> None:
    x, y = torch.rand(2, 3), torch.tensor([1, 0])
    for given_x, given_y in [(x, y), (x.tolist(), y.tolist()), (x.numpy(), y.numpy())]:
        graph = Graph.from_edges([[0], [1]], x=given_x, y=given_y)
        assert isinstance(graph.x, np.ndarray)
        assert isinstance(graph.y, np.ndarray)
        np.testing.assert_allclose(graph.x, x.numpy())
        assert graph.y.tolist() == [1, 0]
    half = Graph.from_edges([[0], [1]], x=x.requires_grad_().bfloat16())
    assert half.x is not None
    assert half.x.dtype == np.float32


@pytest.mark.parametrize(
    ("edges", "options", "message"),
    [
        ([[0.0], [1.0]], {}, r"edges must be integers of shape \[2, E\], found float64 of shape \[2, 1\]"),
        ([["a"], ["b"]], {}, r"edges must be integers of shape \[2, E\], found <U1"),
        ([0, 1], {}, r"found int64 of shape \[2\]"),
        ([[0, 1], [1, 2], [2, 3]], {}, r"found int64 of shape \[3, 2\]"),
        (
            [[0], [3]],
            {"num_nodes": 3},
            r"nodes 0\.\.3, but the graph has 3 nodes \(0\.\.2\); pass the right num_",
        ),
        ([[0], [3]], {"names": ["a", "b"]}, r"nodes 0\.\.3, but the graph has 2 nodes"),
        ([[0], [-1]], {}, r"edges name nodes -1\.\.0"),
        ([[0], [1]], {"num_nodes": -1}, "a graph of -1 nodes is outside"),
        ([[0], [1]], {"num_nodes": 2**31}, "a graph of 2147483648 nodes is outside"),
        ([[0], [1]], {"num_nodes": 3, "names": ["a", "b"]}, "2 node_names for 3 nodes; give each node one"),
        ([[0], [1]], {"names": ["a", "a"]}, "2 nodes are called 'a'; give each node a name of its own"),
        ([[0], [1]], {"names": [1, "1"]}, "2 nodes are called '1'"),
        (
            [[0], [1]],
            {"x": np.ones((4, 2))},
            r"has 2 nodes, but x has the shape \[4, 2\]; give each node one",
        ),
        ([[0], [1]], {"x": 1.0}, r"has 2 nodes, but x has the shape \[\]"),
    ],
)
def test_edges_names_and_features_that_do_not_fit_are_refused(
    edges: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message) as caught:
        Graph.from_edges(edges, **options)
    assert "\n" not in str(caught.value)


# Names


def test_names_are_those_given_or_the_numbers() -> None:
    assert village().names == NAMES
    assert village().num_nodes == 4  # of the names; no edge names dan
    assert Graph.from_edges([[0], [2]]).names == ["0", "1", "2"]
    assert Graph.from_edges([[0], [1]], names=(7, None)).names == ["7", "None"]  # type: ignore[arg-type]


def test_a_list_of_names_is_copied() -> None:
    names = ["a", "b"]
    graph = Graph.from_edges([[0], [1]], names=names)
    names[0] = "c"
    assert graph.names == ["a", "b"]


# Other libraries


def test_a_pyg_data_comes_back_as_the_same_graph() -> None:
    split = {"test_edge": np.array([[0], [2]]), "valid_edge_neg": np.array([[0, 1], [3, 3]])}
    graph = replace(village(), split=split)
    data = graph.to_pyg()
    assert isinstance(data, Data)
    assert data.num_nodes == 4
    assert data.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert data.is_undirected()
    assert data.validate()
    assert data.node_names == NAMES
    assert (data.x.dtype, data.y.dtype, data.test_edge.dtype) == (torch.float32, torch.int64, torch.int64)
    assert same(Graph.from_pyg(data), graph)
    assert same(as_graph(data), graph)
    assert same(Graph.from_pyg(Graph.from_edges([[0], [2]]).to_pyg()), Graph.from_edges([[0], [2]]))


def test_a_pyg_data_may_be_directed_and_know_little() -> None:
    found = Graph.from_pyg(Data(edge_index=torch.tensor([[2, 0], [0, 1]])))
    assert found.edges.tolist() == [[0, 0], [1, 2]]
    assert (found.names, found.x, found.y, found.split) == (["0", "1", "2"], None, None, {})
    assert Graph.from_pyg(Data(edge_index=torch.tensor([[0], [1]]), num_nodes=5)).num_nodes == 5
    with pytest.raises(InputError, match="1 node_names for 2 nodes"):
        Graph.from_pyg(Data(edge_index=torch.tensor([[0], [1]]), node_names=["a"], num_nodes=2))


def test_a_graph_is_itself_and_other_things_are_refused() -> None:
    graph = village()
    assert as_graph(graph) is graph
    assert psgnn.read_graph(graph) is graph
    for other in (nx.path_graph(3), np.zeros((2, 1), int), None, Data(x=torch.ones(2, 1))):
        with pytest.raises(
            InputError, match=rf"graph 3 is a {type(other).__name__}; psgnn.read_graph makes a Graph of it"
        ):
            as_graph(other, "graph 3")


def test_networkx_has_the_names_and_the_classes() -> None:
    found = village().to_networkx()
    assert list(found.nodes) == NAMES
    assert sorted(map(sorted, found.edges)) == [["ann", "bob"], ["bob", "cy"]]
    assert dict(found.nodes(data="y")) == {"ann": 0, "bob": 0, "cy": 1, "dan": -1}
    assert same(psgnn.read_graph(found), replace(village(), x=None))
    assert "y" not in Graph.from_edges([[0], [1]]).to_networkx().nodes["0"]


@given(random_graphs(min_nodes=2))
def test_networkx_and_scipy_have_the_same_edges(drawn: nx.Graph) -> None:
    edges = np.array(list(drawn.edges), np.int64).reshape(-1, 2).T
    graph = Graph.from_edges(edges, len(drawn))
    matrix = graph.to_scipy()
    assert isinstance(matrix, scipy.sparse.csr_array)
    assert np.array_equal(matrix.toarray(), nx.to_numpy_array(drawn))
    assert nx.utils.graphs_equal(nx.relabel_nodes(drawn, str), graph.to_networkx())
    if graph.num_edges:
        assert np.array_equal(psgnn.read_graph(matrix).edges, graph.edges)


def test_polars_has_every_edge_once_by_name(tmp_path: Path) -> None:
    frame = village().to_polars()
    assert frame.schema == {"source": pl.String, "target": pl.String}
    assert frame.rows() == [("ann", "bob"), ("bob", "cy")]
    frame.write_csv(tmp_path / "g.csv")
    again = psgnn.read_graph(tmp_path / "g.csv")
    assert again.names == ["ann", "bob", "cy"]
    assert again.edges.tolist() == village().edges.tolist()


@pytest.mark.parametrize(
    ("package", "method", "message"),
    [
        ("torch", "to_pyg", r"to_pyg needs torch_geometric: pip install 'psgnn\[train\]'"),
        ("networkx", "to_networkx", r"to_networkx needs networkx: pip install 'psgnn\[networkx\]'"),
    ],
)
def test_libraries_that_are_not_installed_are_named(
    package: str, method: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.partition(".")[0] == package:
            raise ImportError(name)
        return found(name, *rest)

    graph = village()
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match=message):
        getattr(graph, method)()


# As a value


def test_repr_says_what_is_there() -> None:
    assert repr(village()) == "Graph(nodes=4, edges=2, features=2, classes=2)"  # -1 is no class
    assert repr(replace(village(), x=None, y=None)) == "Graph(nodes=4, edges=2)"
    assert repr(replace(village(), x=None)) == "Graph(nodes=4, edges=2, classes=2)"
    assert repr(Graph.from_edges([[0], [1]], y=[-1, -1])) == "Graph(nodes=2, edges=1, classes=0)"


def test_replace_makes_a_changed_copy() -> None:
    graph = village()
    assert graph.names  # kept from now on, and not for the copy
    changed = replace(graph, y=np.array([3, 2, 1, 0]), node_names=list("abcd"))
    assert changed.y is not None
    assert (changed.y.tolist(), changed.names) == ([3, 2, 1, 0], list("abcd"))
    assert changed.adjacency is graph.adjacency
    assert changed.x is graph.x
    assert same(graph, village())
    assert replace(graph, adjacency=Graph.from_edges([[0], [3]]).adjacency).edges.tolist() == [[0], [3]]


@pytest.mark.parametrize(
    "name", ["adjacency", "x", "y", "node_names", "split", "reading", "num_nodes", "new"]
)
def test_nothing_can_be_set(name: str) -> None:
    graph = village()
    with pytest.raises(FrozenInstanceError):
        setattr(graph, name, None)
    with pytest.raises(FrozenInstanceError):
        delattr(graph, name)
    assert same(graph, village())


def test_a_graph_is_equal_to_itself_alone_and_can_be_a_key() -> None:
    graph = village()
    assert graph in [graph]
    assert graph not in [village()]
    assert {graph: 1}[graph] == 1


def test_what_other_libraries_get_can_be_changed_without_changing_the_graph() -> None:
    graph = village()
    data, other, matrix = graph.to_pyg(), graph.to_networkx(), graph.to_scipy()
    data.edge_index[:] = 0
    data.x[:] = 9
    data.y[:] = 9
    data.node_names[0] = "eve"
    other.remove_node("ann")
    matrix.data[:] = 5
    matrix.indices[:] = 0
    matrix.indptr[:] = 0
    assert same(graph, village())
    assert np.array_equal(graph.adjacency.indices, village().adjacency.indices)
    assert np.array_equal(graph.adjacency.indptr, village().adjacency.indptr)
