"""TransformedDistribution: what transforms make of the values of a distribution."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping, Optional, Sequence, Union

from treadle._C import Size, Tensor
from treadle.autograd.grad_mode import no_grad
from treadle.distributions import constraints
from treadle.distributions.distribution import Distribution
from treadle.distributions.independent import Independent
from treadle.distributions.transforms import ComposeTransform, Transform
from treadle.distributions.utils import _sum_rightmost

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    """The distribution of t(x) for values x of `base_distribution`, where t are the `transforms`,
    the first of them applied first.

        # a logistic distribution
        base = Uniform(0, 1)
        logistic = TransformedDistribution(base, [SigmoidTransform().inv, AffineTransform(a, b)])

    log_prob is that of the base at the inverse, less the log-determinant of the transforms.
    ValueError for transforms that are none, or a base with too few dimensions.
    """

    arg_constraints: Mapping[str, constraints.Constraint] = {}

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Union[Transform, Sequence[Transform]],
        validate_args: Optional[bool] = None,
    ) -> None:
        if isinstance(transforms, Transform):
            transforms = [transforms]
        if not isinstance(transforms, list):
            raise ValueError(f"transforms must be a Transform or list, but was {transforms}")
        if not all(isinstance(t, Transform) for t in transforms):
            raise ValueError("transforms must be a Transform or a list of Transforms")
        self.transforms = transforms
        transform = ComposeTransform(self.transforms)
        base_shape = base_distribution.batch_shape + base_distribution.event_shape
        if len(base_shape) < transform.domain.event_dim:
            raise ValueError(
                "base_distribution needs to have shape with size at least "
                f"{transform.domain.event_dim}, but got {base_shape}."
            )
        # The base gets the batch shape that the parameters of the transforms have, and as many
        # dimensions of a value as they take.
        shape = transform.forward_shape(base_shape)
        expanded = transform.inverse_shape(shape)
        if tuple(base_shape) != tuple(expanded):
            batch = len(expanded) - len(base_distribution.event_shape)
            base_distribution = base_distribution.expand(expanded[:batch])
        to_value = transform.domain.event_dim - len(base_distribution.event_shape)
        if to_value > 0:
            base_distribution = Independent(base_distribution, to_value)
        self.base_dist: Any = base_distribution
        event_dim = self._event_dim(transform)
        batch = len(shape) - event_dim
        super().__init__(shape[:batch], shape[batch:], validate_args=validate_args)

    def _event_dim(self, transform: Transform) -> int:
        """The dimensions of a value here: those the last transform gives, and those of the base
        that stay behind them.
        """
        grown = transform.codomain.event_dim - transform.domain.event_dim
        return max(transform.codomain.event_dim, len(self.base_dist.event_shape) + grown)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Self:
        new = self._get_checked_instance(TransformedDistribution, _instance)
        new.transforms = self.transforms
        shape = Size(batch_shape) + self._event_shape
        for transform in reversed(self.transforms):
            shape = transform.inverse_shape(shape)
        batch = len(shape) - len(self.base_dist.event_shape)
        new.base_dist = self.base_dist.expand(shape[:batch])
        return self._finish_expand(TransformedDistribution, new, batch_shape)

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Any:
        if not self.transforms:
            return self.base_dist.support
        support = self.transforms[-1].codomain
        missing = len(self._event_shape) - support.event_dim
        return constraints.independent(support, missing) if missing > 0 else support

    @property
    def has_rsample(self) -> bool:
        """Whether the base has it."""
        return self.base_dist.has_rsample

    def _forward(self, x: Tensor) -> Tensor:
        for transform in self.transforms:
            x = transform(x)
        return x

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        with no_grad():
            return self._forward(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        return self._forward(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        event_dim = len(self._event_shape)
        log_volume: Any = 0.0
        y = value
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            event_dim += transform.domain.event_dim - transform.codomain.event_dim
            log_volume = log_volume - _sum_rightmost(
                transform.log_abs_det_jacobian(x, y), event_dim - transform.domain.event_dim
            )
            y = x
        of_base = self.base_dist.log_prob(y)
        return log_volume + _sum_rightmost(of_base, event_dim - len(self.base_dist.event_shape))

    def _monotonize_cdf(self, value: Tensor) -> Tensor:
        """1 - value where the transforms fall, for those turn the order of values around."""
        sign: Any = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        if isinstance(sign, int) and sign == 1:
            return value
        return sign * (value - 0.5) + 0.5

    def cdf(self, value: Tensor) -> Tensor:
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._monotonize_cdf(self.base_dist.cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        return self._forward(self.base_dist.icdf(self._monotonize_cdf(value)))
