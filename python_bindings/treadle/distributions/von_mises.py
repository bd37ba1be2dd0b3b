"""VonMises: angles around a direction, as the normal distribution is for numbers."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
from typing import Any, Optional

from treadle import _C, special
from treadle._C import Size, Tensor
from treadle.autograd.grad_mode import no_grad
from treadle.distributions import constraints
from treadle.distributions.distribution import Distribution
from treadle.distributions.utils import broadcast_all

__all__ = ["VonMises"]


def _rejection_sample(concentration: Tensor, shape: Size) -> Tensor:
    """Angles around 0, of the dtype of `concentration`.

    Best and Fisher, "Efficient simulation of the von Mises distribution" (1979): proposals of a
    wrapped Cauchy distribution, kept or drawn anew.
    """
    root = 1 + (1 + 4 * concentration**2).sqrt()
    rho = (root - (2 * root).sqrt()) / (2 * concentration)
    r = (1 + rho**2) / (2 * rho)
    # The quotient loses its digits for a small concentration, where r is this to the next order.
    r = _C.where(concentration < 1e-5, 1 / concentration + concentration, r)
    concentration, r = concentration.expand(shape).flatten(), r.expand(shape).flatten()
    result = _C.empty_like(r)
    pending = _C.arange(result.numel(), device=r.device)
    while pending.numel():
        u, v, side = _C.rand((3, pending.numel()), dtype=r.dtype, device=r.device)
        z = _C.cos(math.pi * u)
        f = (1 + r * z) / (r + z)
        c = concentration * (r - f)
        accept = (c * (2 - c) > v) | ((c / v).log() + 1 - c >= 0)
        angle = (side - 0.5).sign() * f.clamp(min=-1, max=1).acos()
        result[pending[accept]] = angle[accept]
        again = ~accept
        pending, r, concentration = pending[again], r[again], concentration[again]
    return result.view(shape)


class VonMises(Distribution):
    """The density proportional to exp(concentration * cos(x - loc)) of angles in radians; tensors
    or numbers that broadcast. Samples lie in [-pi, pi); they have no gradient.
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False

    def __init__(self, loc: Any, concentration: Any, validate_args: Optional[bool] = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, Size(), validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> VonMises:
        return self._expanded(VonMises, batch_shape, _instance, "loc", "concentration")

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        # log(I0(k)) is k and the logarithm of the scaled function, which does not overflow.
        log_i0 = self.concentration + _C.log(special.i0e(self.concentration))
        cosine = self.concentration * _C.cos(value - self.loc)
        return cosine - math.log(2 * math.pi) - log_i0

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            angles = _rejection_sample(self.concentration.double(), shape)
            turned = (angles + math.pi + self.loc.double()) % (2 * math.pi) - math.pi
            return turned.to(self.loc.dtype)

    @property
    def mean(self) -> Tensor:
        """The direction."""
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        """The circular variance, in [0, 1]: 1 - I1(concentration) / I0(concentration)."""
        return 1 - special.i1e(self.concentration) / special.i0e(self.concentration)
