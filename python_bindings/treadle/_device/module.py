"""The module of a device from outside, `treadle.NAME`: what programs ask of `treadle.cuda`, for any
device, answered by its backend.

    treadle.mine.device_count()
    with treadle.mine.device(1):
        x = treadle.ones(3, device="mine")
    treadle.mine.memory_allocated()

Where a function takes a device it takes a number, a name, a treadle.device, or None for the current
one; RuntimeError for one that is not there, ValueError for one of another kind.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import importlib.machinery
import types
from typing import Any, Callable, Dict, List, Literal, NamedTuple, Optional

from treadle import _C, _names
from treadle._device import memory as _memory
from treadle._device import random
from treadle._device import streams as _streams
from treadle._device.index import index_of
from treadle._tensor import legacy_types


class DeviceProperties(NamedTuple):
    """The known facts of a device."""

    name: str
    total_memory: int  # bytes; 0: unknown
    plugin: str
    plugin_version: str


class DeviceModule(_memory.MemoryFunctions, random.RandomFunctions, types.ModuleType):
    """The module of one kind of device."""

    def __init__(self, name: str) -> None:
        full = f"treadle.{name}"
        super().__init__(full, f"Devices of the backend '{name}'; see docs/backends.md.")
        self._name = name
        facts = _C._backend_facts(name)
        self.__spec__ = importlib.machinery.ModuleSpec(full, None, origin=facts["plugin"])
        self.__path__: List[str] = []
        self.amp = _amp_module(name)
        self.Stream = _streams.stream_type(name)
        self.Event = _streams.event_type(name)
        self.device = _device_context(name)
        self.device_of = _device_of_context(self.device)
        self.StreamContext = _streams.StreamContext

    def __getattr__(self, name: str) -> Any:
        if name in legacy_types.NAMES:
            return legacy_types.tensor_type(name, self._name)
        raise _names.missing(self.__name__, name)

    def __reduce__(self) -> Any:
        return importlib.import_module, (self.__name__,)

    # ---- devices ----

    def is_available(self) -> bool:
        """Whether there is a device."""
        return self.device_count() > 0

    def is_initialized(self) -> bool:
        """True: a backend that was loaded is ready."""
        return True

    def init(self) -> None:
        """Nothing is left to be done."""

    def device_count(self) -> int:
        """How many devices there are."""
        return _C._backend_device_count(self._name)

    def current_device(self) -> int:
        """The number of the device that this thread makes tensors on where none is given."""
        return _C._backend_current_device(self._name)

    def set_device(self, device: Any) -> None:
        """Make a device the current one of this thread; a negative number changes nothing."""
        index = index_of(self._name, device)
        if index >= 0:
            _C._backend_set_device(self._name, index)

    def synchronize(self, device: Any = None) -> None:
        """Wait for all work of a device."""
        _C._backend_synchronize(self._name, index_of(self._name, device))

    def get_device_name(self, device: Any = None) -> str:
        """The backend's name of a device."""
        return _C._backend_device_name(self._name, index_of(self._name, device))

    def get_device_properties(self, device: Any = None) -> DeviceProperties:
        """Name and memory of a device, and the plug-in that brought it."""
        facts = _C._backend_facts(self._name)
        return DeviceProperties(
            self.get_device_name(device),
            self.mem_get_info(device)[1],
            facts["plugin"],
            facts["plugin_version"],
        )

    def get_device_capability(self, device: Any = None) -> Dict[str, Any]:
        """The dtypes that tensors on a device may have, as {"supported_dtypes": {...}}."""
        index_of(self._name, device)
        return {"supported_dtypes": set(_C._backend_facts(self._name)["dtypes"])}

    # ---- streams ----

    def current_stream(self, device: Any = None) -> _streams.Stream:
        """The stream that this thread's work on a device goes to."""
        return _streams.current(self._name, index_of(self._name, device))

    def default_stream(self, device: Any = None) -> _streams.Stream:
        """The stream that work goes to unless another is set."""
        return _streams.default(self._name, index_of(self._name, device))

    def set_stream(self, stream: Optional[_streams.Stream]) -> None:
        """Let this thread's work on the stream's device go to it; None changes nothing."""
        if stream is not None:
            _streams.set_current(stream)

    def stream(self, stream: Optional[_streams.Stream]) -> _streams.StreamContext:
        """A context in which work goes to a stream; None changes nothing."""
        return _streams.StreamContext(stream)

    # ---- mixed precision ----

    def get_amp_supported_dtype(self) -> List[_C.dtype]:
        """The dtypes that autocast may run operators in."""
        return _C._backend_facts(self._name)["autocast_dtypes"]

    def is_bf16_supported(self, including_emulation: bool = True) -> bool:
        """Whether tensors on the device may be bfloat16."""
        return _C.bfloat16 in _C._backend_facts(self._name)["dtypes"]


def _device_context(name: str) -> type:
    class device:  # noqa: N801
        """A context in which a device is the current one; None and a negative number change
        nothing."""

        def __init__(self, device: Any) -> None:
            self.idx = index_of(name, device)
            self.prev_idx = -1

        def __enter__(self) -> None:
            self.prev_idx = _C._backend_current_device(name)
            if self.idx >= 0:
                _C._backend_set_device(name, self.idx)

        def __exit__(self, *_: Any) -> Literal[False]:
            _C._backend_set_device(name, self.prev_idx)
            return False

    device.__module__, device.__qualname__ = f"treadle.{name}", "device"
    return device


def _device_of_context(device: Callable[[Any], Any]) -> type:
    class device_of(device):  # type: ignore[misc, valid-type]  # noqa: N801
        """A context in which a tensor's device is the current one, if it is one of these."""

        def __init__(self, obj: Any) -> None:
            name = self.__module__.rpartition(".")[2]
            super().__init__(obj.device.index if obj.device.type == name else None)

    device_of.__module__, device_of.__qualname__ = device.__module__, "device_of"
    return device_of


def _amp_module(name: str) -> types.ModuleType:
    full = f"treadle.{name}.amp"
    amp = types.ModuleType(full, f"Mixed precision on devices of '{name}'.")
    amp.__spec__ = importlib.machinery.ModuleSpec(full, None, origin=name)

    def __getattr__(attribute: str) -> Any:
        if attribute not in ("autocast", "GradScaler", "custom_fwd", "custom_bwd"):
            raise _names.missing(full, attribute)
        value = amp.__dict__[attribute] = _amp_name(name, attribute)
        return value

    amp.__dict__["__getattr__"] = __getattr__
    return amp


def _amp_name(name: str, attribute: str) -> Any:
    """A name of treadle.amp, for one kind of device."""
    import functools

    base = getattr(_names.package().amp, attribute)
    if attribute.startswith("custom_"):
        return functools.partial(base, device_type=name)
    made = type(attribute, (base,), {"__init__": functools.partialmethod(base.__init__, name)})
    made.__module__, made.__doc__ = f"treadle.{name}.amp", base.__doc__
    return made
