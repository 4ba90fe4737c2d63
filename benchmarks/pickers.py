"""How anchors are chosen, everything else equal: test AUC of PSGNN (preset best) with log2 N anchors.

    python benchmarks/pickers.py [--seeds N] [--epochs N] [--json FILE]

Rules, random anchors, the paper's scorer under each gradient estimator, and the sequential picker, on the same
splits (seeds 100, 101, ...), each for at most the same number of epochs. Results already in the file are kept and
not run again.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

DATASETS = (("grid", "link"), ("communities", "link"), ("email", "pair"))
SCORER = {"picker": "score", "structural": True, "unit_scores": True, "anneal": True, "samples": 1}
PICKERS: dict[str, dict[str, Any]] = {
    "random, redrawn every step": {"picker": "random", "samples": 1},
    "degree": {"picker": "degree", "samples": 1},
    "farthest-first": {"picker": "farthest-first", "samples": 1},
    "greedy-resolving": {"picker": "greedy-resolving", "samples": 1},
    "scorer, gate": {**SCORER, "estimator": "gate"},
    "scorer, straight-through": {**SCORER, "estimator": "straight-through"},
    "scorer, simple": {**SCORER, "estimator": "simple"},
    "scorer, reinforce": {**SCORER, "estimator": "reinforce", "samples": 4},
    "sequential, reinforce": {"picker": "sequential", "samples": 4},
}


def measure(job: tuple[str, str, str, int, int]) -> dict[str, Any]:
    """One run."""
    import torch

    from psgnn import build_model, fit, load_dataset
    from psgnn.compare import make_task

    torch.set_num_threads(1)
    picker, dataset, task_name, seed, epochs = job
    start = time.perf_counter()
    task = make_task(load_dataset(dataset), task_name, seed)
    result = fit(build_model("psgnn", task, "best", seed, **PICKERS[picker]), task, epochs=epochs, seed=seed)
    return {
        "picker": picker, "dataset": dataset, "task": task_name, "seed": seed, "epochs": epochs,
        "val": result.val["auc"], "test": result.test["auc"], "seconds": time.perf_counter() - start,
    }  # fmt: skip


def markdown(rows: list[dict[str, Any]]) -> str:
    """Mean and spread of the test AUC by picker and dataset."""
    lines = [
        "| anchors | "
        + " | ".join(f"{dataset}, {task}" for dataset, task in DATASETS)
        + " | seconds a run |",
        "| --- " * (len(DATASETS) + 2) + "|",
    ]
    for picker in PICKERS:
        cells = []
        for dataset, _ in DATASETS:
            found = [row["test"] for row in rows if (row["picker"], row["dataset"]) == (picker, dataset)]
            spread = f" ± {np.std(found, ddof=1):.3f}" if len(found) > 1 else ""
            cells.append(f"{np.mean(found):.3f}{spread} ({len(found)})" if found else "-")
        times = [row["seconds"] for row in rows if row["picker"] == picker]
        lines.append(
            f"| {picker} | " + " | ".join(cells) + (f" | {np.mean(times):.0f} |" if times else " | - |")
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure what is missing, on all cores; write after every run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=300)
    parser.add_argument("--json", type=Path, default=Path(__file__).parent / "results" / "pickers.json")
    arguments = parser.parse_args()
    rows = json.loads(arguments.json.read_text())["rows"] if arguments.json.exists() else []
    known = {tuple(row[key] for key in ("picker", "dataset", "task", "seed", "epochs")) for row in rows}
    jobs = [
        (picker, dataset, task, 100 + seed, arguments.epochs)
        for seed in range(arguments.seeds)
        for dataset, task in DATASETS
        for picker in PICKERS
    ]
    missing = [job for job in jobs if job not in known]
    with multiprocessing.get_context("spawn").Pool(os.cpu_count()) as pool:
        for row in pool.imap_unordered(measure, missing):
            rows.append(row)
            rows.sort(key=lambda row: (row["seed"], row["dataset"], row["picker"]))
            part = arguments.json.with_suffix(".part")
            part.write_text(json.dumps({"rows": rows}, indent=1) + "\n")
            part.replace(arguments.json)
            print(json.dumps(row), file=sys.stderr, flush=True)
    print(markdown(rows))


if __name__ == "__main__":
    main()
