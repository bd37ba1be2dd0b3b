"""Equality: two sizes that are the same, as refinement of a graph finds them."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any


class Equality:
    """The statement that `lhs` and `rhs` are the same size."""

    def __init__(self, lhs: Any, rhs: Any) -> None:
        self.lhs, self.rhs = lhs, rhs

    def __str__(self) -> str:
        return f"{self.lhs} = {self.rhs}"

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Equality) and (self.lhs, self.rhs) == (other.lhs, other.rhs)

    def __hash__(self) -> int:
        return hash((self.lhs, self.rhs))


__all__ = ["Equality"]
