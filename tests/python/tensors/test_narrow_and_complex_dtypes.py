"""Dtypes that operators have beside the common ones: 16 bits, bool, complex numbers."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import pytest

import treadle
from treadle.autograd import gradcheck, gradgradcheck
from treadle.testing import assert_close

INF, NAN = float("inf"), float("nan")


# ---- the next number ----------------------------------------------------------------------------


def test_the_next_number_of_float16_is_numpys() -> None:
    bits = np.arange(2**16, dtype=np.uint16)
    values = bits.view(np.float16)
    for towards in (INF, -INF, 0.0, 1.0, NAN):
        targets = np.full_like(values, towards)
        found = treadle.nextafter(treadle.from_numpy(values), treadle.from_numpy(targets)).numpy()
        wanted = np.nextafter(values, targets)
        assert ((found == wanted) | (np.isnan(found) & np.isnan(wanted))).all(), towards


def test_the_next_number_of_bfloat16_has_the_next_bits() -> None:
    values = treadle.arange(0, 0x7F80, dtype=treadle.int16).view(treadle.bfloat16)
    up = treadle.nextafter(values, treadle.tensor(INF, dtype=treadle.bfloat16))
    assert treadle.equal(up.view(treadle.int16), values.view(treadle.int16) + 1)
    down = treadle.nextafter(values[1:], treadle.tensor(-INF, dtype=treadle.bfloat16))
    assert treadle.equal(down, values[:-1])
    last = treadle.tensor([INF, -INF], dtype=treadle.bfloat16)
    ends = treadle.finfo(treadle.bfloat16).max
    assert treadle.nextafter(last, treadle.zeros_like(last)).tolist() == [ends, -ends]


def test_the_next_number_passes_the_gradient_on() -> None:
    for dtype in (treadle.float16, treadle.float32):
        a = treadle.tensor([1.0, 2.0], dtype=dtype, requires_grad=True)
        b = treadle.tensor([3.0, 0.0], dtype=dtype, requires_grad=True)
        treadle.nextafter(a, b).backward(treadle.tensor([2.0, 5.0], dtype=dtype))
        assert a.grad is not None and a.grad.tolist() == [2.0, 5.0]
        assert b.grad is not None and b.grad.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_next_number_has_the_bits_of_numpys(dtype: Any) -> None:
    ends = [0.0, -0.0, 1.0, -1.0, INF, -INF, NAN, np.finfo(dtype).max, np.finfo(dtype).tiny]
    ends += [float(np.nextafter(dtype(0), dtype(1))), 2.0, -2.0]
    a, b = (np.ascontiguousarray(v) for v in np.meshgrid(*2 * [np.array(ends, dtype)]))
    with np.errstate(all="ignore"):
        wanted = np.nextafter(a, b)
    found = treadle.nextafter(treadle.from_numpy(a), treadle.from_numpy(b)).numpy()
    bits = f"u{a.itemsize}"
    same = found.view(bits) == wanted.view(bits)
    assert (same | (np.isnan(found) & np.isnan(wanted))).all()


def test_runs_of_float32_become_the_bfloat16_that_single_numbers_become() -> None:
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2**32, 4000, dtype=np.uint32)
    bits[:8] = [
        0x3F808000,
        0x3F818000,
        0x7F7FFFFF,
        0x7F800000,
        0xFF800001,
        0x7FC00000,
        1,
        0x80000000,
    ]
    values = treadle.from_numpy(bits.view(np.float32))
    run = values.to(treadle.bfloat16)
    single = treadle.stack([v.to(treadle.bfloat16) for v in values])
    assert treadle.equal(run.view(treadle.int16), single.view(treadle.int16))
    # And back.
    wide = run.to(treadle.float32)
    assert treadle.equal(
        wide.view(treadle.int32), treadle.stack([v.float() for v in run]).view(treadle.int32)
    )


# ---- an operand broadcast along the last dimension ----------------------------------------------


@pytest.mark.parametrize("columns", [63, 64, 500, 512, 513, 1500])
def test_an_element_for_a_whole_row_is_each_rows_own(columns: int) -> None:
    rows = 150  # more than one chunk of the parallel split, which begins inside a row
    x = treadle.arange(rows * columns, dtype=treadle.float32).reshape(rows, columns)
    column, row = treadle.arange(rows).float()[:, None] * 7, treadle.arange(columns).float()
    for threads in (1, 2):
        before = treadle.get_num_threads()
        treadle.set_num_threads(threads)
        try:
            for found, one, other in (
                (x * column, x, column),
                (column * row, column, row),
                (column * x.t().contiguous().t(), column, x),
                (x.int() * column, x, column),
                (x * column.int(), x, column),
            ):
                wide = [t.expand(rows, columns).contiguous() for t in (one, other)]
                assert treadle.equal(found, wide[0] * wide[1])
        finally:
            treadle.set_num_threads(before)


def test_both_ends_of_clamp() -> None:
    x = treadle.tensor([-2, 0, 5], dtype=treadle.int8)
    assert x.clamp(-1, 3).tolist() == [-1, 0, 3]
    assert x.clamp(3, -1).tolist() == [-1, -1, -1]
    with pytest.raises(RuntimeError) as error:
        x.clamp(-1000, 1000)
    assert str(error.value) == "clamp: expected a number that fits int8, got -1000"


# ---- complex numbers ----------------------------------------------------------------------------


def _complex(*shape: int, seed: int = 0) -> treadle.Tensor:
    draw = np.random.default_rng(seed).normal(size=(2, *shape))
    return treadle.tensor(draw[0] + 1j * draw[1], requires_grad=True)


def test_lerp_of_complex_numbers() -> None:
    a, b, w = (_complex(3, 4, seed=s) for s in range(3))
    x, y, t = (v.detach().numpy() for v in (a, b, w))
    assert_close(treadle.lerp(a, b, w).detach(), treadle.from_numpy(x + t * (y - x)))
    assert_close(treadle.lerp(a, b, 0.3).detach(), treadle.from_numpy(x + 0.3 * (y - x)))
    assert_close(treadle.lerp(a, b, 2 - 1j).detach(), treadle.from_numpy(x + (2 - 1j) * (y - x)))
    for function in (treadle.lerp, lambda a, b, w: treadle.lerp(a, b, 0.5 + 2j)):
        assert gradcheck(function, (a, b, w)) and gradgradcheck(function, (a, b, w))


def test_lerp_reaches_its_ends() -> None:
    a, b = treadle.tensor([0.1, 1e8]), treadle.tensor([0.7, 1.0])
    assert treadle.equal(treadle.lerp(a, b, 1.0), b) and treadle.equal(treadle.lerp(a, b, 0.0), a)
    found = treadle.lerp(a, b, treadle.tensor([1.0, 0.0]))
    assert treadle.equal(found, treadle.stack([b[0], a[1]]))


def test_logaddexp_of_complex_numbers() -> None:
    a, b = _complex(3, 4), _complex(3, 4, seed=1)
    sums = np.log(np.exp(a.detach().numpy()) + np.exp(b.detach().numpy()))
    assert_close(treadle.logaddexp(a, b).detach(), treadle.from_numpy(sums))
    assert gradcheck(treadle.logaddexp, (a, b)) and gradgradcheck(treadle.logaddexp, (a, b))
    far = treadle.tensor([10000.0 + 1j, -INF, INF], dtype=treadle.complex128)
    assert_close(
        treadle.logaddexp(far, far),
        treadle.tensor([10000 + np.log(2) + 1j, -INF, INF], dtype=treadle.complex128),
    )
    assert treadle.logaddexp(far[:1], a[0, :1].real).dtype == treadle.complex128


def test_running_sums_of_complex_exponentials() -> None:
    x = _complex(4, 3)
    sums = np.cumsum(np.exp(x.detach().numpy()), 0)
    found = treadle.logcumsumexp(x, 0)
    assert_close(found.exp().detach(), treadle.from_numpy(sums))
    assert_close(treadle.logcumsumexp(x + 5000, 0).detach(), found.detach() + 5000)
    assert gradcheck(lambda t: treadle.logcumsumexp(t, 0), (x,))
    none = treadle.tensor([-INF, -INF, 1j], dtype=treadle.complex64)
    assert treadle.logcumsumexp(none, 0).tolist() == [-INF, -INF, 1j]


def test_silu_of_complex_numbers() -> None:
    x = _complex(3, 4)
    values = x.detach().numpy()
    wanted = treadle.from_numpy(values / (1 + np.exp(-values)))
    assert_close(treadle.nn.functional.silu(x).detach(), wanted)
    silu = treadle.nn.functional.silu
    assert gradcheck(silu, (x,)) and gradgradcheck(silu, (x,))


def test_complex_numbers_of_halves() -> None:
    real, imag = (treadle.tensor(v, dtype=treadle.float16) for v in ([1.0, 2.0], [-3.0, 0.5]))
    z = treadle.complex(real, imag)
    assert z.dtype == treadle.complex32 and z.tolist() == [1 - 3j, 2 + 0.5j]
    assert treadle.equal(treadle.view_as_real(z)[:, 1], imag)
    pairs = treadle.stack([real, imag], 1)
    seen = treadle.view_as_complex(pairs)
    assert seen.dtype == treadle.complex32 and seen.data_ptr() == pairs.data_ptr()
    turned = treadle.polar(real, treadle.zeros_like(real))
    assert turned.dtype == treadle.complex32 and turned.tolist() == [1, 2]


@pytest.mark.parametrize(
    "call, error, said",
    [
        (
            lambda: treadle.complex(treadle.ones(2), treadle.ones(2, dtype=treadle.int32)),
            NotImplementedError,
            "complex: expected imag of a dtype in (float16, float32, float64), got treadle.int32",
        ),
        (
            lambda: treadle.complex(treadle.ones(2), treadle.ones(2, dtype=treadle.float64)),
            RuntimeError,
            "complex: expected real and imag of one dtype, got treadle.float32 and treadle.float64",
        ),
    ],
)
def test_parts_that_make_no_complex_number(
    call: Callable[[], Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error) as info:
        call()
    assert type(info.value) is error and str(info.value) == said


def test_elements_of_dtypes_that_only_store() -> None:
    mask = treadle.tensor([True, False])
    z = treadle.tensor([1 + 2j, 3 - 1j]).to(treadle.complex32)
    assert z.masked_fill(mask, 10).tolist() == [10, 3 - 1j]
    small = treadle.tensor([1.0, 2.0]).to(treadle.float8_e4m3fn)
    assert small.masked_fill(mask, 10).tolist() == [10.0, 2.0]
    # Sums are computed; bits are not added up.
    added = z.index_put([treadle.tensor([0, 0])], z[:1].expand(2), accumulate=True)
    assert added.dtype == treadle.complex32 and added.tolist() == [3 + 6j, 3 - 1j]
    doubled = small.index_put([treadle.tensor([0])], small[:1], accumulate=True)
    assert doubled.dtype == small.dtype and doubled.tolist() == [2.0, 2.0]


def test_a_complex_number_does_not_fill_real_ones() -> None:
    mask = treadle.tensor([True, False])
    assert treadle.ones(2).masked_fill(mask, treadle.tensor(2 + 0j)).tolist() == [2.0, 1.0]
    with pytest.raises(RuntimeError) as info:
        treadle.ones(2).masked_fill(mask, treadle.tensor(1j))
    assert str(info.value) == "masked_fill: expected a value that fits float32, got 1j"


# ---- bool, bytes, and sums that are wider -------------------------------------------------------


def test_bounds_of_truth_values() -> None:
    a, b = treadle.tensor([True, True, False]), treadle.tensor([True, False, False])
    assert treadle.clamp_max(a, b).tolist() == [True, False, False]
    assert treadle.clamp_min(b, a).tolist() == [True, True, False]
    assert treadle.clamp(a, max=b).dtype == treadle.bool
    assert treadle.heaviside(b, a).tolist() == [True, True, False]


def test_hardtanh_of_integers_cuts_its_ends() -> None:
    x = treadle.tensor([-8, 0, 1, 6], dtype=treadle.int8)
    hardtanh = treadle.nn.functional.hardtanh
    assert hardtanh(x).tolist() == [-1, 0, 1, 1] and hardtanh(x).dtype == treadle.int8
    assert hardtanh(x, -0.5, 2.5).tolist() == [0, 0, 1, 2]
    assert hardtanh(x.abs().to(treadle.uint8)).tolist() == [1, 0, 1, 1]


def test_sums_of_integers_are_int64_wherever_they_are() -> None:
    x = treadle.tensor([[[1, 2, 3]], [[4, 5, 6]]], dtype=treadle.int8)
    v = treadle.tensor([1, 2, 3], dtype=treadle.int8)
    summed = treadle.einsum("...ik,...j->ij", x, v)
    assert summed.dtype == treadle.int64 and summed.tolist() == [[21, 42, 63]]
    assert treadle.einsum("ij,k->k", x[0], v).dtype == treadle.int64
    assert treadle.einsum("ijk,lk->l", x, x[0]).tolist() == [14 + 32]
    assert treadle.einsum("i,i->i", v, v).dtype == treadle.int8
    one = treadle.tensor(5, dtype=treadle.int8).sum_to_size(())
    assert one.dtype == treadle.int64 and one.item() == 5


def test_weights_say_the_dtype_of_a_covariance() -> None:
    x = treadle.tensor([[1.0, 2.0, 4.0], [0.0, 1.0, 5.0]], dtype=treadle.float16)
    counts, weights = treadle.tensor([1, 2, 3]), treadle.tensor([0.5, 0.25, 0.25])
    found = treadle.cov(x, fweights=counts, aweights=weights)
    wanted = np.cov(x.numpy().astype(float), fweights=[1, 2, 3], aweights=[0.5, 0.25, 0.25])
    assert found.dtype == treadle.float32
    assert_close(found, treadle.tensor(wanted, dtype=treadle.float32), rtol=1e-3, atol=1e-3)
    assert treadle.cov(x, fweights=counts).dtype == treadle.float16


def test_powers_of_two_have_no_dtype_of_their_own() -> None:
    x = treadle.tensor([1.5, -2.0], dtype=treadle.bfloat16)
    scaled = treadle.ldexp(x, treadle.tensor([1, -2], dtype=treadle.int32))
    assert scaled.dtype == treadle.bfloat16 and scaled.tolist() == [3.0, -0.5]


def test_exponentials_of_matrices_of_16_bits() -> None:
    for dtype in (treadle.float16, treadle.bfloat16):
        found = treadle.matrix_exp(treadle.tensor([[0.0, 1.0], [0.0, 0.0]], dtype=dtype))
        assert found.dtype == dtype and found.tolist() == [[1.0, 1.0], [0.0, 1.0]]


def test_images_of_bytes_hold_bytes_between_their_dimensions() -> None:
    x = treadle.tensor([[[[0, 1], [3, 2]]]], dtype=treadle.uint8)
    # Along rows first: 0 0 1 1 and 3 3 2 2, with halves and quarters rounded up.
    found = treadle.nn.functional.interpolate(x, scale_factor=2, mode="bilinear")
    assert found[0, 0].tolist() == [[0, 0, 1, 1], [1, 1, 1, 1], [2, 2, 2, 2], [3, 3, 2, 2]]
