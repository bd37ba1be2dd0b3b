"""uint16, uint32 and uint64: promotion with signed dtypes, numbers of 2^63 and more, exchange with
NumPy."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import numpy as np
import pytest

import treadle

WIDE = ("uint16", "uint32", "uint64")
UNSIGNED = ("uint8", *WIDE)
SIGNED = ("int8", "int16", "int32", "int64")


@pytest.mark.parametrize("unsigned", UNSIGNED)
@pytest.mark.parametrize("signed", SIGNED)
def test_the_sum_with_a_signed_dtype_holds_both(unsigned: str, signed: str) -> None:
    one = treadle.ones(2, dtype=getattr(treadle, unsigned))
    other = treadle.ones(2, dtype=getattr(treadle, signed))
    if unsigned == "uint64":
        for call in (lambda: one + other, lambda: other * one, lambda: treadle.cat([one, other])):
            with pytest.raises(TypeError, match="expected dtypes with a common one.*cast one"):
                call()
        return
    common = str(np.promote_types(unsigned, signed))
    assert (one + other).dtype == (other + one).dtype == getattr(treadle, common)


@pytest.mark.parametrize("name", WIDE)
def test_numbers_and_dimensionless_tensors_do_not_raise_the_dtype(name: str) -> None:
    dtype = getattr(treadle, name)
    x = treadle.tensor([0, 5], dtype=dtype)
    assert (x + 1).dtype == (x * treadle.tensor(3)).dtype == dtype
    assert (x / 2).dtype == (x * 1.5).dtype == treadle.float32
    assert (x + True).dtype == (x + treadle.tensor([True])).dtype == dtype


@pytest.mark.parametrize("name", WIDE)
def test_extremes_survive_every_way_in_and_out(name: str) -> None:
    dtype = getattr(treadle, name)
    info = treadle.iinfo(dtype)
    assert (info.min, info.max) == (0, 2**info.bits - 1) == (0, np.iinfo(name).max)
    x = treadle.tensor([0, 1, info.max], dtype=dtype)
    assert x.tolist() == [0, 1, info.max] and x[2].item() == info.max
    assert x.numpy().dtype == name and x.numpy().tolist() == x.tolist()
    assert treadle.from_numpy(x.numpy()).dtype == dtype
    assert treadle.from_dlpack(np.array(x.tolist(), name)).tolist() == x.tolist()
    assert np.from_dlpack(x).tolist() == x.tolist()
    assert treadle.full((2,), info.max, dtype=dtype).tolist() == [info.max] * 2
    assert (x + 1).tolist() == [1, 2, 0]
    assert x.max().item() == info.max and x.sort(descending=True)[0].tolist() == [info.max, 1, 0]
    assert x.to(treadle.float64).tolist() == [0.0, 1.0, float(info.max)]
    assert str(info.max) in repr(x)


def test_sums_are_int64_but_of_uint64() -> None:
    for name in WIDE:
        x = treadle.tensor([3, 4], dtype=getattr(treadle, name))
        wanted = treadle.uint64 if name == "uint64" else treadle.int64
        for result in (x.sum(), x.prod(), x.cumsum(0), x.cumprod(0)):
            assert result.dtype == wanted
    assert treadle.tensor([2**63, 2**62], dtype=treadle.uint64).sum().item() == 2**63 + 2**62


def test_integers_of_two_to_the_63_and_more() -> None:
    x = treadle.tensor([5], dtype=treadle.uint64)
    assert (x + 2**63).item() == 2**63 + 5
    assert not (x > 2**63).item() and (x < 2**64 - 1).item()
    assert (x.double() * 2**63).item() == 5 * 2.0**63
    start = 2**64 - 3
    assert treadle.arange(start, 2**64 - 1, dtype=treadle.uint64).tolist() == [start, start + 1]
    wide = treadle.tensor([1e19, 1e20], dtype=treadle.float64).to(treadle.uint64)
    assert wide.tolist() == [10**19, 2**64 - 1]
    with pytest.raises(RuntimeError, match="expected a number that fits int64"):
        treadle.ones(2, dtype=treadle.int64) + 2**63
    with pytest.raises(RuntimeError, match="expected a value that fits int64"):
        treadle.tensor(2**63)
    with pytest.raises(OverflowError, match="fits 64 bits"):
        x + 2**64
