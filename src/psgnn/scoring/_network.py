"""The ready-made networks in NumPy: what `psgnn.models` trains with torch, evaluated without it, and their weights."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load

from psgnn.distances._propagation import Floats
from psgnn.errors import InputError, unknown_name
from psgnn.graph._graph import IntArray
from psgnn.positions._context import BINS, LARGEST_RATIO, RIVAL, SHAPE, context_columns
from psgnn.positions._measure import (
    DIFFUSION_STEPS,
    FARTHEST_FROM_MEAN,
    HEATS,
    PAIR_LOOKS,
    RESTARTS,
    Parts,
    Positions,
)
from psgnn.positions._roles import ROLES
from psgnn.positions._statistics import pair_statistics, statistic_names

# Of the correction in context: how many pairs it takes for a column of the statistics to count.
RIDGE = 3000.0
RIDGE_OF_KINDS, STEPS_OF_KINDS = 1000.0, 3  # where it reads statistics that the network has not learned from
NUMBERS_AN_ANCHOR, ROLE_NUMBERS = 8, 16

Tensors = Mapping[str, Floats]
Lesson = tuple[Positions, IntArray, Floats]


@dataclass(frozen=True, eq=False)
class Network:
    r"""A pair network and an embedding of nodes, from the tensors of a trained `psgnn.models.PositionModel`.

    .. math:: s(u, v) = w \cdot z + \text{MLP}(z), \quad z = \text{CAT}(g, \ c, \ r(g), \ q)

    with g the standardised `pair_statistics`, r(g) their log likelihood ratios in this very graph and c whether there
    are any (`psgnn.positions._context`), q the standardised shape of the graph.
    """

    tensors: Tensors
    parts: Parts
    members: int

    def scores(self, statistics: Floats, context: Floats) -> Floats:
        """Scores ``[P]``, the mean over the members, of statistics ``[P, S]`` and context ``[P, 1 + S + 13]``."""
        t = self.tensors
        ratios, shape = context[:, : -len(SHAPE)], context[:, -len(SHAPE) :]
        q = _standardised(shape, t["decoder.shape_mean"], t["decoder.shape_deviation"])
        z = np.concatenate([self.standardised(statistics), ratios, q], axis=1)
        found = _linear(t, "decoder.linear", z)
        for i in range(self.members):
            found[:, i] += _mlp(t, f"decoder.mlps.{i}", (0, 3, 6), z)[:, 0]
        return np.asarray(found.mean(axis=1))

    def standardised(self, statistics: Floats) -> Floats:
        """Statistics ``[P, S]`` as the network reads them."""
        return _standardised(statistics, self.tensors["decoder.mean"], self.tensors["decoder.deviation"])

    def plain_scores(self, statistics: Floats, context: Floats) -> Floats:
        """The `scores` by the statistics that any graph has, where there may be more."""
        plain, more = self.tensors["decoder.mean"].size, statistics.shape[1]
        if more > plain:
            context = np.delete(context, np.s_[1 + plain : 1 + more], axis=1)
        return self.scores(statistics[:, :plain], context)

    def correction_columns(self, statistics: Floats, context: Floats, scores: Floats) -> Floats:
        """What a correction weighs, ``[P, 2 + 2 S]``."""
        ones = np.ones((scores.size, 1), np.float32)
        plain = self.tensors["decoder.mean"].size
        g, ratios = self.standardised(statistics[:, :plain]), context[:, 1 : -len(SHAPE)]
        return np.concatenate([ones, scores[:, None], g, ratios, statistics[:, plain:]], axis=1)

    def corrected_scores(self, statistics: Floats, context: Floats, correction: Floats | None) -> Floats:
        """The `plain_scores` and what a correction adds to them."""
        scores = self.plain_scores(statistics, context)
        if correction is None:
            return scores
        return scores + self.correction_columns(statistics, context, scores) @ correction

    def embed(self, positions: Positions, nodes: IntArray) -> Floats:
        """Coordinates ``[n, d]`` of nodes: some numbers per anchor, the place in the spectral basis, the role."""
        graph = positions.view.union.graph_of[nodes]
        return self.embed_rows(
            positions.channels[nodes], positions.traits_of(nodes), positions.basis[nodes],
            positions.values[graph], positions.counts[graph],
        )  # fmt: skip

    def embed_rows(
        self, channels: Floats, traits: Floats, rows: Floats, values: Floats, counts: IntArray
    ) -> Floats:
        """The same by rows of positions: channels ``[n, K, C]``, traits, spectral basis, eigenvalues, anchors."""
        t = self.tensors
        traits = _standardised(traits, t["encoder.traits.mean"], t["encoder.traits.deviation"])
        traits = _relu(_mlp(t, "encoder.traits.mlp", (0, 3), traits))
        z = _linear(t, "encoder.channel_part", channels)  # [n, K, R]
        z += (traits @ t["encoder.trait_part.weight"].T)[:, None]
        counts = counts[:, None]
        present = np.arange(z.shape[1]) < counts
        shares = present / np.sqrt(np.maximum(counts, 1)).astype(np.float32)
        numbers = _mlp(t, "encoder.out", (1, 3), _relu(z)) * shares[:, :, None]
        blocks: list[Floats] = [
            numbers.reshape(rows.shape[0], numbers.shape[1] * numbers.shape[2]).astype(np.float32, copy=False)
        ]
        for time, scale in zip(HEATS, t["encoder.scales"], strict=True):
            place = rows * (np.exp(-time / 2 * (1 - values)) * (values != 0))
            blocks.append(scale * place / np.maximum(np.linalg.norm(place, axis=1, keepdims=True), 1e-12))
        blocks.append(_linear(t, "encoder.role", traits))
        return np.concatenate(blocks, axis=1).astype(np.float32, copy=False)


@dataclass(frozen=True, eq=False)
class Seat:
    """A network on a graph, seen from one set of anchors, with what the graph's own links say beyond it.

    ``correction [2 + 2 S]`` weighs a constant, the score, the statistics and their ratios; None corrects nothing. Of
    graphs with directions, sides, strengths, lengths or times, the network reads the statistics that any graph has, and
    the correction all of them.
    """

    network: Network
    positions: Positions
    strict: bool
    correction: Floats | None = None

    def score(self, pairs: IntArray) -> Floats:
        """Logits ``[P]`` of pairs ``[2, P]``."""
        return self.score_statistics(pair_statistics(self.positions, pairs), pairs)

    def correct(self, lessons: Iterable[Lesson]) -> Floats | None:
        """Fit the correction to `lessons_of` the graph, in closed form; None where there are no lessons.

        It is one Newton step of ridge logistic regression that begins with the network's own scores: few lessons leave
        them as they are. Links and other pairs count the same together, and so do links against their rivals.
        """
        columns, labels, gaps = [], [], []
        for positions, pairs, truth in lessons:
            statistics = pair_statistics(positions, pairs)
            context = context_columns(positions, pairs, statistics, strict=self.strict)
            scores = self.network.plain_scores(statistics, context)
            x = self.network.correction_columns(statistics, context, scores).astype(np.float64)
            asked, rivals = truth != RIVAL, truth == RIVAL
            columns.append(x[asked])
            labels.append(truth[asked].astype(np.float64))
            gaps.append(x[truth == 1][: rivals.sum()] - x[rivals])
        if not columns:
            return None
        fresh = STEPS_OF_KINDS if self.positions.parts.kinds else 0
        parts = [np.concatenate(part) for part in (columns, labels, gaps)]
        return newton_step(*parts, fresh=fresh).astype(np.float32)

    def score_statistics(self, statistics: Floats, pairs: IntArray) -> Floats:
        """Score pairs by statistics ``[P, S]`` that need not be their own: what explanations ask."""
        context = context_columns(self.positions, pairs, statistics, strict=self.strict)
        return self.network.corrected_scores(statistics, context, self.correction)


def newton_step(
    columns: np.ndarray, labels: np.ndarray, gaps: np.ndarray | None = None, *, fresh: int = 0
) -> np.ndarray:
    """The change of the weights ``[W]`` of columns ``[P, W]``: a constant, the logits so far, further ones.

    With `fresh`, that many steps of a regression that begins with nothing, and for which the logits are a column as any
    other: where they can be far off. Then ``gaps [R, W]`` are links less their rivals, which are to be above 0.
    """
    mean, deviation = columns.mean(axis=0), columns.std(axis=0, ddof=1) + 1e-6
    known = 1 if fresh else 2
    mean[:known], deviation[:known] = 0, 1
    x = (columns - mean) / deviation
    links = labels.sum()
    others = max(labels.size - links, 1)  # a complete graph has none
    weight = np.where(labels > 0, 0.5 / links, 0.5 / others) * labels.size
    penalty = np.full(mean.size, RIDGE_OF_KINDS if fresh else RIDGE)
    penalty[0] = 1e-6
    step: np.ndarray = np.zeros(mean.size)
    above = (np.zeros((0, mean.size)) if gaps is None else gaps) / deviation
    share = labels.size / max(len(above), 1) / 2
    for _ in range(max(fresh, 1)):
        chance = 1 / (1 + np.exp(-(x @ step if fresh else columns[:, 1])))
        curvature = (x * (weight * chance * (1 - chance))[:, None]).T @ x + np.diag(penalty)
        gradient = x.T @ (weight * (labels - chance)) - penalty * step
        if fresh and len(above):
            lost = 1 / (1 + np.exp(above @ step))
            curvature += share * (above * (lost * (1 - lost))[:, None]).T @ above
            gradient += share * (above.T @ lost)
        step += np.linalg.solve(curvature, gradient)
    step /= deviation
    step[0] -= (step * mean).sum()
    step[1] -= fresh > 0  # the correction is added to the logits
    return step


def expected_shapes(parts: Parts, hidden: int, members: int) -> dict[str, tuple[int, ...]]:
    """The shapes of the tensors of a network without node features."""
    statistics, channels, traits = len(statistic_names(parts)), len(parts.channels), 3 * len(ROLES)
    width = 2 * statistics + 1 + len(SHAPE)
    shapes: dict[str, tuple[int, ...]] = {
        "encoder.scales": (len(HEATS),),
        "encoder.traits.mean": (traits,),
        "encoder.traits.deviation": (traits,),
        "encoder.trait_part.weight": (hidden, hidden),
        "decoder.mean": (statistics,),
        "decoder.deviation": (statistics,),
        "decoder.shape_mean": (len(SHAPE),),
        "decoder.shape_deviation": (len(SHAPE),),
        "embedding_decoder.scale": (),
        "embedding_decoder.offset": (),
    }
    layers = {
        "encoder.channel_part": (hidden, channels),
        "encoder.traits.mlp.0": (2 * hidden, traits),
        "encoder.traits.mlp.3": (hidden, 2 * hidden),
        "encoder.role": (ROLE_NUMBERS, hidden),
        "encoder.out.1": (hidden, hidden),
        "encoder.out.3": (NUMBERS_AN_ANCHOR, hidden),
        "decoder.linear": (members, width),
    }
    for i in range(members):
        layers |= {
            f"decoder.mlps.{i}.0": (2 * hidden, width),
            f"decoder.mlps.{i}.3": (2 * hidden, 2 * hidden),
            f"decoder.mlps.{i}.6": (1, 2 * hidden),
        }
    for name, shape in layers.items():
        shapes |= {f"{name}.weight": shape, f"{name}.bias": shape[:1]}
    return shapes


def network_of(tensors: Tensors, config: Mapping[str, Any]) -> Network:
    """The network of these settings; raises ValueError where the tensors are not of its shapes."""
    looks = int(config.get("pair_looks", PAIR_LOOKS))
    left_out = ("pair_looks", "pair_features", "kinds")  # the ready-made weights read no node features
    kinds = (name for name in Parts.__dataclass_fields__ if name not in left_out)
    wanted: dict[str, Any] = {name: bool(config[name]) for name in kinds}
    parts = Parts(**wanted, pair_looks=looks)
    members = int(config["members"])
    found = {name: tensor.shape for name, tensor in tensors.items()}
    expected = expected_shapes(parts, int(config["hidden"]), members)
    for name in sorted(found.keys() ^ expected.keys()):
        raise ValueError(f"'{name}' is {'missing' if name in expected else 'unknown'}")
    for name, shape in expected.items():
        if found[name] != shape:
            raise ValueError(f"'{name}' has the shape {list(found[name])}, expected {list(shape)}")
    return Network(tensors, parts, members)


def _linear(t: Tensors, name: str, x: Floats) -> Floats:
    """A map of the last axis."""
    return np.asarray(x @ t[f"{name}.weight"].T + t[f"{name}.bias"])


def _relu(x: Floats) -> Floats:
    return np.maximum(x, 0, out=x)


def _mlp(t: Tensors, name: str, places: tuple[int, ...], x: Floats) -> Floats:
    """Linear maps at these places of a sequence, with a ReLU between them."""
    for place in places[:-1]:
        x = _relu(_linear(t, f"{name}.{place}", x))
    return _linear(t, f"{name}.{places[-1]}", x)


def _standardised(values: Floats, mean: Floats, deviation: Floats) -> Floats:
    """Values in deviations from the mean, cut off far out."""
    return np.asarray(np.clip((values - mean) / deviation, -FARTHEST_FROM_MEAN, FARTHEST_FROM_MEAN))


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
