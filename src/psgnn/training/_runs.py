"""Runs on disk: settings, record, weights and the visible graph, each file written atomically.

RUN/config.toml            the settings of the model
RUN/record.json            versions, hashes, history, anchors, metrics, times: all that is worth keeping
RUN/weights.safetensors    the weights of the best epoch; of a refitted run the new ones, and these as `evaluated`
RUN/graph.safetensors      what the model could see
RUN/heldout.safetensors    what it was asked (psgnn.training._heldout)
RUN/calibration.safetensors  of a large run: how its scores become probabilities
RUN/state.safetensors      where training stands, until it has ended
"""

from __future__ import annotations

import hashlib
import json
import platform
import sys
from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch

from psgnn.errors import InputError
from psgnn.graph import Adjacency, GraphBatch, IntArray
from psgnn.graph._kinds import PER_EDGE, Kinds
from psgnn.models._config import ModelConfig, check_config
from psgnn.models._view import DAMAGE, TensorView, pack, unpack
from psgnn.paths import atomic_write
from psgnn.training._folder import CONFIG, FORMAT, GRAPH, RECORD, check_format, one_line, read_file

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

KIND_ARRAYS = ("edges", *PER_EDGE, "sides")
MOST_CONFIG_BYTES = 16 * 1024  # ten times what psgnn writes; the time to parse a dotted key is quadratic


def write_text(path: Path, text: str) -> None:
    """Write a file of a run, atomically."""
    with atomic_write(path, force=True) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_tensors(path: Path, tensors: Mapping[str, torch.Tensor], **metadata: Any) -> None:
    """Write tensors and a JSON document about them, atomically."""
    content = pack(tensors, {"format": FORMAT, **metadata})
    with atomic_write(path, force=True) as temporary:
        temporary.write_bytes(content)


def read_tensors(path: Path) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """The tensors of a file and the document about them; no code in a file is ever run."""
    content = read_file(path)
    try:
        tensors, metadata = unpack(content)
    except DAMAGE as error:
        raise InputError(f"{path} is damaged or not of psgnn ({one_line(error)}); train again") from None
    check_format(path, metadata)
    return tensors, metadata


def write_config(folder: Path, config: ModelConfig) -> None:
    """Settings as TOML; JSON's numbers, strings, lists and truth values are TOML's too."""
    settings = config.model_dump(exclude_none=True)
    lines = [f"format = {FORMAT}", *(f"{key} = {_toml(value)}" for key, value in settings.items())]
    write_text(folder / CONFIG, "\n".join(lines) + "\n")


