"""Folders of runs, finished and interrupted, weights, and what reports and `evaluate` read, as targets of the fuzzer.

Files of tensors are taken apart, so that most cases are whole files with wrong contents and not only damaged ones.
"""

from __future__ import annotations

import io
import json
import shutil
import tempfile
from collections.abc import Callable, Sequence
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from psgnn import (
    Graph,
    LinkPrediction,
    PairClassification,
    build_model,
    fit,
    load,
    load_dataset,
    pretrained,
    read_graph,
)
from psgnn.report import make_page, summarise
from psgnn.report._summary import read_comparison
from psgnn.scoring._evaluate import read_negatives
from psgnn.scoring._network import parse_weights
from psgnn.scoring._pretrained import from_weights
from psgnn_lab.fuzz import Target, add, file_target

EPOCHS = 4
MOST_FILLED = 2**22  # bytes of a tensor that are made up to fit its shape
Files = dict[str, bytes]
SIZES = {"F64": 8, "I64": 8, "U64": 8, "F32": 4, "I32": 4, "U32": 4, "F16": 2, "BF16": 2, "I16": 2, "U16": 2}
# What ``psgnn compare --json`` prints, as far as a report shows it.
COMPARISON = {
    "graph": "g.csv",
    "task": "link",
    "seeds": [0, 1],
    "rows": [
        {"name": name, "kind": "model", "auc_mean": 0.9, "auc_sd": sd, "ap_mean": 0.8, "seconds": 2.5}
        for name, sd in (("psgnn", 0.01), ("degree", None))
    ],
}
# What is trained: model, options of it, task.
MODELS: dict[str, tuple[str, dict[str, Any], str]] = {
    "gcn": ("gcn", {}, "link"),
    "pgnn": ("pgnn", {}, "link"),
    "psgnn": ("psgnn", {}, "link"),
    "learned": ("psgnn", {"preset": "learned"}, "link"),
    "paper": ("psgnn", {"preset": "paper"}, "link"),
    "pairs of a class": ("psgnn", {}, "pair"),
    "a directed graph": ("psgnn", {}, "directed"),
}


# Files of tensors


def taken_apart(content: bytes) -> list[bytes]:
    """The document and the tensors of a safetensors file, each as bytes that `put_together` takes."""
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    parts = [header.pop("__metadata__")["psgnn"].encode()]
    for name, about in header.items():
        start, end = (8 + length + offset for offset in about["data_offsets"])
        shape = ",".join(map(str, about["shape"]))
        parts.append(f"{name} {about['dtype']} {shape}\n".encode() + content[start:end])
    return parts


