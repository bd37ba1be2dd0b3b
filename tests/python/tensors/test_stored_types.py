"""Dtypes that only store: float8 types, complex types of 32 bits, names of quantized types."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
import io
import pickle

import numpy as np
import pytest

import treadle

FLOAT8 = ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"]
QUANTIZED = ["qint8", "quint8", "qint32", "quint4x2", "quint2x4"]
STORED = [*FLOAT8, "float4_e2m1fn_x2", "complex32", "bcomplex32"]


def every_pattern(dtype: str) -> treadle.Tensor:
    return treadle.arange(256, dtype=treadle.uint8).view(getattr(treadle, dtype))


@pytest.mark.parametrize("name", [*STORED, *QUANTIZED])
def test_a_dtype_is_an_object_with_facts(name: str) -> None:
    dtype = getattr(treadle, name)
    assert repr(dtype) == f"treadle.{name}" and isinstance(dtype, treadle.dtype)
    assert dtype.itemsize == (4 if name in ("complex32", "bcomplex32", "qint32") else 1)
    assert dtype.is_floating_point == name.startswith("float")
    assert dtype.is_complex == ("complex" in name)
    assert dtype.is_signed == (name not in ("float8_e8m0fnu", "quint8", "quint4x2", "quint2x4"))
    assert pickle.loads(pickle.dumps(dtype)) is dtype and {dtype: 1}[dtype] == 1


def test_complex_types_of_32_bits_belong_to_the_16_bit_floats() -> None:
    assert treadle.chalf is treadle.complex32
    assert treadle.complex32.to_real() is treadle.float16
    assert treadle.bcomplex32.to_real() is treadle.bfloat16
    assert treadle.float16.to_complex() is treadle.complex32
    assert treadle.bfloat16.to_complex() is treadle.bcomplex32


@pytest.mark.parametrize(
    "name, smallest, largest, eps, normal",
    [
        ("float8_e4m3fn", -448, 448, 2**-3, 2**-6),
        ("float8_e5m2", -57344, 57344, 2**-2, 2**-14),
        ("float8_e4m3fnuz", -240, 240, 2**-3, 2**-7),
        ("float8_e5m2fnuz", -57344, 57344, 2**-2, 2**-15),
        ("float8_e8m0fnu", 2.0**-127, 2.0**127, 1, 2.0**-127),
    ],
)
def test_finfo(name: str, smallest: float, largest: float, eps: float, normal: float) -> None:
    info = treadle.finfo(getattr(treadle, name))
    assert (info.bits, info.dtype) == (8, name)
    assert (info.min, info.max, info.eps, info.tiny) == (smallest, largest, eps, normal)


# Bits of the mantissa, bias of the exponent, largest finite pattern, whether -0 is the only NaN.
FORMATS = {
    "float8_e4m3fn": (3, 7, 0x7E, False),
    "float8_e5m2": (2, 15, 0x7B, False),
    "float8_e4m3fnuz": (3, 8, 0x7F, True),
    "float8_e5m2fnuz": (2, 16, 0x7F, True),
}


def magnitude(name: str, pattern: int) -> float:
    """The value of a pattern without its sign, by the format; infinities and NaN aside."""
    bits, bias, *_ = FORMATS[name]
    exponent, fraction = pattern >> bits, pattern & (1 << bits) - 1
    if exponent == 0:
        return fraction * 2.0 ** (1 - bias - bits)
    return (1 + fraction / 2**bits) * 2.0 ** (exponent - bias)


def value(name: str, pattern: int) -> float:
    _, _, largest, unsigned_zero = FORMATS[name]
    if unsigned_zero and pattern == 0x80:
        return float("nan")
    sign = -1.0 if pattern & 0x80 else 1.0
    if pattern & 0x7F <= largest:
        return sign * magnitude(name, pattern & 0x7F)
    return sign * float("inf") if (name, pattern & 0x7F) == ("float8_e5m2", 0x7C) else float("nan")


def nearest(name: str, values: np.ndarray) -> np.ndarray:
    """The values of the nearest patterns, of two the even one."""
    _, _, largest, unsigned_zero = FORMATS[name]
    # One more than there are: what is nearer to that than to the largest is too large.
    known = np.array([magnitude(name, p) for p in range(largest + 2)])
    sizes = np.abs(values).astype(np.float64)
    above = np.clip(np.searchsorted(known, sizes), 1, largest + 1)
    middles = (known[above] + known[above - 1]) / 2
    up = (sizes > middles) | ((sizes == middles) & (above % 2 == 0))
    pattern = np.where(up, above, above - 1)
    # float8_e4m3fn has no infinity; what is too large, infinities too, becomes its largest number.
    too_large = {"float8_e5m2": np.inf, "float8_e4m3fn": known[largest]}.get(name, np.nan)
    result = np.where(pattern > largest, too_large, known[np.minimum(pattern, largest)])
    result = np.where(np.isinf(values), too_large, np.where(np.isnan(values), np.nan, result))
    # Where there is no -0, what is rounded to it is 0.
    signs = np.where((pattern == 0) & unsigned_zero, 1.0, np.copysign(1.0, values))
    return (signs * result).astype(np.float32)


def assert_same_floats(got: np.ndarray, wanted: np.ndarray) -> None:
    np.testing.assert_array_equal(got, wanted)
    known = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(got[known]), np.signbit(wanted[known]))


@pytest.mark.parametrize("name", list(FORMATS))
def test_every_pattern_is_the_value_that_the_format_says(name: str) -> None:
    wanted = np.array([value(name, p) for p in range(256)], np.float32)
    assert_same_floats(every_pattern(name).to(treadle.float32).numpy(), wanted)


@pytest.mark.parametrize("name", list(FORMATS))
def test_rounding_of_every_16_bit_float_and_of_what_lies_between(name: str) -> None:
    halves = np.arange(2**16, dtype=np.uint16)
    # float16 for what the types hold, bfloat16 for the ends of their ranges.
    cases = [
        halves.view(np.float16).astype(np.float32),
        (halves.astype(np.uint32) << 16).view(np.float32),
    ]
    ends = [magnitude(name, p) for p in range(FORMATS[name][2] + 2)]
    middles = ((np.array(ends[1:]) + ends[:-1]) / 2).astype(np.float32)
    for sign in (np.float32(1), np.float32(-1)):
        for towards in (np.float32(0), np.float32(np.inf)):
            cases += [sign * middles, sign * np.nextafter(middles, towards)]
    for case in cases:
        got = treadle.from_numpy(case).to(getattr(treadle, name)).to(treadle.float32)
        assert_same_floats(got.numpy(), nearest(name, case))


def test_powers_of_two_are_rounded_up_from_the_middle_on() -> None:
    exact = [1.0, 2.0**-127, 2.0**127, 1.49, 1.5, 1.51, 3.0, -4.0, 0.0]
    got = treadle.tensor(exact).to(treadle.float8_e8m0fnu).float().tolist()
    assert got == [1.0, 2.0**-127, 2.0**127, 1.0, 2.0, 2.0, 4.0, 4.0, 2.0**-127]
    assert treadle.tensor([float("nan"), float("inf")]).to(treadle.float8_e8m0fnu).isnan().all()


def test_every_power_of_two_and_what_lies_around_it() -> None:
    powers = np.array([2.0 ** (p - 127) for p in range(255)])
    exact = every_pattern("float8_e8m0fnu").to(treadle.float32).numpy()
    np.testing.assert_array_equal(exact[:255], powers.astype(np.float32))
    assert np.isnan(exact[255])
    middles = (1.5 * powers[:-1]).astype(np.float32)
    cases = [powers.astype(np.float32), middles]
    for known in tuple(cases):
        cases += [np.nextafter(known, np.float32(towards)) for towards in (0, np.inf)]
    for case in cases:
        case = case[np.isfinite(case)]
        above = np.clip(np.searchsorted(powers, case.astype(np.float64)), 1, 254)
        up = case.astype(np.float64) >= 1.5 * powers[above - 1]
        # The two smallest powers are an exception: what is larger than one becomes the other.
        up |= (case > powers[0]) & (case < powers[1])
        wanted = np.where(up, above, above - 1)
        for signed in (case, -case):
            bits = treadle.from_numpy(signed).to(treadle.float8_e8m0fnu).view(treadle.uint8)
            np.testing.assert_array_equal(bits.numpy(), wanted)


@pytest.mark.parametrize("name", FLOAT8)
def test_other_dtypes_convert_by_way_of_float32(name: str) -> None:
    dtype = getattr(treadle, name)
    x = treadle.tensor([1.0, 2.0, 4.0])
    for other in (treadle.float64, treadle.int64, treadle.uint8, treadle.bfloat16, treadle.float16):
        there = x.to(other).to(dtype)
        assert there.dtype is dtype and treadle.equal(there.to(other), x.to(other))
    assert treadle.equal(x.to(dtype).to(treadle.complex64).real, x)
    assert x.to(dtype).bool().all()


@pytest.mark.parametrize("name", [*FLOAT8, "complex32", "bcomplex32"])
def test_tensors_are_made_copied_and_indexed(name: str) -> None:
    dtype = getattr(treadle, name)
    x = treadle.tensor([[1.0, 2.0, 4.0], [8.0, 16.0, 0.5]], dtype=dtype)
    wide = treadle.complex64 if dtype.is_complex else treadle.float32
    w = x.to(wide)
    assert x.dtype is dtype and x.tolist() == w.tolist() and x[0, 1].item() == 2.0
    assert treadle.full((2,), 2.0, dtype=dtype).tolist() == [2.0, 2.0]
    assert treadle.ones(2, dtype=dtype).tolist() == [1.0, 1.0]
    assert treadle.empty(2, 3, dtype=dtype).shape == (2, 3)
    assert x.is_floating_point() == (not dtype.is_complex)
    index, mask = treadle.tensor([1, 0]), w.real > 1
    for f in (
        lambda t: t.clone(),
        lambda t: t.t().contiguous(),
        lambda t: t[:, ::2],
        lambda t: t[index],
        lambda t: t[mask],
        lambda t: t.index_select(1, index),
        lambda t: t.gather(1, treadle.tensor([[2], [0]])),
        lambda t: treadle.cat([t, t]),
        lambda t: treadle.stack([t, t], 1),
        lambda t: t.flip(1),
        lambda t: t.roll(1, 1),
        lambda t: t.repeat(2, 2),
        lambda t: treadle.where(mask, t, t.flip(1)),
        lambda t: treadle.nn.functional.embedding(index, t),
        lambda t: t.masked_select(mask),
        lambda t: t.scatter(1, treadle.tensor([[2], [0]]), t.flip(1)),
        lambda t: t.expand(2, 2, 3).reshape(4, 3),
    ):
        assert f(x).dtype is dtype and treadle.equal(f(x).to(wide), f(w))
    y = x.clone()
    y[0] = 2.0
    y[1, 1] = x[0, 0]
    y.t()[0].fill_(4.0)
    assert y.tolist() == [[4.0, 2.0, 2.0], [4.0, 1.0, 0.5]]
    assert copy.deepcopy(x).tolist() == x.tolist()
    assert pickle.loads(pickle.dumps(x)).tolist() == x.tolist()


@pytest.mark.parametrize("name", STORED)
def test_state_dicts_are_saved_and_loaded(name: str) -> None:
    dtype = getattr(treadle, name)
    x = treadle.arange(16, dtype=treadle.uint8).view(dtype)
    file = io.BytesIO()
    treadle.save({"x": x, "part": x[1:3]}, file)
    file.seek(0)
    loaded = treadle.load(file)
    assert loaded["x"].dtype is dtype
    assert treadle.equal(loaded["x"].view(treadle.uint8), x.view(treadle.uint8))
    assert loaded["part"].untyped_storage().data_ptr() == loaded["x"].data_ptr()


def test_what_is_answered_with_truth_values_is_answered() -> None:
    x = treadle.tensor([1.0, 2.0, float("nan")], dtype=treadle.float8_e4m3fn)
    assert (x == x).tolist() == [True, True, False]
    assert (x != x.flip(0)).tolist() == [True, False, True]
    assert x.isnan().tolist() == [False, False, True]
    assert x.isfinite().tolist() == [True, True, False]


def test_complex_types_of_32_bits_are_computed_in_complex64() -> None:
    x = treadle.tensor([1 + 2j, 3 - 4j], dtype=treadle.complex32)
    wide = x.to(treadle.complex64)
    for f in (lambda t: t + t, lambda t: t * 2, lambda t: t * t, lambda t: -t, lambda t: t.conj()):
        assert f(x).dtype is treadle.complex32
        assert treadle.equal(f(x).to(treadle.complex64), f(wide))
    assert x.abs().dtype is treadle.float16 and x.abs().tolist() == pytest.approx([5**0.5, 5], 1e-3)
    assert x.real.dtype is treadle.float16 and x.real.tolist() == [1.0, 3.0]
    assert treadle.view_as_real(x).tolist() == [[1.0, 2.0], [3.0, -4.0]]
    assert (x + treadle.ones(2)).dtype is treadle.complex64
    assert (x == x).all() and x.add_(1).tolist() == [2 + 2j, 4 - 4j]


def test_common_types() -> None:
    c = treadle.complex32
    assert treadle.promote_types(c, treadle.float16) is c
    assert treadle.promote_types(c, treadle.int64) is c
    assert treadle.promote_types(c, treadle.bfloat16) is treadle.complex64
    assert treadle.promote_types(c, treadle.complex128) is treadle.complex128
    assert treadle.promote_types(c, treadle.bcomplex32) is treadle.complex64
    small = treadle.float8_e5m2
    assert treadle.promote_types(small, small) is small
    assert treadle.promote_types(small, treadle.int64) is small
    assert treadle.promote_types(small, treadle.float8_e4m3fn) is treadle.float32
    assert treadle.promote_types(small, treadle.float32) is treadle.float32
    assert treadle.promote_types(treadle.float64, small) is treadle.float64
    assert treadle.promote_types(small, c) is treadle.complex64
    with pytest.raises(TypeError) as error:
        treadle.promote_types(treadle.qint8, treadle.float32)
    assert str(error.value) == (
        "expected dtypes with a common one, got qint8 and float32; cast one of them first, "
        "with .to()"
    )


def test_gradients_pass_a_conversion() -> None:
    w = treadle.ones(3, requires_grad=True)
    rounded = w.to(treadle.float8_e5m2).to(treadle.float32)
    (rounded * treadle.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert w.grad.tolist() == [1.0, 2.0, 3.0]
    assert treadle.ones(2, dtype=treadle.float8_e5m2, requires_grad=True).requires_grad


@pytest.mark.parametrize("name", QUANTIZED)
def test_quantized_names_have_no_tensors(name: str) -> None:
    with pytest.raises(NotImplementedError) as error:
        treadle.empty(2, dtype=getattr(treadle, name))
    assert str(error.value) == (
        f"empty: expected a dtype that strided tensors may have, got treadle.{name}; "
        "quantize_per_tensor() makes quantized tensors"
    )


def test_values_that_are_several_in_a_byte_are_not_converted() -> None:
    x = treadle.zeros(2, dtype=treadle.uint8).view(treadle.float4_e2m1fn_x2)
    assert x.clone().dtype is treadle.float4_e2m1fn_x2
    with pytest.raises(NotImplementedError) as error:
        x.to(treadle.float32)
    assert str(error.value) == (
        "copy_: expected a dtype whose elements can be converted, got float4_e2m1fn_x2; its bytes "
        "can be seen with .view(treadle.uint8)"
    )


def test_an_output_that_cannot_take_the_values_is_left_as_it_was() -> None:
    out = treadle.zeros(0)
    with pytest.raises(NotImplementedError, match="^copy_: expected a dtype whose elements can"):
        treadle.empty([], dtype=treadle.float4_e2m1fn_x2, out=out)
    assert out.shape == (0,)


def test_numpy_has_no_such_types() -> None:
    with pytest.raises(TypeError) as error:
        treadle.ones(2).to(treadle.float8_e5m2).numpy()
    assert str(error.value) == ("numpy: expected a dtype that NumPy has, got treadle.float8_e5m2")


def test_of_several_outputs_none_is_written_if_one_cannot_be() -> None:
    """A view, which may not grow over what lies beside it, of a dtype that only stores."""
    values = treadle.ones(3, dtype=treadle.complex32).as_strided((2, 2), (1, 1))
    indices = treadle.full((), 7.0)
    with pytest.raises(RuntimeError, match="^median: expected an out of shape"):
        treadle.median(treadle.tensor(1.0), 0, out=(values, indices))
    assert indices.item() == 7 and values.shape == (2, 2)
    indices = treadle.full((5,), 7, dtype=treadle.int64)
    with pytest.raises(RuntimeError, match="^median: expected an out of shape"):
        treadle.median(treadle.ones(3, 4), 0, out=(values, indices))
    assert indices.tolist() == [7] * 5
    values = treadle.empty(0, dtype=treadle.complex32)
    treadle.median(treadle.ones(3, 4), 0, out=(values, indices))
    assert values.shape == (4,) and indices.shape == (4,)
