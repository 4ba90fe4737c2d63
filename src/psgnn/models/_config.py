"""What a model is made of and how it is trained, as one flat, strict record."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from psgnn.anchors._rules import RULES
from psgnn.errors import InputError, check_integer, unknown_name
from psgnn.models._presets import (
    ANCHOR_MODELS,
    BEST,
    BEST_LARGE,
    BEST_SCORER,
    BEST_TRAINING,
    BEST_WIDE,
    CONVOLUTIONS,
    LEARNED,
    MODELS,
    PAPER_TABLE,
    PARTS,
    PRESETS,
    PRETRAINED,
    WIDE_FEATURES,
)
from psgnn.positions._measure import PAIR_LOOKS
from psgnn.registry import ExtendedNames

LEARNED_PICKERS = ("boosted", "random-search")
PICKERS = ExtendedNames(("score", "sequential", *LEARNED_PICKERS, "random-sets", "named", "none"), RULES)
DECODERS = ("dot", "distance", "set", "context", "product")
ESTIMATORS = ("gate", "straight-through", "simple", "reinforce")


class ModelConfig(BaseModel):
    """Everything that decides what a model is and how it learns. Unknown names and wrong types are errors."""

    # The record of a run is JSON, which has no NaN and no infinity.
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    name: str
    preset: str
    task: str
    in_channels: int = Field(ge=1)
    seed: int = Field(ge=0)

    # Picker: which nodes are anchors.
    picker: str = "none"
    anchors: int | str | list[str] = "log"  # how many, or which: their names (picker "named")
    sets_per_size: int | None = Field(None, ge=1)  # picker "random-sets": of each size; None: log N
    estimator: str = "gate"
    scorer: str = "gen"
    scorer_layers: int = Field(3, ge=1)
    scorer_hidden: int = Field(32, ge=1)
    noise: float = Field(0.5, ge=0)
    anneal: bool = False
    unit_scores: bool = False
    structural: bool = False

    # Encoder: what a node's position is.
    encoder: Literal["layers", "channels", "states"] = "layers"
    hidden: int = Field(128, ge=1)
    layers: int = Field(4, ge=1)
    dropout: float = Field(0.0, ge=0, lt=1)
    batch_norm: bool = False
    heads: int = Field(1, ge=1)
    cutoff: int | None = Field(None, ge=1)
    anchor: Literal["add", "multiply"] | None = None
    normalize: bool = False
    center: bool = False

    # Parts of a position (encoder "channels"); each can be switched off.
    hops: bool = True
    pagerank: bool = True
    diffusion: bool = True
    spectral: bool = True
    roles: bool = True
    local: bool = True
    features: bool = True
    pair_features: bool = False  # what the features of two nodes have in common
    pair_looks: int = Field(PAIR_LOOKS, ge=2)  # at edges, for the walks and hops (half of it) of a pair

    kinds: list[
        str
    ] = []  # what else is known of the links, as `Kinds.names` says it; its statistics are read

    # Decoder: what two positions say.
    decoder: str = "dot"
    network: bool = True
    members: int = Field(1, ge=1)
    anchor_dropout: float = Field(0.2, ge=0, lt=1)
    strict: bool = False  # decoder "context": no look at how the graph's own links differ from other pairs

    # Node states: a trainable vector per node (psgnn.models._states).
    states: int = Field(0, ge=0)  # numbers in a vector; 0: there are none
    nodes: int = Field(0, ge=0)  # that have one, as the task says
    state_layers: int = Field(2, ge=0)
    state_depth: int = Field(2, ge=1)  # hidden layers of the network on the product of two states
    state_dropout: float = Field(0.3, ge=0, lt=1)
    state_start: float = Field(0.5, gt=0)  # root mean square of the numbers before training
    state_edges: float = Field(1.0, gt=0, le=1)  # share of the edges that a training step propagates over

    # Training.
    loss: Literal["cross-entropy", "pairwise"] = "cross-entropy"  # pairwise: a positive against a negative
    init: Literal["fresh", "pretrained"] = "fresh"
    epochs: int = Field(2000, ge=1)
    lr: float = Field(1e-3, gt=0)
    weight_decay: float = Field(0.0, ge=0)
    patience: int = Field(400, ge=1)
    tolerance: float = Field(0.0, ge=0)
    eval_every: int = Field(10, ge=1)
    hide_positives: bool = False
    fresh_negatives: bool = False
    samples: int = Field(1, ge=1)
    batch: int | Literal["auto", "all"] = "all"
    step_nodes: int = Field(2048, ge=0)  # of many graphs that a step of pair classification sees; 0: all
    passes: int = Field(2, ge=0)  # over the training pairs at least, however small the batch
    negatives: int = Field(1, ge=1)
    rivals: bool = False  # each link of a step is also compared with an unlinked pair of its first node
    embed_every: int = Field(
        1, ge=1
    )  # of the pairs of a step, every n-th is one that embeddings learn from too
    one_cycle: bool = False
    average: float = Field(0.0, ge=0, lt=1)
    clip: float = Field(0.0, ge=0)  # the longest gradient of a step; 0: any
    keep: Literal["best", "last"] = "best"  # weights: those of the best epoch by validation, or the last ones

    @field_validator("anchors", mode="before")
    @classmethod
    def _old_spelling(cls, anchors: Any) -> Any:
        """Read ``log2`` of older runs and weights as ``log^2``."""
        return "log^2" if anchors == "log2" else anchors


CHOICES: dict[str, Collection[str]] = {
    "picker": PICKERS,
    "estimator": ESTIMATORS,
    "scorer": CONVOLUTIONS,
    "decoder": DECODERS,
}


def make_config(
    name: str,
    task: str,
    in_channels: int,
    preset: str = "best",
    seed: int = 0,
    *,
    large: bool = False,
    **options: Any,
) -> ModelConfig:
    """The settings of a model under a preset, for large graphs or others, changed by `options`."""
    if name not in MODELS:
        raise unknown_name("model", name, MODELS)
    if preset not in PRESETS:
        raise unknown_name("preset", preset, PRESETS)
    lr, dropout, hidden, layers = PAPER_TABLE[task][name]
    settings: dict[str, Any] = {"lr": lr, "dropout": dropout, "hidden": hidden, "layers": layers}
    settings |= PARTS[name]
    if preset == "best":
        settings |= BEST_TRAINING | BEST.get(name, {}) | (BEST_LARGE.get(name, {}) if large else {})
        settings |= BEST_WIDE.get(name, {}) if task == "link" and in_channels >= WIDE_FEATURES else {}
    elif preset == "learned":
        if name != "psgnn":
            raise InputError(
                f"preset learned is for model psgnn, found {name}; choose preset best or paper for it"
            )
        settings |= BEST_TRAINING | LEARNED
    if options.get("init") == "pretrained":
        # Links that the graph hides from itself say nothing about which nodes belong together.
        settings |= PRETRAINED | {"strict": task == "pair"}
    for option in options:
        if option not in ModelConfig.model_fields:
            raise unknown_name("option", option, ModelConfig.model_fields)
    merged = {**settings, **options}
    if isinstance(options.get("anchors"), (list, tuple)):
        merged |= _named_anchors(name, merged, options)
    elif "anchors" in options:
        _check_has_anchors(name, merged.get("picker", "none"), options["anchors"])
    if preset == "best" and merged.get("picker") == "score":
        merged = BEST_SCORER | merged
    if "epochs" in options and merged.get("batch", "all") != "all":
        merged.setdefault("passes", 0)  # whoever says how many epochs gets no more
    identity = {"name": name, "preset": preset, "task": task, "in_channels": in_channels, "seed": seed}
    config = check_config({**merged, **identity})
    if config.picker not in PICKERS.names:
        RULES[config.picker]  # a plugin that cannot be imported is reported before training
    return config


def _check_has_anchors(name: str, picker: str, asked: Any) -> None:
    """A number of anchors that would change nothing is a mistake."""
    if picker == "none":
        raise InputError(f"model {name} has no anchors; leave out anchors={asked}")
    if picker == "random-sets":
        raise InputError(
            f"the random sets of {name} are log^2 N; leave out anchors={asked}, or set picker or sets_per_size"
        )


def _named_anchors(name: str, merged: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    """The settings for anchors that are given by name."""
    if merged.get("picker", "none") == "none":
        raise InputError(f"model {name} has no anchors; leave out those that are named")
    picker = options.get("picker", "named")
    if picker != "named":
        raise InputError(f"anchors are named or chosen by picker={picker}; leave out one of the two")
    return {"picker": "named", "anchors": list(options["anchors"])}


def _check_picker(config: ModelConfig) -> None:
    """Refuse anchors for a model without them, and no anchors for a model that needs them."""
    if config.name in ANCHOR_MODELS and config.picker == "none":
        refused = ("none", "random-sets") if config.encoder == "channels" else ("none",)
        valid = ", ".join(picker for picker in PICKERS if picker not in (*refused, "named"))
        raise InputError(f"model {config.name} needs anchors, found picker=none; choose one of {valid}")
    if config.name not in ANCHOR_MODELS and config.picker != "none":
        raise InputError(
            f"model {config.name} has no anchors, found picker={config.picker}; "
            "leave it out, or use model psgnn or agnn"
        )


def _check_states(config: ModelConfig) -> None:
    """Refuse vectors that nothing reads, and an encoder of vectors where there are none."""
    alone = config.encoder == "states"
    if config.states and not alone and config.decoder != "set":
        raise InputError(
            f"states={config.states} goes with decoder=set or encoder=states, found decoder={config.decoder}"
        )
    if alone and not config.states:
        raise InputError("encoder=states needs vectors; set states to their width, such as 256")
    if alone and config.picker != "none":
        raise InputError(f"encoder=states has no anchors, found picker={config.picker}; use model gcn")


def check_config(settings: dict[str, Any]) -> ModelConfig:
    """The record of these settings, or one line that says which is wrong."""
    try:
        config = ModelConfig.model_validate(settings)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise InputError(f"option {where}={first['input']!r} cannot be used: {first['msg']}") from None
    for option, valid in CHOICES.items():
        if getattr(config, option) not in valid:
            raise unknown_name(option, getattr(config, option), valid)
    if config.task not in PAPER_TABLE:
        raise unknown_name("task", config.task, PAPER_TABLE)
    _check_picker(config)
    if config.decoder in ("set", "context") and config.encoder != "channels":
        raise InputError(f"decoder={config.decoder} needs encoder=channels, found encoder={config.encoder}")
    if config.init == "pretrained" and (config.name, config.decoder) != ("psgnn", "context"):
        raise InputError(
            f"init=pretrained is for model psgnn and decoder context, found {config.name} and {config.decoder}"
        )
    if config.decoder == "context" and not (config.hops and config.spectral and config.roles):
        raise InputError("decoder=context needs hops, spectral and roles")
    _check_states(config)
    if config.encoder == "channels":
        if config.picker in ("none", "random-sets"):
            raise InputError(f"encoder=channels needs single nodes as anchors, found picker={config.picker}")
        described = config.roles or (config.features and config.in_channels > 1)
        if not (config.hops or config.pagerank or config.diffusion or config.spectral or described):
            raise InputError(
                "all parts of a position are off; keep hops, pagerank, diffusion, spectral or roles"
            )
    if isinstance(config.batch, int) and config.batch < 2:
        raise InputError(f"batch must be auto, all, or 2 and more pairs, found {config.batch}")
    if (config.picker == "named") != isinstance(config.anchors, list) or config.anchors == []:
        raise InputError(
            f"picker=named goes with the names of anchors, found picker={config.picker} and "
            f"anchors={config.anchors!r}; name at least one"
        )
    if isinstance(config.anchors, str) and config.anchors not in ("log", "log^2"):
        raise InputError(f"anchors must be log, log^2 or an integer, found '{config.anchors}'")
    if isinstance(config.anchors, int):
        check_integer("anchors", config.anchors, 1)
    return config
