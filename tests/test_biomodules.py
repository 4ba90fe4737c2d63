"""The gene-network simulator against naive re-statements of the model."""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from psgnn.datasets import _biomodules as biomodules
from psgnn.datasets import _biomodules_kernels as kernels
from psgnn.datasets import load_dataset
from psgnn.errors import InputError

SMALL = {"networks": 4, "generations": 40}
# Wired inside its modules only, and as robust as such a network can be.
MODULAR = np.zeros((10, 10), np.int8)
MODULAR[:5, :5] = [
    [1, -1, 0, 0, 1],
    [-1, 0, -1, 0, -1],
    [0, 0, -1, -1, 0],
    [-1, 1, -1, 0, -1],
    [-1, 1, 1, 1, 0],
]
MODULAR[5:, 5:] = [
    [0, 0, 1, -1, 1],
    [-1, 1, 0, 0, -1],
    [0, -1, 0, -1, 1],
    [-1, 1, 0, 1, -1],
    [1, 0, 0, -1, 1],
]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own for every test."""
    monkeypatch.setenv("PSGNN_CACHE", str(tmp_path))
    return tmp_path


def random_networks(count: int, edges: int) -> list[np.ndarray]:
    rng = np.random.default_rng(edges)
    networks = []
    for _ in range(count):
        network = np.zeros(100, np.int8)
        network[rng.choice(100, edges, replace=False)] = rng.choice([-1, 1], edges)
        networks.append(network.reshape(10, 10))
    return networks


def naive_step(network: np.ndarray, state: list[int]) -> list[int]:
    """s_i(t+1) = +1 if sum_j A[j, i] s_j(t) > 0 else -1."""
    return [1 if sum(int(network[j, i]) * state[j] for j in range(10)) > 0 else -1 for i in range(10)]


def naive_fitness(network: np.ndarray, p: float = 0.15, cap: int = 20) -> float:
    states = [[1 if number >> i & 1 else -1 for i in range(10)] for number in range(1024)]
    index = {tuple(state): number for number, state in enumerate(states)}
    step = [index[tuple(naive_step(network, state))] for state in states]
    scores = []
    for pattern in ("+-+-+-+-+-", "+-+-++-+-+"):
        target = [1 if sign == "+" else -1 for sign in pattern]
        distance = [sum(a != b for a, b in zip(state, target, strict=True)) for state in states]
        g = 0.0
        for start in range(1024):
            end = start
            for _ in range(cap):
                end = step[end]
            if step[end] == end:
                weight = p ** distance[start] * (1 - p) ** (10 - distance[start])
                g += weight * (1 - distance[end] / 10) ** 5
        scores.append(1 - np.exp(-3 * g))
    return float(np.mean(scores))


@pytest.mark.parametrize("edges", [0, 8, 20, 35, 100])
def test_successors_follow_the_update_rule(edges: int) -> None:
    out = np.empty(1024, np.uint16)
    for network in random_networks(3, edges):
        kernels.successors(network, out)
        for number in range(0, 1024, 17):
            state = [1 if number >> i & 1 else -1 for i in range(10)]
            expected = sum(1 << i for i, sign in enumerate(naive_step(network, state)) if sign > 0)
            assert out[number] == expected


@pytest.mark.parametrize("network", [MODULAR, *random_networks(3, 20), *random_networks(2, 40)])
def test_fitness_is_the_expectation_over_all_starts(network: np.ndarray) -> None:
    assert biomodules.fitness(network) == pytest.approx(naive_fitness(network), rel=1e-12)


def test_fitness_of_known_networks() -> None:
    # the value that all published perfectly modular networks share
    assert biomodules.fitness(MODULAR) == pytest.approx(0.9462095447, abs=5e-11)
    # majority votes inside each module: right, or the whole module inverted, with a closed form
    target = np.array([1, -1, 1, -1, 1, -1, 1, -1, 1, -1], np.int8)
    votes = np.outer(target, target)
    votes[:5, 5:] = votes[5:, :5] = 0
    right = sum(n * 0.15**k * 0.85 ** (5 - k) for k, n in enumerate([1, 5, 10]))
    g = right**2 + 2 * right * (1 - right) * 0.5**5
    assert biomodules.fitness(votes) == pytest.approx(1 - np.exp(-3 * g), rel=1e-12)
    # no interaction at all: every gene falls silent, wrong for five genes of one target and six of the other
    silent = np.mean([1 - np.exp(-3 * 0.5**5), 1 - np.exp(-3 * 0.4**5)])
    assert biomodules.fitness(np.zeros((10, 10))) == pytest.approx(silent, rel=1e-12)


def test_mutation_changes_one_entry_a_gene_and_holds_the_density() -> None:
    rng = np.random.default_rng(0)
    network = random_networks(1, 20)[0]
    counts, changes = [], 0
    for _ in range(10_000):
        before = network.copy()
        kernels.mutate(network, rng)
        differences = (before != network).sum(axis=0)
        assert differences.max() <= 1
        assert not (before * network == -1).any()  # signs never flip: an entry is lost or gained
        changes += int(differences.sum())
        counts.append(np.count_nonzero(network))
    assert changes / 10_000 / 10 == pytest.approx(0.05, abs=0.003)
    # gains and losses at odds (10 - r) : 4r make P(r) a Binomial(10, 1/5) weighted by 10 + 3r, of mean 2.3
    assert np.mean(counts) / 10 == pytest.approx(2.3, abs=0.1)


@pytest.mark.parametrize("kind", [kernels.HORIZONTAL, kernels.DIAGONAL])
def test_crossover_exchanges_what_it_says(kind: int) -> None:
    rng = np.random.default_rng(1)
    masks = set()
    for _ in range(200):
        one, other = np.zeros((10, 10), np.int8), np.ones((10, 10), np.int8)
        kernels.cross(kind, one, other, rng)
        assert (one + other == 1).all()
        masks.add(one.tobytes())
    cuts = [np.repeat(np.arange(10) >= c, 10).astype(np.int8).tobytes() for c in range(1, 10)]
    blocks = [
        np.kron(np.diag(corner), np.ones((5, 5), np.int8)).astype(np.int8) for corner in ([1, 0], [0, 1])
    ]
    assert masks == (set(cuts) if kind == kernels.HORIZONTAL else {block.tobytes() for block in blocks})


def test_selection_prefers_the_fit() -> None:
    rng = np.random.default_rng(2)
    picks = np.bincount(
        [kernels.spin(np.cumsum([0.1, 0.0, 0.6, 0.3]), rng) for _ in range(5_000)], minlength=4
    )
    assert picks / 5_000 == pytest.approx([0.1, 0.0, 0.6, 0.3], abs=0.03)


@pytest.mark.parametrize("crossover", ["none", "horizontal", "diagonal"])
def test_evolution_raises_fitness(crossover: str) -> None:
    first = [biomodules.fitness(network) for network in biomodules.simulate(4, 1, crossover, 0)]
    later = [biomodules.fitness(network) for network in biomodules.simulate(4, 150, crossover, 0)]
    assert np.mean(later) > np.mean(first) + 0.2


def test_simulation_is_reproducible(monkeypatch: pytest.MonkeyPatch) -> None:
    networks = biomodules.simulate(5, 30, "horizontal", 3)
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    assert np.array_equal(networks, biomodules.simulate(5, 30, "horizontal", 3))
    assert np.array_equal(networks[:2], biomodules.simulate(2, 30, "horizontal", 3))
    assert not np.array_equal(networks[0], networks[1])
    assert not np.array_equal(networks, biomodules.simulate(5, 30, "horizontal", 4))
    digest = hashlib.sha256(networks.tobytes()).hexdigest()[:16]
    assert digest == "d5a067f0a529de2f", (
        "the simulator draws otherwise: raise VERSION, and count the catalogue's edges anew"
    )


def test_graphs_have_the_edges_features_and_modules_of_the_networks() -> None:
    graphs = load_dataset("bio-modules", **SMALL)
    matrices = biomodules.simulate(4, 40, "horizontal", 0)
    assert len(graphs) == 4
    for graph, matrix in zip(graphs, matrices, strict=True):
        linked = (matrix != 0) | (matrix.T != 0)
        np.fill_diagonal(linked, False)
        assert np.array_equal(graph.adjacency.edge_index(), np.stack(np.nonzero(linked)))
        assert graph.y.tolist() == [0] * 5 + [1] * 5
        assert graph.x[:, 0].tolist() == [1, 0] * 5
        assert np.array_equal(graph.x.sum(axis=1), np.ones(10))
    assert graphs[1].names[3] == "network1/gene3"


def test_modularity_is_that_of_networkx() -> None:
    for graph in [*load_dataset("bio-modules", **SMALL), *load_dataset("communities")]:
        sets = [{graph.names[v] for v in np.flatnonzero(graph.y == c)} for c in np.unique(graph.y)]
        expected = nx.community.modularity(graph.to_networkx(), sets)
        assert biomodules.modularity(graph) == pytest.approx(expected)


def test_joined_networks_keep_their_wiring() -> None:
    alone = load_dataset("bio-modules", **SMALL)
    joined = load_dataset("bio-modules", **SMALL, join=2)
    assert [graph.num_nodes for graph in joined] == [20, 20]
    for g, graph in enumerate(joined):
        assert graph.y.tolist() == np.repeat(np.arange(4), 5).tolist()
        rows, cols = graph.edges
        inside = rows // 10 == cols // 10
        parts = np.concatenate([alone[2 * g].edges, alone[2 * g + 1].edges + 10], axis=1)
        assert np.array_equal(graph.edges[:, inside], parts)
        assert 1 <= int((~inside).sum()) <= biomodules.BRIDGES
    again = load_dataset("bio-modules", **SMALL, join=2)
    assert all(np.array_equal(a.edges, b.edges) for a, b in zip(joined, again, strict=True))
    with pytest.raises(InputError, match="networks=4 cannot be joined by 3"):
        load_dataset("bio-modules", **SMALL, join=3)


def test_networks_are_simulated_once(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = load_dataset("bio-modules", **SMALL)
    with monkeypatch.context() as patch:
        patch.setattr(biomodules, "simulate", lambda *_: pytest.fail("simulated again"))
        second = load_dataset("bio-modules", **SMALL)
    assert all(np.array_equal(a.edges, b.edges) for a, b in zip(first, second, strict=True))
    other = load_dataset("bio-modules", **SMALL, seed=1)
    assert not all(np.array_equal(a.edges, b.edges) for a, b in zip(first, other, strict=True))
    assert len(list(cache.rglob("*"))) == 3  # the folder and two files, no temporary one


@pytest.mark.parametrize("damage", ["empty", "half", "flipped", "text", "array", "shape"])
def test_damaged_cache_is_rebuilt(cache: Path, damage: str, caplog: pytest.LogCaptureFixture) -> None:
    first = load_dataset("bio-modules", **SMALL)
    [path] = (cache / "bio-modules").iterdir()
    content = path.read_bytes()
    middle = len(content) // 2
    if damage == "shape":
        np.savez(path, networks=np.zeros((1, 10, 10), np.int8))
    elif damage == "array":
        with path.open("wb") as out:
            np.save(out, np.zeros(3))
    else:
        flipped = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
        damaged = {"empty": b"", "half": content[:middle], "flipped": flipped, "text": b"networks"}
        path.write_bytes(damaged[damage])
    with caplog.at_level(logging.WARNING, "psgnn"):
        second = load_dataset("bio-modules", **SMALL)
    assert "simulating again" in caplog.text
    assert all(np.array_equal(a.edges, b.edges) for a, b in zip(first, second, strict=True))
    assert path.read_bytes() == content


def test_a_cache_that_cannot_be_written_only_warns(cache: Path, caplog: pytest.LogCaptureFixture) -> None:
    (cache / "bio-modules").write_text("a file where the folder should be")
    with caplog.at_level(logging.WARNING, "psgnn"):
        assert len(load_dataset("bio-modules", networks=1, generations=1)) == 1
    assert "cannot cache" in caplog.text
