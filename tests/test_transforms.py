from __future__ import annotations

import runpy
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import torch
import torch_geometric.transforms as T

from conftest import data_of
from psgnn.datasets import load_dataset
from psgnn.distances import shortest_distances
from psgnn.errors import InputError
from psgnn.models.transforms import AddAnchorDistances, AddAnchorPageRank


def islands() -> nx.Graph:
    return nx.disjoint_union(nx.path_graph(10), nx.cycle_graph(4))


def test_distances_in_each_encoding() -> None:
    data = AddAnchorDistances(3, encoding="hops", attr_name="position")(data_of(islands()))
    assert data.position.dtype == torch.float32
    hops = shortest_distances(data.edge_index, data.anchors, num_nodes=14)
    assert np.array_equal(data.position, hops)
    near = AddAnchorDistances(3, attr_name="position")(data_of(islands()))
    expected = torch.where(data.position < 0, 0, 1 / (1 + data.position))
    assert torch.allclose(near.position, expected)
    scaled = AddAnchorDistances(3, encoding="scaled", attr_name="position")(data_of(islands()))
    assert float(scaled.position.max()) == 1
    assert float(scaled.position.min()) == 0


def test_encodings_join_the_features_in_a_pipeline() -> None:
    data = data_of(islands())
    data.x = torch.ones(14, 2)
    piped = T.Compose([T.ToUndirected(), AddAnchorDistances("log"), AddAnchorPageRank(2, method="degree")])(
        data
    )
    assert piped.x.shape == (14, 2 + 3 + 2)
    assert torch.isfinite(piped.x).all()
    assert AddAnchorDistances("log")(data_of(islands())).x.shape == (14, 3)


def test_pagerank_is_the_logarithm_of_a_distribution() -> None:
    data = AddAnchorPageRank(2, restart=0.3, steps=50, attr_name="walk")(data_of(nx.path_graph(6)))
    assert torch.allclose(data.walk.exp().sum(dim=0), torch.ones(2), atol=1e-4)


def test_a_graph_of_psgnn_becomes_pyg_data() -> None:
    (graph,) = load_dataset("communities", communities=3, size=5)
    data = AddAnchorDistances(2)(graph)
    assert data.x.shape == (15, 2)
    assert data.edge_index.shape == (2, 2 * graph.num_edges)
    assert np.array_equal(data.y, graph.y)
    assert data.node_names == graph.names
    assert graph.x is None


def test_unknown_names_are_refused() -> None:
    with pytest.raises(InputError, match="unknown encoding 'hop'; did you mean 'hops'"):
        AddAnchorDistances(encoding="hop")
    with pytest.raises(InputError, match="unknown anchor rule"):
        AddAnchorPageRank(method="best")


def test_the_example_shows_what_positions_do() -> None:
    example = runpy.run_path(str(Path(__file__).parent.parent / "examples" / "gcn_with_positions.py"))
    assert example["accuracy"](positions=True) > 0.8 > 0.4 > example["accuracy"](positions=False)
