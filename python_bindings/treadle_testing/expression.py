"""Evaluates `pointwise:` and `reduce:` expressions of the model in NumPy: the reference of every
operator that has one.

This is an evaluator of its own, in float64, so that it shares nothing with the generated kernels
but the expression.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
from functools import lru_cache
from importlib import import_module
from typing import Any, Callable, Iterator, Mapping

import numpy as np

from .catalogue import Operator, scalar_functions
from .sample import Maker, Sample

try:
    from .special_reference import SPECIAL
except ModuleNotFoundError:  # without scipy there are no references for special functions
    SPECIAL = {}


def _elementwise(f: Callable[[float], float]) -> Callable[[np.ndarray], np.ndarray]:
    vector = np.vectorize(f, otypes=[np.float64])
    return lambda x: vector(x) if np.size(x) else np.asarray(x, dtype=np.float64)


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _digamma(x: float) -> float:
    if x <= 0 and x == math.floor(x):
        return math.copysign(math.inf, -1) if x else -math.copysign(math.inf, x)
    if x < 0:
        return _digamma(1 - x) - math.pi / math.tan(math.pi * x)
    shift = 0.0
    while x < 12:
        shift -= 1 / x
        x += 1
    z = 1 / (x * x)
    return (
        shift
        + math.log(x)
        - 0.5 / x
        - z * (1 / 12 - z * (1 / 120 - z * (1 / 252 - z * (1 / 240 - z / 132))))
    )


def _lgamma(x: float) -> float:
    return math.inf if x <= 0 and x == math.floor(x) else math.lgamma(x)


def _softplus(x: Any, beta: Any = 1, threshold: Any = 20) -> Any:
    return np.where(x * beta > threshold, x, np.logaddexp(x * beta, 0) / beta)


_erf, _erfc = _elementwise(math.erf), _elementwise(math.erfc)

# The references of functions for which the table names none of NumPy's or SciPy's.
WRITTEN: Mapping[str, Callable[..., Any]] = {
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "reciprocal": lambda x: 1 / x,
    "sigmoid": _sigmoid,
    "relu": lambda x: np.maximum(x, 0),
    "erf": _erf,
    "erfc": _erfc,
    "erfinv": _elementwise(lambda y: _inverse(math.erf, y, -6, 6)),
    "lgamma": _elementwise(_lgamma),
    "digamma": _elementwise(_digamma),
    "frac": lambda x: x - np.trunc(x),
    "sign": lambda x: x if _bools(x) else np.sign(x),
    "sgn": lambda x: (
        np.where(x == 0, 0, x / np.where(x == 0, 1, np.abs(x)))
        if np.iscomplexobj(x)
        else x
        if _bools(x)
        else np.sign(x)
    ),
    "trunc_divide": lambda a, b: np.trunc(a / b).astype(np.result_type(a, b)),
    "conj": lambda x: np.conj(x) if np.iscomplexobj(x) else x,
    "clamp": lambda x, lo, hi: np.minimum(np.maximum(x, lo), hi),
    "cast_bool": lambda x: np.asarray(x).astype(bool),
    "signbit": lambda x: np.signbit(x) if np.asarray(x).dtype.kind == "f" else np.asarray(x) < 0,
    "gelu": lambda x: 0.5 * x * (1 + _erf(x / np.sqrt(2))),
    "gelu_slope": lambda x: (
        0.5 * (1 + _erf(x / np.sqrt(2))) + x * np.exp(-x * x / 2) / np.sqrt(2 * np.pi)
    ),
    "gelu_tanh": lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    "silu": lambda x: x * _sigmoid(x),
    "softplus": _softplus,
    "nan_to_num": lambda x, n, p, m: np.nan_to_num(x, nan=n, posinf=p, neginf=m),
    **SPECIAL,
}


@lru_cache(maxsize=None)
def function(name: str) -> Callable[..., Any]:
    """A function of the table in NumPy. ModuleNotFoundError for one of SciPy's without it."""
    reference = scalar_functions()[name]["reference"]
    if reference is None:
        return WRITTEN[name]
    module, _, attribute = reference.rpartition(".")
    return getattr(import_module(module), attribute)


def _inverse(f: Callable[[float], float], y: float, low: float, high: float) -> float:
    """The inverse of an increasing function whose limits are -1 and 1."""
    if abs(y) >= 1:
        return math.nan if abs(y) > 1 else math.copysign(math.inf, y)
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if f(middle) < y else (low, middle)
    return (low + high) / 2


_BINARY: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: np.logical_or(a, b) if _bools(a, b) else a + b,
    "-": lambda a, b: np.logical_xor(a, b) if _bools(a, b) else a - b,
    "*": lambda a, b: np.logical_and(a, b) if _bools(a, b) else a * b,
    "/": lambda a, b: a / b,
    "%": np.remainder,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
    "&&": np.logical_and,
    "||": np.logical_or,
}


