"""The warning of names that were there before `treadle.amp`."""

from __future__ import annotations

import warnings

from treadle import _names


def warn(device: str, name: str) -> None:
    """Say what to write instead of `treadle.DEVICE.amp.NAME(...)`, to whoever wrote it."""
    package = _names.spoken()
    warnings.warn(
        f"`{package}.{device}.amp.{name}(args...)` is deprecated. "
        f"Please use `{package}.amp.{name}('{device}', args...)` instead.",
        FutureWarning,
        stacklevel=3,
    )
