"""How weights, directions, sides, times, tables of nodes and several graphs are read, and what is said about it."""

from __future__ import annotations

import sqlite3
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from conftest import Command
from psgnn.datasets import load_dataset
from psgnn.errors import InputError
from psgnn.graph import Graph, GraphBatch, read_graph, read_pairs

BUYS = """customer_id,product_id,when,amount
1,1,2024-01-03,2
1,2,2024-01-05,1
2,2,2024-02-01,3
2,3,2024-02-02,1
3,1,2024-02-10,1
3,3,2024-03-01,5
1,1,2024-04-03,4
"""
PEOPLE = """name,age,city,kind,all,note
Ada,31,Oslo,user,x,
Bo,,Oslo,user,x,
Cy,44,Rome,film,x,
Di,20,Rome,film,x,
Zoe,70,,user,x,
"""
LINKS = "from,to,when\nAda,Cy,2020-01-01\nBo,Cy,2020-02-01\nAda,Di,2020-03-05\nCy,Di,2020-05-01\n"


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def table_of(graph: Graph) -> list[tuple[Any, ...]]:
    return graph.to_polars().rows()


def day(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=timezone.utc).timestamp()


# Weights


def test_strengths_of_parallel_edges_add_up_in_both_directions(tmp_path: Path) -> None:
    path = write(tmp_path / "calls.csv", "who,whom,minutes\na,b,2\nb,a,3\na,b,0.5\nb,c,1\nc,c,9\n")
    graph = read_graph(path, weight="minutes", weight_is="strength")
    assert table_of(graph) == [("a", "b", 5.5), ("b", "c", 1.0)]
    assert graph.kind == {"strengths"}
    directed = read_graph(path, weight="minutes", weight_is="strength", directed=True)
    assert table_of(directed) == [("a", "b", 2.5), ("b", "a", 3.0), ("b", "c", 1.0)]
    assert "strengths are sums of 'minutes'" in str(directed.reading)


def test_count_counts_rows(tmp_path: Path) -> None:
    path = write(tmp_path / "calls.txt", "1 2\n2 1\n1 2\n2 3\n")
    assert read_graph(path, weight="count").strengths.tolist() == [3, 1]
    assert read_graph(path, weight="count", directed=True).strengths.tolist() == [2, 1, 1]
    assert "--weight count" in str(read_graph(path).reading)
    named = write(tmp_path / "named.csv", "u,v,count\n1,2,7\n2,3,1\n")
    assert read_graph(named, weight="count", weight_is="strength").strengths.tolist() == [7, 1]
    with pytest.raises(InputError, match="has a column 'count': say what it is with --weight-is"):
        read_graph(named, weight="count")


@pytest.mark.parametrize("is_what", ["length", "strength"])
@pytest.mark.parametrize("weight", ["0", "-2", "nan", "inf", "much", ""])
def test_a_weight_that_is_none_is_refused_with_its_line(tmp_path: Path, weight: str, is_what: str) -> None:
    path = write(tmp_path / "roads.csv", f"from,to,km\na,b,1\nb,c,{weight}\n")
    with pytest.raises(InputError, match="line 3"):
        read_graph(path, weight="km", weight_is=is_what)


def test_other_formats_call_their_weights_weight(tmp_path: Path) -> None:
    graph = nx.DiGraph()
    graph.add_edge("a", "b", weight=2.0, km=7, at="2024-01-01")
    graph.add_edge("b", "a", weight=3.0, km=5, at="2024-01-02")
    nx.write_graphml(graph, tmp_path / "g.graphml")
    nx.write_gml(graph, tmp_path / "g.gml")
    for source in (graph, tmp_path / "g.graphml", tmp_path / "g.gml"):
        found = read_graph(source, weight="weight", weight_is="strength", directed=True)
        assert found.strengths.tolist() == [2, 3]
    lengths = read_graph(graph, weight="km", weight_is="length", time="at")
    assert (lengths.lengths.tolist(), lengths.times.tolist()) == ([5], [day("2024-01-01")])
    with pytest.raises(InputError, match="has no column 'metres'; it has 'at, km, weight'"):
        read_graph(graph, weight="metres", weight_is="length")
    with pytest.raises(InputError, match="its weights are called weight, found --weight km"):
        read_graph(tmp_path / "g.gml", weight="km", weight_is="length")