def _bools(*values: Any) -> bool:
    return all(np.asarray(v).dtype == bool for v in values)


CONSTANTS: Mapping[str, float] = {"inf": math.inf, "nan": math.nan}


def evaluate(tree: Mapping[str, Any], names: Mapping[str, Any]) -> Any:
    op = tree["op"]
    if op == "name":
        return names[tree["name"]] if tree["name"] in names else CONSTANTS[tree["name"]]
    if op == "int":
        return int(tree["value"], 0)
    if op == "float":
        return float(tree["value"])
    if op == "bool":
        return bool(tree["value"])
    if op == "call":
        return function(tree["fn"])(*(evaluate(a, names) for a in tree["args"]))
    if op == "binary":
        return _BINARY[tree["operator"]](evaluate(tree["lhs"], names), evaluate(tree["rhs"], names))
    if op == "unary":
        value = evaluate(tree["of"], names)
        return np.logical_not(value) if tree["operator"] == "!" else -value
    if op == "select":
        cond, *choices = (evaluate(tree[k], names) for k in ("cond", "then", "else"))
        if all(type(c) is int and 0 <= c < 256 for c in choices):
            choices = [np.uint8(c) for c in choices]  # the type that raises no other
        return np.where(cond, *choices)
    raise AssertionError(f"the reference cannot evaluate {tree}")


def _calls(tree: Any) -> Iterator[str]:
    if isinstance(tree, Mapping):
        if tree.get("op") == "call":
            yield tree["fn"]
        if tree.get("operator") == "/":
            yield "reciprocal"
        for v in tree.values():
            yield from _calls(v)
    elif isinstance(tree, (list, tuple)):
        for v in tree:
            yield from _calls(v)


def domain(op: Operator) -> tuple[float, float]:
    """A range in which its functions are defined, finite and, for gradients, smooth."""
    low, high = -2.0, 2.0
    for fn in _calls(op.json["pointwise"]["tree"]):
        samples = scalar_functions()[fn]["samples"]
        if samples is not None:
            low, high = max(low, samples[0]), min(max(high, samples[1]), samples[1])
    return low, high


# Arguments that are bool whatever the dtype of the others.
TRUTHS = ("condition", "mask")


def pointwise_samples(op: Operator, make: Maker) -> Iterator[Sample]:
    """Calls of a pointwise operator: full, broadcast, zero-dimensional and empty operands."""
    low, high = domain(op)
    tensors = [a["name"] for a in op.args if a["type"]["base"] == "Tensor"]
    # Numbers without a default take part in promotion, too.
    operands = tensors + [
        a["name"] for a in op.args if a["type"]["base"] == "Scalar" and a["default"] is None
    ]
    tree = op.json["pointwise"]["tree"]

    def expect(**names: Any) -> Any:
        compute = dict(names)
        if op.json["promote"] == "bool":
            compute = {k: np.asarray(v).astype(bool) for k, v in names.items()}
        elif op.json["promote"] == "float":
            compute = {
                k: v if np.iscomplexobj(v) else np.asarray(v, dtype=np.float64)
                for k, v in names.items()
            }
        with np.errstate(all="ignore"):
            result = evaluate(tree, compute)
        # A literal is an integer to NumPy; to an operator on bools it is a bool.
        whole = np.asarray(result).dtype.kind in "iu" and all(
            np.asarray(names[o]).dtype == bool for o in operands
        )
        of_bools = whole and op.json["promote"] in ("common", "none")
        return np.asarray(result).astype(bool) if of_bools else result

    shapes: list[list[tuple[int, ...]]] = [
        [(3, 4)] * len(tensors),
        [()] * len(tensors),
        [(0, 4)] * len(tensors),
        [(67,)] * len(tensors),
    ]
    if len(tensors) > 1:
        shapes += [
            [(3, 4), (4,)] + [(3, 1)] * (len(tensors) - 2),
            [(1, 4), (3, 1)] + [()] * (len(tensors) - 2),
        ]
    for chosen in shapes:
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        position = 0
        for a in op.args:
            if a["type"]["base"] == "Tensor":
                truth = a["name"] in TRUTHS
                value: Any = (
                    make.mask(chosen[position]) if truth else make(chosen[position], low, high)
                )
                position += 1
            elif a["default"] is not None and a["type"]["base"] != "Scalar":
                continue
            else:
                value = {"bool": True, "int": 2, "float": 1.5}.get(a["type"]["base"], make.scalar())
            if a["kwarg_only"]:
                kwargs[a["name"]] = value
            else:
                args.append(value)

        def reference(*positional: Any, **named: Any) -> Any:
            names = {
                a["name"]: v
                for a, v in zip((a for a in op.args if not a["kwarg_only"]), positional)
            }
            for a in op.args:
                if a["default"] is not None and a["name"] not in names:
                    names[a["name"]] = a["default"]["value"]
            names.update(named)
            return expect(**names)

        yield Sample(*args, expect=reference, **kwargs)
