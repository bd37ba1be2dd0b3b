"""How the values of several processes become one: ReduceOp.SUM and the like."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import enum
from typing import Any, Union

from treadle._C import Tensor


class ReduceOp(enum.IntEnum):
    """The operations of all_reduce(), reduce() and reduce_scatter(). The engine has the same
    numbers."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8

    def __str__(self) -> str:
        return f"ReduceOp.{self.name}"

    @property
    def op(self) -> ReduceOp:
        """The operation itself, without a factor."""
        return self


# The type of the members, by PyTorch's name.
ReduceOp.RedOpType = ReduceOp  # type: ignore[attr-defined]


class PremulSum:
    """The sum of the values times a factor: ReduceOp.PREMUL_SUM with its number."""

    op = ReduceOp.PREMUL_SUM

    def __init__(self, factor: float) -> None:
        self.factor = float(factor)

    def __eq__(self, other: Any) -> bool:
        return other is ReduceOp.PREMUL_SUM or (
            isinstance(other, PremulSum) and other.factor == self.factor
        )

    def __hash__(self) -> int:
        return hash(ReduceOp.PREMUL_SUM)

    def __repr__(self) -> str:
        return f"ReduceOp.PREMUL_SUM({self.factor:g})"


def make_premul_sum(factor: Union[float, Tensor]) -> PremulSum:
    """ReduceOp.PREMUL_SUM with a factor, a number or a tensor of one element."""
    return PremulSum(factor.item() if isinstance(factor, Tensor) else factor)


AnyOp = Union[ReduceOp, PremulSum]


def check(function: str, op: Any, tensor: Tensor) -> AnyOp:
    """TypeError for what is no ReduceOp; ValueError for one that the dtype does not have."""
    if not isinstance(op, (ReduceOp, PremulSum)):
        raise TypeError(f"{function}: expected op to be a ReduceOp, got {type(op).__name__}")
    kind = op.op
    is_fraction = tensor.is_floating_point() or tensor.is_complex()
    if kind is ReduceOp.AVG and not is_fraction:
        raise ValueError(f"{function}: expected a floating dtype for {op}, got {tensor.dtype}")
    if ReduceOp.BAND <= kind <= ReduceOp.BXOR and is_fraction:
        raise ValueError(f"{function}: expected an integer dtype for {op}, got {tensor.dtype}")
    if kind in (ReduceOp.MIN, ReduceOp.MAX) and tensor.is_complex():
        raise ValueError(f"{function}: expected a real dtype for {op}, got {tensor.dtype}")
    if op is ReduceOp.PREMUL_SUM:
        raise ValueError(f"{function}: expected PREMUL_SUM with a factor, got none")
    return op


__all__ = ["AnyOp", "PremulSum", "ReduceOp", "check", "make_premul_sum"]
