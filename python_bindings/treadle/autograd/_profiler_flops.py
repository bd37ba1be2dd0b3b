"""How many floating-point operations some operators need, from the shapes of their arguments.

A multiplication and the addition that follows count as two.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import ast
import math
from typing import Callable


def _product(first: int) -> Callable:
    """A product of matrices (or batches of them) that are the arguments `first` and the next."""

    def count(shapes: list, values: list) -> int:
        a, b = shapes[first], shapes[first + 1]
        return 2 * math.prod(a) * b[-1]

    return count


def _elementwise(shapes: list, values: list) -> int:
    return math.prod(max(shapes[:2], key=lambda shape: math.prod(shape) if shape else 0) or [1])


def _convolution(shapes: list, values: list) -> int:
    """conv2d(input, weight, bias, stride, padding, dilation, groups)."""
    image, weight = shapes[:2]
    stride, padding, dilation = (_pair(ast.literal_eval(value)) for value in values[3:6])
    size = 1
    for i in range(2):
        kernel = dilation[i] * (weight[2 + i] - 1) + 1
        size *= (image[2 + i] + 2 * padding[i] - kernel) // stride[i] + 1
    return 2 * image[0] * size * math.prod(weight)


def _pair(value: object) -> list:
    numbers = value if isinstance(value, list) else [value]
    return numbers * 2 if len(numbers) == 1 else numbers


_COUNTS = {
    "aten::mm": _product(0),
    "aten::bmm": _product(0),
    "aten::addmm": _product(1),
    "aten::baddbmm": _product(1),
    "aten::add": _elementwise,
    "aten::mul": _elementwise,
    "aten::conv2d": _convolution,
}


def flops(name: str, shapes: list, values: list) -> int:
    """The number for a call; 0 where it is not known."""
    count = _COUNTS.get(name)
    if count is None or not shapes:
        return 0
    try:
        return count(shapes, values)
    except (IndexError, ValueError, SyntaxError, TypeError, ZeroDivisionError):
        return 0  # another overload, with other arguments
