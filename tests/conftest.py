"""Options of every test run. Tests of operators run on any device: --device NAME, --backend PATH
for one from outside; those of tests/gpu say themselves what is on the device.
"""

# SPDX-License-Identifier: Apache-2.0

import gc
import os
from typing import Any, Generator

import pytest

import processes
from time_limit import limited
from treadle_testing.device import pytest_addoption as _add_device_options
from treadle_testing.device import pytest_configure as _load_backends

# Of the time after which pytest ends a process that hangs, and with it the whole run.
_SHARE_OF_A_TEST = 0.8


def pytest_configure(config: pytest.Config) -> None:
    """Load backends that are named; see to it that a test that hangs can say where."""
    processes.tell_stacks()
    _load_backends(config)


@pytest.hookimpl(wrapper=True)
def _in_time(item: pytest.Item) -> Generator[None, Any, Any]:
    with limited(_SHARE_OF_A_TEST * float(item.config.getini("faulthandler_timeout"))):
        return (yield)


pytest_runtest_setup = pytest_runtest_call = pytest_runtest_teardown = _in_time


def pytest_addoption(parser: pytest.Parser) -> None:
    _add_device_options(parser)
    parser.addoption(
        "--update-goldens",
        action="store_true",
        help="write the goldens of the tests that run anew: generated code, groups of fusion",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Under the sanitizers, leave out tests that build a copy of their own, which has none."""
    if not os.environ.get("TREADLE_SANITIZERS"):
        return
    own = [item for item in items if item.get_closest_marker("builds")]
    if own:
        config.hook.pytest_deselected(items=own)
        items[:] = [item for item in items if item not in own]


def pytest_collection_finish() -> None:
    """The collector leaves the collected tests alone. There are 90,000, and it would go through
    them whenever a test calls it."""
    gc.collect()
    gc.freeze()
