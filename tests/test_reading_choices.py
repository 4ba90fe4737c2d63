"""What a reader decides by itself: comments or hashtags, an index or nodes, separators, encodings, names of rows."""

from __future__ import annotations

import io
import json
import logging
import sys
from pathlib import Path

import networkx as nx
import pandas as pd
import polars as pl
import pytest

from psgnn.errors import InputError
from psgnn.graph import Graph, read_graph

TAGS = {frozenset(("#ai", "#ml")), frozenset(("#ai", "bob")), frozenset(("#ml", "#python"))}


def links(graph: Graph) -> set[frozenset[str]]:
    return {frozenset((graph.names[u], graph.names[v])) for u, v in graph.edges.T.tolist()}


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


# Lines that begin with '#'


@pytest.mark.parametrize(
    "text",
    [
        "#ai,#ml\n#ai,bob\n#ml,#python\n",
        "tag,other\n#ai,#ml\n#ai,bob\n#ml,#python\n",
        "bob,#ai\n#ai,#ml\n% a comment\n#ml,#python\n",
        "#ai #ml\nbob #ai\n#ml #python\n",
        '"#ai","#ml"\n"#ai",bob\n"#ml","#python"\n# comment\n',
    ],
)
def test_hashtags_are_names(tmp_path: Path, text: str) -> None:
    assert links(read_graph(write(tmp_path / "g.csv", text))) == TAGS


def test_a_sign_on_its_own_begins_a_comment_among_hashtags(tmp_path: Path) -> None:
    text = "# tags that are\n#ai #ml\nbob #ai\n#\n#ml #python\n# used together\n"
    assert links(read_graph(write(tmp_path / "g.txt", text))) == TAGS


def test_first_names_may_be_hashtags_alone(tmp_path: Path) -> None:
    text = "tag,user\n#ai,ann\n#ml,bob\n#ai,bob\n"
    assert links(read_graph(write(tmp_path / "g.csv", text))) == {
        frozenset(("#ai", "ann")),
        frozenset(("#ml", "bob")),
        frozenset(("#ai", "bob")),
    }


@pytest.mark.parametrize(
    "text",
    [
        "#Directed graph\n#Nodes here\n1 2\n2 3\n",
        "# a,b\n1,2\n2,3\n#5,6\n#6,7\n#7,8\n",
        "#!shell\n##two\n1,2\n2,3\n",
    ],
)
def test_comments_stay_comments(tmp_path: Path, text: str) -> None:
    assert read_graph(write(tmp_path / "g.csv", text)).names == ["1", "2", "3"]


def test_a_comment_that_may_be_an_edge_is_pointed_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="psgnn")
    graph = read_graph(write(tmp_path / "g.csv", "a,b\nb,c\nc,d\n#ann,bob\n"))
    assert graph.names == [*"abcd"]
    assert any("'#ann,bob' were taken for comments" in message for message in caplog.messages)
    caplog.clear()
    read_graph(write(tmp_path / "g.csv", "a,b\n# ann,bob\n#just words\nb,c\n"))
    assert not any("comments" in message for message in caplog.messages)


@pytest.mark.parametrize("header", [None, True])
def test_the_header_of_string_names_columns(tmp_path: Path, header: bool | None) -> None:
    text = "#node1\tscore\tnode2\nTP53\t0.9\tMDM2\nMDM2\t0.8\tATM\n"
    graph = read_graph(write(tmp_path / "g.tsv", text), header=header)
    assert links(graph) == {frozenset(("TP53", "MDM2")), frozenset(("MDM2", "ATM"))}
    assert graph.reading is not None
    assert graph.reading.ignored == ("'score' (--weight score)",)
    asked = read_graph(tmp_path / "g.tsv", source="node2", target="node1")
    assert links(asked) == links(graph)


# Columns


