"""The switches of cuDNN, which is not there."""

from __future__ import annotations

from typing import ContextManager, Optional

from treadle._C import Tensor
from treadle.backends._flags import set_for_a_while

enabled = True
benchmark = False
benchmark_limit: Optional[int] = 10
deterministic = False
allow_tf32 = True
fp32_precision = "none"


def is_available() -> bool:
    """Whether the library is there."""
    return False


def version() -> Optional[int]:
    """The version of the library: None."""
    return None


def is_acceptable(tensor: Tensor) -> bool:
    """Whether the library can compute with a tensor."""
    return False


def flags(
    enabled: bool = False,
    benchmark: bool = False,
    benchmark_limit: Optional[int] = 10,
    deterministic: bool = False,
    allow_tf32: bool = True,
    fp32_precision: str = "none",
) -> ContextManager[None]:
    """The switches for a block."""
    return set_for_a_while(
        globals(),
        enabled=enabled,
        benchmark=benchmark,
        benchmark_limit=benchmark_limit,
        deterministic=deterministic,
        allow_tf32=allow_tf32,
        fp32_precision=fp32_precision,
    )
