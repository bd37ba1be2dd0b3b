"""Names that programs find among the functions of layers."""

from __future__ import annotations

from typing import Any, Tuple

from treadle import Tensor, conv_tbc
from treadle.functional import (
    has_torch_function,
    has_torch_function_unary,
    has_torch_function_variadic,
)
from treadle.jit.annotations import BroadcastingList1, BroadcastingList2, BroadcastingList3
from treadle.nn.functional.pooling import (
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    adaptive_max_pool3d,
)

GRID_SAMPLE_INTERPOLATION_MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
GRID_SAMPLE_PADDING_MODES = {"zeros": 0, "border": 1, "reflection": 2}


def assert_int_or_pair(arg: Any, arg_name: str, message: str) -> None:
    """AssertionError with the message, in which the name is put, unless `arg` is a number or has
    two."""
    if not (isinstance(arg, int) or len(arg) == 2):
        raise AssertionError(message.format(arg_name))


def adaptive_max_pool1d_with_indices(
    input: Tensor, output_size: Any, return_indices: bool = False
) -> Tuple[Tensor, Tensor]:
    """adaptive_max_pool1d() and where the values are."""
    return adaptive_max_pool1d(input, output_size, True)


def adaptive_max_pool2d_with_indices(
    input: Tensor, output_size: Any, return_indices: bool = False
) -> Tuple[Tensor, Tensor]:
    """adaptive_max_pool2d() and where the values are."""
    return adaptive_max_pool2d(input, output_size, True)


def adaptive_max_pool3d_with_indices(
    input: Tensor, output_size: Any, return_indices: bool = False
) -> Tuple[Tensor, Tensor]:
    """adaptive_max_pool3d() and where the values are."""
    return adaptive_max_pool3d(input, output_size, True)


__all__ = [
    "BroadcastingList1",
    "BroadcastingList2",
    "BroadcastingList3",
    "GRID_SAMPLE_INTERPOLATION_MODES",
    "GRID_SAMPLE_PADDING_MODES",
    "adaptive_max_pool1d_with_indices",
    "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d_with_indices",
    "assert_int_or_pair",
    "conv_tbc",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
]
