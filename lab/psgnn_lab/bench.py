"""The quick benchmark of a machine: distances against SciPy, position layers against a plain form, epochs of models.

``benchmarks/`` measures the same at length, against more peers, and takes its peers from here.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import torch

from psgnn.console import Bar
from psgnn.datasets import load_dataset
from psgnn.distances import hop_columns
from psgnn.graph._graph import Adjacency, IntArray
from psgnn.kernels._compile import njit
from psgnn.models import AnchorEncoder, AnchorSet, RulePicker, TensorView, build_model, view_of
from psgnn.models._encoders import AnchorLayer
from psgnn.tasks import LinkPrediction
from psgnn.training import fit

Hops = npt.NDArray[np.int16]
Answer = Callable[[IntArray], Hops]  # sources [S] -> int16 [N, S]
Value = TypeVar("Value")

SOURCES = 64
PEER_SOURCES = 8  # that a slow peer answers for; its time is extrapolated
EPOCHS = 20


# Graphs


def grid(rows: int, cols: int) -> Adjacency:
    """A rows x cols lattice."""
    ids = np.arange(rows * cols).reshape(rows, cols)
    tails = np.concatenate([ids[:, :-1].ravel(), ids[:-1].ravel()])
    heads = np.concatenate([ids[:, 1:].ravel(), ids[1:].ravel()])
    return Adjacency.from_edges(tails, heads, rows * cols)


def power_law(num_nodes: int, num_edges: int, seed: int = 0) -> Adjacency:
    """Ends of edges drawn with probability proportional to rank^-0.6, nodes in random order."""
    rng = np.random.default_rng(seed)
    weight = np.cumsum((np.arange(num_nodes) + 10.0) ** -0.6)
    ends = np.searchsorted(weight / weight[-1], rng.random((2, num_edges))).clip(max=num_nodes - 1)
    tails, heads = rng.permutation(num_nodes)[ends]
    return Adjacency.from_edges(tails, heads, num_nodes)


# Peers


def scipy_matrix(graph: Adjacency) -> Any:
    """The graph as SciPy wants it."""
    from scipy.sparse import csr_matrix

    ones = np.ones(graph.indices.size)
    return csr_matrix((ones, graph.indices, graph.indptr), shape=(graph.num_nodes, graph.num_nodes))


def scipy_dijkstra(graph: Adjacency) -> Answer:
    """scipy.sparse.csgraph.dijkstra(unweighted=True)."""
    from scipy.sparse.csgraph import dijkstra

    matrix = scipy_matrix(graph)

    def answer(sources: IntArray) -> Hops:
        hops = dijkstra(matrix, directed=True, unweighted=True, indices=sources)
        return np.where(np.isinf(hops), -1, hops).astype(np.int16).T

    return answer


def scipy_bfs_order(graph: Adjacency) -> Answer:
    """scipy.sparse.csgraph.breadth_first_order, and the depths from its predecessors in compiled code."""
    from scipy.sparse.csgraph import breadth_first_order

    matrix = scipy_matrix(graph)

    def answer(sources: IntArray) -> Hops:
        hops = np.full((graph.num_nodes, sources.size), -1, np.int16)
        for j, source in enumerate(sources):
            fill_depths(*breadth_first_order(matrix, source, directed=True), hops[:, j])
        return hops

    return answer


@njit(cache=True)
def fill_depths(order: npt.NDArray[np.int32], before: npt.NDArray[np.int32], depths: Hops) -> None:
    """A node is one deeper than its predecessor, which stands before it in the order."""
    depths[order[0]] = 0
    for v in order[1:]:
        depths[v] = depths[before[v]] + 1


def dense(encoder: AnchorEncoder, view: TensorView, choice: AnchorSet) -> torch.Tensor:
    """f2 for every node and anchor, the concatenation stored, f3 over it: ``[N, K, 2 R]``."""
    hops = torch.from_numpy(view.oracle.hops(choice.nodes.numpy())).float()
    proximity = torch.where(hops < 0, 0, 1 / (1 + hops.abs()))[..., None]  # [N, K, 1]
    weight = choice.weight[view.graph]  # [N, K]
    h = view.x
    for layer in encoder.layers:
        assert isinstance(layer, AnchorLayer)
        messages = f3(layer, torch.cat([layer.f2(proximity), h[:, None].expand(-1, hops.size(1), -1)], dim=2))
        if layer.scalar is None:
            pooled = (messages * weight[..., None]).sum(dim=1) / (weight != 0).sum(dim=1, keepdim=True)
            h = torch.relu(pooled)
        else:
            h = layer.scalar(messages)[..., 0] * weight
    return h


def f3(layer: AnchorLayer, concatenated: torch.Tensor) -> torch.Tensor:
    """The MLP over CAT(f2(d), h), with the weights of the layer put together again."""
    first = torch.cat([torch.as_tensor(layer.distance_part.weight), layer.node_part.weight], dim=1)
    hidden = torch.relu(torch.nn.functional.linear(concatenated, first, layer.node_part.bias))
    out: torch.Tensor = layer.out(hidden)  # type: ignore[misc]
    return out


# Measuring


def timed(work: Callable[[], Value]) -> tuple[float, Value]:
    """Seconds and result; the best of three, or of as many as take ten seconds together."""
    best, result, begun = float("inf"), None, time.perf_counter()
    for _ in range(3):
        start = time.perf_counter()
        result = None  # its memory is free for the next one
        result = work()
        best = min(best, time.perf_counter() - start)
        if time.perf_counter() - begun > 10:
            break
    return best, result  # type: ignore[return-value]


def machine() -> dict[str, Any]:
    """What the numbers depend on."""
    return {
        "cores": os.cpu_count(),
        "processor": platform.processor() or platform.machine(),
        "python": platform.python_version(),
        "torch": torch.__version__,
    }


def quick_benchmark(*, scale: float = 1.0, show_progress: bool = False) -> dict[str, Any]:
    """Seconds of ours and of others for the same work, and how many times as long the others take.

    ``rows`` hold ``what``, ``seconds``, ``peer``, ``peer_seconds`` and ``ratio``; every answer is compared with ours.
    ``scale`` shrinks the graphs.
    """
    side, count = max(int(300 * scale), 3), max(int(100_000 * scale**2), 20)
    graphs: dict[str, Callable[[], Adjacency]] = {
        f"grid {side}x{side}": lambda: grid(side, side),
        f"power law, {count} nodes": lambda: power_law(count, 10 * count),
    }
    rows: list[dict[str, Any]] = []
    with Bar("measuring", len(graphs) + 2, show=show_progress) as bar:
        for name, make in graphs.items():
            bar.update(len(rows) // 2, name)
            rows += _distances(name, make())
        bar.update(len(graphs), "position layers")
        rows.append(_layers(max(int(20 * scale), 3)))
        bar.update(len(graphs) + 1, "epochs")
        rows.append(_epochs(max(int(20 * scale), 4)))
    return {"machine": machine(), "rows": rows}


def _row(what: str, seconds: float, peer: str, peer_seconds: float) -> dict[str, Any]:
    return {
        "what": what, "seconds": seconds, "peer": peer, "peer_seconds": peer_seconds,
        "ratio": peer_seconds / seconds,
    }  # fmt: skip


def _distances(name: str, graph: Adjacency) -> list[dict[str, Any]]:
    sources = np.random.default_rng(0).choice(
        graph.num_nodes, min(SOURCES, graph.num_nodes - 1), replace=False
    )
    hop_columns(graph, sources[:2])  # compile, or load the compiled kernels
    seconds, expected = timed(lambda: hop_columns(graph, sources))
    rows = []
    some = sources[:PEER_SOURCES]
    peers = {"scipy breadth_first_order": scipy_bfs_order, "scipy dijkstra": scipy_dijkstra}
    for peer, make in peers.items():
        answer = make(graph)
        answer(some[:1])
        taken, hops = timed(partial(answer, some))
        _agree(np.array_equal(hops, expected[:, : some.size]), peer)
        rows.append(_row(f"distances, {name}", seconds, peer, taken * sources.size / some.size))
    return rows


def _layers(side: int) -> dict[str, Any]:
    """One step of a four-layer, 128-wide encoder."""
    view = view_of(load_dataset("grid", rows=side, cols=side))
    choice = RulePicker("farthest-first", "log^2")(view)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        encoder = AnchorEncoder(view.x.size(1), 128, 4)

    def step(form: Callable[[AnchorEncoder, TensorView, AnchorSet], torch.Tensor]) -> torch.Tensor:
        out = form(encoder, view, choice)
        out.square().mean().backward()  # type: ignore[no-untyped-call]
        return out.detach()

    step(_fused)  # compile
    seconds, ours = timed(lambda: step(_fused))
    taken, theirs = timed(lambda: step(dense))
    _agree(bool(torch.allclose(ours, theirs, rtol=1e-3, atol=1e-4)), "the dense form")
    return _row(f"a step of position layers, grid {side}x{side}", seconds, "the same, dense", taken)


def _fused(encoder: AnchorEncoder, view: TensorView, choice: AnchorSet) -> torch.Tensor:
    out: torch.Tensor = encoder(view, choice)
    return out


def _epochs(communities: int) -> dict[str, Any]:
    """One epoch of psgnn and of gcn, validation among them."""
    task = LinkPrediction(load_dataset("communities", communities=communities), seed=0)
    seconds = {}
    for name in ("psgnn", "gcn"):
        fit(build_model(name, task), task, epochs=1, device="cpu")  # compile
        start = time.perf_counter()
        fit(build_model(name, task), task, epochs=EPOCHS, device="cpu")
        seconds[name] = (time.perf_counter() - start) / EPOCHS
    what = f"an epoch of psgnn, {communities} communities of 20"
    return _row(what, seconds["psgnn"], "an epoch of gcn", seconds["gcn"])


def _agree(equal: bool, peer: str) -> None:
    if not equal:
        raise RuntimeError(f"{peer} disagrees with psgnn; please report it")
