"""Gradients and products with Jacobians as functions of functions.

Example:

    grad(f)(x)                               # d f(x) / d x
    output, pull = vjp(f, x); pull(v)        # v^T J
    output, u = jvp(f, (x,), (v,))           # J v
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import functools
from typing import Any, Callable, Tuple

from treadle import _C
from treadle.autograd._derivatives import Pushforward, or_zeros
from treadle.func._levels import Argnums, Arguments, Level, flat_outputs, split_aux
from treadle.utils._pytree import tree_flatten

Tensor = _C.Tensor


# ---- gradients of scalar functions ----


def _both(op: str, func: Callable, argnums: Argnums, has_aux: bool) -> Callable:
    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Tuple[Any, Any]:
        given = Arguments(op, args, argnums)
        level = Level(op, given.chosen())
        result = level.call(func, *given.with_chosen(level.arguments()), **kwargs)
        value, aux = split_aux(op, result, has_aux)
        if not isinstance(value, Tensor):
            raise RuntimeError(
                f"{op}: expected the function to return a Tensor, got {type(value).__name__}"
            )
        if value.dim() != 0:
            raise RuntimeError(
                f"{op}: expected the function to return a scalar Tensor, got one with "
                f"{value.dim()} dims; vjp and jacrev take such functions"
            )
        found = level.gradients((value,), (None,), level.reaches_outside((value,)))
        gradient = level.spec.unflatten(or_zeros(level.settle(found), level.inputs))
        value = level.settle(value)
        return gradient, ((value, level.settle(aux)) if has_aux else value)

    return wrapper


def grad_and_value(func: Callable, argnums: Argnums = 0, has_aux: bool = False) -> Callable:
    """A function that returns the gradient of `func`, a scalar function, and its value.

    The gradient has the form of the argument, or arguments, `argnums`. With `has_aux`, `func`
    returns (value, aux), and the result is (gradient, (value, aux)).
    """
    return _both("grad_and_value", func, argnums, has_aux)


def grad(func: Callable, argnums: Argnums = 0, has_aux: bool = False) -> Callable:
    """A function that returns the gradient of `func`, a scalar function.

    The gradient has the form of the argument, or arguments, `argnums`. With `has_aux`, `func`
    returns (value, aux), and the result is (gradient, aux).
    """
    both = _both("grad", func, argnums, has_aux)

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        gradient, value = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return wrapper


# ---- products with the Jacobian ----


def _match(op: str, what: str, tree: Any, spec: Any, like: Tuple[Tensor, ...]) -> Tuple[Any, ...]:
    """The leaves of `tree`, which must have the form and the shapes of `like`."""
    leaves, given = tree_flatten(tree)
    if given != spec:
        raise RuntimeError(f"{op}: expected {what} to have the structure {spec}, got {given}")
    for i, (leaf, other) in enumerate(zip(leaves, like)):
        if not isinstance(leaf, Tensor):
            raise RuntimeError(f"{op}: expected {what} to be tensors, got {type(leaf).__name__}")
        if leaf.shape != other.shape:
            raise RuntimeError(
                f"{op}: expected {what} of shape {tuple(other.shape)}, got {tuple(leaf.shape)} "
                f"at {i}"
            )
    return tuple(leaves)


def vjp(func: Callable, *primals: Any, has_aux: bool = False) -> Tuple[Any, ...]:
    """The output of `func` at `primals`, and a function that takes a cotangent of the output's form
    to a tuple of gradients, one for each of `primals`.

    With `has_aux`, `func` returns (output, aux), and aux comes third.
    """
    op = "vjp"
    level = Level(op, primals)
    result = level.call(func, *level.arguments())
    output, aux = split_aux(op, result, has_aux)
    outputs, spec = flat_outputs(op, output)
    outside = level.reaches_outside(outputs)

    def pull(cotangents: Any, retain_graph: bool = True, create_graph: Any = None) -> Any:
        starts = _match(op, "cotangents", cotangents, spec, outputs)
        recorded = _C.is_grad_enabled() and (outside or any(s.requires_grad for s in starts))
        found = level.gradients(outputs, starts, recorded)
        return level.spec.unflatten(or_zeros(level.settle(found), level.inputs))

    settled = spec.unflatten(level.settle(outputs))
    return (settled, pull, level.settle(aux)) if has_aux else (settled, pull)


class _Push:
    """Derivatives of a function's output along directions of its arguments."""

    def __init__(self, op: str, func: Callable, primals: Tuple[Any, ...], has_aux: bool) -> None:
        self.op, self.level = op, Level(op, primals)
        result = self.level.call(func, *self.level.arguments())
        output, self.aux = split_aux(op, result, has_aux)
        self.outputs, self.spec = flat_outputs(op, output)
        self.outside = self.level.reaches_outside(self.outputs)
        self.push = Pushforward(self.outputs, self.level.inputs)

    def output(self) -> Any:
        return self.spec.unflatten(self.level.settle(self.outputs))

    def along(self, tangents: Any, strict: bool = False) -> Any:
        level = self.level
        directions = _match(self.op, "tangents", tangents, level.spec, level.inputs)
        recorded = _C.is_grad_enabled() and (
            self.outside or any(d.requires_grad for d in directions)
        )
        found = self.push.along(directions, recorded)
        if strict and any(value is None for value in found):
            raise RuntimeError(
                f"{self.op}: expected the output to depend on the inputs, as strict=True asks, got "
                "one that is independent"
            )
        return self.spec.unflatten(or_zeros(level.settle(found), self.outputs))


def jvp(
    func: Callable,
    primals: Tuple[Any, ...],
    tangents: Tuple[Any, ...],
    *,
    strict: bool = False,
    has_aux: bool = False,
) -> Tuple[Any, ...]:
    """The output of `func` at `primals`, and its derivative along `tangents`, of the same form.

    Computed by differentiating backward, so that `func` must be twice differentiable. With
    `has_aux`, `func` returns (output, aux), and aux comes third. RuntimeError in `strict` mode for
    an output that does not depend on the inputs.
    """
    op = "jvp"
    for name, value in (("primals", primals), ("tangents", tangents)):
        if not isinstance(value, tuple):
            raise RuntimeError(f"{op}: expected {name} to be a tuple, got {type(value).__name__}")
    spec = tree_flatten(primals)[1]
    if tree_flatten(tangents)[1] != spec:
        raise RuntimeError(
            f"{op}: expected primals and tangents of the same structure, got {spec} and "
            f"{tree_flatten(tangents)[1]}"
        )
    push = _Push(op, func, primals, has_aux)
    tangent = push.along(tangents, strict)
    if has_aux:
        return push.output(), tangent, push.level.settle(push.aux)
    return push.output(), tangent


def linearize(func: Callable, *primals: Any) -> Tuple[Any, Callable]:
    """The output of `func` at `primals`, and its derivative there: a function of tangents."""
    push = _Push("linearize", func, primals, False)

    def derivative(*tangents: Any) -> Any:
        return push.along(tangents)

    return push.output(), derivative


__all__ = ["grad", "grad_and_value", "jvp", "linearize", "vjp"]
