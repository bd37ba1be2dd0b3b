"""Settings of the Python tests. Slow tests carry the mark `slow`; `./dev test --fast` leaves them
out. Without a device of their own, tensors are made on that of --device.
"""

# SPDX-License-Identifier: Apache-2.0

import pytest

from treadle_testing.device import _on_the_device  # noqa: F401  a fixture


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "slow: takes more than a second; left out by ./dev test --fast"
    )
