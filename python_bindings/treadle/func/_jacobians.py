"""Whole Jacobians and Hessians as functions of functions.

    jacrev(f)(x)         # row by row, through backward
    jacfwd(f)(x)         # column by column, along each element of x
    hessian(f)(x)        # jacfwd of jacrev

For an output of shape (a, b) and an argument of shape (c,) the Jacobian has shape (a, b, c). Where
either is a tree, there is a tree of the argument's form in the place of each leaf of the output.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import functools
from typing import Any, Callable, List, Optional

from treadle import _C
from treadle.autograd._derivatives import jacobian_columns, jacobian_rows
from treadle.func._levels import Argnums, Arguments, Level, flat_outputs, split_aux
from treadle.func._vmap import Randomness

Tensor = _C.Tensor


class _Problem:
    """A function called at arguments, with what its Jacobian is to be computed from."""

    def __init__(
        self, op: str, func: Callable, argnums: Argnums, has_aux: bool, args: tuple, kwargs: dict
    ) -> None:
        given = Arguments(op, args, argnums)
        self.level = Level(op, given.chosen())
        result = self.level.call(func, *given.with_chosen(self.level.arguments()), **kwargs)
        output, self.aux = split_aux(op, result, has_aux)
        self.has_aux = has_aux
        self.outputs, self.spec = flat_outputs(op, output)
        self.recorded = self.level.reaches_outside(self.outputs)

    def result(self, blocks: List[List[Tensor]]) -> Any:
        """blocks[i][j] is that of output i and input j."""
        level = self.level
        tree = self.spec.unflatten(level.spec.unflatten(level.settle(row)) for row in blocks)
        return (tree, level.settle(self.aux)) if self.has_aux else tree


def jacrev(
    func: Callable,
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    chunk_size: Optional[int] = None,
    _preallocate_and_copy: bool = False,
) -> Callable:
    """A function that returns the Jacobian of `func` by its arguments `argnums`, computed through
    backward: one pass for each element of the output.

    With `has_aux`, `func` returns (output, aux), and the result is (Jacobian, aux). `chunk_size`
    does not change the result.
    """
    if chunk_size is not None and chunk_size < 1:
        raise ValueError(f"jacrev: expected chunk_size > 0 or None, got {chunk_size}")

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        problem = _Problem("jacrev", func, argnums, has_aux, args, kwargs)
        inputs = problem.level.inputs
        return problem.result(
            [jacobian_rows(output, inputs, problem.recorded) for output in problem.outputs]
        )

    return wrapper


def jacfwd(
    func: Callable, argnums: Argnums = 0, has_aux: bool = False, *, randomness: str = "error"
) -> Callable:
    """A function that returns the Jacobian of `func` by its arguments `argnums`, computed along one
    direction for each element of the arguments.

    With `has_aux`, `func` returns (output, aux), and the result is (Jacobian, aux). `randomness`:
    "error" forbids random operators, "same" allows them. NotImplementedError for "different": the
    function is called once for all directions.
    """
    if randomness == "different":
        raise NotImplementedError(
            "jacfwd: expected randomness to be 'error' or 'same', got 'different': the function is "
            "called once for all directions"
        )

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        draws = Randomness("jacfwd", randomness)
        problem = _Problem("jacfwd", func, argnums, has_aux, args, kwargs)
        draws.after_sample()
        return problem.result(
            jacobian_columns(problem.outputs, problem.level.inputs, problem.recorded)
        )

    return wrapper


def hessian(func: Callable, argnums: Argnums = 0) -> Callable:
    """A function that returns the Hessian of `func` by its arguments `argnums`: the derivatives of
    its gradient."""
    return jacfwd(jacrev(func, argnums), argnums)


__all__ = ["hessian", "jacfwd", "jacrev"]
