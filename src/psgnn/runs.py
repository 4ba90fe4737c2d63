"""Runs on disk: settings, record, weights and the visible graph, each file written atomically.

RUN/config.toml            the settings of the model
RUN/record.json            versions, hashes, history, anchors, metrics, times: all that is worth keeping
RUN/weights.safetensors    the weights of the best epoch
RUN/graph.safetensors      what the model could see
RUN/state.safetensors      where training stands, until it has ended
"""

from __future__ import annotations

import hashlib
import json
import platform
import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save

from psgnn.errors import InputError
from psgnn.graph import Adjacency, Union
from psgnn.io import atomic_write
from psgnn.nn.config import ModelConfig, check_config
from psgnn.nn.view import View

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FORMAT = 1  # of the files of a run; raised when an older reader would misread them
CONFIG, RECORD, WEIGHTS, GRAPH, STATE = (
    "config.toml",
    "record.json",
    "weights.safetensors",
    "graph.safetensors",
    "state.safetensors",
)


def check_folder(folder: Path) -> None:
    """Refuse a path that is, or lies below, something else than a folder."""
    for part in (folder, *folder.parents):
        if part.exists() and not part.is_dir():
            raise InputError(f"{part} is a file, and a run needs a folder; choose another --out")


def write_text(path: Path, text: str) -> None:
    """Write a file of a run, atomically."""
    with atomic_write(path, force=True) as temporary:
        temporary.write_text(text)


def write_tensors(path: Path, tensors: Mapping[str, torch.Tensor], **metadata: Any) -> None:
    """Write tensors and a JSON document about them, atomically."""
    content = save(
        {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()},
        {"psgnn": json.dumps({"format": FORMAT, **metadata})},
    )
    with atomic_write(path, force=True) as temporary:
        temporary.write_bytes(content)


def read_tensors(path: Path) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """The tensors of a file and the document about them; no code in a file is ever run."""
    content = _read_bytes(path)
    try:
        tensors: dict[str, torch.Tensor] = load(content)
        length = int.from_bytes(content[:8], "little")
        metadata: dict[str, Any] = json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["psgnn"])
    except (SafetensorError, ValueError, KeyError) as error:
        raise InputError(f"{path} is damaged or not of psgnn ({_one_line(error)}); train again") from None
    _check_format(path, metadata)
    return tensors, metadata


def write_config(folder: Path, config: ModelConfig) -> None:
    """Settings as TOML; JSON's numbers, strings and truth values are TOML's too."""
    settings = config.model_dump(exclude_none=True)
    lines = [f"format = {FORMAT}", *(f"{key} = {json.dumps(value)}" for key, value in settings.items())]
    write_text(folder / CONFIG, "\n".join(lines) + "\n")


def read_config(folder: Path) -> ModelConfig:
    """The settings of a run."""
    path = folder / CONFIG
    try:
        settings = tomllib.loads(_read_bytes(path).decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is damaged ({_one_line(error)}); train again") from None
    _check_format(path, settings)
    del settings["format"]
    try:
        return check_config(settings)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def write_record(folder: Path, record: Mapping[str, Any]) -> None:
    """The record as JSON; NaN is refused."""
    write_text(folder / RECORD, json.dumps({"format": FORMAT, **record}, indent=1, allow_nan=False) + "\n")


def read_record(folder: Path) -> dict[str, Any]:
    """The record of a run that has ended."""
    path = folder / RECORD
    try:
        record: dict[str, Any] = json.loads(_read_bytes(path))
    except ValueError as error:
        raise InputError(f"{path} is damaged ({_one_line(error)}); train again") from None
    _check_format(path, record)
    return record


def write_view(folder: Path, view: View, node_names: list[list[str]]) -> None:
    """The graph that the model could see, its features and the names of its nodes."""
    adjacency = view.union.adjacency
    tensors = {
        "indptr": torch.from_numpy(adjacency.indptr),
        "indices": torch.from_numpy(adjacency.indices),
        "ptr": torch.from_numpy(view.union.ptr),
        "x": view.x,
    }
    write_tensors(folder / GRAPH, tensors, node_names=node_names)


def read_view(folder: Path) -> tuple[View, list[list[str]]]:
    """What `write_view` wrote."""
    path = folder / GRAPH
    tensors, metadata = read_tensors(path)
    try:
        adjacency = Adjacency(tensors["indptr"].numpy(), tensors["indices"].numpy())
        union = Union(adjacency, tensors["ptr"].numpy())
        names: list[list[str]] = metadata["node_names"]
        counts = [len(part) for part in names]
        indices = adjacency.indices
        sound = (
            adjacency.indptr[-1] == indices.size
            and (np.diff(adjacency.indptr) >= 0).all()
            and (indices.size == 0 or (indices.min() >= 0 and indices.max() < adjacency.num_nodes))
            and union.num_nodes == adjacency.num_nodes == tensors["x"].size(0)
            and counts == union.sizes.tolist()
        )
    except (KeyError, TypeError, IndexError):
        sound = False
    if not sound:
        raise InputError(f"{path} does not hold a graph of psgnn; train again")
    return View(union, tensors["x"]), names


def data_hash(view: View) -> str:
    """SHA-256 of what the model could see."""
    sha = hashlib.sha256()
    adjacency = view.union.adjacency
    for array in (adjacency.indptr, adjacency.indices, view.union.ptr, view.x.cpu().numpy()):
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


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(
            f"{path.parent} is not a finished run of psgnn: {path.name}: {error.strerror or error}"
        ) from None


def _check_format(path: Path, document: Mapping[str, Any]) -> None:
    found = document.get("format") if isinstance(document, Mapping) else None
    if found != FORMAT:
        raise InputError(
            f"{path} is of format {found!r}, this version of psgnn reads format {FORMAT}; "
            "train again or use the version that wrote it"
        )


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:120]
