"""The table: how far from the exact value each transcendental operator may be.

The bound of an operator that is one function of elements is the function's, in
aten/scalar/functions.yaml; those of the others are here. `./dev test` holds every operator to its
row, on the whole line or plane but for what `inside`, or the points of its reference, leave out;
docs/accuracy.md shows the table. The bounds hold with every set of vector instructions, so they are
above what one of them measures.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Mapping

from treadle_testing.catalogue import operators, scalar_functions

from . import units
from .units import Unit


@dataclass(frozen=True)
class Bound:
    """In ULP, of float32 and float64, and of complex64 and complex128 where there are any."""

    float32: float
    float64: float
    complex64: float | None = None
    complex128: float | None = None
    unit: Unit | None = None  # what it counts the last places of; without one, the value itself
    complex_unit: Unit | None = None
    range: str = "all numbers"
    inside: Callable[..., Any] | None = None  # `range` of arrays

    def of(self, dtype: str) -> float | None:
        return getattr(self, dtype)

    def unit_of(self, dtype: str) -> Unit | None:
        return self.complex_unit if dtype.startswith("complex") else self.unit


# The largest error of types with 16 bits, over all of their numbers: half for the last rounding,
# and what is left of float32's error.
OF_16_BITS = 0.51

# Functions without a bound for complex numbers: where their terms cancel, no digit is left.
CANCELS = frozenset({"logaddexp", "silu_backward"})

_COMPOSED: Mapping[str, Bound] = {
    "silu_backward": Bound(16, 5, unit=units.SILU_SLOPE),
    "_gelu_backward": Bound(4, 4, unit=units.GRADIENT),
    "_elu_backward": Bound(4, 4, unit=units.FACTOR),
    "softplus_backward": Bound(4, 4, unit=units.FACTOR),
    "elu": Bound(4, 4),
    "celu": Bound(4, 4),
    "selu": Bound(6, 6),
    "log_sigmoid": Bound(4, 4),
    "mish": Bound(6, 6, unit=units.FACTOR),
    "logit": Bound(2, 2, unit=units.ONE),
    "xlogy": Bound(2, 2),
    "special_xlog1py": Bound(4, 4),
    "special_entr": Bound(2, 2),
}

# Operators that are called through another, which has complex numbers as well.
_CALLED_AS = {"_logaddexp": "logaddexp"}


def _of_function(name: str) -> Bound:
    """A row of the table of functions."""
    row = scalar_functions()[name]
    above = row["above"]

    def unit(key: str) -> Unit | None:
        return None if row[key] is None else getattr(units, row[key].upper())

    return Bound(
        **row["ulp"],
        unit=unit("ulp_of"),
        complex_unit=unit("complex_ulp_of"),
        range=row["range"] or "all numbers",
        inside=None if above is None else lambda x: ~(x < above),
    )


def _of_functions() -> Mapping[str, Bound]:
    """The bounds of operators whose expression is a call of one function, in the order of the table
    of functions.
    """
    found: dict[str, list[str]] = {name: [] for name, f in scalar_functions().items() if f["ulp"]}
    for op in operators():
        tree = (op.json["pointwise"] or {"tree": {}})["tree"]
        if tree.get("op") != "call" or tree["fn"] not in found:
            continue
        plain = all(argument["op"] == "name" for argument in tree["args"])
        name = _CALLED_AS.get(op.name, op.name)
        if plain and name not in found[tree["fn"]]:
            found[tree["fn"]].append(name)
    return {name: _of_function(function) for function, names in found.items() for name in names}


BOUNDS: Mapping[str, Bound] = {**_of_functions(), **_COMPOSED}
