"""New variables of constraints. Each function is given the last number that is in use, and returns
the last one afterwards."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Iterable, List, Tuple

from treadle.fx.experimental.migrate_gradual_types.constraint import (
    BinConstraintD,
    BVar,
    Constraint,
    DVar,
    TVar,
)
from treadle.fx.experimental.migrate_gradual_types.operation import op_leq


def gen_tvar(curr: int) -> Tuple[TVar, int]:
    """A new variable for a type."""
    return TVar(curr + 1), curr + 1


def gen_dvar(curr: int) -> Tuple[DVar, int]:
    """A new variable for a size."""
    return DVar(curr + 1), curr + 1


def gen_bvar(curr: int) -> Tuple[BVar, int]:
    """A new variable for a truth value."""
    return BVar(curr + 1), curr + 1


def gen_tensor_dims(n: int, curr: int) -> Tuple[List[DVar], int]:
    """New variables for `n` sizes."""
    return [DVar(curr + i) for i in range(1, n + 1)], curr + n


def gen_nat_constraints(list_of_dims: Iterable[DVar]) -> List[Constraint]:
    """That each of the sizes is at least 0."""
    return [BinConstraintD(0, d, op_leq) for d in list_of_dims]


__all__ = ["gen_bvar", "gen_dvar", "gen_nat_constraints", "gen_tensor_dims", "gen_tvar", "op_leq"]