def _toml(value: Any) -> str:
    """JSON that TOML reads: without surrogates, and with the one sign escaped that JSON leaves as it is."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def read_config(folder: Path) -> ModelConfig:
    """The settings of a run."""
    path = folder / CONFIG
    content = read_file(path)
    if len(content) > MOST_CONFIG_BYTES:
        raise InputError(
            f"{path} has {len(content)} bytes, at most {MOST_CONFIG_BYTES} are read; train again"
        )
    try:
        settings = tomllib.loads(content.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path} is damaged ({one_line(error)}); train again") from None
    check_format(path, settings)
    del settings["format"]
    try:
        return check_config(settings)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def write_record(folder: Path, record: Mapping[str, Any]) -> None:
    """The record as JSON; NaN is refused."""
    write_text(folder / RECORD, json.dumps({"format": FORMAT, **record}, indent=1, allow_nan=False) + "\n")


def write_view(
    folder: Path, view: TensorView, node_names: list[list[str]], hidden: IntArray, whole: Kinds | None = None
) -> None:
    """The graph that the model could see, its features, the names of its nodes, and the links it could not see.

    ``whole`` is what edges carry besides, hidden or not.
    """
    adjacency = view.union.adjacency
    tensors = {
        "indptr": torch.from_numpy(adjacency.indptr),
        "indices": torch.from_numpy(adjacency.indices),
        "ptr": torch.from_numpy(view.union.ptr),
        "x": view.x,
        "hidden": torch.from_numpy(hidden),
    }
    about: dict[str, Any] = {"node_names": node_names}
    for part, kinds in (("seen", view.union.kinds), ("whole", whole)):
        if kinds is not None:
            tensors |= {f"{part}.{name}": torch.tensor(array) for name, array in _arrays(kinds).items()}
            about |= {"directed": kinds.directed, "side_names": list(kinds.side_names)}
    write_tensors(folder / GRAPH, tensors, **about)


def _arrays(kinds: Kinds) -> dict[str, Any]:
    """What edges and nodes carry, as contiguous arrays."""
    found = {name: getattr(kinds, name) for name in KIND_ARRAYS}
    return {name: np.ascontiguousarray(array) for name, array in found.items() if array is not None}


def read_view(folder: Path) -> tuple[TensorView, list[list[str]], IntArray, Kinds | None]:
    """What `write_view` wrote; a run that has no record of hidden links has none.

    Compiled code trusts the graph it is given, so nothing about it is taken on trust here.
    """
    path = folder / GRAPH
    tensors, metadata = read_tensors(path)
    hidden = tensors.get("hidden", torch.zeros(2, 0, dtype=torch.long))
    whole = None
    try:
        union = _checked_union(*(tensors[name].numpy() for name in ("indptr", "indices", "ptr")))
        kinds, whole = (_checked_kinds(part, tensors, metadata, union) for part in ("seen", "whole"))
        if kinds is not None:
            union = replace(union, kinds=kinds)
        x, names = tensors["x"], metadata["node_names"]
        sound = (
            x.dtype == torch.float32
            and x.dim() == 2
            and x.size(0) == union.num_nodes
            and bool(x.isfinite().all())
            and hidden.dtype == torch.long
            and hidden.dim() == 2
            and hidden.size(0) == 2
            and (hidden.numel() == 0 or 0 <= int(hidden.min()) <= int(hidden.max()) < union.num_nodes)
            and [len(part) for part in names] == union.sizes.tolist()
            and all("".join(part).encode() is not None for part in names)
            and all(len(set(part)) == len(part) for part in names)
        )
    except (KeyError, TypeError, IndexError, ValueError):  # among them names that are not text
        sound = False
    if not sound:
        raise InputError(f"{path} does not hold a graph of psgnn; train again")
    return TensorView(union, x), names, hidden.numpy(), whole


def _checked_kinds(
    part: str, tensors: Mapping[str, torch.Tensor], metadata: Mapping[str, Any], union: GraphBatch
) -> Kinds | None:
    """What edges carry, or an error if these are not the arrays of it; None where the graphs are plain."""
    arrays = {name: tensors[f"{part}.{name}"].numpy() for name in KIND_ARRAYS if f"{part}.{name}" in tensors}
    if not arrays:
        return None
    edges, directed, titles = arrays["edges"], metadata["directed"], metadata["side_names"]
    graph, count = union.graph_of, union.num_nodes
    sound = edges.dtype == np.int64 and edges.ndim == 2 and edges.shape[0] == 2 and edges.size
    if not sound or edges.min() < 0 or edges.max() >= count or (edges[0] == edges[1]).any():
        raise ValueError("wrong edges")
    if (graph[edges[0]] != graph[edges[1]]).any() or np.unique(
        edges[0] * count + edges[1]
    ).size < edges.shape[1]:
        raise ValueError("wrong edges")
    again = Adjacency.from_edges(edges[0], edges[1], count)
    if part == "seen" and not np.array_equal(again.indices, union.adjacency.indices):
        raise ValueError("edges of another graph")
    for name, column in arrays.items():
        if name in PER_EDGE and not (
            column.dtype == np.float64 and column.shape == edges.shape[1:] and np.isfinite(column).all()
        ):
            raise ValueError(f"wrong {name}")
        if name in ("strengths", "lengths") and (column <= 0).any():
            raise ValueError(f"wrong {name}")
    sides = arrays.get("sides")
    if sides is not None and not (
        sides.dtype == np.int8 and sides.shape == (count,) and np.isin(sides, (-1, 0, 1)).all()
    ):
        raise ValueError("wrong sides")
    if not isinstance(directed, bool) or [type(title) for title in titles] != [str, str]:
        raise ValueError("wrong names of sides")
    return Kinds(num_nodes=count, directed=directed, side_names=tuple(titles), **arrays)


def _checked_union(indptr: Any, indices: Any, ptr: Any) -> GraphBatch:
    """The union, or an error if these are not the arrays of one."""
    num_nodes = indptr.size - 1
    if not (indptr.dtype == ptr.dtype == np.int64 and indices.dtype == np.int32):
        raise ValueError("wrong dtypes")
    if not (indptr.ndim == indices.ndim == ptr.ndim == 1 and ptr.size >= 2 and num_nodes >= 1):
        raise ValueError("wrong shapes")
    if indptr[0] != 0 or indptr[-1] != indices.size or (np.diff(indptr) < 0).any():
        raise ValueError("wrong rows")
    if ptr[0] != 0 or ptr[-1] != num_nodes or (np.diff(ptr) <= 0).any():
        raise ValueError("wrong sizes of graphs")
    union = GraphBatch(Adjacency(indptr, indices), ptr)
    # Sorted rows, both directions, no loops, no repeats: as if it were built from its edges.
    again = Adjacency.from_edges(union.adjacency.rows, indices, num_nodes)
    graph = union.graph_of
    if not (
        np.array_equal(again.indptr, indptr)
        and np.array_equal(again.indices, indices)
        and np.array_equal(graph[union.adjacency.rows], graph[indices])
    ):
        raise ValueError("wrong edges")
    return union


def data_hash(view: TensorView) -> str:
    """SHA-256 of what the model could see."""
    sha = hashlib.sha256()
    adjacency = view.union.adjacency
    kinds = {} if view.union.kinds is None else _arrays(view.union.kinds)
    for array in (adjacency.indptr, adjacency.indices, view.union.ptr, view.features, *kinds.values()):
        sha.update(np.ascontiguousarray(array).data)
    return sha.hexdigest()


def versions() -> dict[str, str]:
    """Versions that a result may depend on."""
    import numba
    import torch_geometric

    return {
        "psgnn": version("psgnn"),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "torch_geometric": torch_geometric.__version__,
        "numpy": np.__version__,
        "numba": numba.__version__,
    }
