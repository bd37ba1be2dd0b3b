"""Products with weights of 8 and 4 bits: values, bits, and arguments that do not fit."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, Tuple

import pytest

import treadle
from treadle import Tensor
from treadle.testing import assert_close

DTYPES = [treadle.float32, treadle.bfloat16, treadle.float16]
TOLERANCE = {
    treadle.float32: dict(rtol=1e-5, atol=1e-5),
    treadle.bfloat16: dict(rtol=1e-2, atol=1e-2),
    treadle.float16: dict(rtol=2e-3, atol=2e-3),
}


def generator(seed: int = 0) -> treadle.Generator:
    return treadle.Generator().manual_seed(seed)


def int8_operands(m: int, n: int, k: int, dtype: treadle.dtype) -> Tuple[Tensor, Tensor, Tensor]:
    g = generator()
    x = treadle.randn(m, k, generator=g).to(dtype)
    weight = treadle.randint(-128, 128, (n, k), generator=g).to(treadle.int8)
    return x, weight, (treadle.rand(n, generator=g) / 64 / (k or 1) ** 0.5).to(dtype)


def int4_operands(
    m: int, n: int, k: int, group: int, dtype: treadle.dtype
) -> Tuple[Tensor, Tensor, Tensor]:
    g = generator()
    x = treadle.randn(m, k, generator=g).to(dtype)
    numbers = treadle.randint(0, 16, (n, k), generator=g, dtype=treadle.int32)
    factors = treadle.rand(k // group, n, 2, generator=g) - treadle.tensor([0.0, 0.5])
    return x, numbers, (factors / 8 / k**0.5).to(dtype)


def int4(x: Tensor, numbers: Tensor, group: int, factors: Tensor) -> Tensor:
    packed = treadle._convert_weight_to_int4pack_for_cpu(numbers, 1)
    return treadle._weight_int4pack_mm_for_cpu(x, packed, group, factors)


def int4_by_definition(x: Tensor, numbers: Tensor, group: int, factors: Tensor) -> Tensor:
    scale, zero = (factors.double()[:, :, i].t().repeat_interleave(group, 1) for i in range(2))
    return x.double() @ ((numbers.double() - 8) * scale + zero).t()


# Sizes around those of vectors, tiles, panels, runs and slabs.
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("m", [1, 2, 3, 4, 5, 11, 12, 13, 17, 515])
def test_int8_products(m: int, dtype: treadle.dtype) -> None:
    for n, k in [(1, 1), (3, 15), (5, 16), (9, 67), (66, 300), (4, 5000)][: 6 if m < 20 else 4]:
        x, weight, scales = int8_operands(m, n, k, dtype)
        found = treadle._weight_int8pack_mm(x, weight, scales)
        wanted = x.double() @ (weight.double() * scales.double()[:, None]).t()
        assert found.dtype == dtype
        assert_close(found.double(), wanted, **TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("m", [1, 2, 3, 4, 5, 11, 12, 13, 17, 515])
def test_int4_products(m: int, dtype: treadle.dtype) -> None:
    cases = [(16, 32, 32), (32, 64, 64), (80, 384, 128), (144, 768, 256), (64, 4160, 32)]
    for n, k, group in cases if m < 20 else cases[:3]:
        x, numbers, factors = int4_operands(m, n, k, group, dtype)
        found = int4(x, numbers, group, factors)
        assert found.dtype == dtype
        wanted = int4_by_definition(x, numbers, group, factors)
        assert_close(found.double(), wanted, **TOLERANCE[dtype])


def test_every_number_of_four_bits_at_every_place() -> None:
    k = 32
    one = treadle.eye(k)
    factors = treadle.tensor([1.0, 0.0]).expand(1, 16, 2)
    for shift in range(16):
        numbers = ((treadle.arange(16)[:, None] + treadle.arange(k) + shift) % 16).int()
        assert treadle.equal(int4(one, numbers, 32, factors).t(), numbers.float() - 8)


def test_every_number_of_eight_bits() -> None:
    weight = treadle.arange(-128, 128).to(treadle.int8)[:, None]
    found = treadle._weight_int8pack_mm(treadle.ones(1, 1), weight, treadle.ones(256))
    assert treadle.equal(found[0], treadle.arange(-128.0, 128.0))


def test_the_bytes_of_packed_weights_are_the_same_on_every_machine() -> None:
    numbers = (treadle.arange(16 * 16).reshape(16, 16) * 7 % 16).int()
    packed = treadle._convert_weight_to_int4pack_for_cpu(numbers, 1).reshape(2, 16, 4)
    for unit, row, byte in [(0, 0, 0), (0, 3, 1), (1, 0, 0), (1, 15, 3)]:
        low, high = numbers[row, 8 * unit + 2 * byte : 8 * unit + 2 * byte + 2].tolist()
        assert packed[unit, row, byte].item() == low | high << 4


@pytest.mark.parametrize("dtype", DTYPES)
def test_an_int4_row_has_the_same_bits_in_any_batch_and_with_any_number_of_threads(
    dtype: treadle.dtype,
) -> None:
    x, numbers, factors = int4_operands(30, 208, 1024, 32, dtype)
    whole = int4(x, numbers, 32, factors)
    for count in (1, 2, 3, 4, 5, 12, 13):
        assert treadle.equal(int4(x[:count], numbers, 32, factors), whole[:count])
    threads = treadle.get_num_threads()
    try:
        treadle.set_num_threads(1 if threads > 1 else 3)
        assert treadle.equal(int4(x, numbers, 32, factors), whole)
    finally:
        treadle.set_num_threads(threads)


@pytest.mark.parametrize("rows", [1, 16, 40])
def test_int8_products_have_the_same_bits_with_any_number_of_threads(rows: int) -> None:
    x, weight, scales = int8_operands(rows, 300, 2048, treadle.float32)
    whole = treadle._weight_int8pack_mm(x, weight, scales)
    if rows <= 16:
        assert treadle.equal(treadle._weight_int8pack_mm(x[:1], weight, scales), whole[:1])
    threads = treadle.get_num_threads()
    try:
        treadle.set_num_threads(1 if threads > 1 else 3)
        assert treadle.equal(treadle._weight_int8pack_mm(x, weight, scales), whole)
    finally:
        treadle.set_num_threads(threads)


def test_strided_arguments() -> None:
    x, numbers, factors = int4_operands(6, 32, 64, 32, treadle.float32)
    wanted = int4(x, numbers, 32, factors)
    strided = treadle.stack((x, x), 2)[:, :, 0]
    apart = treadle.stack((factors, factors), 3)[..., 1]
    assert treadle.equal(int4(strided, numbers.t().contiguous().t(), 32, apart), wanted)
    assert treadle.equal(int4(x.t().contiguous().t()[::2], numbers, 32, factors), wanted[::2])
    x, weight, scales = int8_operands(6, 32, 64, treadle.float32)
    wanted = treadle._weight_int8pack_mm(x, weight, scales)
    found = treadle._weight_int8pack_mm(
        x.t().contiguous().t(),
        weight.t().contiguous().t(),
        treadle.stack((scales, scales), 1)[:, 1],
    )
    assert treadle.equal(found, wanted)


def test_infinities_and_nan_of_an_input_reach_its_row_only() -> None:
    x, numbers, factors = int4_operands(6, 16, 64, 32, treadle.float32)
    clean = int4(x, numbers, 32, factors)
    x[2, 5], x[4, 63] = float("inf"), float("nan")
    found = int4(x, numbers, 32, factors)
    assert not found[2].isfinite().any() and found[4].isnan().all()
    assert treadle.equal(found[[0, 1, 3, 5]], clean[[0, 1, 3, 5]])


def test_gradients_are_refused() -> None:
    x, weight, scales = int8_operands(2, 3, 4, treadle.float32)
    product = treadle._weight_int8pack_mm(x.requires_grad_(), weight, scales)
    with pytest.raises(NotImplementedError) as info:
        product.sum().backward()
    assert str(info.value) == "_weight_int8pack_mm: derivative is not implemented"


BYTES = treadle.zeros(16, 32, dtype=treadle.uint8)
FACTORS = treadle.ones(2, 16, 2)
WEIGHT = treadle.ones(3, 4, dtype=treadle.int8)
NUMBERS = treadle.zeros(16, 8, dtype=treadle.int32)


def mm4(x: Any = treadle.ones(1, 64), w: Any = BYTES, group: int = 32, f: Any = FACTORS) -> Tensor:
    return treadle._weight_int4pack_mm_for_cpu(x, w, group, f)


def mm8(x: Any = treadle.ones(1, 4), w: Any = WEIGHT, s: Any = treadle.ones(3)) -> Tensor:
    return treadle._weight_int8pack_mm(x, w, s)


def pack(numbers: Any) -> Tensor:
    return treadle._convert_weight_to_int4pack_for_cpu(numbers, 1)


@pytest.mark.parametrize(
    "call, error, said",
    [
        (
            lambda: mm4(x=treadle.ones(64)),
            RuntimeError,
            "self and mat2 with 2 dimensions, got shapes (64,) and (16, 32)",
        ),
        (
            lambda: mm4(w=BYTES.reshape(1, 16, 32)),
            RuntimeError,
            "self and mat2 with 2 dimensions, got shapes (1, 64) and (1, 16, 32)",
        ),
        (
            lambda: mm4(w=BYTES[:, :31]),
            RuntimeError,
            "packed weights of shape (n, 32) with n in multiples of 16, got (16, 31)",
        ),
        (
            lambda: mm4(w=BYTES[:15]),
            RuntimeError,
            "packed weights of shape (n, 32) with n in multiples of 16, got (15, 32)",
        ),
        (
            lambda: mm4(w=BYTES.to(treadle.int8)),
            RuntimeError,
            "mat2 of dtype treadle.uint8, got treadle.int8",
        ),
        (
            lambda: mm4(x=treadle.ones(1, 63)),
            RuntimeError,
            "self to have columns in multiples of qGroupSize = 32, got shape (1, 63)",
        ),
        *(
            (
                lambda group=group: mm4(group=group),
                ValueError,
                f"qGroupSize to be one of 32, 64, 128, 256, got {group}",
            )
            for group in (0, -32, 16, 48, 512, 2**62, -(2**63))
        ),
        (
            lambda: mm4(group=64),
            RuntimeError,
            "qScaleAndZeros of shape (1, 16, 2), got (2, 16, 2)",
        ),
        (
            lambda: mm4(f=FACTORS[:, :15]),
            RuntimeError,
            "qScaleAndZeros of shape (2, 16, 2), got (2, 15, 2)",
        ),
        (
            lambda: mm4(f=FACTORS[:, :, 0]),
            RuntimeError,
            "qScaleAndZeros of shape (2, 16, 2), got (2, 16)",
        ),
        (
            lambda: mm4(f=FACTORS.bfloat16()),
            RuntimeError,
            "self and qScaleAndZeros of one dtype, got treadle.float32 and treadle.bfloat16",
        ),
        (
            lambda: mm4(x=treadle.ones(1, 64).double(), f=FACTORS.double()),
            NotImplementedError,
            "a device, layout and dtype that has a kernel, got cpu, strided, float64\n"
            "kernels exist for: cpu (float16, bfloat16, float32)",
        ),
        (
            lambda: mm8(x=treadle.ones(1, 5)),
            RuntimeError,
            "self (m, k) and mat2 (n, k), got shapes (1, 5) and (3, 4)",
        ),
        (
            lambda: mm8(w=WEIGHT[0]),
            RuntimeError,
            "self and mat2 with 2 dimensions, got shapes (1, 4) and (4,)",
        ),
        (lambda: mm8(s=treadle.ones(4)), RuntimeError, "scales of shape (3,), got (4,)"),
        (lambda: mm8(s=treadle.ones(3, 1)), RuntimeError, "scales of shape (3,), got (3, 1)"),
        (
            lambda: mm8(w=WEIGHT.float()),
            RuntimeError,
            "mat2 of dtype treadle.int8, got treadle.float32",
        ),
        (
            lambda: pack(NUMBERS[:15]),
            RuntimeError,
            "a matrix with rows in multiples of 16 and columns in multiples of 8, got shape "
            "(15, 8)",
        ),
        (
            lambda: pack(NUMBERS[:, :7]),
            RuntimeError,
            "a matrix with rows in multiples of 16 and columns in multiples of 8, got shape "
            "(16, 7)",
        ),
        (
            lambda: pack(NUMBERS[0]),
            RuntimeError,
            "a matrix with rows in multiples of 16 and columns in multiples of 8, got shape (8,)",
        ),
        (lambda: pack(NUMBERS + 16), RuntimeError, "numbers from 0 to 15, got 16"),
        (lambda: pack(NUMBERS - 1), RuntimeError, "numbers from 0 to 15, got -1"),
        (
            lambda: pack(NUMBERS.long()),
            NotImplementedError,
            "a device, layout and dtype that has a kernel, got cpu, strided, int64\n"
            "kernels exist for: cpu (int32)",
        ),
    ],
)
def test_what_does_not_fit(call: Callable[[], Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error) as info:
        call()
    assert str(info.value).partition(": ")[2] == f"expected {said}"
