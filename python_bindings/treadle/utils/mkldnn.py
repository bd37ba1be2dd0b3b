"""Models for inference whose images stay in the order in which convolutions compute fastest: see
treadle.nn.utils.blocked."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Optional


def to_mkldnn(module: Any, dtype: Optional[Any] = None) -> Any:
    """That of treadle.nn.utils.blocked."""
    from treadle.nn.utils import blocked

    return blocked.to_mkldnn(module, dtype)
