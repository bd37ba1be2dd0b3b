"""Two tensors change places."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import weakref
from typing import Any

import pytest

import treadle
from treadle.utils import swap_tensors


def test_everything_changes_places() -> None:
    a: Any = treadle.nn.Parameter(treadle.ones(2))
    b: Any = treadle.zeros(3, 3, dtype=treadle.float64)
    a.mark, a.grad = "a", treadle.full((2,), 5.0)
    swap_tensors(a, b)
    assert type(a) is treadle.Tensor and type(b) is treadle.nn.Parameter
    assert a.dtype == treadle.float64 and tuple(a.shape) == (3, 3) and not a.requires_grad
    assert b.tolist() == [1.0, 1.0] and b.requires_grad and b.grad.tolist() == [5.0, 5.0]
    assert b.mark == "a" and not hasattr(a, "mark") and a.grad is None
    (b * 3).sum().backward()
    assert b.grad.tolist() == [8.0, 8.0]


def test_a_module_has_the_other_tensor() -> None:
    layer = treadle.nn.Linear(2, 1)
    swap_tensors(layer.weight, treadle.nn.Parameter(treadle.tensor([[1.0, 2.0]])))
    assert layer.weight.tolist() == [[1.0, 2.0]]
    assert [name for name, _ in layer.named_parameters()] == ["weight", "bias"]


def test_what_is_refused() -> None:
    def fails(kind: type, message: str, *pair: Any) -> None:
        with pytest.raises(kind) as error:
            swap_tensors(*pair)
        assert str(error.value) == f"swap_tensors: {message}"

    x = treadle.ones(2, requires_grad=True)
    fails(RuntimeError, "expected leaves of the graph, got t2, the result of an operation; detach()"
          " it first", treadle.ones(2), x * 2)  # fmt: skip
    fails(TypeError, "expected tensors, got int", x, 3)
    reference = weakref.ref(x)
    fails(RuntimeError, "expected no weak references to t1, got some", x, treadle.ones(2))
    assert reference() is x and x.tolist() == [1.0, 1.0]
