"""Datasets by name, against networkx, PyG and the published counts."""

from __future__ import annotations

import gzip
import hashlib
import logging
import pickle
import shutil
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import psgnn.datasets
from psgnn.datasets import _real as planetoid_module
from psgnn.datasets import dataset_names, is_dataset, list_datasets, load_dataset
from psgnn.datasets._catalog import CATALOG, Copy, DataFile
from psgnn.errors import DataError, InputError
from psgnn.graph import Adjacency, Graph

# Files without a known checksum are nowhere to be had in a test.
UNCHECKED = [
    name for name, row in CATALOG.items() if any(c.unchecked for f in row.files.values() for c in f.copies)
]
REAL = [name for name, row in CATALOG.items() if row.kind == "real" and name not in UNCHECKED]


def edge_set(graph: Graph) -> set[tuple[int, int]]:
    return {(u, v) for u, v in graph.edges.T.tolist()}


def check_form(data: Graph) -> None:
    """What every graph of every dataset has to be."""
    edge_index = data.adjacency.edge_index()
    rows, cols = edge_index
    assert edge_index.dtype == np.int64
    assert not (rows == cols).any()
    keys = rows * data.num_nodes + cols
    assert (keys[1:] > keys[:-1]).all()  # sorted, and none twice
    assert np.array_equal(keys, np.sort(cols * data.num_nodes + rows))
    assert len(data.names) == len(set(data.names)) == data.num_nodes
    assert all(isinstance(name, str) for name in data.names[:5])
    if data.x is not None:
        assert data.x.dtype == np.float32
        assert data.x.shape[0] == data.num_nodes
        assert np.isfinite(data.x).all()
    if data.y is not None:
        assert data.y.dtype == np.int64
        assert data.y.shape == (data.num_nodes,)


