"""The class of nested tensors, and how they are made of values and offsets."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Optional, Tuple

from treadle import _names
from treadle._C import Tensor
from treadle.nested._make import nested_tensor_from_jagged
from treadle.nested._tensor import NestedTensor, joined

jagged_from_list = joined
nested_view_from_values_offsets = nested_tensor_from_jagged


def buffer_from_jagged(jagged: NestedTensor) -> Tensor:
    """The values of all parts."""
    return jagged.values()


def nested_view_from_values_offsets_lengths(
    values: Tensor, offsets: Tensor, lengths: Tensor, ragged_idx: int = 1, **sizes: Optional[int]
) -> NestedTensor:
    """The parts that begin at offsets and have these lengths."""
    known: Tuple[Any, Any] = (sizes.get("min_seqlen"), sizes.get("max_seqlen"))
    return nested_tensor_from_jagged(values, offsets, lengths, ragged_idx, *known)


__getattr__ = _names.attributes_of(__name__)

__all__ = [
    "NestedTensor",
    "buffer_from_jagged",
    "jagged_from_list",
    "nested_view_from_values_offsets",
    "nested_view_from_values_offsets_lengths",
]
