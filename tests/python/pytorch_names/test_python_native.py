"""Switches of kernels that come from compilers for Python: kept, though there is no such kernel."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import pytest

from treadle.backends import python_native


def test_switches() -> None:
    assert python_native.all_dsls == ["cutedsl", "flydsl", "helion", "triton"]
    assert python_native.available_dsls == [] and python_native.get_dsl_operations("triton") == []
    triton = python_native.triton
    assert triton.name == "triton" and triton.enabled and not triton.available
    assert triton.version is None
    with triton.disabled():
        assert python_native.is_dsl_disabled("triton") and not triton.enabled
        assert repr(triton) == "DSLController(triton, unavailable, disabled)"
    assert triton.enabled and not python_native.is_dsl_disabled("triton")
    triton.enabled = False
    assert python_native.is_dsl_disabled("triton") and python_native.helion.enabled
    triton.enable()
    assert triton.enabled


def test_operators() -> None:
    python_native.disable_operations("add")
    with python_native.operations_disabled("mul"):
        assert python_native.is_operation_disabled("mul")
        assert python_native.is_operation_disabled("add")
    assert not python_native.is_operation_disabled("mul")
    python_native.enable_operations("add")
    assert not python_native.is_operation_disabled("add")
    python_native.disable_dispatch_keys("CUDA")
    python_native.enable_dispatch_keys("CUDA")
    with pytest.raises(TypeError) as error:
        python_native.disable_operations(3)  # type: ignore[arg-type]
    assert str(error.value) == "disable_operations: expected names, got int"
