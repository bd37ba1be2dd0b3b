"""The device that the tests run on: the first one of OpenCL."""

# SPDX-License-Identifier: Apache-2.0

import pytest

import treadle


@pytest.fixture(autouse=True)
def seeded() -> None:
    treadle.manual_seed(0)


@pytest.fixture
def device() -> treadle.device:
    return treadle.device("opencl:0")
