"""Names that were there before `treadle.amp`, for each kind of device, and their warning."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import warnings
from typing import Any, Optional

from treadle import _C, _names
from treadle.amp.autocast_mode import autocast
from treadle.amp.grad_scaler import GradScaler


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


def autocast_of(kind: str, devices: str, default: _C.dtype) -> Any:
    """The class `treadle.KIND.amp.autocast`."""

    class Autocast(autocast):
        def __init__(
            self,
            enabled: bool = True,
            dtype: _C.dtype = default,
            cache_enabled: bool = True,
        ) -> None:
            warn(kind, "autocast")
            super().__init__(kind, enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)

    return _of_kind(Autocast, "autocast", kind, devices)


def grad_scaler_of(kind: str, devices: str) -> Any:
    """The class `treadle.KIND.amp.GradScaler`."""

    class Scaler(GradScaler):
        def __init__(
            self,
            init_scale: float = 2.0**16,
            growth_factor: float = 2.0,
            backoff_factor: float = 0.5,
            growth_interval: int = 2000,
            enabled: bool = True,
        ) -> None:
            warn(kind, "GradScaler")
            super().__init__(
                kind, init_scale, growth_factor, backoff_factor, growth_interval, enabled
            )

    return _of_kind(Scaler, "GradScaler", kind, devices)


def _of_kind(made: type, name: str, kind: str, devices: str) -> type:
    made.__name__ = made.__qualname__ = name
    made.__module__, made.__doc__ = f"treadle.{kind}.amp", f"amp.{name} for {devices}."
    return made
