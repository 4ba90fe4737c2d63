"""PyG convolutions by name. Their weights and formulas are PyG's; the sums over neighbours are our own kernels'."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn.functional import leaky_relu
from torch_geometric.nn import GATConv, GCNConv, GENConv, GINConv, SAGEConv

from psgnn.errors import InputError, unknown_name
from psgnn.graph._graph import Adjacency
from psgnn.kernels._compile import parallel_rows
from psgnn.kernels._messages import dots, dots_backward, sum_rows, sum_weighted, sum_weighted_backward
from psgnn.models._messages import num_blocks
from psgnn.models._view import TensorView


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


# Beyond this range of a column, its exponentials cannot share one offset.
EXPONENT_RANGE = 60.0


class _Written:
    """A convolution without code that PyG generates when it runs, and leaves in a temporary file."""

    def _set_jittable_templates(self, raise_on_error: bool = False) -> None:
        pass


class GCN(_Written, GCNConv):  # type: ignore[misc]
    """`GCNConv` over a view."""

    def forward(self, x: torch.Tensor, view: TensorView) -> torch.Tensor:
        """``[N, F]`` to ``[N, R]``."""
        scale = (view.degrees + 1).rsqrt()[:, None]
        x = scale * self.lin(x)
        out: torch.Tensor = scale * (neighbour_sums(view.union.adjacency, x) + x) + self.bias
        return out


class SAGE(_Written, SAGEConv):  # type: ignore[misc]
    """`SAGEConv` with the mean, over a view."""

    def forward(self, x: torch.Tensor, view: TensorView) -> torch.Tensor:
        """``[N, F]`` to ``[N, R]``."""
        mean = neighbour_sums(view.union.adjacency, x) / view.degrees.clamp(min=1)[:, None]
        out: torch.Tensor = self.lin_l(mean) + self.lin_r(x)
        return out


class GIN(_Written, GINConv):  # type: ignore[misc]
    """`GINConv` with two linear maps, over a view."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        maps = nn.Linear(in_channels, out_channels), nn.ReLU(), nn.Linear(out_channels, out_channels)
        super().__init__(nn.Sequential(*maps))

    def forward(self, x: torch.Tensor, view: TensorView) -> torch.Tensor:
        """``[N, F]`` to ``[N, R]``."""
        out: torch.Tensor = self.nn((1 + self.eps) * x + neighbour_sums(view.union.adjacency, x))
        return out


class GEN(_Written, GENConv):  # type: ignore[misc]
    """`GENConv` with softmax aggregation, over a view.

    The message of a node is the same to all its neighbours, so its exponential is taken once a node, not once an edge.
    """

    def forward(self, x: torch.Tensor, view: TensorView) -> torch.Tensor:
        """``[N, F]`` to ``[N, R]``."""
        message = (self.lin_src(x) if hasattr(self, "lin_src") else x).relu() + self.eps
        highest = message.detach().amax(dim=0)
        if bool((highest - message.detach().amin(dim=0) > EXPONENT_RANGE).any()):
            out: torch.Tensor = super().forward(x, view.edge_index)
            return out
        share = (message - highest).exp()
        sums = neighbour_sums(view.union.adjacency, torch.cat([share * message, share], dim=1))
        above, below = sums.chunk(2, dim=1)
        pooled = above / below.clamp(min=torch.finfo(x.dtype).tiny)
        out = self.mlp(pooled + (self.lin_dst(x) if hasattr(self, "lin_dst") else x))
        return out


class GAT(_Written, GATConv):  # type: ignore[misc]
    """`GATConv` that takes the mean of its heads, over a view."""

    def forward(self, x: torch.Tensor, view: TensorView) -> torch.Tensor:
        """``[N, F]`` to ``[N, R]``."""
        rows, cols = view.edge_index
        x = self.lin(x).view(-1, self.heads, self.out_channels)
        source, target = (x * self.att_src).sum(dim=-1), (x * self.att_dst).sum(dim=-1)
        own = leaky_relu(source + target, self.negative_slope)  # every node sees itself, too
        others = leaky_relu(source[cols] + target[rows], self.negative_slope)
        highest = own.detach().scatter_reduce(0, rows[:, None].expand_as(others), others.detach(), "amax")
        own, others = (own - highest).exp(), (others - highest[rows]).exp()
        sums = weighted_sums(view.union.adjacency, others, x) + own[..., None] * x
        total = own.index_add(0, rows, others)
        out: torch.Tensor = (sums / total[..., None]).mean(dim=1) + self.bias
        return out


_CLASSES: dict[str, Any] = {"gen": GEN, "gcn": GCN, "sage": SAGE, "gat": GAT, "gin": GIN}


def make_conv(name: str, in_channels: int, out_channels: int, **options: Any) -> nn.Module:
    """A convolution from `in_channels` to `out_channels`."""
    if name not in _CLASSES:
        raise unknown_name("convolution", name, _CLASSES)
    conv: nn.Module = _CLASSES[name](in_channels, out_channels, **options)
    return conv
