"""`flags(...)`: the switches of a module of this package, set for a while."""

from __future__ import annotations

import contextlib
from typing import Any, Iterator


@contextlib.contextmanager
def set_for_a_while(switches: dict, **values: Any) -> Iterator[None]:
    """Change entries of `switches`, the names of a module; None leaves one as it is."""
    given = {name: value for name, value in values.items() if value is not None}
    before = {name: switches[name] for name in given}
    switches.update(given)
    try:
        yield
    finally:
        switches.update(before)
