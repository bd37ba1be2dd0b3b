"""The choice of an implementation of scaled_dot_product_attention. There is one here, which works
in blocks; the choice is accepted and remembered, and changes nothing.

    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        F.scaled_dot_product_attention(q, k, v)
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import enum
from typing import Iterator, Union

__all__ = ["SDPBackend", "sdpa_kernel"]


class SDPBackend(enum.IntEnum):
    """The implementations that programs name."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


_DEFAULT = [
    SDPBackend.FLASH_ATTENTION,
    SDPBackend.EFFICIENT_ATTENTION,
    SDPBackend.MATH,
    SDPBackend.CUDNN_ATTENTION,
]
_chosen = list(_DEFAULT)
# Whether a choice that cannot be met should warn: each can.
WARN_FOR_UNFUSED_KERNELS = False


def _cur_sdpa_kernel_backends(with_priority: bool = False) -> list[SDPBackend]:
    """The implementations chosen now."""
    return list(_chosen)


@contextlib.contextmanager
def sdpa_kernel(
    backends: Union[list[SDPBackend], SDPBackend], set_priority: bool = False
) -> Iterator[None]:
    """Choose among the implementations for a while."""
    global _chosen
    if isinstance(backends, SDPBackend):
        backends = [backends]
    if not isinstance(backends, list) or not all(isinstance(b, SDPBackend) for b in backends):
        raise AssertionError(
            "Backend must be an instance of SDPBackend or a list of SDPBackend instances"
        )
    before = _chosen
    _chosen = list(dict.fromkeys(backends))
    try:
        yield
    finally:
        _chosen = before
