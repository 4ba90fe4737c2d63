"""Work on CSR graphs, compiled by numba and cached on disk: linear in their links, but for triangles."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from psgnn.kernels._compile import njit

Csr = tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]


@njit(cache=True, nogil=True)
def bucket_edges(rows: npt.NDArray[np.int64], cols: npt.NDArray[np.int64], num_nodes: int) -> Csr:
    """Gather directed edges by their row, dropping self-loops; columns keep the order of the input."""
    indptr = np.zeros(num_nodes + 1, np.int64)
    for i in range(rows.size):
        if rows[i] != cols[i]:
            indptr[rows[i] + 1] += 1
    for v in range(num_nodes):
        indptr[v + 1] += indptr[v]
    indices = np.empty(indptr[num_nodes], np.int32)
    place = indptr[:-1].copy()
    for i in range(rows.size):
        if rows[i] != cols[i]:
            indices[place[rows[i]]] = cols[i]
            place[rows[i]] += 1
    return indptr, indices


@njit(cache=True, nogil=True)
def transpose(indptr: npt.NDArray[np.int64], indices: npt.NDArray[np.int32]) -> Csr:
    """The transposed CSR; its rows come out sorted."""
    num_nodes = indptr.size - 1
    out_indptr = np.zeros(num_nodes + 1, np.int64)
    for i in range(indices.size):
        out_indptr[indices[i] + 1] += 1
    for v in range(num_nodes):
        out_indptr[v + 1] += out_indptr[v]
    out = np.empty(indices.size, np.int32)
    _scatter_rows(indptr, indices, out_indptr[:-1].copy(), out)
    return out_indptr, out


@njit(cache=True, nogil=True)
def _scatter_rows(
    indptr: npt.NDArray[np.int64],
    indices: npt.NDArray[np.int32],
    place: npt.NDArray[np.int64],
    out: npt.NDArray[np.int32],
) -> None:
    """Write every row number v to ``out``, where ``place`` says for each entry of the row; places move on."""
    for v in range(indptr.size - 1):
        for i in range(indptr[v], indptr[v + 1]):
            out[place[indices[i]]] = v
            place[indices[i]] += 1


@njit(cache=True, nogil=True)
def mirror(indptr: npt.NDArray[np.int64], indices: npt.NDArray[np.int32]) -> Csr:
    """Both directions of edges whose row v has its sorted neighbours below v alone; rows come out sorted."""
    num_nodes = indptr.size - 1
    out_indptr = np.zeros(num_nodes + 1, np.int64)
    for i in range(indices.size):
        out_indptr[indices[i] + 1] += 1
    place = np.empty(num_nodes, np.int64)
    for v in range(num_nodes):
        below = indptr[v + 1] - indptr[v]
        out_indptr[v + 1] += out_indptr[v] + below
        place[v] = out_indptr[v] + below
    out = np.empty(2 * indices.size, np.int32)
    for v in range(num_nodes):
        for i in range(indptr[v], indptr[v + 1]):
            out[out_indptr[v] + i - indptr[v]] = indices[i]
    _scatter_rows(indptr, indices, place, out)
    return out_indptr, out


@njit(cache=True, nogil=True)
def in_order(rows: npt.NDArray[np.int64], cols: npt.NDArray[np.int64]) -> bool:
    """Whether edges are those of a CSR with sorted rows, one after the other, without repeats and self-loops."""
    for i in range(rows.size):
        if rows[i] == cols[i]:
            return False
        if i and (rows[i] < rows[i - 1] or (rows[i] == rows[i - 1] and cols[i] <= cols[i - 1])):
            return False
    return True


@njit(cache=True, nogil=True)
def is_symmetric(indptr: npt.NDArray[np.int64], indices: npt.NDArray[np.int32]) -> bool:
    """Whether every edge of a CSR with sorted rows and no self-loops stands in both rows."""
    num_nodes = indptr.size - 1
    place = indptr[1:].copy()  # the first entry above u of row u that was not met as an edge of its other row
    for u in range(num_nodes):
        while place[u] > indptr[u] and indices[place[u] - 1] > u:
            place[u] -= 1
    final = indices.size - 1
    for v in range(num_nodes):
        for i in range(indptr[v], indptr[v + 1]):
            u = indices[i]
            if u > v:
                break
            if indices[min(place[u], final)] != v:
                return False
            place[u] += 1
    complete = 0
    for v in range(num_nodes):
        complete += place[v] == indptr[v + 1]
    # Otherwise a row has an entry that was not met, or one of the next row was taken for its own.
    return complete == num_nodes


@njit(cache=True, nogil=True)
def edges_below(indptr: npt.NDArray[np.int64], indices: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """Every edge ``u < v`` of a symmetric CSR, ``[2, E]``, as it stands in row v."""
    edges = np.empty((2, indices.size // 2), np.int64)
    size = 0
    for v in range(indptr.size - 1):
        for i in range(indptr[v], indptr[v + 1]):
            if indices[i] < v:
                edges[0, size], edges[1, size] = indices[i], v
                size += 1
    return edges


@njit(cache=True, nogil=True)
def drop_repeats(indptr: npt.NDArray[np.int64], indices: npt.NDArray[np.int32]) -> Csr:
    """Keep one of each run of equal entries in the sorted rows."""
    num_nodes = indptr.size - 1
    out_indptr = np.zeros(num_nodes + 1, np.int64)
    out = np.empty(indices.size, np.int32)
    kept = 0
    for v in range(num_nodes):
        for i in range(indptr[v], indptr[v + 1]):
            if i == indptr[v] or indices[i] != indices[i - 1]:
                out[kept] = indices[i]
                kept += 1
        out_indptr[v + 1] = kept
    return out_indptr, out[:kept].copy()


@njit(cache=True, nogil=True)
def merge_rows(
    indptr_a: npt.NDArray[np.int64],
    indices_a: npt.NDArray[np.int32],
    indptr_b: npt.NDArray[np.int64],
    indices_b: npt.NDArray[np.int32],
) -> Csr:
    """The union of two CSR matrices with sorted rows, row by row."""
    num_nodes = indptr_a.size - 1
    out_indptr = np.zeros(num_nodes + 1, np.int64)
    out = np.empty(indices_a.size + indices_b.size, np.int32)
    kept = 0
    for v in range(num_nodes):
        i, j = indptr_a[v], indptr_b[v]
        while i < indptr_a[v + 1] or j < indptr_b[v + 1]:
            from_a = i < indptr_a[v + 1] and (j == indptr_b[v + 1] or indices_a[i] <= indices_b[j])
            if from_a:
                if j < indptr_b[v + 1] and indices_a[i] == indices_b[j]:
                    j += 1
                out[kept] = indices_a[i]
                i += 1
            else:
                out[kept] = indices_b[j]
                j += 1
            kept += 1
        out_indptr[v + 1] = kept
    return out_indptr, out[:kept].copy()


@njit(cache=True, nogil=True)
def connected_components(
    indptr: npt.NDArray[np.int64], indices: npt.NDArray[np.int32]
) -> npt.NDArray[np.int32]:
    """The component of every node, ``[N]``, numbered by their first node."""
    num_nodes = indptr.size - 1
    labels = np.full(num_nodes, -1, np.int32)
    queue = np.empty(num_nodes, np.int32)
    components = 0
    for start in range(num_nodes):
        if labels[start] >= 0:
            continue
        labels[start] = components
        queue[0] = start
        size, head = 1, 0
        while head < size:
            v = queue[head]
            head += 1
            for i in range(indptr[v], indptr[v + 1]):
                w = indices[i]
                if labels[w] < 0:
                    labels[w] = components
                    queue[size] = w
                    size += 1
        components += 1
    return labels


@njit(cache=True, nogil=True)
def triangles(indptr: npt.NDArray[np.int64], indices: npt.NDArray[np.int32]) -> npt.NDArray[np.float64]:
    """Triangles at every node, ``[N]``.

    Each is found once, at the node of its smallest degree: links are followed from small degrees to large ones, so that
    a hub has few.
    """
    num_nodes = indptr.size - 1
    starts = np.empty(num_nodes + 1, np.int64)
    onward = np.empty(indices.size // 2, np.int32)
    size = 0
    for u in range(num_nodes):
        starts[u] = size
        degree = indptr[u + 1] - indptr[u]
        for j in range(indptr[u], indptr[u + 1]):
            v = indices[j]
            other = indptr[v + 1] - indptr[v]
            if other > degree or (other == degree and v > u):
                onward[size] = v
                size += 1
    starts[num_nodes] = size
    count = np.zeros(num_nodes)
    add_triangles(starts, onward[:size], 0, num_nodes, count)
    return count


@njit(cache=True, nogil=True)
def add_triangles(
    starts: npt.NDArray[np.int64],
    onward: npt.NDArray[np.int32],
    first: int,
    last: int,
    count: npt.NDArray[np.float64],
) -> None:
    """Count the triangles that begin at the nodes ``first:last`` at all three nodes, ``count [N]``.

    ``onward[starts[v]:starts[v + 1]]`` are the neighbours of v that come after it in some order of all nodes.
    """
    near = np.zeros(count.size // 64 + 1, np.uint64)  # a bit a node, to stay in the processor's cache
    one, low = np.uint64(1), np.uint64(63)
    for u in range(first, last):
        for j in range(starts[u], starts[u + 1]):
            w = np.uint64(onward[j])
            near[w >> np.uint64(6)] |= one << (w & low)
        for j in range(starts[u], starts[u + 1]):
            v = onward[j]
            for k in range(starts[v], starts[v + 1]):
                w = np.uint64(onward[k])
                if near[w >> np.uint64(6)] >> (w & low) & one:
                    count[u] += 1
                    count[v] += 1
                    count[w] += 1
        for j in range(starts[u], starts[u + 1]):
            near[np.uint64(onward[j]) >> np.uint64(6)] = 0