@pytest.mark.parametrize(
    "text",
    [
        "edge_id,person_a,person_b\n17,ann,bob\n4,bob,cy\n",
        "id,person_a,person_b,since\n17,ann,bob,2020\n4,bob,cy,2021\n",
        "nr.,person_a,person_b\n1,ann,bob\n2,bob,cy\n3,cy,bob\n",
        ":START_ID(Person),role,:END_ID(Movie),:TYPE\nann,x,bob,KNOWS\nbob,x,cy,KNOWS\n",
    ],
)
def test_numbers_of_edges_are_no_nodes(tmp_path: Path, text: str) -> None:
    expected = {frozenset(("ann", "bob")), frozenset(("bob", "cy"))}
    path = write(tmp_path / "g.csv", text)
    assert links(read_graph(path)) == expected
    assert links(read_graph(pd.read_csv(path))) == expected
    pl.read_csv(path).write_parquet(tmp_path / "g.parquet")
    assert links(read_graph(tmp_path / "g.parquet")) == expected


def test_ids_of_two_spaces_of_neo4j_are_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for header, told in (
        (":START_ID(Person),:END_ID(Film)", True),
        (":START_ID(Person),:END_ID(Person)", False),
    ):
        with caplog.at_level("INFO", "psgnn"):
            caplog.clear()
            graph = read_graph(write(tmp_path / "g.csv", f"{header}\n1,2\n2,3\n3,1\n"))
        assert graph.num_nodes == 3
        assert ("an id in both columns is one node (--sides if" in caplog.text) is told


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("edge_id,a,b\n1,5,6\n2,6,7\n", ["5", "6", "7"]),
        ("a,b,weight\n1,2,5\n2,3,6\n3,4,7\n", ["1", "2", "3", "4"]),
        ("id,friend,since\n1,2,5\n2,3,6\n3,4,7\n", ["1", "2", "3", "4"]),
        ("row,a,b\n1,x,y\n1,y,z\n", ["1", "x", "y"]),  # 1 comes twice
    ],
)
def test_a_first_column_of_numbers(tmp_path: Path, text: str, names: list[str]) -> None:
    assert read_graph(write(tmp_path / "g.csv", text)).names == names


@pytest.mark.parametrize(
    ("header", "asked"), [("id,a,b\n", "--source a --target b"), ("", "--source 2 --target 3")]
)
def test_nodes_that_may_number_the_edges_are_noted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, header: str, asked: str
) -> None:
    rows = [f"{i},{100 + i % 7},{100 + i % 5}\n" for i in range(30)]
    with caplog.at_level("INFO", "psgnn"):
        read_graph(write(tmp_path / "g.csv", header + "".join(rows)))
    assert f"if it numbers the edges, pass {asked}" in caplog.text


def test_numbers_of_edges_without_a_header(tmp_path: Path) -> None:
    roads = [
        f"{i} {1600 + i} {1700 - i % 3} {i}.5" for i in range(20)
    ]  # as the roads of Oldenburg are written
    graph = read_graph(write(tmp_path / "g.txt", "\n".join(roads)))
    assert set(graph.names) == {str(1600 + i) for i in range(20)} | {"1698", "1699", "1700"}
    assert graph.reading is not None
    assert graph.reading.weighted
    path_graph = [f"{i} {i + 1} {i}.5" for i in range(20)]  # a weight in the third column
    assert len(read_graph(write(tmp_path / "h.txt", "\n".join(path_graph))).names) == 21


@pytest.mark.parametrize(
    "text",
    [
        "anna;bob;0,5\nbob;cy;1,25\n",
        "source;target;weight\nanna;bob;0,5\nbob;cy;-1,25\n",
        "source;target;weight;note\nanna;bob;0,5;a, b\nbob;cy;1,25;c, d\n",
    ],
)
def test_semicolons_with_decimal_commas(tmp_path: Path, text: str) -> None:
    graph = read_graph(write(tmp_path / "g.csv", text))
    assert graph.names == ["anna", "bob", "cy"]
    assert graph.reading is not None
    assert graph.reading.weighted


