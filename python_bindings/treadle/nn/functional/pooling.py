"""Pooling: the largest, the mean or the norm of the values under a window that slides, or under
windows that cover the input evenly (adaptive)."""

from __future__ import annotations

from typing import Any, Optional, Sequence, Union

from treadle import Tensor

from .._operators import ops

_Ints = Union[int, tuple[int, ...]]
_Indexed = Union[Tensor, tuple[Tensor, Tensor]]


def _max_pool(
    dims: int,
    input: Tensor,
    kernel_size: _Ints,
    stride: Optional[_Ints],
    padding: _Ints,
    dilation: _Ints,
    ceil_mode: bool,
    return_indices: bool,
) -> _Indexed:
    steps = kernel_size if stride is None else stride
    name = f"max_pool{dims}d_with_indices" if return_indices else f"max_pool{dims}d"
    result = getattr(ops, name)(input, kernel_size, steps, padding, dilation, ceil_mode)
    return tuple(result) if return_indices else result


def max_pool1d(
    input: Tensor,
    kernel_size: _Ints,
    stride: Optional[_Ints] = None,
    padding: _Ints = 0,
    dilation: _Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> _Indexed:
    """The largest value under each window; with return_indices, also where in the line it was."""
    return _max_pool(
        1, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices
    )


def max_pool2d(
    input: Tensor,
    kernel_size: _Ints,
    stride: Optional[_Ints] = None,
    padding: _Ints = 0,
    dilation: _Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> _Indexed:
    """The largest value under each window; with return_indices, also where in the image it was."""
    return _max_pool(
        2, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices
    )


def max_pool3d(
    input: Tensor,
    kernel_size: _Ints,
    stride: Optional[_Ints] = None,
    padding: _Ints = 0,
    dilation: _Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> _Indexed:
    """The largest value under each window; with return_indices, also where in the volume it was."""
    return _max_pool(
        3, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices
    )


def max_pool1d_with_indices(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
    """:func:`max_pool1d` with return_indices."""
    return max_pool1d(*args, **{**kwargs, "return_indices": True})


def max_pool2d_with_indices(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
    """:func:`max_pool2d` with return_indices."""
    return max_pool2d(*args, **{**kwargs, "return_indices": True})


def max_pool3d_with_indices(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
    """:func:`max_pool3d` with return_indices."""
    return max_pool3d(*args, **{**kwargs, "return_indices": True})


def avg_pool1d(
    input: Tensor,
    kernel_size: _Ints,
    stride: Optional[_Ints] = None,
    padding: _Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """The mean value under each window."""
    steps = kernel_size if stride is None else stride
    return ops.avg_pool1d(input, kernel_size, steps, padding, ceil_mode, count_include_pad)


def avg_pool2d(
    input: Tensor,
    kernel_size: _Ints,
    stride: Optional[_Ints] = None,
    padding: _Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: Optional[int] = None,
) -> Tensor:
    """The mean value under each window."""
    steps = kernel_size if stride is None else stride
    return ops.avg_pool2d(
        input, kernel_size, steps, padding, ceil_mode, count_include_pad, divisor_override
    )


def avg_pool3d(
    input: Tensor,
    kernel_size: _Ints,
    stride: Optional[_Ints] = None,
    padding: _Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: Optional[int] = None,
) -> Tensor:
    """The mean value under each window."""
    steps = kernel_size if stride is None else stride
    return ops.avg_pool3d(
        input, kernel_size, steps, padding, ceil_mode, count_include_pad, divisor_override
    )


# ---- adaptive ----------------------------------------------------------------------------------


def _with_defaults(output_size: Any, input: Tensor) -> Any:
    """The output size, with the input's own where an entry is None."""
    if isinstance(output_size, int) or output_size is None:
        return output_size if output_size is not None else tuple(input.shape[-1:])
    sizes = tuple(output_size)
    if input.dim() <= len(sizes):
        raise ValueError(
            f"Input dimension should be at least {len(sizes) + 1}, got {input.dim()}"
        )
    own = tuple(input.shape[-len(sizes) :]) if sizes else ()
    return tuple(n if size is None else size for size, n in zip(sizes, own))


def adaptive_avg_pool1d(input: Tensor, output_size: _Ints) -> Tensor:
    """The mean of each of output_size windows that cover the input evenly."""
    return ops.adaptive_avg_pool1d(input, output_size)


def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """The mean of each of output_size windows; None keeps the input's size."""
    return ops.adaptive_avg_pool2d(input, _with_defaults(output_size, input))


def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """The mean of each of output_size windows; None keeps the input's size."""
    return ops.adaptive_avg_pool3d(input, _with_defaults(output_size, input))


def adaptive_max_pool1d(
    input: Tensor, output_size: _Ints, return_indices: bool = False
) -> _Indexed:
    """The largest value of each of output_size windows that cover the input evenly."""
    values, indices = ops.adaptive_max_pool1d(input, output_size)
    return (values, indices) if return_indices else values


def adaptive_max_pool2d(
    input: Tensor, output_size: Any, return_indices: bool = False
) -> _Indexed:
    """The largest value of each of output_size windows; None keeps the input's size."""
    values, indices = ops.adaptive_max_pool2d(input, _with_defaults(output_size, input))
    return (values, indices) if return_indices else values


def adaptive_max_pool3d(
    input: Tensor, output_size: Any, return_indices: bool = False
) -> _Indexed:
    """The largest value of each of output_size windows; None keeps the input's size."""
    values, indices = ops.adaptive_max_pool3d(input, _with_defaults(output_size, input))
    return (values, indices) if return_indices else values


# ---- unpooling ---------------------------------------------------------------------------------


def _tuple_of(value: _Ints, count: int) -> tuple[int, ...]:
    return (value,) * count if isinstance(value, int) else tuple(value)


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


def _unpool_settings(
    dims: int, kernel_size: _Ints, stride: Optional[_Ints], padding: _Ints
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    kernel = _tuple_of(kernel_size, dims)
    return kernel, kernel if stride is None else _tuple_of(stride, dims), _tuple_of(padding, dims)


def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size: _Ints,
    stride: Optional[_Ints] = None,
    padding: _Ints = 0,
    output_size: Optional[Sequence[int]] = None,
) -> Tensor:
    """Zeros, with what :func:`max_pool1d` chose where it came from."""
    settings = _unpool_settings(1, kernel_size, stride, padding)
    size = _unpooled_size(input, *settings, output_size)
    return ops.max_unpool2d(input.unsqueeze(-1), indices.unsqueeze(-1), [*size, 1]).squeeze(-1)


def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: _Ints,
    stride: Optional[_Ints] = None,
    padding: _Ints = 0,
    output_size: Optional[Sequence[int]] = None,
) -> Tensor:
    """Zeros, with what :func:`max_pool2d` chose where it came from."""
    settings = _unpool_settings(2, kernel_size, stride, padding)
    return ops.max_unpool2d(input, indices, _unpooled_size(input, *settings, output_size))


def max_unpool3d(
    input: Tensor,
    indices: Tensor,
    kernel_size: _Ints,
    stride: Optional[_Ints] = None,
    padding: _Ints = 0,
    output_size: Optional[Sequence[int]] = None,
) -> Tensor:
    """Zeros, with what :func:`max_pool3d` chose where it came from."""
    kernel, steps, border = _unpool_settings(3, kernel_size, stride, padding)
    size = _unpooled_size(input, kernel, steps, border, output_size)
    return ops.max_unpool3d(input, indices, size, steps, border)


# ---- norms -------------------------------------------------------------------------------------


def _norm_of_mean(mean: Tensor, norm_type: float, elements: int) -> Tensor:
    """The norm of windows from the mean of their powers; a negative mean keeps its sign."""
    return (mean.sign() * mean.abs().relu()).mul(elements).pow(1.0 / norm_type)


def lp_pool1d(
    input: Tensor,
    norm_type: float,
    kernel_size: int,
    stride: Optional[_Ints] = None,
    ceil_mode: bool = False,
) -> Tensor:
    """The norm of the values under each window: (sum of x ** norm_type) ** (1 / norm_type)."""
    mean = avg_pool1d(input.pow(norm_type), kernel_size, stride, 0, ceil_mode)
    (elements,) = _tuple_of(kernel_size, 1)
    return _norm_of_mean(mean, norm_type, elements)


def lp_pool2d(
    input: Tensor,
    norm_type: float,
    kernel_size: _Ints,
    stride: Optional[_Ints] = None,
    ceil_mode: bool = False,
) -> Tensor:
    """The norm of the values under each window: (sum of x ** norm_type) ** (1 / norm_type)."""
    mean = avg_pool2d(input.pow(norm_type), kernel_size, stride, 0, ceil_mode)
    height, width = _tuple_of(kernel_size, 2)
    return _norm_of_mean(mean, norm_type, height * width)


def lp_pool3d(
    input: Tensor,
    norm_type: float,
    kernel_size: _Ints,
    stride: Optional[_Ints] = None,
    ceil_mode: bool = False,
) -> Tensor:
    """The norm of the values under each window: (sum of x ** norm_type) ** (1 / norm_type)."""
    mean = avg_pool3d(input.pow(norm_type), kernel_size, stride, 0, ceil_mode)
    depth, height, width = _tuple_of(kernel_size, 3)
    return _norm_of_mean(mean, norm_type, depth * height * width)


def local_response_norm(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """Divide by (k + alpha * the mean square over `size` neighbouring channels) ** beta."""
    dim = input.dim()
    if dim < 3:
        raise ValueError(
            f"Expected 3D or higher dimensionality input (got {dim} dimensions)"
        )
    if input.numel() == 0:
        return input
    shape = tuple(input.shape)
    # The channels become the pooled dimension of a plane, the rest one line.
    squares = input.mul(input).reshape((shape[0], 1, shape[1], -1))
    padded = ops.constant_pad_nd(squares, (0, 0, size // 2, (size - 1) // 2), 0)
    mean = avg_pool2d(padded, (size, 1), stride=1).reshape(shape)
    return input / mean.mul(alpha).add(k).pow(beta)
