"""What a prediction by Spark takes, by stage: seconds, and bytes of letters.

    python lab/benchmarks/spark_scale.py --nodes 2000 [--links 10] [--master local[2]] [--json FILE]

A preferential-attachment graph, the 100 best missing links with their probabilities. Bytes are those of the files that
steps write, which the next step moves.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from output import recorded, write
from psgnn.distances.spark import read_links, session
from psgnn.spark._predict import answer, post_of, prepare

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
}


def attach(nodes: int, links: int, seed: int = 0) -> np.ndarray:
    """Each node links to nodes that it draws among the ends of earlier links, int64 ``[2, E]``."""
    rng = np.random.default_rng(seed)
    sources = np.repeat(np.arange(links + 1, nodes), links)
    ends = np.empty(2 * sources.size, np.int64)
    ends[::2] = sources
    places = (rng.random(sources.size) * (2 * np.arange(sources.size) + 1)).astype(np.int64)
    for i, place in enumerate(places.tolist()):
        ends[2 * i + 1] = ends[place] if place < 2 * i else i % (links + 1)
    return ends.reshape(-1, 2).T


def stage_of(name: str) -> str:
    """The kind of a stage: its name without numbers."""
    words = [word for word in name.replace(":", " ").split() if not word.isdecimal()]
    return " ".join(word for word in words if word not in ("views", "hops", "round"))


def measure(nodes: int, links: int, master: str, memory: str) -> dict[str, Any]:
    """One prediction."""
    with tempfile.TemporaryDirectory() as folder:
        edges = attach(nodes, links)
        path = Path(folder) / "edges.parquet"
        pl.DataFrame({"source": edges[0], "target": edges[1]}).write_parquet(path)
        spark = session(master, {**SETTINGS, "spark.driver.memory": memory})
        began = time.monotonic()
        found = read_links(spark, str(path))
        post = post_of(spark, f"{folder}/work", found, "benchmark")
        scorer = prepare(post, found)
        rows = answer(scorer, top=100)
        seconds = time.monotonic() - began
        spark.stop()
    stages: dict[str, dict[str, float]] = {}
    for entry in post.log:
        known = stages.setdefault(stage_of(entry["stage"]), {"steps": 0, "seconds": 0.0, "bytes": 0})
        known["steps"] += 1
        known["seconds"] = round(known["seconds"] + entry["seconds"], 2)
        known["bytes"] += entry["bytes"]
    return {
        "nodes": scorer.plan.nodes, "links": scorer.plan.links, "anchors": int(scorer.anchors.size),
        "blocks": int(scorer.plan.bounds.size - 1), "master": master, "seconds": round(seconds, 1),
        "steps": len(post.log), "bytes": sum(entry["bytes"] for entry in post.log),
        "driver_peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "first": [list(rows[0])], "stages": stages,
    }  # fmt: skip


def main() -> None:
    """Measure one size that is not recorded yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=2000)
    parser.add_argument("--links", type=int, default=10)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--memory", default="2g")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = recorded(options.json)
    if options.nodes not in [row["asked"] for row in rows]:
        asked = {"asked": options.nodes}
        rows.append(asked | measure(options.nodes, options.links, options.master, options.memory))
        write({"rows": rows}, options.json)
    print(rows[-1])


if __name__ == "__main__":
    main()
