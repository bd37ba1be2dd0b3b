"""Options of the tests on a CUDA device, those of tests/python: --backend PATH for a library in the
place of treadle-cuda, such as the emulator's. Tests say themselves what is on the device.
"""

from treadle.testing.operators.device import pytest_addoption, pytest_configure  # noqa: F401
