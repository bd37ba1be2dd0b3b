"""Options of every test run."""

import os

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-goldens",
        action="store_true",
        help="write tests/codegen/goldens/*.golden anew from what the generator makes now",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Under the sanitizers, leave out tests that build a copy of their own, which has none."""
    if not os.environ.get("TREADLE_SANITIZERS"):
        return
    own = [item for item in items if item.get_closest_marker("builds")]
    if own:
        config.hook.pytest_deselected(items=own)
        items[:] = [item for item in items if item not in own]
