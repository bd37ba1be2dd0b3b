"""LKJCholesky: Cholesky factors of random correlation matrices."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
from typing import Any, Optional

from treadle import _C
from treadle._C import Size, Tensor
from treadle._tensor.type_info import finfo
from treadle.autograd.grad_mode import no_grad
from treadle.distributions import constraints
from treadle.distributions._parameters.real import broadcast_parameters
from treadle.distributions.beta import Beta
from treadle.distributions.distribution import Distribution

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """Cholesky factors (dim, dim) of correlation matrices whose density is proportional to their
    determinant to the power concentration - 1; all are alike for a concentration of 1.

    The onion method of Lewandowski, Kurowicka and Joe, "Generating random correlation matrices
    based on vines and extended onion method" (2009). ValueError for dim < 2.
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(
        self, dim: int, concentration: Any = 1.0, validate_args: Optional[bool] = None
    ) -> None:
        if dim < 2:
            raise ValueError(
                f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}."
            )
        self.dim = dim
        (self.concentration,), _ = broadcast_parameters(concentration)
        # The squared length of row i, before its diagonal, is a beta number; that of the first
        # row, which has none, is not used.
        before = _C.arange(
            dim - 1, dtype=self.concentration.dtype, device=self.concentration.device
        )
        before = _C.cat([before.new_zeros((1,)), before])
        marginal = self.concentration + 0.5 * (dim - 2)
        self._beta = Beta(0.5 + 0.5 * before, marginal.unsqueeze(-1) - 0.5 * before)
        super().__init__(self.concentration.size(), Size((dim, dim)), validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> LKJCholesky:
        new = self._expand_fields(LKJCholesky, batch_shape, _instance, "concentration")
        new.dim = self.dim
        new._beta = self._beta.expand(Size(batch_shape) + (self.dim,))
        return self._finish_expand(LKJCholesky, new, batch_shape)

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        with no_grad():
            lengths = self._beta.sample(sample_shape).unsqueeze(-1)
            shape = self._extended_shape(sample_shape)
            dtype, device = lengths.dtype, lengths.device
            normal = _C.randn(shape, dtype=dtype, device=device).tril(-1)
            directions = normal / normal.norm(dim=-1, keepdim=True)
            directions[..., 0, :] = 0.0  # the first row is empty
            rows = _C.sqrt(lengths) * directions
            rest = 1 - _C.sum(rows**2, dim=-1)
            diagonal = _C.clamp(rest, min=finfo(rows.dtype).tiny).sqrt()
            return rows + _C.diag_embed(diagonal)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        # The determinant, and the Jacobian from a matrix to its factor, are powers of the diagonal.
        diagonal = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        row = _C.arange(2, self.dim + 1, device=self.concentration.device)
        power = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - row
        log_density = _C.sum(power * diagonal.log(), dim=-1)
        # The normalising constant, page 1999 of the article.
        before = self.dim - 1
        alpha = self.concentration + 0.5 * before
        log_norm = (
            0.5 * before * math.log(math.pi)
            + _C.mvlgamma(alpha - 0.5, before)
            - _C.lgamma(alpha) * before
        )
        return log_density - log_norm
