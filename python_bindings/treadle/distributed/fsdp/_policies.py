"""How fully_shard() computes and keeps parameters."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable, Optional

from treadle import _C


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """The dtypes of a module.

    param_dtype: of the gathered parameters, and so of the computation; None for their own.
    reduce_dtype: in which gradients are sent, averaged and accumulated; None for that of the
        sharded parameters.
    output_dtype: to which floating point outputs of forward() are converted; None to leave them.
    cast_forward_inputs: whether floating point inputs of forward() are converted to `param_dtype`.
    param_dtype_override_fn: called with each parameter; it returns `param_dtype` or None for that
        dtype, or the dtype of the parameter, which then keeps it.

    The sharded parameters, and what an optimiser does with them, keep their own dtype.
    """

    param_dtype: Optional[_C.dtype] = None
    reduce_dtype: Optional[_C.dtype] = None
    output_dtype: Optional[_C.dtype] = None
    cast_forward_inputs: bool = True
    param_dtype_override_fn: Optional[Callable[[Any], Optional[_C.dtype]]] = field(
        default=None, kw_only=True
    )

    def _dtype_of(self, parameter: Any) -> Optional[_C.dtype]:
        """The dtype of a gathered parameter; None for its own."""
        given = self.param_dtype_override_fn
        found = None if given is None else given(parameter)
        if found is None:
            return self.param_dtype
        if found not in (self.param_dtype, parameter.dtype):
            raise ValueError(
                "param_dtype_override_fn: expected None, param_dtype or the dtype of the parameter "
                f"({self.param_dtype}, {parameter.dtype}), got {found}"
            )
        return found


@dataclass(frozen=True)
class OffloadPolicy:
    """Parameters stay on the device of the mesh."""


@dataclass(frozen=True)
class CPUOffloadPolicy(OffloadPolicy):
    """Sharded parameters, their gradients and the state of the optimiser are on the CPU, in pinned
    memory with `pin_memory`. On a mesh of CPUs they are there in any case."""

    pin_memory: bool = True


__all__ = ["CPUOffloadPolicy", "MixedPrecisionPolicy", "OffloadPolicy"]
