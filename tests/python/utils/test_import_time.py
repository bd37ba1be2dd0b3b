"""`import treadle` loads nothing that takes long and is not needed yet."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest

SLOW = (
    "ast asyncio concurrent.futures ctypes dataclasses http inspect json logging multiprocessing "
    "numpy pathlib pickle socket string subprocess tempfile unittest "
    "treadle.distributed treadle.nn treadle.optim treadle.sparse "
    "treadle._stable_abi treadle.utils.data treadle.utils.tvm_ffi"
).split()

PROGRAM = """
import sys
before = set(sys.modules)
import treadle
print(*(set(sys.modules) - before))
print(*{line.split()[-1] for line in open("/proc/self/maps") if ".so" in line})
"""


@pytest.fixture(scope="module")
def loaded() -> list:
    command = [sys.executable, "-c", PROGRAM]
    found = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return [line.split() for line in found]


def test_modules(loaded: list) -> None:
    assert "treadle" in loaded[0]
    assert all(map(importlib.util.find_spec, SLOW))  # the names are still those of modules
    assert sorted(set(SLOW) & set(loaded[0])) == []


@pytest.mark.parametrize("library", ["gloo", "hwy", "mpi", "cuda"])
def test_libraries(library: str, loaded: list) -> None:
    paths = loaded[1]
    assert any("libtreadle" in path for path in paths)
    assert [path for path in paths if f"/lib{library}" in path] == []
