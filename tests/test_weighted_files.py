"""Lengths from a column of a file or table, all the way to distances."""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import numpy as np
import polars as pl
import pytest

import psgnn
from conftest import Command
from psgnn.distances import pair_distances
from psgnn.errors import InputError

ROADS = """id,from,to,km
1,a,b,3
2,b,c,1.5
3,c,b,4
4,a,c,9
5,d,e,2
6,b,b,1
"""


def roads(tmp_path: Path) -> Path:
    path = tmp_path / "roads.csv"
    path.write_text(ROADS)
    return path


def test_distances_are_sums_of_the_lengths_of_a_column(tmp_path: Path) -> None:
    graph = psgnn.read_graph(roads(tmp_path), source="from", target="to", weight="km", weight_is="length")
    assert graph.to_polars().rows() == [("a", "b", 3), ("a", "c", 9), ("b", "c", 1.5), ("d", "e", 2)]
    far = psgnn.shortest_distances(graph, [0])
    assert far.dtype == np.float32
    assert far[:, 0].tolist() == [0, 3, 4.5, -1, -1]
    assert "distances are sums of 'km'" in str(graph.reading)


def test_lengths_agree_with_networkx(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    table = pl.DataFrame(
        {"u": rng.integers(0, 60, 150), "v": rng.integers(0, 60, 150), "metres": rng.uniform(1, 9, 150)}
    )
    expected = nx.Graph()
    for u, v, length in table.rows():
        if u != v and length < expected.get_edge_data(u, v, {"length": np.inf})["length"]:
            expected.add_edge(u, v, length=length)
    graph = psgnn.read_graph(table, weight="metres", weight_is="length")
    pairs = [(str(u), str(v)) for u in list(expected)[:9] for v in list(expected)[9:30]]
    found = pair_distances(graph, pairs)["length"].to_list()
    for (u, v), length in zip(pairs, found, strict=True):
        if length is None:
            assert not nx.has_path(expected, int(u), int(v))
        else:
            assert length == pytest.approx(nx.shortest_path_length(expected, int(u), int(v), weight="length"))


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_the_command_measures_lengths(run: Command, tmp_path: Path, suffix: str) -> None:
    path = roads(tmp_path)
    if suffix == "parquet":
        path = tmp_path / "roads.parquet"
        pl.read_csv(roads(tmp_path)).write_parquet(path)
    (tmp_path / "trips.csv").write_text("c,a\na,e\n")
    asked = [path, "--source", "from", "--target", "to", "--weight", "km", "--weight-is", "length"]
    code, out, _ = run("distances", *asked, "--pairs", tmp_path / "trips.csv")
    assert code == 0
    assert "4.50" in out
    (tmp_path / "anchors.txt").write_text("b\n")
    anchors = ["--anchor-file", tmp_path / "anchors.txt"]
    code, out, _ = run("distances", *asked, *anchors, "-o", tmp_path / "far.csv")
    assert (code, out) == (
        0,
        f"lengths of the shortest paths of 5 nodes to 1 anchors are in {tmp_path / 'far.csv'}\n",
    )
    assert pl.read_csv(tmp_path / "far.csv")["to_b"].to_list() == [3, 0, 1.5, -1, -1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--weight", "kms", "--weight-is", "length"), "has no column 'kms'; did you mean 'km'?"),
        (
            ("--weight", "km"),
            "--weight-is says what the weights are; it takes length or strength, found nothing",
        ),
        (("--weight", "km", "--weight-is", "size"), "it takes length or strength, found 'size'"),
        (("--weight-is", "length"), "--weight-is goes with --weight COLUMN"),
        (("--weight", "to", "--weight-is", "length"), "column 'to' holds nodes"),
        (("--cutoff", "1.5"), "--cutoff takes whole hops from 1 on, found 1.5"),
    ],
)
def test_wrong_weights_are_one_line(
    run: Command, tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    code, out, err = run(
        "distances",
        roads(tmp_path),
        "--source",
        "from",
        "--target",
        "to",
        *options,
        "-o",
        tmp_path / "far.csv",
    )
    assert (code, out) == (2, "")
    assert message in err
    assert not (tmp_path / "far.csv").exists()


@pytest.mark.parametrize("length", ["0", "-1", "nan", "x", ""])
def test_a_length_that_is_none_is_refused_with_its_line(tmp_path: Path, length: str) -> None:
    path = tmp_path / "roads.csv"
    path.write_text(f"from,to,km\na,b,1\nb,c,{length}\n")
    with pytest.raises(InputError, match="line 3"):
        psgnn.read_graph(path, weight="km", weight_is="length")


def test_hidden_links_take_their_lengths_along() -> None:
    """A task hides edges; those that are left keep the lengths that they had."""
    rng = np.random.default_rng(0)
    table = pl.DataFrame(
        {"u": rng.integers(0, 30, 90), "v": rng.integers(0, 30, 90), "km": rng.random(90) + 0.5}
    )
    graph = psgnn.read_graph(table.filter(pl.col("u") != pl.col("v")), weight="km", weight_is="length")
    (seen,) = psgnn.LinkPrediction([graph]).graphs
    assert graph.lengths is not None
    assert seen.lengths is not None
    assert seen.num_edges < graph.num_edges
    lengths = dict(zip(map(tuple, graph.edges.T.tolist()), graph.lengths.tolist(), strict=True))
    assert seen.lengths.tolist() == [lengths[u, v] for u, v in seen.edges.T.tolist()]
    assert psgnn.shortest_distances(seen, [0]).dtype == np.float32
