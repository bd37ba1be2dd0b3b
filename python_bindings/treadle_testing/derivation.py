"""Checks of what the generator derives from pointwise expressions, for every entry that has one,
whether its formula is by hand or not:

    derived_gradients(op, "float64")    the derived gradients are those that autograd computes
    tangents(op, "float64")             the derived tangent is that of finite differences

The formulas of the model are evaluated here by the operators that they name.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
import operator
from typing import Any, Callable, Iterator, Mapping

import numpy as np

import treadle

from .cases import samples_of
from .catalogue import Operator, by_id
from .sample import Sample, map_arrays, to_array, to_tensor

Tensor = treadle.Tensor
Node = Mapping[str, Any]
STEP = 1e-6

_CONSTANTS = {"inf": math.inf, "nan": math.nan, "pi": math.pi}
_INFIX: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "&&": treadle.logical_and,
    "||": treadle.logical_or,
}


def _conj(number: Any) -> Any:
    return number.conjugate()


# The helpers of autograd/formulas.yaml that derived formulas call. Python has no functions of them.
_HELPERS: Mapping[str, Callable[..., Any]] = {
    "scaled": lambda grad, factor: grad * _conj(factor),
    "div_by_scalar": lambda grad, divisor: grad / _conj(divisor),
}


def evaluate(node: Node, names: Mapping[str, Any]) -> Any:
    """The value of a formula, with values for its names."""
    kind = node["op"]
    if kind == "name":
        return names[node["name"]] if node["name"] in names else _CONSTANTS[node["name"]]
    if kind == "int":
        return int(node["value"])
    if kind == "float":
        return float(node["value"])
    if kind == "unary":
        value = evaluate(node["of"], names)
        return -value if node["operator"] == "-" else treadle.logical_not(value)
    if kind == "binary":
        return _INFIX[node["operator"]](evaluate(node["lhs"], names), evaluate(node["rhs"], names))
    assert kind == "call", f"expected a formula, got {node}"
    callee = node["callee"]
    arguments = [evaluate(argument, names) for argument in node["args"]]
    if callee["kind"] == "helper":
        return _HELPERS[callee["function"]](*arguments)
    positional, named = [], {}
    for a, value in zip(by_id()[callee["name"]].args, arguments):
        if a["kwarg_only"]:
            named[a["name"]] = value
        else:
            positional.append(value)
    return getattr(treadle.ops.aten, callee["function"])(*positional, **named)


# ---- calls ---------------------------------------------------------------------------------------


def _named(op: Operator, sample: Sample, dtype: str) -> dict[str, Any]:
    """The arguments of a sample by name, arrays as tensors."""
    given = map_arrays(sample.args, lambda a: to_tensor(a, dtype))
    names = {a["name"]: value for a, value in zip(op.args, given)}
    names |= {k: map_arrays(v, lambda a: to_tensor(a, dtype)) for k, v in sample.kwargs.items()}
    for a in op.args:
        if a["name"] not in names:
            names[a["name"]] = a["default"]["value"]
    return names


def _call(op: Operator, names: Mapping[str, Any]) -> Tensor:
    positional = [names[a["name"]] for a in op.args if not a["kwarg_only"]]
    return op.function(
        *positional, **{a["name"]: names[a["name"]] for a in op.args if a["kwarg_only"]}
    )


def _calls(op: Operator, dtype: str) -> Iterator[dict[str, Any]]:
    for sample in samples_of(op, dtype):
        if sample.grad and sample.domain is None and sample.settle is None:
            names = _named(op, sample, dtype)
            if all(isinstance(names[name], Tensor) for name in op.json["derivation"]["gradients"]):
                yield names


def _random(rng: np.random.Generator, like: Tensor) -> Tensor:
    values = rng.standard_normal(tuple(like.shape))
    if like.is_complex():
        values = values + 1j * rng.standard_normal(tuple(like.shape))
    return treadle.tensor(values).to(like.dtype)


def _changing(op: Operator, names: Mapping[str, Any]) -> list[str]:
    """The arguments that are differentiated."""
    gradients = op.json["derivation"]["gradients"]
    return [n for n in gradients if names[n].is_floating_point() or names[n].is_complex()]


def _reduced(gradient: Tensor, like: Tensor) -> Tensor:
    """As the generated nodes do: summed over the broadcast dimensions, of the argument's dtype."""
    if gradient.is_complex() and not like.is_complex():
        gradient = treadle.real(gradient)
    return gradient.sum_to_size(like.shape).to(like.dtype)


def derived_gradients(op: Operator, dtype: str) -> None:
    rng = np.random.default_rng(1)
    for names in _calls(op, dtype):
        changing = _changing(op, names)
        leaves = {n: names[n].clone().requires_grad_() for n in changing}
        result = _call(op, {**names, **leaves})
        if not changing or not result.requires_grad:
            continue
        start = _random(rng, result.detach())
        wanted = treadle.autograd.grad(result, list(leaves.values()), start)
        values = {**names, "grad": start, "result": result.detach()}
        for name, want in zip(changing, wanted):
            tree = op.json["derivation"]["gradients"][name]["tree"]
            got = _reduced(evaluate(tree, values), names[name])
            np.testing.assert_allclose(
                to_array(got), to_array(want), rtol=1e-9, atol=1e-9, err_msg=f"{op.id} by {name}"
            )


def tangents(op: Operator, dtype: str) -> None:
    rng = np.random.default_rng(2)
    for names in _calls(op, dtype):
        changing = _changing(op, names)
        directions = {n: _random(rng, names[n]) for n in changing}

        def moved(step: float) -> Tensor:
            return _call(op, {**names, **{n: names[n] + d * step for n, d in directions.items()}})

        values = {**names, "result": moved(0)}
        values |= {f"{n}_t": d for n, d in directions.items()}
        got = evaluate(op.json["derivation"]["tangent"]["tree"], values)
        want = (moved(STEP) - moved(-STEP)) / (2 * STEP)
        np.testing.assert_allclose(
            to_array(got + treadle.zeros_like(want)),
            to_array(want),
            rtol=1e-5,
            atol=1e-6,
            err_msg=op.id,
        )
