"""How fully_shard() computes and keeps parameters."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from treadle import _C


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """The dtypes of a module.

    param_dtype: of the gathered parameters, and so of the computation; None for their own.
    reduce_dtype: in which gradients are sent and averaged; None for that of the gradients.
    output_dtype: to which floating point outputs of forward() are converted; None to leave them.
    cast_forward_inputs: whether floating point inputs of forward() are converted to `param_dtype`.

    The sharded parameters, and what an optimiser does with them, keep their own dtype.
    """

    param_dtype: Optional[_C.dtype] = None
    reduce_dtype: Optional[_C.dtype] = None
    output_dtype: Optional[_C.dtype] = None
    cast_forward_inputs: bool = True


@dataclass(frozen=True)
class OffloadPolicy:
    """Parameters stay on the device of the mesh."""


@dataclass(frozen=True)
class CPUOffloadPolicy(OffloadPolicy):
    """Sharded parameters, their gradients and the state of the optimiser are on the CPU, in pinned
    memory with `pin_memory`. On a mesh of CPUs they are there in any case."""

    pin_memory: bool = True


__all__ = ["CPUOffloadPolicy", "MixedPrecisionPolicy", "OffloadPolicy"]
