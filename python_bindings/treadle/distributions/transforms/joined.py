"""Transforms side by side: each of a sequence for its part of the value."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, Optional, Sequence

from treadle import _C
from treadle._C import Tensor
from treadle.distributions import constraints
from treadle.distributions.transforms.transform import Transform
from treadle.distributions.utils import _sum_rightmost


def _checked(transforms: Sequence[Transform], cache_size: int) -> list[Transform]:
    if not all(isinstance(t, Transform) for t in transforms):
        raise AssertionError(f"expected transforms, got {transforms!r}")
    return [t.with_cache(cache_size) for t in transforms] if cache_size else list(transforms)


class CatTransform(Transform):
    """Transform `tseq[i]` for the next `lengths[i]` places of dimension `dim`, as treadle.cat joins
    them.

        x0 = treadle.cat([treadle.range(1, 10), treadle.range(1, 10)], dim=0)
        t = CatTransform([ExpTransform(), identity_transform], dim=0, lengths=[10, 10])
        y = t(x0)
    """

    def __init__(
        self,
        tseq: Sequence[Transform],
        dim: int = 0,
        lengths: Optional[Sequence[int]] = None,
        cache_size: int = 0,
    ) -> None:
        transforms = _checked(tseq, cache_size)
        super().__init__(cache_size=cache_size)
        self.transforms = transforms
        self.lengths = [1] * len(transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(transforms):
            raise AssertionError(f"expected {len(transforms)} lengths, got {self.lengths}")
        self.dim = dim

    @property
    def event_dim(self) -> int:
        return max(t.event_dim for t in self.transforms)

    @property
    def length(self) -> int:
        """How many places of `dim` the transforms take together."""
        return sum(self.lengths)

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _parts(self, *values: Tensor) -> list[tuple[Any, ...]]:
        """Each transform, and its part of each value."""
        parts, start = [], 0
        for transform, length in zip(self.transforms, self.lengths):
            parts.append((transform, *(v.narrow(self.dim, start, length) for v in values)))
            start += length
        return parts

    def _check(self, value: Tensor) -> None:
        if not -value.dim() <= self.dim < value.dim() or value.size(self.dim) != self.length:
            raise AssertionError(
                f"expected {self.length} places in dimension {self.dim}, got a value of shape "
                f"{tuple(value.shape)}"
            )

    def _call(self, x: Tensor) -> Tensor:
        self._check(x)
        return _C.cat([t(part) for t, part in self._parts(x)], dim=self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        self._check(y)
        return _C.cat([t.inv(part) for t, part in self._parts(y)], dim=self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        self._check(x)
        self._check(y)
        terms = []
        for transform, part_x, part_y in self._parts(x, y):
            term = transform.log_abs_det_jacobian(part_x, part_y)
            terms.append(_sum_rightmost(term, self.event_dim - transform.event_dim))
        # Seen from the end, the dimension stands before those of one value.
        dim = self.dim - x.dim() if self.dim >= 0 else self.dim
        dim += self.event_dim
        total: Any = sum(terms) if dim >= 0 else _C.cat(terms, dim=dim)
        return total

    @property
    def bijective(self) -> bool:
        return all(t.bijective for t in self.transforms)

    @constraints.dependent_property
    def domain(self) -> constraints.Constraint:
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self) -> constraints.Constraint:
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)


class StackTransform(Transform):
    """Transform `tseq[i]` for place `i` of dimension `dim`, as treadle.stack joins them."""

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        transforms = _checked(tseq, cache_size)
        super().__init__(cache_size=cache_size)
        self.transforms = transforms
        self.dim = dim

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return StackTransform(self.transforms, self.dim, cache_size)

    def _stacked(self, call: Callable[..., Tensor], *values: Tensor) -> Tensor:
        """call(transform, part of each value) for each transform, stacked."""
        for value in values:
            if not -value.dim() <= self.dim < value.dim() or value.size(self.dim) != len(
                self.transforms
            ):
                raise AssertionError(
                    f"expected {len(self.transforms)} places in dimension {self.dim}, got a value "
                    f"of shape {tuple(value.shape)}"
                )
        results = [
            call(transform, *(value.select(self.dim, i) for value in values))
            for i, transform in enumerate(self.transforms)
        ]
        return _C.stack(results, dim=self.dim)

    def _call(self, x: Tensor) -> Tensor:
        return self._stacked(lambda t, part: t(part), x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self._stacked(lambda t, part: t.inv(part), y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return self._stacked(lambda t, a, b: t.log_abs_det_jacobian(a, b), x, y)

    @property
    def bijective(self) -> bool:
        return all(t.bijective for t in self.transforms)

    @constraints.dependent_property
    def domain(self) -> constraints.Constraint:
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self) -> constraints.Constraint:
        return constraints.stack([t.codomain for t in self.transforms], self.dim)