@given(communities=st.integers(1, 7), size=st.integers(2, 7))
def test_communities_are_the_connected_cavemen_of_networkx(communities: int, size: int) -> None:
    [data] = load_dataset("communities", communities=communities, size=size)
    expected = nx.connected_caveman_graph(communities, size)
    assert data.num_nodes == expected.number_of_nodes()
    assert edge_set(data) == {(min(e), max(e)) for e in expected.edges}
    assert data.y.tolist() == [v // size for v in range(communities * size)]
    check_form(data)


def test_large_communities() -> None:
    [data] = load_dataset("communities", communities=64, size=64)
    assert (data.num_nodes, data.num_edges) == (4096, 64 * 63 * 32)


@given(rows=st.integers(1, 7), cols=st.integers(1, 7))
def test_grid_is_that_of_networkx(rows: int, cols: int) -> None:
    [data] = load_dataset("grid", rows=rows, cols=cols)
    expected = nx.grid_2d_graph(rows, cols)
    assert data.names == [f"{r},{c}" for r, c in expected.nodes]
    number = {node: node[0] * cols + node[1] for node in expected.nodes}
    assert edge_set(data) == {tuple(sorted((number[u], number[v]))) for u, v in expected.edges}
    check_form(data)


@pytest.mark.parametrize("name", ["communities", "grid", "bio-modules"])
def test_counts_of_synthetic_datasets(name: str) -> None:
    check_counts(name, load_dataset(name))


def check_counts(name: str, graphs: list[Graph]) -> None:
    row = CATALOG[name]
    assert len(graphs) == row.graphs
    assert sum(graph.num_nodes for graph in graphs) == row.nodes
    assert sum(graph.num_edges for graph in graphs) == row.edges
    labels = [graph.y for graph in graphs if graph.y is not None]
    assert (np.unique(np.concatenate(labels)).size if labels else 0) == row.classes


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("comunities", {}, "unknown dataset 'comunities'; did you mean 'communities'?"),
        ("seal/USAirr", {}, "did you mean 'seal/USAir'?"),
        ("", {}, "unknown dataset ''"),
        (
            "grid",
            {"row": 3},
            "unknown option of dataset 'grid' 'row'; did you mean 'rows'? (valid: cols, rows)",
        ),
        ("cora", {"rows": 3}, "dataset 'cora' takes no options, found 'rows'"),
        ("grid", {"rows": 0}, "option rows of dataset 'grid' must be a whole number >= 1, found 0"),
        ("grid", {"rows": "3"}, "must be a whole number >= 1, found '3'"),
        ("grid", {"cols": 2.0}, "must be a whole number >= 1, found 2.0"),
        ("grid", {"cols": True}, "must be a whole number >= 1, found True"),
        ("grid", {"rows": 10**6, "cols": 10**6}, "asks for about 2000000000000 edges"),
        ("communities", {"size": 1}, "must be a whole number >= 2, found 1"),
        ("communities", {"size": 10**5}, "at most 100000000 are built"),
        ("protein", {"attributes": 1}, "must be True or False, found 1"),
        ("erdos-renyi", {"seed": -1}, "must be a whole number >= 0, found -1"),
        (
            "bio-modules",
            {"seed": 1},
            "unknown option of dataset 'bio-modules' 'seed' (valid: join, networks)",
        ),
        (
            "bio-modules",
            {"networks": 41},
            "networks=41: psgnn holds 40 gene networks; simulate more from a checkout with: "
            "psgnn-lab biomodules --networks 41",
        ),
        ("bio-modules", {"join": 3}, "networks=40 cannot be joined by 3"),
    ],
)
def test_wrong_names_and_options(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as error:
        load_dataset(name, **options)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_numpy_integers_are_whole_numbers() -> None:
    assert load_dataset("grid", rows=np.int64(2), cols=np.int32(3))[0].num_nodes == 6


def test_root_must_be_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name in ("cora", "grid"):
        with pytest.raises(InputError, match="file is not a folder"):
            load_dataset(name, tmp_path / "file")


def test_names_are_found_in_any_case(shared_data: Path) -> None:
    assert is_dataset("SEAL/usair")
    assert not is_dataset("seal")
    assert load_dataset("Seal/uSAIR", shared_data)[0].num_nodes == 332


def test_listing_imports_no_torch() -> None:
    code = (
        "import sys; from psgnn.datasets import list_datasets; list_datasets(); "
        "print(sorted({'torch', 'numba', 'scipy', 'polars'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_listing_says_what_is_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shared_data: Path
) -> None:
    monkeypatch.delenv("PSGNN_DATA")
    monkeypatch.setenv("PSGNN_CACHE", str(tmp_path / "cache"))
    rows = {row["name"]: row for row in list_datasets(tmp_path / "root")}
    assert list(rows) == dataset_names()
    assert rows["grid"]["where"] == "built in"
    assert rows["email"]["where"] == "not here: downloads 0.2 MB"
    assert rows["protein"]["where"] == "not here: downloads on first use"
    assert rows["ogbl-ddi"]["where"].startswith("not here: see https://ogb.stanford.edu")
    assert rows["grid"]["features"] is None
    assert rows["bio-modules"]["options"] == {"networks": 40, "join": 1}

    (tmp_path / "root/seal").mkdir(parents=True)
    shutil.copy(shared_data / "seal/Power.mat", tmp_path / "root/seal")
    monkeypatch.setenv("PSGNN_DATA", str(shared_data))
    rows = {row["name"]: row for row in list_datasets(tmp_path / "root")}
    assert rows["seal/Power"]["where"] == str(tmp_path / "root/seal")
    assert rows["seal/Router"]["where"] == str(shared_data / "seal")
    if not (shared_data / "planetoid/raw/ind.pubmed.allx").exists():
        assert rows["pubmed"]["where"] == f"{shared_data / 'planetoid/raw'} (without features)"


@pytest.fixture
def no_pubmed_features(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """PubMed's feature file at an address that does not answer."""
    nowhere = DataFile((Copy("nowhere", git_sha1="0", url=(tmp_path / "none").as_uri()),), "the page")
    row = replace(CATALOG["pubmed"], extras={"features": nowhere})
    monkeypatch.setitem(CATALOG, "pubmed", row)


@pytest.mark.usefixtures("no_pubmed_features")
@pytest.mark.parametrize("name", REAL)
def test_counts_and_form_of_real_datasets(name: str, shared_data: Path) -> None:
    graphs = load_dataset(name, shared_data)
    check_counts(name, graphs)
    for graph in graphs:
        check_form(graph)
    if name != "pubmed":
        found = 0 if graphs[0].x is None else graphs[0].x.shape[1]
        assert found == CATALOG[name].features


def test_email_is_that_of_pgnn(shared_data: Path) -> None:
    """Departments 6k..6k+5 together; edges inside; components of more than ten."""
    whole = nx.read_edgelist(shared_data / "email-eu-core/email.txt", nodetype=int)
    lines = (shared_data / "email-eu-core/email_labels.txt").read_text().split("\n")
    department = {int(v): int(d) for v, d in (line.split() for line in lines if line)}
    whole.remove_edges_from([(u, v) for u, v in whole.edges if department[u] // 6 != department[v] // 6])
    expected = [whole.subgraph(c) for c in nx.connected_components(whole) if len(c) > 10]
    graphs = load_dataset("email", shared_data)
    assert len(graphs) == len(expected) == 7
    by_group = {department[min(part)] // 6: part for part in expected}
    for k, graph in enumerate(graphs):
        names = [int(name) for name in graph.names]
        assert set(names) == set(by_group[k])
        assert graph.y.tolist() == [department[v] for v in names]
        found = {frozenset((names[u], names[v])) for u, v in edge_set(graph)}
        assert found == {frozenset(e) for e in by_group[k].edges if e[0] != e[1]}


def test_protein_is_that_of_pyg(shared_data: Path, tmp_path: Path) -> None:
    for path in (shared_data / "proteins_full").glob("PROTEINS_full_*"):
        content = path.read_bytes()
        packed = path.suffix == ".gz"
        (tmp_path / (path.stem if packed else path.name)).write_bytes(
            gzip.decompress(content) if packed else content
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch_geometric.io import read_tu_data

        theirs, slices, _ = read_tu_data(str(tmp_path), "PROTEINS_full")
    ours = load_dataset("protein", shared_data)
    table = theirs.x[:, :29].double().numpy()
    scaled = (table - table.mean(axis=0)) / table.std(axis=0)
    assert np.allclose(np.concatenate([graph.x for graph in ours]), scaled, atol=1e-4)
    assert np.array_equal(np.concatenate([graph.y for graph in ours]), theirs.x[:, 29:].argmax(dim=1).numpy())
    assert [graph.num_nodes for graph in ours] == slices["x"].diff().tolist()
    for g in (0, 1, 500, 1112):
        first, last = slices["edge_index"][g : g + 2]
        order = Adjacency.from_edge_index(theirs.edge_index[:, first:last], ours[g].num_nodes)
        assert np.array_equal(ours[g].edges, order.edges())
    plain = load_dataset("protein", shared_data, attributes=False)
    assert all(graph.x is None for graph in plain)
    assert all(np.array_equal(a.edges, b.edges) for a, b in zip(ours, plain, strict=True))
    assert ours[1].names[0] == str(ours[0].num_nodes + 1)


@pytest.mark.parametrize(("name", "theirs"), [("cora", "Cora"), ("citeseer", "CiteSeer")])
def test_citations_are_those_of_pyg(name: str, theirs: str, shared_data: Path, tmp_path: Path) -> None:
    (tmp_path / theirs).mkdir()
    (tmp_path / theirs / "raw").symlink_to(shared_data / "planetoid/raw")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch_geometric.datasets import Planetoid

        expected = Planetoid(str(tmp_path), theirs)[0]
    [data] = load_dataset(name, shared_data)
    assert np.array_equal(data.x, expected.x.numpy())
    assert np.array_equal(data.y, expected.y.numpy())
    order = Adjacency.from_edge_index(expected.edge_index, data.num_nodes)
    assert np.array_equal(data.edges, order.edges())


@pytest.mark.usefixtures("no_pubmed_features")
def test_pubmed_without_features(shared_data: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "psgnn"):
        [data] = load_dataset("pubmed", shared_data)
    assert data.x is None
    assert "PubMed is loaded without features" in caplog.text
    assert np.bincount(data.y).tolist() == [4103, 7739, 7875]


def test_pubmed_with_features(shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows of the feature file stand first, those of the test nodes where test.index puts them."""
    import scipy.sparse

    rows = scipy.sparse.random_array((18717, 500), density=0.01, rng=np.random.default_rng(0)).tocsr()
    monkeypatch.setattr(planetoid_module, "_features", lambda *_: rows)
    [data] = load_dataset("pubmed", shared_data)
    assert np.array_equal(data.x[:18717], rows.toarray().astype(np.float32))
    tests = np.loadtxt(shared_data / "planetoid/raw/ind.pubmed.test.index", dtype=int)
    published = planetoid_module.unpickle((shared_data / "planetoid/raw/ind.pubmed.tx").read_bytes())
    assert np.array_equal(data.x[tests], published.toarray().astype(np.float32))


class Touch:
    """A pickle that makes a file when it is opened."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, tuple[Path]]:
        return Path.touch, (self.path,)


def test_a_hostile_pickle_is_refused(tmp_path: Path) -> None:
    victim = tmp_path / "made by the pickle"
    content = pickle.dumps(Touch(victim))
    with pytest.raises(DataError, match="not allowed"):
        planetoid_module.unpickle(content)
    pickle.loads(content)
    assert victim.exists()  # the pickle does what it says, so the refusal above means something


def test_a_pickle_is_checked_before_it_is_opened(
    tmp_path: Path, shared_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = tmp_path / "planetoid/raw"
    shutil.copytree(shared_data / "planetoid/raw", raw, copy_function=shutil.copyfile)
    (raw / "ind.cora.graph").write_bytes(b"something else")
    monkeypatch.setattr(planetoid_module, "unpickle", lambda _: pytest.fail("opened"))
    with pytest.raises(DataError) as error:
        load_dataset("cora", tmp_path)
    assert hashlib.sha256(b"something else").hexdigest() in str(error.value)
    assert str(raw / "ind.cora.graph") in str(error.value)
    assert "58f13302f39dde8852dad6fe6d15b89b077b6d7f837626bce671ef80344b383d" in str(error.value)


def test_ogbl_ddi_has_the_official_split(shared_data: Path) -> None:
    [data] = load_dataset("ogbl-ddi", shared_data)
    sizes = {"valid_edge": 133489, "valid_edge_neg": 101882, "test_edge": 133489, "test_edge_neg": 95599}
    in_training = data.to_scipy().toarray() > 0
    assert set(data.split) == set(sizes)
    for name, size in sizes.items():
        pairs = data.split[name]
        assert pairs.dtype == np.int64
        assert pairs.shape == (2, size)
        assert not in_training[pairs[0], pairs[1]].any()
    assert data.names[:2] == ["DB00001", "DB00002"]


def test_the_groups_of_seal_are_no_classes(shared_data: Path) -> None:
    """A node of its file is in several groups; a graph has one class a node, or none."""
    [data] = load_dataset("seal/ppi_subgraph", shared_data)
    assert data.num_nodes == 3890
    assert data.y is None


def test_every_dataset_is_in_the_catalogue() -> None:
    assert len(psgnn.datasets.dataset_names()) == 10 + 8 + 7 + 5 + 1 + 8 + 1 + 3
