r"""The distribution over subsets of exactly k nodes, exactly: partition function, marginals, samples.

.. math:: p(S) = \prod_{i \in S} e^{\theta_i} / e_k(e^\theta), \qquad |S| = k

with :math:`e_k` the elementary symmetric polynomial. The polynomials :math:`\prod_i (1 + e^{\theta_i} x)` are
multiplied in a balanced tree, truncated at degree k: O(N k) work in log2 N steps, for all graphs at once.
Marginals are the derivatives of log e_k, so that autograd gives them and their own derivatives too. This is
what SIMPLE (Ahmed et al. 2023) needs.
"""

from __future__ import annotations

import torch

# The logarithm of zero: finite, or the gradient of an impossible term would be NaN.
LOG_ZERO = -1e30


class KSubset:
    """The distribution for a batch of graphs.

    Args:
        logits: :math:`\\theta`, ``[G, n]``; positions beyond a graph's size are ignored.
        sizes: int64 ``[G]``, nodes of each graph.
        k: int64 ``[G]``, subset size of each graph, ``1 <= k <= sizes``.
    """

    def __init__(self, logits: torch.Tensor, sizes: torch.Tensor, k: torch.Tensor) -> None:
        self.logits = logits
        self.k = k
        places = torch.arange(logits.size(1), device=logits.device)
        self.valid = places < sizes[:, None]
        width = 1 << max(logits.size(1) - 1, 0).bit_length()
        padded = logits.new_full((logits.size(0), width), LOG_ZERO)
        padded[:, : logits.size(1)] = torch.where(self.valid, logits, LOG_ZERO)
        degree = int(k.max())
        level = torch.stack([torch.zeros_like(padded), padded], dim=-1)  # [G, n, 2]
        self._levels = [level]
        while level.size(1) > 1:
            level = _multiply(level[:, 0::2], level[:, 1::2], degree)
            self._levels.append(level)

    @property
    def log_partition(self) -> torch.Tensor:
        """log e_k, ``[G]``."""
        return self._levels[-1][:, 0].gather(1, self.k[:, None])[:, 0]

    def log_prob(self, chosen: torch.Tensor) -> torch.Tensor:
        """Log-probability of the subsets given as a mask ``[G, n]``; ``[G]``."""
        return torch.where(chosen, self.logits, 0).sum(dim=1) - self.log_partition

    def marginals(self) -> torch.Tensor:
        """Probability that each node is in the subset, ``[G, n]``, differentiable in the logits."""
        (grad,) = torch.autograd.grad(self.log_partition.sum(), self.logits, create_graph=True)
        return torch.where(self.valid, grad, 0)

    @torch.no_grad()
    def sample(self, generator: torch.Generator | None = None) -> torch.Tensor:
        """An exact sample of each graph's subset, as a mask ``[G, n]``."""
        counts = self.k[:, None]
        for level in reversed(self._levels[:-1]):
            left, right = level[:, 0::2], level[:, 1::2]  # [G, m, d]
            j = torch.arange(left.size(2), device=left.device)
            rest = counts[..., None] - j  # how many fall to the right if j fall to the left
            possible = (rest >= 0) & (rest < right.size(2))
            weight = left + right.gather(2, rest.clamp(0, right.size(2) - 1))
            noise = torch.rand(weight.shape, generator=generator, dtype=weight.dtype, device=weight.device)
            gumbel = -torch.log(-torch.log(noise.clamp_min(torch.finfo(noise.dtype).tiny)))
            taken = torch.where(possible, weight + gumbel, -torch.inf).argmax(dim=2)
            counts = torch.stack([taken, counts - taken], dim=2).flatten(1)
        return counts[:, : self.valid.size(1)] > 0


def _multiply(left: torch.Tensor, right: torch.Tensor, degree: int) -> torch.Tensor:
    """Products up to `degree` of polynomials given by the logarithms of their coefficients, ``[G, m, d]``."""
    size = min(left.size(2) + right.size(2) - 1, degree + 1)
    i = torch.arange(size, device=left.device)[:, None]
    j = torch.arange(left.size(2), device=left.device)
    rest = i - j  # [size, d]
    possible = (rest >= 0) & (rest < right.size(2))
    terms = left[..., None, :] + right[..., rest.clamp(0, right.size(2) - 1)]
    return torch.logsumexp(torch.where(possible, terms, LOG_ZERO), dim=-1)
