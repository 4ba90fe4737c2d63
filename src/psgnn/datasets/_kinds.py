"""Graphs with directions, sides, strengths, lengths or times."""

from __future__ import annotations

import csv
import io

import numpy as np
import numpy.typing as npt

from psgnn.datasets._catalog import Dataset
from psgnn.datasets._download import Root, read
from psgnn.datasets._parse import numbers
from psgnn.graph._graph import Graph, IntArray
from psgnn.graph._kinds import merged_graph

Numbers = npt.NDArray[np.float64]

EARTH_RADIUS = 6371.0088  # km, the mean


def movielens_100k(row: Dataset, root: Root = None) -> list[Graph]:
    """Who rated which film, and when; the stars are left out. Users are side 0, films side 1."""
    users, films, _, times = numbers(read(row.files["edges"], root), 4).T
    names, sources = _named(users, "user:")
    film_names, targets = _named(films, "film:")
    sides = np.repeat(np.array([0, 1], np.int8), [len(names), len(film_names)])
    ends = np.stack([sources, targets + len(names)])
    graph = merged_graph(
        ends, sides.size, directed=False, times=times, sides=sides, side_names=("user", "film"),
        node_names=names + film_names,
    )  # fmt: skip
    return [graph]


def bitcoin_otc(row: Dataset, root: Root = None) -> list[Graph]:
    """Who rated whom, and when; the ratings, from -10 to 10, are left out."""
    text = read(row.files["edges"], root)
    header = text.partition(b"\n")[0]
    table = numbers(text[len(header) + 1 :] if b"Source" in header else text, 4, np.float64)
    names, ends = _named(table[:, :2].T.astype(np.int64))
    return [merged_graph(ends, len(names), directed=True, times=table[:, 3], node_names=names)]


def college_messages(row: Dataset, root: Root = None) -> list[Graph]:
    """Who wrote to whom: when first and last, and how many messages, the strength."""
    *both, times = numbers(read(row.files["edges"], root), 3).T
    names, ends = _named(np.stack(both))
    ones = np.ones(times.size)
    return [merged_graph(ends, len(names), directed=True, times=times, strengths=ones, node_names=names)]


def openflights(row: Dataset, root: Root = None) -> list[Graph]:
    """Flights between airports: the great-circle length in km, and how many airlines fly, the strength.

    Airports without coordinates are left out, and so are their flights.
    """
    places: dict[str, tuple[float, float]] = {}
    for line in csv.reader(io.StringIO(read(row.files["airports"], root).decode())):
        for code in (line[4], line[5]):  # IATA, or ICAO where there is none
            if code != "\\N":
                places.setdefault(code, (float(line[6]), float(line[7])))
    routes = csv.reader(io.StringIO(read(row.files["edges"], root).decode()))
    pairs = [(line[2], line[4]) for line in routes if line[2] in places and line[4] in places]
    names, ends = _named(np.array(pairs).T)
    where = np.radians([places[name] for name in names])
    lengths = great_circle(where[ends[0]], where[ends[1]])
    graph = merged_graph(
        ends, len(names), directed=True, lengths=lengths, strengths=np.ones(lengths.size), node_names=names
    )
    return [graph]


def oldenburg_roads(row: Dataset, root: Root = None) -> list[Graph]:
    """Roads between junctions, with their lengths."""
    table = numbers(read(row.files["edges"], root), 4, np.float64)
    names, ends = _named(table[:, 1:3].T.astype(np.int64))
    return [merged_graph(ends, len(names), directed=False, lengths=table[:, 3], node_names=names)]


def great_circle(starts: Numbers, ends: Numbers) -> Numbers:
    """Kilometres between places ``[P, 2]``, latitudes and longitudes in radians, along the surface of a sphere."""
    half = np.sin((ends - starts) / 2) ** 2
    chord = half[:, 0] + np.cos(starts[:, 0]) * np.cos(ends[:, 0]) * half[:, 1]
    return np.asarray(2 * EARTH_RADIUS * np.arcsin(np.sqrt(chord)))


def _named(ids: npt.NDArray[np.generic], prefix: str = "") -> tuple[list[str], IntArray]:
    """The names of the nodes, in the order of their ids, and the ids as places among them."""
    known, places = np.unique(ids, return_inverse=True)
    return [f"{prefix}{node}" for node in known.tolist()], places.reshape(ids.shape).astype(np.int64)
