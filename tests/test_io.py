"""psgnn.graph._read: every format against one graph, every dialect against networkx, every kind of bad input."""

from __future__ import annotations

import gzip
import itertools
import json
import logging
import os
import pickle
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import networkx as nx
import numpy as np
import polars as pl
import pytest
import scipy.io
import scipy.sparse
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

from psgnn import Graph
from psgnn.errors import InputError
from psgnn.graph._edges import number
from psgnn.graph._exports import write_table
from psgnn.graph._read import Reading, read_graph, read_labels, read_pairs
from psgnn.paths import atomic_write, check_output

# Node 3 is isolated where the format can say so; 1-0 reverses 0-1, 4-4 is a loop, 2-4 comes twice.
EDGES = [(0, 1), (1, 0), (1, 2), (2, 4), (2, 4), (4, 4)]
READING = Reading(nodes=4, edges=3, read=6, reciprocal=1, self_loops=1, duplicates=1, weighted=False)


def edge_names(graph: Graph) -> set[frozenset[str]]:
    names = graph.names
    return {frozenset((names[u], names[v])) for u, v in graph.adjacency.edge_index().T.tolist()}


def write(path: Path, text: str | bytes) -> Path:
    content = text.encode() if isinstance(text, str) else text
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def fails(path: Path, text: str | bytes, message: str) -> None:
    """Reading ``text`` is refused in one line that names the file and matches ``message``."""
    write(path, text)
    with pytest.raises(InputError, match=message) as caught:
        read_graph(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def matrix() -> scipy.sparse.coo_array:
    rows, cols = np.array(EDGES).T
    return scipy.sparse.coo_array((np.ones(len(EDGES)), (rows, cols)), shape=(5, 5))


# Formats


def lines(separator: str, header: str = "") -> str:
    return header + "".join(f"{u}{separator}{v}\n" for u, v in EDGES)


TEXTS = {
    "plain.csv": lines(","),
    "header.csv": lines(",", "source,target\n"),
    "strange_header.csv": lines(",", "Huey,Dewey\n"),
    "index.csv": ",from,to\n" + "".join(f"{i},{u},{v}\n" for i, (u, v) in enumerate(EDGES)),
    "spaced.csv": lines(" , "),
    "semicolon.csv": lines(";", "Source;Target\n"),
    "quoted.csv": '"","source","target"\n'
    + "".join(f'"{i}","{u}","{v}"\n' for i, (u, v) in enumerate(EDGES)),
    "bom.csv": "\ufeff" + lines(",", "u,v\n"),
    "crlf.csv": lines(",", "src,dst\n").replace("\n", "\r\n"),
    "mac.csv": lines(",").replace("\n", "\r"),
    "tabs.tsv": lines("\t", "node_1\tnode_2\n"),
    "blanks.txt": lines(" ").replace("\n", "  \n"),
    "aligned.txt": "".join(f"  {u:>6} \t {v:>4}\n" for u, v in EDGES),
    "no_last_newline.edges": lines(" ").rstrip(),
    "snap.txt": "# Directed graph\n# FromNodeId\tToNodeId\n" + lines("\t"),
    "konect.edgelist": "% sym unweighted\n%\n\n"
    + lines(" ").replace("\n", "\n% in between\n\n# and this\n", 2),
    "networkx.el": "".join(f"{u} {v} {{}}\n" for u, v in EDGES),
    "packed.txt.gz": lines(" "),
    "unknown.graph": lines(" "),
    "noext": lines(" "),
}


@pytest.mark.parametrize("name", TEXTS)
def test_text_dialects(tmp_path: Path, name: str) -> None:
    data = read_graph(write(tmp_path / name, TEXTS[name]))
    assert data.names == ["0", "1", "2", "4"]
    assert edge_names(data) == {frozenset("01"), frozenset("12"), frozenset("24")}
    assert replace(data.reading, ignored=()) == READING


def save_parquet(path: Path) -> None:
    pl.DataFrame(
        {"n": range(len(EDGES)), "dst": [v for _, v in EDGES], "src": [u for u, _ in EDGES]}
    ).write_parquet(path)


def save_strings(path: Path) -> None:
    ends = {"a": [str(u) for u, _ in EDGES], "b": [str(v) for _, v in EDGES]}
    pl.DataFrame(ends, schema={"a": pl.Categorical, "b": pl.String}).write_parquet(path)


def save_uint64(path: Path) -> None:
    pl.DataFrame(EDGES, schema={"a": pl.UInt64, "b": pl.Int8}, orient="row").write_parquet(path)


@pytest.mark.parametrize("save", [save_parquet, save_strings, save_uint64])
def test_parquet(tmp_path: Path, save: Callable[[Path], None]) -> None:
    save(tmp_path / "g.parquet")
    data = read_graph(str(tmp_path / "g.parquet"))
    assert data.names == ["0", "1", "2", "4"]
    assert edge_names(data) == {frozenset("01"), frozenset("12"), frozenset("24")}
    assert replace(data.reading, ignored=()) == READING


def multigraph() -> nx.MultiDiGraph:
    graph = nx.MultiDiGraph(EDGES)
    graph.add_node(3)
    return graph


def save_graphml(path: Path) -> None:
    nx.write_graphml_xml(multigraph(), path)


def save_packed_mtx(path: Path) -> None:
    with gzip.open(path, "wb") as file:
        scipy.io.mmwrite(file, matrix(), symmetry="general")


def save_problem(path: Path) -> None:
    scipy.io.savemat(path, {"Problem": {"A": matrix().tocsc(), "title": "x"}, "other": matrix().tocsc()})


SAVERS: dict[str, Callable[[Path], None]] = {
    "sparse.npz": lambda path: scipy.sparse.save_npz(path, matrix().tocsr()),
    "index.npz": lambda path: np.savez(path, edge_index=np.array(EDGES).T, num_nodes=5),
    "g.mtx": lambda path: scipy.io.mmwrite(path, matrix(), symmetry="general"),
    "g.mtx.gz": save_packed_mtx,
    "net.mat": lambda path: scipy.io.savemat(path, {"net": matrix().tocsc(), "group": np.eye(5)}),
    "only.mat": lambda path: scipy.io.savemat(path, {"links": matrix().tocsc(), "n": 5}),
    "dense.mat": lambda path: scipy.io.savemat(path, {"A": matrix().toarray()}),
    "problem.mat": save_problem,
    "g.graphml": save_graphml,
    "g.gml": lambda path: nx.write_gml(multigraph(), path),
    "g.json": lambda path: (
        path.write_text(json.dumps(nx.node_link_data(multigraph(), edges="links"))) and None
    ),
    "edges.json": lambda path: (
        path.write_text(json.dumps(nx.node_link_data(multigraph(), edges="edges"))) and None
    ),
    "g.graphml.gz": save_graphml,
}


@pytest.mark.parametrize("name", SAVERS)
def test_formats_that_know_isolated_nodes(tmp_path: Path, name: str) -> None:
    SAVERS[name](tmp_path / name)
    data = read_graph(tmp_path / name)
    first = int(".mtx" in name)  # MatrixMarket counts from 1, and names are as written
    assert data.names == [str(first + i) for i in range(5)]
    assert {tuple(edge) for edge in data.edges.T.tolist()} == {(0, 1), (1, 2), (2, 4)}
    assert (data.reading.edges, data.reading.reciprocal, data.reading.self_loops) == (3, 1, 1)


@pytest.mark.parametrize(
    ("dense", "field", "symmetry"),
    [
        *itertools.product([False, True], ["real", "integer"], ["general", "symmetric", "skew-symmetric"]),
        (False, "pattern", "general"),
        (False, "pattern", "symmetric"),
    ],
)
def test_matrix_market_agrees_with_scipy(tmp_path: Path, dense: bool, field: str, symmetry: str) -> None:
    rng = np.random.default_rng(0)
    square = rng.integers(0, 4, (9, 9)) * (rng.random((9, 9)) < 0.3)
    square = {"general": square, "symmetric": square + square.T, "skew-symmetric": square - square.T}[
        symmetry
    ]
    written = square if dense else scipy.sparse.coo_array(square)
    path = tmp_path / "g.mtx"
    scipy.io.mmwrite(path, written, comment=" a\n b", field=field, symmetry=symmetry)
    expected = scipy.io.mmread(path)
    data = read_graph(path)
    reference = read_graph(scipy.sparse.coo_array(expected))
    assert np.array_equal(data.edges, reference.edges)
    assert data.num_nodes == 9
    assert data.reading.weighted == (field != "pattern")


def test_in_memory_graphs() -> None:
    graph = nx.MultiDiGraph([("b", "a"), ("a", "b"), ("a", "a"), ("b", 7), ("b", 7)])
    graph.add_node("alone")
    data = read_graph(graph)
    assert data.names == ["b", "a", "7", "alone"]
    assert edge_names(data) == {frozenset("ab"), frozenset("b7")}
    assert data.reading == Reading(4, 2, 5, 1, 1, 1, False)

    for sparse in (matrix().tocsr(), scipy.sparse.csc_matrix(matrix()), matrix().todok()):
        assert edge_names(read_graph(sparse)) == {frozenset("01"), frozenset("12"), frozenset("24")}

    x, y = torch.rand(5, 2), torch.arange(5)
    pyg = Data(edge_index=torch.tensor(EDGES).t(), x=x, y=y, node_names=list("abcde"))
    data = read_graph(pyg)
    assert np.array_equal(data.x, x.numpy())
    assert np.array_equal(data.y, y.numpy())
    assert data.names == list("abcde")
    assert edge_names(data) == {frozenset("ab"), frozenset("bc"), frozenset("ce")}
    assert read_graph(Data(edge_index=torch.tensor(EDGES).t(), num_nodes=9)).names == [*"012345678"]


def test_networkx_labels_and_weights() -> None:
    graph = nx.karate_club_graph()
    nx.set_node_attributes(graph, {node: node % 3 for node in graph}, "label")
    data = read_graph(graph)
    assert data.y.tolist() == [node % 3 for node in range(34)]
    assert data.reading.weighted
    graph.edges[0, 1]["weight"] = float("nan")
    with pytest.raises(InputError, match=r"\(0, 1\).*nan"):
        read_graph(graph)


def test_reading_is_logged_in_one_line(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="psgnn"):
        data = read_graph(write(tmp_path / "g.txt", lines(" ")))
    assert str(data.reading) == (
        "4 nodes, 3 edges (undirected); direction ignored: 1 links were given both ways (--directed keeps it); "
        "dropped 1 self-loops; merged 1 duplicates (--weight count counts them)"
    )
    assert caplog.messages == [f"read {tmp_path / 'g.txt'}: {data.reading}"]


# Ids, names, headers, weights


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("10 9\n9 100\n", ["9", "10", "100"]),
        ("5000000000 7\n7 2\n", ["2", "7", "5000000000"]),  # too sparse for a table over all ids
        ("b a\na ä\na B\n", ["B", "a", "b", "ä"]),
        ("1 a\n2 -3\n10 1.5\n", ["-3", "1", "1.5", "10", "2", "a"]),
        ("007 8\n8 10\n", ["007", "10", "8"]),  # zeros are part of a name
        ("8 10\n10 99999999999999999999\n", ["10", "8", "99999999999999999999"]),
        ("New York\tBoston\nBoston\tSt. John's\n", ["Boston", "New York", "St. John's"]),
        ('"New York" Boston\nBoston "a  b"\n', ["Boston", "New York", "a b"]),
        ('5" disk,7" disk\n7" disk,"a ""b"", c"\n', ['5" disk', '7" disk', 'a "b", c']),
        ('"two\nlines",b\nb,c\n', ["b", "c", "two\nlines"]),
        ('"#a",%b\n"#a",c\n# "\n', ["#a", "%b", "c"]),
    ],
)
def test_names_and_their_order(tmp_path: Path, text: str, names: list[str]) -> None:
    assert read_graph(write(tmp_path / "g.txt", text)).node_names == names


