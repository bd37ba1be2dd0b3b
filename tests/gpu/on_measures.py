"""On a CUDA device: what the driver measures is asked of NVIDIA's package for it, by the device's
place in the machine, so that it is the same device whatever the program sees of them.

    pytest tests/gpu/on_measures.py        # ./dev gpu says how, on a machine with a GPU
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

import treadle

cuda = treadle.cuda


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list:
    """The places that were asked for, of a package that answers what it was made to."""
    places: list = []

    def handle(place: str) -> str:
        places.append(place)
        return "handle"

    def answer(value: Any) -> Any:
        def function(got: str, *rest: Any) -> Any:
            assert got == "handle"
            return value

        return function

    package = SimpleNamespace(
        NVML_TEMPERATURE_GPU=0,
        NVML_CLOCK_SM=1,
        nvmlInit=lambda: None,
        nvmlDeviceGetHandleByPciBusId=handle,
        nvmlDeviceGetUtilizationRates=answer(SimpleNamespace(gpu=97, memory=41)),
        nvmlDeviceGetTemperature=answer(63),
        nvmlDeviceGetPowerUsage=answer(250_000),
        nvmlDeviceGetClockInfo=answer(1980),
        nvmlDeviceGetComputeRunningProcesses=answer(
            [
                SimpleNamespace(pid=12, usedGpuMemory=3 << 20),
                SimpleNamespace(pid=345, usedGpuMemory=None),
            ]
        ),
    )
    monkeypatch.setitem(sys.modules, "pynvml", package)
    return places


def test_measures(asked: list) -> None:
    assert (cuda.utilization(), cuda.memory_usage(0)) == (97, 41)
    assert (cuda.temperature(), cuda.power_draw(), cuda.clock_rate()) == (63, 250_000, 1980)
    p = cuda.get_device_properties(0)
    place = f"{p.pci_domain_id:08X}:{p.pci_bus_id:02X}:{p.pci_device_id:02X}.0"
    assert set(asked) == {place}
    assert cuda.list_gpu_processes(0).splitlines() == [
        "GPU:0",
        "process         12 uses        3.000 MB GPU memory",
        "process        345 uses        0.000 MB GPU memory",
    ]


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(ModuleNotFoundError, match="pip install nvidia-ml-py$"):
        cuda.temperature()
