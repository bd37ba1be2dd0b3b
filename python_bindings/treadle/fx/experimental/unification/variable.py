"""Variables of unification: `var("x")`, and values that stand for one for a while."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import itertools
from contextlib import contextmanager
from typing import Any, Hashable, Iterator, List, Set

from treadle.fx.experimental.unification.dispatch import dispatch
from treadle.fx.experimental.unification.utils import hashable

_numbers = itertools.count(1)
_standing_in: Set[Any] = set()


class Var:
    """A variable. Those of equal tokens are equal; without a token it is like no other."""

    token: Hashable

    def __new__(cls, *token: Hashable) -> Var:
        if len(token) > 1:
            raise TypeError(f"Var: expected at most one token, got {len(token)}")
        made = object.__new__(cls)
        made.token = token[0] if token else f"_{next(_numbers)}"
        return made

    def __str__(self) -> str:
        return f"~{self.token}"

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.token == self.token

    def __hash__(self) -> int:
        return hash((type(self), self.token))


def var(*token: Hashable) -> Var:
    """A variable with that token, or like no other."""
    return Var(*token)


def vars(n: int) -> List[Var]:
    """That many variables, each like no other."""
    return [Var() for _ in range(n)]


@dispatch(Var)
def isvar(v: Any) -> bool:
    """Whether a value is a variable."""
    return True


@dispatch(object)  # type: ignore[no-redef]
def isvar(o: Any) -> bool:  # noqa: F811  one function by types
    """Whether a value stands for a variable: inside of `variables(o)`."""
    return bool(_standing_in) and hashable(o) and o in _standing_in


@contextmanager
def variables(*variables: Hashable) -> Iterator[None]:
    """Let these values be variables inside of the block.

    >>> with variables(1):
    ...     unify((1, 2), (5, 2), {})
    {1: 5}
    """
    before = set(_standing_in)
    _standing_in.update(variables)
    try:
        yield
    finally:
        _standing_in.clear()
        _standing_in.update(before)
