"""Pooling: the largest, the mean or the norm of the values under a window that slides, or under
windows that cover the input evenly (adaptive)."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
from typing import Any, Callable, Optional, Sequence, TypeVar, Union

from treadle._C import Tensor

from .._operators import ops
from .._tuples import tuple_of

_Ints = Union[int, tuple[int, ...]]
_Indexed = Union[Tensor, tuple[Tensor, Tensor]]
_Function = TypeVar("_Function", bound=Callable)


def _named(function: _Function, name: str) -> _Function:
    function.__name__ = function.__qualname__ = name
    return function


# ---- largest values ----------------------------------------------------------------------------


def _max_pool(dims: int) -> Callable[..., _Indexed]:
    plain = getattr(ops, f"max_pool{dims}d")
    with_indices = getattr(ops, f"max_pool{dims}d_with_indices")

    def max_pool(
        input: Tensor,
        kernel_size: _Ints,
        stride: Optional[_Ints] = None,
        padding: _Ints = 0,
        dilation: _Ints = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> _Indexed:
        """The largest value under each window; with return_indices, also where in the line, image
        or volume it was."""
        settings = (kernel_size, stride, padding, dilation, ceil_mode)
        if return_indices:
            return tuple(with_indices(input, *settings))
        return plain(input, *settings)

    return _named(max_pool, f"max_pool{dims}d")


max_pool1d, max_pool2d, max_pool3d = (_max_pool(dims) for dims in (1, 2, 3))


def _with_indices(pool: Callable[..., _Indexed]) -> Callable[..., _Indexed]:
    def max_pool_with_indices(*args: Any, **kwargs: Any) -> _Indexed:
        """The max_pool of as many dimensions, with return_indices."""
        return pool(*args, **{**kwargs, "return_indices": True})

    return _named(max_pool_with_indices, f"{pool.__name__}_with_indices")


max_pool1d_with_indices, max_pool2d_with_indices, max_pool3d_with_indices = (
    _with_indices(pool) for pool in (max_pool1d, max_pool2d, max_pool3d)
)


# ---- means -------------------------------------------------------------------------------------


# The operators themselves.
avg_pool1d = ops.avg_pool1d
avg_pool2d = ops.avg_pool2d
avg_pool3d = ops.avg_pool3d


# ---- adaptive ----------------------------------------------------------------------------------


def _with_defaults(output_size: Any, input: Tensor) -> Any:
    """The output size, with the input's own where an entry is None."""
    if isinstance(output_size, int) or output_size is None:
        return output_size if output_size is not None else tuple(input.shape[-1:])
    sizes = tuple(output_size)
    if input.dim() <= len(sizes):
        raise ValueError(f"Input dimension should be at least {len(sizes) + 1}, got {input.dim()}")
    own = tuple(input.shape[-len(sizes) :]) if sizes else ()
    return tuple(n if size is None else size for size, n in zip(sizes, own))


# The operator itself.
adaptive_avg_pool1d = ops.adaptive_avg_pool1d


def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """The mean of each of output_size windows; None keeps the input's size."""
    return ops.adaptive_avg_pool2d(input, _with_defaults(output_size, input))


def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """The mean of each of output_size windows; None keeps the input's size."""
    return ops.adaptive_avg_pool3d(input, _with_defaults(output_size, input))


def _adaptive_max_pool(dims: int) -> Callable[..., _Indexed]:
    pool = getattr(ops, f"adaptive_max_pool{dims}d")

    def adaptive_max_pool(
        input: Tensor, output_size: Any, return_indices: bool = False
    ) -> _Indexed:
        """The largest value of each of output_size windows that cover the input evenly; None keeps
        the input's size."""
        sizes = output_size if dims == 1 else _with_defaults(output_size, input)
        values, indices = pool(input, sizes)
        return (values, indices) if return_indices else values

    return _named(adaptive_max_pool, f"adaptive_max_pool{dims}d")


adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = (
    _adaptive_max_pool(dims) for dims in (1, 2, 3)
)


# ---- unpooling ---------------------------------------------------------------------------------


