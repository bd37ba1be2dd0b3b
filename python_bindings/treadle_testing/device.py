"""The device that operators are tested on: samples are made there, results come to the CPU to be
compared.

    pytest -p treadle_testing.device --device mine --backend build/libmine.so tests/

are the options, for any tests that take their tensors from `sample.to_tensor`, or make them where
no device is given. Without them the device is the CPU.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Iterator

import pytest

import treadle

_name = "cpu"


def name() -> str:
    """The device under test."""
    return _name


def kind() -> str:
    """The kind of that device, without its number."""
    return treadle.device(_name).type


def use(device: str) -> None:
    """Test on this device from now on."""
    global _name
    _name = device
    treadle.set_default_device(None if device == "cpu" else device)


def here(t: treadle.Tensor) -> treadle.Tensor:
    """The tensor on the device under test."""
    return t if _name == "cpu" else t.to(_name)


def pytest_addoption(parser: Any) -> None:
    """The options."""
    group = parser.getgroup("treadle")
    group.addoption("--device", default="cpu", help="the device that operators are tested on")
    group.addoption(
        "--backend", action="append", default=[], help="the library of a backend to load first"
    )


def pytest_configure(config: Any) -> None:
    """Loads backends, before anything asks for the device."""
    for path in config.getoption("--backend", []):
        treadle.load_backend(path)
    # Whether it is there is said at once, not by every test.
    treadle.empty(0, device=config.getoption("--device", "cpu"))


@pytest.fixture(autouse=True)
def _on_the_device(request: Any) -> Iterator[None]:
    device = request.config.getoption("--device", "cpu")
    if device == "cpu":
        yield
        return
    use(device)
    try:
        # References are exact: cuDNN is not to round factors to TF32.
        with treadle.backends.cudnn.flags(enabled=True, allow_tf32=False):
            yield
    finally:
        use("cpu")
