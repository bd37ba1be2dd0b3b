"""annotate: say what type a value of a traced program has."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any

from treadle.fx.proxy import Proxy


def annotate(val: Any, type: Any) -> Any:
    """The value; where it is a Proxy, its node gets the type. RuntimeError if it has another."""
    if not isinstance(val, Proxy):
        return val
    if val.node.type:
        raise RuntimeError(f"annotate: expected a value without a type, got one of {val.node.type}")
    val.node.type = type
    return val


__all__ = ["annotate"]
