"""One tensor is one Python object: identity, attributes, subclasses, lifetimes."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
import gc
import pickle
import threading
import weakref

import pytest

import treadle


class Tagged(treadle.Tensor):
    """A subclass with attributes of its own."""


def tagged(tag: str) -> Tagged:
    t = treadle.Tensor._make_subclass(Tagged, treadle.tensor([1.0, 2.0]))
    t.tag = tag
    return t


def test_a_tensor_that_comes_back_is_the_same_object() -> None:
    x = treadle.ones(2, requires_grad=True)
    g = treadle.ones(2)
    x.grad = g
    assert x.grad is g
    assert x.requires_grad_() is x
    assert x.contiguous() is x


def test_attributes_survive_when_only_the_library_holds_the_tensor() -> None:
    x = treadle.ones(2, requires_grad=True)
    for k in range(3):  # it must work more than once
        if k == 0:
            x.grad = tagged("kept")
        gc.collect()
        assert type(x.grad) is Tagged
        assert x.grad.tag == "kept"
    plain = treadle.zeros(2)
    plain.note = "mine"
    x.grad = plain
    del plain
    gc.collect()
    assert x.grad.note == "mine"


def test_the_object_dies_with_its_tensor() -> None:
    class Witness:
        pass

    x = treadle.ones(2, requires_grad=True)
    x.grad = tagged("t")
    x.grad.witness = Witness()
    alive = weakref.ref(x.grad.witness)
    gc.collect()
    assert alive() is not None
    del x
    gc.collect()
    assert alive() is None


def test_plain_objects_are_freed_at_once() -> None:
    t = treadle.ones(3)
    alive = weakref.ref(t)
    del t
    assert alive() is None


def test_cycles_through_attributes_are_collected() -> None:
    t, s = treadle.ones(3), tagged("s")
    t.self, s.self, s.other = t, s, t
    watch = [weakref.ref(t), weakref.ref(s)]
    del t, s
    gc.collect()
    assert [w() for w in watch] == [None, None]


def test_a_tensor_that_dies_on_another_thread_takes_its_object_along() -> None:
    x = treadle.ones(2, requires_grad=True)
    x.grad = tagged("t")
    alive = weakref.ref(x.grad)
    holder = [x]
    del x
    thread = threading.Thread(target=holder.clear)
    thread.start()
    thread.join()
    gc.collect()
    assert alive() is None


def test_subclasses_copy_and_pickle() -> None:
    t = tagged("t")
    assert type(copy.deepcopy(t)) is Tagged
    again = pickle.loads(pickle.dumps(t))
    assert type(again) is Tagged and again.tag == "t"
    x = treadle.ones(2, 3, requires_grad=True)
    for y in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert y is not x and y.requires_grad and y.tolist() == x.tolist()


@pytest.mark.parametrize(
    "value",
    [
        treadle.float32,
        treadle.strided,
        treadle.channels_last,
        treadle.device("cpu"),
        treadle.Size([2, 3]),
    ],
)
def test_constants_pickle(value: object) -> None:
    again = pickle.loads(pickle.dumps(value))
    assert again == value and type(again) is type(value)
    if not isinstance(value, (treadle.device, treadle.Size)):
        assert again is value


def test_sizes_are_tuples() -> None:
    size = treadle.zeros(2, 3, 4).shape
    assert size == (2, 3, 4) and isinstance(size, tuple)
    assert size.numel() == 24
    assert isinstance(size[1:], treadle.Size) and isinstance(size + (1,), treadle.Size)
    for longer in (size * 2, 2 * size, (1,) + size, size + size):
        assert isinstance(longer, treadle.Size)
    assert size * 2 == (2, 3, 4, 2, 3, 4) and (1,) + size == (1, 2, 3, 4)
    assert repr(size) == "treadle.Size([2, 3, 4])"


def test_elements_as_python_numbers() -> None:
    t = treadle.tensor([[1, 2], [3, 4]])
    assert t.tolist() == [[1, 2], [3, 4]] and t[1, 0].item() == 3
    assert int(t[0, 1]) == 2 and float(t[0, 1]) == 2.0 and [10, 20, 30][t[0, 1]] == 30
    assert f"{treadle.tensor(1.5):.2f}" == "1.50"
    assert treadle.tensor([1 + 2j]).tolist() == [1 + 2j]
    assert treadle.tensor(True).item() is True
    with pytest.raises(RuntimeError):
        bool(t)
    with pytest.raises(TypeError):
        len(t[0, 0])
    with pytest.raises(TypeError):
        [1, 2][treadle.tensor(1.0)]


def test_construction() -> None:
    assert treadle.tensor([1, 2]).dtype == treadle.int64
    assert treadle.tensor([1, 2.0]).dtype == treadle.float32
    assert treadle.tensor([1, 2j]).dtype == treadle.complex64
    assert treadle.tensor([True]).dtype == treadle.bool
    assert treadle.tensor([]).shape == (0,)
    assert treadle.tensor([[], []]).shape == (2, 0)
    assert treadle.tensor(range(3)).tolist() == [0, 1, 2]
    assert treadle.Tensor(2, 3).shape == (2, 3)
    assert treadle.Tensor([2, 3]).tolist() == [2.0, 3.0]


@pytest.mark.parametrize(
    "data, kind",
    [
        ([[1, 2], [3]], ValueError),
        ([1, [2]], ValueError),
        ([[1], 2], ValueError),
        ("text", TypeError),
        (["a"], TypeError),
        ({1: 2}, TypeError),
        (None, TypeError),
        (object(), TypeError),
        (2**70, OverflowError),
    ],
)
def test_data_that_is_no_tensor(data: object, kind: type) -> None:
    with pytest.raises(kind):
        treadle.tensor(data)


def test_lists_that_hold_themselves() -> None:
    endless: list = []
    endless.append(endless)
    with pytest.raises(TypeError):
        treadle.tensor(endless)


def test_values_that_do_not_fit() -> None:
    with pytest.raises(RuntimeError):
        treadle.tensor(300, dtype=treadle.int8)


def test_out_of_memory_is_an_exception() -> None:
    with pytest.raises(treadle.OutOfMemoryError):
        treadle.empty(2**50)
    assert issubclass(treadle.OutOfMemoryError, RuntimeError)
    assert treadle.ones(2).tolist() == [1.0, 1.0]


def test_storage() -> None:
    t = treadle.tensor([1, 2, 3], dtype=treadle.int32)
    storage = t.untyped_storage()
    assert storage.nbytes() == len(storage) == 12 and storage.data_ptr() == t.data_ptr()
    memoryview(storage).cast("i")[1] = 20
    assert t.tolist() == [1, 20, 3]
    assert t[1:].untyped_storage() == storage


def test_data_is_shared_and_can_be_replaced() -> None:
    w = treadle.ones(2, requires_grad=True)
    w.data[0] = 5
    assert w.tolist() == [5.0, 1.0] and w._version == 0
    w.data = treadle.zeros(3)
    assert w.shape == (3,) and w.requires_grad
    with pytest.raises(RuntimeError):
        w.data = treadle.zeros(3, dtype=treadle.int64)


def test_generators_go_back_to_a_state() -> None:
    g = treadle.Generator().manual_seed(7)
    state = g.get_state()
    a = treadle.rand(4, generator=g)
    g.set_state(state)
    assert treadle.rand(4, generator=g).tolist() == a.tolist()
    assert g.initial_seed() == 7
    with pytest.raises(TypeError):
        g.set_state(treadle.zeros(3))
    with pytest.raises(TypeError):
        g.manual_seed("seven")
    with pytest.raises(ValueError):
        g.manual_seed(2**70)
