"""Bio-Modules: gene regulatory networks that evolved to be modular.

``bio-modules.npz`` holds the networks, int8 ``[40, 10, 10]``; entry ``[n, j, i]`` is the effect of gene j on
gene i. They were simulated by `psgnn-lab biomodules`: the model of Espinosa-Soto & Wagner (2010, doi
10.1371/journal.pcbi.1000719) with its default options. This is a reconstruction, because the files used in the
PSGNN paper are not public.
"""

from __future__ import annotations

from importlib.resources import files

import numpy as np
import numpy.typing as npt

from psgnn.errors import InputError
from psgnn.graph._graph import Adjacency, Graph

GENES = 10
MODULE = 5
ACTIVITY = np.array([1, 0, 1, 0, 1, 0, 1, 0, 1, 0])  # of the genes in the pattern that evolution began with
BRIDGES = 2


def bio_modules(networks: int, join: int) -> list[Graph]:
    """Return the first ``networks`` gene networks, one graph for every ``join`` of them."""
    matrices = stored_networks()
    if networks > len(matrices):
        raise InputError(
            f"networks={networks}: psgnn holds {len(matrices)} gene networks; "
            f"simulate more from a checkout with: psgnn-lab biomodules --networks {networks}"
        )
    return network_graphs(matrices[:networks], join)


def stored_networks() -> npt.NDArray[np.int8]:
    """Read the networks that come with the package."""
    with (files("psgnn.datasets") / "bio-modules.npz").open("rb") as file, np.load(file) as stored:
        networks: npt.NDArray[np.int8] = stored["networks"]
    return networks


def network_graphs(matrices: npt.NDArray[np.int8], join: int, seed: int = 0) -> list[Graph]:
    """Return one graph for every ``join`` networks; nodes are genes, with an edge where one regulates the other.

    ``x`` is the gene's activity in the first pattern as a one-hot [active, inactive]; ``y`` the module:
    genes 0-4 of the n-th network of a graph are class 2n, genes 5-9 class 2n + 1. With ``join`` > 1, every
    network but the first of a graph is tied to an earlier one by two random edges.
    """
    networks = len(matrices)
    if networks % join:
        raise InputError(f"networks={networks} cannot be joined by {join}; make it a multiple of join")
    activity = np.tile(ACTIVITY, join)
    features = np.stack([activity, 1 - activity], axis=1).astype(np.float32)  # [N, 2]
    labels = np.arange(2 * join).repeat(MODULE)
    rng = np.random.default_rng([seed, join])
    graphs = []
    for first in range(0, networks, join):
        which, regulator, target = np.nonzero(matrices[first : first + join])
        bridges = _bridges(join, rng)
        rows = np.concatenate([which * GENES + regulator, bridges[0]])
        cols = np.concatenate([which * GENES + target, bridges[1]])
        names = [f"network{n}/gene{i}" for n in range(first, first + join) for i in range(GENES)]
        adjacency = Adjacency.from_edges(rows, cols, join * GENES)
        graphs.append(Graph(adjacency, names, features.copy(), labels.copy()))
    return graphs


def _bridges(join: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Draw the edges that tie each network but the first to an earlier one, ``[2, BRIDGES * (join - 1)]``."""
    later = np.arange(1, join).repeat(BRIDGES)
    earlier = rng.integers(0, np.arange(1, join)).repeat(BRIDGES)
    genes = rng.integers(0, GENES, size=(2, later.size))
    return np.stack([later, earlier]) * GENES + genes
