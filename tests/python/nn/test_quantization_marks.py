"""Modules that mark where tensors would be quantized, on ordinary tensors."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import pytest

import treadle
from treadle.ao.nn.quantized import FloatFunctional
from treadle.ao.quantization import DeQuantStub, QuantStub, QuantWrapper

X, Y = treadle.tensor([1.0, -2.0]), treadle.tensor([3.0, 1.0])


def test_stubs_pass_on_their_argument() -> None:
    assert QuantStub()(X) is X and DeQuantStub()(X) is X
    assert QuantStub("mine").qconfig == "mine" and not hasattr(QuantStub(), "qconfig")
    wrapper = QuantWrapper(treadle.nn.ReLU().eval())
    assert not wrapper.training and wrapper(X).tolist() == [1.0, 0.0]
    assert [name for name, _ in wrapper.named_children()] == ["quant", "dequant", "module"]


def test_operations_as_modules() -> None:
    functional = FloatFunctional()
    assert [name for name, _ in functional.named_children()] == ["activation_post_process"]
    functional.activation_post_process = treadle.nn.Threshold(-9.0, 7.0)
    assert functional.add(X, Y).tolist() == [4.0, -1.0]
    assert functional.mul(X, Y).tolist() == [3.0, -2.0]
    assert functional.add_relu(X, Y).tolist() == [4.0, 0.0]
    assert functional.cat([X, Y]).tolist() == [1.0, -2.0, 3.0, 1.0]
    assert functional.matmul(X, Y).item() == 1.0
    assert functional.mul(X, Y * 10).tolist() == [30.0, 7.0]  # what comes after was called
    assert functional.add_scalar(X, 2.0).tolist() == [3.0, 0.0]
    assert functional.mul_scalar(X, 5.0).tolist() == [5.0, -10.0]
    with pytest.raises(RuntimeError) as error:
        functional(X)
    assert str(error.value) == (
        "FloatFunctional: expected a call of one of its methods, as add(x, y), got a call of the "
        "module"
    )
