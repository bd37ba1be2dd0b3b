"""Functions of `torch._C._nn` that are no operators."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Optional, Tuple

from treadle import _C
from treadle.nn.modules import module

__all__ = ["_parse_to"]


def _parse_to(
    *args: Any, **kwargs: Any
) -> Tuple[Optional[_C.device], Optional[_C.dtype], bool, Any]:
    """The device, dtype, non_blocking and memory format meant by the arguments of `Module.to`; None
    where one is not given. TypeError for other arguments."""
    device, dtype, non_blocking, memory_format = module._parse_to(*args, **kwargs)
    place = None if device is None else _C.device(device)
    return place, dtype, non_blocking, memory_format
