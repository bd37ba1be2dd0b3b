"""Options of every test run."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-goldens",
        action="store_true",
        help="write tests/codegen/goldens/*.golden anew from what the generator makes now",
    )
