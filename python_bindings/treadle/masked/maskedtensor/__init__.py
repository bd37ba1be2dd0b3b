"""Tensors that carry a mask."""

# SPDX-License-Identifier: Apache-2.0

from treadle.masked.maskedtensor.core import (
    MaskedTensor,
    as_masked_tensor,
    is_masked_tensor,
    masked_tensor,
)

__all__ = ["MaskedTensor", "as_masked_tensor", "is_masked_tensor", "masked_tensor"]
