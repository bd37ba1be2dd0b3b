"""Exchange of tensors with other libraries without a copy, through DLPack.

other.from_dlpack(to_dlpack(x))
"""

from __future__ import annotations

from typing import Any

from treadle._C import Tensor
from treadle.functional import from_dlpack


def to_dlpack(tensor: Tensor) -> Any:
    """A capsule over the memory of a tensor, which another library takes once."""
    return tensor.__dlpack__()


__all__ = ["from_dlpack", "to_dlpack"]
