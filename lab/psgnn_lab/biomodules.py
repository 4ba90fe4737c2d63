"""Simulate Bio-Modules: gene regulatory networks that evolve to be modular.

The model of Espinosa-Soto & Wagner (2010, doi 10.1371/journal.pcbi.1000719): a population of signed directed
networks of ten genes evolves to restore an activity pattern after perturbation; from a quarter of the
generations on it has to restore a second pattern, which keeps genes 0-4 and inverts genes 5-9. Networks in
which the two groups are wired apart do better, and the groups are the classes.

This is a reconstruction: the files used in the PSGNN paper are not public. Each network is the fittest of an
independent run of 100 individuals with roulette selection. Fitness is the exact expectation over all 1024
start states instead of a sample of perturbations.

The package ships the networks of the default options; `psgnn.datasets._synthetic` makes graphs of them.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor, as_completed

import numpy as np
import numpy.typing as npt

from psgnn.console import Bar
from psgnn.datasets._synthetic import GENES
from psgnn.graph._graph import Graph
from psgnn_lab.biomodules_kernels import DIAGONAL, HORIZONTAL, NO_CROSSOVER, Network, evaluate, evolve

NETWORKS = 40
GENERATIONS = 2000
CROSSOVER = "horizontal"
CROSSOVERS = {"none": NO_CROSSOVER, "horizontal": HORIZONTAL, "diagonal": DIAGONAL}


def simulate(
    networks: int = NETWORKS,
    generations: int = GENERATIONS,
    crossover: str = CROSSOVER,
    seed: int = 0,
    *,
    show_progress: bool = True,
) -> npt.NDArray[np.int8]:
    """Evolve networks, int8 ``[networks, 10, 10]``; entry ``[n, j, i]`` is the effect of gene j on gene i.

    Network n depends on the seed and n alone, not on how many there are or how many threads make them.
    """
    streams = np.random.SeedSequence(seed).spawn(networks)
    matrices = np.empty((networks, GENES, GENES), np.int8)

    def run(n: int) -> None:
        rng = np.random.default_rng(streams[n])
        matrices[n] = evolve(rng, generations, generations // 4, CROSSOVERS[crossover])

    with (
        Bar("evolving gene networks", networks, show=show_progress) as bar,
        ThreadPoolExecutor(os.cpu_count()) as pool,
    ):
        jobs = [pool.submit(run, n) for n in range(networks)]
        try:
            for done, job in enumerate(as_completed(jobs), 1):
                job.result()
                bar.update(done)
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
