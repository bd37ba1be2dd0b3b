"""Several modules, each called with inputs of its own."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence

from ..modules.module import Module


def parallel_apply(
    modules: Sequence[Module],
    inputs: Sequence[Any],
    kwargs_tup: Optional[Sequence[Dict[str, Any]]] = None,
    devices: Optional[Sequence[Any]] = None,
) -> List[Any]:
    """The result of each module for its inputs, a tuple of arguments or one argument. They are
    called one after the other: each operator uses all threads."""
    if len(modules) != len(inputs):
        raise AssertionError(
            "parallel_apply: expected as many inputs as modules, got "
            f"{len(inputs)} and {len(modules)}"
        )
    keywords = kwargs_tup if kwargs_tup is not None else [{}] * len(modules)
    return [
        module(*(given if isinstance(given, (list, tuple)) else (given,)), **keyword)
        for module, given, keyword in zip(modules, inputs, keywords)
    ]
