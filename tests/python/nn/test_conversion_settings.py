"""How conversions treat the parameters of a module: treadle.__future__."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Iterator

import pytest

import treadle
from treadle import nn

settings = treadle.__future__


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    yield
    settings.set_overwrite_module_params_on_conversion(False)
    settings.set_swap_module_params_on_conversion(False)


def test_settings_are_off_at_first_and_remembered() -> None:
    assert settings.get_overwrite_module_params_on_conversion() is False
    assert settings.get_swap_module_params_on_conversion() is False
    settings.set_overwrite_module_params_on_conversion(True)
    settings.set_swap_module_params_on_conversion(True)
    assert settings.get_overwrite_module_params_on_conversion() is True
    assert settings.get_swap_module_params_on_conversion() is True


def converted() -> tuple[Any, nn.Module]:
    layer = nn.Linear(2, 3)
    layer(treadle.ones(1, 2)).sum().backward()
    old = layer.weight
    layer.double()
    return old, layer


def test_a_parameter_stays_the_same_object() -> None:
    old, layer = converted()
    assert layer.weight is old and old.dtype == treadle.float64
    assert old.grad.dtype == treadle.float64


def test_an_overwritten_parameter_leaves_the_old_one_as_it_was() -> None:
    settings.set_overwrite_module_params_on_conversion(True)
    old, layer = converted()
    assert layer.weight is not old
    assert isinstance(layer.weight, nn.Parameter) and layer.weight.requires_grad
    assert (old.dtype, old.grad.dtype) == (treadle.float32, treadle.float32)
    assert (layer.weight.dtype, layer.weight.grad.dtype) == (treadle.float64, treadle.float64)
    assert treadle.equal(layer.weight.detach(), old.detach().double())
    assert [name for name, _ in layer.named_parameters()] == ["weight", "bias"]


def test_swapping_keeps_the_objects_even_so() -> None:
    settings.set_overwrite_module_params_on_conversion(True)
    settings.set_swap_module_params_on_conversion(True)
    old, layer = converted()
    assert layer.weight is old and old.dtype == treadle.float64
