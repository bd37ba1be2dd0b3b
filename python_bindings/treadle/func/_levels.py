"""The common parts of the transforms of treadle.func: their arguments, levels of differentiation.

A transform differentiates with respect to tensors of its own, laid over its arguments. Its results
have history only if they depend on something outside that records: a tensor that requires grad, or
the tensors of a transform around it. So levels nest as functions do.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, Sequence, Tuple, Union

from treadle import _C
from treadle.autograd._derivatives import MaybeTensors, gradients, set_apart
from treadle.autograd.grad_mode import enable_grad
from treadle.utils._pytree import TreeSpec, tree_flatten, tree_leaves, tree_map

Tensor = _C.Tensor
Argnums = Union[int, Tuple[int, ...]]


class Level:
    """One application of a transform: its function is called with tensors set apart."""

    def __init__(self, op: str, arguments: Any) -> None:
        self.op = op
        self.recording = _C.is_grad_enabled()
        leaves, self.spec = tree_flatten(arguments)
        for leaf in leaves:
            if not isinstance(leaf, Tensor):
                raise ValueError(
                    f"{op}: expected tensors in the arguments it differentiates by, got "
                    f"{type(leaf).__name__}"
                )
            if not (leaf.dtype.is_floating_point or leaf.dtype.is_complex):
                raise RuntimeError(
                    f"{op}: only Tensors of floating point and complex dtype can require "
                    f"gradients, got {leaf.dtype}"
                )
        with enable_grad():
            self.inputs = set_apart(leaves, connected=self.recording)

    def call(self, function: Callable, *args: Any, **kwargs: Any) -> Any:
        """The function's result, recorded whatever the mode outside."""
        with enable_grad():
            return function(*args, **kwargs)

    def arguments(self) -> Any:
        """The tensors set apart, in the form of the arguments."""
        return self.spec.unflatten(self.inputs)

    def reaches_outside(self, tensors: Sequence[Any]) -> bool:
        """Whether the history of any of `tensors` leads to something not of this level alone."""
        return self.recording and _C._reaches_other_leaves(
            tuple(t for t in tensors if isinstance(t, Tensor) and t.requires_grad), self.inputs
        )

    def settle(self, tree: Any) -> Any:
        """Results as they leave the level: history of its own making is cut off."""

        def cut(value: Any) -> Any:
            if not isinstance(value, Tensor) or not value.requires_grad:
                return value
            return value if self.reaches_outside((value,)) else value.detach()

        return tree_map(cut, tree)

    def gradients(
        self, outputs: Sequence[Tensor], starts: Sequence[Any], create_graph: bool
    ) -> MaybeTensors:
        """The gradient for each input, None where no output depends on it."""
        return gradients(outputs, self.inputs, starts, create_graph)


def flat_outputs(op: str, tree: Any) -> Tuple[Tuple[Tensor, ...], TreeSpec]:
    """The tensors that a function returned, and their form; RuntimeError for anything else."""
    leaves, spec = tree_flatten(tree)
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(
                f"{op}: expected the function to return only tensors, got unsupported type "
                f"{type(leaf).__name__}"
            )
    if not leaves:
        raise RuntimeError(f"{op}: expected the function to have a non-empty output, got {tree!r}")
    return tuple(leaves), spec


def split_aux(op: str, result: Any, has_aux: bool) -> Tuple[Any, Any]:
    """The output that is differentiated, and what comes along with it."""
    if not has_aux:
        return result, None
    if not (isinstance(result, tuple) and len(result) == 2):
        raise RuntimeError(
            f"{op}: expected the output of the function to be a tuple (output, aux), as has_aux "
            f"is True, got {type(result).__name__}"
        )
    for leaf in tree_leaves(result[1]):
        if not isinstance(leaf, Tensor):
            raise RuntimeError(
                f"{op}: expected tensors in aux, got unsupported type {type(leaf).__name__}"
            )
    return result[0], result[1]


def check_argnums(op: str, argnums: Any, count: int) -> Tuple[int, ...]:
    """The numbers of the arguments to differentiate by, all >= 0."""
    if not isinstance(argnums, (int, tuple)) or isinstance(argnums, bool):
        raise RuntimeError(
            f"{op}: argnums must be int or Tuple[int, ...], got: {type(argnums).__name__}"
        )
    numbers = argnums if isinstance(argnums, tuple) else (argnums,)
    if not numbers:
        raise RuntimeError(f"{op}: argnums must be non-empty")
    for number in numbers:
        if not isinstance(number, int):
            raise RuntimeError(f"{op}: argnums elements must be int, got {type(number).__name__}")
        if not -count <= number < count:
            raise RuntimeError(f"{op}: got argnum={number}, but only {count} positional inputs")
    wrapped = tuple(number % count for number in numbers)
    if len(set(wrapped)) != len(wrapped):
        raise RuntimeError(f"{op}: argnums elements must be unique, got {argnums}")
    return wrapped


class Arguments:
    """Positional arguments, some of which are differentiated by."""

    def __init__(self, op: str, args: Tuple[Any, ...], argnums: Argnums) -> None:
        self.args, self.one = args, not isinstance(argnums, tuple)
        self.numbers = check_argnums(op, argnums, len(args))

    def chosen(self) -> Any:
        """Those that are: an argument alone, or a tuple of several."""
        found = tuple(self.args[number] for number in self.numbers)
        return found[0] if self.one else found

    def with_chosen(self, values: Any) -> Tuple[Any, ...]:
        """All arguments, with others in place of the chosen ones."""
        replaced = list(self.args)
        for number, value in zip(self.numbers, (values,) if self.one else values):
            replaced[number] = value
        return tuple(replaced)
