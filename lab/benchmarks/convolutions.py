"""Convolutions with our sums over neighbours against PyG's own, with the same weights, in the same run.

    python lab/benchmarks/convolutions.py [--json FILE]

One step is a forward and a backward pass of one layer, 64 to 64 numbers a node. Both forms take turns, the best of
their steps counts, and their outputs are compared. One thread each, as training on small graphs has.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from output import publish
from psgnn.datasets import load_dataset
from psgnn.errors import PsgnnError
from psgnn.models import TensorView, view_of
from psgnn.models._convolutions import make_conv
from psgnn.models._presets import CONVOLUTIONS

WIDTH, ROUNDS = 64, 15
DATASETS = ("communities", "email", "citeseer", "pubmed")


def measure(name: str, view: TensorView) -> dict[str, float]:
    """Milliseconds of a step of both forms."""
    torch.manual_seed(0)
    conv = make_conv(name, WIDTH, WIDTH, **({"concat": False} if name == "gat" else {}))
    x = torch.randn(view.union.num_nodes, WIDTH, requires_grad=True)
    forms: dict[str, Callable[[], torch.Tensor]] = {
        "ours": lambda: conv(x, view),
        "pyg": lambda: super(type(conv), conv).forward(x, view.edge_index),  # type: ignore[misc]
    }
    torch.testing.assert_close(forms["ours"](), forms["pyg"](), rtol=1e-3, atol=1e-3)
    best = dict.fromkeys(forms, float("inf"))
    for _ in range(ROUNDS):
        for form, forward in forms.items():
            start = time.perf_counter()
            forward().square().mean().backward()  # type: ignore[no-untyped-call]
            best[form] = min(best[form], 1000 * (time.perf_counter() - start))
    return {form: round(value, 3) for form, value in best.items()}


def markdown(rows: list[dict[str, Any]]) -> str:
    """Milliseconds of ours, and how many times as long PyG's take."""
    lines = [
        f"| data | nodes | edges | {' | '.join(CONVOLUTIONS)} |",
        "| --- | ---: | ---: |" + " ---: |" * 5,
    ]
    for row in rows:
        cells = [
            f"{row[name]['ours']:.1f} ms, {row[name]['pyg'] / row[name]['ours']:.1f}x"
            for name in CONVOLUTIONS
        ]
        lines.append(f"| {row['data']} | {row['nodes']:,} | {row['edges']:,} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, print JSON on stdout and a table on stderr."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", type=Path, help="also write the results here")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    for dataset in DATASETS:
        try:
            view = view_of(load_dataset(dataset))
        except PsgnnError as error:
            print(f"left out: {dataset}: {error}", file=sys.stderr)
            continue
        sizes = {"nodes": view.union.num_nodes, "edges": view.union.adjacency.num_edges}
        rows.append({"data": dataset, **sizes, **{name: measure(name, view) for name in CONVOLUTIONS}})
    results = {"rows": rows}
    publish(results, markdown(rows), arguments.json)


if __name__ == "__main__":
    main()
