"""Whether the first line of a file is a header: by its look, and by the option that decides."""

from __future__ import annotations

import csv
import gzip
import io
import logging
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from psgnn import Graph
from psgnn.cli import app
from psgnn.errors import InputError
from psgnn.graph._read import read_graph, read_labels, read_pairs

SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": " ", ".csv.gz": ",", ".tsv.gz": "\t", ".txt.gz": " "}
CYCLE = [(f"n{i}", f"n{(i + 1) % 12}") for i in range(12)]


def write(
    path: Path, rows: list[tuple[str, ...]], separator: str = ",", quoting: int = csv.QUOTE_ALL
) -> Path:
    text = io.StringIO()
    csv.writer(text, delimiter=separator, quoting=quoting, lineterminator="\n").writerows(rows)  # type: ignore[arg-type]
    content = text.getvalue().encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def edges_of(graph: Graph) -> set[frozenset[str]]:
    names = graph.names
    return {frozenset((names[u], names[v])) for u, v in graph.edges.T.tolist()}


def notes(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if "first line" in record.getMessage()]


# Properties

names = st.lists(st.sampled_from(["b", "é", ",", ";", '"', "'", "#", "%", "7", "-", "\n"]), max_size=4).map(
    lambda parts: f"n{''.join(parts)}m"
)
pairs_of_names = st.lists(st.tuples(names, names), max_size=8).map(lambda edges: [*edges, ("n0", "n1")])
ids = st.integers(0, 10**12).map(str)
pairs_of_ids = st.lists(st.tuples(ids, ids), max_size=8).map(lambda edges: [*edges, ("3", "4")])
words = st.text("abcé_ ", max_size=6).map(lambda tail: f"w{tail}d")


@settings(max_examples=150, deadline=None)
@given(
    edges=pairs_of_names,
    header=st.none() | st.tuples(names, names),
    suffix=st.sampled_from([".csv", ".txt", ".csv.gz", ".edges"]),
)
def test_the_option_decides(
    tmp_path_factory: pytest.TempPathFactory,
    edges: list[tuple[str, str]],
    header: tuple[str, str] | None,
    suffix: str,
) -> None:
    rows = [header, *edges] if header else edges
    path = write(tmp_path_factory.getbasetemp() / f"option{suffix}", rows)
    data = read_graph(path, header=header is not None)
    assert edges_of(data) == {frozenset(edge) for edge in edges if edge[0] != edge[1]}
    assert set(data.names) == {name for edge in edges for name in edge}
    assert data.reading.read == len(edges)


@settings(max_examples=100, deadline=None)
@given(
    edges=pairs_of_ids,
    header=st.none() | st.tuples(words, words),
    suffix=st.sampled_from(sorted(SEPARATORS)),
    quoting=st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]),
)
def test_numbers_need_no_option(
    tmp_path_factory: pytest.TempPathFactory,
    edges: list[tuple[str, str]],
    header: tuple[str, str] | None,
    suffix: str,
    quoting: int,
) -> None:
    """A header of text above numbers is found, and without one no edge is lost."""
    rows = [header, *edges] if header else edges
    path = write(tmp_path_factory.getbasetemp() / f"ids{suffix}", rows, SEPARATORS[suffix], quoting)
    data = read_graph(path)
    assert edges_of(data) == {frozenset(edge) for edge in edges if edge[0] != edge[1]}
    assert set(data.names) == {name for edge in edges for name in edge}
    assert data.reading.read == len(edges)


@settings(max_examples=60, deadline=None)
@given(edges=pairs_of_names, suffix=st.sampled_from([".csv", ".csv.gz"]))
def test_a_header_of_any_name_is_no_node(
    tmp_path_factory: pytest.TempPathFactory, edges: list[tuple[str, str]], suffix: str
) -> None:
    path = write(tmp_path_factory.getbasetemp() / f"any{suffix}", [("a", "b"), *edges])
    assert set(read_graph(path).names) == {name for edge in edges for name in edge}


# By its look


@pytest.mark.parametrize("first", [("a", "b"), ("Gene", "Disease"), ("0", "1"), ("wer", "wen")])
@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".csv.gz", ".tsv.gz"])
def test_unknown_words_are_a_header(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, first: tuple[str, str], suffix: str
) -> None:
    caplog.set_level(logging.INFO, logger="psgnn")
    data = read_graph(write(tmp_path / f"g{suffix}", [first, *CYCLE], SEPARATORS[suffix]))
    assert edges_of(data) == {frozenset(edge) for edge in CYCLE}
    assert not notes(caplog)  # every other line shares a node with another


