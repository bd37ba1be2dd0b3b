"""A number that the dtype cannot hold raises, in every operator that takes one, and nothing is
written: it is not cut, wrapped or made real without a word.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable

import pytest

import treadle
from treadle.nn import functional as F
from treadle_testing.cases import dtypes_of, has_samples, samples_of
from treadle_testing.catalogue import operators
from treadle_testing.sample import map_arrays, to_tensor

INDEX = treadle.tensor([0])
NAN = float("nan")


def zeros(dtype: str, *shape: int) -> treadle.Tensor:
    return treadle.zeros(*(shape or (1,)), dtype=getattr(treadle, dtype))


# call on a tensor that it may write, dtype, number, the message
CASES: list[tuple[Callable[[treadle.Tensor, Any], Any], str, Any, str]] = [
    (lambda t, v: t.fill_(v), "int8", 300,
     "fill_: expected a value that fits int8, got 300"),
    (lambda t, v: t.fill_(v), "int64", NAN,
     "fill_: expected a value that fits int64, got nan"),
    (lambda t, v: t.index_fill_(0, INDEX, v), "int8", 300,
     "index_fill: expected a value that fits int8, got 300"),
    (lambda t, v: t.index_fill_(0, INDEX, v), "float32", 1 + 2j,
     "index_fill: expected a value that fits float32, got (1+2j)"),
    (lambda t, v: t.index_fill_(0, INDEX, v), "int64", NAN,
     "index_fill: expected a value that fits int64, got nan"),
    (lambda t, v: t.scatter_(0, INDEX, v), "int8", 300,
     "scatter: expected a value that fits int8, got 300"),
    (lambda t, v: t.scatter_(0, INDEX, v), "float32", 1 + 2j,
     "scatter: expected a value that fits float32, got (1+2j)"),
    (lambda t, v: t.scatter_(0, INDEX, v, reduce="add"), "uint8", 300,
     "scatter: expected a value that fits uint8, got 300"),
    (lambda t, v: t.masked_fill_(t == 0, v), "int8", 300,
     "masked_fill: expected a value that fits int8, got 300"),
    (lambda t, v: t.masked_fill_(t == 0, v), "float16", -1e9,
     "masked_fill: expected a value that fits float16, got -1000000000.0"),
    (lambda t, v: t.masked_fill_(t == 0, v), "float32", 2j,
     "masked_fill: expected a value that fits float32, got 2j"),
    (lambda t, v: t.index_add_(0, INDEX, t.clone(), alpha=v), "float32", 1j,
     "index_add: expected a value that fits float32, got 1j"),
    (lambda t, v: t.index_add_(0, INDEX, t.clone(), alpha=v), "int64", 1.5,
     "index_add: expected an integer alpha for tensors of dtype int64, got alpha = 1.5"),
    (lambda t, v: t.add_(t.clone(), alpha=v), "int8", 300,
     "add_: expected a number that fits int8, got 300"),
    (lambda t, v: t.clamp_(max=v), "int8", 300,
     "clamp_max: expected a number that fits int8, got 300"),
    (lambda t, v: F.threshold(t, v, 0), "int8", 300,
     "threshold: expected a number that fits int8, got 300"),
    (lambda t, v: F.hardtanh(t, -1, v), "int8", 300,
     "hardtanh: expected a number that fits int8, got 300"),
    (lambda t, v: t < v, "int8", 300,
     "lt: expected a number that fits int8, got 300"),
    (lambda t, v: t // v, "uint8", 300,
     "floor_divide: expected a number that fits uint8, got 300"),
    (lambda t, v: t.eq(v), "int16", 40000,
     "eq: expected a number that fits int16, got 40000"),
    (lambda t, v: treadle.arange(0, v, dtype=t.dtype), "int8", 200,
     "arange: expected a value that fits int8, got 199"),
    (lambda t, v: treadle.linspace(0, v, 5, dtype=t.dtype), "int8", 200,
     "linspace: expected a value that fits int8, got 200.0"),
    (lambda t, v: treadle.full((2,), v, dtype=t.dtype), "int8", 300,
     "fill_: expected a value that fits int8, got 300"),
]  # fmt: skip
MATRICES: list[tuple[Callable[[treadle.Tensor, Any], Any], str]] = [
    (lambda m, v: treadle.addmm(m, m, m, alpha=v), "addmm"),
    (lambda m, v: treadle.addmm(m, m, m, beta=v), "addmm"),
    (lambda m, v: treadle.baddbmm(m[None], m[None], m[None], alpha=v), "baddbmm"),
    (lambda m, v: treadle.baddbmm(m[None], m[None], m[None], beta=v), "baddbmm"),
    (lambda m, v: treadle.addmv(m[0], m, m[0], alpha=v), "addmv"),
    (lambda m, v: treadle.addr(m, m[0], m[0], beta=v), "addr"),
    (lambda m, v: treadle.addbmm(m, m[None], m[None], alpha=v), "addbmm"),
]


@pytest.mark.parametrize("number", range(len(CASES)))
def test_a_number_that_does_not_fit(number: int) -> None:
    call, dtype, value, message = CASES[number]
    t = zeros(dtype)
    with pytest.raises(RuntimeError) as raised:
        call(t, value)
    assert str(raised.value).splitlines()[0] == message
    assert t.tolist() == [0]


@pytest.mark.parametrize("number", range(len(MATRICES)))
@pytest.mark.parametrize(("dtype", "value"), [("float32", 1j), ("int8", 300)])
def test_factors_of_products(number: int, dtype: str, value: Any) -> None:
    call, name = MATRICES[number]
    with pytest.raises(RuntimeError, match=f"^{name}: expected "):
        call(zeros(dtype, 2, 2), value)


def test_sums_and_bits_are_those_of_whole_numbers_cut() -> None:
    """Where the low bits of a result follow from the low bits of the operands, numbers are cut as
    the results are."""
    x = treadle.tensor([-1, 3, 100], dtype=treadle.int8)
    for call in (
        lambda t: t + 300, lambda t: 300 - t, lambda t: t * 200, lambda t: t & 255,
        lambda t: t | 128, lambda t: t ^ 255,
    ):  # fmt: skip
        assert treadle.equal(call(x), call(x.long()).to(treadle.int8))


def test_numbers_that_fit_are_taken() -> None:
    assert (zeros("uint8") + -1).item() == 255  # the negative of what it holds, as in C
    assert zeros("int8").masked_fill_(treadle.tensor([True]), 2.0).item() == 2
    assert zeros("int8").index_fill_(0, INDEX, -128).item() == -128
    assert (zeros("int8") + 127).item() == 127
    assert zeros("float32").clamp(max=1e300).item() == 0  # no bound at all
    assert (zeros("float16") + float("inf")).item() == float("inf")
    assert treadle.arange(-128, 128, dtype=treadle.int8)[-1].item() == 127
    assert treadle.arange(0, dtype=treadle.int8).shape == (0,)
    assert treadle.arange(120, 130, 20, dtype=treadle.int8).tolist() == [120]


def scalar_arguments() -> list[tuple[Any, str]]:
    """The operators that take a number beside tensors of int8, with the argument's name."""
    found = []
    for op in operators():
        if op.internal or not has_samples(op) or "int8" not in dtypes_of(op):
            continue
        for arg in op.args:
            if arg["type"]["base"] == "Scalar" and not arg["type"]["list"]:
                found.append((op, arg["name"]))
    return found