def test_a_symmetric_matrix_has_every_edge_once(tmp_path: Path) -> None:
    matrix = scipy.sparse.coo_array(([2.0, 5.0, 1.0], ([0, 1, 0], [1, 2, 0])), shape=(3, 3))
    symmetric = matrix + matrix.T
    found = read_graph(symmetric, weight="weight", weight_is="strength")
    assert found.strengths.tolist() == [2, 5]
    scipy.sparse.save_npz(tmp_path / "g.npz", matrix.tocsr())
    assert read_graph(tmp_path / "g.npz", weight="weight", weight_is="length").lengths.tolist() == [2, 5]
    assert read_graph(matrix, directed=True).edges.tolist() == [[0, 1], [1, 2]]


# Direction


def test_a_format_that_is_undirected_has_no_direction(tmp_path: Path, run: Command) -> None:
    nx.write_gml(nx.path_graph(3), tmp_path / "g.gml")
    nx.write_graphml(nx.path_graph(3), tmp_path / "g.graphml")
    (tmp_path / "g.mtx").write_text("%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n2 1\n3 2\n")
    for source in (nx.path_graph(3), tmp_path / "g.graphml", tmp_path / "g.mtx"):
        with pytest.raises(InputError, match="is undirected, its edges have no source; leave out --directed"):
            read_graph(source, directed=True)
    code, out, err = run("anchors", tmp_path / "g.graphml", "--directed", "--out", "a.csv")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert not Path("a.csv").exists()


def test_a_direction_that_is_ignored_is_said(tmp_path: Path) -> None:
    graph = nx.DiGraph([("a", "b"), ("b", "c")])
    nx.write_graphml(graph, tmp_path / "g.graphml")
    for source in (graph, tmp_path / "g.graphml"):
        assert "its direction is ignored (--directed keeps it)" in str(read_graph(source).reading)
        assert read_graph(source, directed=True).directed


@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(1, 5)), min_size=1, max_size=30),
    st.booleans(),
)
def test_edges_and_strengths_are_those_of_networkx(rows: list[tuple[int, int, int]], directed: bool) -> None:
    expected: dict[tuple[int, int], int] = {}
    for u, v, weight in rows:
        pair = (u, v) if directed else (min(u, v), max(u, v))
        if u != v:
            expected[pair] = expected.get(pair, 0) + weight
    frame = pl.DataFrame(rows, schema=["u", "v", "n"], orient="row")
    if not expected:
        return
    graph = read_graph(frame, weight="n", weight_is="strength", directed=directed, sides=False)
    names = [int(name) for name in graph.names]
    found = {
        (names[u], names[v]): w for (u, v), w in zip(graph.edges.T.tolist(), graph.strengths, strict=True)
    }
    assert found == expected


# Times


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2024-05-31", day("2024-05-31")),
        ("2024-05", day("2024-05-01")),
        ("2024-05-31T14:30", day("2024-05-31T14:30")),
        ("2024-05-31 14:30:15.25", day("2024-05-31T14:30:15.250")),
        ("2024-05-31T14:30:00Z", day("2024-05-31T14:30")),
        ("2024-05-31T14:30:00+02:00", day("2024-05-31T12:30")),
        ("2024-05-31T14:30:00-0330", day("2024-05-31T18:00")),
        ("1717165800", 1717165800),
        ("1717165800.5", 1717165800.5),
    ],
)
def test_times_are_dates_or_seconds(tmp_path: Path, text: str, seconds: float) -> None:
    path = write(tmp_path / "g.csv", f"u,v,when\na,b,{text}\nb,c,{text}\n")
    graph = read_graph(path, time="when")
    assert graph.times.tolist() == [seconds, seconds]


@pytest.mark.parametrize(
    "text", ["31.05.2024", "2024-02-30", "2024-05-31T25:00", "soon", "", "1717165800000"]
)
def test_a_time_that_is_none_is_refused_with_its_line(run: Command, tmp_path: Path, text: str) -> None:
    write(tmp_path / "g.csv", f"u,v,when\na,b,2024-01-01\nb,c,{text}\n")
    code, out, err = run("anchors", "g.csv", "--time", "when", "--out", "a.csv")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "g.csv, line 3" in err
    assert not Path("a.csv").exists()


def test_the_first_and_the_last_time_of_an_edge_are_kept(tmp_path: Path) -> None:
    path = write(tmp_path / "g.csv", BUYS)
    graph = read_graph(path, time="when", sides=True)
    assert graph.times[0] == day("2024-01-03")
    assert graph.last_times[0] == day("2024-04-03")
    assert "times from 'when': 2024-01-03 to 2024-04-03" in str(graph.reading)


