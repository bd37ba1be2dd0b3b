"""The package opt_einsum, which orders the products of treadle.einsum elsewhere. It is not used."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, ContextManager, Optional

from treadle.backends._flags import set_for_a_while

enabled = False
strategy: Optional[str] = None


def is_available() -> bool:
    """Whether einsum uses the package."""
    return False


def get_opt_einsum() -> Any:
    """The package: None."""
    return None


def flags(enabled: Optional[bool] = None, strategy: Optional[str] = None) -> ContextManager[None]:
    """The switches for a block."""
    return set_for_a_while(__name__, enabled=enabled, strategy=strategy)