@pytest.mark.parametrize(
    ("text", "num_nodes"),
    [
        ("source,target\na,b\n", 2),
        ("Node 1;Node 2;Weight\na;b;1\n", 2),
        ("a,b\nb,c\n", 3),
        ("u,v\nv,w\n", 3),  # v is a node
        ("id,a,source,target,label\n1,2,x,y,0\n", 2),
        ("x,y\n1,2\n", 2),
        ("x,y\n1,2\nz,3\n", 4),
        ("3,y\n1,2\n", 4),
        ("person,friend\nanna,bert\nbert,cora\n", 3),
        ("Gene_A;Protein ID\nbrca1;p53\n", 2),
        ("person,friend\nanna,friend\n", 3),  # friend is a node
        ("person,anna\nanna,bert\n", 3),
        ("who,whom,when\nanna,bert,2024-05-01\nbert,cora,3 May\n", 3),
        ("who,whom,when\nanna,bert,2024-05-01\nbert,cora,May\n", 3),
        ("anna,bert,since May\nbert,cora,2 May\ncora,dora,3 May\n", 4),
    ],
)
def test_header_rule(tmp_path: Path, text: str, num_nodes: int) -> None:
    assert read_graph(write(tmp_path / "g.csv", text)).num_nodes == num_nodes