@pytest.mark.parametrize(
    ("until", "rows"),
    [
        ("2024", 7),
        ("2024-02", 5),
        ("2024-02-01", 3),
        ("2024-01-03", 1),
        ("2024-02-01T00:00", 3),
        (day("2024-02-02"), 4),
    ],
)
def test_until_keeps_what_was_known(tmp_path: Path, until: str | float, rows: int) -> None:
    path = write(tmp_path / "g.csv", BUYS)
    how: dict[str, Any] = {"time": "when", "weight": "amount", "weight_is": "strength", "sides": True}
    graph = read_graph(path, until=until, **how)
    assert graph.reading is not None
    assert graph.reading.read == rows
    amounts = [int(line.rpartition(",")[2]) for line in BUYS.splitlines()[1 : rows + 1]]
    assert graph.strengths.sum() == sum(amounts)


def test_until_needs_times_and_leaves_an_edge(tmp_path: Path) -> None:
    path = write(tmp_path / "g.csv", BUYS)
    with pytest.raises(InputError, match="--until goes with --time COLUMN"):
        read_graph(path, until="2024")
    with pytest.raises(InputError, match="--until 2023 leaves no edge; the first is of 2024-01-03"):
        read_graph(path, time="when", until="2023")
    with pytest.raises(InputError, match="--until then: the time cannot be read; write ISO dates"):
        read_graph(path, time="when", until="then")


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "parquet"])
def test_moments_of_tables(kind: str, tmp_path: Path) -> None:
    when = [datetime(2024, 5, 31, 12), datetime(2024, 6, 1)]
    columns = {"u": ["a", "b"], "v": ["b", "c"], "when": when}
    source: Any = {
        "pandas": lambda: pd.DataFrame(columns),
        "polars": lambda: pl.DataFrame(columns),
        "arrow": lambda: pyarrow.table(columns),
        "parquet": lambda: tmp_path / "g.parquet",
    }[kind]()
    pl.DataFrame(columns).write_parquet(tmp_path / "g.parquet")
    graph = read_graph(source, time="when")
    assert graph.times.tolist() == [day("2024-05-31T12:00"), day("2024-06-01")]
    assert "--time when" in str(read_graph(source).reading)


# Two sides


def test_ids_of_two_sides_are_apart(tmp_path: Path) -> None:
    graph = read_graph(write(tmp_path / "g.csv", BUYS), sides=True)
    assert graph.names == [f"{side}_id:{i}" for side in ("customer", "product") for i in (1, 2, 3)]
    assert graph.sides.tolist() == [0, 0, 0, 1, 1, 1]
    assert graph.side_names == ("customer_id", "product_id")
    assert "two-sided: 3 customer_id and 3 product_id" in str(graph.reading)
    assert graph.reading.self_loops == 0
    assert read_graph(tmp_path / "g.csv").sides is None


COUNTED = "is one node (--sides if the columns are two kinds)"


def test_two_columns_that_count_by_themselves_may_be_two_kinds(tmp_path: Path) -> None:
    rows = "".join(f"{1 + i},{1 + (i * j) % 6}\n" for i in range(12) for j in (1, 2, 5))
    path = write(tmp_path / "g.csv", "customer_id,product_id\n" + rows)
    assert COUNTED in str(read_graph(path).reading)
    for said in ({"sides": True}, {"sides": False}, {"directed": True}):
        assert COUNTED not in str(read_graph(path, **said).reading)


@pytest.mark.parametrize("name", ["grid", "communities"])
def test_columns_of_one_kind_count_to_the_same_end(tmp_path: Path, name: str) -> None:
    (graph,) = load_dataset(name)
    rows = "".join(f"{u},{v}\n" for u, v in graph.edges.T)
    assert COUNTED not in str(read_graph(write(tmp_path / "g.csv", "a,b\n" + rows)).reading)


def test_a_name_of_one_side_stays_as_it_is(tmp_path: Path) -> None:
    path = write(tmp_path / "g.csv", "user,film\nann,Up\nbob,Up\nbob,Heat\nann,ann\n")
    graph = read_graph(path, sides=True)
    assert graph.names == ["user:ann", "bob", "Heat", "Up", "film:ann"]
    assert table_of(graph)[1] == ("user:ann", "film:ann") or ("user:ann", "film:ann") in table_of(graph)


