"""Growth: time by stage and memory of link prediction on graphs that double, up to four million nodes.

    python lab/benchmarks/scale.py [--largest NODES] [--json FILE]

Each size runs in a process of its own. ``power-law`` has ten links a node, of which six are within groups of about a
thousand; ``road`` is a grid with a fifth of its links missing. Anchors are log2 N, steps have 1024 pairs. Exponents are
slopes of log time over log nodes, of the four largest sizes.
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from output import publish, recorded, write

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SMALLEST, LARGEST = 10_000, 4_000_000
KINDS = ("power-law", "road")
STAGES = ("read", "split", "anchors", "hops", "positions", "steps", "scores")
STEPS, SCORED = 20, 20_000
FITTED = 4  # sizes, the largest


def write_graph(kind: str, nodes: int, path: Path) -> int:
    """Write an edge list of about that many nodes, and return the number of its lines."""
    rng = np.random.default_rng(nodes)
    if kind == "road":
        side = int(np.sqrt(nodes))
        index = np.arange(side * side).reshape(side, side)
        pairs = [(index[1:], index[:-1]), (index[:, 1:], index[:, :-1])]
        us, vs = (np.concatenate([pair[i].ravel() for pair in pairs]) for i in (0, 1))
        kept = rng.random(us.size) < 0.8
        us, vs = us[kept], vs[kept]
    else:
        links = 10 * nodes
        weights = np.cumsum((np.arange(1, nodes + 1) / nodes) ** -0.6)
        us, vs = (np.searchsorted(weights, rng.random(links) * weights[-1]) for _ in range(2))
        inside = rng.random(links) < 0.6
        vs[inside] = np.minimum(
            us[inside] // 1000 * 1000 + rng.integers(1000, size=int(inside.sum())), nodes - 1
        )
    names = rng.permutation(nodes)
    pl.DataFrame({"source": names[us], "target": names[vs]}).write_parquet(path)
    return int(us.size)


def measure(path: str) -> dict[str, Any]:
    """The stages of one graph, in this process."""
    import psgnn
    from psgnn.memory import peak_bytes
    from psgnn.models import build_model
    from psgnn.positions._measure import positions_of
    from psgnn.training._fit import CPU, _Trainer

    seconds: dict[str, float] = {}
    last = time.perf_counter()

    def lap(stage: str) -> None:
        nonlocal last
        now = time.perf_counter()
        seconds[stage] = round(now - last, 3)
        last = now

    graph = psgnn.read_graph(path)
    lap("read")
    task = psgnn.LinkPrediction([graph], seed=0)
    lap("split")
    model = build_model("psgnn", task, anchors="log", members=1, batch=1024)
    trainer = _Trainer(model, task, 600, 0, None, CPU)
    lap("anchors")
    assert trainer.fixed is not None
    trainer.view.oracle.hops(trainer.fixed.nodes.numpy())
    lap("hops")
    positions_of(trainer.view, trainer.fixed, model.encoder.parts)
    lap("positions")
    trainer.batches.fold(0)
    trainer._epoch(0)  # measures the fold
    last = time.perf_counter()
    for step in range(1, STEPS + 1):
        trainer._epoch(step if trainer.batches.large else step * 10)
    lap("steps")
    model.eval()
    model.predict(trainer.view, trainer.fixed, task.test.pairs[:, :SCORED])
    lap("scores")
    return {
        "nodes": int(graph.num_nodes),
        "edges": int(graph.num_edges) // 2,
        "seconds": seconds,
        "memory_mb": round(peak_bytes() / 2**20),
    }


def run(largest: int, path: Path | None) -> list[dict[str, Any]]:
    """All kinds and sizes that the file does not have, each in a process of its own.

    The first ones, which compile the kernels, do not count.
    """
    rows = recorded(path)
    sizes = [largest]
    while sizes[0] >= 2 * SMALLEST:
        sizes.insert(0, sizes[0] // 2)
    with TemporaryDirectory() as folder:
        graph = Path(folder) / "graph.parquet"
        for kind in KINDS:
            write_graph(kind, 40_000, graph)  # large enough for the kernels of large graphs
            _in_process(graph)
        for kind, nodes in itertools.product(KINDS, sizes):
            if any((row["kind"], row["asked"]) == (kind, nodes) for row in rows):
                continue
            write_graph(kind, nodes, graph)
            rows.append({"kind": kind, "asked": nodes, **_in_process(graph)})
            print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
            write({"rows": rows}, path)
    return rows


def _in_process(path: Path) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, __file__, "--one", str(path)], capture_output=True, text=True, check=True
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def exponent(rows: list[dict[str, Any]], values: list[float], fitted: int = FITTED) -> float:
    """The slope of log value over log nodes of the largest sizes; 0 for all."""
    nodes = np.log([row["nodes"] for row in rows[-fitted:]])
    return float(np.polyfit(nodes, np.log(np.maximum(values[-fitted:], 1e-3)), 1)[0])


def markdown(rows: list[dict[str, Any]]) -> str:
    """The tables of docs/performance.md."""
    parts = []
    for kind in KINDS:
        own = [row for row in rows if row["kind"] == kind]
        if not own:
            continue
        lines = [
            f"| {kind}: nodes | edges | {' | '.join(STAGES)} | peak memory |",
            "| ---: | ---: |" + " ---: |" * (len(STAGES) + 1),
        ]
        for row in own:
            times = " | ".join(f"{row['seconds'][stage]:.2f}" for stage in STAGES)
            lines.append(f"| {row['nodes']:,} | {row['edges']:,} | {times} | {row['memory_mb']:,} MB |")
        columns = [[row["seconds"][stage] for row in own] for stage in STAGES]
        columns.append([float(row["memory_mb"]) for row in own])
        for title, fitted in (("all sizes", 0), (f"the {FITTED} largest", FITTED)):
            slopes = " | ".join(f"{exponent(own, column, fitted):.2f}" for column in columns)
            lines.append(f"| *exponent, {title}* | | {slopes} |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def plot(rows: list[dict[str, Any]]) -> Figure:
    """Seconds of every stage and the memory over the number of nodes, both logarithmic."""
    from psgnn.report.plot import line_style, new_figure

    figure = new_figure(9.0, 4.8)
    panels = figure.subplots(1, len(KINDS), sharey=True)
    for axes, kind in zip(panels, KINDS, strict=True):
        own = [row for row in rows if row["kind"] == kind]
        nodes = [row["nodes"] for row in own]
        for place, stage in enumerate(STAGES):
            colour, marker = line_style(place)
            seconds = [row["seconds"][stage] for row in own]
            label = f"{stage} ({exponent(own, seconds):.2f})"
            axes.loglog(nodes, seconds, color=colour, marker=marker, markersize=4, linewidth=1.3, label=label)
        # Where time would be if it grew as the graph does.
        guide = [own[0]["seconds"]["positions"] * n / nodes[0] for n in nodes]
        axes.loglog(
            nodes, guide, color="#999999", linestyle="--", linewidth=1, label="as the graph grows (1.00)"
        )
        axes.set_title(kind)
        axes.set_xlabel("nodes")
        axes.grid(color="#e5e5e5", linewidth=0.6)
        place_below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.15)}
        axes.legend(
            **place_below,
            fontsize=7,
            ncols=3,
            frameon=False,
            title=f"stage (exponent, the {FITTED} largest)",
            title_fontsize=7,
        )
    panels[0].set_ylabel("seconds")
    return figure


def main() -> None:
    """Measure, print JSON on stdout and tables on stderr."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--largest", type=int, default=LARGEST, help="nodes of the largest graph")
    parser.add_argument("--json", type=Path, help="also write the results here; go on with what it has")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(arguments.one)))
        return
    rows = run(arguments.largest, arguments.json)
    publish({"rows": rows}, markdown(rows), arguments.json)


if __name__ == "__main__":
    main()
