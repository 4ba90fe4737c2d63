"""How long a person waits for an answer, and whether the search for missing links finds the true best.

    python lab/benchmarks/questions.py [--only PART] [--run FOLDER] [--million FOLDER] [--json FILE]

``commands``: whole processes on a trained run of 100,000 nodes (the power-law graph of scale.py, a million links),
`psgnn predict --for NODE` against loading the run, in turns. ``calls``: one process that loads the run and asks.
``sides``: `--top 50` on 1100 nodes of two sides, against scoring all pairs. ``million``: `predict --top 1000` on a run
of a million nodes and ten million links (--million). Seconds are of CPU time, which other work on the machine hardly
changes; wall time is beside it. Parts that are measured again replace their rows.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl
import psutil

import psgnn
from output import publish, recorded, write
from psgnn.graph import Graph, read_graph
from psgnn.graph._pair_space import unlinked_pairs
from psgnn.scoring import Scorer, pretrained
from psgnn.scoring._names import find_nodes
from psgnn.training import fit, load
from scale import write_graph

NODES, ROUNDS, TIMED = 100_000, 2, 20
SIDES, SIDE_LINKS, TOP, BLOCK = (500, 600), 6000, 50, 4096
PARTS = ("commands", "calls", "sides", "million")
LOADING = "import psgnn, sys; psgnn.load(sys.argv[1])"


def spent(work: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    """What some work returns, and the seconds it takes."""
    start, busy = time.perf_counter(), time.process_time()
    found = work()
    taken = time.process_time() - busy, time.perf_counter() - start
    return found, dict(zip(("cpu", "wall"), taken, strict=True))


def process(arguments: list[str]) -> dict[str, float]:
    """The seconds that a process takes."""
    start, before = time.perf_counter(), psutil.Process().cpu_times()
    subprocess.run([sys.executable, *arguments], capture_output=True, check=True)
    after, wall = psutil.Process().cpu_times(), time.perf_counter() - start
    busy = after.children_user + after.children_system - before.children_user - before.children_system
    return {"cpu": busy, "wall": wall}


def row(part: str, what: str, seconds: dict[str, float], **more: Any) -> dict[str, Any]:
    """A line of the record."""
    return {"part": part, "what": what, **{key: round(value, 4) for key, value in seconds.items()}, **more}


def trained(folder: Path) -> Path:
    """The run of 100,000 nodes, trained if it is not there."""
    if not (folder / "record.json").exists():
        with TemporaryDirectory() as place:
            graph = Path(place) / "graph.parquet"
            write_graph("power-law", NODES, graph)
            task = psgnn.LinkPrediction(read_graph(graph), seed=0)
            fit(psgnn.build_model("psgnn", task, seed=0), task, seed=0, out=folder)
    return folder


def commands(folder: Path) -> list[dict[str, Any]]:
    """Whole processes in turns; the best of their rounds counts, and the first round does not."""
    run = str(trained(folder))
    (node,) = load(folder).node_names[0][7:8]
    asked = {
        "load the run": ["-c", LOADING, run],
        "predict --for NODE": ["-m", "psgnn", "predict", run, "--for", node, "--top", "10"],
        "explain A B": ["-m", "psgnn", "explain", run, node, load(folder).node_names[0][3]],
    }
    rounds = [{name: process(words) for name, words in asked.items()} for _ in range(1 + ROUNDS)][1:]
    best = {name: min((each[name] for each in rounds), key=lambda taken: taken["cpu"]) for name in asked}
    base = best["load the run"]["cpu"]
    return [
        row("commands", name, taken, times_loading=round(taken["cpu"] / base, 2))
        for name, taken in best.items()
    ]


def calls(folder: Path) -> list[dict[str, Any]]:
    """Questions in one process: the first of each kind, and the median of later ones."""
    run, loading = spent(lambda: load(trained(folder)))
    names = run.node_names[0]
    rng = np.random.default_rng(0)
    nodes = [names[v] for v in rng.choice(len(names), 2 * (1 + TIMED), replace=False).tolist()]
    asked: dict[str, Callable[[str, str], Any]] = {
        "explain(A, B)": lambda a, b: run.explain(a, b),
        "predict(of=A)": lambda a, b: run.predict(of=a, top=10),
        "score([(A, B)])": lambda a, b: run.score([(a, b)]),
        "similar(A)": lambda a, b: run.similar(a),
    }
    rows = [row("calls", "load", loading)]
    for name, ask in asked.items():
        pairs = list(zip(nodes[::2], nodes[1::2], strict=True))
        times = [spent(lambda ask=ask, pair=pair: ask(*pair))[1] for pair in pairs]  # type: ignore[misc]
        later = {key: float(np.median([each[key] for each in times[1:]])) for key in times[0]}
        rows.append(row("calls", f"{name}, first", times[0]))
        rows.append(row("calls", f"{name}, later", later))
    return rows


def two_sided() -> Graph:
    """1100 nodes of two sides in ten groups, whose members choose mostly within their group."""
    rng = np.random.default_rng(0)
    us = rng.choice(SIDES[0], SIDE_LINKS, p=_shares(SIDES[0]))
    inside = rng.random(SIDE_LINKS) < 0.7
    group = SIDES[1] // 10
    within = us % 10 * group + rng.choice(group, SIDE_LINKS, p=_shares(group))
    vs = np.where(inside, within, rng.choice(SIDES[1], SIDE_LINKS, p=_shares(SIDES[1])))
    frame = pl.DataFrame({"person": [f"p{u}" for u in us], "thing": [f"t{v}" for v in vs]})
    return read_graph(frame, sides=True)


def _shares(count: int) -> np.ndarray:
    weights = (1.0 + np.arange(count)) ** -0.5
    return np.asarray(weights / weights.sum())


def sides() -> list[dict[str, Any]]:
    """The best 50 of a graph with two sides, by `predict` and by scoring all pairs."""
    graph = two_sided()
    task = psgnn.LinkPrediction(graph, seed=0)
    run = fit(psgnn.build_model("psgnn", task, seed=0), task, epochs=200, seed=0)
    rows = []
    for name, scorer in (("trained", run), ("ready-made", pretrained().on(graph))):
        truth, everything = spent(lambda scorer=scorer: _best_of_all(scorer))  # type: ignore[misc]
        frame, taken = spent(lambda scorer=scorer: scorer.predict(top=TOP))  # type: ignore[misc]
        found = [find_nodes(scorer, frame[column].to_list()) for column in ("source", "target")]
        pairs = set(zip(*(part.tolist() for part in found), strict=True))
        about = {"nodes": graph.num_nodes, "pairs": truth[1], "found": len(pairs & truth[0]), "of": TOP}
        rows.append(row("sides", f"{name}: predict --top {TOP}", taken, **about))
        rows.append(row("sides", f"{name}: score all pairs", everything, pairs=truth[1]))
    return rows


def _best_of_all(scorer: Scorer) -> tuple[set[tuple[int, int]], int]:
    pool = unlinked_pairs(scorer.batch, scorer.hidden)
    pairs = pool.unrank(np.arange(int(pool.sizes.sum())))
    best = np.argsort(-scorer.score(pairs), kind="stable")[:TOP]
    return set(zip(*pairs[:, best].tolist(), strict=True)), pairs.shape[1]


def million(folder: Path) -> list[dict[str, Any]]:
    """`predict --top 1000` of a run that is there already."""
    with TemporaryDirectory() as place:
        out = f"{place}/links.parquet"
        taken = process(["-m", "psgnn", "predict", str(folder), "--top", "1000", "-o", out])
    about = json.loads((folder / "record.json").read_text())
    return [row("million", "predict --top 1000", taken, seconds_of_training=about.get("seconds"))]


def markdown(rows: list[dict[str, Any]]) -> str:
    """The table of docs/performance.md."""
    titles = {"commands": "command", "calls": "in Python", "sides": "two sides", "million": "a million nodes"}
    lines = ["| where | what | s of CPU | s | |", "| --- | --- | ---: | ---: | --- |"]
    for each in rows:
        note = f"{each['times_loading']} times loading" if "times_loading" in each else ""
        note = f"{each['found']} of the true {each['of']}" if "found" in each else note
        cells = [f"{each[key]:.3f}" if each[key] < 1 else f"{each[key]:.1f}" for key in ("cpu", "wall")]
        lines.append(f"| {titles[each['part']]} | {each['what']} | {cells[0]} | {cells[1]} | {note} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, print JSON on stdout and a table on stderr."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", choices=PARTS, action="append", help="one of the parts")
    parser.add_argument("--run", type=Path, default=Path("questions-run"), help="the run of 100,000 nodes")
    parser.add_argument("--million", type=Path, help="a run of a million nodes, for that part")
    parser.add_argument("--json", type=Path, help="also write the results here, beside those of other parts")
    arguments = parser.parse_args()
    rows = recorded(arguments.json)
    for part in arguments.only or PARTS:
        if part == "million" and arguments.million is None:
            continue
        work = {"commands": lambda: commands(arguments.run), "calls": lambda: calls(arguments.run)}
        work |= {"sides": sides, "million": lambda: million(arguments.million)}
        measured = work[part]()
        rows = [each for each in rows if each["part"] != part] + measured
        rows.sort(key=lambda each: PARTS.index(each["part"]))
        write({"nodes": NODES, "rows": rows}, arguments.json)
    publish({"nodes": NODES, "rows": rows}, markdown(rows), arguments.json)


if __name__ == "__main__":
    main()
