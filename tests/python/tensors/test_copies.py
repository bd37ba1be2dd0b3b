"""Copies of tensors, by `copy` and by `pickle`: what they keep of memory, layout, class and
attributes."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
import pickle
from typing import Any, Callable

import pytest

import treadle
from treadle import nn


def pickled(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


class Boxes(treadle.Tensor):
    __slots__ = ("canvas",)


def boxes() -> Boxes:
    made = treadle.arange(8.0).reshape(2, 4).as_subclass(Boxes)
    made.format, made.canvas = ["xyxy"], (3, 5)
    return made


# ---- memory ------------------------------------------------------------------------------------


def test_what_shared_memory_shares_it_again() -> None:
    x = treadle.arange(6.0)
    whole, part, bits = copy.deepcopy([x, x[1:], x.view(treadle.int32)])
    part[0] = 9
    assert whole.tolist() == [0, 9, 2, 3, 4, 5] and bits[1].item() != x.view(treadle.int32)[1]
    assert x.tolist() == [0, 1, 2, 3, 4, 5]


class Tied(nn.Module):
    """A buffer and a parameter that are parts of another parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(treadle.zeros(4, 3))
        self.register_buffer("first", self.weight.detach()[0])
        self.column = nn.Parameter(self.weight.detach()[:, 1])


def test_a_module_over_one_memory_stays_so() -> None:
    net = copy.deepcopy(Tied())
    with treadle.no_grad():
        net.weight.fill_(2)
    assert net.first.tolist() == [2] * 3 and net.column.tolist() == [2] * 4
    assert net.column.stride() == (3,)


def test_a_shallow_copy_is_over_the_same_memory() -> None:
    x = boxes()
    y = copy.copy(x)
    y[0, 0] = 7
    assert y is not x and x[0, 0].item() == 7
    assert type(y) is Boxes and y.format is x.format and y.canvas == (3, 5)
    w = copy.copy(nn.Parameter(treadle.ones(2)))
    assert isinstance(w, nn.Parameter) and w.requires_grad and w.is_leaf


def test_storages() -> None:
    x = treadle.arange(4.0)
    y, storage = copy.deepcopy([x, x.untyped_storage()])
    assert y.untyped_storage() == storage != x.untyped_storage()
    again = pickled(storage)
    assert again != storage and treadle.empty(0).set_(again).tolist() == [0, 1, 2, 3]
    assert pickled(treadle.empty(0).untyped_storage()).nbytes() == 0


# ---- attributes and classes --------------------------------------------------------------------


@pytest.mark.parametrize("copied", [copy.deepcopy, pickled])
def test_attributes_and_classes_are_kept(copied: Callable) -> None:
    x = treadle.ones(2)
    x.tags = ["a"]
    y = copied(x)
    assert y.tags == ["a"] and y.tags is not x.tags
    y = copied(boxes())
    assert type(y) is Boxes and y.format == ["xyxy"] and y.canvas == (3, 5)
    w = nn.Parameter(treadle.ones(2), requires_grad=False)
    w.decays = False
    w = copied(w)
    assert type(w) is nn.Parameter and not w.requires_grad and w.decays is False
    b = copied(nn.Buffer(treadle.ones(2), persistent=False))
    assert type(b) is nn.Buffer and b.persistent is False


def test_an_attribute_may_be_the_tensor_itself() -> None:
    x = treadle.ones(2)
    x.me = x
    y = copy.deepcopy(x)
    assert y.me is y
    del x.me, y.me


def test_gradients_of_tensors_are_copied_and_those_of_parameters_are_not() -> None:
    leaf, parameter = treadle.ones(2, requires_grad=True), nn.Parameter(treadle.ones(2))
    leaf.grad, parameter.grad = treadle.full((2,), 3.0), treadle.full((2,), 3.0)
    copied = copy.deepcopy(leaf)
    copied.grad += 1
    assert leaf.grad.tolist() == [3, 3] and copied.grad.tolist() == [4, 4]
    assert copy.deepcopy(parameter).grad is None


# ---- layout ------------------------------------------------------------------------------------

LAYOUTS = {
    "transposed": (lambda: treadle.arange(6.0).reshape(2, 3).t(), (1, 3)),
    "channels last": (
        lambda: treadle.randn(2, 3, 4, 5).to(memory_format=treadle.channels_last),
        (60, 1, 15, 3),
    ),
    "part of it": (lambda: treadle.arange(24.0).reshape(4, 6).t()[:, 1:3], (1, 6)),
    "contiguous": (lambda: treadle.arange(6.0).reshape(2, 3), (3, 1)),
    "meta": (lambda: treadle.empty(2, 3, device="meta").t(), (1, 3)),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_pickle_keeps_the_order_of_dimensions_in_memory(name: str) -> None:
    make, stride = LAYOUTS[name]
    x = make()
    y = pickled(x)
    assert y.shape == x.shape and y.dtype == x.dtype and y.device == x.device
    assert y.stride() == stride
    assert x.is_meta or treadle.equal(x, y)


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_deep_copy_keeps_strides(name: str) -> None:
    x = LAYOUTS[name][0]()
    y = copy.deepcopy(x)
    assert y.stride() == x.stride() and (x.is_meta or treadle.equal(x, y))


def test_empty_and_expanded_tensors() -> None:
    for x in (treadle.empty(0, 3), treadle.ones(1, 3).expand(4, 3), treadle.tensor(5)):
        for copied in (copy.deepcopy(x), pickled(x), copy.copy(x)):
            assert treadle.equal(copied, x) and copied.shape == x.shape


# ---- modules that PyTorch reads ------------------------------------------------------------------


def test_a_recurrent_module_takes_its_flat_weights_along() -> None:
    layer = nn.LSTM(2, 3)
    state = layer.__getstate__()
    assert state["_flat_weights_names"] == list(dict(layer.named_parameters()))
    assert all(a is b for a, b in zip(state["_flat_weights"], layer.parameters()))
    other = pickled(layer)
    assert "_flat_weights" not in other.__dict__ and len(other._flat_weights) == 4
    x = treadle.randn(5, 1, 2)
    assert treadle.equal(layer(x)[0], other(x)[0])


def test_a_recurrent_module_with_computed_weights_can_be_copied() -> None:
    layer = nn.utils.parametrizations.orthogonal(nn.GRU(3, 3), "weight_hh_l0")
    x = treadle.randn(5, 1, 3)
    assert treadle.equal(layer(x)[0], copy.deepcopy(layer)(x)[0])


# ---- resize ------------------------------------------------------------------------------------


def test_resize_keeps_the_history() -> None:
    x = treadle.arange(6.0, requires_grad=True)
    with pytest.warns(UserWarning, match="non-inplace resize is deprecated"):
        y = x.resize(2, 3)
    y.sum().backward()
    assert y.data_ptr() == x.data_ptr() and x.grad.tolist() == [1] * 6
    with pytest.warns(UserWarning), pytest.raises(RuntimeError) as raised:
        x.resize(4)
    assert str(raised.value) == (
        "resize: expected sizes of 6 elements, got (4,); resize_ changes their number"
    )
