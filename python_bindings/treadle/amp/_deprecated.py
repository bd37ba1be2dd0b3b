"""The warning of names that were there before `treadle.amp`."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import warnings
from typing import Optional

from treadle import _names


def warn(device: str, name: str, arguments: Optional[str] = None) -> None:
    """Say what to write instead of `treadle.DEVICE.amp.NAME(...)`, to whoever wrote it: the same
    with `arguments`, which begin with the device if not given.
    """
    package = _names.spoken()
    instead = arguments or f"'{device}', args..."
    warnings.warn(
        f"`{package}.{device}.amp.{name}(args...)` is deprecated. "
        f"Please use `{package}.amp.{name}({instead})` instead.",
        FutureWarning,
        stacklevel=3,
    )
