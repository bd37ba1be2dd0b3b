"""Measures one operator: its largest error over the points of its reference."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Callable, Mapping

import numpy as np

import treadle
from treadle_testing.catalogue import Operator, by_id, operators
from treadle_testing.ulps import Format, Wide, complex_ulps, ulps

from .in_the_complex_plane import IN_THE_COMPLEX_PLANE
from .in_the_plane import IN_THE_PLANE
from .on_a_line import ON_A_LINE
from .references import Reference
from .units import Unit

REFERENCES: Mapping[str, Reference] = {**ON_A_LINE, **IN_THE_PLANE}
COMPLEX = ("complex64", "complex128")
DENSE, SPARSE = 20000, 3000  # points of references that are cheap, and of mpmath's
OF_TYPES_WITH_16_BITS = ("float16", "bfloat16")


@dataclass(frozen=True)
class Worst:
    ulps: float
    text: str  # at what point, and what came of it


@lru_cache(maxsize=None)
def overloads() -> Mapping[str, tuple[Operator, ...]]:
    """Operators by name, those that take only tensors first."""
    found: dict[str, list[Operator]] = {}
    for op in operators():
        found.setdefault(op.name, []).append(op)
    return {
        name: tuple(sorted(ops, key=lambda o: sum(a["type"]["base"] == "Scalar" for a in o.args)))
        for name, ops in found.items()
    }


def _by_order(n: treadle.Tensor, x: treadle.Tensor) -> treadle.Tensor:
    """polygamma takes one order at a time."""
    f, orders = by_id()["polygamma"].function, n.numpy()
    result = np.empty_like(orders)
    for order in np.unique(orders):
        chosen = orders == order
        result[chosen] = f(int(order), treadle.from_numpy(x.numpy()[chosen])).numpy()
    return treadle.from_numpy(result)


def _gradient(f: Callable[..., treadle.Tensor]) -> Callable[..., treadle.Tensor]:
    def gradient(g: treadle.Tensor, x: treadle.Tensor) -> treadle.Tensor:
        x = x.clone().requires_grad_()
        return treadle.autograd.grad(f(x), x, g)[0]

    return gradient


# Operators that Python reaches by others.
CALLS: Mapping[str, Callable[..., treadle.Tensor]] = {
    "_gelu": lambda x: by_id()["gelu"].function(x),
    "_gelu_tanh": lambda x: by_id()["gelu"].function(x, approximate="tanh"),
    "_gelu_backward": _gradient(treadle.nn.functional.gelu),
    "_elu_backward": _gradient(treadle.nn.functional.elu),
    "softplus_backward": _gradient(treadle.nn.functional.softplus),
    "_angle": lambda x: treadle.angle(x),
    "polygamma": _by_order,
}


def function(name: str) -> Callable[..., treadle.Tensor]:
    return CALLS[name] if name in CALLS else overloads()[name][0].function


def _wide(array: np.ndarray) -> np.ndarray:
    return array.astype(np.clongdouble if np.iscomplexobj(array) else Wide)


def _worst(errors: np.ndarray, xs: tuple, got: np.ndarray, exact: np.ndarray) -> Worst:
    if not errors.size:
        return Worst(0, "nowhere")
    at = int(np.argmax(errors))
    point = ", ".join(str(x[at]) for x in xs)
    return Worst(float(errors[at]), f"at {point}: got {got[at]}, exactly {exact[at]}")


def exact_values(reference: Any, xs: tuple[np.ndarray, ...]) -> np.ndarray:
    """By the reference's quick form for float32, where it has one and the numbers are ordinary."""
    if xs[0].dtype != np.float32 or reference.quick is None:
        return reference.exact(*xs)
    values = _wide(reference.quick(*(x.astype(np.float64) for x in xs)))
    ends = ~np.isfinite(values) | np.any([~np.isfinite(x) | (x == 0) for x in xs], axis=0)
    values[ends] = reference.exact(*(x[ends] for x in xs))
    return values


def measure(
    name: str, dtype: str, unit: Unit | None = None, inside: Callable[..., Any] | None = None
) -> Worst:
    """The largest error, of float32, float64 and complex types."""
    reference = (IN_THE_COMPLEX_PLANE if dtype in COMPLEX else REFERENCES)[name]
    if dtype in COMPLEX:
        count = DENSE // 20
    else:
        dense = reference.quick is not None and dtype == "float32" or reference.by_c_library
        count = DENSE if dense else SPARSE // reference.slow
    with np.errstate(all="ignore"):
        xs = reference.arguments(np.dtype(dtype), count)
        if inside is not None:
            xs = tuple(x[np.broadcast_to(inside(*xs), x.shape)] for x in xs)
        exact = exact_values(reference, xs) if dtype not in COMPLEX else reference.exact(*xs)
        got = function(name)(*(treadle.from_numpy(x) for x in xs)).numpy()
        size = None
        if unit is not None:
            modulus = Format.of(dtype).within(np.abs(exact))
            size = unit.size(modulus, dtype, *map(_wide, xs))
        if np.iscomplexobj(got):
            errors = complex_ulps(got, exact, dtype, size)
        else:
            signed = getattr(reference, "signed_zeros", True)
            errors = ulps(got, exact.real if dtype in COMPLEX else exact, dtype, size, signed)
    return _worst(errors, xs, got, exact)


def measure_16_bits(name: str, dtype: str) -> Worst:
    """The largest error over every number of a type with 16 bits, from what float64 gives."""
    bits = treadle.from_numpy(np.arange(-(2**15), 2**15).astype(np.int16))
    x = bits.view(getattr(treadle, dtype))
    f = function(name)
    got = f(x).to(treadle.float64).numpy()
    exact = _wide(f(x.to(treadle.float64)).numpy())
    with np.errstate(all="ignore"):
        errors = ulps(got, exact, dtype)
    return _worst(errors, (x.to(treadle.float64).numpy(),), got, exact)
