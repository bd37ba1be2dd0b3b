"""How the values of several processes become one: ReduceOp.SUM and the like."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import enum
from typing import Callable, Dict, Sequence

from treadle import _C
from treadle._C import Tensor


class ReduceOp(enum.IntEnum):
    """The operations of all_reduce(), reduce() and reduce_scatter()."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7

    def __str__(self) -> str:
        return f"ReduceOp.{self.name}"


# The type of the members, by PyTorch's name.
ReduceOp.RedOpType = ReduceOp  # type: ignore[attr-defined]

_STEPS: Dict[ReduceOp, Callable[[Tensor, Tensor], Tensor]] = {
    ReduceOp.SUM: _C.add,
    ReduceOp.AVG: _C.add,
    ReduceOp.PRODUCT: _C.mul,
    ReduceOp.MIN: _C.minimum,
    ReduceOp.MAX: _C.maximum,
    ReduceOp.BAND: _C.bitwise_and,
    ReduceOp.BOR: _C.bitwise_or,
    ReduceOp.BXOR: _C.bitwise_xor,
}


def check(function: str, op: ReduceOp, tensor: Tensor) -> ReduceOp:
    """TypeError for what is no ReduceOp; ValueError for one that the dtype does not have."""
    if not isinstance(op, ReduceOp):
        raise TypeError(f"{function}: expected op to be a ReduceOp, got {type(op).__name__}")
    is_fraction = tensor.is_floating_point() or tensor.is_complex()
    if op is ReduceOp.AVG and not is_fraction:
        raise ValueError(f"{function}: expected a floating dtype for {op}, got {tensor.dtype}")
    if op >= ReduceOp.BAND and is_fraction:
        raise ValueError(f"{function}: expected an integer dtype for {op}, got {tensor.dtype}")
    return op


def reduced(op: ReduceOp, values: Sequence[Tensor]) -> Tensor:
    """One tensor from those of all ranks, taken in the order of ranks."""
    step = _STEPS[op]
    result = values[0]
    for value in values[1:]:
        result = step(result, value)
    return result / len(values) if op is ReduceOp.AVG else result
