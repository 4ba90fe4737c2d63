"""The gene-network simulator against naive re-statements of the model."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from conftest import Command
from psgnn.datasets import load_dataset
from psgnn.datasets._synthetic import BRIDGES, network_graphs, stored_networks
from psgnn.errors import InputError
from psgnn.graph import Graph
from psgnn_lab import biomodules
from psgnn_lab import biomodules_kernels as kernels
from psgnn_lab.manifest import load_manifest
from psgnn_lab.plan import plan

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
        "the simulator draws otherwise: the networks in the package are no longer what it gives"
    )


def digest_of(graphs: list[Graph]) -> str:
    """Of everything that a loader gives: edges, features, classes and names, with their types."""
    sums = hashlib.sha256()
    for graph in graphs:
        for array in (graph.adjacency.indptr, graph.adjacency.indices, graph.x, graph.y):
            sums.update(str(array.dtype).encode() + array.tobytes())
        sums.update("\n".join(graph.names).encode())
    return sums.hexdigest()


@pytest.mark.parametrize(
    ("join", "digest"),
    [
        (1, "a7264c010b9f2569f228e858a07287a3a0edf63ee6f129606c21c54f2f2534f0"),
        (2, "b85179dd12a98f03ff7c14809b3893c69253cbb2643e82cc43ebd904e6e01544"),
        (8, "04bf4637cc30f1725bbc5d806ca388935cf5293d3a065293f1da11ef64885c7f"),
    ],
)
def test_graphs_are_those_that_the_package_used_to_simulate(join: int, digest: str) -> None:
    assert digest_of(load_dataset("bio-modules", join=join)) == digest


def test_the_networks_in_the_package_are_what_the_simulator_gives() -> None:
    assert np.array_equal(biomodules.simulate(3), stored_networks()[:3])


def test_the_ids_of_recorded_runs_stay() -> None:
    folder = Path(__file__).parents[1] / "lab/experiments"
    runs = plan(load_manifest("accuracy", folder), only=["bio-modules-link"], methods=["psgnn"])
    recorded = json.loads((folder / "records/bio-modules-link/psgnn.json").read_text())
    assert {run.id for run in runs if run.method.name == "psgnn"} == {record["id"] for record in recorded}


def test_graphs_have_the_edges_features_and_modules_of_the_networks() -> None:
    graphs = load_dataset("bio-modules", networks=4)
    assert len(graphs) == 4
    for graph, matrix in zip(graphs, stored_networks(), strict=False):
        linked = (matrix != 0) | (matrix.T != 0)
        np.fill_diagonal(linked, False)
        assert np.array_equal(graph.adjacency.edge_index(), np.stack(np.nonzero(linked)))
        assert graph.y.tolist() == [0] * 5 + [1] * 5
        assert graph.x[:, 0].tolist() == kernels.TARGETS[0].tolist() == [1, 0] * 5
        assert np.array_equal(graph.x.sum(axis=1), np.ones(10))
    assert graphs[1].names[3] == "network1/gene3"


def test_modularity_is_that_of_networkx() -> None:
    for graph in [*load_dataset("bio-modules", networks=4), *load_dataset("communities")]:
        sets = [{graph.names[v] for v in np.flatnonzero(graph.y == c)} for c in np.unique(graph.y)]
        expected = nx.community.modularity(graph.to_networkx(), sets)
        assert biomodules.modularity(graph) == pytest.approx(expected)


def test_joined_networks_keep_their_wiring() -> None:
    alone = load_dataset("bio-modules", networks=4)
    joined = load_dataset("bio-modules", networks=4, join=2)
    assert [graph.num_nodes for graph in joined] == [20, 20]
    for g, graph in enumerate(joined):
        assert graph.y.tolist() == np.repeat(np.arange(4), 5).tolist()
        rows, cols = graph.edges
        inside = rows // 10 == cols // 10
        parts = np.concatenate([alone[2 * g].edges, alone[2 * g + 1].edges + 10], axis=1)
        assert np.array_equal(graph.edges[:, inside], parts)
        assert 1 <= int((~inside).sum()) <= BRIDGES
    assert digest_of(load_dataset("bio-modules", networks=4, join=2)) == digest_of(joined)
    assert digest_of(network_graphs(stored_networks()[:4], 2, seed=1)) != digest_of(joined)
    with pytest.raises(InputError, match="networks=4 cannot be joined by 3"):
        load_dataset("bio-modules", networks=4, join=3)


def test_the_command_writes_networks(run: Command, tmp_path: Path) -> None:
    code, out, err = run("biomodules", "-o", "made.npz", "--networks", 2, "--generations", 30, "--seed", 3)
    assert (code, out, err) == (0, "wrote 2 networks to made.npz\n", "")
    with np.load(tmp_path / "made.npz") as stored:
        assert np.array_equal(stored["networks"], biomodules.simulate(2, 30, "horizontal", 3))
    for arguments, message in (
        (("-o", "made.npz"), "made.npz exists; pass --force"),
        (("-o", "made.csv"), "the format is one of .npz"),
        (("--crossover", "diag"), "did you mean 'diagonal'?"),
        (("--check", "--seed", 1), "it goes without --generations, --crossover and --seed"),
        (("--check", "--networks", 41), "at most 40 networks"),
    ):
        code, out, err = run("biomodules", *arguments)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert message in err


def test_the_command_compares_with_the_package(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, _ = run("biomodules", "--networks", 2, "--check", "--json")
    assert (code, json.loads(out)) == (0, {"out": "bio-modules.npz", "networks": 2, "equal": True})
    monkeypatch.setattr(biomodules, "simulate", lambda *_, **__: np.zeros((2, 10, 10), np.int8))
    code, out, _ = run("biomodules", "--networks", 2, "--check", "--force")
    assert (code, out.splitlines()[1]) == (1, "they differ from those in psgnn")
