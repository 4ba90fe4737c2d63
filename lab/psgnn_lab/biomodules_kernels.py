"""The evolution of gene networks, compiled by numba.

A network of N = 10 genes is a map on its 2^N states, so it is handled as a table: all 1024 successors come
from 32 + 32 packed partial sums, and composing the table with itself gives the state after 20 steps. With
p = 3/20 and integer powers the expected fitness over all start states is a sum of integers: exact, and the
same on every machine.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from psgnn.datasets._synthetic import GENES, MODULE
from psgnn.kernels._compile import njit

Network = npt.NDArray[np.int8]

STATES = 1 << GENES
TARGETS = np.array([[1, 0, 1, 0, 1, 0, 1, 0, 1, 0], [1, 0, 1, 0, 1, 1, 0, 1, 0, 1]])  # [T, N], 1 = active
POPULATION = 100
OFFSPRING = 90  # the other ten are winners of tournaments among the parents
TOURNAMENT = 3
START_EDGES = 20
MUTATION_RATE = 0.05
NO_CROSSOVER, HORIZONTAL, DIAGONAL = 0, 1, 2

_BITS = (np.arange(STATES)[:, None] >> np.arange(GENES)) & 1
_DISTANCE = (_BITS[None] != TARGETS[:, None]).sum(axis=2)  # [T, S] Hamming distance of state and target
# A start state at distance d has the weight p^d (1-p)^(N-d) = 3^d 17^(N-d) / 20^N, and an end state the value
# (1 - d/N)^5 = (N-d)^5 / 10^5. The sum of all products is at most 20^10 * 10^5, about 1e18: it fits int64.
_WEIGHT = 3**_DISTANCE * 17 ** (GENES - _DISTANCE)  # [T, S]
_VALUE = (GENES - _DISTANCE) ** 5  # [T, S]
_UNIT = 20.0**GENES * 10.0**5

# Ten 6-bit fields in an int64, one a gene. A field holds its input sum (-10..10) plus 31, so its top bit is
# set where the sum is positive.
_FIELD = 6
_BIAS = sum(31 << (_FIELD * i) for i in range(GENES))
_EVERY_FIELD = sum(1 << (_FIELD * i) for i in range(MODULE))
# Multiplying five bits at stride 6 by this brings them together at 20..24: 6i + 5k = 20 + i for i + k = 4,
# and no two of the other products meet.
_GATHER = sum(1 << (5 * k) for k in range(MODULE))


@njit(cache=True, nogil=True)
def successors(network: Network, out: npt.NDArray[np.uint16]) -> None:
    """``out[s]`` is the state after ``s``: gene i is active iff ``sum_j A[j, i] s_j > 0``, s_j = +1 or -1."""
    half = 1 << MODULE
    low = np.empty(half, np.int64)  # partial sums over genes 0..4, a row for each of their 32 patterns
    high = np.empty(half, np.int64)  # the same for genes 5..9
    low[0], high[0] = _BIAS, 0
    for j in range(MODULE):
        low_effect, high_effect = np.int64(0), np.int64(0)
        for i in range(GENES):
            low_effect += np.int64(network[j, i]) << (_FIELD * i)
            high_effect += np.int64(network[MODULE + j, i]) << (_FIELD * i)
        for k in range(1 << j):
            low[k], low[k + (1 << j)] = low[k] - low_effect, low[k] + low_effect
            high[k], high[k + (1 << j)] = high[k] - high_effect, high[k] + high_effect
    for h in range(half):
        for k in range(half):
            active = (low[k] + high[h]) >> (_FIELD - 1)
            first = ((active & _EVERY_FIELD) * _GATHER) >> 20
            second = (((active >> (_FIELD * MODULE)) & _EVERY_FIELD) * _GATHER) >> 20
            out[h * half + k] = (first & (half - 1)) | ((second & (half - 1)) << MODULE)


@njit(cache=True, nogil=True)
def evaluate(network: Network, fitness: npt.NDArray[np.float64]) -> None:
    """Write ``f_T = 1 - exp(-3 g_T)`` of both targets, g_T the expected value of the end state.

    The end state is the one after 20 steps; it counts 0 unless it is a fixed point.
    """
    after1 = np.empty(STATES, np.uint16)
    after4 = np.empty(STATES, np.uint16)
    after8 = np.empty(STATES, np.uint16)
    successors(network, after1)
    for s in range(STATES):
        after8[s] = after1[after1[s]]  # two steps for now, which make four, which make eight
    for s in range(STATES):
        after4[s] = after8[after8[s]]
    for s in range(STATES):
        after8[s] = after4[after4[s]]
    total0, total1 = 0, 0
    for s in range(STATES):
        end = after8[after8[after4[s]]]
        if after1[end] == end:
            total0 += _WEIGHT[0, s] * _VALUE[0, end]
            total1 += _WEIGHT[1, s] * _VALUE[1, end]
    fitness[0] = 1.0 - np.exp(-3.0 * (total0 / _UNIT))
    fitness[1] = 1.0 - np.exp(-3.0 * (total1 / _UNIT))


@njit(cache=True, nogil=True)
def below(rng: np.random.Generator, limit: int) -> int:
    """A uniform draw from 0..limit-1."""
    return int(rng.random() * limit)


@njit(cache=True, nogil=True)
def random_sign(rng: np.random.Generator) -> int:
    """+1 or -1."""
    return 1 if rng.random() < 0.5 else -1


@njit(cache=True, nogil=True)
def spin(roulette: npt.NDArray[np.float64], rng: np.random.Generator) -> int:
    """An individual, drawn in proportion to its score; ``roulette`` holds the cumulative scores."""
    pick = int(np.searchsorted(roulette, rng.random() * roulette[-1], "right"))
    return min(pick, roulette.size - 1)


@njit(cache=True, nogil=True)
def mutate(network: Network, rng: np.random.Generator) -> None:
    """Lose or gain a regulator of every gene with probability 0.05."""
    for u in range(GENES):
        if rng.random() >= MUTATION_RATE:
            continue
        regulators = 0
        for j in range(GENES):
            regulators += network[j, u] != 0
        absent = GENES - regulators
        # a present interaction is lost four times as often as an absent one is gained: about two a gene remain
        lose = rng.random() * (4 * regulators + absent) < 4 * regulators
        skip = below(rng, regulators if lose else absent)
        for j in range(GENES):
            if (network[j, u] != 0) == lose:
                if skip == 0:
                    network[j, u] = 0 if lose else random_sign(rng)
                    break
                skip -= 1


@njit(cache=True, nogil=True)
def cross(kind: int, one: Network, other: Network, rng: np.random.Generator) -> None:
    """Exchange parts of two networks in place: all rows from a cut on, or the inner wiring of one module."""
    start, stop, left, right = 0, 0, 0, GENES
    if kind == HORIZONTAL:
        start, stop = 1 + below(rng, GENES - 1), GENES
    elif kind == DIAGONAL:
        start = MODULE * below(rng, 2)
        stop = start + MODULE
        left, right = start, stop
    for j in range(start, stop):
        for i in range(left, right):
            one[j, i], other[j, i] = other[j, i], one[j, i]


@njit(cache=True, nogil=True)
def differ(one: Network, other: Network) -> bool:
    """Whether any entry is not the same."""
    for j in range(GENES):
        for i in range(GENES):
            if one[j, i] != other[j, i]:
                return True
    return False


@njit(cache=True, nogil=True)
def overwrite(
    networks: Network,
    fitness: npt.NDArray[np.float64],
    place: int,
    from_networks: Network,
    from_fitness: npt.NDArray[np.float64],
    origin: int,
) -> None:
    """Copy an individual, its network and fitness, into another population."""
    for j in range(GENES):
        for i in range(GENES):
            networks[place, j, i] = from_networks[origin, j, i]
    for t in range(2):
        fitness[place, t] = from_fitness[origin, t]


@njit(cache=True, nogil=True)
def evolve(rng: np.random.Generator, generations: int, second_from: int, crossover: int) -> Network:
    """The fittest network after so many generations; the second target counts from ``second_from`` on."""
    parents = np.zeros((POPULATION, GENES, GENES), np.int8)
    children = np.zeros_like(parents)
    fitness = np.empty((POPULATION, 2))
    child_fitness = np.empty_like(fitness)
    score = np.empty(POPULATION)
    roulette = np.empty(POPULATION)  # cumulative scores
    entries = np.arange(GENES * GENES)
    for m in range(POPULATION):
        for e in range(START_EDGES):
            pick = e + below(rng, GENES * GENES - e)
            entries[e], entries[pick] = entries[pick], entries[e]
            parents[m, entries[e] // GENES, entries[e] % GENES] = random_sign(rng)
        evaluate(parents[m], fitness[m])

    for generation in range(generations):
        total = 0.0
        for m in range(POPULATION):
            score[m] = fitness[m, 0] if generation < second_from else (fitness[m, 0] + fitness[m, 1]) / 2
            total += score[m]
            roulette[m] = total
        for m in range(0, OFFSPRING, 2):
            one, two = spin(roulette, rng), spin(roulette, rng)
            overwrite(children, child_fitness, m, parents, fitness, one)
            overwrite(children, child_fitness, m + 1, parents, fitness, two)
            if crossover != NO_CROSSOVER:
                cross(crossover, children[m], children[m + 1], rng)
            for child, parent in ((m, one), (m + 1, two)):
                mutate(children[child], rng)
                # fitness is exact, so a child that equals its parent has its parent's
                if differ(children[child], parents[parent]):
                    evaluate(children[child], child_fitness[child])
        for m in range(OFFSPRING, POPULATION):
            best = below(rng, POPULATION)
            for _ in range(TOURNAMENT - 1):
                rival = below(rng, POPULATION)
                if score[rival] > score[best]:
                    best = rival
            overwrite(children, child_fitness, m, parents, fitness, best)
        parents, children = children, parents
        fitness, child_fitness = child_fitness, fitness

    best = 0
    for m in range(POPULATION):
        if fitness[m, 0] + fitness[m, 1] > fitness[best, 0] + fitness[best, 1]:
            best = m
    fittest: Network = parents[best].copy()
    return fittest
