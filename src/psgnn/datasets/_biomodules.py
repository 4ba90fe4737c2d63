"""Bio-Modules: gene regulatory networks that evolved to be modular.

The model of Espinosa-Soto & Wagner (2010, doi 10.1371/journal.pcbi.1000719): a population of signed directed
networks of ten genes evolves to restore an activity pattern after perturbation; from a quarter of the
generations on it has to restore a second pattern, which keeps genes 0-4 and inverts genes 5-9. Networks in
which the two groups are wired apart do better, and the groups are the classes.

This is a reconstruction: the files used in the PSGNN paper are not public. Each network is the fittest of an
independent run of 100 individuals with roulette selection. Fitness is the exact expectation over all 1024
start states instead of a sample of perturbations.
"""

from __future__ import annotations

import logging
import os
import secrets
import zipfile
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from pathlib import Path

import numpy as np
import numpy.typing as npt

from psgnn.datasets._biomodules_kernels import (
    DIAGONAL,
    GENES,
    HORIZONTAL,
    MODULE,
    NO_CROSSOVER,
    TARGETS,
    Network,
    evaluate,
    evolve,
)
from psgnn.datasets._download import cache_folder
from psgnn.datasets._progress import progress_bar
from psgnn.errors import InputError
from psgnn.graph._graph import Adjacency, Graph

# Part of the name of a cached file: raise it whenever the simulator draws or counts differently.
VERSION = 1
BRIDGES = 2
_CROSSOVERS = {"none": NO_CROSSOVER, "horizontal": HORIZONTAL, "diagonal": DIAGONAL}
_log = logging.getLogger("psgnn")


def bio_modules(networks: int, generations: int, crossover: str, seed: int, join: int) -> list[Graph]:
    """One graph for every ``join`` networks; nodes are genes, with an edge where one regulates the other.

    ``x`` is the gene's activity in the first pattern as a one-hot [active, inactive]; ``y`` the module:
    genes 0-4 of the n-th network of a graph are class 2n, genes 5-9 class 2n + 1. With ``join`` > 1, every
    network but the first of a graph is tied to an earlier one by two random edges. The evolved networks are
    kept in the user's cache.
    """
    if networks % join:
        raise InputError(f"networks={networks} cannot be joined by {join}; make it a multiple of join")
    matrices = _cached_networks(networks, generations, crossover, seed)
    activity = np.tile(TARGETS[0], join)
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


def simulate(networks: int, generations: int, crossover: str, seed: int) -> npt.NDArray[np.int8]:
    """Evolve networks, int8 ``[networks, 10, 10]``; entry ``[n, j, i]`` is the effect of gene j on gene i.

    Network n depends on the seed and n alone, not on how many there are or how many threads make them.
    """
    streams = np.random.SeedSequence(seed).spawn(networks)
    matrices = np.empty((networks, GENES, GENES), np.int8)

    def run(n: int) -> None:
        rng = np.random.default_rng(streams[n])
        matrices[n] = evolve(rng, generations, generations // 4, _CROSSOVERS[crossover])

    with (
        progress_bar("evolving gene networks", networks, "networks") as advance,
        ThreadPoolExecutor(os.cpu_count()) as pool,
    ):
        jobs = [pool.submit(run, n) for n in range(networks)]
        try:
            for job in as_completed(jobs):
                job.result()
                advance(1)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return matrices


def fitness(network: Network) -> float:
    """Mean of ``f_T`` over both targets: at most 1 - exp(-3) = 0.950."""
    both = np.empty(2)
    evaluate(np.ascontiguousarray(network, np.int8), both)
    return float(both.mean())


def modularity(data: Graph) -> float:
    """Newman's Q of the graph for the partition ``y``: ``sum_c [l_c / E - (d_c / 2E)^2]``."""
    labels: npt.NDArray[np.int64] = data.y  # type: ignore[assignment]
    rows, cols = data.adjacency.edge_index()
    ends = rows.size
    inside = np.bincount(labels[rows][labels[rows] == labels[cols]], minlength=labels.max() + 1)
    degrees = np.bincount(labels[rows], minlength=labels.max() + 1)
    return float((inside / ends - (degrees / ends) ** 2).sum())


def _bridges(join: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Edges that tie each network but the first to an earlier one, ``[2, BRIDGES * (join - 1)]``."""
    later = np.arange(1, join).repeat(BRIDGES)
    earlier = rng.integers(0, np.arange(1, join)).repeat(BRIDGES)
    genes = rng.integers(0, GENES, size=(2, later.size))
    return np.stack([later, earlier]) * GENES + genes


def _cached_networks(networks: int, generations: int, crossover: str, seed: int) -> npt.NDArray[np.int8]:
    name = f"v{VERSION}-{networks}-networks-{generations}-generations-{crossover}-seed-{seed}.npz"
    path = cache_folder() / "bio-modules" / name
    matrices = _read_cache(path, networks)
    if matrices is None:
        matrices = simulate(networks, generations, crossover, seed)
        _write_cache(path, matrices)
    return matrices


def _read_cache(path: Path, networks: int) -> npt.NDArray[np.int8] | None:
    """The cached networks; None if there are none or the file is damaged."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            matrices: npt.NDArray[np.int8] = stored["networks"]
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
        _log.warning("the cached file %s is damaged (%s); simulating again", path, error)
        return None
    if matrices.shape != (networks, GENES, GENES) or matrices.dtype != np.int8 or np.abs(matrices).max() > 1:
        _log.warning("the cached file %s holds no gene networks; simulating again", path)
        return None
    return matrices


def _write_cache(path: Path, matrices: npt.NDArray[np.int8]) -> None:
    """Keep the networks for the next call; a folder that cannot be written to only costs time."""
    part = path.with_name(f".{path.stem}.{secrets.token_hex(4)}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with part.open("xb") as out:
            np.savez(out, networks=matrices)
        part.replace(path)
    except OSError as error:
        _log.warning("cannot cache the gene networks in %s: %s", path.parent, error)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