def test_a_name_that_comes_again_far_below_is_a_node(tmp_path: Path) -> None:
    many = [(f"n{i}", f"n{i + 1}") for i in range(500)]
    path = write(tmp_path / "g.csv", [("a", "b"), *many, ("n7", "b")])
    data = read_graph(path)
    assert data.reading.read == 502
    assert frozenset("ab") in edges_of(data)
    assert read_graph(path, header=True).reading.read == 501
    numbers = [(str(i), str(i + 1)) for i in range(500)]
    assert read_graph(write(tmp_path / "h.csv", [("a", "b"), *numbers, ("7", "b")])).reading.read == 502


@pytest.mark.parametrize(
    ("rows", "read"),
    [
        ([("17", "Alien"), ("18", "Heat")], 2),  # ids of users and titles: numbers as below
        ([("user", "film"), ("17", "Alien"), ("18", "Heat")], 2),
        ([("anna", "bert", "0.5"), ("cora", "dora", "2")], 2),  # the weight is a number as below
        ([("who", "whom", "weight"), ("anna", "bert", "0.5"), ("cora", "dora", "2")], 2),
        ([("anna", "anna"), ("cora", "dora")], 2),  # columns have two names
        ([("0", "1")], 1),
        ([("anna", "bert", "0.5")], 1),
    ],
)
def test_columns_of_numbers(tmp_path: Path, rows: list[tuple[str, ...]], read: int) -> None:
    assert read_graph(write(tmp_path / "g.csv", rows)).reading.read == read


def test_text_without_a_convention(tmp_path: Path) -> None:
    first = ("protein1", "protein2", "combined_score")
    scored = [(u, v, str(100 + i)) for i, (u, v) in enumerate(CYCLE)]
    for suffix in (".txt", ".edges", ".txt.gz", ""):
        path = tmp_path / f"g{suffix}"
        assert read_graph(write(path, [("source", "target"), *CYCLE], " ")).num_nodes == 14
        assert read_graph(write(path, [first, *scored], " ")).num_nodes == 12
        assert read_graph(write(path, [("a", "b")], " ")).num_nodes == 2


def test_one_line_of_text_is_not_guessed(tmp_path: Path) -> None:
    path = write(tmp_path / "g.csv", [("anna", "bert")])
    with pytest.raises(InputError, match=r"no lines below its header \('anna, bert'\); pass --no-header"):
        read_graph(path)
    assert read_graph(path, header=False).num_nodes == 2


# Doubts


def test_a_doubt_is_one_line(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="psgnn")
    path = write(tmp_path / "g.csv", [("a", "b"), ("c", "d")])
    assert read_graph(path).num_nodes == 2
    (note,) = notes(caplog)
    assert note == (
        f"{path}: the first line ('a, b') was taken for a header; "
        "if it is an edge, pass --no-header (in Python header=False)"
    )
    caplog.clear()
    assert read_graph(path, header=False).num_nodes == 4
    assert read_graph(path, header=True).num_nodes == 2
    assert read_graph(path, source="a", target="b").num_nodes == 2
    assert not notes(caplog)
    apart = [(f"u{i}", f"v{i}") for i in range(30)]  # every line could be the header
    read_graph(write(tmp_path / "apart.csv", apart))
    assert len(notes(caplog)) == 1


# Other files, other sources


def test_pairs_and_labels_look_at_the_nodes(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="psgnn")
    nodes = ["a", "b", "c"]
    for suffix in (".csv", ".txt"):
        path = tmp_path / f"pairs{suffix}"
        assert read_pairs(write(path, [("a", "b"), ("b", "c")]), nodes).tolist() == [[0, 1], [1, 2]]
        assert not notes(caplog)
        assert read_pairs(write(path, [("left", "right"), ("b", "c")]), nodes).tolist() == [[1], [2]]
        assert not notes(caplog)
        for first in [("a", "right"), ("left", "right", "0.5")]:  # misspelled, not a header
            with pytest.raises(InputError, match=r"line 1 .*the graph has no node"):
                read_pairs(write(path, [first, ("b", "c", "0.7")]), nodes)
        assert read_labels(write(path, [("who", "home"), ("b", "x")]), nodes).tolist() == [-1, 0, -1]
        assert read_labels(write(path, [("a", "y"), ("b", "x")]), nodes).tolist() == [1, 0, -1]
        with pytest.raises(InputError, match=r"no lines below its header .*the graph has no node 'x'"):
            read_pairs(write(path, [("x", "y")]), nodes)
    with pytest.raises(InputError, match=r"line 1 .*the graph has no node '8'"):
        read_pairs(write(tmp_path / "p.csv", [("8", "9"), ("1", "2")]), ["1", "2"])
    path = write(tmp_path / "p.csv", [("a", "b"), ("b", "c")])
    assert read_pairs(path, nodes, header=True).tolist() == [[1], [2]]
    assert read_labels(path, nodes, header=True).tolist() == [-1, 0, -1]


