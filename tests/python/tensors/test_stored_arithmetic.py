"""Arithmetic with dtypes that only store: every operator computes with the values in a wider dtype,
and rounds results that are values.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import pytest

import treadle
from treadle import Tensor
from treadle.testing import assert_close
from treadle_testing.cases import has_samples, in_suite, operators, samples_of

FLOAT8 = ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"]
WIDE = {"float8_e5m2": "float32", "complex32": "complex64"}


def _cases() -> list:
    """Operators with kernels, with a dtype and samples of the dtype that it is computed in."""
    return [
        pytest.param(op, stored, id=f"{op.id}-{stored}")
        for op in operators()
        if in_suite(op) and has_samples(op) and not op.random
        if op.kind in ("pointwise", "reduce", "kernel", "returns")
        for stored, wide in WIDE.items()
        if wide in op.dtypes
    ]


def _tensors(values: Any) -> list[Tensor]:
    if isinstance(values, Tensor):
        return [values]
    return [t for v in values for t in _tensors(v)] if isinstance(values, (list, tuple)) else []


@pytest.mark.parametrize("op, stored", _cases())
def test_every_operator_computes_in_the_wider_dtype(op: Any, stored: str) -> None:
    """The results have the bits of those in the wider dtype, rounded, or the call is refused as
    that one is."""
    dtype, wide = getattr(treadle, stored), getattr(treadle, WIDE[stored])
    for sample in list(samples_of(op, WIDE[stored]))[:3]:

        def call(convert: Callable[[Tensor], Tensor]) -> Any:
            def given(a: Any) -> Any:
                if isinstance(a, (list, tuple)):
                    return [given(x) for x in a]
                if not isinstance(a, np.ndarray):
                    return a
                t = treadle.tensor(a)
                return convert(t.to(dtype)) if t.dtype == wide else t

            kwargs = {k: given(v) for k, v in sample.kwargs.items()}
            return op.function(*(given(a) for a in sample.args), **kwargs)

        try:
            wanted = call(lambda t: t.to(wide))
        except (RuntimeError, ValueError, IndexError) as error:
            with pytest.raises(type(error)):
                call(lambda t: t)
            continue
        for got, full in zip(_tensors(call(lambda t: t)), _tensors(wanted), strict=True):
            if got.dtype != full.dtype:
                assert got.dtype in (dtype, dtype.to_real())
                full = full.to(got.dtype)
            exact = treadle.complex128 if got.is_complex() else treadle.float64
            assert_close(got.to(exact), full.to(exact), rtol=0, atol=0, equal_nan=True)


def test_the_operators_are_many() -> None:
    assert len(_cases()) > 350


# No complex dtype has float8 parts, no float8 one is filled with any bits, and bits that are seen
# as another dtype are not values. Inverse FFTs have steps in complex64, whose real dtype is
# float32.
OTHERS = (
    *("complex", "polar", "view_as_complex", "random_", "randint_like", "view_copy.dtype"),
    *("fft_irfft", "fft_hfft"),
)


def _composites() -> list:
    return [
        pytest.param(op, id=op.id)
        for op in operators()
        if in_suite(op) and has_samples(op) and "float32" in op.dtypes and op.kind == "composite"
        if not op.id.startswith(OTHERS)
    ]


@pytest.mark.parametrize("op", _composites())
def test_what_is_made_of_operators_takes_float8(op: Any) -> None:
    """Its results are of the dtype wherever those of float32 arguments are float32."""
    dtype = treadle.float8_e5m2
    sample = next(samples_of(op, "float32"), None)
    if sample is None:
        return

    def call(convert: Callable[[Tensor], Tensor]) -> list[Tensor]:
        def given(a: Any) -> Any:
            if isinstance(a, (list, tuple)):
                return [given(x) for x in a]
            t = treadle.tensor(a) if isinstance(a, np.ndarray) else a
            is_value = isinstance(t, Tensor) and t.dtype == treadle.float32
            return convert(t) if is_value else t

        kwargs = {k: given(v) for k, v in sample.kwargs.items()}
        return _tensors(op.function(*(given(a) for a in sample.args), **kwargs))

    given = [a.dtype for a in (*sample.args, *sample.kwargs.values()) if isinstance(a, np.ndarray)]
    of_values = np.float32 in given and np.complex64 not in given
    for got, full in zip(call(lambda t: t.to(dtype)), call(lambda t: t), strict=True):
        assert got.shape == full.shape or op.random
        if of_values and full.dtype == treadle.float32:
            assert got.dtype == dtype


@pytest.mark.parametrize("name", FLOAT8)
def test_results_are_rounded_to_the_dtype(name: str) -> None:
    dtype = getattr(treadle, name)
    x = treadle.tensor([1.0, 2.0, 4.0, 0.5], dtype=dtype)
    w = x.to(treadle.float32)
    calls: list[Callable[[Tensor], Tensor]] = [
        lambda t: t + t,
        lambda t: t * 1.3,
        lambda t: 1 / t,
        lambda t: t.exp(),
        lambda t: t.sum(),
        lambda t: t.mean(),
        lambda t: t.cumsum(0),
        lambda t: t.sort().values,
        lambda t: t.reshape(2, 2).mm(t.reshape(2, 2)),
        lambda t: t.clamp(max=3),
        lambda t: treadle.add(t, t, alpha=0.5),
    ]
    for f in calls:
        assert f(x).dtype is dtype and treadle.equal(f(x), f(w).to(dtype))
    y = x.clone()
    assert y.mul_(2) is y and y.tolist() == [2.0, 4.0, 8.0, 1.0]
    assert y._version == 1
    out = treadle.empty(0, dtype=dtype)
    assert treadle.exp(w, out=out) is out and treadle.equal(out, w.exp().to(dtype))
    assert treadle.exp(x, out=treadle.empty(4)).tolist() == w.exp().tolist()
    assert (x > 1).tolist() == [False, True, True, False] and x.argmax().item() == 2
    assert x.max(0).indices.dtype is treadle.int64 and x.max(0).values.dtype is dtype
    assert x.to("meta").exp().dtype is dtype


def test_sums_are_kept_in_float32() -> None:
    """A sum in float8 would stay at 16."""
    assert treadle.ones(300, dtype=treadle.float8_e4m3fn).sum().item() == 288.0
    total = treadle.ones(300, dtype=treadle.float8_e4m3fn).sum(dtype=treadle.float32)
    assert total.dtype is treadle.float32 and total.item() == 300.0
    a = treadle.ones(1, 300, dtype=treadle.float8_e4m3fn)
    assert (a @ a.t()).item() == 288.0


def test_dtypes_of_results() -> None:
    x = treadle.ones(2, dtype=treadle.float8_e4m3fn)
    other = treadle.ones(2, dtype=treadle.float8_e5m2)
    for result, wanted in (
        (x + x, x.dtype),
        (x + 1, x.dtype),
        (x + 1.5, x.dtype),
        (x + treadle.ones(2, dtype=treadle.int64), x.dtype),
        (x + treadle.tensor(1.5), x.dtype),  # of no dimension
        (x + other, treadle.float32),
        (x + treadle.ones(2), treadle.float32),
        (x + treadle.ones(2).half(), treadle.float32),
        (x + treadle.ones(2).double(), treadle.float64),
        (x + 1j, treadle.complex64),
        (x + treadle.ones(2, dtype=treadle.complex32), treadle.complex64),
        (x == other, treadle.bool),
        (x.reshape(1, 2).mm(other.reshape(2, 1)), treadle.float32),
    ):
        assert result.dtype is wanted
    assert treadle.result_type(x, other) is treadle.float32
    y = treadle.ones(2)
    assert y.add_(x).tolist() == [2.0, 2.0] and x.add_(y).tolist() == [3.0, 3.0]
    with pytest.raises(RuntimeError) as error:
        treadle.ones(2, dtype=treadle.int64).add_(x)
    assert str(error.value) == (
        "add_: expected a result that can be written to self of dtype treadle.int64, got "
        "treadle.float32"
    )


def test_tensors_are_compared() -> None:
    x = treadle.tensor([1.0, 2.0], dtype=treadle.float8_e5m2)
    assert_close(x, x + 0)
    with pytest.raises(AssertionError):
        assert_close(x, x * 2)


def test_gradients_are_of_the_dtype() -> None:
    x = treadle.tensor([1.0, 2.0], dtype=treadle.float8_e5m2, requires_grad=True)
    (x * x * 3).sum().backward()
    assert x.grad is not None and x.grad.dtype is x.dtype and x.grad.tolist() == [6.0, 12.0]
    z = treadle.tensor([1 + 1j], dtype=treadle.complex32, requires_grad=True)
    (z * z.conj()).real.sum().backward()
    assert z.grad is not None and z.grad.dtype is z.dtype and z.grad.tolist() == [2 + 2j]


def test_values_that_are_several_in_a_byte_are_refused() -> None:
    x = treadle.zeros(2, dtype=treadle.uint8).view(treadle.float4_e2m1fn_x2)
    for name, call in (("add", lambda: x + x), ("exp", x.exp), ("mul_", lambda: x.mul_(2))):
        with pytest.raises(NotImplementedError) as error:
            call()
        assert str(error.value) == (
            f"{name}: expected tensors of a dtype with arithmetic, got float4_e2m1fn_x2; its bytes "
            "can be seen with .view(treadle.uint8)"
        )
