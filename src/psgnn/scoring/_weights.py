"""Weights that come with the package, and the check that they were trained on what is measured today."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load

from psgnn.errors import InputError, unknown_name
from psgnn.positions._context import BINS, LARGEST_RATIO, SHAPE
from psgnn.positions._measure import DIFFUSION_STEPS, RESTARTS, Parts
from psgnn.positions._statistics import statistic_names

WEIGHTS = ("best-link", "best-pair")
SUFFIX = ".safetensors"
# Raised when something that is measured changes its meaning and not its name.
DEFINITION = 1
# What is raised where bytes are not of this kind.
DAMAGE = (
    SafetensorError,
    ValueError,
    KeyError,
    TypeError,
    RuntimeError,
)  # among them RecursionError, and torch's
KEY = "psgnn"


@dataclass(frozen=True)
class Weights:
    """Tensors of a model, and what is known about them: config, features, range of shapes, how they were made."""

    tensors: dict[str, npt.NDArray[np.float32]]
    about: dict[str, Any]


def metadata(content: bytes) -> dict[str, Any]:
    """The JSON document in the bytes of a safetensors file; raises one of `DAMAGE` where there is none."""
    length = int.from_bytes(content[:8], "little")
    document: dict[str, Any] = json.loads(json.loads(content[8 : 8 + length])["__metadata__"][KEY])
    return document


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
        tensors, about = load(content), metadata(content)
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
