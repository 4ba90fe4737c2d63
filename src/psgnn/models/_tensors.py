"""Tensors and a JSON document about them as bytes: safetensors, in which nothing can be run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save

# What is raised where bytes are not of this kind.
DAMAGE = (SafetensorError, ValueError, KeyError, TypeError, RecursionError)
KEY = "psgnn"


def pack(tensors: Mapping[str, torch.Tensor], document: Mapping[str, Any]) -> bytes:
    """The bytes of a file."""
    near = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    return save(near, {KEY: json.dumps(document)})


def unpack(content: bytes) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """The tensors and the document; raises one of `DAMAGE` where there are none."""
    tensors: dict[str, torch.Tensor] = load(content)
    length = int.from_bytes(content[:8], "little")
    document: dict[str, Any] = json.loads(json.loads(content[8 : 8 + length])["__metadata__"][KEY])
    return tensors, document
