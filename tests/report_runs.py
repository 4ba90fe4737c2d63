"""Small runs that the tests of the report share, with names that try to break out of its page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import polars as pl

import psgnn
from conftest import adjacency_of
from psgnn.graph import Adjacency, Graph
from psgnn.graph._kinds import merged_graph
from psgnn.report._drawing import Limits, Step, draw_graph

HOSTILE_NAMES = [
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(2)</script>",
    "\"'`><svg onload=alert(3)>",
    "<!--<script>alert(4)",
    "<a href='javascript:alert(5)'>press</a>",
    "שלום עולם",
    "\u202egnp.exe",
    "&lt;b&gt;bold&amp;",
    "n" * 10_000,
    "@DATA@ ${alert(6)} {{alert(7)}}",
    "a\u2028b\x00c",
]


def hostile_graph() -> Graph:
    """A ring of six caves of eight nodes, their number as class; the first nodes have hostile names."""
    edges = adjacency_of(nx.connected_caveman_graph(6, 8)).edges()
    names = [*HOSTILE_NAMES, *(f"node {v}" for v in range(len(HOSTILE_NAMES), 48))]
    return Graph.from_edges(edges, names=names, y=np.arange(48) // 8)


def follows() -> Graph:
    """Forty fans who follow stars of their own colour, and some stars who follow back."""
    rng = np.random.default_rng(0)
    fans, stars = rng.integers(0, 40, 500), rng.integers(0, 12, 500)
    ends = np.stack([fans, stars])[:, (fans % 3 == stars % 3) & (fans != stars)]
    ends = np.concatenate([ends, ends[::-1, ::5]], axis=1)
    table = {"source": [f"p{v}" for v in ends[0]], "target": [f"p{v}" for v in ends[1]]}
    return psgnn.read_graph(pl.DataFrame(table), directed=True)


def watched() -> Graph:
    """Thirty people of two tastes and twenty films, which have the smaller ids."""
    rng = np.random.default_rng(0)
    people, films = rng.integers(0, 30, 400), rng.integers(0, 20, 400)
    ends = np.stack([people + 20, films])[:, (people % 2 == films % 2) | (rng.random(400) < 0.1)]
    names = [f"film {v}" for v in range(20)] + [f"person {v}" for v in range(30)]
    sides = np.repeat(np.array([1, 0], np.int8), [20, 30])
    return merged_graph(
        ends, 50, directed=False, sides=sides, side_names=("person", "film"), node_names=names
    )


def train(
    graphs: Graph | list[Graph],
    out: Path,
    *,
    name: str = "psgnn",
    task: str = "link",
    preset: str = "best",
    **options: Any,
) -> Path:
    """A run of four epochs in the folder `out`."""
    kind = psgnn.LinkPrediction if task == "link" else psgnn.PairClassification
    asked = kind(graphs, seed=0)
    small = {"hidden": 8, "eval_every": 1}
    psgnn.fit(psgnn.build_model(name, asked, preset, **small, **options), asked, epochs=4, out=out)
    return out


def large_summary(summary: dict[str, Any]) -> dict[str, Any]:
    """The summary of one run with a graph of 100,000 nodes, long names and 275 anchors in place of its own."""
    rng = np.random.default_rng(0)
    size = 100_000
    ends = rng.integers(size, size=(2, 2 * size))
    close = rng.integers(size, size=2 * size)
    us, vs = np.concatenate([ends[0], close]), np.concatenate([ends[1], (close + 7) % size])
    final = [(int(v),) for v in rng.choice(size, 275, replace=False)]
    drawn = draw_graph(
        Adjacency.from_edges(us, vs, size),
        [f"{'ß' * 100}{v}" for v in range(size)],
        [Step(None, final[: k + 1]) for k in range(275)],
        final,
        Limits.shared_by(1),
        wanted=np.arange(400),
        classes=rng.integers(50, size=size),
    )
    places = rng.normal(size=(2, 6000)).astype(np.float32)
    nothing = np.zeros((2, 0), np.int64)
    drawn |= {"map": places, "predicted": nothing, "ranks": nothing[0]}
    drawn |= {"partners": [], "partners_whole": False}
    return {**summary, "runs": [{**summary["runs"][0], "nodes": size, "drawn": [drawn]}]}
