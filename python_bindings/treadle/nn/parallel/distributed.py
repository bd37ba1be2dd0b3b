"""DistributedDataParallel, which is loaded at its first use: it brings treadle.distributed with it.

Example:

    model = DistributedDataParallel(model)
"""

# SPDX-License-Identifier: Apache-2.0

from typing import TYPE_CHECKING, Any

from ... import _names

if TYPE_CHECKING:
    from treadle.distributed._data_parallel.model import (
        DistributedDataParallel as DistributedDataParallel,
    )

_NAMES = ("DistributedDataParallel", "_BufferCommHookLocation", "_MixedPrecision")


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise _names.missing(__name__, name)
    from treadle.distributed._data_parallel import model

    return getattr(model, name)


__all__ = ["DistributedDataParallel"]
