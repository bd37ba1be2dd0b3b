"""The helpers for tests: what assert_close, make_tensor and gradcheck accept and refuse."""

# SPDX-License-Identifier: Apache-2.0

import importlib
import math

import numpy as np
import pytest

import treadle
from treadle.autograd import gradcheck, gradgradcheck
from treadle.autograd.gradcheck import GradcheckError
from treadle.testing import assert_allclose, assert_close, make_tensor

F64 = treadle.float64


def test_close_values_pass():
    assert_close(treadle.tensor([1.0, 2.0]), treadle.tensor([1.0, 2.0 + 1e-6]))
    assert_close([1, {"a": treadle.ones(2)}], [1, {"a": treadle.ones(2)}])
    assert_close(1.0, 1.0 + 1e-9)
    assert_close(treadle.tensor([math.inf, -math.inf]), treadle.tensor([math.inf, -math.inf]))
    assert_close(treadle.tensor(math.nan), treadle.tensor(math.nan), equal_nan=True)
    assert_close(treadle.tensor([1.0]), treadle.tensor([1.5]), rtol=0, atol=0.5)
    assert_close(
        treadle.tensor([1.0, 2.0]).to(treadle.bfloat16),
        treadle.ones(2).to(treadle.bfloat16) * treadle.tensor([1.0, 2.0]).to(treadle.bfloat16),
    )
    assert_close(np.ones(2), np.ones(2))
    assert_allclose(treadle.tensor([1.0]), [1.0])


@pytest.mark.parametrize(
    "actual, expected, text",
    [
        (
            treadle.tensor([1.0, 2.0]),
            treadle.tensor([1.0, 3.0]),
            "Mismatched elements: 1 / 2 (50.0%)",
        ),
        (
            treadle.tensor([1.0, 2.0]),
            treadle.tensor([1.0, 3.0]),
            "Greatest absolute difference: 1.0 at index (1,) (up to 1e-05 allowed)",
        ),
        (treadle.tensor(1), treadle.tensor(2), "Scalars are not close!\n\nExpected 2 but got 1."),
        (treadle.zeros(2), treadle.zeros(3), "'shape' do not match: (2,) != (3,)"),
        (treadle.zeros(2), treadle.zeros(2, dtype=F64), "'dtype' do not match"),
        (treadle.tensor(math.nan), treadle.tensor(math.nan), "Scalars are not close"),
        (treadle.tensor(math.inf), treadle.tensor(1.0), "Scalars are not close"),
        (treadle.tensor([1, 2]), treadle.tensor([1, 3]), "Tensor-likes are not close"),
        ([1, 2], [1], "length of the sequences mismatch: 2 != 1"),
        ({"a": 1}, {"b": 1}, "keys of the mappings do not match"),
        ([1, treadle.ones(1)], [1, treadle.zeros(1)], "The failure occurred for item [1]"),
        (treadle.ones(1), None, "Expected two tensors"),
        ("a", "b", "Strings are not equal"),
    ],
)
def test_differences_are_described(actual, expected, text):
    with pytest.raises(AssertionError) as caught:
        assert_close(actual, expected)
    assert text in str(caught.value)


def test_messages_can_be_replaced():
    with pytest.raises(AssertionError, match="^mine$"):
        assert_close(1, 2, msg="mine")
    with pytest.raises(AssertionError, match="^mine: Scalars"):
        assert_close(1, 2, msg=lambda text: "mine: " + text)
    with pytest.raises(ValueError, match="both be specified"):
        assert_close(1, 2, rtol=1)


def test_make_tensor():
    for dtype in (
        treadle.float32,
        treadle.int64,
        treadle.bool,
        treadle.complex64,
        treadle.bfloat16,
    ):
        made = make_tensor((3, 4), dtype=dtype)
        assert made.shape == (3, 4) and made.dtype == dtype
    assert make_tensor(5, dtype=F64, low=2, high=3).min().item() >= 2
    assert not make_tensor(3, 4, dtype=F64, noncontiguous=True).is_contiguous()
    assert make_tensor(4, dtype=F64, requires_grad=True).requires_grad
    assert bool(
        (make_tensor(100, dtype=treadle.int64, low=0, high=2, exclude_zero=True) != 0).all()
    )
    with pytest.raises(ValueError, match="requires_grad=True"):
        make_tensor(3, dtype=treadle.int64, requires_grad=True)


