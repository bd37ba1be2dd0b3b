"""The base of all distributions: shapes, validation, and what a subclass defines.

A distribution describes `batch_shape` independent ones, each of which gives values of
`event_shape`: a sample has the shape `sample_shape + batch_shape + event_shape`, a log-probability
the shape `sample_shape + batch_shape`.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import warnings
from typing import Any, Mapping, Optional

from treadle import _C
from treadle._C import Size, Tensor
from treadle.autograd.grad_mode import no_grad
from treadle.distributions import constraints
from treadle.distributions.utils import lazy_property


def describe(value: Tensor) -> str:
    """A tensor as messages name it: its type and shape."""
    return f"{type(value).__name__} of shape {tuple(value.shape)}"


class Distribution:
    """Base class of distributions.

    A subclass names its parameters in `arg_constraints`, the values it gives in `support`, and
    defines `log_prob`, `expand`, and `rsample` (with `has_rsample = True`) or `sample`.

    Args:
        batch_shape: the shape of independent distributions.
        event_shape: the shape of one value.
        validate_args: whether parameters and values are checked; None for the default, see
            `set_default_validate_args`.

    Raises ValueError for a parameter outside its constraint.
    """

    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Whether distributions made from now on check their parameters and values. They do by
        default, unless Python runs with -O. ValueError for anything but a bool.
        """
        if value not in (True, False):
            raise ValueError(f"set_default_validate_args: expected True or False, got {value!r}")
        Distribution._validate_args = value

    def __init__(
        self,
        batch_shape: Any = Size(),
        event_shape: Any = Size(),
        validate_args: Optional[bool] = None,
    ) -> None:
        self._batch_shape = Size(batch_shape)
        self._event_shape = Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()
        super().__init__()

    def _check_parameters(self) -> None:
        try:
            wanted = self.arg_constraints
        except NotImplementedError:
            wanted = {}
            warnings.warn(
                f"{self.__class__} does not define `arg_constraints`. Please set "
                "`arg_constraints = {}` or initialize the distribution with "
                "`validate_args=False` to turn off validation.",
                stacklevel=3,
            )
        for name, constraint in wanted.items():
            if constraints.is_dependent(constraint):
                continue
            computed = isinstance(getattr(type(self), name, None), lazy_property)
            if computed and name not in self.__dict__:
                continue
            value = getattr(self, name)
            if not constraint.check(value).all():
                raise ValueError(
                    f"Expected parameter {name} ({describe(value)}) of distribution {self!r} "
                    f"to satisfy the constraint {constraint!r}, "
                    f"but found invalid values:\n{value}"
                )

    def expand(self, batch_shape: Any, _instance: Optional[Distribution] = None) -> Distribution:
        """The same distribution with its parameters expanded to a larger `batch_shape`; the tensors
        are views. `_instance` is for subclasses, which pass on the object they began.
        """
        raise NotImplementedError

    @property
    def batch_shape(self) -> Size:
        """The shape of independent distributions."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one value."""
        return self._event_shape

    @property
    def arg_constraints(self) -> Mapping[str, constraints.Constraint]:
        """The constraint of each parameter, by its name."""
        raise NotImplementedError

    @property
    def support(self) -> Optional[Any]:
        """The constraint that every value meets."""
        raise NotImplementedError

    @property
    def mean(self) -> Tensor:
        """The mean, of shape batch_shape + event_shape."""
        raise NotImplementedError

    @property
    def mode(self) -> Tensor:
        """The most probable value, of shape batch_shape + event_shape."""
        raise NotImplementedError(f"{self.__class__} does not implement mode")

    @property
    def variance(self) -> Tensor:
        """The variance, of shape batch_shape + event_shape."""
        raise NotImplementedError

    @property
    def stddev(self) -> Tensor:
        """The standard deviation, of shape batch_shape + event_shape."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        """Values of shape sample_shape + batch_shape + event_shape, without a gradient."""
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        """The same, differentiable by the parameters where `has_rsample` is True."""
        raise NotImplementedError

    def sample_n(self, n: int) -> Tensor:
        """`n` values. Deprecated: call sample((n,))."""
        warnings.warn(
            "sample_n(n) will be deprecated. Use .sample((n,)) instead.", UserWarning, stacklevel=2
        )
        return self.sample(Size((n,)))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density, or of the probability, at `value`."""
        raise NotImplementedError

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of a number up to `value`."""
        raise NotImplementedError

    def icdf(self, value: Tensor) -> Tensor:
        """The number up to which the probability is `value`: the inverse of cdf."""
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values of a discrete distribution along a new first dimension. With `expand` False
        the batch dimensions are left at size 1.
        """
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """The entropy in nats, of shape batch_shape."""
        raise NotImplementedError

    def perplexity(self) -> Tensor:
        """exp(entropy), of shape batch_shape."""
        return _C.exp(self.entropy())

    def _extended_shape(self, sample_shape: Any = Size()) -> Size:
        """sample_shape + batch_shape + event_shape."""
        return Size(sample_shape) + self._batch_shape + self._event_shape

    def _validate_sample(self, value: Tensor) -> None:
        """Checks a value for log_prob, cdf or icdf: ValueError where its shape does not fit or it
        is outside the support.
        """
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        first = value.dim() - len(self._event_shape)
        if tuple(value.shape[max(first, 0) :]) != tuple(self._event_shape):
            raise ValueError(
                "The right-most size of value must match event_shape: "
                f"{value.size()} vs {self._event_shape}."
            )
        wanted = self._batch_shape + self._event_shape
        for got, here in zip(reversed(value.size()), reversed(wanted)):
            if got != 1 and here != 1 and got != here:
                raise ValueError(
                    "Value is not broadcastable with batch_shape+event_shape: "
                    f"{value.size()} vs {wanted}."
                )
        try:
            support: Any = self.support
        except NotImplementedError:
            warnings.warn(
                f"{self.__class__} does not define `support` to enable sample validation. "
                "Please initialize the distribution with `validate_args=False` to turn off "
                "validation.",
                stacklevel=3,
            )
            return
        if not support.check(value).all():
            raise ValueError(
                f"Expected value argument ({describe(value)}) to be within the support "
                f"({support!r}) of the distribution {self!r}, "
                f"but found invalid values:\n{value}"
            )

    def _get_checked_instance(self, cls: type, _instance: Optional[Distribution] = None) -> Any:
        """The object that expand() of `cls` fills: `_instance`, or a new one of this type, for
        which __init__ must be that of `cls`.
        """
        if _instance is not None:
            return _instance
        if type(self).__init__ != cls.__init__:  # type: ignore[misc]
            raise NotImplementedError(
                f"Subclass {self.__class__.__name__} of {cls.__name__} that defines a custom "
                "__init__ method must also define a custom .expand() method."
            )
        return self.__new__(type(self))

    def _expand_fields(
        self, cls: type, batch_shape: Any, _instance: Optional[Distribution], *fields: str
    ) -> Any:
        """A first part of expand(): the new object, with those of the tensors `fields` that this
        one has, expanded. A field has the shape batch_shape and dimensions of its own.
        """
        new = self._get_checked_instance(cls, _instance)
        for field in fields:
            if field in self.__dict__:
                value = self.__dict__[field]
                own = value.shape[len(self._batch_shape) :]
                setattr(new, field, value.expand(Size(batch_shape) + own))
        return new

    def _finish_expand(self, cls: type, new: Any, batch_shape: Any) -> Any:
        """The last part: the shapes, and the same validation."""
        base: Any = super(cls, new)
        base.__init__(Size(batch_shape), self._event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _expanded(
        self, cls: type, batch_shape: Any, _instance: Optional[Distribution], *fields: str
    ) -> Any:
        """expand() of a distribution that is its `fields` and nothing else."""
        new = self._expand_fields(cls, batch_shape, _instance, *fields)
        return self._finish_expand(cls, new, batch_shape)

    def __repr__(self) -> str:
        shown = []
        for name in self.arg_constraints:
            if name in self.__dict__:
                value = self.__dict__[name]
                shown.append(f"{name}: {value if value.numel() == 1 else value.size()}")
        return f"{self.__class__.__name__}({', '.join(shown)})"
