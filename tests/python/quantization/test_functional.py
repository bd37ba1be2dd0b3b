"""Functions of quantized tensors, and the operations of QFunctional."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any

import pytest

import treadle
from treadle.ao.nn import quantized as nnq
from treadle.ao.nn.quantized import functional as qf
from treadle.nn import functional as F  # noqa: N812


def _x(*shape: int, scale: float = 0.05, zero_point: int = 64) -> Any:
    treadle.manual_seed(0)
    return treadle.quantize_per_tensor(treadle.randn(shape), scale, zero_point, treadle.quint8)


def _weight(*shape: int) -> Any:
    treadle.manual_seed(1)
    return treadle.quantize_per_tensor(treadle.randn(shape), 0.05, 0, treadle.qint8)


def _near(got: Any, wanted: Any) -> None:
    """Within a step of the scale."""
    assert got.is_quantized and got.shape == wanted.shape
    assert (got.dequantize() - wanted).abs().max().item() <= got.q_scale() * 1.01


def test_products() -> None:
    x, w, b = _x(4, 8), _weight(3, 8), treadle.randn(3)
    _near(qf.linear(x, w, b, 0.2, 100), F.linear(x.dequantize(), w.dequantize(), b))
    kept = qf.linear(x, w)
    assert (kept.q_scale(), kept.q_zero_point()) == (x.q_scale(), x.q_zero_point())
    for dims in (1, 2, 3):
        image, kernel = _x(2, 4, *(5,) * dims), _weight(6, 2, *(3,) * dims)
        bias = treadle.randn(6)
        wanted = getattr(F, f"conv{dims}d")(
            image.dequantize(), kernel.dequantize(), bias, 2, 1, 1, 2
        )
        function = getattr(qf, f"conv{dims}d")
        _near(function(image, kernel, bias, 2, 1, 1, 2, scale=0.5, zero_point=128), wanted)


def test_functions_with_a_scale_of_their_own() -> None:
    x = _x(3, 4)
    real = x.dequantize()
    _near(qf.elu(x, 0.02, 60), F.elu(real))
    _near(qf.celu(x, 0.02, 60, 2.0), F.celu(real, 2.0))
    _near(qf.hardswish(x, 0.02, 60), F.hardswish(real))
    _near(qf.leaky_relu(x, 0.1, scale=0.02, zero_point=60), F.leaky_relu(real, 0.1))
    sigmoid = qf.hardsigmoid(x)
    assert (sigmoid.q_scale(), sigmoid.q_zero_point()) == (1 / 256, 0)
    _near(sigmoid, F.hardsigmoid(real).clamp(max=255 / 256))


def test_functions_with_the_scale_of_their_argument() -> None:
    x = _x(2, 3, 6, 6)
    real = x.dequantize()
    for got, wanted in (
        (qf.avg_pool2d(x, 2), F.avg_pool2d(real, 2)),
        (qf.adaptive_avg_pool2d(x, 2), F.adaptive_avg_pool2d(real, 2)),
        (qf.max_pool2d(x, 3, 1), F.max_pool2d(real, 3, 1)),
        (qf.interpolate(x, scale_factor=2), F.interpolate(real, scale_factor=2)),
        (qf.upsample_nearest(x, scale_factor=2), F.interpolate(real, scale_factor=2)),
        (qf.hardtanh(x, -0.5, 0.5), F.hardtanh(real, -0.5, 0.5)),
        (qf.clamp(x, -0.5, 0.5), real.clamp(-0.5, 0.5)),
        (qf.threshold(x, 0.2, 0.0), F.threshold(real, 0.2, 0.0)),
        (qf.leaky_relu(x, 0.5), F.leaky_relu(real, 0.5)),
    ):
        assert (got.q_scale(), got.q_zero_point()) == (x.q_scale(), x.q_zero_point())
        _near(got, wanted)
    y = x.clone()
    assert qf.leaky_relu(y, 0.5, inplace=True) is y and treadle.equal(y, qf.leaky_relu(x, 0.5))


@pytest.mark.parametrize("number", [0.0, 1.0, -1.0, 2.5, 400.0, -400.0, 0.001])
def test_numbers(number: float) -> None:
    x, made = _x(3, 4), nnq.QFunctional()
    _near(made.add_scalar(x, number), x.dequantize() + number)
    _near(made.mul_scalar(x, number), x.dequantize() * number)


def test_operations_as_modules() -> None:
    x, y, made = _x(3, 4), _x(3, 4, scale=0.02, zero_point=100), nnq.QFunctional()
    made.scale, made.zero_point = 0.12, 120
    a, b = x.dequantize(), y.dequantize()
    _near(made.add(x, y), a + b)
    _near(made.add_relu(x, y), (a + b).relu())
    _near(made.mul(x, y), a * b)
    _near(made.cat([x, y], 1), treadle.cat([a, b], 1))
    _near(made.matmul(x, y.transpose(0, 1)), a @ b.T)
    assert repr(made) == (
        "QFunctional(\n  scale=0.12, zero_point=120\n  (activation_post_process): Identity()\n)"
    )


REFUSED = {
    "floats": (
        lambda: qf.linear(treadle.ones(1, 1), _weight(1, 1)),
        ValueError,
        "nn.quantized.functional.linear: expected a quantized tensor, got a tensor of "
        "treadle.float32",
    ),
    "no tensor": (
        lambda: qf.max_pool2d([1.0], 2),
        ValueError,
        "nn.quantized.functional.max_pool2d: expected a quantized tensor, got list",
    ),
    "padding": (
        lambda: qf.conv2d(_x(1, 1, 3, 3), _weight(1, 1, 1, 1), None, padding_mode="circular"),
        NotImplementedError,
        "nn.quantized.functional.conv2d: expected padding_mode='zeros', got 'circular'",
    ),
    "dtypes": (
        lambda: qf.conv2d(_weight(1, 1, 3, 3), _weight(1, 1, 1, 1), None),
        NotImplementedError,
        "nn.quantized.functional.conv2d: expected an input of treadle.quint8, a weight of "
        "treadle.qint8 and a result of treadle.quint8, got treadle.qint8, treadle.qint8 and "
        "treadle.quint8",
    ),
    "dtype of the result": (
        lambda: qf.conv1d(_x(1, 1, 3), _weight(1, 1, 1), None, dtype=treadle.qint8),
        NotImplementedError,
        "nn.quantized.functional.conv1d: expected an input of treadle.quint8, a weight of "
        "treadle.qint8 and a result of treadle.quint8, got treadle.quint8, treadle.qint8 and "
        "treadle.qint8",
    ),
    "a number that is not finite": (
        lambda: qf.add_scalar(_x(1), float("nan")),
        ValueError,
        "nn.quantized.functional.add_scalar: expected a finite number, got nan",
    ),
    "an infinite factor": (
        lambda: nnq.QFunctional().mul_scalar(_x(1), float("inf")),
        ValueError,
        "nn.quantized.functional.mul_scalar: expected a finite number, got inf",
    ),
    "a product with floats": (
        lambda: qf.matmul(_x(1, 1), treadle.ones(1, 1), 1.0, 0),
        ValueError,
        "nn.quantized.functional.matmul: expected a quantized tensor, got a tensor of "
        "treadle.float32",
    ),
    "in place": (
        lambda: qf.leaky_relu(_x(1), inplace=True, scale=1.0),
        ValueError,
        "leaky_relu: expected no scale together with inplace=True, got both",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    call, kind, message = REFUSED[name]
    with pytest.raises(kind) as error:
        call()
    assert str(error.value) == message
