"""Attributes of custom functions and of what their forward and backward share."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any

import pytest

import treadle
from treadle.autograd import Function, NestedIOFunction
from treadle.autograd.function import FunctionCtx


def fails(kind: type, message: str, function: Any, *args: Any) -> None:
    with pytest.raises(kind) as error:
        function(*args)
    assert str(error.value) == message


def x() -> Any:
    return treadle.tensor([1.0, 2.0], requires_grad=True)


def test_what_forward_says_is_known_in_it() -> None:
    seen: dict = {}

    class Twice(Function):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            seen["before"] = (ctx.to_save, ctx.dirty_tensors, ctx.non_differentiable)
            ctx.save_for_backward(a)
            count = treadle.tensor(3)
            ctx.mark_non_differentiable(count)
            ctx.mark_dirty(b)
            seen["after"] = (ctx.to_save, ctx.dirty_tensors[0] is b)
            seen["count"] = ctx.non_differentiable[0] is count
            seen["rest"] = (ctx.requires_grad, ctx.name(), ctx.metadata, ctx.saved_for_forward)
            ctx.metadata["key"] = 1
            ctx.materialize_grads = False
            seen["hook"] = ctx
            return a * 2, b.add_(1), count

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            seen["grads"] = grads
            seen["saved"] = ctx.to_save[0].tolist()
            seen["buffers"] = ctx.input_grad_buffers
            seen["metadata"] = ctx.metadata
            return grads[0] * 2, None

    doubled, _, _ = Twice.apply(x(), treadle.zeros(2))
    assert seen["before"] == (None, None, None) and seen["after"] == (None, True)
    assert seen["count"] and seen["rest"] == (True, "TwiceBackward", {"key": 1}, None)
    assert isinstance(seen["hook"], FunctionCtx) and type(seen["hook"]).__name__ == "TwiceBackward"
    doubled.sum().backward()
    assert seen["grads"][1] is None and seen["saved"] == [1.0, 2.0]
    assert seen["buffers"] == (None, None) and seen["metadata"] == {"key": 1}
    for name in ("next_functions", "register_hook", "register_prehook"):
        with pytest.raises(RuntimeError) as error:
            getattr(seen["hook"], name)(print)
        assert str(error.value) == (
            f"ctx.{name}: expected the node of the call, result.grad_fn, got the ctx of its "
            "forward, which is another object"
        )
    assert doubled.grad_fn.next_functions[1] == (None, 0) and doubled.grad_fn.requires_grad


def test_saved_tensors_that_are_asked_for_once() -> None:
    class Square(Function):
        clear_saved_tensors_on_access = True

        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            ctx.save_for_backward(a)
            return a * a

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (a,) = ctx.saved_tensors
            return 2 * a * grad

    a = x()
    result = Square.apply(a).sum()
    result.backward(retain_graph=True)
    assert a.grad.tolist() == [2.0, 4.0]
    fails(
        RuntimeError,
        "Square: expected one access to saved_tensors, as clear_saved_tensors_on_access says, got "
        "a second",
        result.backward,
    )
    assert Function.clear_saved_tensors_on_access is False and Function.boxed_grads_call is False


def test_gradients_in_one_list() -> None:
    class Both(Function):
        boxed_grads_call = True

        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            return a * 2, a * 3

        @staticmethod
        def backward(ctx: Any, grads: Any) -> Any:
            assert isinstance(grads, list) and len(grads) == 2
            second = grads.pop()
            return grads.pop() * 2 + second * 3

    class Derived(Both): ...

    for function in (Both, Derived):
        a = x()
        first, second = function.apply(a)
        (first + second).sum().backward()
        assert a.grad.tolist() == [5.0, 5.0]


def test_gradients_in_another_dtype() -> None:
    seen = []

    class Wide(Function):
        @staticmethod
        def forward(ctx: Any, a: Any, dtypes: Any) -> Any:
            ctx.set_output_grad_dtype(*dtypes)
            assert ctx.output_grad_dtypes == dtypes
            return a * 2, a * 3

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            seen.append([grad.dtype for grad in grads])
            return (2 * grads[0] + 3 * grads[1]).float(), None

    for dtypes in [(treadle.float64, None), (None, treadle.float16), (None, None)]:
        a = x()
        sum(r.sum() for r in Wide.apply(a, dtypes)).backward()  # type: ignore[union-attr]
        assert a.grad.tolist() == [5.0, 5.0]
        assert seen.pop() == [dtype or treadle.float32 for dtype in dtypes]
    result, _ = Wide.apply(x(), (None,))
    fails(RuntimeError, "set_output_grad_dtype: expected 2 dtypes, one for each output, got 1",
          result.sum().backward)  # fmt: skip
    fails(TypeError, "set_output_grad_dtype: expected dtypes or None, got int",
          Wide.apply, x(), (1,))  # fmt: skip

    class Twice(Function):
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            ctx.set_output_grad_dtype(None)
            ctx.set_output_grad_dtype(None)
            return a

    fails(RuntimeError, "set_output_grad_dtype: expected one call, got a second", Twice.apply, x())


def test_deprecated_names() -> None:
    class Old(Function):
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            with pytest.warns(FutureWarning, match="^mark_shared_storage is deprecated: which "):
                ctx.mark_shared_storage((a, a))
            ctx.save_for_backward(a)
            return a * 1

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            with pytest.warns(DeprecationWarning, match=r"^ctx\.saved_variables is deprec"):
                assert ctx.saved_variables[0].tolist() == [1.0, 2.0]
            assert ctx.maybe_clear_saved_tensors() is None
            return grad

    a = x()
    Old.apply(a).sum().backward()
    assert a.grad.tolist() == [1.0, 1.0]
    with pytest.warns(DeprecationWarning):
        nested = NestedIOFunction()
    fails(
        RuntimeError,
        "NestedIOFunction: expected a function with static forward and backward, called by "
        "apply(...), got one that is an object",
        nested,
    )
    with pytest.raises(NotImplementedError, match="must define forward_extended$"):
        nested.forward_extended()
    with pytest.raises(NotImplementedError, match="must define backward_extended$"):
        nested.backward_extended()