def test_a_line_that_may_be_a_header_is_pointed_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="psgnn")
    path = [f"n{i} n{i + 1}" for i in range(9)]
    data = read_graph(write(tmp_path / "g.txt", "\n".join(["who whom", *path])))
    assert data.num_nodes == 12
    (note,) = [text for text in caplog.messages if "first line" in text]
    assert "('who, whom') was taken for an edge; if it is a header, pass --header" in note
    caplog.clear()
    for first in ("who n5", "n0 n1"):
        read_graph(write(tmp_path / "h.txt", "\n".join([first, *path])))
    assert not [text for text in caplog.messages if "first line" in text]


@pytest.mark.parametrize(
    ("text", "weighted"),
    [
        ("0 1 0.5\n1 2 -1e3\n", True),
        ("a,b,1\nb,c,+2\n", True),
        ("1;2;3.5;x\n2;3;4;y;z\n", True),
        ("source,kind,target,weight\na,x,b,1\n", True),
        ("0 1 friend\n1 2 foe\n2 3 5\n", False),
        ("1;2;0,5\n2;3;1,5\n", True),
        ("0 1 friend 2\n1 2\n", False),
    ],
)
def test_weights_are_seen(tmp_path: Path, text: str, weighted: bool) -> None:
    data = read_graph(write(tmp_path / "g.csv", text))
    assert data.reading.weighted == weighted
    assert not weighted or "--weight" in str(data.reading)


