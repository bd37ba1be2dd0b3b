"""Jacobians, Hessians and their products with vectors, of Python functions of tensors.

    J = jacobian(lambda x: x.exp(), x)              # J[i, j] = d out_i / d x_j
    out, u = jvp(f, (x, y), (v, w))                 # J times (v, w)

A function of several tensors is given a tuple, and tuples come back; a tensor alone stays alone.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import functools
from typing import Any, Callable, Optional, Tuple, Union

from treadle import _C
from treadle.autograd._derivatives import (
    MaybeTensors,
    Pushforward,
    gradients,
    jacobian_columns,
    jacobian_rows,
    or_zeros,
    set_apart,
)
from treadle.autograd.grad_mode import enable_grad

Tensor = _C.Tensor
Tensors = Tuple[Tensor, ...]
OneOrMore = Union[Tensor, Tensors]


# ---- what is asked ----


def _as_tuple(op: str, what: str, value: Any) -> Tuple[bool, Tensors]:
    """Whether `value` is a tuple, and its tensors; TypeError for anything but tensors."""
    several = isinstance(value, tuple)
    items = value if several else (value,)
    for i, item in enumerate(items):
        if not isinstance(item, Tensor):
            where = f" at index {i}" if several else ""
            raise TypeError(
                f"{op}: expected {what} to be a Tensor or a tuple of Tensors, got "
                f"{type(item).__name__}{where}"
            )
    return several, items


def _as_given(values: Tensors, several: bool, create_graph: bool) -> OneOrMore:
    """Results in the form they are handed back: without history, unless it was asked for."""
    kept = values if create_graph else tuple(v.detach() for v in values)
    return kept if several else kept[0]


class _Call:
    """One call of a user's function, with inputs set apart so that it can be differentiated."""

    def __init__(
        self, op: str, func: Callable, inputs: Any, create_graph: bool, strict: bool
    ) -> None:
        self.op, self.create_graph, self.strict = op, create_graph, strict
        self.several_inputs, given = _as_tuple(op, "inputs", inputs)
        with enable_grad():
            self.inputs = set_apart(given, connected=create_graph)
            self.result = func(*self.inputs)
            self.several_outputs, self.outputs = _as_tuple(op, "the function's output", self.result)
        for i, output in enumerate(self.outputs):
            self.demand(output.requires_grad, f"output {i} to depend on the inputs")

    def demand(self, holds: bool, what: str) -> None:
        """A demand of strict mode: RuntimeError where it does not hold."""
        if self.strict and not holds:
            raise RuntimeError(
                f"{self.op}: expected {what}, as strict=True asks, got one that is independent; "
                "with strict=False its derivative is zero"
            )

    def direction(self, v: Any, like: Tensors, several: bool, whose: str) -> Optional[Tensors]:
        """The vector, checked against the tensors it goes with; None where it may be left out."""
        if v is None:
            if len(like) != 1 or like[0].numel() != 1:
                raise RuntimeError(
                    f"{self.op}: expected a vector v, as the {whose} is not a single Tensor with a "
                    "single element, got None"
                )
            return None
        _, vectors = _as_tuple(self.op, "v", v)
        if len(vectors) != len(like):
            wanted = f"a tuple of {len(like)} Tensors" if several else "a single Tensor"
            raise RuntimeError(f"{self.op}: expected v to be {wanted}, got {len(vectors)}")
        for i, (one, other) in enumerate(zip(vectors, like)):
            if one.shape != other.shape:
                entry = f"entry {i} of v" if several else "v"
                raise RuntimeError(
                    f"{self.op}: expected {entry} to have the size {tuple(other.shape)} of the "
                    f"{whose}, got {tuple(one.shape)}"
                )
        with enable_grad():
            return set_apart(vectors, connected=self.create_graph, requires_grad=False)

    def scalar(self) -> Tensor:
        """The output of a function that must return one number."""
        if self.several_outputs:
            raise RuntimeError(f"{self.op}: expected a function of a single Tensor, got a tuple")
        if self.outputs[0].numel() != 1:
            raise RuntimeError(
                f"{self.op}: expected the function's Tensor to have a single element, got shape "
                f"{tuple(self.outputs[0].shape)}"
            )
        return self.outputs[0]

    def filled(self, values: MaybeTensors, like: Tensors, what: str) -> Tensors:
        """Zeros where there is no derivative, unless strict."""
        for i, value in enumerate(values):
            dependent = value is not None and (value.requires_grad or not self.create_graph)
            self.demand(dependent, what.format(i=i))
        return or_zeros(values, like)

    def filler(self, number: int) -> Callable[[MaybeTensors, Tensors], Tensors]:
        """`filled` for the derivatives of one output by the inputs."""
        return functools.partial(self.filled, what=f"output {number} to depend on input {{i}}")

    def outputs_as_given(self) -> OneOrMore:
        return _as_given(self.outputs, self.several_outputs, self.create_graph)

    def scalar_gradient(self) -> MaybeTensors:
        """The gradient of a scalar function, itself differentiable."""
        output = self.scalar()
        with enable_grad():
            found = gradients((output,), self.inputs, None, create_graph=True)
        for i, g in enumerate(found):
            self.demand(g is not None, f"the output to depend on input {i}")
            self.demand(g.requires_grad if g is not None else False, f"jacobian {i} to vary")
        return found


