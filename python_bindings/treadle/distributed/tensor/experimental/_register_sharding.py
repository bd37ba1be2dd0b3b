"""register_sharding: placements that a program gives for an operator of its own."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable

from treadle.distributed.tensor import _registered


def register_sharding(op: Any) -> Callable[[Callable], Callable]:
    """A decorator of a function that says which placements an operator takes and gives.

    Args:
        op: a member of treadle.ops, or a list of them.

    The function is called with the arguments of the operator, where a tensor is its DTensorSpec. It
    returns a list of (placements of the results, placements of the arguments), for one dimension of
    a mesh; None stands for an argument that is no tensor. Of these the one is taken for which least
    has to be sent. What is registered replaces the operator's own rules.
    """

    def register(function: Callable) -> Callable:
        for each in op if isinstance(op, (list, tuple)) else [op]:
            _registered.functions[each._name] = function
        return function

    return register


__all__ = ["register_sharding"]