names_of_letters = st.text("äβ<>&'-.7", max_size=4).map(lambda tail: "n" + tail)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_any_dialect_gives_the_graph_of_networkx(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    numeric = data.draw(st.booleans())
    ids = st.integers(0, data.draw(st.sampled_from([5, 10**12]))).map(str) if numeric else names_of_letters
    edges = data.draw(st.lists(st.tuples(ids, ids), min_size=1, max_size=12))
    separator = data.draw(st.sampled_from([",", "\t", ";", " ", ", ", " \t ", "   "]))
    tail = data.draw(st.sampled_from(["", separator + "0.5", separator + "x"]))
    header = data.draw(st.sampled_from(["", f"Source{separator}Target{separator and tail}"]))
    option = None if numeric else bool(header)
    noise = data.draw(st.sampled_from(["", "\n", "# it's \"odd\n", "% note\n\n  \n"]))
    newline = data.draw(st.sampled_from(["\n", "\r\n"]))
    suffix = data.draw(st.sampled_from([".csv", ".tsv", ".txt", ".txt.gz"]))
    quote = data.draw(st.sampled_from(["", '"'])) if separator in ",\t; " else ""
    records = [header] if header else []
    records += [f"{quote}{u}{quote}{separator}{quote}{v}{quote}{tail}" for u, v in edges]
    text = noise + (newline + noise).join(records) + data.draw(st.sampled_from(["", newline]))
    path = write(tmp_path_factory.getbasetemp() / f"dialect{suffix}", text.replace("\r\n", newline))

    expected = nx.DiGraph(edges)
    undirected = expected.to_undirected()
    undirected.remove_edges_from(list(nx.selfloop_edges(undirected)))
    if not undirected.number_of_edges():
        with pytest.raises(InputError, match="no edges between different nodes"):
            read_graph(path, header=option, sides=False)
        return
    graph = read_graph(path, header=option, sides=False)
    assert graph.names == sorted(expected, key=int if numeric else None)
    assert edge_names(graph) == {frozenset(edge) for edge in undirected.edges}
    assert graph.num_edges == undirected.number_of_edges()
    loops = sum(u == v for u, v in edges)
    arcs = {(u, v) for u, v in edges if u != v}
    assert replace(graph.reading, ignored=()) == Reading(
        nodes=len(expected),
        edges=undirected.number_of_edges(),
        read=len(edges),
        reciprocal=len(arcs) - undirected.number_of_edges(),
        self_loops=loops,
        duplicates=len(edges) - loops - len(arcs),
        weighted=tail.endswith("0.5"),
    )


@given(st.lists(st.integers(0, 2**62), min_size=1, max_size=2000), st.integers(0, 10**7))
@settings(max_examples=30, deadline=None)
def test_numbering_agrees_with_numpy(values: list[int], extra: int) -> None:
    for column in (pl.Series(values + [extra] * 3), pl.Series([f"n{value}" for value in values])):
        names, (codes,) = number(column)
        distinct, expected = np.unique(column.to_numpy(), return_inverse=True)
        assert names == [str(value) for value in distinct]
        assert codes.tolist() == expected.tolist()


def test_many_lines_with_comments_between(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    ends = rng.integers(0, 10**12, 20_000)[rng.integers(0, 20_000, (2, 60_000))]
    records = [f"{u} {v}" for u, v in ends.T.tolist()]
    records[1000::5000] = ['# a "comment'] * len(records[1000::5000])
    data = read_graph(write(tmp_path / "g.txt.gz", "\n".join(records)))
    kept = [record.split() for record in records if record[0] != "#"]
    assert edge_names(data) == {frozenset(edge) for edge in kept if edge[0] != edge[1]}
    assert data.reading.read == len(kept)

    records[45_000] = "17"
    fails(tmp_path / "g.txt", "\n".join(records), r"line 45001 \('17'\)")
    records[45_000] = "17 -4"
    fails(tmp_path / "g.txt", "\n".join(records), r"line 45001 \('17 -4'\).*negative")


# Bad input


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("\n\n  \n", "no lines other than comments"),
        ("# a\n% b\n", "no lines other than comments"),
        ("source,target\n", "no lines below its header"),
        ("0,1\n2\n3,4\n", r"line 2 \('2'\): expected two fields"),
        ("# c\n\nu,v\n0,1\n% c\n\n2,\n", r"line 7 \('2,'\): expected two fields"),
        ("a b\n\nc\n", r"line 3 \('c'\): expected two fields"),
        ("a,b\n,c\n", r"line 2 \(',c'\): expected two fields"),
        ("a,b\n,\n", r"line 2 \(','\): expected two fields"),
        ('a,"b"\n\n"x, y","z\n2"\nc,""\n', r"line 5 \('c,\"\"'\): expected two fields"),
        ("0\t1\n2\t\t3\n", r"line 2 .*: expected two fields"),
        ("only\none\ncolumn\n", r"line 1 \('only'\)"),
        ("0 1\n-3 2\n", r"line 2 \('-3 2'\): a node id is negative"),
        ("source target\n0 1\n2 -3\n", r"line 3 \('2 -3'\): a node id is negative"),
        ("0 1\n1.5 2\n", r"line 2 \('1.5 2'\): a node id is not an integer"),
        ("0,1\n1,nan\n", r"line 2 \('1,nan'\): a node id is not an integer"),
        ("x,y\n0,1\n1,2.0\n", r"line 3 \('1,2.0'\): a node id is not an integer"),
        ("0 1 1\n1 2 nan\n", r"line 2 \('1 2 nan'\): the weight"),
        ("0,1,1\n1,2,-inf\n", r"line 2 .*: the weight"),
        ("a,b,1\n#\nb,c,heavy\n", r"line 3 \('b,c,heavy'\): the weight"),
        ("a,b,1\nb,c,2\nc,d,\n", r"line 3 \('c,d,'\): the weight"),
        ("1 1\n2 2\n", "no edges between different nodes"),
        ('a,b\nc,"d\ne,f\n', r"line 2: .*check the quotes"),
        ('a,b\nc,"d"e\n', r"line 2: .*check the quotes"),
        (f"a,b\n{'x' * 500}\n", r"line 2 \('x{57}\.\.\.'\)"),
        (b"a,b\nc,\xff\xfe\n", "line 2: not UTF-8"),
        (b"\x89PNG\x00\x01", "binary and of no known format.*parquet"),
        (b"\xff\xfe0", "begins as UTF-16"),
        (pickle.dumps({"a": 1}, protocol=4), "binary|UTF-8"),
    ],
)
def test_bad_text(tmp_path: Path, text: str | bytes, message: str) -> None:
    fails(tmp_path / "g.csv", text, message)


def test_bad_paths(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        read_graph(tmp_path / "missing.csv")
    with pytest.raises(InputError, match="is a directory"):
        read_graph(tmp_path)
    with pytest.raises(InputError, match="cannot be read"):
        read_graph("x" * 5000)
    with pytest.raises(InputError, match="cannot be read"):
        read_graph("nul\0byte")
    with pytest.raises(InputError, match="cannot read a graph from tuple"):
        read_graph([(0, 1)])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 2\n", "not a MatrixMarket file"),
        ("%%MatrixMarket matrix coordinate real general\n% only comments\n", "not a MatrixMarket file"),
        ("%%MatrixMarket matrix coordinate real general\n3 3\n1 2 1\n", "not a MatrixMarket file"),
        ("%%MatrixMarket matrix coordinate real general\n3 4 1\n1 2 1\n", r"shape \[3, 4\]"),
        (
            "%%MatrixMarket matrix coordinate real general\n3 3 2\n1 2 1\n",
            "1 entries where its header says 2",
        ),
        (
            "%%MatrixMarket matrix coordinate real general\n% c\n3 3 2\n1 2 1\n3 0 1\n",
            r"line 5 .*within 1\.\.3",
        ),
        ("%%MatrixMarket matrix coordinate real general\n3 3 2\n1 2 1\n4 1 1\n", r"line 4 .*within 1\.\.3"),
        ("%%MatrixMarket matrix coordinate real general\n3 3 2\n1 2 1\nx 1 1\n", r"line 4 .*within 1\.\.3"),
        ("%%MatrixMarket matrix coordinate real general\n3 3 2\n1 2 1\n2 3 inf\n", r"line 4 .*weight"),
        ("%%MatrixMarket matrix coordinate pattern general\n3 3 2\n1 2\n2\n", r"line 4 .*two fields"),
        ("%%MatrixMarket matrix coordinate pattern general\n9999999999 9999999999 1\n1 2\n", "at most"),
        ("%%MatrixMarket matrix array real general\n2 2\n0\n1\n1\n", "3 entries, its size needs 4"),
        (
            "%%MatrixMarket matrix array real symmetric\n99999999 99999999\n1\n",
            "its size needs 4999999950000000",
        ),
        ("%%MatrixMarket matrix array real general\n2 2\n0\n1\nx\n0\n", "cannot be read as MatrixMarket"),
    ],
)
def test_bad_matrix_market(tmp_path: Path, text: str, message: str) -> None:
    fails(tmp_path / "g.mtx", text, message)