def test_commas_with_semicolons_in_fields(tmp_path: Path) -> None:
    text = "source,target,note\nann,bob,x;y\nbob,cy,y;z\n"
    assert read_graph(write(tmp_path / "g.csv", text)).names == ["ann", "bob", "cy"]


# Encodings, standard input, formats


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "utf-8"])
def test_encodings(tmp_path: Path, encoding: str) -> None:
    text = "source,target\nÄnne,Bob\nBob,東京\n"
    assert set(read_graph(write(tmp_path / "g.csv", text.encode(encoding))).names) == {"Änne", "Bob", "東京"}


def test_standard_input(run, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    def given(text: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))

    given(b"a b\nb c\n")
    assert read_graph("-").names == ["a", "b", "c"]
    given(b"a b\nb c\n")
    code, out, _ = run("anchors", "-", "--anchors", 1, "--json")
    assert (code, json.loads(out)["graph"]) == (0, "-")
    given(b"")
    assert run("anchors", "-")[::2] == (
        2,
        "psgnn: error: standard input is empty; expected a graph or a table\n",
    )


def test_matrix_market_names_are_those_of_the_file(tmp_path: Path) -> None:
    head = "%%MatrixMarket matrix coordinate pattern general\n4 4 2\n"
    graph = read_graph(write(tmp_path / "g.mtx", head + "1 2\n2 4\n"))
    assert graph.names == ["1", "2", "3", "4"]
    assert links(graph) == {frozenset("12"), frozenset("24")}


def test_gml_with_labels_as_names(tmp_path: Path) -> None:
    path = tmp_path / "g.gml"
    karate = nx.relabel_nodes(nx.karate_club_graph(), lambda node: f"member {node}")
    nx.write_gml(karate, path)
    assert links(read_graph(path)) == {frozenset(edge) for edge in karate.edges}
    write(path, "graph [\n  node [ id 1 ]\n  node [ id 2 ]\n  edge [ source 1 target 2 value 2 ]\n]\n")
    assert read_graph(path).names == ["1", "2"]
    assert "weights" in str(read_graph(path).reading)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("g.gml", "graph [ node [ id 1 ] edge [ source 1 ] ]", "line 1: edge has no 'target'"),
        ("g.gml", "graph [ node [ id 1 ]", "ends inside a block"),
        ("g.gml", "graph [ node [ id 1 ] ] ]", "closes nothing"),
        ("g.gml", "a,b\n", "declares no nodes|ends inside"),
        ("g.gml", "graph [ node [ id 1 ] edge [ source 1 target 7 ] ]", "node '7'"),
        ("g.gml", "graph [ node [ id 1 ] edge [ source 1 target 1 weight x ] ]", "the weight 'x'"),
        ("g.json", "[1, 2]", "another form"),
        ("g.json", '{"nodes": [], "links": []}', "declares no nodes"),
        ("g.json", '{"nodes": [{}], "links": []}', "node 0: expected a name"),
        ("g.json", '{"nodes": [{"id": 1}], "links": [3]}', "link 0: expected a name"),
        ("g.json", '{"nodes": [{"id": 1}], "links": [{"source": 1, "target": 1, "weight": []}]}', "weight"),
        ("g.json", "[" * 100_000, "nested too deeply|cannot be read as JSON"),
        ("g.json", '{"nodes": [{"id": "a"}', "cannot be read as JSON"),
    ],
)
def test_bad_gml_and_json(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read_graph(write(tmp_path / name, text))
    assert name in str(caught.value)


def test_attributes_that_are_left_out_are_named() -> None:
    graph = nx.karate_club_graph()
    nx.set_node_attributes(graph, 1, "y")
    reading = read_graph(graph).reading
    assert reading is not None
    assert reading.ignored == ("node attribute club",)
