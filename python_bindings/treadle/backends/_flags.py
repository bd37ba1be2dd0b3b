"""`flags(...)`: the switches of a module of this package, set for a while."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import sys
from typing import Any, Iterator


@contextlib.contextmanager
def set_for_a_while(module: str, **values: Any) -> Iterator[None]:
    """Change attributes of the module of this name; None leaves one as it is."""
    switches = sys.modules[module]
    given = {name: value for name, value in values.items() if value is not None}
    before = {name: getattr(switches, name) for name in given}
    for name, value in given.items():
        setattr(switches, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(switches, name, value)
