"""The settings of autocast on this thread, by the names they have at the top of the package.

>>> treadle.set_autocast_dtype("cpu", treadle.float16)
>>> treadle.is_autocast_enabled("cpu")
False

Programs use the context `treadle.autocast`, which sets these and puts back what was there before.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Optional, Union

from treadle import _C


def is_autocast_enabled(device_type: Optional[str] = None) -> bool:
    """Whether autocast is on for a type of device, "cuda" if none is named."""
    return _C._autocast_is_enabled(device_type or "cuda")


def set_autocast_enabled(device_type: Union[str, bool], enabled: Optional[bool] = None) -> None:
    """Turn autocast on or off for a type of device; with a bool alone, for "cuda"."""
    if enabled is None:
        _C._autocast_set_enabled("cuda", device_type)
    else:
        _C._autocast_set_enabled(device_type, enabled)


def get_autocast_dtype(device_type: str) -> _C.dtype:
    """The dtype in which operators run that autocast runs in 16 bits."""
    return _C._autocast_dtype(device_type)


def set_autocast_dtype(device_type: str, dtype: _C.dtype) -> None:
    """Set the dtype in which operators run that autocast runs in 16 bits."""
    _C._autocast_set_dtype(device_type, dtype)


def is_autocast_cpu_enabled() -> bool:
    """is_autocast_enabled("cpu")"""
    return is_autocast_enabled("cpu")


def set_autocast_cpu_enabled(enabled: bool) -> None:
    """set_autocast_enabled("cpu", enabled)"""
    set_autocast_enabled("cpu", enabled)


def get_autocast_cpu_dtype() -> _C.dtype:
    """get_autocast_dtype("cpu")"""
    return get_autocast_dtype("cpu")


def set_autocast_cpu_dtype(dtype: _C.dtype) -> None:
    """set_autocast_dtype("cpu", dtype)"""
    set_autocast_dtype("cpu", dtype)


def get_autocast_gpu_dtype() -> _C.dtype:
    """get_autocast_dtype("cuda")"""
    return get_autocast_dtype("cuda")


def set_autocast_gpu_dtype(dtype: _C.dtype) -> None:
    """set_autocast_dtype("cuda", dtype)"""
    set_autocast_dtype("cuda", dtype)


def is_autocast_ipu_enabled() -> bool:
    """is_autocast_enabled("ipu")"""
    return is_autocast_enabled("ipu")


def set_autocast_ipu_enabled(enabled: bool) -> None:
    """set_autocast_enabled("ipu", enabled)"""
    set_autocast_enabled("ipu", enabled)


def get_autocast_ipu_dtype() -> _C.dtype:
    """get_autocast_dtype("ipu")"""
    return get_autocast_dtype("ipu")


def set_autocast_ipu_dtype(dtype: _C.dtype) -> None:
    """set_autocast_dtype("ipu", dtype)"""
    set_autocast_dtype("ipu", dtype)


def is_autocast_xla_enabled() -> bool:
    """is_autocast_enabled("xla")"""
    return is_autocast_enabled("xla")


def set_autocast_xla_enabled(enabled: bool) -> None:
    """set_autocast_enabled("xla", enabled)"""
    set_autocast_enabled("xla", enabled)


def get_autocast_xla_dtype() -> _C.dtype:
    """get_autocast_dtype("xla")"""
    return get_autocast_dtype("xla")


def set_autocast_xla_dtype(dtype: _C.dtype) -> None:
    """set_autocast_dtype("xla", dtype)"""
    set_autocast_dtype("xla", dtype)
