"""Anchor messages as a differentiable operation.

    pool:  sum_k w[g, k] relu(pre[v, k])            [N, R], what hidden layers pass on
    read:  w[g, k] (c . relu(pre[v, k]))            [N, K], what the last layer gives

On the CPU the fused kernels of `psgnn.kernels._messages` do it; elsewhere the same formula in torch.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from psgnn.kernels import _messages as kernels
from psgnn.kernels._compile import parallel_rows

# Rows are cut into blocks by the size of the problem alone, so that the number of cores changes no bit.
BLOCK_WORK = 1_000_000
MAX_BLOCKS = 4


def anchor_messages(
    table: torch.Tensor,
    near: torch.Tensor,
    base: torch.Tensor,
    weight: torch.Tensor,
    graph: torch.Tensor,
    *,
    far: torch.Tensor | None = None,
    who: torch.Tensor | None = None,
    multiply: bool = False,
    readout: torch.Tensor | None = None,
) -> torch.Tensor:
    """Weighted sum of the anchors' messages ``[N, R]``; with `readout`, one scalar an anchor ``[N, K]``.

    Args:
        table: ``[D, R]``, one row a distinct distance.
        near: int32 ``[N, K]``, the row of `table` for each node and anchor.
        base: ``[N, R]``, the node's own part.
        weight: ``[G, K]``, zero for an anchor that is only padding.
        graph: int64 ``[N]``, the graph of each node.
        far: ``[M, R]``, the anchors' own part, if messages see it.
        who: int32 ``[N, K]``, the row of `far` for each node and anchor.
        multiply: combine `table` and `far` by product instead of sum.
        readout: ``[R]``.
    """
    far = base.new_empty((0, 0)) if far is None else far
    who = near.new_empty((0, 0)) if who is None else who
    readout = base.new_empty(0) if readout is None else readout
    if base.device.type == "cpu":
        arguments = table, near, base, far, who, multiply, weight, graph, readout
        return torch.as_tensor(_Fused.apply(*arguments))  # type: ignore[no-untyped-call]
    return dense_messages(table, near, base, far, who, multiply, weight, graph, readout)


def dense_messages(
    table: torch.Tensor,
    near: torch.Tensor,
    base: torch.Tensor,
    far: torch.Tensor,
    who: torch.Tensor,
    multiply: bool,
    weight: torch.Tensor,
    graph: torch.Tensor,
    readout: torch.Tensor,
) -> torch.Tensor:
    """The same in plain torch, for devices without the kernels; stores ``[N, K, R]``."""
    pre = table[near.long()]
    if far.numel():
        pre = pre * far[who.long()] if multiply else pre + far[who.long()]
    active = torch.relu(pre + base[:, None])
    weights = weight[graph]  # [N, K]
    if readout.numel():
        return weights * (active @ readout)
    return (weights[..., None] * active).sum(dim=1)


class _Fused(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        table: torch.Tensor,
        near: torch.Tensor,
        base: torch.Tensor,
        far: torch.Tensor,
        who: torch.Tensor,
        multiply: bool,
        weight: torch.Tensor,
        graph: torch.Tensor,
        readout: torch.Tensor,
    ) -> torch.Tensor:
        tensors = [t.detach().contiguous() for t in (table, near, base, far, who, weight, graph, readout)]
        ctx.save_for_backward(*tensors)
        ctx.multiply = multiply
        table, near, base, far, who, weight, graph, readout = tensors
        rows, k = near.shape
        out = base.new_empty((rows, k if readout.numel() else base.size(1)))
        common = _kernel_arguments(table, near, base, far, who, multiply, weight, graph)
        steps = rows * k * base.size(1)

        def work(first: int, last: int) -> None:
            if readout.numel():
                kernels.read_forward(*common, readout.numpy(), first, last, out.numpy())
            else:
                kernels.pool_forward(*common, first, last, out.numpy())

        parallel_rows(work, rows, steps / 4, parts=num_blocks(steps))
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad_out: torch.Tensor) -> Any:
        table, near, base, far, who, weight, graph, readout = ctx.saved_tensors
        common = _kernel_arguments(table, near, base, far, who, ctx.multiply, weight, graph)
        grad_base = torch.zeros_like(base)
        slope = grad_out.contiguous().numpy()

        def work(first: int, last: int) -> list[npt.NDArray[Any]]:
            # Each block adds to sums of its own; rows of `base` belong to one block only.
            sums = [np.zeros_like(t.numpy()) for t in (table, far, weight, readout)]
            grad_table, grad_far, grad_weight, grad_readout = sums
            kernels.backward(
                *common, _given(readout), first, last, slope,
                grad_table, grad_base.numpy(), grad_far, grad_weight, grad_readout if readout.numel() else None,
            )  # fmt: skip
            return sums

        steps = near.numel() * base.size(1)
        shared = parallel_rows(work, near.size(0), steps, parts=num_blocks(steps))
        grads = [torch.from_numpy(np.sum(parts, axis=0)) for parts in zip(*shared, strict=True)]
        grad_table, grad_far, grad_weight, grad_readout = grads
        return grad_table, None, grad_base, grad_far, None, None, grad_weight, None, grad_readout


def _kernel_arguments(
    table: torch.Tensor,
    near: torch.Tensor,
    base: torch.Tensor,
    far: torch.Tensor,
    who: torch.Tensor,
    multiply: bool,
    weight: torch.Tensor,
    graph: torch.Tensor,
) -> tuple[Any, ...]:
    """What the kernels of `psgnn.kernels._messages` begin with."""
    term, factor = (None, _given(far)) if multiply else (_given(far), None)
    return table.numpy(), near.numpy(), base.numpy(), term, factor, _given(who), weight.numpy(), graph.numpy()


def _given(tensor: torch.Tensor) -> Any:
    """The tensor for a kernel, or None for an empty one, which stands for what is not there."""
    return tensor.numpy() if tensor.numel() else None


def num_blocks(steps: int) -> int:
    """Blocks of rows for this many steps. They do not depend on the number of cores, as sums over blocks do on them."""
    return max(1, min(MAX_BLOCKS, steps // BLOCK_WORK))