GRAPHML = '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">{}</graphml>'
NODES = '<graph><node id="a"/><node id="b"/>{}</graph>'
WEIGHT = '<key id="k" for="edge" attr.name="weight" attr.type="double"/>'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<graphml><graph>", "cannot be read as GraphML"),
        ("not xml", "cannot be read as GraphML"),
        ("<html><body/></html>", "without a <node>"),
        (GRAPHML.format(NODES.format("")), "no edges between different nodes"),
        (GRAPHML.format(NODES.format('\n<edge source="a"/>')), "line 2: <edge> has no 'target'"),
        (
            GRAPHML.format(NODES.format('<edge source="a" target="z"/>')),
            "node 'z', which is not among the nodes",
        ),
        (GRAPHML.format(NODES.format("<hyperedge/>")), "hyperedges"),
        (
            GRAPHML.format(
                WEIGHT + NODES.format('\n<edge source="a" target="b"><data key="k">NaN</data></edge>')
            ),
            "line 2: the weight 'NaN'",
        ),
    ],
)
def test_bad_graphml(tmp_path: Path, text: str, message: str) -> None:
    fails(tmp_path / "g.graphml", text, message)


def test_graphml_weights_are_seen(tmp_path: Path) -> None:
    edge = '<edge source="a" target="b"><data key="k">2.5</data></edge>'
    data = read_graph(write(tmp_path / "g.graphml", GRAPHML.format(WEIGHT + NODES.format(edge))))
    assert data.reading.weighted


def test_graphml_with_entities_is_refused(tmp_path: Path) -> None:
    bomb = '<!DOCTYPE g [<!ENTITY a "aaaaaaaaaa">' + "".join(
        f'<!ENTITY {new} "{f"&{old};" * 10}">' for old, new in itertools.pairwise("abcdefghij")
    )
    graph = '<graph><node id="&j;"/><node id="b"/><edge source="&j;" target="b"/></graph>'
    fails(
        tmp_path / "g.graphml",
        f"<?xml version='1.0'?>{bomb}]><graphml>{graph}</graphml>",
        "line 1: .*DOCTYPE",
    )
    secret = write(tmp_path / "secret", "s3cret")
    external = f'<!DOCTYPE g [<!ENTITY x SYSTEM "file://{secret}">]>'
    fails(tmp_path / "g.graphml.gz", f"{external}<graphml>{graph.replace('&j;', '&x;')}</graphml>", "DOCTYPE")


