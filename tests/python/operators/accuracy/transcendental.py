"""The transcendental operators of the model: those whose expression calls a function that rounds
more than once, as the table of functions says.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Iterator, Mapping

from treadle_testing.catalogue import operators, scalar_functions


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
    bounded = {name for name, f in scalar_functions().items() if f["ulp"]}
    found: dict[str, set[str]] = {}
    for op in operators():
        called = set(_calls((op.json["pointwise"] or {}).get("tree"))) & bounded
        if called:
            found.setdefault(op.name, set()).update(called)
    return found
