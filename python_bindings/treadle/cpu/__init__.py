"""The CPU as a device: there is one, it is always there, and its work is done when a call returns.

>>> treadle.cpu.device_count()
1
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import functools
import os
import platform
import types
from typing import Any, Dict, Iterator, Mapping, Optional

from treadle import _names

__all__ = [
    "Event",
    "Stream",
    "StreamContext",
    "current_device",
    "current_stream",
    "device_count",
    "get_capabilities",
    "is_available",
    "is_initialized",
    "set_device",
    "stream",
    "synchronize",
]


def is_available() -> bool:
    """True."""
    return True


def is_initialized() -> bool:
    """True."""
    return True


def device_count() -> int:
    """1."""
    return 1


def current_device() -> str:
    """The text "cpu"."""
    return "cpu"


def set_device(device: Any) -> None:
    """Does nothing: there is one."""


def synchronize(device: Any = None) -> None:
    """Does nothing: no work is left behind."""


class Stream:
    """Stands where programs expect a stream; work is in order anyway."""

    def __init__(self, priority: int = -1) -> None:
        pass

    def wait_stream(self, stream: Any) -> None:
        """Does nothing."""

    def record_event(self) -> None:
        """Does nothing."""

    def wait_event(self, event: Any) -> None:
        """Does nothing."""


class Event:
    """Stands where programs expect an event; it has always happened."""

    def query(self) -> bool:
        """True."""
        return True

    def record(self, stream: Optional[Stream] = None) -> None:
        """Does nothing."""

    def synchronize(self) -> None:
        """Does nothing."""

    def wait(self, stream: Optional[Stream] = None) -> None:
        """Does nothing."""


_stream = Stream()


def current_stream(device: Any = None) -> Stream:
    """The stream chosen by `stream`."""
    return _stream


@contextlib.contextmanager
def StreamContext(stream: Optional[Stream]) -> Iterator[None]:  # noqa: N802
    """A context in which `stream` is the current one."""
    global _stream
    previous = _stream
    _stream = stream or previous
    try:
        yield
    finally:
        _stream = previous


stream = StreamContext

# Names of features as the system gives them, and as they are here where those differ.
_FLAGS = {
    "avx512_bf16": "avx512_bf16", "avx512_bitalg": "avx512_bitalg", "avx512_bw": "avx512bw",
    "avx512_cd": "avx512cd", "avx512_dq": "avx512dq", "avx512_f": "avx512f",
    "avx512_fp16": "avx512_fp16", "avx512_ifma": "avx512ifma", "avx512_vbmi": "avx512vbmi",
    "avx512_vbmi2": "avx512_vbmi2", "avx512_vl": "avx512vl", "avx512_vnni": "avx512_vnni",
    "avx512_vpopcntdq": "avx512_vpopcntdq", "avx_vnni": "avx_vnni", "fma3": "fma", "lzcnt": "abm",
    "bmi": "bmi1", "sse3": "pni", "sha": "sha_ni",
}  # fmt: skip
_SAME_FLAGS = (
    "aes amx_bf16 amx_fp16 amx_int8 amx_tile avx avx2 bmi2 clflush clflushopt clwb f16c popcnt "
    "sse sse2 sse4_1 sse4_2 sse4a ssse3"
).split()


@functools.lru_cache(maxsize=None)
def get_capabilities() -> Mapping[str, Any]:
    """Features of the processor, as the system gives them: `architecture`, `cpu_name`,
    `num_logical_cores`, and on x86 whether it has each feature, `avx2` and so on."""
    machine = platform.machine()
    lines = _lines_of_system()
    found: Dict[str, Any] = {
        "architecture": machine,
        "cpu_name": lines.get("model name", ""),
        "num_logical_cores": os.cpu_count() or 1,
    }
    if machine in ("x86_64", "AMD64"):
        flags = set(lines.get("flags", "").split())
        names = {**_FLAGS, **{name: name for name in _SAME_FLAGS}}
        found.update({name: flag in flags for name, flag in names.items()})
    return types.MappingProxyType(found)


def _lines_of_system() -> Dict[str, str]:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            pairs = (line.partition(":") for line in file.read().split("\n\n")[0].splitlines())
            return {key.strip(): value.strip() for key, _, value in pairs}
    except OSError:
        return {}


__getattr__ = _names.attributes_of(__name__)
