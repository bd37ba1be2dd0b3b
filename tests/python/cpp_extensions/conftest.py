"""What all tests of extensions share."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="module")
def quick_compiler() -> Iterator[None]:
    """The compiler does not optimise: it then takes two thirds of the time."""
    with pytest.MonkeyPatch.context() as patch:
        for flags in ("CXXFLAGS", "CFLAGS"):  # an older setuptools reads the second alone
            patch.setenv(flags, "-O0")
        yield
