"""Weights that come with the package, and the check that they were trained on what is measured today."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import torch

from psgnn.errors import InputError, unknown_name
from psgnn.models._tensors import DAMAGE, unpack
from psgnn.positions._context import BINS, LARGEST_RATIO, SHAPE
from psgnn.positions._measure import DIFFUSION_STEPS, RESTARTS, Parts
from psgnn.positions._statistics import statistic_names

WEIGHTS = ("best-link", "best-pair")
SUFFIX = ".safetensors"
# Raised when something that is measured changes its meaning and not its name.
DEFINITION = 1


@dataclass(frozen=True)
class Weights:
    """Tensors of a model, and what is known about them: config, features, range of shapes, how they were made."""

    tensors: dict[str, torch.Tensor]
    about: dict[str, Any]


def feature_definition() -> str:
    """A digest of what a pretrained network is fed with: names, their order, and the constants behind them."""
    fed = [DEFINITION, statistic_names(Parts()), SHAPE, BINS, LARGEST_RATIO, RESTARTS, DIFFUSION_STEPS]
    return hashlib.sha256(json.dumps(fed).encode()).hexdigest()[:16]


def read_weights(name: str) -> Weights:
    """The weights of this name."""
    if name not in WEIGHTS:
        raise unknown_name("pretrained model", name, WEIGHTS)
    return parse_weights(_content(name), name)


def weights_digest(name: str) -> str:
    """A hash of the file of the weights."""
    return hashlib.sha256(_content(name)).hexdigest()[:16]


def _content(name: str) -> bytes:
    return (files("psgnn") / "weights" / (name + SUFFIX)).read_bytes()


def parse_weights(content: bytes, name: str) -> Weights:
    """The weights in the bytes of a file; a file of other features, or a damaged one, is an error."""
    try:
        tensors, about = unpack(content)
        definition = about["features"]
    except DAMAGE as error:
        reason = " ".join(str(error).split())[:100]
        raise InputError(f"the weights {name} are damaged ({reason}); install psgnn again") from None
    if definition != feature_definition():
        raise InputError(
            f"the weights {name} were trained on features {definition}, this version of psgnn measures "
            f"{feature_definition()}; psgnn-lab pretrain makes new ones"
        )
    return Weights(tensors, about)
