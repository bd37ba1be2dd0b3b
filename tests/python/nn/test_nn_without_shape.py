"""Parameters and buffers whose shape is not known yet."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import pytest

import treadle
from treadle import nn
from treadle.nn.parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

REMEDY = "a call of its module, or materialize(), gives it one"


def test_a_number_is_a_shape_of_one_dimension() -> None:
    parameter = UninitializedParameter(dtype=treadle.float64)
    parameter.materialize(4)
    assert type(parameter) is Parameter
    assert tuple(parameter.shape) == (4,) and parameter.dtype == treadle.float64
    buffer = UninitializedBuffer()
    buffer.materialize((2, 3), dtype=treadle.int64)
    assert isinstance(buffer, Buffer)
    assert tuple(buffer.shape) == (2, 3) and buffer.dtype == treadle.int64


@pytest.mark.parametrize("cls", [UninitializedParameter, UninitializedBuffer])
def test_functions_refuse_what_has_no_shape(cls: type) -> None:
    tensor = cls()
    for name, call in (
        ("add", lambda: tensor + 1),
        ("zeros_like", lambda: treadle.zeros_like(tensor)),
        ("numel", lambda: tensor.numel()),
    ):
        with pytest.raises(ValueError) as error:
            call()
        assert str(error.value) == (
            f"{name}: expected tensors that have a shape, got an uninitialized parameter or "
            f"buffer; {REMEDY}"
        )


def test_it_can_be_moved_and_converted() -> None:
    tensor = UninitializedParameter()
    assert tensor.dtype == treadle.float32 and tensor.requires_grad and tensor.is_leaf
    assert tensor.is_floating_point() and not tensor.is_complex()
    assert tensor.double().dtype == treadle.float64
    assert tensor.to(treadle.float16).dtype == treadle.float16
    assert tensor.cpu().device.type == "cpu"


def test_its_memory_cannot_be_shared() -> None:
    with pytest.raises(RuntimeError) as error:
        UninitializedParameter().share_memory_()
    assert str(error.value) == (
        "share_memory_: expected a parameter or buffer that has a shape, got an uninitialized "
        f"one; {REMEDY}"
    )


def test_what_needs_its_shape_refuses_it() -> None:
    for module in (nn.LazyLinear(7), nn.Sequential(nn.LazyLinear(7))):
        name = "0.weight, 0.bias" if len(list(module.children())) else "weight, bias"
        with pytest.raises(RuntimeError) as error:
            treadle.jit.script(module)
        assert str(error.value) == (
            "jit.script: expected a module whose parameters have their shapes, got "
            f"{type(module).__name__} with uninitialized {name}; run a forward pass first"
        )
    with pytest.raises(ValueError) as error:
        nn.utils.spectral_norm(nn.LazyLinear(7))
    assert str(error.value) == (
        "spectral_norm: expected a parameter with a shape, got 'weight', which is uninitialized; "
        "call the module once first"
    )