class Hostile:
    """Unpickling this creates a file."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Callable[[Path], None], tuple[Path]]:
        return Path.touch, (self.marker,)


def test_pickles_are_never_loaded(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    hostile = np.array([Hostile(marker)], dtype=object)
    np.savez(tmp_path / "a.npz", edge_index=hostile)
    np.savez(tmp_path / "b.npz", format="csr", shape=(1, 1), data=hostile, indices=hostile, indptr=hostile)
    for name in ("c.npz", "c.pkl", "c.pt", "c.mat", "c.mtx", "c.parquet"):
        (tmp_path / name).write_bytes(pickle.dumps(Hostile(marker)))
    for path in sorted(tmp_path.iterdir()):
        with pytest.raises(InputError, match=re.escape(str(path))):
            read_graph(path)
    assert not marker.exists()


def test_bad_matrices(tmp_path: Path) -> None:
    def fails_with(message: str, name: str) -> None:
        with pytest.raises(InputError, match=message) as caught:
            read_graph(tmp_path / name)
        assert "\n" not in str(caught.value)

    scipy.io.mmwrite(tmp_path / "wide.mtx", np.ones((2, 3)))
    fails_with(r"shape \[2, 3\].*square", "wide.mtx")
    unfinished = scipy.sparse.coo_array(([1.0, np.nan], ([0, 1], [1, 2])), shape=(3, 3))
    scipy.sparse.save_npz(tmp_path / "nan.npz", unfinished)
    fails_with(r"entry \[1, 2\] is not a finite", "nan.npz")
    scipy.io.savemat(tmp_path / "two.mat", {"a": scipy.sparse.eye(3), "b": scipy.sparse.eye(3)})
    fails_with("holds a, b; expected one square", "two.mat")
    scipy.io.savemat(tmp_path / "text.mat", {"A": "ab"})
    fails_with("square|numbers", "text.mat")
    header = b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM"
    (tmp_path / "new.mat").write_bytes(header + b"\x89HDF\r\n\x1a\n" + bytes(500))
    fails_with("v7.3.*-v7", "new.mat")
    np.savez(tmp_path / "other.npz", a=np.ones(3))
    fails_with("holds a; expected edge_index", "other.npz")
    np.savez(tmp_path / "float.npz", edge_index=np.ones((2, 3)))
    fails_with("must hold integers", "float.npz")
    np.savez(tmp_path / "shape.npz", edge_index=np.ones((3, 2), int))
    fails_with(r"\[3, 2\]", "shape.npz")
    np.savez(tmp_path / "few.npz", edge_index=np.array([[0], [7]]), num_nodes=3)
    fails_with(r"nodes 0\.\.7, but there are 3", "few.npz")
    np.savez(tmp_path / "negative.npz", edge_index=np.array([[0], [-1]]))
    fails_with(r"nodes -1\.\.0", "negative.npz")
    scipy.sparse.save_npz(tmp_path / "empty.npz", scipy.sparse.csr_array((4, 4)))
    fails_with("no edges between different nodes", "empty.npz")


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pl.DataFrame({"a": [1]}), "1 column"),
        (pl.DataFrame({"a": [1.0], "b": [2.0]}), "column 'a' holds Float64"),
        (pl.DataFrame({"a": [0, None], "b": [1, 2]}), r"row 2 \('None, 2'\): expected two fields"),
        (pl.DataFrame({"a": ["x", ""], "b": ["y", "z"]}), r"row 2"),
        (pl.DataFrame({"a": [0, -1], "b": [1, 2]}), r"row 2 .*negative"),
        (pl.DataFrame({"a": [0, 1], "b": [1, 2], "c": [1.0, float("nan")]}), r"row 2 .*weight"),
        (pl.DataFrame({"a": [], "b": []}, schema={"a": pl.Int64, "b": pl.Int64}), "no rows"),
    ],
)
def test_bad_parquet(tmp_path: Path, frame: pl.DataFrame, message: str) -> None:
    frame.write_parquet(tmp_path / "g.parquet")
    with pytest.raises(InputError, match=message):
        read_graph(tmp_path / "g.parquet")


def test_bad_in_memory_graphs() -> None:
    for bad, message in [
        (nx.empty_graph(4), "no edges between different nodes"),
        (nx.Graph([(1, "1")]), "2 nodes are called '1'"),
        (Data(x=torch.ones(3, 1)), "no edge_index"),
        (Data(edge_index=torch.tensor([[0.0], [1.0]])), "must hold integers"),
        (Data(edge_index=torch.tensor([[0], [5]]), num_nodes=2), "there are 2 nodes"),
        (
            Data(edge_index=torch.tensor([[0], [1]]), node_names=["a"], num_nodes=2),
            "1 node_names for 2 nodes",
        ),
        (Data(edge_index=torch.tensor([[0], [1]]), edge_weight=torch.tensor([torch.nan])), "edge_weight"),
        (scipy.sparse.csr_array((2, 3)), "square"),
    ]:
        with pytest.raises(InputError, match=message):
            read_graph(bad)


def test_damaged_files_never_raise_anything_else(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    write(tmp_path / "g.txt.gz", lines(" "))
    save_parquet(tmp_path / "g.parquet")
    for name in ("sparse.npz", "index.npz", "g.mtx", "g.graphml", "g.graphml.gz"):
        SAVERS[name](tmp_path / name)
    # As MATLAB writes it; without the checksum of compression some flipped bits crash scipy.io.loadmat.
    scipy.io.savemat(tmp_path / "g.mat", {"net": matrix().tocsc()}, do_compression=True)
    for path in sorted(tmp_path.iterdir()):
        whole = path.read_bytes()
        messages = []
        rounds = 9 if path.suffix == ".parquet" else 60  # each starts a process
        for i in range(rounds):
            damaged = bytearray(whole)
            if i % 3 == 0:
                damaged = damaged[: int(rng.integers(1, len(whole)))]
            else:
                damaged[int(rng.integers(len(whole)))] ^= 1 << int(rng.integers(8))
            path.write_bytes(damaged)
            try:
                read_graph(path)
            except InputError as error:
                messages.append(str(error))
        assert len(messages) >= rounds // 3, path.name
        assert all(str(path) in message and "\n" not in message for message in messages)


# Labels and pairs

NAMES = ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("text", "y"),
    [
        ("a,red\nb,blue\nd,red\n", [1, 0, -1, 1]),
        ("node,label\nc,x\na,x\n", [0, -1, 0, -1]),
        ("a 10\nb 2\nc 10\nc 10\n", [1, 0, 1, -1]),
        ("a\t-1\nb\t1\n", [0, 1, -1, -1]),
    ],
)
def test_labels(tmp_path: Path, text: str, y: list[int]) -> None:
    labels = read_labels(write(tmp_path / "y.txt", text), NAMES)
    assert labels.dtype == np.int64
    assert labels.tolist() == y


def test_label_headers_look_at_the_node_names(tmp_path: Path) -> None:
    path = write(tmp_path / "y.csv", "node,label\nto,x\n")
    assert read_labels(path, ["to", "from"]).tolist() == [0, -1]
    assert read_labels(path, ["node", "to"]).tolist() == [0, 1]
    path = write(tmp_path / "y.csv", "vertex,colour\n0,red\n1,blue\n")
    assert read_labels(path, ["0", "1"]).tolist() == [1, 0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# c\na,1\nz,2\n", r"line 3 \('z,2'\): the graph has no node 'z'"),
        ("a,1\na,2\n", r"line 2 \('a,2'\): node 'a' has another label"),
        ("a,1\nb,\n", "line 2 .*expected two fields"),
        ("node,label\n", "no lines below its header"),
        ("", "is empty"),
    ],
)
def test_bad_labels(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_labels(write(tmp_path / "y.csv", text), NAMES)


def test_pairs(tmp_path: Path) -> None:
    path = write(tmp_path / "pairs.tsv", "source\ttarget\tscore\na\tb\t0.5\nd\ta\tx\na\tb\t\n")
    pairs = read_pairs(path, NAMES)
    assert pairs.dtype == np.int64
    assert pairs.tolist() == [[0, 3, 0], [1, 0, 1]]
    assert read_pairs(write(tmp_path / "p.txt", "0 10\n10 007\n"), ["0", "007", "10"]).tolist() == [
        [0, 2],
        [2, 1],
    ]
    with pytest.raises(InputError, match=r"line 2 \('a b'\): the graph has no node 'b'"):
        read_pairs(write(tmp_path / "p.txt", "a c\na b\n"), ["a", "c"])
    with pytest.raises(InputError, match="does not exist"):
        read_pairs(tmp_path / "missing.csv", NAMES)


# Tables out

AWKWARD = [
    "a,b",
    'say "hi"',
    "Zoë 東京 🙂",
    "<b>&amp;</b>",
    "#tag",
    "%",
    "semi;colon",
    "two\nlines",
    "tab\there",
    "7",
]


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet"])
def test_names_survive_a_round_trip(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"t{suffix}"
    write_table(path, {"node": AWKWARD, "label": np.arange(len(AWKWARD))})
    assert read_labels(path, AWKWARD).tolist() == list(range(len(AWKWARD)))
    write_table(path, {"source": AWKWARD, "target": AWKWARD[::-1]}, force=True)
    expected = np.arange(len(AWKWARD))
    assert (read_pairs(path, AWKWARD) == [expected, expected[::-1]]).all()
    data = read_graph(path)
    assert data.names == sorted(AWKWARD)
    assert edge_names(data) == {frozenset(pair) for pair in zip(AWKWARD, AWKWARD[::-1], strict=True)}


def test_columns_of_every_kind(tmp_path: Path) -> None:
    columns = {"node": ["a", "b"], "z": np.arange(6.0).reshape(2, 3) / 3, "ok": torch.tensor([True, False])}
    write_table(tmp_path / "t.parquet", columns)
    frame = pl.read_parquet(tmp_path / "t.parquet")
    assert frame.columns == ["node", "z_0", "z_1", "z_2", "ok"]
    assert frame["z_1"].to_list() == [1 / 3, 4 / 3]
    write_table(tmp_path / "t.csv", columns)
    assert (tmp_path / "t.csv").read_text().splitlines()[0] == "node,z_0,z_1,z_2,ok"
    assert pl.read_csv(tmp_path / "t.csv")["z_2"].to_list() == [2 / 3, 5 / 3]
    write_table(tmp_path / "t.npz", columns)
    with np.load(tmp_path / "t.npz", allow_pickle=False) as arrays:
        assert (arrays["z"] == columns["z"]).all()
        assert arrays["node"].tolist() == ["a", "b"]


@pytest.mark.parametrize(
    ("name", "columns", "message"),
    [
        ("t.json", {"a": [1]}, r"t\.json: the format is one of \.csv, \.tsv"),
        ("t", {"a": [1]}, "the format is one of"),
        ("t.csv", {"a": [1], "b": [1, 2]}, "1 in a, 2 in b"),
        ("t.csv", {}, "no columns"),
        ("t.npz", {"a": np.array([1, "x", None], dtype=object)}, "column 'a' mixes types"),
        ("no/such/t.csv", {"a": [1]}, "directory .*no/such does not exist"),
    ],
)
def test_tables_that_are_refused(
    tmp_path: Path, name: str, columns: dict[str, list[int]], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        write_table(tmp_path / name, columns)
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_overwritten_without_force(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "mine")
    with pytest.raises(InputError, match="exists; pass --force"):
        check_output(path)
    check_output(path, force=True)
    check_output(tmp_path / "new.html", suffixes=[".html"])
    with pytest.raises(InputError, match="exists; pass --force to replace it or choose another --out"):
        write_table(path, {"a": [1]})
    assert path.read_text() == "mine"
    write_table(path, {"a": [1]}, force=True)
    assert path.read_text() == "a\n1\n"
    (tmp_path / "d.csv").mkdir()
    with pytest.raises(InputError, match="not a regular file"):
        write_table(tmp_path / "d.csv", {"a": [1]}, force=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d.csv", "t.csv"]


def test_a_file_that_appears_meanwhile_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"

    def both_write() -> None:
        with atomic_write(path) as temporary:
            temporary.write_text("ours")
            path.write_text("theirs")

    with pytest.raises(InputError, match="exists"):
        both_write()
    assert [path.read_text() for path in tmp_path.iterdir()] == ["theirs"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_interrupted_write_leaves_nothing(tmp_path: Path, error: type[BaseException]) -> None:
    path = write(tmp_path / "t.txt", "old")

    def interrupted() -> None:
        with atomic_write(path, force=True) as temporary:
            temporary.write_text("new")
            assert temporary.parent == tmp_path
            assert temporary.suffix == ".txt"
            raise error

    with pytest.raises(error):
        interrupted()
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


def test_outputs_have_the_permissions_of_the_user(tmp_path: Path) -> None:
    write_table(tmp_path / "t.csv", {"a": [1]})
    umask = os.umask(0)
    os.umask(umask)
    assert (tmp_path / "t.csv").stat().st_mode & 0o777 == 0o666 & ~umask


@contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """Writing past ``size`` bytes fails, as on a full disk (Python ignores SIGXFSZ)."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".npz"])
def test_a_full_disk_leaves_the_old_file(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path / f"t{suffix}", "old")
    columns = {"a": np.random.default_rng(0).random(200_000)}
    with (
        pytest.raises(InputError, match=re.escape(f"cannot write {path}: ")) as caught,
        file_size_limit(100_000),
    ):
        write_table(path, columns, force=True)
    assert "File too large" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_without_permission(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(InputError, match=r"cannot write .*Permission denied"):
            write_table(tmp_path / "t.csv", {"a": [1]})
    finally:
        tmp_path.chmod(0o700)


# Real files


@pytest.mark.parametrize(
    ("name", "nodes", "edges", "read", "self_loops"),
    [
        ("email-eu-core/email.txt", 1005, 16064, 25571, 642),
        ("seal/USAir.mat", 332, 2126, 2 * 2126, 0),
        ("seal/Wikipedia.mat", 4777, 92295, None, None),
        ("scale/road-euroroad.txt.gz", 1174, 1417, 1417, 0),
        ("scale/web-NotreDame.txt.gz", 325729, 1090108, 1497134, None),
        ("ogbl-ddi/edge.csv.gz", 4267, 1067911, 1067911, 0),
    ],
)
def test_real_files(
    shared_data: Path, name: str, nodes: int, edges: int, read: int | None, self_loops: int | None
) -> None:
    if not (shared_data / name).exists():
        pytest.skip(f"{name} is not in PSGNN_DATA")
    reading = read_graph(shared_data / name).reading
    assert (reading.nodes, reading.edges) == (nodes, edges)
    assert read is None or reading.read == read
    assert self_loops is None or reading.self_loops == self_loops
    assert reading.read == reading.edges + reading.reciprocal + reading.self_loops + reading.duplicates


def test_real_labels(shared_data: Path) -> None:
    folder = shared_data / "email-eu-core"
    if not folder.exists():
        pytest.skip("email-eu-core is not in PSGNN_DATA")
    data = read_graph(folder / "email.txt")
    labels = read_labels(folder / "email_labels.txt", data.names)
    assert labels[:3].tolist() == [1, 1, 21]
    assert np.unique(labels).tolist() == list(range(42))


# Columns that are asked for


@pytest.mark.parametrize("columns", [("sender", "recipient"), ("Sender", "RECIPIENT"), ("2", "3")])
def test_columns_by_name_and_number(tmp_path: Path, columns: tuple[str, str]) -> None:
    text = "date,sender,recipient\n2024-05-01,anna,bert\n2024-05-02,bert,cora\n"
    path = write(tmp_path / "mail.csv", text)
    source, target = columns
    data = read_graph(path, source=source, target=target)
    assert data.names == ["anna", "bert", "cora"]
    assert str(data.reading).endswith("; from 'sender' to 'recipient'; ignored 'date' (--time date)")
    frame = pl.read_csv(path)
    frame.write_parquet(tmp_path / "mail.parquet")
    assert read_graph(tmp_path / "mail.parquet", source=source, target=target).node_names == data.names


def test_columns_without_a_header(tmp_path: Path) -> None:
    path = write(tmp_path / "g.txt", "x 1 2\ny 2 3\nz 3 4\n")
    data = read_graph(path, source="2", target="3")
    assert data.num_nodes == 4
    assert str(data.reading).endswith("; ignored field 1")
    assert "ignored" not in str(read_graph(write(tmp_path / "h.txt", "1 2\n2 3\n")).reading)
    names = read_graph(write(tmp_path / "names.txt", "Ann Smith Bob Jones\nBob Jones Cem Su\n"))
    assert str(names.reading).endswith("; ignored field 3, field 4")


@pytest.mark.parametrize("columns", [("sender", "to"), ("1", "4"), ("0", "1"), ("2", "2")])
def test_columns_that_are_not_there(tmp_path: Path, columns: tuple[str, str]) -> None:
    path = write(tmp_path / "mail.csv", "date,sender,recipient\n2024-05-01,anna,bert\n")
    with pytest.raises(
        InputError,
        match=r"has no column 'to'; it has 'date, sender, recipient'|"
        r"has no column '[04]'; columns are numbered from 1 to 3|both name column '2'",
    ):
        read_graph(path, source=columns[0], target=columns[1])
    (tmp_path / "g.npz").write_bytes(b"")
    np.savez(tmp_path / "g.npz", edge_index=np.array([[0], [1]]))
    with pytest.raises(InputError, match="not a table of edges"):
        read_graph(tmp_path / "g.npz", source=columns[0], target=columns[1])


def test_a_header_that_may_be_misspelled_nodes_is_pointed_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="psgnn")
    path = write(tmp_path / "pairs.csv", "wer,wen\nanna,bert\n")
    assert read_pairs(path, ["anna", "bert"]).tolist() == [[0], [1]]
    assert not caplog.messages
    path = write(tmp_path / "pairs.csv", "ana,brt\nanna,bert\n")
    assert read_pairs(path, ["anna", "bert"]).tolist() == [[0], [1]]
    (note,) = caplog.messages
    assert "taken for a header, as the graph has no node 'ana'" in note
    assert "did you mean 'anna'?" in note