class Wrong(treadle.autograd.Function):
    """The square, with a gradient that is off by a factor."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x * 2.01


class Restless(treadle.autograd.Function):
    """A gradient that changes from call to call."""

    calls = 0

    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, grad):
        Restless.calls += 1
        return grad * (1 + 1e-7 * Restless.calls)


def inputs(*shapes, dtype=F64):
    treadle.manual_seed(0)
    return tuple(treadle.randn(shape, dtype=dtype, requires_grad=True) for shape in shapes)


def test_gradcheck_accepts_right_gradients():
    assert gradcheck(lambda x, y: x * y + x.exp(), inputs((2, 3), (3,)))
    assert gradcheck(lambda x: (x.sum(), x * x), inputs((2, 2)))
    assert gradcheck(lambda x: x.sum(), inputs((2, 2))[0])
    (x,) = inputs((3, 2))
    assert gradcheck(
        lambda x: x.transpose(0, 1) * 2, (x.detach().transpose(0, 1).requires_grad_(),)
    )
    # Only what requires grad is checked.
    assert gradcheck(lambda x, n, y: x * n, (x, 3, treadle.ones((3, 2))))


def test_gradcheck_of_complex_functions():
    assert gradcheck(lambda z: z * z, inputs((2,), dtype=treadle.complex128))
    assert gradcheck(lambda z: z.abs(), inputs((2,), dtype=treadle.complex128))


def test_gradcheck_refuses_wrong_gradients():
    (x,) = inputs((2,))
    with pytest.raises(
        GradcheckError,
        match="Jacobian mismatch for output 0 with respect to input 0",
    ) as caught:
        gradcheck(Wrong.apply, (x,))
    assert "numerical:" in str(caught.value) and "analytical:" in str(caught.value)
    assert gradcheck(Wrong.apply, (x,), raise_exception=False) is False
    with pytest.raises(RuntimeError, match="not reentrant"):
        gradcheck(Restless.apply, (x,))
    assert gradcheck(Restless.apply, (x,), nondet_tol=1e-3)


def test_gradcheck_leaves_the_input_as_it_was():
    (x,) = inputs((4,))
    before = x.tolist()
    gradcheck(lambda x: x * x, (x,))
    assert x.tolist() == before and x.grad is None


def test_gradcheck_arguments():
    with pytest.raises(ValueError, match="at least one input tensor to require gradient"):
        gradcheck(lambda x: x, (treadle.ones(2),))
    with pytest.raises(RuntimeError, match="stride 0"):
        gradcheck(lambda x: x * 2, (treadle.ones(1, dtype=F64).expand(3).requires_grad_(),))
    with pytest.warns(UserWarning, match="not a double precision"):
        gradcheck(lambda x: x * 2, (treadle.ones(2, requires_grad=True),), atol=1e-1, rtol=1e-1)


def test_gradgradcheck():
    assert gradgradcheck(lambda x, y: x * x * y, inputs((2, 2), (2,)))
    assert gradgradcheck(lambda x: x.exp().sum(), inputs((3,)), gen_non_contig_grad_outputs=True)
    (x,) = inputs((2,))
    assert gradgradcheck(
        lambda x: x * x * x, (x,), (treadle.ones(2, dtype=F64, requires_grad=True),)
    )


def test_gradcheck_is_called_by_its_module_s_name() -> None:
    module = importlib.import_module("treadle.autograd.gradcheck")
    treadle.autograd.gradcheck = module  # as `import treadle.autograd.gradcheck` leaves it
    x = treadle.ones(2, dtype=treadle.float64, requires_grad=True)
    assert treadle.autograd.gradcheck(lambda x: x * x, (x,))
    assert treadle.autograd.gradcheck.GradcheckError is GradcheckError


def test_gradcheck_of_a_function_that_puts_hooks_on_what_it_makes():
    def changed(x):
        y = x * 2
        y.register_hook(lambda grad: grad + 1)
        return y

    x = treadle.ones(2, dtype=F64, requires_grad=True)
    with pytest.raises(GradcheckError):
        gradcheck(changed, (x,))
    assert not gradcheck(changed, (x,), raise_exception=False)
