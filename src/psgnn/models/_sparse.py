"""Sums over neighbours and dot products of pairs, without storing a row for every edge or pair.

On the CPU the kernels of `psgnn.kernels._sparse` do it; elsewhere the same formula in torch.
"""

from __future__ import annotations

from typing import Any

import torch

from psgnn.errors import InputError
from psgnn.graph._graph import Adjacency
from psgnn.kernels._parallel import parallel_rows
from psgnn.kernels._sparse import dots, dots_backward, sum_rows, sum_weighted, sum_weighted_backward
from psgnn.models._messages import num_blocks


def neighbour_sums(adjacency: Adjacency, x: torch.Tensor) -> torch.Tensor:
    """The sum of ``x [N, R]`` over every node's neighbours, ``[N, R]``."""
    if x.device.type == "cpu":
        return torch.as_tensor(_NeighbourSums.apply(x, adjacency))  # type: ignore[no-untyped-call]
    rows, cols = torch.from_numpy(adjacency.edge_index()).to(x.device)
    return torch.zeros_like(x).index_add(0, rows, x[cols])


def weighted_sums(adjacency: Adjacency, weight: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """The same of ``x [N, H, R]`` with a weight ``[2E, H]`` for every entry of the adjacency and each of H heads."""
    if x.device.type == "cpu":
        return torch.as_tensor(_WeightedSums.apply(weight, x, adjacency))  # type: ignore[no-untyped-call]
    rows, cols = torch.from_numpy(adjacency.edge_index()).to(x.device)
    return torch.zeros_like(x).index_add(0, rows, weight[..., None] * x[cols])


def pair_dots(h: torch.Tensor, pairs: torch.Tensor) -> torch.Tensor:
    """The dot product of the rows of ``h [N, R]`` that each of the pairs ``[2, P]`` names, ``[P]``."""
    if h.device.type == "cpu":
        if pairs.numel() and not 0 <= int(pairs.min()) <= int(pairs.max()) < h.size(
            0
        ):  # kernels would not notice
            raise InputError(f"pairs name the rows {int(pairs.min())} to {int(pairs.max())} of {h.size(0)}")
        return torch.as_tensor(_PairDots.apply(h, pairs))  # type: ignore[no-untyped-call]
    return (h[pairs[0]] * h[pairs[1]]).sum(dim=1)


class _NeighbourSums(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, adjacency: Adjacency) -> torch.Tensor:
        ctx.adjacency = adjacency
        return _sum_rows(adjacency, x)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        return _sum_rows(ctx.adjacency, grad), None  # the adjacency is its own transpose


def _sum_rows(adjacency: Adjacency, x: torch.Tensor) -> torch.Tensor:
    x = x.detach().contiguous()
    out = torch.empty_like(x)
    steps = adjacency.indices.size * x.size(1)

    def work(first: int, last: int) -> None:
        sum_rows(adjacency.indptr, adjacency.indices, x.numpy(), first, last, out.numpy())

    parallel_rows(work, x.size(0), steps / 4, parts=num_blocks(steps))
    return out


class _WeightedSums(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight: torch.Tensor, x: torch.Tensor, adjacency: Adjacency) -> torch.Tensor:
        weight, x = weight.detach().contiguous(), x.detach().contiguous()
        ctx.save_for_backward(weight, x)
        ctx.adjacency = adjacency
        out = torch.zeros_like(x)
        sum_weighted(adjacency.indptr, adjacency.indices, weight.numpy(), x.numpy(), out.numpy())
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        weight, x = ctx.saved_tensors
        grad_weight, grad_x = torch.empty_like(weight), torch.zeros_like(x)
        sum_weighted_backward(
            ctx.adjacency.indptr, ctx.adjacency.indices, weight.numpy(), x.numpy(), grad.contiguous().numpy(),
            grad_weight.numpy(), grad_x.numpy(),
        )  # fmt: skip
        return grad_weight, grad_x, None


class _PairDots(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, h: torch.Tensor, pairs: torch.Tensor) -> torch.Tensor:
        h, pairs = h.detach().contiguous(), pairs.contiguous()
        ctx.save_for_backward(h, pairs)
        out = h.new_empty(pairs.size(1))
        dots(h.numpy(), pairs.numpy(), out.numpy())
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        h, pairs = ctx.saved_tensors
        grad_h = torch.zeros_like(h)
        dots_backward(h.numpy(), pairs.numpy(), grad.contiguous().numpy(), grad_h.numpy())
        return grad_h, None
