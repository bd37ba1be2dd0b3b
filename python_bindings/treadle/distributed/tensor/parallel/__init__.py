"""Tensor parallelism: modules whose parameters are spread over the processes of a mesh.

parallelize_module(block, mesh["tp"], {"up": ColwiseParallel(), "down": RowwiseParallel()})
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from treadle import _names
from treadle.distributed.tensor.parallel.api import parallelize_module
from treadle.distributed.tensor.parallel.loss import loss_parallel
from treadle.distributed.tensor.parallel.style import (
    ColwiseParallel,
    ParallelStyle,
    PrepareModuleInput,
    PrepareModuleInputOutput,
    PrepareModuleOutput,
    RowwiseParallel,
    SequenceParallel,
)

__all__ = [
    "ColwiseParallel",
    "ParallelStyle",
    "PrepareModuleInput",
    "PrepareModuleInputOutput",
    "PrepareModuleOutput",
    "RowwiseParallel",
    "SequenceParallel",
    "loss_parallel",
    "parallelize_module",
]

__getattr__ = _names.attributes_of(__name__)
