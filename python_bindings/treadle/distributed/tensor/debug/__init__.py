"""To see what tensors that are spread do: which communication, which placements, which pieces."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from treadle import _names
from treadle.distributed.tensor.debug._comm_mode import CommDebugMode
from treadle.distributed.tensor.debug._explain import explain
from treadle.distributed.tensor.debug._visualize_sharding import visualize_sharding

__all__ = ["CommDebugMode", "explain", "visualize_sharding"]

__getattr__ = _names.attributes_of(__name__)
