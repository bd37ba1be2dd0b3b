"""Which operators of the model are transcendental: those whose expression calls a function that is
not arithmetic.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Iterator, Mapping

from treadle_testing.catalogue import operators

# Functions of expressions that round at most once: exact choices, and what the processor computes.
# A function that is not named here is transcendental.
ARITHMETIC = frozenset(
    """
    abs square sqrt reciprocal floor ceil round trunc frac sign sgn maximum minimum fmax fmin clamp
    copysign nextafter where isnan isinf isfinite signbit real imag conj relu nan_to_num cast_bool
    logical_and logical_or logical_xor logical_not bitwise_and bitwise_or bitwise_xor bitwise_not
    shift_left shift_right gcd lcm fmod remainder floor_divide trunc_divide
    """.split()
)


def _calls(tree: Any) -> Iterator[str]:
    if isinstance(tree, Mapping):
        if tree.get("op") == "call":
            yield tree["fn"]
        tree = list(tree.values())
    if isinstance(tree, (list, tuple)):
        for branch in tree:
            yield from _calls(branch)


def transcendental() -> dict[str, set[str]]:
    """The functions that each such operator calls, by the operator's name."""
    found: dict[str, set[str]] = {}
    for op in operators():
        called = set(_calls((op.json["pointwise"] or {}).get("tree"))) - ARITHMETIC
        if called:
            found.setdefault(op.name, set()).update(called)
    return found
