"""Records of the paper's tables made again: do they still say what the code gives, and how long does it all take now?

    python lab/benchmarks/audit.py [--runs 24] [--longest SECONDS] [--json FILE]

A sample of the recorded runs, drawn in proportion to their recorded time (systematically, from a random start with seed
0), so that the mean of the ratios of new and old times estimates the ratio of the sums. Runs are made as `psgnn
reproduce` makes them, one on each core; the records stay as they are. An interrupted command goes on with what it has.
"""

from __future__ import annotations

import argparse
import math
import os
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np

from output import publish
from psgnn_lab.manifest import load_manifest
from psgnn_lab.plan import Run, plan
from psgnn_lab.records import find_record
from psgnn_lab.runner import execute_all

EXPERIMENTS = ("table1", "table2", "table3", "table4", "table5", "sampler", "figure-anchors", "figure-training",
               "figure-movement")  # fmt: skip
ROOT = Path(__file__).resolve().parents[2]
FOLDER, MADE = ROOT / "lab" / "experiments", ROOT / ".benchmarks" / "audit"


def recorded_runs() -> list[tuple[Run, dict[str, Any]]]:
    """Every run of the paper's tables and figures that has a record, once, with it."""
    found: dict[str, tuple[Run, dict[str, Any]]] = {}
    for name in EXPERIMENTS:
        for run in plan(load_manifest(name, FOLDER)):
            record = find_record(FOLDER / "records", run)
            if record is not None:
                found.setdefault(run.id, (run, record))
    return list(found.values())


def drawn(seconds: list[float], count: int) -> list[int]:
    """Places of a systematic sample in proportion to the seconds."""
    bounds = np.cumsum(seconds)
    step = bounds[-1] / count
    places: list[int] = np.searchsorted(
        bounds, step * (np.random.default_rng(0).random() + np.arange(count))
    ).tolist()
    return list(dict.fromkeys(places))


def made_again(runs: list[Run]) -> list[dict[str, Any]]:
    """Their new records, of which those that an interrupted command has made are kept."""
    outcome = execute_all([run for run in runs if find_record(MADE, run) is None], MADE, show_progress=True)
    for run, reason in outcome.failed:
        raise SystemExit(f"{run}: {reason}")
    return [record for run in runs if (record := find_record(MADE, run)) is not None]


def markdown(rows: list[dict[str, Any]]) -> str:
    """The table of docs/performance.md."""
    lines = [
        "| run | AUC on record | AUC now | seconds on record | seconds now |",
        "| :--- |" + " ---: |" * 4,
    ]
    lines += [
        f"| {row['run']} | {row['auc']:.4f} | {row['auc_now']:.4f} | {row['seconds']:.0f} | {row['seconds_now']:.0f} |"
        for row in rows
    ]
    ratios = [row["seconds_now"] / row["seconds"] for row in rows]
    error = stdev(ratios) / math.sqrt(len(ratios))
    hours, cores = rows[0]["hours_on_record"], rows[0]["cores"]
    now, spread = (hours * value / cores for value in (fmean(ratios), error))
    lines.append(
        f"\nNew times are {fmean(ratios):.2f} ± {error:.2f} of those on record, which add up to {hours:.1f} h of "
        f"one core: all of it takes about {now:.1f} ± {spread:.1f} h on {cores} cores. "
        f"AUCs differ by {fmean(abs(row['auc_now'] - row['auc']) for row in rows):.4f} on average."
    )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, print JSON on stdout and a table on stderr."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=24, help="how many are made again, two at least")
    parser.add_argument(
        "--longest", type=float, default=math.inf, help="leave out runs that took more seconds"
    )
    parser.add_argument("--json", type=Path, help="also write the results here")
    arguments = parser.parse_args()
    known = [
        (run, record)
        for run, record in recorded_runs()
        if record["seconds"] <= arguments.longest and run.method.of != "node2vec"  # which is not ours
    ]
    seconds = [record["seconds"] for _, record in known]
    sample = [known[place] for place in drawn(seconds, arguments.runs)]
    whole = {"hours_on_record": round(sum(seconds) / 3600, 2), "cores": os.cpu_count() or 1}
    rows = [
        {
            "run": str(run),
            "auc": old["test"]["auc"],
            "auc_now": new["test"]["auc"],
            "seconds": old["seconds"],
            "seconds_now": new["seconds"],
            **whole,
        }
        for (run, old), new in zip(sample, made_again([run for run, _ in sample]), strict=True)
    ]
    publish({"rows": rows}, markdown(rows), arguments.json)


if __name__ == "__main__":
    main()
