"""Missing links: how many of the truly best pairs the candidate search finds, against scoring all pairs.

    python lab/benchmarks/candidates.py [--quick] [--json FILE]

Models of 200 epochs, seed 0. The search runs on small graphs too, whose pairs would all be scored otherwise. Pairs of
equal score count alike.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import psgnn
from output import publish
from psgnn.errors import PsgnnError
from psgnn.graph._sampling import NonEdges
from psgnn.scoring import _search as candidates
from psgnn.training._run import Run

EPOCHS, SEED = 200, 0
BLOCK = 200_000
ASKED = (100, 1000)

Case = tuple[str, str, dict[str, Any], str, dict[str, Any]]


def cases(quick: bool) -> list[Case]:
    """Name, dataset, its options, model, its options."""
    small: Case = "USAir", "seal/USAir", {}, "psgnn", {}
    if quick:
        return [small]
    return [
        small,
        ("grid 40x40", "grid", {"rows": 40, "cols": 40}, "psgnn", {}),
        ("grid 20x20", "grid", {}, "psgnn", {"decoder": "distance"}),
        ("Power", "seal/Power", {}, "psgnn", {"decoder": "dot"}),
        ("Router", "seal/Router", {}, "gcn", {}),
    ]


def best_scores(run: Run, most: int) -> tuple[npt.NDArray[np.float32], int]:
    """The highest scores of all pairs that are not linked, best first, and how many pairs there are."""
    union = run.view.union
    linked = np.concatenate([union.adjacency.edges(), run.hidden], axis=1)
    pool = NonEdges(union.ptr, np.sort(linked, axis=0))
    count = int(pool.sizes.sum())
    best = np.empty(0, np.float32)
    h = None if run.similarity is None else run.embed()
    for start in range(0, count, BLOCK):
        pairs = pool.unrank(np.arange(start, min(start + BLOCK, count)))
        scores = run.score(pairs) if h is None else run.score_embedded(h, pairs)
        best = np.sort(np.concatenate([best, scores]))[::-1][:most]
    return best, count


def run(
    name: str, dataset: str, options: dict[str, Any], model: str, settings: dict[str, Any]
) -> dict[str, Any]:
    """One case."""
    task = psgnn.LinkPrediction(psgnn.load_dataset(dataset, **options), seed=SEED)
    run = psgnn.fit(psgnn.build_model(model, task, **settings), task, epochs=EPOCHS, seed=SEED, device="cpu")
    start = time.perf_counter()
    truth, count = best_scores(run, max(ASKED))
    all_seconds = time.perf_counter() - start
    row: dict[str, Any] = {"graph": name, "model": model, "settings": settings, "pairs": count}
    row["seconds_all"] = round(all_seconds, 2)
    for n in ASKED:
        start = time.perf_counter()
        scores = candidates.top_links(run, n)[1]
        row[f"seconds_{n}"] = round(time.perf_counter() - start, 2)
        # Scores of one pair differ in the last digits with the block that it is scored in.
        row[f"recall_{n}"] = float(np.mean(scores >= truth[n - 1] - 1e-4))
    return row


def markdown(rows: list[dict[str, Any]]) -> str:
    """The table of docs/performance.md."""
    lines = [
        "| graph | model | pairs | of the best 100 | of the best 1000 | search of 100 against all pairs |"
    ]
    lines.append("| --- | --- | ---: | ---: | ---: | ---: |")
    for row in rows:
        settings = "".join(f", {key} {value}" for key, value in row["settings"].items())
        found = [f"{100 * row[f'recall_{n}']:.1f}%" for n in ASKED]
        faster = f"{row['seconds_all'] / row['seconds_100']:.1f}x as fast"
        lines.append(
            f"| {row['graph']} | {row['model']}{settings} | {row['pairs']:,} | {' | '.join(found)} | {faster} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, print JSON on stdout and a table on stderr."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one small graph only")
    parser.add_argument("--json", type=Path, help="also write the results here")
    arguments = parser.parse_args()
    candidates.EXACT_PAIRS = candidates.EXACT_EMBEDDED_PAIRS = 0
    rows = []
    for case in cases(arguments.quick):
        try:
            rows.append(run(*case))
        except PsgnnError as error:
            print(f"left out: {case[0]}: {error}", file=sys.stderr)
    results = {"epochs": EPOCHS, "seed": SEED, "rows": rows}
    publish(results, markdown(rows), arguments.json)


if __name__ == "__main__":
    main()
