"""Our sums over neighbours give what PyG's convolutions give, and so do their gradients."""

from __future__ import annotations

import networkx as nx
import pytest
import torch

from conftest import data_of
from far_device import FAR, Far, FarDevice
from psgnn.errors import InputError
from psgnn.models._convolutions import EXPONENT_RANGE, make_conv, neighbour_sums, pair_dots, weighted_sums
from psgnn.models._presets import CONVOLUTIONS
from psgnn.models._view import TensorView, view_of


@pytest.fixture
def view() -> TensorView:
    """Two graphs, with a node that has no neighbours."""
    graph = nx.gnm_random_graph(20, 40, seed=1)
    graph.add_node(20)
    return view_of([data_of(graph), data_of(nx.star_graph(7))])


def options_of(name: str) -> dict[str, object]:
    return {"heads": 3, "concat": False} if name == "gat" else {}


@pytest.mark.parametrize("name", CONVOLUTIONS)
@pytest.mark.parametrize("sizes", [(5, 8), (8, 8)])
def test_a_convolution_is_pygs(name, sizes, view):
    torch.manual_seed(0)
    conv = make_conv(name, *sizes, **options_of(name))
    for parameter in conv.parameters():
        torch.nn.init.normal_(parameter, std=0.5)  # a bias of zeros would hide that it was left out
    slopes = torch.randn(view.union.num_nodes, sizes[1])
    x = torch.randn(view.union.num_nodes, sizes[0])
    results = []
    for forward in (conv.forward, super(type(conv), conv).forward):
        conv.zero_grad()
        leaf = x.clone().requires_grad_()
        out = forward(leaf, view if forward == conv.forward else view.edge_index)
        (out * slopes).sum().backward()
        results.append([out.detach(), leaf.grad, *(p.grad.clone() for p in conv.parameters())])
    ours, theirs = results
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)


def test_messages_far_apart_do_not_become_nothing(view):
    """Beyond the range of exponentials PyG's softmax, which takes each neighbourhood for itself, is right."""
    conv = make_conv("gen", 4, 4)
    x = torch.rand(view.union.num_nodes, 4)
    x[0] += 3 * EXPONENT_RANGE
    pyg = super(type(conv), conv).forward(x, view.edge_index)
    torch.testing.assert_close(conv(x, view), pyg, rtol=1e-4, atol=1e-4)


def test_gradients(view):
    adjacency, n = view.union.adjacency, view.union.num_nodes
    torch.manual_seed(0)
    x = torch.randn(n, 3, dtype=torch.double, requires_grad=True)
    heads = torch.randn(n, 2, 3, dtype=torch.double, requires_grad=True)
    weight = torch.rand(adjacency.indices.size, 2, dtype=torch.double, requires_grad=True)
    pairs = torch.randint(n, (2, 30))  # with a node paired with itself, and pairs that come twice
    pairs[:, 0] = 4
    pairs[:, 1] = pairs[:, 2]
    assert torch.autograd.gradcheck(lambda h: neighbour_sums(adjacency, h), x)
    assert torch.autograd.gradcheck(lambda w, h: weighted_sums(adjacency, w, h), (weight, heads))
    assert torch.autograd.gradcheck(lambda h: pair_dots(h, pairs), x)


def test_other_devices_have_the_same_formulas(view):
    adjacency, n = view.union.adjacency, view.union.num_nodes
    x, heads, weight = torch.randn(n, 3), torch.randn(n, 2, 3), torch.rand(adjacency.indices.size, 2)
    near = (
        neighbour_sums(adjacency, x),
        weighted_sums(adjacency, weight, heads),
        pair_dots(x, view.edge_index),
    )
    with FarDevice():
        a, b, c, pairs = (tensor.to(FAR) for tensor in (x, heads, weight, view.edge_index))
        far = neighbour_sums(adjacency, a), weighted_sums(adjacency, c, b), pair_dots(a, pairs)
        assert all(isinstance(values, Far) for values in far)
        back = [values.cpu() for values in far]
    for values, expected in zip(back, near, strict=True):
        torch.testing.assert_close(values, expected)


def test_large_sums_are_shared_by_threads(monkeypatch):
    """Blocks of rows, whoever does them, are the rows."""
    monkeypatch.setattr("psgnn.models._messages.BLOCK_WORK", 50)
    monkeypatch.setattr("psgnn.kernels._compile.STEPS_WORTH_A_THREAD", 1)
    monkeypatch.setattr("psgnn.kernels._compile.num_threads", lambda: 2)
    view = view_of([data_of(nx.gnm_random_graph(60, 200, seed=2))])
    x = torch.randn(60, 5)
    expected = torch.zeros_like(x).index_add(0, view.edge_index[0], x[view.edge_index[1]])
    torch.testing.assert_close(neighbour_sums(view.union.adjacency, x), expected)


@pytest.mark.parametrize("wrong", [-1, 4])
def test_pairs_of_rows_that_are_not_there(wrong: int) -> None:
    with pytest.raises(InputError, match="of 4"):
        pair_dots(torch.ones(4, 8), torch.tensor([[0, wrong], [1, 2]]))
