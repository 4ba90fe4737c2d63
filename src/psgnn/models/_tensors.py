"""Tensors and a JSON document about them as bytes: safetensors, in which nothing can be run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import torch
from safetensors.torch import load, save

from psgnn.scoring._weights import DAMAGE, KEY, metadata

__all__ = ["DAMAGE", "pack", "unpack"]


def pack(tensors: Mapping[str, torch.Tensor], document: Mapping[str, Any]) -> bytes:
    """The bytes of a file."""
    near = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    return save(near, {KEY: json.dumps(document)})


def unpack(content: bytes) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """The tensors and the document; raises one of `DAMAGE` where there are none."""
    return load(content), metadata(content)
