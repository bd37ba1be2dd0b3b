"""Anomaly mode: a backward that fails or yields NaN shows the forward call it comes from."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import subprocess
import sys
import warnings
from typing import Any, Iterator

import pytest

import treadle
from treadle.autograd import Function, detect_anomaly, grad, set_detect_anomaly


@pytest.fixture(autouse=True)
def off_again() -> Iterator[None]:
    yield
    assert not treadle.is_anomaly_enabled()


class Failing(Function):
    @staticmethod
    def forward(ctx: Any, x: treadle.Tensor) -> treadle.Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: treadle.Tensor) -> treadle.Tensor:
        raise KeyError("in backward")


def a_root_of_something_negative(x: treadle.Tensor) -> treadle.Tensor:
    return x.sqrt()


def test_nan_is_an_error_that_shows_the_forward_call() -> None:
    x = treadle.tensor([-1.0, 4.0], requires_grad=True)
    with set_detect_anomaly(True):
        y = a_root_of_something_negative(x)
        with pytest.warns(UserWarning) as warned:
            with pytest.raises(RuntimeError, match="Function 'SqrtBackward0' returned nan .* 0th"):
                y.sum().backward()
    (text,) = [str(w.message) for w in warned]
    assert text.startswith("Error detected in SqrtBackward0. Traceback of forward call")
    assert "a_root_of_something_negative" in text and "return x.sqrt()" in text
    assert "anomaly_mode.py" not in text


def test_nan_is_let_through_without_the_check() -> None:
    x = treadle.tensor([-1.0, 4.0], requires_grad=True)
    with set_detect_anomaly(True, check_nan=False):
        assert not treadle.is_anomaly_check_nan_enabled()
        x.sqrt().sum().backward()
    assert x.grad[0].isnan() and x.grad[1] == 0.25
    x.sqrt().sum().backward()


def test_any_exception_shows_the_forward_call_and_goes_on() -> None:
    x = treadle.ones(2, requires_grad=True)
    with set_detect_anomaly(True):
        shown = "(?s)Error detected in FailingBackward.*Failing.apply"
        with pytest.warns(UserWarning, match=shown):
            with pytest.raises(KeyError, match="in backward"):
                Failing.apply(x).sum().backward()


def test_a_forward_outside_the_mode_has_no_stack() -> None:
    y = Failing.apply(treadle.ones(2, requires_grad=True))
    with set_detect_anomaly(True):
        with pytest.warns(UserWarning, match="No forward pass information"):
            with pytest.raises(KeyError):
                y.sum().backward()


def test_nodes_made_in_backward_remember_their_parents() -> None:
    a = treadle.tensor([0.0], requires_grad=True)
    with set_detect_anomaly(True, check_nan=True):
        y = a**1.5
        assert list(y.grad_fn.metadata) == ["traceback_"]
        (g,) = grad(y.sum(), a, create_graph=True)
        assert g.grad_fn.metadata["parent_"] is y.grad_fn
        with pytest.warns(UserWarning, match="(?s)Previous calculation was induced by Pow"):
            with pytest.raises(RuntimeError, match="nan"):
                grad((g * 0).sum(), a)


def test_a_warning_that_is_an_error_is_raised() -> None:
    x = treadle.ones(2, requires_grad=True)
    with set_detect_anomaly(True), warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="Error detected"):
            Failing.apply(x).sum().backward()


def test_switches() -> None:
    set_detect_anomaly(True)
    assert treadle.is_anomaly_enabled() and treadle.is_anomaly_check_nan_enabled()
    set_detect_anomaly(False)
    with pytest.warns(UserWarning, match="slower"):
        mode = detect_anomaly()
    assert not treadle.is_anomaly_enabled()
    with mode:
        assert treadle.is_anomaly_enabled()
        with set_detect_anomaly(False):
            assert not treadle.is_anomaly_enabled()
        assert treadle.is_anomaly_enabled()
    with pytest.raises(TypeError, match="expected a bool"):
        set_detect_anomaly(1)


def test_other_gradients_are_as_without() -> None:
    x = treadle.tensor([1.0, 2.0], requires_grad=True)
    index = treadle.tensor([1, 0])
    with set_detect_anomaly(True):
        (x[index] * x.exp()).sum().backward()
    assert treadle.allclose(x.grad, x[index].exp() + x[index] * x.exp())


def test_the_package_loads_it_at_its_first_use() -> None:
    program = (
        "import sys, treadle\n"
        "late = ['treadle.autograd.' + name for name in ('anomaly_mode', 'function', 'variable')]\n"
        "assert not set(late) & set(sys.modules)\n"
        "from treadle.autograd import Function, Variable, detect_anomaly\n"
        "assert set(late) <= set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
