"""How calls find their operator: overloads, keywords, aliases, and messages when nothing fits."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import pytest

import treadle


@pytest.fixture
def x() -> treadle.Tensor:
    return treadle.arange(6.0).view(2, 3)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.view(3, 2),
        lambda x: x.view((3, 2)),
        lambda x: x.view([3, 2]),
        lambda x: x.view(treadle.Size([3, 2])),
        lambda x: x.view(size=(3, 2)),
        lambda x: x.view(np.int64(3), treadle.tensor(2)),
        lambda x: x.view(-1, 2),
    ],
)
def test_sizes_may_be_given_apart_or_together(x: treadle.Tensor, call: Callable) -> None:
    assert call(x).shape == (3, 2)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.sum(1),
        lambda x: x.sum((1,)),
        lambda x: x.sum(dim=1),
        lambda x: x.sum(axis=-1),
        lambda x: treadle.sum(x, 1),
        lambda x: treadle.sum(input=x, dim=[1]),
        lambda x: treadle.sum(x, dim=1, keepdims=False),
    ],
)
def test_names_and_their_aliases(x: treadle.Tensor, call: Callable) -> None:
    assert call(x).tolist() == [3.0, 12.0]


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x + 2,
        lambda x: 2 + x,
        lambda x: x.add(2),
        lambda x: treadle.add(x, 2.0),
        lambda x: treadle.add(x, other=1, alpha=2),
        lambda x: treadle.add(x, treadle.tensor(2)),
        lambda x: x + np.float32(2),
        lambda x: np.int64(2) + x,
        lambda x: x + np.full((2, 3), 2.0, np.float32),
        lambda x: treadle.maximum(x + 2, -100),
    ],
)
def test_numbers_and_arrays_stand_for_tensors(x: treadle.Tensor, call: Callable) -> None:
    result = call(x)
    assert result.dtype == treadle.float32
    assert result.tolist() == [[2.0, 3.0, 4.0], [5.0, 6.0, 7.0]]


def test_reflected_operators() -> None:
    x = treadle.tensor([1.0, 2.0, 4.0])
    assert (8 - x).tolist() == [7.0, 6.0, 4.0]
    assert (8 / x).tolist() == [8.0, 4.0, 2.0]
    assert (2**x).tolist() == [2.0, 4.0, 16.0]
    assert (9 // x).tolist() == [9.0, 4.0, 2.0]
    assert (7 % x).tolist() == [0.0, 1.0, 3.0]
    assert (2 > x).tolist() == [True, False, False]
    assert (np.float64(8) - x).tolist() == [7.0, 6.0, 4.0]


def test_out_gives_the_same_object_back(x: treadle.Tensor) -> None:
    out = treadle.empty(2, 3)
    assert treadle.add(x, x, out=out) is out
    assert treadle.add(x, x, out=None) is not out
    values, indices = treadle.empty(2), treadle.empty(2, dtype=treadle.int64)
    result = treadle.max(x, 1, out=(values, indices))
    assert result.values is values and result[1] is indices


def test_named_results(x: treadle.Tensor) -> None:
    result = x.max(1)
    assert result.values.tolist() == [2.0, 5.0] and result.indices.tolist() == [2, 2]
    values, indices = result
    assert values is result[0] and indices is result.indices
    assert repr(result).startswith("treadle.return_types.max(")


def test_options_of_functions_that_make_tensors() -> None:
    t = treadle.zeros(
        2, dtype=treadle.float64, device="cpu", layout=treadle.strided, requires_grad=True
    )
    assert t.requires_grad and t.dtype == treadle.float64
    assert treadle.ones(2, device=treadle.device("meta")).is_meta
    assert treadle.full((2,), 1, dtype=float).dtype == treadle.float64
    assert treadle.zeros_like(t, requires_grad=True).requires_grad


WRONG = {
    "a string for a tensor": (lambda x: x.add("y"), TypeError),
    "a string in an operator": (lambda x: x + "y", TypeError),
    "None for a tensor": (lambda x: treadle.matmul(x, None), TypeError),
    "a list for a tensor": (lambda x: treadle.matmul(x, [1, 2]), TypeError),
    "too many": (lambda x: treadle.exp(x, x, x), TypeError),
    "too few": (lambda x: treadle.matmul(x), TypeError),
    "none at all": (lambda x: treadle.cat(), TypeError),
    "unknown name": (lambda x: x.add(x, gamma=1), TypeError),
    "given twice": (lambda x: x.sum(1, dim=1), TypeError),
    "nan for a size": (lambda x: treadle.zeros(float("nan")), TypeError),
    "a float for a size": (lambda x: x.view(2.0, 3), TypeError),
    "a bool for an int": (lambda x: treadle.cumsum(x, dim=True), TypeError),
    "an int for a bool": (lambda x: x.sum(1, 1), TypeError),
    "a string for a dim": (lambda x: x.sum("rows"), TypeError),
    "too large": (lambda x: treadle.zeros(10**30), OverflowError),
    "too large and negative": (lambda x: x.select(0, -(10**30)), OverflowError),
    "a dtype by name": (lambda x: x.to(dtype="float32"), TypeError),
    "an unknown device": (lambda x: treadle.zeros(2, device="abacus"), RuntimeError),
    "negative size": (lambda x: treadle.zeros(-1), RuntimeError),
    "overflowing size": (lambda x: treadle.zeros(2**40, 2**40), RuntimeError),
    "a tensor that records for a number": (
        lambda x: treadle.clamp(x, min=treadle.tensor("1")),
        TypeError,
    ),
    "numbers alone": (lambda x: treadle.add(1, 2), TypeError),
    "out of the wrong kind": (lambda x: treadle.add(x, x, out=[1]), TypeError),
    "out with too few": (lambda x: treadle.max(x, 1, out=(x,)), TypeError),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments(x: treadle.Tensor, name: str) -> None:
    call, kind = WRONG[name]
    with pytest.raises(kind) as caught:
        call(x)
    message = str(caught.value)
    assert 0 < len(message.splitlines()) <= 6
    assert "treadle::" not in message and "std::" not in message


def test_the_message_lists_signatures_and_what_came(x: treadle.Tensor) -> None:
    with pytest.raises(TypeError) as caught:
        x.add("y", beta=2)
    lines = str(caught.value).splitlines()
    assert lines[0] == "add(): expected one of:"
    assert lines[1].startswith("  add(Tensor other, *, Number alpha=1")
    assert lines[-1] == "got (str, beta=int)"


def test_the_message_of_a_single_signature_says_what_is_wrong(x: treadle.Tensor) -> None:
    with pytest.raises(TypeError, match="argument 'mat2' must be Tensor, not str"):
        treadle.mm(x, "y")
    with pytest.raises(TypeError, match="argument 'mat2' missing"):
        treadle.mm(x)
    with pytest.raises(TypeError, match="unexpected argument 'mat3'"):
        treadle.mm(x, mat3=x)


class Shrinks:
    def __init__(self, victim: list) -> None:
        self.victim = victim

    def __index__(self) -> int:
        self.victim.clear()
        return 1


def test_data_that_changes_while_it_is_read() -> None:
    data: list[Any] = [0, 0, 0, 0]
    data[1] = Shrinks(data)
    with pytest.raises((RuntimeError, TypeError)):
        treadle.tensor(data, dtype=treadle.int64)
    sizes: list[Any] = [2, 3, 4]
    sizes[0] = Shrinks(sizes)
    with pytest.raises((RuntimeError, TypeError, IndexError, ValueError)):
        treadle.zeros(sizes)


def test_signatures_can_be_inspected() -> None:
    import inspect

    assert str(inspect.signature(treadle.mm)) == "(input, mat2, *, out=None)"
    assert treadle.mm.__doc__.startswith("mm(input, mat2")


@pytest.mark.parametrize(
    "call",
    [
        lambda x, none: treadle.max_pool1d(x, 2, *none),
        lambda x, none: treadle.nn.functional.avg_pool1d(x, 2, *none),
        lambda x, none: treadle.amax(x, *none),
        lambda x, none: treadle.roll(x, 1, *none),
    ],
)
def test_none_is_an_empty_list_where_that_is_the_default(x: treadle.Tensor, call: Callable) -> None:
    assert treadle.equal(call(x, (None,)), call(x, ()))


def test_none_is_no_list_elsewhere(x: treadle.Tensor) -> None:
    with pytest.raises(TypeError, match="argument 'kernel_size' must be"):
        treadle.max_pool1d(x, None)
