"""Settings of the Python tests. Slow tests carry the mark `slow`; `./dev test --fast` leaves them
out. Tests of operators run on any device: --device NAME, --backend PATH for one from outside.
"""

import pytest

from treadle.testing.operators.device import (  # noqa: F401  the options and a fixture
    _on_the_device,
    pytest_addoption,
)
from treadle.testing.operators.device import pytest_configure as _configure_device


def pytest_configure(config: pytest.Config) -> None:
    _configure_device(config)
    config.addinivalue_line(
        "markers", "slow: takes more than a second; left out by ./dev test --fast"
    )
