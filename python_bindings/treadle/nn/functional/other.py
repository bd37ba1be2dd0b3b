"""Names that programs find among the functions of layers."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, Tuple

from treadle._C import Tensor
from treadle._functions.block_scales import ScalingType, SwizzleType
from treadle._functions.older import conv_tbc
from treadle._functions.scaled_products import scaled_mm
from treadle._jit_internal import BroadcastingList1, BroadcastingList2, BroadcastingList3
from treadle.functional import (
    has_torch_function,
    has_torch_function_unary,
    has_torch_function_variadic,
)
from treadle.nn import grad
from treadle.nn.functional.pooling import (
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    adaptive_max_pool3d,
)
from treadle.overrides import handle_torch_function

GRID_SAMPLE_INTERPOLATION_MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
GRID_SAMPLE_PADDING_MODES = {"zeros": 0, "border": 1, "reflection": 2}


def boolean_dispatch(
    arg_name: str,
    arg_index: int,
    default: bool,
    if_true: Callable[..., Any],
    if_false: Callable[..., Any],
    module_name: str,
    func_name: str,
) -> Callable[..., Any]:
    """A function that calls one of two, by its argument `arg_name`, the one at `arg_index`, which
    is `default` where it is not given."""

    def function(*args: Any, **kwargs: Any) -> Any:
        chosen = args[arg_index] if arg_index < len(args) else kwargs.get(arg_name, default)
        return (if_true if chosen else if_false)(*args, **kwargs)

    function.__doc__ = if_true.__doc__ or if_false.__doc__
    function.__name__ = func_name or "function"
    function.__module__ = module_name or __name__
    return function


def assert_int_or_pair(arg: Any, arg_name: str, message: str) -> None:
    """AssertionError with the message, in which the name is put, unless `arg` is a number or has
    two."""
    if not (isinstance(arg, int) or len(arg) == 2):
        raise AssertionError(message.format(arg_name))


def adaptive_max_pool1d_with_indices(
    input: Tensor, output_size: Any, return_indices: bool = False
) -> Tuple[Tensor, Tensor]:
    """adaptive_max_pool1d() and where the values are."""
    values, indices = adaptive_max_pool1d(input, output_size, True)
    return values, indices


def adaptive_max_pool2d_with_indices(
    input: Tensor, output_size: Any, return_indices: bool = False
) -> Tuple[Tensor, Tensor]:
    """adaptive_max_pool2d() and where the values are."""
    values, indices = adaptive_max_pool2d(input, output_size, True)
    return values, indices


def adaptive_max_pool3d_with_indices(
    input: Tensor, output_size: Any, return_indices: bool = False
) -> Tuple[Tensor, Tensor]:
    """adaptive_max_pool3d() and where the values are."""
    values, indices = adaptive_max_pool3d(input, output_size, True)
    return values, indices


__all__ = [
    "BroadcastingList1",
    "BroadcastingList2",
    "BroadcastingList3",
    "GRID_SAMPLE_INTERPOLATION_MODES",
    "GRID_SAMPLE_PADDING_MODES",
    "ScalingType",
    "SwizzleType",
    "adaptive_max_pool1d_with_indices",
    "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d_with_indices",
    "assert_int_or_pair",
    "boolean_dispatch",
    "conv_tbc",
    "grad",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "scaled_mm",
]
