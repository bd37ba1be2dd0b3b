"""Generated kernels: functions, dtypes, layouts and reductions agree with the CPU."""

# SPDX-License-Identifier: Apache-2.0

from typing import Callable

import pytest

import treadle

FLOATING = [treadle.float16, treadle.bfloat16, treadle.float32, treadle.float64]
COMPLEX = [treadle.complex64, treadle.complex128]
INTEGERS = [treadle.int8, treadle.int16, treadle.int32, treadle.int64, treadle.uint8]

REAL = {
    "exp": treadle.exp,
    "log": lambda x: treadle.log(x.abs() + 0.5),
    "expm1": treadle.expm1,
    "log1p": lambda x: treadle.log1p(x.abs()),
    "sqrt": lambda x: treadle.sqrt(x.abs()),
    "sin": treadle.sin,
    "tan": treadle.tan,
    "atan": treadle.atan,
    "sinh": treadle.sinh,
    "tanh": treadle.tanh,
    "asinh": treadle.asinh,
    "erf": treadle.erf,
    "sigmoid": treadle.sigmoid,
    "silu": treadle.nn.functional.silu,
    "gelu": treadle.nn.functional.gelu,
    "softplus": treadle.nn.functional.softplus,
    "pow": lambda x: x.abs() ** 1.7,
    "clamp": lambda x: x.clamp(-0.5, 0.5),
    "floor_divide": lambda x: x // 0.3,
    "remainder": lambda x: x % 0.3,
    "round": treadle.round,
    "where": lambda x: treadle.where(x > 0, x, -x),
    "maximum": lambda x: treadle.maximum(x, -x),
    "isfinite": lambda x: treadle.isfinite(1 / x),
}


def agree(function: Callable, x: treadle.Tensor, device: treadle.device) -> None:
    result, expected = function(x.to(device)), function(x)
    assert result.device == device
    assert result.dtype == expected.dtype
    treadle.testing.assert_close(result.cpu(), expected, equal_nan=True)


@pytest.mark.parametrize("dtype", FLOATING, ids=str)
@pytest.mark.parametrize("name", REAL)
def test_real_functions(name: str, dtype: treadle.dtype, device: treadle.device) -> None:
    agree(REAL[name], (treadle.rand(5, 9) * 4 - 2).to(dtype), device)


@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
@pytest.mark.parametrize(
    "function",
    [treadle.exp, treadle.log, treadle.sqrt, treadle.sin, treadle.cosh, treadle.tanh, treadle.asin,
     treadle.acosh, treadle.atan, treadle.abs, treadle.angle, treadle.reciprocal, treadle.sgn,
     lambda z: z * z.conj(), lambda z: z**0.3, lambda z: z == z.conj()],
)  # fmt: skip
def test_complex_functions(function, dtype: treadle.dtype, device: treadle.device) -> None:
    agree(function, treadle.randn(4, 7, dtype=dtype), device)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize(
    "function",
    [lambda x: x + x * x - 3, lambda x: x // 3, lambda x: x % -3 if x.is_signed() else x % 3,
     lambda x: x << 2, lambda x: x >> 1, lambda x: x & 5, lambda x: ~x, lambda x: x**3, treadle.abs,
     treadle.sign, lambda x: treadle.gcd(x, x + 6), lambda x: x / 3, lambda x: x < 2],
)  # fmt: skip
def test_integers(function, dtype: treadle.dtype, device: treadle.device) -> None:
    agree(function, treadle.arange(-20 if dtype.is_signed else 0, 60).to(dtype), device)


def test_an_integer_divided_by_zero_is_an_error(device: treadle.device) -> None:
    x = treadle.arange(3, device=device)
    with pytest.raises(RuntimeError, match="floor_divide: expected a non-zero divisor, got 0"):
        1 // x
    assert (x // 2).tolist() == [0, 0, 1]  # what was marked is forgotten


@pytest.mark.parametrize(
    "view",
    [lambda x: x.t(), lambda x: x[::2, 1:], lambda x: x[:, :1], lambda x: x.flip(0),
     lambda x: x[1, 2], lambda x: x.unsqueeze(0).expand(3, -1, -1)],
)  # fmt: skip
def test_layouts(view, device: treadle.device) -> None:
    x = treadle.randn(6, 10)
    agree(lambda t: view(t) * 2 + view(t).exp(), x, device)
    agree(lambda t: view(t).contiguous(), x, device)


def test_broadcasting_and_in_place(device: treadle.device) -> None:
    a, b = treadle.randn(4, 1, 5), treadle.randn(3, 1)
    treadle.testing.assert_close((a.to(device) + b.to(device)).cpu(), a + b)
    x = a.to(device)
    x[:, :, ::2].mul_(3)
    a[:, :, ::2].mul_(3)
    assert treadle.equal(x.cpu(), a)


@pytest.mark.parametrize("dims", [None, (0,), (1,), (2,), (0, 2), (1, 2)])
@pytest.mark.parametrize(
    "dtype", [treadle.float16, treadle.float32, treadle.int32, treadle.complex64]
)
def test_reductions(dims, dtype: treadle.dtype, device: treadle.device) -> None:
    x = (treadle.rand(7, 33, 40) * 10).to(dtype)
    agree(lambda t: t.sum(dims) if dims else t.sum(), x, device)
    agree(lambda t: t.permute(2, 0, 1).sum(dims) if dims else t.permute(2, 0, 1).sum(), x, device)
    if not dtype.is_complex:
        agree(lambda t: t.amax(dims or ()), x, device)
        agree(lambda t: (t > 9).any(dims[0]) if dims else (t > 9).any(), x, device)


def test_long_sums_are_the_same_in_each_run(device: treadle.device) -> None:
    x = treadle.rand(1_000_003).to(device)
    sums = {x.sum().item() for _ in range(5)}
    assert len(sums) == 1
    assert sums.pop() == pytest.approx(x.cpu().double().sum().item(), rel=1e-6)