def same(a: Any, b: Any) -> bool:
    if isinstance(a, (tuple, list)):
        return all(same(x, y) for x, y in zip(a, b))
    return a.dtype != b.dtype or treadle.equal(a, b) or bool((a != a).any())


def whole(op: Any, args: list, kwargs: dict, position: int, name: str) -> treadle.Tensor:
    """The call with the number 300 on the same tensors as int64, its result cut to int8."""

    def widen(value: Any) -> Any:
        return value.long() if isinstance(value, treadle.Tensor) else value

    args, kwargs = [widen(a) for a in args], {k: widen(v) for k, v in kwargs.items()}
    if position < len(args):
        args[position] = 300
    else:
        kwargs[name] = 300
    return op.function(*args, **kwargs).to(treadle.int8)


@pytest.mark.parametrize(("op", "name"), scalar_arguments(), ids=lambda v: str(v))
def test_a_number_never_wraps(op: Any, name: str) -> None:
    """300 and 300 - 256 are one number where it wraps to 8 bits: the call with the first raises, or
    its result is of a wider dtype, or is not what the second gives, or is that of whole numbers,
    cut."""
    position = [a["name"] for a in op.args].index(name)
    for sample in samples_of(op, "int8"):
        results = []
        for value in (300, 44):
            args = list(map_arrays(sample.args, lambda a: to_tensor(a, "int8")))
            kwargs = {
                k: map_arrays(v, lambda a: to_tensor(a, "int8")) for k, v in sample.kwargs.items()
            }
            if position < len(args):
                args[position] = value
            else:
                kwargs[name] = value
            try:
                results.append(op.function(*args, **kwargs))
            except (RuntimeError, ValueError, TypeError, IndexError, ZeroDivisionError):
                break
        if len(results) == 2 and isinstance(results[0], (treadle.Tensor, tuple)):
            first = results[0] if isinstance(results[0], treadle.Tensor) else results[0][0]
            if first.dtype == treadle.int8 and first.numel() > 0 and not op.random:
                wraps = same(results[0], results[1])
                assert not wraps or same(first, whole(op, args, kwargs, position, name)), op.id