def test_two_sides_are_noticed_and_said(tmp_path: Path) -> None:
    rows = "".join(f"c{i},p{j}\n" for i in range(4) for j in range(3) if (i + j) % 4)
    path = write(tmp_path / "g.csv", "customer,product\n" + rows)
    graph = read_graph(path)
    assert graph.kind == {"sides"}
    assert "the columns share no name, so links are between two sides (--no-sides if they are not)" in str(
        graph.reading
    )
    plain = read_graph(path, sides=False)
    assert plain.sides is None
    assert np.array_equal(plain.edges, graph.edges)
    assert plain.names == graph.names


@pytest.mark.parametrize("rows", ["a,b\n", "a,b\nc,d\n", "h,a\nh,b\nh,c\nh,d\n", "a,b\nc,d\na,b\nc,d\na,d\n"])
def test_few_edges_and_stars_are_no_sign_of_two_sides(tmp_path: Path, rows: str) -> None:
    assert read_graph(write(tmp_path / "g.csv", "u,v\n" + rows)).sides is None


def test_pairs_of_a_file_are_found_on_their_sides(tmp_path: Path) -> None:
    graph = read_graph(write(tmp_path / "g.csv", BUYS), sides=True)
    path = write(tmp_path / "p.csv", "customer_id,product_id\n1,3\n2,1\ncustomer_id:3,2\n")
    found = read_pairs(path, graph.names, side_names=graph.side_names)
    assert [[graph.names[v] for v in pair] for pair in found.T.tolist()] == [
        ["customer_id:1", "product_id:3"],
        ["customer_id:2", "product_id:1"],
        ["customer_id:3", "product_id:2"],
    ]


# A table of nodes


def test_a_table_of_nodes_brings_isolated_nodes_and_features(tmp_path: Path) -> None:
    links, people = write(tmp_path / "links.csv", LINKS), write(tmp_path / "people.csv", PEOPLE)
    graph = read_graph(links, nodes=people)
    assert graph.names == ["Ada", "Bo", "Cy", "Di", "Zoe"]
    ages = np.array([31, np.nan, 44, 20, 70])
    expected = np.nan_to_num((ages - np.nanmean(ages)) / np.nanstd(ages))
    assert graph.x[:, 0] == pytest.approx(expected, rel=1e-6)
    assert graph.x[:, 1:].tolist() == [[1, 0, 0, 1], [1, 0, 0, 1], [0, 1, 1, 0], [0, 1, 1, 0], [0, 0, 0, 1]]
    said = str(graph.reading)
    assert "1 nodes without an edge come from the table of nodes" in said
    assert "'age', 'city' (2 values), 'kind' (2 values)" in said
    assert "missing values: 1 in 'age', 1 in 'city'" in said
    assert f"ignored in {people}: 'all' (all alike), 'note' (all alike)" in said


@pytest.mark.parametrize("kind", ["parquet", "pandas", "polars", "arrow"])
def test_tables_of_nodes_of_every_kind_say_the_same(tmp_path: Path, kind: str) -> None:
    links, people = write(tmp_path / "links.csv", LINKS), write(tmp_path / "people.csv", PEOPLE)
    frame = pl.read_csv(people)
    frame.write_parquet(tmp_path / "people.parquet")
    nodes: Any = {
        "parquet": lambda: tmp_path / "people.parquet",
        "polars": lambda: frame,
        "arrow": lambda: pyarrow.table(frame.to_dict(as_series=False)),
        "pandas": lambda: pd.read_csv(people),
    }[kind]()
    expected, found = read_graph(links, nodes=people), read_graph(links, nodes=nodes)
    assert found.names == expected.names
    assert np.array_equal(found.x, expected.x)


def test_classes_and_types_come_from_columns(tmp_path: Path) -> None:
    links, people = write(tmp_path / "links.csv", LINKS), write(tmp_path / "people.csv", PEOPLE)
    graph = read_graph(links, nodes=people, label="city", type="kind", between=("user", "film"))
    assert graph.y.tolist() == [0, 0, 1, 1, -1]
    assert graph.sides.tolist() == [0, 0, 1, 1, 0]
    assert graph.side_names == ("user", "film")
    assert graph.x.shape == (5, 1)
    said = str(graph.reading)
    assert "1 links are not between the two types: they are seen, and never asked about" in said
    assert "1 nodes have no label" in said


def test_integer_names_stay_in_order(tmp_path: Path) -> None:
    write(tmp_path / "n.csv", "id,z\n10,1\n3,2\n2,3\n")
    graph = read_graph(write(tmp_path / "g.txt", "2 10\n10 1\n"), nodes=tmp_path / "n.csv")
    assert graph.names == ["1", "2", "3", "10"]
    assert graph.x[0] == 0
    assert "1 nodes are not in the table of nodes" in str(graph.reading)