def put_together(parts: Sequence[bytes]) -> bytes:
    """A safetensors file; data are cut or filled to fit the shape, unless that is very large."""
    header: dict[str, Any] = {"__metadata__": {"psgnn": parts[0].decode(errors="replace")}}
    body = bytearray()
    for part in parts[1:]:
        head, _, data = part.partition(b"\n")
        name, kind, shape, *_ = [*head.decode(errors="replace").split(" "), "F32", ""]
        sides = [_side(text) for text in shape.split(",") if text]
        if all(isinstance(side, int) for side in sides):
            size = SIZES.get(kind, 1)
            for side in sides:
                size *= int(side)
            if size <= MOST_FILLED:
                data = (data + bytes(size))[:size]
        header[name] = {"dtype": kind, "shape": sides, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + bytes(body)


def _side(text: str) -> int | str:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 400 else text


# Runs


def _graphs(task: str) -> list[Graph]:
    graphs: list[Graph] = load_dataset("communities", communities=4, size=8)
    if task == "directed":
        source, target = graphs[0].edges
        columns = {"source": source, "target": target, "n": 1 + source % 3, "when": source + target}
        kinds = {"directed": True, "weight": "n", "weight_is": "strength", "time": "when"}
        return [read_graph(pl.DataFrame(columns), **kinds)]
    return graphs if task == "pair" else graphs[:1]


def _train(folder: Path, kind: str, stop: bool = False) -> object:
    """Train in a folder, or resume what is there; or be interrupted before the last epoch."""
    model, options, of = MODELS[kind]
    task = (PairClassification if of == "pair" else LinkPrediction)(_graphs(of), seed=0)
    built = build_model(model, task, **options)
    if stop:
        left, loss = [EPOCHS - 1], built.loss

        def interrupted(*arguments: Any) -> Any:
            if not left[0]:
                raise KeyboardInterrupt
            left[0] -= 1
            return loss(*arguments)

        built.loss = interrupted  # type: ignore[assignment, method-assign]
    return fit(built, task, epochs=EPOCHS, out=folder, device="cpu")


@cache
def _files(kind: str, stop: bool = False) -> Files:
    """The files of a run."""
    folder = Path(tempfile.mkdtemp(prefix="psgnn-fuzz-run-"))
    try:
        try:
            _train(folder, kind, stop)
        except KeyboardInterrupt:
            if not stop:
                raise
        return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
    finally:
        shutil.rmtree(folder)


@cache
def _shipped() -> Files:
    """The weights that come with psgnn."""
    return {"weights.safetensors": (files("psgnn") / "weights" / "best-link.safetensors").read_bytes()}


@cache
def _scorer() -> Any:
    return pretrained("best-link").on(_graphs("link"))


def _add_folder(
    name: str, content: Callable[[], Files], read: Callable[[Path], object], *, apart: bool, share: float
) -> None:
    """Add a folder as a target: its files as they are, or those of tensors taken apart."""

    @cache
    def pieces() -> dict[str, list[bytes]]:
        return {
            file: taken_apart(whole) if apart and file.endswith(".safetensors") else [whole]
            for file, whole in content().items()
        }

    def write(folder: Path, parts: Sequence[bytes]) -> None:
        at = 0
        for file, own in pieces().items():
            mine = parts[at : at + len(own)]
            at += len(own)
            whole = put_together(mine) if apart and file.endswith(".safetensors") else mine[0]
            (folder / file).write_bytes(whole)

    add(Target(name, lambda: [part for own in pieces().values() for part in own], write, read, share))


# Readers


def _use(folder: Path) -> None:
    """Load a run and ask for what compiled code has to answer."""
    run = load(folder)
    some = np.stack([np.arange(5), np.arange(5) + 1])
    run.score(some)
    run.embed([0, 1])
    run.evaluation_scorer().score(some)


def _ask(folder: Path) -> None:
    """Everything that a person can ask a run."""
    run = load(folder)
    run.predict(top=3)
    run.predict(of=[run.node_names[0][0]], top=2)
    run.explain(run.node_names[0][0], run.node_names[0][1])
    run.similar(run.node_names[0][0], top=2)
    run.on(_graphs(run.task)).embed([0])


def _weights(folder: Path) -> None:
    weights = parse_weights((folder / "weights.safetensors").read_bytes(), "best-link")
    from_weights(weights, "best-link").on(_graphs("link")).score(np.array([[0, 1], [2, 3]]))


def _saved(save: Callable[..., None]) -> bytes:
    buffer = io.BytesIO()
    save(buffer, np.arange(16).reshape(2, 4, 2))
    return buffer.getvalue()


def _negatives(path: Path) -> object:
    return read_negatives(path, _scorer(), 2)


for kind in MODELS:
    whole, part = partial(_files, kind), partial(_files, kind, stop=True)
    resume = partial(_train, kind=kind)
    _add_folder(f"run of {kind}", whole, _use, apart=False, share=0.05)
    _add_folder(f"run of {kind}, tensors", whole, _use, apart=True, share=0.1)
    _add_folder(f"interrupted {kind}", part, resume, apart=False, share=0.01)
    _add_folder(f"interrupted {kind}, tensors", part, resume, apart=True, share=0.025)
whole = partial(_files, "psgnn")
_add_folder("questions to a run", whole, _ask, apart=True, share=0.01)
_add_folder(
    "report of a run", whole, lambda folder: make_page(summarise([folder], top=3)), apart=True, share=0.01
)
_add_folder("weights", _shipped, _weights, apart=False, share=0.02)
_add_folder("weights, tensors", _shipped, _weights, apart=True, share=0.02)
file_target("comparison", "c.json", lambda: json.dumps(COMPARISON).encode(), read_comparison, share=0.3)
file_target("negative links", "n.csv", lambda: b"0,9\n1,12\n3,30\n4,31\n", _negatives, share=0.3)
file_target("negative links, npy", "n.npy", partial(_saved, np.save), _negatives, share=0.3)
file_target("negative links, npz", "n.npz", partial(_saved, np.savez), _negatives, share=0.3)