def test_the_option_goes_with_text(tmp_path: Path) -> None:
    np.savez(tmp_path / "g.npz", edge_index=np.array([[0], [1]]))
    (tmp_path / "g.parquet").write_bytes(b"PAR1")
    for source in (tmp_path / "g.npz", tmp_path / "g.parquet", nx.path_graph(3)):
        with pytest.raises(InputError, match="text file"):
            read_graph(source, header=True)
    path = write(tmp_path / "g.csv", [("a", "b"), ("c", "d")])
    with pytest.raises(InputError, match="no header to look for a and b in; pass their numbers"):
        read_graph(path, source="a", target="b", header=False)
    assert read_graph(path, source="2", target="1", header=False).num_nodes == 4


# Commands


@pytest.mark.parametrize(("option", "nodes"), [((), 12), (("--header",), 12), (("--no-header",), 14)])
def test_commands_take_the_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: tuple[str, ...], nodes: int
) -> None:
    monkeypatch.chdir(tmp_path)
    write(Path("g.csv"), [("a", "b"), *CYCLE])
    result = CliRunner().invoke(app, ["distances", "g.csv", "-o", "hops.csv", *option])
    assert result.exit_code == 0, result.output
    assert f"hops of {nodes} nodes" in result.output


@pytest.mark.parametrize("command", ["predict", "embed", "train", "compare", "anchors", "distances"])
def test_every_command_has_the_option(command: str) -> None:
    shown = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200", "NO_COLOR": "1"}).output
    assert "--header" in shown
    assert "--no-header" in shown


def test_commands_refuse_the_option_without_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("run").mkdir()
    for arguments, message in [
        (["anchors", "communities", "--header"], "communities is a dataset"),
        (["predict", "run", "--top", "3", "--no-header"], "a run has its own graph"),
        (["distances", "g", "-o", "h", "--engine", "spark", "--header"], "Spark reads a Parquet edge list"),
    ]:
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code != 0
        assert message in f"{result.output}{result.exception}"


# Comment signs in names, and columns of an index


@pytest.mark.parametrize("name", ["50\n% off", "50\n# off", "50\n\n% off", "50\n%"])
def test_a_comment_sign_in_a_quoted_name_begins_no_comment(tmp_path: Path, name: str) -> None:
    edges = [("a", name), (name, "b"), ("b", "c")]
    path = write(tmp_path / "g.csv", [("source", "target"), *edges])
    path.write_text(path.read_text() + "% a comment\n# another\n")
    assert edges_of(read_graph(path)) == {frozenset(edge) for edge in edges}
    path.write_text(path.read_text() + "d\n")
    last = path.read_text().count("\n")
    with pytest.raises(InputError, match=f"line {last} "):
        read_graph(path)


@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
@pytest.mark.parametrize("cycle", [CYCLE, [(u[1:], v[1:]) for u, v in CYCLE]])
def test_an_index_column_holds_no_nodes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, suffix: str, cycle: list[tuple[str, str]]
) -> None:
    rows = [("", "a", "b"), *((str(i), *edge) for i, edge in enumerate(cycle))]
    path = write(tmp_path / f"g{suffix}", rows, SEPARATORS[suffix], csv.QUOTE_MINIMAL)
    with caplog.at_level(logging.INFO, "psgnn"):
        data = read_graph(path)
    assert edges_of(data) == {frozenset(edge) for edge in cycle}
    (note,) = [text for text in caplog.messages if "for an index" in text]
    assert "columns 2 (a) and 3 (b)" in note
    assert "--source and --target" in note
    asked = read_graph(path, source="1", target="3")
    assert frozenset(("0", cycle[0][1])) in edges_of(asked)


def test_an_index_column_may_stand_before_weights_and_pairs_too(tmp_path: Path) -> None:
    rows = [("", "a", "b", "c"), *((str(i), *edge, "2.5") for i, edge in enumerate(CYCLE))]
    data = read_graph(write(tmp_path / "g.csv", rows, quoting=csv.QUOTE_MINIMAL))
    assert data.reading.weighted
    path = write(tmp_path / "p.csv", [("", "a", "b"), ("0", "n3", "n5")], quoting=csv.QUOTE_MINIMAL)
    pairs = read_pairs(path, data.names)
    assert [data.names[i] for i in pairs.flatten().tolist()] == ["n3", "n5"]
