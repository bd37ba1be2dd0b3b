"""The functions of `treadle.cuda` once there is a device: those of every backend's devices
(treadle/backends/_module.py), and what only CUDA devices are asked.
"""

from __future__ import annotations

import warnings
from types import SimpleNamespace
from typing import Any, List

from treadle import _C
from treadle.backends._module import DeviceModule
from treadle.backends._place import index_of


class CudaDeviceProperties(SimpleNamespace):
    """What is known of a device: name, total_memory (bytes), major and minor (its compute
    capability), multi_processor_count, and more; print it for all."""


class CudaModule(DeviceModule):
    """The module of CUDA devices."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.Stream.cuda_stream = property(lambda stream: stream.stream_id)
        self.Event.cuda_event = property(lambda event: event.event_id)

    def get_device_properties(self, device: Any = None) -> Any:
        """Facts about a device."""
        facts = dict(_C._backend_properties(self._name, index_of(self._name, device)))
        for kind in ("is_integrated", "is_multi_gpu_board"):
            facts[kind] = bool(facts[kind])
        return CudaDeviceProperties(name=self.get_device_name(device), **facts)

    def get_device_capability(self, device: Any = None) -> Any:
        """The compute capability of a device: (9, 0)."""
        facts = _C._backend_properties(self._name, index_of(self._name, device))
        return facts["major"], facts["minor"]

    def is_bf16_supported(self, including_emulation: bool = True) -> bool:
        """Whether the current device computes in bfloat16; that others do so slowly counts, unless
        it is not to."""
        return including_emulation or self.get_device_capability() >= (8, 0)

    def is_tf32_supported(self) -> bool:
        """Whether the current device computes in TF32."""
        return self.get_device_capability() >= (8, 0)

    def get_arch_list(self) -> List[str]:
        """The architectures that a device's kernels are made for, when they are first used: those
        of the devices that are there."""
        found = {self.get_device_capability(i) for i in range(self.device_count())}
        return [f"sm_{major}{minor}" for major, minor in sorted(found)]

    def get_gencode_flags(self) -> str:
        """The compiler's flags for get_arch_list()."""
        numbers = [name[len("sm_") :] for name in self.get_arch_list()]
        return " ".join(f"-gencode compute=compute_{n},code=sm_{n}" for n in numbers)

    # ---- older names ----

    def memory_cached(self, device: Any = None) -> int:
        """memory_reserved()."""
        return self.memory_reserved(device)

    def max_memory_cached(self, device: Any = None) -> int:
        """max_memory_reserved()."""
        return self.max_memory_reserved(device)

    def reset_max_memory_allocated(self, device: Any = None) -> None:
        """reset_peak_memory_stats(), of which a FutureWarning tells."""
        warnings.warn(
            "cuda.reset_max_memory_allocated resets every peak: reset_peak_memory_stats says so",
            FutureWarning,
            stacklevel=2,
        )
        self.reset_peak_memory_stats(device)

    def reset_max_memory_cached(self, device: Any = None) -> None:
        """reset_peak_memory_stats(), of which a FutureWarning tells."""
        warnings.warn(
            "cuda.reset_max_memory_cached resets every peak: reset_peak_memory_stats says so",
            FutureWarning,
            stacklevel=2,
        )
        self.reset_peak_memory_stats(device)
