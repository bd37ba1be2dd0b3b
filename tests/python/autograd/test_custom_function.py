"""Functions whose forward and backward are written in Python, and the modes of autograd."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any

import pytest

import treadle
from treadle.autograd import Function
from treadle.autograd.function import once_differentiable


class Multiply(Function):
    @staticmethod
    def forward(ctx: Any, a: treadle.Tensor, b: treadle.Tensor) -> treadle.Tensor:
        ctx.save_for_backward(a, b)
        return a * b

    @staticmethod
    def backward(ctx: Any, grad: treadle.Tensor) -> tuple:
        a, b = ctx.saved_tensors
        return grad * b, grad * a


class Scale(Function):
    """forward and setup_context apart, an argument that is no tensor."""

    @staticmethod
    def forward(x: treadle.Tensor, factor: float) -> treadle.Tensor:
        return x * factor

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: treadle.Tensor) -> None:
        ctx.factor = inputs[1]

    @staticmethod
    def backward(ctx: Any, grad: treadle.Tensor) -> tuple:
        return grad * ctx.factor, None


def leaf(*values: float) -> treadle.Tensor:
    return treadle.tensor(values, dtype=treadle.float64, requires_grad=True)


def test_gradients() -> None:
    a, b = leaf(2.0, 3.0), leaf(5.0, 7.0)
    y = Multiply.apply(a, b)
    assert y.grad_fn.name() == "MultiplyBackward"
    y.sum().backward()
    assert a.grad.tolist() == [5.0, 7.0] and b.grad.tolist() == [2.0, 3.0]
    x = leaf(1.0)
    Scale.apply(x, 4.0).backward()
    assert x.grad.tolist() == [4.0]


def test_second_derivatives() -> None:
    a, b = leaf(2.0), leaf(5.0)
    (first,) = treadle.autograd.grad(Multiply.apply(a, b), a, create_graph=True)
    (second,) = treadle.autograd.grad(first, b)
    assert first.tolist() == [5.0] and second.tolist() == [1.0]


def test_several_outputs_and_gradients_that_never_come() -> None:
    seen = []

    class Split(Function):
        @staticmethod
        def forward(ctx: Any, x: treadle.Tensor) -> tuple:
            return x * 2, x * 3, "extra"

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> treadle.Tensor:
            seen.append([None if g is None else g.tolist() for g in grads])
            return grads[0] * 2 + grads[1] * 3

    x = leaf(1.0)
    double, _, extra = Split.apply(x)
    assert extra == "extra"
    double.backward()
    assert x.grad.tolist() == [2.0] and seen[0][:2] == [[1.0], [0.0]]


def test_without_materialized_gradients_none_comes() -> None:
    class Split(Function):
        @staticmethod
        def forward(ctx: Any, x: treadle.Tensor) -> tuple:
            ctx.set_materialize_grads(False)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx: Any, a: Any, b: Any) -> treadle.Tensor:
            assert b is None
            return a * 2

    x = leaf(1.0)
    Split.apply(x)[0].backward()
    assert x.grad.tolist() == [2.0]


def test_needs_input_grad() -> None:
    seen = []

    class Spy(Multiply):
        @staticmethod
        def backward(ctx: Any, grad: treadle.Tensor) -> tuple:
            seen.append(ctx.needs_input_grad)
            return Multiply.backward(ctx, grad)

    Spy.apply(leaf(1.0), treadle.tensor([2.0], dtype=treadle.float64)).backward()
    assert seen == [(True, False)]


def test_in_place() -> None:
    class Double(Function):
        @staticmethod
        def forward(ctx: Any, x: treadle.Tensor) -> treadle.Tensor:
            x.mul_(2)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx: Any, grad: treadle.Tensor) -> treadle.Tensor:
            return grad * 2

    x = leaf(1.0)
    y = x * 1
    assert Double.apply(y) is y
    y.backward()
    assert x.grad.tolist() == [2.0]
    with pytest.raises(RuntimeError):
        Double.apply(x)


def test_non_differentiable_outputs() -> None:
    class Order(Function):
        @staticmethod
        def forward(ctx: Any, x: treadle.Tensor) -> tuple:
            values, indices = x.sort()
            ctx.mark_non_differentiable(indices)
            ctx.save_for_backward(indices)
            return values, indices

        @staticmethod
        def backward(ctx: Any, grad: treadle.Tensor, _: Any) -> treadle.Tensor:
            (indices,) = ctx.saved_tensors
            return treadle.zeros_like(grad).scatter_(0, indices, grad)

    x = leaf(3.0, 1.0)
    values, indices = Order.apply(x)
    assert not indices.requires_grad
    (values * treadle.tensor([1.0, 10.0], dtype=treadle.float64)).sum().backward()
    assert x.grad.tolist() == [10.0, 1.0]


def test_an_exception_in_backward_keeps_its_type() -> None:
    class Fails(Multiply):
        @staticmethod
        def backward(ctx: Any, grad: treadle.Tensor) -> tuple:
            raise KeyError("here")

    with pytest.raises(KeyError, match="here"):
        Fails.apply(leaf(1.0), leaf(2.0)).backward()


@pytest.mark.parametrize("returned", [(None,), ("text", None), 3])
def test_wrong_results_of_backward(returned: Any) -> None:
    class Wrong(Multiply):
        @staticmethod
        def backward(ctx: Any, grad: treadle.Tensor) -> Any:
            return returned

    with pytest.raises((RuntimeError, TypeError), match="WrongBackward"):
        Wrong.apply(leaf(1.0), leaf(2.0)).backward()


def test_a_second_backward_is_refused() -> None:
    y = Multiply.apply(leaf(1.0), leaf(2.0))
    y.backward()
    with pytest.raises(RuntimeError):
        y.backward()


def test_a_saved_value_that_changed_is_refused() -> None:
    a, b = leaf(1.0), leaf(2.0)
    c = b * 1
    y = Multiply.apply(a, c)
    c.mul_(3)
    with pytest.raises(RuntimeError, match="MultiplyBackward"):
        y.backward()


def test_once_differentiable() -> None:
    class Once(Multiply):
        @staticmethod
        @once_differentiable
        def backward(ctx: Any, grad: treadle.Tensor) -> tuple:
            return Multiply.backward(ctx, grad)

    a, b = leaf(1.0), leaf(2.0)
    weights = leaf(3.0)
    (first,) = treadle.autograd.grad(Once.apply(a, b) * weights, a, create_graph=True)
    assert first.tolist() == [6.0]
    with pytest.raises(RuntimeError):
        first.backward()


def test_modes() -> None:
    x = leaf(1.0)

    @treadle.no_grad()
    def plain(t: treadle.Tensor) -> bool:
        return (t * 2).requires_grad

    @treadle.no_grad
    def bare(t: treadle.Tensor) -> bool:
        return (t * 2).requires_grad

    @treadle.no_grad()
    def steps(t: treadle.Tensor) -> Any:
        for _ in range(2):
            yield (t * 2).requires_grad

    assert not plain(x) and not bare(x)
    for recorded in steps(x):
        assert not recorded and treadle.is_grad_enabled()
    with treadle.no_grad():
        with treadle.enable_grad():
            assert (x * 2).requires_grad
        assert not (x * 2).requires_grad
    previous = treadle.set_grad_enabled(False)
    assert not treadle.is_grad_enabled()
    treadle.set_grad_enabled(True)
    with treadle.set_grad_enabled(False):
        assert not treadle.is_grad_enabled()
    assert treadle.is_grad_enabled() and previous is not None
    with treadle.inference_mode():
        assert (x * 2).is_inference()
    assert not (x * 2).is_inference()


def test_hooks() -> None:
    x = leaf(1.0, 2.0)
    seen = []
    handle = x.register_hook(lambda g: seen.append(g.tolist()))
    second = x.register_hook(lambda g: g * 10)
    (x * 3).sum().backward()
    assert seen == [[3.0, 3.0]] and x.grad.tolist() == [30.0, 30.0]
    handle.remove()
    handle.remove()
    second.remove()
    (x * 3).sum().backward()
    assert len(seen) == 1 and x.grad.tolist() == [33.0, 33.0]
    x.register_hook(lambda g: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        (x * 3).sum().backward()


def test_hooks_of_nodes_and_the_graph() -> None:
    x = leaf(2.0)
    y = x * x
    node = y.grad_fn
    assert node == y.grad_fn and hash(node) == hash(y.grad_fn)
    assert node.next_functions[0][0].variable is x
    seen = []
    node.register_hook(lambda grads_in, grads_out: seen.append((len(grads_in), len(grads_out))))
    node.register_prehook(lambda grads: (grads[0] * 2,))
    y.backward()
    assert seen == [(2, 1)] and x.grad.tolist() == [8.0]


def test_setup_context_is_given_default_arguments() -> None:
    class Power(Function):
        @staticmethod
        def forward(x: Any, exponent: int = 3) -> Any:
            return x**exponent

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple, output: Any) -> None:
            x, ctx.exponent = inputs
            ctx.save_for_backward(x)

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (x,) = ctx.saved_tensors
            return grad * ctx.exponent * x ** (ctx.exponent - 1), None

    x = treadle.tensor(2.0, requires_grad=True)
    for arguments, slope in (((x,), 12.0), ((x, 2), 4.0)):
        (grad,) = treadle.autograd.grad(Power.apply(*arguments), x)
        assert grad.item() == slope


def test_functions_that_are_objects_are_refused() -> None:
    class Old(Function):
        def forward(self, x: Any) -> Any:
            return x

    with pytest.warns(DeprecationWarning):
        old = Old()
    with pytest.raises(RuntimeError) as error:
        old(treadle.ones(1))
    assert str(error.value) == (
        "Old: expected forward as a static method, called by .apply(...); functions that are "
        "objects are not supported"
    )


def test_saved_variables_is_the_older_name() -> None:
    class Double(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            with pytest.warns(DeprecationWarning) as given:
                (saved,) = ctx.saved_variables
            assert [str(one.message) for one in given] == [
                "ctx.saved_variables is deprecated; use ctx.saved_tensors"
            ]
            return grad * 2 + 0 * saved

    x = treadle.ones(2, requires_grad=True)
    Double.apply(x).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


@pytest.mark.parametrize("materialized", [True, False])
def test_gradients_of_outputs_without_one(materialized: bool) -> None:
    class Twice(Function):
        @staticmethod
        def forward(ctx: Any, x: treadle.Tensor) -> Any:
            first, second, third = x.clone(), x.clone(), x.clone()
            ctx.mark_non_differentiable(second)
            ctx._materialize_non_diff_grads = materialized
            return first, second, third

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            assert grads[0].tolist() == [1, 1] and grads[2].tolist() == [0, 0]
            assert grads[1].tolist() == [0, 0] if materialized else grads[1] is None
            return grads[0]

    x = treadle.ones(2, requires_grad=True)
    Twice.apply(x)[0].sum().backward()
    assert x.grad.tolist() == [1, 1]


def test_jvp_is_given_what_was_saved_for_it_alone() -> None:
    seen = []

    class Clone(Function):
        @staticmethod
        def forward(ctx: Any, x: treadle.Tensor, for_forward: bool) -> treadle.Tensor:
            ctx.save_for_backward(x)
            if for_forward:
                ctx.save_for_forward(x, x * 2)
            return x.clone()

        @staticmethod
        def backward(ctx: Any, grad: treadle.Tensor) -> Any:
            assert len(ctx.saved_tensors) == 1
            return grad, None

        @staticmethod
        def jvp(ctx: Any, tangent: treadle.Tensor, _: Any) -> treadle.Tensor:
            seen.append(len(ctx.saved_tensors))
            return tangent.clone()

    x = treadle.ones(2, dtype=treadle.float64, requires_grad=True)
    for for_forward, count in ((True, 2), (False, 0)):
        seen.clear()
        assert treadle.autograd.gradcheck(Clone.apply, (x, for_forward), check_forward_ad=True)
        assert set(seen) == {count}


def test_arguments_without_gradients_come_back_as_the_objects_that_hooks_gave() -> None:
    seen = []

    class First(Function):
        @staticmethod
        def forward(ctx: Any, x: treadle.Tensor, y: treadle.Tensor) -> treadle.Tensor:
            ctx.save_for_backward(x, y)
            return x.clone()

        @staticmethod
        def backward(ctx: Any, grad: treadle.Tensor) -> Any:
            seen.extend(ctx.saved_tensors)
            return grad, None

    a, b = treadle.ones(2, requires_grad=True), treadle.ones(2)
    with treadle.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        First.apply(a, b).sum().backward()
    assert seen[1] is b and seen[0] is not a and seen[0].tolist() == [1, 1]
    seen.clear()
    treadle.utils.checkpoint.checkpoint(First.apply, a, b, use_reentrant=False).sum().backward()
    assert seen[1] is b
