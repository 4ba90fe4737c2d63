"""The smooth part of a graph from its anchors: leading eigenvectors by subspace iteration, O(N K + E) memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from psgnn.distances._propagation import Floats, smooth, whole_lines
from psgnn.graph._graph import GraphBatch, IntArray

ITERATIONS = 4
STEPS = 4  # multiplications between two orthonormalisations
MOST_VECTORS = 64
BLOCK = 2**16


def anchor_basis(union: GraphBatch, anchors: IntArray) -> tuple[Floats, Floats]:
    r"""Approximate leading eigenvectors ``[N, r]`` of every graph and their eigenvalues ``[G, r]``, zero-padded.

    .. math:: S = D_\tau^{-1/2} (A + \tau / N) D_\tau^{-1/2}, \quad D_\tau = D + \tau, \ \tau = \bar{d} / 10

    Start from the indicators of the first anchors of each graph ``[G, K]``, multiply by :math:`(I + S)^4` and
    orthonormalise, four times; then Rayleigh-Ritz: rotate the basis so that :math:`U^T S U` is diagonal. The
    regularisation (Amini et al. 2013) keeps small components from taking up the leading eigenvectors.
    """
    table = np.asarray(anchors)[:, :MOST_VECTORS]
    counts = (table >= 0).sum(axis=1)
    smoother = _Smoother(union)
    basis = whole_lines(union.num_nodes, table.shape[1])
    graphs, columns = np.nonzero(table >= 0)
    basis[table[graphs, columns], columns] = 1
    for _ in range(ITERATIONS):
        basis = smoother.towards(basis, STEPS)
        _orthonormalise(basis, union.ptr, counts)
    image = smoother(basis)
    del smoother  # and an array of its own
    values = np.zeros((union.num_graphs, table.shape[1]), np.float32)
    rotations = []
    for g, count in enumerate(counts):
        small = np.add.reduce(
            [
                basis[rows, :count].T.astype(np.float64) @ image[rows, :count]
                for rows in _row_blocks(union.ptr[g], union.ptr[g + 1])
            ]
        )
        values[g, :count], rotation = rayleigh_ritz(small)
        rotations.append(rotation)
    del image
    rotated = np.zeros((union.num_nodes, table.shape[1]), np.float32)
    for g, count in enumerate(counts):
        for rows in _row_blocks(union.ptr[g], union.ptr[g + 1]):
            rotated[rows, :count] = basis[rows, :count] @ rotations[g]
    return rotated, values


def _row_blocks(first: int, last: int) -> list[slice]:
    """Rows that are worked on at once, so that what is in between takes little memory."""
    return [slice(start, min(start + BLOCK, last)) for start in range(first, last, BLOCK)]


class _Smoother:
    """Multiplication by S: one pass over the links, between two arrays of whole lines.

    With the diagonal c of scales, S = c (A + share) c. What is multiplied is c x: a neighbour is one row to read.
    """

    def __init__(self, union: GraphBatch) -> None:
        self.union = union
        degrees = union.adjacency.degrees
        mean = np.add.reduceat(degrees, union.ptr[:-1]) / union.sizes
        tau = regulariser(mean)
        self.scale = scales(degrees, tau[union.graph_of])
        self.share = (tau / union.sizes).astype(np.float32)  # [G]
        self._spare: Floats | None = None  # the array that the last multiplication has left

    def __call__(self, x: Floats) -> Floats:
        return self._multiplied(x, whole_lines(*x.shape), 0.0, 1)

    def towards(self, x: Floats, steps: int) -> Floats:
        """That many multiplications by (I + S) / 2; x is used up."""
        return self._multiplied(x, x, 0.5, steps)

    def _multiplied(self, x: Floats, first: Floats, kept: float, steps: int) -> Floats:
        """That many multiplications by ``kept I + (1 - kept) S``; the first of the two arrays may be that of x."""
        union, spare, self._spare = self.union, self._spare, None
        y = whole_lines(*x.shape) if spare is None or spare is x or spare.shape != x.shape else spare
        x = np.multiply(x, self.scale[:, None], out=first)
        weights = np.float32(1 - kept) * self.scale**2
        for _ in range(steps):
            everywhere = self.share[:, None] * np.add.reduceat(x, union.ptr[:-1], axis=0)
            smooth(union.adjacency, x, kept, weights, everywhere, union.graph_of, y)
            x, y = y, x
        x /= self.scale[:, None]
        self._spare = y
        return x


def _orthonormalise(basis: Floats, ptr: IntArray, counts: npt.NDArray[np.int64]) -> None:
    """Make the first ``counts[g]`` columns of every graph's rows orthonormal, in place; dependent ones become zero.

    The inverse root of the small Gram matrix does it in two products, several times faster than a QR.
    """
    for g, count in enumerate(counts):
        blocks = [basis[rows, :count] for rows in _row_blocks(ptr[g], ptr[g + 1])]
        doubles = (block.astype(np.float64) for block in blocks)
        turn = inverse_root(np.add.reduce([block.T @ block for block in doubles]))
        for block in blocks:
            block[...] = block.astype(np.float64) @ turn


def regulariser(mean_degree: Any) -> Any:
    """What is added to every degree."""
    return 0.1 * np.maximum(mean_degree, 1e-3)


def scales(degrees: IntArray, tau: Any) -> Floats:
    """The diagonal that S is scaled by, on both sides."""
    return np.asarray(1 / np.sqrt(degrees + tau), np.float32)


def inverse_root(gram: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """What columns of this Gram matrix are multiplied by to be orthonormal; dependent ones become zero."""
    squares, rotation = np.linalg.eigh(gram)
    independent = squares > 1e-10 * squares[-1]
    return np.asarray(rotation * np.where(independent, 1 / np.sqrt(np.where(independent, squares, 1)), 0))


def rayleigh_ritz(small: npt.NDArray[np.float64]) -> tuple[Floats, Floats]:
    """The eigenvalues of a small matrix, largest first, and the rotation to its eigenvectors."""
    found, rotation = np.linalg.eigh((small + small.T) / 2)
    return found[::-1].astype(np.float32), rotation[:, ::-1].astype(np.float32)
