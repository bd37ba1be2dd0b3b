"""Plans of how tensors lie on processes. The tensors themselves are names only: no tensor is
spread."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from treadle import _names
from treadle.distributed.tensor.placement_types import (
    Partial,
    Placement,
    Replicate,
    Shard,
    _StridedShard,
)

__all__ = ["Partial", "Placement", "Replicate", "Shard", "_StridedShard"]

__getattr__ = _names.attributes_of(__name__)
