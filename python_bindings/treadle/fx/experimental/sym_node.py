"""Numbers with the operators of symbols: DynamicInt, and the operators by their names."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
import operator
from typing import Any, Callable, Dict

from treadle import _names
from treadle._functions import symbolic

__getattr__ = _names.attributes_of(__name__)

_OPERATORS: Dict[str, Callable[..., Any]] = {
    **{
        name: getattr(operator, name)
        for name in ("abs", "add", "eq", "ge", "gt", "le", "lshift", "lt", "mod", "mul", "ne")
        + ("neg", "pos", "rshift", "sub", "xor")
    },
    "and": operator.and_,
    "or": operator.or_,
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
    "float_pow": operator.pow,
    "pow_by_natural": operator.pow,
    "float_truediv": operator.truediv,
    "int_truediv": operator.truediv,
    "int_floordiv": operator.floordiv,
    "ceil": math.ceil,
    "floor": math.floor,
    "trunc": math.trunc,
    "round": round,
    "is_integer": lambda x: float(x).is_integer(),
    **{
        f"sym_{name}": getattr(math, name)
        for name in ("acos", "asin", "atan", "cos", "cosh", "log2", "sin", "sinh", "tan", "tanh")
    },
    "sym_sqrt": symbolic.sym_sqrt,
    **{
        f"sym_{name}": getattr(symbolic, f"sym_{name}")
        for name in ("float", "ite", "max", "min", "not")
    },
}

magic_methods = set(_OPERATORS)


def method_to_operator(method: str) -> Callable[..., Any]:
    """The function of numbers by the name of an operator of symbols. KeyError for another name."""
    return _OPERATORS[method]


def _wrapped(value: Any) -> Any:
    return DynamicInt(value) if type(value) is int else value


def _operator(name: str) -> Callable[..., Any]:
    of_int = getattr(int, name)

    def method(self: Any, *args: Any) -> Any:
        return _wrapped(of_int(self, *args))

    method.__name__ = name
    return method


class DynamicInt(int):
    """An int that a compiler would not take for a constant. Integer arithmetic with it gives one,
    too. AssertionError for what is no int."""

    def __new__(cls, val: int) -> DynamicInt:
        if not isinstance(val, int):
            raise AssertionError(f"DynamicInt: expected a int, got a {type(val).__name__}")
        return super().__new__(cls, val)

    def __repr__(self) -> str:
        return f"DynamicInt({int(self)})"

    __str__ = __repr__


_TWO = ("add", "sub", "mul", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift")
for _name in _TWO:
    for _method in (f"__{_name}__", f"__r{_name}__"):
        setattr(DynamicInt, _method, _operator(_method))
for _name in ("neg", "pos", "abs", "floor", "ceil", "trunc"):
    setattr(DynamicInt, f"__{_name}__", _operator(f"__{_name}__"))
