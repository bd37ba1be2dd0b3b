"""Indexing, reading and writing, against NumPy on a grid of index expressions."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import itertools
from typing import Any, Callable

import numpy as np
import pytest

import treadle

SHAPE = (3, 4, 5)
MASK = np.arange(12).reshape(3, 4) % 3 == 0
MASK_WHOLE = np.arange(60).reshape(SHAPE) % 7 == 0

SINGLE: dict[str, Any] = {
    "0": 0,
    "-1": -1,
    ":": slice(None),
    "1:": slice(1, None),
    "::2": slice(None, None, 2),
    "-2:9": slice(-2, 9),
    "2:1": slice(2, 1),
    "None": None,
    "...": Ellipsis,
    "list": [0, 2, -1],
    "array": np.array([[1, 0], [2, 2]]),
    "column": np.array([[0], [1]]),
    "true": True,
    "false": False,
    "empty": np.zeros((0,), dtype=np.int64),
    "int32": np.array([1, 1], dtype=np.int32),
    "scalar": np.int64(1),
    "0dim": np.array(2),
}
WHOLE: dict[str, Any] = {
    "mask": MASK,
    "mask whole": MASK_WHOLE,
    "mask row": np.array([True, False, True]),
    "()": (),
    "mask, 1": (MASK, 1),
    ":, mask": (slice(None), np.array([True, False, True, True])),
    "mask, list": (np.array([True, False, True]), [1, 2]),
    "..., mask": (Ellipsis, np.array([True, False, True, False, True])),
    "none, mask": (None, MASK),
    "0, ..., 1": (0, Ellipsis, 1),
    "a, :, a": (np.array([0, 2]), slice(None), np.array([1, 3])),
    ":, a, a": (slice(None), np.array([0, 2]), np.array([1, 3])),
    "a, a, a": (np.array([0, 2]), np.array([1, 3]), np.array([4, 0])),
    "a, None, a": (np.array([0, 2]), None, np.array([1, 3])),
    "a, ..., a": (np.array([0, 2]), Ellipsis, np.array([1, 3])),
    "True, 0": (True, 0),
}
PAIRS = {
    f"{a}, {b}": (SINGLE[a], SINGLE[b])
    for a, b in itertools.product(SINGLE, SINGLE)
    if not a == b == "..."
}
GRID: dict[str, Any] = {**SINGLE, **PAIRS, **WHOLE}
VIEWS = {"aten::slice", "aten::select", "aten::unsqueeze", "aten::view"}


def _numpy(index: Any) -> Any:
    """A list is an array in both; NumPy takes some lists in a tuple for something else."""
    if isinstance(index, tuple):
        return tuple(np.array(i) if isinstance(i, list) else i for i in index)
    return np.array(index) if isinstance(index, list) else index


def _treadle(index: Any) -> Any:
    if isinstance(index, tuple):
        return tuple(_treadle(i) for i in index)
    return treadle.tensor(index) if isinstance(index, np.ndarray) else index


def _expected(index: Any) -> Any:
    """The result of NumPy, or None where it refuses."""
    a = np.arange(60.0).reshape(SHAPE)
    try:
        return a[_numpy(index)]
    except IndexError:
        return None


@pytest.mark.parametrize("name", GRID)
def test_get(name: str) -> None:
    x = treadle.arange(60.0).reshape(*SHAPE)
    wanted = _expected(GRID[name])
    if wanted is None:
        with pytest.raises((IndexError, ValueError, RuntimeError)):
            x[_treadle(GRID[name])]
        return
    got = x[_treadle(GRID[name])]
    assert tuple(got.shape) == wanted.shape
    np.testing.assert_array_equal(got.numpy(), wanted)


@pytest.mark.parametrize("name", GRID)
def test_set(name: str) -> None:
    index = GRID[name]
    shape = _expected(index)
    for value in (-1.0, "full", "row"):
        a, x = np.arange(60.0).reshape(SHAPE), treadle.arange(60.0).reshape(*SHAPE)
        if shape is None:
            with pytest.raises((IndexError, ValueError, RuntimeError)):
                x[_treadle(index)] = -1.0
            np.testing.assert_array_equal(x.numpy(), a)
            continue
        if value == "full":
            new: Any = -np.arange(float(shape.size)).reshape(shape.shape)
        elif value == "row":
            new = -np.arange(float(shape.shape[-1])) if shape.ndim else -2.0
        else:
            new = value
        a[_numpy(index)] = new
        x[_treadle(index)] = treadle.tensor(new) if isinstance(new, np.ndarray) else new
        np.testing.assert_array_equal(x.numpy(), a)


BASIC = [
    name
    for name, index in GRID.items()
    if not any(
        isinstance(i, (np.ndarray, list, bool))
        for i in (index if isinstance(index, tuple) else (index,))
    )
]


@pytest.mark.parametrize("name", BASIC)
def test_basic_indexing_gives_a_view(name: str) -> None:
    if _expected(GRID[name]) is None:
        return
    x = treadle.arange(60.0).reshape(*SHAPE)
    got = x[_treadle(GRID[name])]
    got.fill_(-1)
    a = np.arange(60.0).reshape(SHAPE)
    a[_numpy(GRID[name])] = -1
    np.testing.assert_array_equal(x.numpy(), a)


@pytest.mark.parametrize("shape", [SHAPE, (3, 0, 5)])
@pytest.mark.parametrize("name", BASIC)
def test_a_view_made_at_once_is_the_one_made_step_by_step(
    name: str, shape: tuple[int, ...]
) -> None:
    """Gradients that are recorded need each operator; nothing else does."""
    whole = treadle.arange(240.0)[60:]
    x = whole.as_strided(shape, (1, 15, 3), 60)
    try:
        at_once = x[GRID[name]]
    except IndexError:
        return
    with treadle.profiler.profile() as seen:
        operators = x[GRID[name]]
    assert {e.key for e in seen.key_averages()} & VIEWS
    recorded = x.detach().requires_grad_()[GRID[name]]
    for other in (operators, recorded):
        assert (at_once.shape, at_once.stride(), at_once.storage_offset()) == (
            other.shape,
            other.stride(),
            other.storage_offset(),
        )
    assert at_once._base is x._base
    assert not at_once.requires_grad and recorded.requires_grad


def test_a_view_made_at_once_follows_its_base() -> None:
    x, w = treadle.zeros(4, 3), treadle.ones(3, requires_grad=True)
    row, last = x[1], x[1:3, 2]
    x.add_(w)
    assert row.requires_grad and last.requires_grad
    (row.sum() + last.sum()).backward()
    assert w.grad.tolist() == [1, 1, 3]
    with treadle.no_grad():
        part = x[0, 1:]
    with pytest.raises(RuntimeError, match="no_grad"):
        part.mul_(w[1:])


@pytest.mark.parametrize("dtype", [treadle.bool, treadle.uint8])
@pytest.mark.parametrize("value", [0, 1, 2])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
def test_a_mask_of_one_element_adds_a_dimension(
    dtype: treadle.dtype, value: int, shape: tuple[int, ...]
) -> None:
    data = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    x, mask = treadle.from_numpy(data.copy()), treadle.tensor(value).to(dtype)
    leading = (0,) * len(shape)
    for index, same in (((mask,), (bool(value),)), ((*leading, mask), (*leading, bool(value)))):
        np.testing.assert_array_equal(x[index].numpy(), data[same])
        x[index] = 7.0
        data[same] = 7.0
        np.testing.assert_array_equal(x.numpy(), data)


def test_a_number_beside_an_array_is_taken_first() -> None:
    """As in PyTorch, and not in NumPy, a number is no array: the rest is indexed after it."""
    x, a = treadle.arange(60.0).reshape(*SHAPE), np.arange(60.0).reshape(SHAPE)
    index = np.array([1, 3])
    np.testing.assert_array_equal(x[0, :, treadle.from_numpy(index)].numpy(), a[0][:, index])
    np.testing.assert_array_equal(x[treadle.tensor([0, 2]), :, 1].numpy(), a[:, :, 1][[0, 2]])


def test_advanced_indexing_gives_a_copy() -> None:
    x = treadle.arange(5)
    x[[0, 1]].fill_(9)
    assert x.tolist() == [0, 1, 2, 3, 4]


def test_augmented_assignment() -> None:
    x, a = treadle.arange(6.0), np.arange(6.0)
    x[1:4] *= 10
    a[1:4] *= 10
    x[[0, 5]] += 1
    a[[0, 5]] += 1
    x[x > 15] -= 5
    a[a > 15] -= 5
    np.testing.assert_array_equal(x.numpy(), a)


def test_values_are_converted_to_the_dtype_of_the_tensor() -> None:
    x = treadle.zeros(3, dtype=treadle.int64)
    x[0] = 2.7
    x[1] = True
    x[2] = treadle.tensor(5, dtype=treadle.int32)
    assert x.tolist() == [2, 1, 5]


def test_iteration_and_length() -> None:
    x = treadle.arange(6).reshape(3, 2)
    assert len(x) == 3 and [row.tolist() for row in x] == [[0, 1], [2, 3], [4, 5]]
    a, b, c = x
    assert b.tolist() == [2, 3]
    with pytest.raises(TypeError):
        len(treadle.tensor(1))
    with pytest.raises(TypeError):
        iter(treadle.tensor(1))
    assert 4 in x and 9 not in x


WRONG: list[tuple[Any, type[Exception]]] = [
    (3, IndexError),
    (-4, IndexError),
    ((0, 0, 0, 0), IndexError),
    (2**70, (IndexError, OverflowError)),
    ("a", (TypeError, IndexError)),
    (1.5, IndexError),
    (slice(None, None, 0), ValueError),
    ((..., ...), IndexError),
    (slice("a"), TypeError),
    (treadle.tensor([3]), IndexError),
    (treadle.tensor([0, -4]), IndexError),
    (treadle.tensor([0.5]), IndexError),
    (treadle.tensor([True, False]), IndexError),
    (treadle.zeros(3, 5, dtype=treadle.bool), IndexError),
    ([0, 9], IndexError),
    ((treadle.tensor([0, 1]), treadle.tensor([0, 1, 2])), IndexError),
    (object(), IndexError),
    ({}, IndexError),
    (float("nan"), IndexError),
    ([[0, 1], [2, 3, 4]], (TypeError, ValueError, IndexError)),
    (treadle.tensor([2**62]), IndexError),
    (np.array(["a"]), (TypeError, IndexError)),
]


@pytest.mark.parametrize("index, kind", WRONG, ids=lambda v: repr(v).split(" at 0x")[0][:30])
def test_wrong_indices_are_refused_and_nothing_is_written(index: Any, kind: Any) -> None:
    x = treadle.arange(12.0).reshape(3, 4)
    with pytest.raises(kind) as info:
        x[index]
    assert 0 < len(str(info.value).splitlines()) <= 6
    with pytest.raises(kind):
        x[index] = 1
    np.testing.assert_array_equal(x.numpy(), np.arange(12.0).reshape(3, 4))


WRONG_VALUES = [np.zeros(3), np.zeros((2, 4)), "a", None, object(), [1, 2, 3], [[1], [2, 3]]]


@pytest.mark.parametrize("value", WRONG_VALUES, ids=lambda v: repr(v).split(" at 0x")[0])
def test_wrong_values_are_refused_and_nothing_is_written(value: Any) -> None:
    for index in (0, slice(0, 1), [0], treadle.tensor([True, False, False])):
        x = treadle.arange(12.0).reshape(3, 4)
        with pytest.raises((TypeError, ValueError, RuntimeError, IndexError)):
            x[index] = treadle.from_numpy(value) if isinstance(value, np.ndarray) else value
        np.testing.assert_array_equal(x.numpy(), np.arange(12.0).reshape(3, 4))


def test_writing_a_tensor_to_a_part_of_itself() -> None:
    """Source and target overlap: the result is as if the source had been copied first."""
    a, x = np.arange(8.0), treadle.arange(8.0)
    a[1:] = a[:-1].copy()
    x[1:] = x[:-1]
    np.testing.assert_array_equal(x.numpy(), a)
    x[treadle.tensor([0, 1, 2])] = x[5:]
    a[[0, 1, 2]] = a[5:]
    np.testing.assert_array_equal(x.numpy(), a)


@pytest.mark.parametrize("size", [7, 200_000])
@pytest.mark.parametrize("step", [1, 3])
def test_one_index_of_one_dimension(size: int, step: int) -> None:
    """The commonest index of all; near and far, with gaps and without."""
    a = np.arange(size * step, dtype=np.float32)
    x, view = treadle.from_numpy(a.copy())[::step], a[::step]
    where = np.random.default_rng(0).integers(-size, size, (50, 2))
    rows = treadle.from_numpy(where)
    assert np.array_equal(x[rows].numpy(), view[where])
    assert np.array_equal(x.index_select(0, rows.flatten() % size).numpy(), view[where.ravel()])
    values = np.arange(100, dtype=np.float32).reshape(50, 2)
    x[rows] = treadle.from_numpy(values)
    view[where] = values
    assert np.array_equal(x.numpy(), view), "the later value stays"
    x.index_put_((rows,), treadle.tensor(2.0), accumulate=True)
    np.add.at(view, where, 2)
    assert np.array_equal(x.numpy(), view)
    # The last entry is wrong: an error, and nothing written.
    before = x.clone()
    for wrong in (size, -size - 1, 2**62, -(2**62)):
        rows[-1, -1] = wrong
        message = rf"expected index in \[-{size}, {size}\) for dimension 0, got index = {wrong}"
        with pytest.raises(IndexError, match=message):
            x[rows]
        with pytest.raises(IndexError, match=message):
            x[rows] = 0.0
        with pytest.raises(IndexError, match="expected index in"):
            x.index_select(0, rows.flatten())
        assert treadle.equal(x, before)


def test_a_wrong_entry_leaves_out_as_it_was() -> None:
    out = treadle.full((3,), 9.0)
    with pytest.raises(IndexError, match="got index = 7"):
        treadle.index_select(treadle.arange(5.0), 0, treadle.tensor([1, 2, 7]), out=out)
    assert out.tolist() == [9, 9, 9]


def test_an_index_that_is_written_to() -> None:
    """Every entry counts as it was before."""
    buffer = treadle.tensor([2, 0, 1, 1])
    treadle.index_select(treadle.tensor([5, 6, 7]), 0, buffer[:3], out=buffer[1:])
    assert buffer.tolist() == [2, 7, 5, 6]
    x = treadle.tensor([3, 2, 1, 0])
    x[x] = treadle.tensor([10, 20, 30, 40])
    assert x.tolist() == [40, 30, 20, 10]
    x = treadle.tensor([1, 2, 0, 100])
    x[x[:3]] = 99
    assert x.tolist() == [99, 99, 99, 100]


def test_indices_are_not_changed() -> None:
    index = treadle.tensor([-1, 0])
    treadle.arange(4)[index]
    assert index.tolist() == [-1, 0]


@pytest.mark.parametrize(
    "name", ["1:", "list", "array, :", "mask", "a, :, a", "0, ..., 1", "None, ..."]
)
def test_gradients_of_reading_and_writing(name: str) -> None:
    index = _treadle(GRID.get(name, (np.array([[1, 0], [2, 2]]), slice(None))))
    x = treadle.randn(*SHAPE, dtype=treadle.float64, requires_grad=True)
    value = treadle.randn(*x.detach()[index].shape, dtype=treadle.float64, requires_grad=True)
    assert treadle.autograd.gradcheck(lambda x: x[index] * 2, (x,))
    if name not in ("array, :", "list"):  # these write a row twice

        def write(x: Any, value: Any) -> Any:
            y = x.clone()
            y[index] = value
            return y

        assert treadle.autograd.gradcheck(write, (x, value))


@pytest.mark.parametrize("grad", [False, True])
def test_slices_go_back(grad: bool) -> None:
    a = np.arange(24.0).reshape(4, 6)
    x = treadle.from_numpy(a.copy()).requires_grad_(grad)
    keys = (
        np.s_[::-1], np.s_[:, ::-1], np.s_[::-1, ::-2], np.s_[3:0:-2, 1], np.s_[:, -2:-9:-3],
        np.s_[1:3:-1], np.s_[9::-1], np.s_[None, ..., 4:1:-1], np.s_[:: -(2**62)], np.s_[0:0:-1],
        np.s_[2::-1, [1, 3]],
    )  # fmt: skip
    for key in keys:
        np.testing.assert_array_equal(x[key].detach().numpy(), a[key])
    view = x.detach()[::-1]
    assert view.stride(0) == -6 and view.data_ptr() != x.data_ptr()
    view[0] = 0
    assert x[3].tolist() == [0] * 6


def test_a_view_that_goes_back_has_a_gradient() -> None:
    x = treadle.arange(5.0).requires_grad_()
    (x[::-2] * treadle.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert x.grad.tolist() == [3, 0, 2, 0, 1]
    y = treadle.zeros(4, requires_grad=True) * 1
    y[::-1] += treadle.tensor([1.0, 2.0, 3.0, 4.0])
    y[:2][::-1].sum().backward()
    assert y.tolist() == [4, 3, 2, 1]


def test_operators_take_views_that_go_back() -> None:
    rng = np.random.default_rng(0)
    a = rng.standard_normal((6, 5)).astype(np.float32)
    x, back = treadle.from_numpy(a)[::-1, ::-1], np.ascontiguousarray(a[::-1, ::-1])
    y = treadle.from_numpy(back)
    calls = (
        lambda t: t.exp(), lambda t: t.sum(0), lambda t: t.sum(), lambda t: t @ t.t(),
        lambda t: t.softmax(1), lambda t: t.sort(1)[0], lambda t: t.cumsum(0), lambda t: t.clone(),
        lambda t: t.reshape(-1), lambda t: t.t().contiguous(), lambda t: treadle.cat([t, t]),
        lambda t: t[treadle.tensor([2, 0])], lambda t: t.gather(0, treadle.zeros(2, 5).long()),
        lambda t: t.max(0)[1], lambda t: t.argmax(), lambda t: treadle.conv1d(t[None], t[None]),
        lambda t: t.view(2, 3, 5), lambda t: t.unfold(0, 2, 2), lambda t: treadle.zeros_like(t),
        lambda t: t.clone().add_(t), lambda t: t.topk(2)[0], lambda t: t.var(0),
        lambda t: t + t[:1],
    )  # fmt: skip
    for i, call in enumerate(calls):
        np.testing.assert_array_equal(call(x).numpy(), call(y).numpy(), err_msg=str(i))


def test_a_list_of_lists_is_a_tuple_of_indices() -> None:
    x = treadle.arange(9).reshape(3, 3)
    with pytest.warns(UserWarning, match="index: a list of lists is read as a tuple of indices"):
        assert x[[[0, 1], [1, 0]]].tolist() == [1, 3]
    with pytest.warns(UserWarning, match="write x.tuple.index.. for that"):
        x[[[0, 1], [1, 0]]] = 0
    assert x[0, 1] == 0 and x[1, 0] == 0
    assert x[treadle.tensor([[0, 1], [1, 0]])].shape == (2, 2, 3)


def test_masks_of_bytes_are_deprecated() -> None:
    x, mask = treadle.arange(4.0).reshape(2, 2), treadle.tensor([1, 0], dtype=treadle.uint8)
    with pytest.warns(UserWarning) as record:
        assert x[mask].tolist() == [[0.0, 1.0]]
    assert str(record[0].message) == (
        "index: a mask of dtype uint8 is deprecated; use one of dtype bool"
    )


@pytest.mark.parametrize(
    "index_of",
    [
        lambda end: slice(end, 8),
        lambda end: (slice(end, 8), 0),
        lambda end: (0, slice(0, end)),
        lambda end: (slice(None), end),
    ],
)
def test_an_index_whose_bound_makes_the_tensor_smaller(index_of: Callable[[Any], Any]) -> None:
    x = treadle.zeros(8, 8)

    class Shrinks:
        def __index__(self) -> int:
            x.resize_(1).untyped_storage().resize_(4)
            return 5

    with pytest.raises(RuntimeError, match="expected a view inside its storage of 1 elements"):
        x[index_of(Shrinks())]


def test_plain_indices_of_a_storage_that_was_made_smaller() -> None:
    x = treadle.zeros(8, 8)
    x.untyped_storage().resize_(4)
    for index in (5, (5, 5), slice(5, 8), (slice(None), 0)):
        with pytest.raises(RuntimeError, match="expected a view inside its storage of 1 elements"):
            x[index]
