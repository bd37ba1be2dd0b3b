"""Where operators wait, what the modes refuse, and what `explain` shows of them."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import threading
from typing import Any, Callable, Dict, Iterator, Tuple

import pytest

import treadle
from treadle import Tensor
from treadle.fusion import Group, explain


def waits(t: treadle.Tensor) -> bool:
    return bool(explain(t).groups)


def test_a_block_a_function_and_a_generator() -> None:
    x, z = treadle.randn(8), treadle.randn(8)
    with treadle.fuse(least=0):
        y = x + 1
        assert waits(y) and treadle.fusion.is_enabled()
        with treadle.fuse(enabled=False):
            assert not waits(z + 1) and not treadle.fusion.is_enabled()
        assert waits(z + 1)
    assert waits(y) and not waits(z + 1)  # what waits goes on waiting
    assert y.tolist() == (x + 1).tolist() and not waits(y)

    @treadle.fuse
    def small(t: treadle.Tensor) -> bool:
        return waits(t + 1)

    assert not small(x) and small(treadle.randn(treadle.fusion.DEFAULT_LEAST))

    @treadle.fuse(least=0)
    def each(t: treadle.Tensor) -> Iterator[treadle.Tensor]:
        yield t + 1
        yield t + 2

    values = each(x)
    assert waits(next(values)) and not waits(x + 1) and waits(next(values))


def test_small_results_of_what_waits_wait() -> None:
    x = treadle.randn(8, 100)
    with treadle.fuse(least=800):
        mean = x.mean(-1, keepdim=True)
        y = x / ((mean * mean + 1) ** 0.5)
        assert len(explain(y).groups) == 1 and len(explain(y).groups[0].group.steps) == 5
        means = y.mean(-1) * 2
        assert waits(means)
        z = treadle.randn(8)
        assert not waits(z + 1)
    with treadle.fuse(enabled=False):
        mean = x.mean(-1, keepdim=True)
        expected = (x / ((mean * mean + 1) ** 0.5)).mean(-1) * 2
    assert means.tolist() == expected.tolist()


def test_everywhere_and_an_exception_in_a_block() -> None:
    x = treadle.randn(8)
    found = []
    treadle.fusion.enable(least=0)
    try:
        thread = threading.Thread(target=lambda: found.append(waits(x + 1)))
        thread.start()
        thread.join()
        assert found == [True] and waits(x + 1) and treadle.fusion.is_enabled()
    finally:
        treadle.fusion.disable()
    assert not waits(x + 1) and not treadle.fusion.is_enabled()
    with pytest.raises(ZeroDivisionError):
        with treadle.fuse(least=0):
            raise ZeroDivisionError
    assert not waits(x + 1)


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda: treadle.fuse(3), TypeError, "fuse: expected a function, got int"),
        (
            lambda: treadle.fuse(least=2.5),
            TypeError,
            "fuse: expected an int for argument 'least', got float",
        ),
        (
            lambda: treadle.fusion.enable(least=-1),
            ValueError,
            "enable: expected argument 'least' >= 0, got -1",
        ),
        (lambda: explain(3), TypeError, "explain: expected a tensor, got int"),
        (
            lambda: Group.parse("grup (1,)"),
            ValueError,
            "Group.parse: expected a line that begins with 'group ', got 'grup (1,)'",
        ),
        (
            lambda: Group.parse("group (1,)\n  %0 = write"),
            ValueError,
            "Group.parse: expected a read or a step of a group, got '%0 = write'",
        ),
        (
            lambda: Group.parse("group (1,)\n  %0 = read float31 (1,) strides (1,)"),
            ValueError,
            "Group.parse: expected the name of a dtype, got 'float31'",
        ),
        (
            lambda: Group.parse("group (1,)\n  %0 = read float32 (1,) strides (1,)").run([]),
            ValueError,
            "Group.run: expected 1 tensors, as the group reads, got 0",
        ),
    ],
)
def test_refused(call: Any, error: Any, text: str) -> None:
    with pytest.raises(error) as raised:
        call()
    assert str(raised.value) == text


def layer_norm(x: treadle.Tensor, w: treadle.Tensor) -> treadle.Tensor:
    d = x - x.mean(-1, keepdim=True)
    return d / ((d * d).mean(-1, keepdim=True) + 1e-5).sqrt() * w


def test_explanation() -> None:
    x, w = treadle.randn(10, 32), treadle.randn(32)
    expected = layer_norm(x, w)
    with treadle.fuse(least=0):
        y = layer_norm(x, w)
    assert str(explain(y)) == (
        "group (10, 32)\n"
        "  %0 = read float32 (10, 32) strides (32, 1)\n"
        "  %8 = read float32 (32,) strides (1,)\n"
        "  %1 = aten::mean.dim(%0, [1], True, None) float32\n"
        "  %2 = aten::sub.Tensor(%0, %1, 1) float32\n"
        "  %3 = aten::mul.Tensor(%2, %2) float32\n"
        "  %4 = aten::mean.dim(%3, [1], True, None) float32\n"
        "  %5 = aten::add.Scalar(%4, 1e-05, 1) float32\n"
        "  %6 = aten::sqrt(%5) float32\n"
        "  %7 = aten::div.Tensor(%2, %6) float32\n"
        "  %9 = aten::mul.Tensor(%7, %8) float32 strides (32, 1) written\n"
        "  8 operators in one pass: 2688 bytes instead of 14528"
    )
    group = explain(y).groups[0].group
    assert Group.parse(str(group)) == group
    assert treadle.equal(group.run([x, w])[9], expected)
    assert treadle.equal(y, expected)
    assert str(explain(y)) == "nothing waits"


@pytest.mark.parametrize("divisor", [3, -1, -7, True])
@pytest.mark.parametrize("dtype", [treadle.int8, treadle.int32, treadle.int64])
def test_a_division_by_a_number_that_is_not_0_waits(divisor: int, dtype: treadle.dtype) -> None:
    x = treadle.arange(-128, 128).to(dtype)

    def program() -> Tuple[Tensor, ...]:
        return x // divisor, x % divisor, treadle.fmod(x, divisor) + 1

    expected = program()
    with treadle.fuse(least=0):
        found = program()
        assert len(explain().groups) == 1
        in_place = x + 0
        in_place //= divisor
        assert waits(in_place)
    assert all(treadle.equal(*pair) for pair in zip((*found, in_place), (*expected, expected[0])))


def test_totals_end_a_group() -> None:
    for n in (5000, 4096 * 16, 4096 * 16 + 1, 300_001):
        for dtype in (treadle.float32, treadle.bfloat16, treadle.float64, treadle.int64):
            x, y = (treadle.randn(n) * 8).to(dtype), (treadle.randn(n) * 8).to(dtype)
            expected = [((x - y) * x).sum(), (x - y).amax(), ((x - y) * x).reshape(-1, 1).sum()]
            with treadle.fuse(least=0):
                square = (x - y) * x
                found = [square.sum(), (x - y).amax(), square.reshape(-1, 1).sum()]
                assert len(explain(found[0]).groups) == 1
                assert len(explain().groups) == 2
            assert [t.item() for t in found] == [t.item() for t in expected]
    with treadle.fuse(least=0):
        total = (x * 2).sum()
        shifted = x - total
        assert [r.why_apart for g in explain(shifted).groups for r in g.group.reads] == [
            "",
            "",
            "it folds all elements, which have to be there first",
        ]


def test_groups_of_several_shapes_say_why() -> None:
    x = treadle.randn(6, 40)
    with treadle.fuse(least=0):
        a = x * 2
        b = a.t() + 1
        c = a[2:] * 3
    assert treadle.equal(b, (x * 2).t() + 1) and treadle.equal(c, x[2:] * 6)
    with treadle.fuse(least=0):
        a = x * 2
        b = a.t() + 1
        reasons = [r.why_apart for g in explain(b).groups for r in g.group.reads]
    assert reasons == ["", "it is read through a view"]
    with treadle.fuse(least=0):
        a = x * 2
        b = a.reshape(40, 6)[::2] + 1
        assert len(explain(b).groups) == 2
        assert explain(b).bytes_saved == 0
    assert repr(explain(x)) == "<Explanation of 0 groups, 0 bytes saved>"


def _rows(a: Tensor) -> Tensor:
    return a.sum(1)


# The function that computes a value, the one that reads it, and why they are not one group; x is
# of (200, 40).
APART: Dict[str, Tuple[Callable[..., Any], ...]] = {
    "all elements are folded with it, and here rows": (
        lambda x: (x * 2, None),
        lambda a: (a.sum(), a.sum(1)),
    ),
    "rows are folded with it, and here all elements": (
        lambda x: (x * 2, None),
        lambda a: (a.sum(1), a.sum()),
    ),
    "rows of another length are folded with it": (
        lambda x: (x.reshape(2, 100, 40) * 2, None),
        lambda a: (a.sum((1, 2)), a.sum(2)),
    ),
    "it folds rows, which have to be there first": (
        lambda x: (x * 2, _rows),
        lambda r: r.reshape(1, 200) * treadle.ones(2, 200),
    ),
    "it needs folds of rows, which have to be there first": (
        lambda x: (x * 2, lambda a: a.sum(1) + 1),
        lambda r: r.sum(),
    ),
    "it folds all elements, which have to be there first": (
        lambda x: (x * 2, treadle.sum),
        lambda s: s + treadle.ones(200, 40),
    ),
    "it is of another shape": (
        lambda x: (x[:1] * 2, None),
        lambda a: a + treadle.ones(200, 40),
    ),
    "it is read through a view": (
        lambda x: (x * 2, None),
        lambda a: a.reshape(100, 80).sum(1),
    ),
    "a pass would have too many operands": (
        lambda x: (x * 2, None),
        lambda a: _long_sum(a, 40),
    ),
}


def _long_sum(a: Tensor, terms: int) -> Tensor:
    for _ in range(terms):
        a = a + treadle.ones(200, 40)
    return a


@pytest.mark.parametrize("reason", APART)
def test_why_apart(reason: str) -> None:
    first, then = APART[reason]
    with treadle.fuse(least=0):
        value, fold = first(treadle.randn(200, 40))
        read = then(value if fold is None else fold(value))
        explained = explain()
    del read
    found = [r.why_apart for g in explained.groups for r in g.group.reads if r.why_apart]
    assert found == [reason]


def test_why_apart_of_what_else_is_read() -> None:
    x = treadle.randn(200, 40)
    with treadle.fuse(least=0):
        a = x * 2
        later = a.sum() + treadle.ones(200, 40)
        both = (later + a, a + a.sum(1).reshape(-1, 1)[:1])
        explained = explain()
    del both
    assert [r.why_apart for g in explained.groups for r in g.group.reads if r.why_apart] == [
        "it folds all elements, which have to be there first",
        "what else is read with it is computed later",
        "what else is read with it is computed later",
        "it folds rows, which have to be there first",
    ]