# ---- products with vectors ----


def vjp(
    func: Callable[..., OneOrMore],
    inputs: OneOrMore,
    v: Optional[OneOrMore] = None,
    create_graph: bool = False,
    strict: bool = False,
) -> Tuple[OneOrMore, OneOrMore]:
    """The output of `func`, and v^T J, the vector-Jacobian product, of the form of the inputs.

    `v` has the form of the output; it may be left out for an output of one element. With
    `create_graph` both results can be differentiated. RuntimeError in `strict` mode for an input
    that the output does not depend on.
    """
    call = _Call("vjp", func, inputs, create_graph, strict)
    start = call.direction(v, call.outputs, call.several_outputs, "output")
    found = gradients(call.outputs, call.inputs, start, create_graph)
    found = call.filled(found, call.inputs, "the output to depend on input {i}")
    return call.outputs_as_given(), _as_given(found, call.several_inputs, create_graph)


def jvp(
    func: Callable[..., OneOrMore],
    inputs: OneOrMore,
    v: Optional[OneOrMore] = None,
    create_graph: bool = False,
    strict: bool = False,
) -> Tuple[OneOrMore, OneOrMore]:
    """The output of `func`, and J v, the Jacobian-vector product, of the form of the output.

    `v` has the form of the inputs; it may be left out for an input of one element. Computed by
    differentiating backward, so that `func` must be twice differentiable.
    """
    call = _Call("jvp", func, inputs, create_graph, strict)
    start = call.direction(v, call.inputs, call.several_inputs, "input")
    push = Pushforward(call.outputs, call.inputs)
    for i, pulled in enumerate(push.pulled):
        call.demand(pulled is not None, f"the output to depend on input {i}")
    found = push.along(start or (None,), create_graph)
    found = call.filled(found, call.outputs, "output {i} to depend on the inputs")
    return call.outputs_as_given(), _as_given(found, call.several_outputs, create_graph)


def vhp(
    func: Callable[..., Tensor],
    inputs: OneOrMore,
    v: Optional[OneOrMore] = None,
    create_graph: bool = False,
    strict: bool = False,
) -> Tuple[Tensor, OneOrMore]:
    """The output of `func`, a scalar function, and v^T H, the vector-Hessian product."""
    call = _Call("vhp", func, inputs, create_graph, strict)
    start = call.direction(v, call.inputs, call.several_inputs, "input")
    gradient = call.scalar_gradient()
    found = gradients(gradient, call.inputs, start, create_graph)
    found = call.filled(found, call.inputs, "the jacobian to depend on input {i}")
    return call.outputs_as_given(), _as_given(found, call.several_inputs, create_graph)  # type: ignore[return-value]


