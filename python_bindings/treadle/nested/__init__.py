"""Tensors of parts whose sizes differ in one dimension, kept one behind the other.

Example:

    x = nested_tensor([treadle.randn(2, 8), treadle.randn(5, 8)], layout=treadle.jagged)
    y = treadle.nn.functional.linear(x, weight)         # for all parts at once
    y.sum(1)                                            # (2, 8): of each part
    y.to_padded_tensor(0.0)                             # (2, 5, 8)
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from treadle import _names
from treadle.nested import _dispatch as _dispatch
from treadle.nested._make import (
    as_nested_tensor,
    masked_select,
    narrow,
    nested_tensor,
    nested_tensor_from_jagged,
    to_padded_tensor,
)

__getattr__ = _names.attributes_of(__name__)

__all__ = [
    "as_nested_tensor",
    "masked_select",
    "narrow",
    "nested_tensor",
    "nested_tensor_from_jagged",
    "to_padded_tensor",
]
