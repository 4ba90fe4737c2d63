"""The named models, and what the presets set them to."""

from __future__ import annotations

from typing import Any

ANCHOR_MODELS = ("psgnn", "pgnn", "agnn")
MODELS = (*ANCHOR_MODELS, "gcn", "sage", "gat", "gin")
PRESETS = ("best", "learned", "paper")
NAMED_MODELS = tuple(
    (name, preset) for name in MODELS for preset in PRESETS if preset != "learned" or name == "psgnn"
)
CONVOLUTIONS = ("gen", "gcn", "sage", "gat", "gin")

# The paper's table of optimal hyperparameters: learning rate, dropout, width, layers.
PAPER_TABLE: dict[str, dict[str, tuple[float, float, int, int]]] = {
    "pair": {
        "gcn": (0.008, 0.5, 64, 3),
        "sage": (0.002, 0.5, 64, 3),
        "gat": (0.004, 0.5, 64, 4),
        "gin": (0.004, 0.6, 32, 3),
        "pgnn": (0.001, 0.4, 128, 4),
        "agnn": (0.001, 0.2, 64, 3),
        "psgnn": (0.001, 0.3, 128, 4),
    },
    "link": {
        "gcn": (0.008, 0.4, 64, 3),
        "sage": (0.002, 0.6, 64, 3),
        "gat": (0.004, 0.5, 64, 4),
        "gin": (0.004, 0.6, 64, 3),
        "pgnn": (0.001, 0.3, 128, 4),
        "agnn": (0.001, 0.4, 128, 3),
        "psgnn": (0.001, 0.3, 128, 4),
    },
}

# What makes each model, whatever the preset.
PARTS: dict[str, dict[str, Any]] = {
    "psgnn": {"picker": "score"},
    "pgnn": {"picker": "random-sets", "anchor": "multiply", "normalize": True},
    "agnn": {"picker": "degree", "anchor": "multiply", "batch_norm": True},
    "gcn": {"batch_norm": True},
    "sage": {"batch_norm": True},
    "gat": {"batch_norm": True, "heads": 2},
    "gin": {"batch_norm": True},
}

# Deviates: what `best` does otherwise than the paper; docs/fidelity.md has the reasons.
BEST_TRAINING = {"hide_positives": True, "fresh_negatives": True, "epochs": 600, "patience": 150}
BEST: dict[str, dict[str, Any]] = {
    "psgnn": {
        "picker": "mixed", "anchors": "log^2", "encoder": "channels", "decoder": "set", "hidden": 32, "dropout": 0.2,
        "lr": 3e-3, "weight_decay": 0.01, "batch": "auto", "negatives": 3, "one_cycle": True, "members": 4,
        "average": 0.98, "epochs": 600, "eval_every": 20, "patience": 600, "tolerance": 0.5,
    },
    "pgnn": {"layers": 2, "hidden": 64, "lr": 5e-3, "dropout": 0.1},
    "agnn": {"layers": 2, "hidden": 64, "lr": 5e-3},
}  # fmt: skip

# The paper's noise drowns its scores, which are about 1 / sqrt(N): where `best` is asked for a scorer, scores have unit
# variance and the noise fades.
BEST_SCORER = {"unit_scores": True, "anneal": True}

# On large graphs `best` leaves out what hundreds of thousands of links make superfluous: several networks that are
# averaged, large steps, many looks at validation.
BEST_LARGE: dict[str, dict[str, Any]] = {
    "psgnn": {"members": 1, "batch": 1024, "embed_every": 2, "eval_every": 60}
}

# Where links are predicted and nodes carry words, `best` compares the words of the two nodes of a pair.
WIDE_FEATURES = 64
BEST_WIDE: dict[str, dict[str, Any]] = {"psgnn": {"pair_features": True}}

# Deviates: the paper's architecture with learned anchors. They are chosen from the training pairs before training,
# since gradients through a choice of nodes do not find them; docs/fidelity.md lists every repair.
LEARNED: dict[str, Any] = {
    "picker": "boosted", "anchors": "log", "encoder": "layers", "decoder": "distance", "anchor": "add", "center": True,
    "hidden": 64, "layers": 2, "dropout": 0.1, "lr": 5e-3, "epochs": 2000, "patience": 400,
}  # fmt: skip

# What starts from the weights that come with the package: they have learned already, on graphs without features.
PRETRAINED: dict[str, Any] = {"decoder": "context", "members": 2, "features": False, "lr": 1e-3}


# What `psgnn compare --ablate` switches off or swaps, one at a time, in the best preset of psgnn.
ABLATIONS: dict[str, dict[str, Any]] = {
    "without hops": {"hops": False},
    "without PageRank": {"pagerank": False},
    "without diffusion": {"diffusion": False},
    "without the spectral basis": {"spectral": False},
    "without roles": {"roles": False},
    "without local statistics": {"local": False},
    "without the network over anchors": {"network": False},
    "without hidden positives": {"hide_positives": False},
    "hops alone": {"pagerank": False, "diffusion": False, "spectral": False, "roles": False, "local": False},
    "log N anchors": {"anchors": "log"},
    "distance of embeddings": {"decoder": "distance"},
    "dot product of embeddings": {"decoder": "dot"},
}
