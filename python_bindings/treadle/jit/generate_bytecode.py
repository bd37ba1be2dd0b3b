"""Tables of compiled programs as plain values."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Dict


def format_bytecode(table: Any) -> Dict[str, Any]:
    """A dict of pairs of a name and a value, which may be such pairs again. ValueError for what is
    none."""
    if not isinstance(table, (list, tuple)):
        raise ValueError(f"format_bytecode: expected pairs, got {type(table).__name__}")
    found: Dict[str, Any] = {}
    for name, value in table:
        if isinstance(value, tuple) and value and isinstance(value[0], tuple):
            found[name] = format_bytecode(value)
        else:
            found[name] = list(value) if isinstance(value, tuple) else value
    return found