def hvp(
    func: Callable[..., Tensor],
    inputs: OneOrMore,
    v: Optional[OneOrMore] = None,
    create_graph: bool = False,
    strict: bool = False,
) -> Tuple[Tensor, OneOrMore]:
    """The output of `func`, a scalar function, and H v, the Hessian-vector product.

    Where second derivatives are continuous, `vhp` gives the same and is cheaper.
    """
    call = _Call("hvp", func, inputs, create_graph, strict)
    start = call.direction(v, call.inputs, call.several_inputs, "input")
    push = Pushforward(or_zeros(call.scalar_gradient(), call.inputs), call.inputs)
    found = push.along(start or (None,), create_graph)
    found = call.filled(found, call.inputs, "jacobian {i} to depend on the inputs")
    return call.outputs_as_given(), _as_given(found, call.several_inputs, create_graph)  # type: ignore[return-value]


# ---- whole matrices ----


def _check_strategy(
    op: str, strategy: str, create_graph: bool, strict: bool, vectorize: bool
) -> None:
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(
            f'{op}: expected strategy to be "forward-mode" or "reverse-mode", got {strategy!r}'
        )
    if strategy == "forward-mode":
        if create_graph:
            raise NotImplementedError(
                f'{op}: expected create_graph=False or strategy="reverse-mode", got '
                "create_graph=True in forward mode"
            )
        if strict:
            raise RuntimeError(
                f'{op}: expected strict=False or strategy="reverse-mode", got strict=True in '
                "forward mode"
            )
        if not vectorize:
            raise NotImplementedError(
                f"{op}: expected vectorize=True in forward mode, got vectorize=False"
            )
    elif strict and vectorize:
        raise RuntimeError(f"{op}: expected strict=False or vectorize=False, got both of them True")


def jacobian(
    func: Callable[..., OneOrMore],
    inputs: OneOrMore,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The Jacobian of `func` at `inputs`: of shape output.shape + input.shape.

    With several outputs and inputs J[i][j] is the block of output i and input j; with several of
    one only, a tuple of blocks. `strategy` says whether rows are computed ("reverse-mode") or
    columns ("forward-mode"); as `vectorize`, it does not change the result.
    """
    _check_strategy("jacobian", strategy, create_graph, strict, vectorize)
    call = _Call("jacobian", func, inputs, create_graph, strict)
    with enable_grad():
        if strategy == "forward-mode":
            blocks = jacobian_columns(call.outputs, call.inputs)
        else:
            blocks = [
                jacobian_rows(output, call.inputs, create_graph, call.filler(i))  # type: ignore[arg-type]
                for i, output in enumerate(call.outputs)
            ]
    kept = tuple(_as_given(tuple(row), call.several_inputs, create_graph) for row in blocks)
    return kept if call.several_outputs else kept[0]


def hessian(
    func: Callable[..., Tensor],
    inputs: OneOrMore,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The Hessian of `func`, a scalar function, at `inputs`: of shape input.shape + input.shape.

    With several inputs H[i][j] is the block of inputs i and j. `outer_jacobian_strategy` is that
    of the Jacobian of the gradient.
    """
    several, given = _as_tuple("hessian", "inputs", inputs)
    _check_strategy("hessian", outer_jacobian_strategy, create_graph, strict, vectorize)

    def gradient(*values: Tensor) -> Tensors:
        call = _Call("hessian", func, values, True, strict)
        return or_zeros(call.scalar_gradient(), call.inputs)

    found = jacobian(gradient, given, create_graph, strict, vectorize, outer_jacobian_strategy)
    return found if several else found[0][0]


__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]
