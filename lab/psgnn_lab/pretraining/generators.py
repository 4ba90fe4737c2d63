"""How random graphs of each family are made.

Every function takes a generator and a number of nodes; it gives edges ``[2, E]``, in any direction and any number of
times, and may use fewer nodes than asked. Some give groups ``[n]`` too, to one of which each node belongs.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.spatial import Delaunay, cKDTree

from psgnn.graph._graph import IntArray

Floats = npt.NDArray[np.float64]

LARGEST = 6000  # nodes of small graphs
MOST_EDGES = 40_000  # that are asked for, of up to LARGEST nodes; in proportion of more
DENSE = 3  # times MOST_EDGES are accepted


def most_edges(n: int) -> int:
    """Of a graph with `n` nodes."""
    return MOST_EDGES * max(n, LARGEST) // LARGEST


def _mean_degree(rng: np.random.Generator, n: int, low: float, high: float, *, dense: bool = False) -> float:
    """Log-uniform, but no more than keeps the graph small and sparse."""
    most = most_edges(n) * (DENSE if dense else 1)
    high = max(min(high, 1.8 * most / n, n / 3), low)
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def _pairs_by_weight(rng: np.random.Generator, weights: Floats, count: int) -> IntArray:
    """Random pairs whose ends are drawn in proportion to the weights."""
    return rng.choice(weights.size, (2, count), p=weights / weights.sum())


def _heavy_tail(rng: np.random.Generator, n: int) -> Floats:
    """Positive weights, from all equal to a few hubs."""
    weights = rng.pareto(rng.uniform(1.1, 4.0), n) + 1
    return np.asarray(np.minimum(weights, np.sqrt(n) * 4))


def grid(rng: np.random.Generator, n: int) -> IntArray:
    """A lattice, sometimes with diagonals or a torus, from which some links are missing."""
    rows = max(int(np.sqrt(n) * rng.uniform(0.3, 1.0)), 3)
    cols = max(n // rows, 3)
    index = np.arange(rows * cols).reshape(rows, cols)
    parts = [(index[1:], index[:-1]), (index[:, 1:], index[:, :-1])]
    if rng.random() < 0.3:
        parts.append((index[1:, 1:], index[:-1, :-1]))
    if rng.random() < 0.2:
        parts += [(index[0], index[-1]), (index[:, 0], index[:, -1])]
    edges = np.concatenate([np.stack([a.ravel(), b.ravel()]) for a, b in parts], axis=1)
    return edges[:, rng.random(edges.shape[1]) > rng.choice([0.0, 0.02, 0.15])]


def caves(rng: np.random.Generator, n: int) -> tuple[IntArray, IntArray]:
    """Cliques in a ring, some of whose links go to random nodes, or are missing."""
    size = int(rng.integers(4, 25))
    us, vs = np.triu_indices(size, 1)
    first = np.arange(max(n // size, 3))[:, None] * size
    inside = np.stack([(first + us).ravel(), (first + vs).ravel()])
    around = np.stack([first[:, 0], np.roll(first[:, 0], 1) + 1])
    inside = inside[:, rng.random(inside.shape[1]) > rng.choice([0.0, 0.1, 0.4])]
    moved = rng.random(inside.shape[1]) < rng.choice([0.0, 0.02, 0.1, 0.25])
    inside[1, moved] = rng.integers(first.size * size, size=int(moved.sum()))
    return np.concatenate([inside, around], axis=1), np.arange(first.size * size) // size


def small_world(rng: np.random.Generator, n: int) -> IntArray:
    """Watts and Strogatz: a ring with links to near nodes, some of which are random."""
    half = max(int(_mean_degree(rng, n, 4, 24) / 2), 1)
    us = np.repeat(np.arange(n), half)
    vs = (us + np.tile(np.arange(1, half + 1), n)) % n
    moved = rng.random(us.size) < rng.uniform(0, 0.4) ** 1.5
    vs[moved] = rng.integers(n, size=int(moved.sum()))
    return np.stack([us, vs])


def preferential(rng: np.random.Generator, n: int) -> IntArray:
    """Growth by preferential attachment, with triangles (Holme and Kim)."""
    mean = _mean_degree(rng, n, 2, 20) / 2
    closing = rng.choice([0.0, rng.uniform(0, 1)])
    ends: list[int] = [0, 1]
    neighbours: list[list[int]] = [[1], [0]]
    edges = [(0, 1)]
    for v in range(2, n):
        neighbours.append([])
        last = -1
        for _ in range(1 + rng.poisson(max(mean - 1, 0))):
            if last >= 0 and rng.random() < closing:
                u = neighbours[last][int(rng.integers(len(neighbours[last])))]
            else:
                u = ends[int(rng.integers(len(ends)))]
            last = u
            if u == v:
                continue
            edges.append((u, v))
            ends += [u, v]
            neighbours[u].append(v)
            neighbours[v].append(u)
    return np.array(edges).T


def blocks(rng: np.random.Generator, n: int) -> tuple[IntArray, IntArray]:
    """A stochastic block model with groups of unequal size and, sometimes, hubs."""
    count = int(n * _mean_degree(rng, n, 3, 60) / 2)
    groups = rng.choice(max(int(n ** rng.uniform(0.2, 0.6)), 2), n)
    weights = _heavy_tail(rng, n) if rng.random() < 0.6 else np.ones(n)
    edges = _pairs_by_weight(rng, weights, count)
    inside = rng.random(count) < rng.uniform(0.4, 0.97)
    order = np.argsort(groups, kind="stable")
    starts = np.searchsorted(groups[order], np.arange(groups.max() + 2))
    # The other end comes from the same group: the one of some further draws that is.
    for g in np.unique(groups[edges[0, inside]]):
        members = order[starts[g] : starts[g + 1]]
        own = inside & (groups[edges[0]] == g)
        share = weights[members] / weights[members].sum()
        edges[1, own] = rng.choice(members, int(own.sum()), p=share)
    return edges, groups


def geometric(rng: np.random.Generator, n: int) -> IntArray:
    """Random points in two to four dimensions; near ones are linked, a few links are missing or random."""
    points = rng.random((n, int(rng.integers(2, 5))))
    count = min(int(_mean_degree(rng, n, 3, 24)), n - 1)
    if rng.random() < 0.5:
        edges = np.asarray(cKDTree(points).query_pairs(_radius(points, count), output_type="ndarray")).T
    else:
        near = np.asarray(cKDTree(points).query(points, max(count // 2, 1) + 1)[1])[:, 1:]
        edges = np.stack([np.repeat(np.arange(n), near.shape[1]), near.ravel()])
    edges = edges[:, rng.random(edges.shape[1]) > rng.choice([0.0, 0.1, 0.3])]
    random = rng.integers(n, size=(2, int(edges.shape[1] * rng.choice([0.0, 0.0, 0.05]))))
    return np.concatenate([edges, random], axis=1)


def _radius(points: Floats, count: int) -> float:
    return float(np.median(np.asarray(cKDTree(points).query(points, count + 1)[0])[:, -1]))


def tree(rng: np.random.Generator, n: int) -> IntArray:
    """A tree, from chains to stars, with some links between nodes that are near in it, or hubs."""
    parent = np.zeros(n, np.int64)
    kind = rng.random()
    ends = [0]
    for v in range(1, n):
        if kind < 0.4:
            parent[v] = rng.integers(v)
        elif kind < 0.8:
            parent[v] = ends[int(rng.integers(len(ends)))]
            ends += [int(parent[v]), v]
        else:
            parent[v] = max(v - 1 - int(rng.geometric(0.5)), 0)
    edges = np.stack([np.arange(1, n), parent[1:]])
    extra = rng.integers(n, size=int(n * rng.choice([0.05, 0.2, 0.5])))
    far = extra
    for _ in range(int(rng.integers(2, 4))):
        far = parent[far]
    child = rng.permutation(n)
    below = np.zeros(n, np.int64)
    below[parent[child]] = child
    far = np.where(rng.random(far.size) < 0.5, below[far], far)
    more = [edges, np.stack([extra, far])]
    if rng.random() < 0.5:
        degrees = np.bincount(edges.ravel(), minlength=n).astype(np.float64)
        more.append(_pairs_by_weight(rng, degrees, int(n * rng.uniform(0.02, 0.3))))
    return np.concatenate(more, axis=1)


def road(rng: np.random.Generator, n: int) -> IntArray:
    """A planar net: short links of a triangulation, thinned, with points along some of them."""
    inner = max(int(n * rng.uniform(0.4, 1.0)), 20)
    points = rng.random((inner, 2))
    if rng.random() < 0.4:
        centres = rng.random((int(rng.integers(3, 15)), 2))
        points = centres[rng.choice(len(centres), inner)] + rng.normal(0, 0.05, (inner, 2))
    corners = Delaunay(points).simplices
    edges = np.unique(
        np.sort(np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [0, 2]]]), axis=1), axis=0
    )
    length = np.linalg.norm(points[edges[:, 0]] - points[edges[:, 1]], axis=1)
    order = np.argsort(length * np.exp(rng.normal(0, 0.4, length.size)))
    joined = _spanning(edges[order], inner)
    extra = np.flatnonzero(~joined)[: int(inner * rng.uniform(0.05, 0.6))]
    kept = edges[order][np.sort(np.concatenate([np.flatnonzero(joined), extra]))].T
    return _subdivided(rng, kept, inner, max(n - inner, 0))


def _spanning(edges: IntArray, n: int) -> npt.NDArray[np.bool_]:
    """Which of the edges, taken in their order, join two parts that were not joined yet (Kruskal)."""
    root = list(range(n))

    def find(v: int) -> int:
        while root[v] != v:
            root[v] = root[root[v]]
            v = root[v]
        return v

    joined = np.zeros(len(edges), np.bool_)
    for i, (u, v) in enumerate(edges.tolist()):
        a, b = find(u), find(v)
        if a != b:
            root[a] = b
            joined[i] = True
    return joined


def _subdivided(rng: np.random.Generator, edges: IntArray, n: int, count: int) -> IntArray:
    """The same with new nodes within random edges."""
    lists = edges.T.tolist()
    for v in range(n, n + count):
        i = int(rng.integers(len(lists)))
        a, b = lists[i]
        lists[i] = [a, v]
        lists.append([v, b])
    return np.array(lists).T


def bipartite(rng: np.random.Generator, n: int) -> IntArray:
    """Two kinds of nodes with tastes; nearly all links are between the kinds."""
    left = max(int(n * rng.uniform(0.2, 0.8)), 10)
    right = max(n - left, 10)
    count = int((left + right) * _mean_degree(rng, n, 2.5, 20) / 2)
    tastes = int(rng.integers(2, 16))
    likes, offers = rng.integers(tastes, size=left), rng.integers(tastes, size=right)
    us = rng.choice(left, count, p=(w := _heavy_tail(rng, left)) / w.sum())
    vs = rng.choice(right, count, p=(w := _heavy_tail(rng, right)) / w.sum())
    fitting = rng.random(count) < rng.uniform(0.3, 0.95)
    for taste in range(tastes):
        members = np.flatnonzero(offers == taste)
        own = fitting & (likes[us] == taste)
        if members.size:
            vs[own] = members[(rng.random(int(own.sum())) ** 2 * members.size).astype(np.int64)]
    within = rng.integers(left, size=(2, int(count * rng.choice([0.0, 0.0, 0.05]))))
    return np.concatenate([np.stack([us, left + vs]), within], axis=1)


def copying(rng: np.random.Generator, n: int) -> IntArray:
    """Growth by copying the links of an older node, as citations and proteins do."""
    keep, join = rng.uniform(0.1, 0.6), rng.uniform(0.1, 1.0)
    neighbours: list[set[int]] = [{1}, {0}]
    for v in range(2, n):
        u = int(rng.integers(v))
        own = {w for w in neighbours[u] if rng.random() < keep}
        if rng.random() < join or not own:
            own.add(u)
        if rng.random() < 0.2:
            own.add(int(rng.integers(v)))
        own = set(list(own)[:40])
        neighbours.append(own)
        for w in own:
            neighbours[w].add(v)
    return np.array([(u, v) for v, own in enumerate(neighbours) for u in sorted(own)]).T


def similarity(rng: np.random.Generator, n: int) -> IntArray:
    """Hubs and similarity: nodes on a circle or in a square are linked if near for their weights."""
    weights = _heavy_tail(rng, n)
    dimensions = int(rng.integers(1, 4))
    points = rng.random((n, dimensions))
    count = int(n * _mean_degree(rng, n, 3, 40) / 2)
    tries = _pairs_by_weight(rng, weights, 40 * count)
    apart = np.abs(points[tries[0]] - points[tries[1]])
    apart = np.minimum(apart, 1 - apart).max(axis=1) ** dimensions
    pull = (
        apart
        / (weights[tries[0]] * weights[tries[1]])
        * np.exp(rng.normal(0, rng.uniform(0.1, 1.5), apart.size))
    )
    return tries[:, np.argsort(pull, kind="stable")[:count]]


def core(rng: np.random.Generator, n: int) -> IntArray:
    """A dense core and a sparse rim, as airlines have; regions keep some links to themselves."""
    count = int(n * _mean_degree(rng, n, 3, 60) / 2)
    weights = np.exp(rng.normal(0, rng.uniform(0.8, 1.8), n))
    regions = rng.integers(int(rng.integers(1, 8)), size=n)
    tries = _pairs_by_weight(rng, weights, 6 * count)
    near = regions[tries[0]] == regions[tries[1]]
    kept = tries[:, near | (rng.random(near.size) < rng.uniform(0.2, 1.0))]
    return kept[:, :count]


def meetings(rng: np.random.Generator, n: int) -> tuple[IntArray, IntArray]:
    """Who meets is linked: words of a sentence, authors of a paper. Groups are drawn by popularity and topic."""
    size = int(rng.integers(2, 9))
    # Members meet those who are so many places from them in their group.
    apart = min(int(rng.choice([1, 2, size])), size - 1)
    popular = rng.permutation(np.arange(1, n + 1) ** -rng.uniform(0.3, 1.2))
    popular /= popular.sum()
    topics = rng.integers(max(int(n ** rng.uniform(0.1, 0.6)), 1), size=n)
    met = sum(size - d for d in range(1, apart + 1))
    count = max(int(0.65 * n * _mean_degree(rng, n, 3, 60, dense=True) / met), 1)
    members = rng.choice(n, (count, size), p=popular)
    on_topic = rng.random((count, size)) < rng.uniform(0, 0.95)
    topic = topics[members[:, 0]]
    for g in np.unique(topic):
        own, places = np.flatnonzero(topics == g), on_topic & (topic == g)[:, None]
        members[places] = rng.choice(own, int(places.sum()), p=popular[own] / popular[own].sum())
    members = rng.permuted(members, axis=1)
    pairs = [np.stack([members[:, :-d].ravel(), members[:, d:].ravel()]) for d in range(1, apart + 1)]
    return np.concatenate(pairs, axis=1), topics


def towns(rng: np.random.Generator, n: int) -> tuple[IntArray, IntArray]:
    """Points around some centres; near ones are linked."""
    centres = rng.random((int(rng.integers(2, 12)), 2))
    town = rng.integers(len(centres), size=n)
    points = centres[town] + rng.normal(0, rng.uniform(0.03, 0.15), (n, 2))
    near = np.asarray(cKDTree(points).query(points, min(int(rng.integers(3, 12)), n))[1])[:, 1:]
    edges = np.stack([np.repeat(np.arange(n), near.shape[1]), near.ravel()])
    return edges[:, rng.random(edges.shape[1]) > rng.choice([0.0, 0.3])], town


def overlay(rng: np.random.Generator, n: int) -> IntArray:
    """Peers that keep a bounded number of links, and many more that hang on a few of them."""
    peers = max(int(n * rng.uniform(0.1, 0.5)), 10)
    weights = np.minimum(rng.pareto(rng.uniform(0.8, 2.5), n) + 1, rng.integers(6, 40))
    weights[peers:] = np.minimum(weights[peers:], rng.uniform(1, 3))
    count = int(n * _mean_degree(rng, n, 2, 12) / 2)
    tries = _pairs_by_weight(rng, weights, 4 * count)
    among_others = (tries >= peers).all(axis=0)
    kept = tries[:, ~among_others | (rng.random(among_others.size) < rng.choice([0.0, 0.1, 1.0]))]
    return kept[:, :count]


def random(rng: np.random.Generator, n: int) -> IntArray:
    """Erdős and Rényi: nothing to be learned but that."""
    return rng.integers(n, size=(2, int(n * _mean_degree(rng, n, 2, 20) / 2)))
