"""treadle.foreach: functions over lists of tensors."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math

import pytest

import treadle
from treadle import foreach


def lists():
    return [treadle.tensor([1.0, -2.0]), treadle.tensor([[4.0]])]


@pytest.mark.parametrize("name", foreach.__all__)
def test_every_function_calls_its_operator(name):
    assert getattr(foreach, name).__name__ == name
    assert name in dir(foreach)


def test_a_result_is_a_tuple_with_one_tensor_for_each():
    result = foreach.mul(lists(), 2)
    assert type(result) is tuple
    assert [r.tolist() for r in result] == [[2.0, -4.0], [[8.0]]]
    assert [r.tolist() for r in foreach.abs(lists())] == [[1.0, 2.0], [[4.0]]]
    assert [r.item() for r in foreach.norm(lists(), ord=1)] == [3.0, 4.0]
    assert [r.item() for r in foreach.max(lists())] == [1.0, 4.0]
    assert foreach.norm(lists())[0].item() == pytest.approx(math.sqrt(5))


@pytest.mark.parametrize("kind", [list, tuple])
def test_in_place_gives_the_list_back(kind):
    tensors = kind(lists())
    assert foreach.add_(tensors, lists(), alpha=3) is tensors
    assert [t.tolist() for t in tensors] == [[4.0, -8.0], [[16.0]]]
    assert foreach.zero_(tensors) is tensors
    assert [t.sum().item() for t in tensors] == [0.0, 0.0]


def test_numbers_and_tensors_for_each():
    assert [r.tolist() for r in foreach.sub(lists(), [1, 2])] == [[0.0, -3.0], [[2.0]]]
    result = foreach.addcmul(lists(), lists(), lists(), value=0.5)
    assert [r.tolist() for r in result] == [[1.5, 0.0], [[12.0]]]
    assert [r.tolist() for r in foreach.lerp(lists(), lists(), 0.25)] == [[1.0, -2.0], [[4.0]]]
    assert [r.tolist() for r in foreach.pow(2, lists())] == [[2.0, 0.25], [[16.0]]]


def test_gradients_go_through():
    tensors = [t.requires_grad_() for t in lists()]
    sum(r.sum() for r in foreach.mul(tensors, lists())).backward()
    assert [t.grad.tolist() for t in tensors] == [[1.0, -2.0], [[4.0]]]


def test_inputs_go_by_position():
    with pytest.raises(TypeError):
        foreach.abs(inputs=lists())
    with pytest.raises(AttributeError):
        _ = foreach.powsum
    with pytest.raises(RuntimeError):
        foreach.add(lists(), lists()[:1])
