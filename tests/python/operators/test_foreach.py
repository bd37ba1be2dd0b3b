"""Operators on lists: what they return, what they refuse, and that what is refused writes nothing.
Their values are tested with those of all operators (test_operators.py)."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import re
from typing import Any, Callable

import pytest

import treadle


def ones(*lengths: int, **options: Any) -> list[treadle.Tensor]:
    return [treadle.ones(n, **options) for n in lengths]


def test_results_are_a_tuple_and_in_place_the_list_itself() -> None:
    xs = ones(2, 3)
    assert [t.tolist() for t in treadle._foreach_add(xs, 1)] == [[2, 2], [2, 2, 2]]
    assert isinstance(treadle._foreach_mul(xs, xs), tuple)
    assert treadle._foreach_add_(xs, [1, 2.5]) is xs
    assert xs[1].tolist() == [3.5, 3.5, 3.5]


def test_a_number_for_each_place_from_one_tensor() -> None:
    xs = ones(1, 2)
    sums = treadle._foreach_addcmul(xs, xs, xs, treadle.tensor([2.0, 3.0]))
    assert [t.tolist() for t in sums] == [[3], [4, 4]]


def test_dtypes_may_differ_between_places() -> None:
    whole, real = treadle._foreach_add([treadle.tensor([1]), treadle.tensor([1.0])], [1, 1.5])
    assert (whole.dtype, real.dtype) == (treadle.int64, treadle.float32)


def test_gradients() -> None:
    x = treadle.ones(2, requires_grad=True)
    y = treadle._foreach_mul([x, x * 3], [x, x])[1].sum()
    assert treadle.autograd.grad(y, x)[0].tolist() == [6, 6]
    written = [x * 1, x * 1]
    treadle._foreach_mul_(written, 2)
    assert treadle.autograd.grad(written[1].sum(), x)[0].tolist() == [2, 2]


@pytest.mark.parametrize(
    "call, message",
    [
        (
            lambda: treadle._foreach_add([], 1),
            "_foreach_add: expected at least one tensor in self, got an empty list",
        ),
        (
            lambda: treadle._foreach_add(ones(2, 3), ones(2)),
            "_foreach_add: expected lists of one length, got 2 in self and 1 in other",
        ),
        (
            lambda: treadle._foreach_add(ones(2, 3), [1.0]),
            "_foreach_add: expected lists of one length, got 2 in self and 1 in scalars",
        ),
        (
            lambda: treadle._foreach_add(ones(2, 3), treadle.ones(2)),
            "_foreach_add: expected other without dimensions, got shape (2,)",
        ),
        (
            lambda: treadle._foreach_addcdiv(*[ones(2, 3)] * 3, treadle.ones(1)),
            "_foreach_addcdiv: expected scalars of shape (2,), got (1,)",
        ),
        (
            lambda: treadle._foreach_add_(ones(2, 3), [*ones(2), *ones(3, device="meta")]),
            "_foreach_add_: expected all tensors on one device, got cpu and meta",
        ),
    ],
)
def test_refused(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(RuntimeError, match="^" + re.escape(message) + "$"):
        call()


LAST_IS_WRONG: dict[str, Callable[[list[treadle.Tensor]], tuple[Any, Any]]] = {
    "shape": lambda xs: (xs, ones(2, 4)),
    "dtype": lambda xs: ([xs[0], treadle.ones(3, dtype=treadle.int64)], 1.5),
    "kind of number": lambda xs: ([t.long() for t in xs], [1, 1.5]),
    "elements that share memory": lambda xs: ([xs[0], treadle.ones(1).expand(3)], 1),
    "leaf": lambda xs: ([xs[0], treadle.ones(3, requires_grad=True)], 1),
    "device": lambda xs: (xs, [treadle.ones(2), treadle.ones(3, device="meta")]),
    "device of what is written": lambda xs: (
        [xs[0], treadle.ones(3, device="meta")],
        ones(2, 3),
    ),
}


@pytest.mark.parametrize("name", LAST_IS_WRONG)
def test_what_is_refused_for_its_last_place_writes_nothing(name: str) -> None:
    written, other = LAST_IS_WRONG[name](ones(2, 3))
    with pytest.raises(RuntimeError):
        treadle._foreach_add_(written, other)
    assert written[0].tolist() == [1, 1]


def test_a_number_that_a_later_place_cannot_hold_writes_nothing() -> None:
    written = [treadle.ones(2, dtype=treadle.int8) for _ in range(2)]
    message = "^clamp_max_: expected a number that fits int8, got 300$"
    with pytest.raises(RuntimeError, match=message):
        treadle._foreach_minimum_(written, [0, 300])
    assert written[0].tolist() == [1, 1]


def test_names_are_those_of_the_entries() -> None:
    from treadle_testing.catalogue import operators

    names = {op.name for op in operators() if op.json["foreach_of"]}
    assert len(names) == 91 and names <= set(dir(treadle))