def test_the_next_version_gets_the_same_features(tmp_path: Path) -> None:
    links, people = write(tmp_path / "links.csv", LINKS), write(tmp_path / "people.csv", PEOPLE)
    first = read_graph(links, nodes=people)
    later = write(tmp_path / "later.csv", PEOPLE.replace("Oslo", "Lima").replace("70", "90"))
    options = {**first.reading.options, "nodes": later}
    second = read_graph(links, **options)
    assert second.x.shape == first.x.shape
    assert second.x[[0, 2, 3], 0].tolist() == first.x[[0, 2, 3], 0].tolist()
    assert second.x[0, 1:3].tolist() == [0, 0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"node_name": "nam"}, "has no column 'nam'; did you mean 'name'?"),
        ({"label": "town"}, "has no column 'town'"),
        ({"node_name": "kind"}, "line 3 .*stands further up already"),
        ({"type": "kind"}, "--type goes with --between A,B: links between which types\\? It has user,film"),
        ({"type": "kind", "between": ("user", "book")}, "no node of type 'book'; its types are user, film"),
        ({"between": ("user", "film")}, "--between goes with --nodes FILE and --type COLUMN"),
        ({"type": "kind", "between": ("user", "film"), "sides": True}, "pass --between, or --sides"),
    ],
)
def test_wrong_tables_of_nodes(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    links, people = write(tmp_path / "links.csv", LINKS), write(tmp_path / "people.csv", PEOPLE)
    with pytest.raises(InputError, match=message):
        read_graph(links, nodes=people, **options)


def test_options_about_nodes_need_the_table(tmp_path: Path) -> None:
    links = write(tmp_path / "links.csv", LINKS)
    for option in ("node_name", "label", "type"):
        with pytest.raises(InputError, match=f"--{option.replace('_', '-')} goes with --nodes FILE"):
            read_graph(links, **{option: "kind"})


# Several graphs


def test_a_column_says_which_graph(tmp_path: Path) -> None:
    path = write(tmp_path / "g.csv", "g,u,v,n\n2,a,b,1\n10,b,c,2\n2,b,c,3\n10,x,b,4\n")
    graphs = read_graph(path, graph_id="g", source="u", target="v", weight="n", weight_is="strength")
    assert [graph.names for graph in graphs] == [["a", "b", "c"], ["b", "c", "x"]]
    assert [graph.strengths.tolist() for graph in graphs] == [[1, 3], [2, 4]]
    assert GraphBatch.of(graphs).num_graphs == 2


def test_several_sources_are_several_graphs(tmp_path: Path) -> None:
    one, two = write(tmp_path / "a.csv", "u,v\na,b\nb,c\n"), write(tmp_path / "b.csv", "u,v\nx,y\ny,z\n")
    graphs = read_graph([one, pl.read_csv(two)])
    assert [graph.names for graph in graphs] == [[*"abc"], [*"xyz"]]


def test_two_sides_by_chance_do_not_part_graphs(tmp_path: Path) -> None:
    one = write(tmp_path / "a.csv", "u,v\na,x\na,y\nb,x\nb,y\nc,x\n")
    two = write(tmp_path / "b.csv", "u,v\nx,y\ny,z\n")
    assert read_graph(one).sides is not None
    assert [graph.sides for graph in read_graph([one, two])] == [None, None]


# Text


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_names_are_text(tmp_path: Path, encoding: str, newline: str) -> None:
    lines = [
        "who,whom,when",
        "007,7,2024-01-01",
        '7,"Bond, James",2024-01-02',
        "7,Q,2024-01-03",
        "q,Q,2024-01-04",
    ]
    mark = b"\xff\xfe" if encoding == "utf-16-le" else b""
    path = write(tmp_path / "g.csv", mark + newline.join([*lines, ""]).encode(encoding))
    graph = read_graph(path, source="who", target="whom", time="when", directed=True)
    assert [row[:3] for row in table_of(graph)] == [
        ("007", "7", day("2024-01-01")),
        ("7", "Bond, James", day("2024-01-02")),
        ("7", "Q", day("2024-01-03")),
        ("q", "Q", day("2024-01-04")),
    ]


# Databases


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    path = tmp_path / "shop.db"
    with sqlite3.connect(path) as connection:
        connection.execute("create table sales (customer text, product text, day text, amount real)")
        rows = [line.split(",") for line in BUYS.splitlines()[1:]]
        connection.executemany("insert into sales values ('c' || ?, 'p' || ?, ?, ?)", rows)
    connection.close()
    return path


def test_a_query_gives_the_edges(shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    query = "select customer, product, day, amount from sales"
    how: dict[str, Any] = {"time": "day", "weight": "amount", "weight_is": "strength"}
    graph = read_graph(f"sqlite:///{shop}", query=query, **how)
    expected = read_graph(pl.read_database(query, sqlite3.connect(shop)), **how)
    assert table_of(graph) == table_of(expected)
    assert graph.kind == {"sides", "times", "strengths"}
    monkeypatch.chdir(tmp_path)
    assert table_of(read_graph("sqlite:///shop.db", query=query, **how)) == table_of(graph)
    assert table_of(read_graph(sqlite3.connect(shop), query=query, **how)) == table_of(graph)


def test_wrong_queries_are_one_line(run: Command, shop: Path) -> None:
    address = f"sqlite:///{shop}"
    for options, message in [
        ([address], "is a database; pass the SQL of its edges with --query"),
        (
            [address, "--query", "select nothingness from sales"],
            "the query fails: no such column: nothingness",
        ),
        (["sqlite:///none.db", "--query", "select 1"], "none.db does not exist"),
        ([shop, "--query", "select 1"], "--query goes with the address of a database"),
        (
            ["postgresql://me:secret@host/db", "--query", "select 1"],
            "--query needs connectorx: pip install 'psgnn[sql]'",
        ),
    ]:
        code, out, err = run("anchors", *options, "--out", "a.csv")
        assert (code, out, err.count("\n")) == (2, "", 1), err
        assert message in err
        assert "secret" not in err
        assert not Path("a.csv").exists()


def test_a_query_only_reads(shop: Path) -> None:
    with pytest.raises(InputError, match="the query fails"):
        read_graph(f"sqlite:///{shop}", query="delete from sales returning customer, product")
    assert sqlite3.connect(shop).execute("select count(*) from sales").fetchone() == (7,)


# Options of commands


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--source", "from"), "--source and --target go together"),
        (("--source", "form", "--target", "to"), "has no column 'form'; did you mean 'from'?"),
        (("--time", "wen"), "has no column 'wen'; did you mean 'when'?"),
        (
            ("--weight", "from", "--weight-is", "length"),
            "column 'from' holds nodes; --weight names another column",
        ),
        (("--weight", "when", "--weight-is", "length", "--time", "when"), "another role already"),
        (("--graph-id", "group"), "has no column 'group'"),
        (("--between", "user"), "--between takes two types"),
    ],
)
def test_wrong_options_are_one_line(
    run: Command, tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    write(tmp_path / "links.csv", LINKS)
    code, out, err = run("anchors", "links.csv", *options, "--out", "a.csv")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err
    assert not Path("a.csv").exists()


# Back into other libraries


@pytest.mark.parametrize("directed", [False, True])
def test_what_edges_have_goes_with_them(directed: bool) -> None:
    frame = pl.DataFrame({"u": [*"abca"], "v": [*"bcab"], "n": [2, 3, 4, 5], "at": [30, 10, 20, 40]})
    how: dict[str, Any] = {"weight": "n", "weight_is": "strength", "time": "at", "directed": directed}
    graph = read_graph(frame, **how)
    expected = {(u, v): (n, at, last) for u, v, n, at, last in table_of(graph)}
    assert expected["a", "b"] == (7, 30, 40)

    found = graph.to_networkx()
    assert found.is_directed() == directed
    assert {
        tuple(sorted(edge)) if not directed else edge: (data["strength"], data["time"], data["last_time"])
        for *edge, data in ((u, v, data) for u, v, data in found.edges(data=True))
        for edge in [tuple(edge)]
    } == {tuple(sorted(edge)) if not directed else edge: values for edge, values in expected.items()}

    matrix = graph.to_scipy().toarray()
    assert (matrix == matrix.T).all() != directed
    again = read_graph(graph.to_scipy(), weight="weight", weight_is="strength", directed=directed)
    assert again.strengths.tolist() == graph.strengths.tolist()

    data = graph.to_pyg()
    names = data.node_names
    for (u, v), strength in zip(data.edge_index.T.tolist(), data.edge_strength.tolist(), strict=True):
        pair = (names[u], names[v])
        assert expected[pair if pair in expected else pair[::-1]][0] == strength
    assert data.edge_index.shape[1] == graph.num_edges * (1 if directed else 2)
