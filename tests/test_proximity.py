"""Distances to named sets, between them, and of named pairs, against networkx and against all subsets."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path

import networkx as nx
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import psgnn
from conftest import Command, random_graphs
from psgnn.distances import pair_distances, set_distances, set_proximity
from psgnn.errors import InputError

BARBELL = nx.barbell_graph(6, 3)


def hops_of(graph: nx.Graph) -> np.ndarray:
    """Hops between all nodes 0..N-1, NaN without a path."""
    found = np.full((len(graph), len(graph)), np.nan)
    for source, lengths in nx.all_pairs_shortest_path_length(graph):
        found[source, list(lengths)] = list(lengths.values())
    return found


def bins_of(graph: nx.Graph, least: int) -> list[list[int]]:
    """Bins of degrees as the toolbox of Guney et al. makes them."""
    by_degree: dict[int, list[int]] = {}
    for node, degree in graph.degree():
        by_degree.setdefault(degree, []).append(node)
    bins: list[list[int]] = []
    waiting: list[int] = []
    for degree in sorted(by_degree):
        waiting = waiting + by_degree[degree]
        if len(waiting) >= least:
            bins.append(waiting)
            waiting = []
    if waiting:
        bins[-1:] = [bins[-1] + waiting] if bins else [waiting]
    return bins


def random_sets(graph: nx.Graph, members: list[int], least: int) -> list[list[int]]:
    """All sets that have as many nodes of each bin as the members."""
    found: list[list[int]] = [[]]
    for nodes in bins_of(graph, least):
        count = len(set(nodes) & set(members))
        found = [[*head, *tail] for head in found for tail in combinations(nodes, count)]
    return found


def closest(hops: np.ndarray, source: list[int], target: list[int]) -> float:
    near = hops[np.ix_(source, target)]
    near = near[~np.isnan(near).all(axis=1)]
    return float(np.nanmin(near, axis=1).mean()) if near.size else np.nan


@given(random_graphs(min_nodes=2), st.data())
def test_distances_to_sets_are_those_of_networkx(graph: nx.Graph, data: st.DataObject) -> None:
    if not graph.number_of_edges():
        return
    some = st.lists(st.sampled_from(sorted(graph)), min_size=1, unique=True)
    sets = {"a": data.draw(some), "b": data.draw(some)}
    hops = hops_of(graph)
    frame = set_distances(graph, sets, samples=0)
    for name, members in sets.items():
        rows = frame.filter(pl.col("set") == name)
        assert rows["node"].to_list() == [str(node) for node in graph]
        reached = ~np.isnan(hops[:, members])
        assert rows["reached"].to_list() == reached.sum(axis=1).tolist()
        for v, (near, mean) in enumerate(rows.select("nearest", "mean").rows()):
            if reached[v].any():
                assert (near, mean) == (
                    np.nanmin(hops[v, members]),
                    pytest.approx(np.nanmean(hops[v, members])),
                )
            else:
                assert (near, mean) == (None, None)
        assert rows.select("expected", "z").null_count().row(0) == (len(graph), len(graph))
    for source, target, distance, *_, unreached in set_proximity(graph, sets, samples=0).rows():
        expected = closest(hops, sets[source], sets[target])
        assert (distance is None) if np.isnan(expected) else distance == pytest.approx(expected)
        apart = np.isnan(hops[np.ix_(sets[source], sets[target])]).all(axis=1)
        assert unreached == apart.sum()


@pytest.mark.parametrize(
    ("graph", "members", "least"),
    [
        (nx.barabasi_albert_graph(40, 2, seed=3), [0, 1, 17], 12),  # 2 bins or more
        (
            nx.gnp_random_graph(40, 0.1, seed=1),
            [3, 8, 21],
            100,
        ),  # one bin: 9880 sets, more than a block of columns
        (nx.disjoint_union(nx.path_graph(9), nx.cycle_graph(6)), [1, 12], 4),  # two components
    ],
)
def test_chance_is_that_of_all_sets_with_these_degrees(
    graph: nx.Graph, members: list[int], least: int
) -> None:
    hops = hops_of(graph)
    near = np.array([np.fmin.reduce(hops[:, nodes], axis=1) for nodes in random_sets(graph, members, least)])
    mean, sd = np.nanmean(near, axis=0), np.nanstd(near, axis=0)
    found = set_distances(graph, {"mine": members}, samples=20_000, bin_size=least)
    assert found["expected"].to_numpy() == pytest.approx(mean, abs=5 * sd.max() / 100)
    own = np.fmin.reduce(hops[:, members], axis=1)
    known = found["z"].is_not_null().to_numpy()
    assert known.tolist() == (~np.isnan(own) & (sd > 0)).tolist()
    assert found["z"].to_numpy()[known] == pytest.approx(((own - mean) / sd)[known], abs=0.15)


def test_chance_between_sets_is_that_of_all_pairs_of_sets() -> None:
    graph = nx.barabasi_albert_graph(24, 2, seed=5)
    hops, sets = hops_of(graph), {"drug": [3, 9], "disease": [0, 12, 20]}
    drawn = {name: random_sets(graph, members, 8) for name, members in sets.items()}
    assert len(bins_of(graph, 8)) > 1
    found = set_proximity(graph, sets, samples=20_000, bin_size=8)
    assert found.select("from", "to").rows() == [("drug", "disease"), ("disease", "drug")]
    for source, target, distance, expected, sd, z, unreached in found.rows():
        rng = np.random.default_rng(0)
        all_pairs = np.array(
            [closest(hops, rng.choice(drawn[source]), rng.choice(drawn[target])) for _ in range(9000)]
        )
        assert expected == pytest.approx(all_pairs.mean(), abs=0.03)
        assert sd == pytest.approx(all_pairs.std(), rel=0.08)
        assert distance == closest(hops, sets[source], sets[target])
        assert z == pytest.approx((distance - expected) / sd)
        assert unreached == 0


def test_random_sets_depend_on_seed_and_name_alone() -> None:
    graph, mine = nx.barabasi_albert_graph(200, 3, seed=2), {"mine": [5, 50, 100]}
    alone = set_distances(graph, mine, samples=100)
    assert alone.equals(set_distances(graph, mine, samples=100))
    beside = set_distances(graph, {"other": [1, 2], **mine}, samples=100)
    assert alone.equals(beside.filter(pl.col("set") == "mine"))
    assert not alone.equals(set_distances(graph, mine, samples=100, seed=1))


def test_a_set_that_chance_cannot_change_has_no_z(caplog: pytest.LogCaptureFixture) -> None:
    found = set_distances(nx.star_graph(5), {"hub": [0]}, bin_size=1)
    assert found["expected"].to_list() == found["nearest"].to_list() == [0, 1, 1, 1, 1, 1]
    assert found["z"].null_count() == 6
    assert "the set 'hub' has no z-scores: no other node has a degree like" in caplog.text
    everyone = set_proximity(BARBELL, {"all": list(BARBELL), "one": [0]})
    assert everyone["z"].to_list()[1] is None


def test_pairs_are_those_of_networkx() -> None:
    graph = nx.disjoint_union(BARBELL, nx.path_graph(3))
    pairs = [(u, v) for u in graph for v in graph]
    found = pair_distances(graph, [(str(u), str(v)) for u, v in pairs])
    hops = hops_of(graph)
    assert found["hops"].to_list() == [None if np.isnan(hops[p]) else hops[p] for p in pairs]
    assert pair_distances(graph, pairs).equals(found)
    near = pair_distances(graph, pairs, cutoff=2)["hops"].to_list()
    assert near == [hops[p] if hops[p] <= 2 else None for p in pairs]


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        ({}, "no set was given"),
        ({"a": []}, "the set 'a' has no nodes; name at least one"),
        ({"a": ["0", "1", "0"]}, "the set 'a' names '0' twice; name each node once"),
        ({"a": ["0", "00"]}, "the graph has no node '00'"),
        ({"a": [99]}, "there is no node 99; the graph has the nodes 0..14"),
        (["0", "1"], "sets must map names to nodes, found list"),
        ({"a": ["0"]}, "needs two of them, found one; set_distances measures one"),
    ],
)
def test_sets_that_are_refused(sets: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        set_proximity(BARBELL, sets)


@pytest.mark.parametrize("options", [{"samples": -1}, {"seed": -1}, {"bin_size": 0}, {"samples": 2.5}])
def test_options_that_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(InputError, match="is not an integer of"):
        set_distances(BARBELL, {"a": [0]}, **options)


# The command

VILLAGE = "source,target\nada,bob\nbob,cy\ncy,dee\ndee,eve\nfay,gus\n"


def test_the_command_writes_nodes_and_prints_sets(run: Command) -> None:
    Path("g.csv").write_text(VILLAGE)
    Path("sets.csv").write_text("set,node\nends,ada\nends,eve\nmiddle,cy\nislet,gus\n")
    code, out, _ = run(
        "distances", "g.csv", "--sets", "sets.csv", "--samples", "50", "--out", "near.csv"
    )  # fmt: skip
    assert code == 0
    assert "distances of 7 nodes to 3 sets are in near.csv" in out
    assert [line.split()[:3] for line in out.splitlines() if line.strip().startswith(("middle", "islet"))]
    graph = psgnn.read_graph("g.csv")
    sets = {"ends": ["ada", "eve"], "middle": ["cy"], "islet": ["gus"]}
    expected = set_distances(graph, sets, samples=50)
    assert pl.read_csv("near.csv", schema=expected.schema).equals(expected, null_equal=True)
    code, out, _ = run("distances", "g.csv", "--sets", "sets.csv", "--samples", "50", "--json")
    document = json.loads(out)
    assert document["proximity"] == set_proximity(graph, "sets.csv", samples=50).to_dicts()
    assert document["rows"] == expected.to_dicts()
    assert document["sets"][0] == {"set": "ends", "members": 2}


def test_the_command_ranks_the_nodes_near_one_set(run: Command) -> None:
    Path("g.csv").write_text(VILLAGE)
    Path("sets.txt").write_text("ada ends\neve ends\n")
    code, out, _ = run("distances", "g.csv", "--sets", "sets.txt")
    assert code == 0
    listed = [line.split()[0] for line in out.splitlines() if line.split()[1:2] in (["1"], ["2"])]
    assert sorted(listed) == ["bob", "cy", "dee"]  # neither the members nor who cannot reach them


def test_the_command_measures_pairs(run: Command) -> None:
    Path("g.csv").write_text(VILLAGE)
    Path("pairs.csv").write_text("from,to\nada,cy\nada,fay\nada,eve\n")
    code, out, _ = run("distances", "g.csv", "--pairs", "pairs.csv", "--cutoff", "3")
    assert code == 0
    rows = [line.split() for line in out.splitlines() if line.strip().startswith("ada")]
    assert rows == [["ada", "cy", "2"], ["ada", "fay", "-"], ["ada", "eve", "-"]]
    assert run("distances", "g.csv", "--pairs", "pairs.csv", "--out", "hops.npz")[0] == 0
    with np.load("hops.npz") as found:
        assert found["target"].tolist() == ["cy", "fay", "eve"]
        assert np.array_equal(found["hops"], [2, np.nan, 4], equal_nan=True)


def test_an_anchor_file_may_have_a_header_and_comments(run: Command) -> None:
    Path("g.csv").write_text(VILLAGE)
    Path("anchors.txt").write_text("# mine\nanchor\ncy\n\ngus\n")
    code, _, err = run("distances", "g.csv", "--anchor-file", "anchors.txt", "--out", "hops.csv")
    assert code == 0
    assert "anchors.txt: the first line, 'anchor', was taken for a header" in err
    assert pl.read_csv("hops.csv").columns == ["node", "to_cy", "to_gus"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--sets", "none.csv"), "none.csv does not exist"),
        (("--sets", "sets.csv", "--pairs", "sets.csv"), "pass one of --sets and --pairs"),
        (("--sets", "typo.csv"), "the graph has no node 'bobb'; did you mean 'bob'?"),
        (("--sets", "twice.csv"), "line 3 ('ada,x'): the node stands in this set already"),
        (("--sets", "gap.csv"), "expected two fields"),
        (("--sets", "sets.csv", "--cutoff", "2"), "--cutoff goes with anchors and pairs"),
        (("--sets", "sets.csv", "--directed"), "--directed goes with anchors and pairs"),
        (("--sets", "sets.csv", "--engine", "spark"), "--sets goes with --engine numba"),
        (("--pairs", "sets.csv", "--engine", "spark"), "--pairs goes with --engine numba"),
        ((), "pass --out FILE, or ask about --sets or --pairs"),
        (
            ("--anchor-file", "first.txt", "--out", "x.csv"),
            "first.txt, line 1: the graph has no node 'adda'; did",
        ),
        (("--anchor-file", "one.txt", "--out", "x.csv"), "one.txt, line 1: the graph has no node 'anchor'"),
        (("--sets", "sets.csv", "--out", "x.doc"), "x.doc"),
    ],
)
def test_what_the_command_refuses(run: Command, arguments: tuple[str, ...], message: str) -> None:
    files = {
        "g.csv": VILLAGE,
        "sets.csv": "node,set\nada,x\nbob,y\n",
        "typo.csv": "node,set\nada,x\nbobb,y\n",
        "twice.csv": "node,set\nada,x\nada,x\nada,y\n",
        "gap.csv": "node,set\nada,\n",
        "first.txt": "adda\nbob\n",
        "one.txt": "anchor\n",
    }
    for name, text in files.items():
        Path(name).write_text(text)
    code, out, err = run("distances", "g.csv", *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
    assert not Path("x.csv").exists()