# --- numbers that stand for nodes


def test_few_links_of_very_many_nodes_are_refused_in_time(tmp_path: Path) -> None:
    """Names of two thousand million nodes would take all memory of the machine."""
    mtx = tmp_path / "g.mtx"
    mtx.write_text("%%MatrixMarket matrix coordinate pattern general\n2000000000 2000000000 1\n1 5\n")
    npz = tmp_path / "g.npz"
    np.savez(npz, edge_index=np.array([[5], [1_999_999_999]]))
    small = tmp_path / "small.npz"
    np.savez(
        small, edge_index=np.array([[5], [1]]), num_nodes=3_000_000
    )  # three million names, from 500 bytes
    for path, nodes in ((mtx, 2_000_000_000), (npz, 2_000_000_000), (small, 3_000_000)):
        with pytest.raises(InputError, match=f"{nodes} nodes and 1 entries; where few nodes have links"):
            read_graph(path)


# --- tables in memory


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_a_table_in_memory_is_read_like_a_file(kind: str, tmp_path: Path) -> None:
    import pandas
    import pyarrow

    frame = pl.DataFrame({"when": [3, 1, 2], "source": ["b", "a", "b"], "target": ["a", "c", "c"]})
    table = {
        "polars": frame,
        "pandas": pandas.DataFrame(frame.to_dict(as_series=False)),
        "arrow": pyarrow.table(frame.to_dict(as_series=False)),
    }[kind]
    frame.write_csv(tmp_path / "g.csv")
    graph, expected = read_graph(table), read_graph(tmp_path / "g.csv")
    assert graph.names == expected.names
    assert np.array_equal(graph.edges, expected.edges)
    other = read_graph(table, source="when", target="source")
    assert set(other.names) == {"1", "2", "3", "a", "b"}
    with pytest.raises(InputError, match="the table has no column 'from'; it has 'when, source, target'"):
        read_graph(table, source="from", target="to")


def test_integer_ids_of_a_table_are_in_order() -> None:
    graph = read_graph(pl.DataFrame({"a": [10, 2], "b": [2, 7]}))
    assert graph.names == ["2", "7", "10"]
    with pytest.raises(InputError, match="empty in row 1"):
        read_graph(pl.DataFrame({"a": ["x", None], "b": ["y", "z"]}))
    with pytest.raises(InputError, match="negative"):
        read_graph(pl.DataFrame({"a": [-1], "b": [2]}))
