"""How far probabilities can be trusted: what was said of pairs, and how many of them were hidden links."""

from __future__ import annotations

from typing import Any

import numpy as np

from psgnn.scoring._calibration import Calibration, fit_calibration

BINS_PER_DECADE = 2
LEAST_SHARE = 1e-6  # probabilities below it count as it


def reliability_of(calibration: Calibration, *, seed: int = 0) -> dict[str, Any] | None:
    """Compare probabilities with the shares of links found, on pairs that the probabilities were not learned from.

    The pairs of the rehearsal are halved. Each half is judged by the calibration that the other half gives. Every pair
    counts as often as it stands for pairs of the graph, and the hidden links as the missing ones.

    Returns:
        Arrays with an entry per bin of the probability: ``probability`` (the mean), ``share`` (missing links per
        unlinked pair), ``pairs`` (of the graph) and ``hidden`` (links of the rehearsal). None where a half has none.
    """
    scores, labels, weights = calibration.rehearsed
    half = np.random.default_rng(seed).random(scores.size) < 0.5
    if any(len(np.unique(labels[part])) < 2 for part in (half, ~half)):
        return None
    said = np.empty(scores.size)
    for part in (half, ~half):
        # Half of the other pairs are here, so half of the missing links are.
        learned = fit_calibration(
            scores[part], labels[part], _sampled(labels, weights)[part], calibration.missing / 2
        )
        said[~part] = learned.probability(scores[~part])
    place = np.floor(BINS_PER_DECADE * np.log10(said.clip(LEAST_SHARE, 1 - 1e-9))).astype(np.int64)
    bins, place = np.unique(place, return_inverse=True)
    others = np.where(labels > 0, 0.0, weights)
    pairs, links, expected = (
        np.bincount(place, values, bins.size)
        for values in (others, np.where(labels > 0, weights, 0.0), others * said)
    )
    filled = pairs > 0
    share = np.minimum(links[filled] / pairs[filled], 1)
    return {
        "probability": (expected[filled] / pairs[filled]).astype(np.float32),
        "share": share.astype(np.float32),
        "pairs": np.round(pairs[filled]).astype(np.int64),
        "hidden": np.bincount(place, labels, bins.size)[filled].astype(np.int64),
    }


def _sampled(labels: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The weights before the hidden links were scaled to the missing ones."""
    return np.where(labels > 0, 1.0, weights)
