"""Parameters that are plain numbers or tensors."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any

from treadle._C import Size, Tensor
from treadle.distributions.utils import Number, broadcast_all


def broadcast_parameters(*values: Any) -> tuple[tuple[Tensor, ...], Size]:
    """The values as tensors of one shape, and the batch shape of a distribution of them, which is
    () where all of them are plain numbers.
    """
    tensors = broadcast_all(*values)
    plain = all(isinstance(value, Number) for value in values)
    return tensors, Size() if plain else tensors[0].size()
