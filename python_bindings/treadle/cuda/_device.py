"""The functions of `treadle.cuda` once there is a device: those of every backend's devices
(treadle/_device/module.py), and what only CUDA devices are asked.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import warnings
from types import SimpleNamespace
from typing import Any, List, Tuple

from treadle import _C
from treadle._device.index import index_of
from treadle._device.module import DeviceModule


class CudaDeviceProperties(SimpleNamespace):
    """The known facts of a device: name, total_memory (bytes), major and minor (its compute
    capability), multi_processor_count, and more; print it for all."""


class CudaModule(DeviceModule):
    """The module of CUDA devices."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.Stream.cuda_stream = property(lambda stream: stream.stream_id)  # type: ignore[attr-defined]
        self.Event.cuda_event = property(lambda event: event.event_id)  # type: ignore[attr-defined]

    def get_device_properties(self, device: Any = None) -> Any:
        """Facts about a device."""
        facts = dict(_C._backend_properties(self._name, index_of(self._name, device)))
        del facts["peers"]
        for kind in ("is_integrated", "is_multi_gpu_board"):
            facts[kind] = bool(facts[kind])
        return CudaDeviceProperties(name=self.get_device_name(device), **facts)

    def can_device_access_peer(self, device: Any, peer_device: Any) -> bool:
        """Whether a device can read the memory of another by itself."""
        facts = _C._backend_properties(self._name, index_of(self._name, device))
        return bool(facts["peers"] >> index_of(self._name, peer_device) & 1)

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

    # ---- what the driver measures ----

    def utilization(self, device: Any = None) -> int:
        """The part of the last moments in which a kernel ran on a device, in percent."""
        nvml, handle = self._nvml(device)
        return nvml.nvmlDeviceGetUtilizationRates(handle).gpu

    def memory_usage(self, device: Any = None) -> int:
        """The part of the last moments in which a device's memory was read or written, in
        percent."""
        nvml, handle = self._nvml(device)
        return nvml.nvmlDeviceGetUtilizationRates(handle).memory

    def temperature(self, device: Any = None) -> int:
        """A device's temperature, in degrees Celsius."""
        nvml, handle = self._nvml(device)
        return nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)

    def power_draw(self, device: Any = None) -> int:
        """The power that a device takes, in milliwatts."""
        nvml, handle = self._nvml(device)
        return nvml.nvmlDeviceGetPowerUsage(handle)

    def clock_rate(self, device: Any = None) -> int:
        """The clock of a device's multiprocessors, in MHz."""
        nvml, handle = self._nvml(device)
        return nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)

    def list_gpu_processes(self, device: Any = None) -> str:
        """The processes that compute on a device, and what they hold of its memory."""
        nvml, handle = self._nvml(device)
        index = index_of(self._name, device)
        lines = [f"GPU:{self.current_device() if index < 0 else index}"]
        for process in nvml.nvmlDeviceGetComputeRunningProcesses(handle):
            # None where the driver does not say it.
            used = (process.usedGpuMemory or 0) / (1 << 20)
            lines.append(f"process {process.pid:>10d} uses {used:>12.3f} MB GPU memory")
        return "\n".join(lines if len(lines) > 1 else [*lines, "no processes are running"])

    def _nvml(self, device: Any) -> Tuple[Any, Any]:
        """NVIDIA's library for that, and the device in it. ModuleNotFoundError without the package
        nvidia-ml-py."""
        try:
            import pynvml
        except ModuleNotFoundError:
            raise ModuleNotFoundError(
                "pynvml: expected the package nvidia-ml-py, got none; install it with: "
                "pip install nvidia-ml-py"
            ) from None
        pynvml.nvmlInit()
        facts = _C._backend_properties(self._name, index_of(self._name, device))
        place = "{pci_domain_id:08X}:{pci_bus_id:02X}:{pci_device_id:02X}.0".format(**facts)
        return pynvml, pynvml.nvmlDeviceGetHandleByPciBusId(place)

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
