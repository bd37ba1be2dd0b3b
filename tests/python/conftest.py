"""Settings of the Python tests. Slow tests carry the mark `slow`; `./dev test --fast` leaves them
out.
"""

import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "slow: takes more than a second; left out by ./dev test --fast"
    )
