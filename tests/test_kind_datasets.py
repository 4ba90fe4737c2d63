"""The named datasets with directions, sides, strengths, lengths or times, against the rows of their files."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from conftest import Command
from psgnn.datasets import load_dataset
from psgnn.datasets._catalog import CATALOG
from psgnn.datasets._real import great_circle
from psgnn.distances import shortest_distances

EXPECTED = {
    "movielens-100k": {"sides", "times"},
    "bitcoin-otc": {"directed", "times"},
    "college-messages": {"directed", "strengths", "times"},
    "openflights": {"directed", "lengths", "strengths"},
    "oldenburg-roads": {"lengths"},
}


@pytest.mark.parametrize("name", EXPECTED)
def test_counts_and_kinds(name: str, shared_data: Path) -> None:
    [graph] = load_dataset(name, shared_data)
    row = CATALOG[name]
    assert (graph.num_nodes, graph.num_edges) == (row.nodes, row.edges)
    assert graph.kind == EXPECTED[name]
    assert len(set(graph.names)) == row.nodes
    for column in (graph.times, graph.strengths, graph.lengths):
        assert column is None or ((column > 0).all() and column.shape == (row.edges,))


def test_users_and_films_are_different_nodes(shared_data: Path) -> None:
    [graph] = load_dataset("movielens-100k", shared_data)
    assert graph.sides is not None
    assert graph.times is not None
    assert (graph.sides[graph.edges] == [[0], [1]]).all()
    place = {name: v for v, name in enumerate(graph.names)}
    edge = np.flatnonzero(([place["user:196"], place["film:242"]] == graph.edges.T).all(axis=1))
    assert graph.times[edge] == [881250949]


def test_messages_are_counted(shared_data: Path) -> None:
    [graph] = load_dataset("college-messages", shared_data)
    text = gzip.decompress((shared_data / "kinds/college-messages.txt.gz").read_bytes()).decode()
    rows = [line.split() for line in text.splitlines()]
    first, last = rows[0], [row for row in rows if row[:2] == rows[0][:2]]
    place = {name: v for v, name in enumerate(graph.names)}
    (edge,) = np.flatnonzero(([place[first[0]], place[first[1]]] == graph.edges.T).all(axis=1))
    assert graph.strengths is not None
    assert graph.times is not None
    assert graph.last_times is not None
    assert graph.strengths[edge] == len(last)
    assert graph.times[edge] == int(first[2])
    assert graph.last_times[edge] == int(last[-1][2])
    assert graph.strengths.sum() == len(rows)


def test_flights_are_as_long_as_the_great_circle(shared_data: Path) -> None:
    [graph] = load_dataset("openflights", shared_data)
    place = {name: v for v, name in enumerate(graph.names)}
    (edge,) = np.flatnonzero(([place["JFK"], place["LHR"]] == graph.edges.T).all(axis=1))
    assert graph.lengths is not None
    assert abs(graph.lengths[edge] - 5540) < 10
    assert great_circle(np.radians([[0.0, 0.0]]), np.radians([[0.0, 180.0]]))[0] == pytest.approx(
        np.pi * 6371.0088
    )
    text = gzip.decompress((shared_data / "kinds/openflights-routes.csv.gz").read_bytes()).decode()
    airlines = [row for row in csv.reader(text.splitlines()) if (row[2], row[4]) == ("JFK", "LHR")]
    assert graph.strengths is not None
    assert graph.strengths[edge] == len(airlines)


def test_roads_have_their_lengths(shared_data: Path) -> None:
    [graph] = load_dataset("oldenburg-roads", shared_data)
    place = {name: v for v, name in enumerate(graph.names)}
    (edge,) = np.flatnonzero((sorted([place["1609"], place["1622"]]) == graph.edges.T).all(axis=1))
    assert graph.lengths is not None
    assert graph.lengths[edge] == 57.403187


def test_distances_of_a_named_graph_with_lengths_are_lengths(
    shared_data: Path, tmp_path: Path, run: Command
) -> None:
    out = tmp_path / "near.csv"
    command = [
        "distances",
        "oldenburg-roads",
        "--data",
        str(shared_data),
        "--anchors",
        "2",
        "--out",
        str(out),
    ]
    code, text, error = run(*command, "--cutoff", "99.5")
    assert (code, error) == (0, "")
    assert text.startswith("lengths of the shortest paths of 6105 nodes to 2 anchors")
    [graph] = load_dataset("oldenburg-roads", shared_data)
    table = pl.read_csv(out)
    anchors = [column.removeprefix("to_") for column in table.columns[1:]]
    places = [graph.names.index(name) for name in anchors]
    wanted = shortest_distances(graph, places, cutoff=99.5)
    assert wanted.max() > 50
    np.testing.assert_allclose(table[:, 1:].to_numpy(), wanted, rtol=1e-6)