def _unpooled_size(
    input: Tensor,
    kernel_size: tuple[int, ...],
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    output_size: Optional[Sequence[int]],
) -> list[int]:
    """The size before pooling: the smallest that fits, or the one given if it is near enough."""
    dims = len(kernel_size)
    least = [
        (n - 1) * s + k - 2 * p
        for n, k, s, p in zip(tuple(input.shape[-dims:]), kernel_size, stride, padding)
    ]
    if output_size is None:
        return least
    sizes = list(output_size)
    if len(sizes) == dims + 2:
        sizes = sizes[2:]
    if len(sizes) != dims:
        raise ValueError(
            "output_size should be a sequence containing "
            f"{dims} or {dims + 2} elements, but it has a length of '{len(sizes)}'"
        )
    for d in range(dims):
        low, high = least[d] - stride[d], least[d] + stride[d]
        if not low < sizes[d] < high:
            raise ValueError(
                f"invalid output_size '{sizes}' (dim {d} must be between {low} and {high})"
            )
    return sizes


def _max_unpool(dims: int) -> Callable[..., Tensor]:
    def max_unpool(
        input: Tensor,
        indices: Tensor,
        kernel_size: _Ints,
        stride: Optional[_Ints] = None,
        padding: _Ints = 0,
        output_size: Optional[Sequence[int]] = None,
    ) -> Tensor:
        """Zeros, with what the max_pool of as many dimensions chose where it came from."""
        kernel = tuple_of(kernel_size, dims)
        steps = kernel if stride is None else tuple_of(stride, dims)
        border = tuple_of(padding, dims)
        if any(len(entries) != dims for entries in (kernel, steps, border)):
            raise RuntimeError(
                f"max_unpool{dims}d: expected {dims} entries in kernel_size, stride and padding, "
                f"got {kernel}, {steps} and {border}"
            )
        size = _unpooled_size(input, kernel, steps, border, output_size)
        if dims == 1:
            image = ops.max_unpool2d(input.unsqueeze(-1), indices.unsqueeze(-1), [*size, 1])
            return image.squeeze(-1)
        if dims == 2:
            return ops.max_unpool2d(input, indices, size)
        return ops.max_unpool3d(input, indices, size, steps, border)

    return _named(max_unpool, f"max_unpool{dims}d")


max_unpool1d, max_unpool2d, max_unpool3d = (_max_unpool(dims) for dims in (1, 2, 3))


# ---- norms -------------------------------------------------------------------------------------


def _lp_pool(dims: int, average: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def lp_pool(
        input: Tensor,
        norm_type: float,
        kernel_size: _Ints,
        stride: Optional[_Ints] = None,
        ceil_mode: bool = False,
    ) -> Tensor:
        """The norm of the values under each window: (sum of x ** norm_type) ** (1 / norm_type)."""
        mean = average(input.pow(norm_type), kernel_size, stride, 0, ceil_mode)
        elements = math.prod(tuple_of(kernel_size, dims))
        # A negative mean keeps its sign.
        return (mean.sign() * mean.abs().relu()).mul(elements).pow(1.0 / norm_type)

    return _named(lp_pool, f"lp_pool{dims}d")


lp_pool1d, lp_pool2d, lp_pool3d = (
    _lp_pool(dims, average) for dims, average in enumerate((avg_pool1d, avg_pool2d, avg_pool3d), 1)
)


def local_response_norm(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """Divide by (k + alpha * the mean square over `size` neighbouring channels) ** beta."""
    dim = input.dim()
    if dim < 3:
        raise ValueError(f"Expected 3D or higher dimensionality input (got {dim} dimensions)")
    if input.numel() == 0:
        return input
    shape = tuple(input.shape)
    # The channels become the pooled dimension of a plane, the rest one line.
    squares = input.mul(input).reshape((shape[0], 1, shape[1], -1))
    padded = ops.constant_pad_nd(squares, (0, 0, size // 2, (size - 1) // 2), 0)
    mean = avg_pool2d(padded, (size, 1), stride=1).reshape(shape)
    return input / mean.mul(alpha).add(k).pow(beta)
