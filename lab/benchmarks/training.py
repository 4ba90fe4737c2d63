"""Position layers: the fused form against a dense form without its tricks and against the paper's loops.

    python lab/benchmarks/training.py [--quick] [--json FILE]

One step is a forward and a backward pass of a four-layer, 128-wide encoder, the paper's size. All three forms
share their weights, and their outputs are compared. The naive form goes node by node and anchor by anchor; it
runs on the first few nodes and its time is extrapolated (marked ~). Memory is the growth of the process's peak
over one step, each form in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import sys
import time
from pathlib import Path
from typing import Any

import torch

from output import publish
from psgnn.datasets import load_dataset
from psgnn.errors import PsgnnError
from psgnn.memory import peak_bytes
from psgnn.models import AnchorEncoder, AnchorSet, RulePicker, TensorView, view_of
from psgnn_lab.bench import dense, f3

LAYERS, HIDDEN = 4, 128
NAIVE_NODES = 30


def fused(encoder: AnchorEncoder, view: TensorView, choice: AnchorSet) -> torch.Tensor:
    """The library's own."""
    return encoder(view, choice)


def naive(encoder: AnchorEncoder, view: TensorView, choice: AnchorSet) -> torch.Tensor:
    """Algorithm 1 as it is printed, for the first nodes."""
    hops = view.oracle.hops(choice.nodes.numpy())
    rows = []
    for v in range(min(NAIVE_NODES, view.union.num_nodes)):
        g = int(view.graph[v])
        h = view.x[v]
        for layer in encoder.layers:
            messages = []
            for k in range(int((choice.nodes[g] >= 0).sum())):
                hop = int(hops[v, k])
                distance = layer.f2(torch.tensor([0.0 if hop < 0 else 1 / (1 + hop)]))
                messages.append(f3(layer, torch.cat([distance, h])))
            stacked = torch.stack(messages)
            h = torch.relu(stacked.mean(dim=0)) if layer.scalar is None else layer.scalar(stacked)[:, 0]
        rows.append(torch.nn.functional.pad(h, (0, choice.nodes.size(1) - h.size(0))))
    return torch.stack(rows)


FORMS = {"fused": fused, "dense": dense, "naive": naive}


def peak() -> float:
    """Peak memory of this process in MB."""
    return peak_bytes() / 2**20


def measure(form: str, dataset: str, options: dict[str, Any], anchors: int | str, queue: Any) -> None:
    """Seconds of a step (the best of three), memory, and the sum of the output; in a process of its own."""
    torch.manual_seed(0)
    view = view_of(load_dataset(dataset, **options))
    choice = RulePicker("farthest-first", anchors)(view)
    encoder = AnchorEncoder(view.x.size(1), HIDDEN, LAYERS)
    small = view_of(load_dataset("grid", rows=3, cols=3))
    small.x = torch.ones(9, view.x.size(1))
    fused(encoder, small, RulePicker("degree", 2)(small)).sum().backward()  # compile the kernels
    view.oracle.hops(choice.nodes.numpy())  # distances are not what is measured
    before, seconds, out = peak(), [], None
    for _ in range(1 if form == "naive" else 3):
        start = time.perf_counter()
        out = FORMS[form](encoder, view, choice)
        out.square().mean().backward()
        seconds.append(time.perf_counter() - start)
    assert out is not None
    share = min(NAIVE_NODES / view.union.num_nodes, 1) if form == "naive" else 1
    head = out[:NAIVE_NODES].detach().double().sum().item()
    sizes = view.union.num_nodes, view.union.num_graphs, choice.nodes.size(1)
    queue.put((min(seconds) / share, peak() - before, head, sizes))


def run(name: str, dataset: str, options: dict[str, Any], anchors: int | str) -> dict[str, Any]:
    """All forms on one dataset."""
    load_dataset(dataset, **options)  # a dataset that is not here is an error in this process
    row: dict[str, Any] = {"data": name, "anchors": anchors, "seconds": {}, "memory_mb": {}}
    context = multiprocessing.get_context("spawn")
    heads = {}
    for form in FORMS:
        queue = context.Queue()
        process = context.Process(target=measure, args=(form, dataset, options, anchors, queue))
        process.start()
        seconds, memory, heads[form], sizes = queue.get()
        process.join()
        row["seconds"][form], row["memory_mb"][form] = seconds, memory
        row["nodes"], row["graphs"], row["k"] = sizes
    for form, head in heads.items():
        if abs(head - heads["fused"]) > 1e-3 * max(1, abs(heads["fused"])):
            raise SystemExit(f"{form} disagrees with fused on {name}: {head} and {heads['fused']}")
    print(json.dumps(row), file=sys.stderr, flush=True)
    return row


def cases(quick: bool) -> list[tuple[str, str, dict[str, Any], int | str]]:
    """Name, dataset and its options, number of anchors."""
    small: list[tuple[str, str, dict[str, Any], int | str]] = [("grid 20x20", "grid", {}, "log")]
    if quick:
        return small
    return [
        *small,
        ("grid 20x20", "grid", {}, "log^2"),
        ("communities 64x64", "communities", {"communities": 64, "size": 64}, "log"),
        ("communities 64x64", "communities", {"communities": 64, "size": 64}, "log^2"),
        ("email", "email", {}, "log"),
        ("protein", "protein", {}, "log"),
    ]


def markdown(rows: list[dict[str, Any]]) -> str:
    """Milliseconds of a step and how many times as long, and as much memory, the other forms take."""
    lines = [
        "| data | nodes | graphs | K | fused, ms | dense | naive | fused, MB | dense, MB |",
        "| --- " * 9 + "|",
    ]
    for row in rows:
        seconds, memory = row["seconds"], row["memory_mb"]
        times = {form: seconds[form] / seconds["fused"] for form in ("dense", "naive")}
        lines.append(
            f"| {row['data']} | {row['nodes']} | {row['graphs']} | {row['k']} | {1000 * seconds['fused']:.1f} "
            f"| {times['dense']:.1f}x | ~{times['naive']:.0f}x | {memory['fused']:.0f} | {memory['dense']:.0f} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, print JSON on stdout and a table on stderr."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one small graph only")
    parser.add_argument("--json", type=Path, help="also write the results here")
    arguments = parser.parse_args()
    rows = []
    for name, dataset, options, anchors in cases(arguments.quick):
        try:
            rows.append(run(name, dataset, options, anchors))
        except PsgnnError as error:
            print(f"left out: {name}: {error}", file=sys.stderr)
    machine = {"cores": os.cpu_count(), "processor": platform.machine(), "python": platform.python_version()}
    results = {"machine": machine, "layers": LAYERS, "hidden": HIDDEN, "rows": rows}
    publish(results, markdown(rows), arguments.json)


if __name__ == "__main__":
    main()
