"""The autograd engine from Python: accumulation, graphs kept and freed, hooks, views and in-place
writes, modes.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import treadle
from treadle.autograd import grad, gradcheck, gradgradcheck


def leaf(*values: float) -> treadle.Tensor:
    return treadle.tensor(values, dtype=treadle.float64, requires_grad=True)


def memory() -> int:
    gc.collect()
    return treadle._C._memory_stats()["current_bytes"]


# ---- backward and grad ----


def test_backward_accumulates_into_leaves() -> None:
    x = leaf(1, 2)
    (x * x).sum().backward()
    assert x.grad.tolist() == [2, 4]
    (3 * x).sum().backward()
    assert x.grad.tolist() == [5, 7]
    x.grad = None
    (x * 2).backward(treadle.tensor([1.0, 10.0], dtype=treadle.float64))
    assert x.grad.tolist() == [2, 20]


def test_a_value_used_twice_gets_both_gradients() -> None:
    x = leaf(2)
    y = x * 3
    (y * y + y + x).sum().backward()
    assert x.grad.tolist() == [40]


def test_leaves_and_their_properties() -> None:
    x = leaf(1)
    y = x * x
    assert x.is_leaf and x.requires_grad and x.grad_fn is None and x.grad is None
    assert not y.is_leaf and y.requires_grad and y.grad_fn.name() == "MulBackward0"
    assert y.grad_fn.next_functions[0][0].variable is x
    assert not x.detach().requires_grad and x.detach().is_leaf
    assert treadle.ones(2).is_leaf


def test_retain_grad() -> None:
    x = leaf(3)
    y = x * 2
    y.retain_grad()
    (y * y).sum().backward()
    assert y.grad.tolist() == [12] and y.retains_grad and x.grad.tolist() == [24]


def test_a_graph_is_freed_unless_retained() -> None:
    x = leaf(1, 2)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [4, 8]
    with pytest.raises(RuntimeError, match="MulBackward0.*second time.*retain_graph=True"):
        y.backward()
    assert x.grad.tolist() == [4, 8]


def test_grad_leaves_the_leaves_alone() -> None:
    x, w = leaf(1, 2), leaf(3, 4)
    gx, gw = grad((x * w).sum(), (x, w))
    assert gx.tolist() == [3, 4] and gw.tolist() == [1, 2]
    assert x.grad is None and w.grad is None
    y = x * 2
    (gy,) = grad((y * y).sum(), y)
    assert gy.tolist() == [4, 8]


def test_grad_of_something_unused() -> None:
    x, w = leaf(1), leaf(1)
    with pytest.raises(RuntimeError, match="allow_unused"):
        grad((x * 2).sum(), (x, w))
    assert grad((x * 2).sum(), (x, w), allow_unused=True)[1] is None
    assert grad((x * 2).sum(), (x, w), materialize_grads=True)[1].tolist() == [0]


def test_grad_with_inputs() -> None:
    x, w = leaf(1, 2), leaf(3, 4)
    (x * w).sum().backward(inputs=[x])
    assert x.grad.tolist() == [3, 4] and w.grad is None


def test_create_graph() -> None:
    x = leaf(2)
    y = x**3
    (g,) = grad(y, x, treadle.ones_like(y), create_graph=True)
    assert g.requires_grad and g.tolist() == [12]
    (h,) = grad(g.sum(), x, create_graph=True)
    assert h.tolist() == [12]
    (k,) = grad(h.sum(), x)
    assert k.tolist() == [6] and not k.requires_grad


def test_several_roots() -> None:
    x = leaf(1, 2)
    treadle.autograd.backward(
        [(x * 2).sum(), x * x], [None, treadle.ones(2, dtype=treadle.float64)]
    )
    assert x.grad.tolist() == [4, 6]


def test_gradients_have_the_dtype_and_shape_of_their_tensor() -> None:
    x = treadle.ones(3, 1, requires_grad=True)
    w = treadle.ones(4, dtype=treadle.float64, requires_grad=True)
    (x * w).sum().backward()
    assert (
        x.grad.dtype == treadle.float32
        and x.grad.shape == (3, 1)
        and w.grad.dtype == treadle.float64
    )


def test_assigning_grad() -> None:
    x = leaf(1, 2)
    x.grad = treadle.ones(2, dtype=treadle.float64)
    (x * 2).sum().backward()
    assert x.grad.tolist() == [3, 3]
    for wrong in (treadle.ones(3, dtype=treadle.float64), treadle.ones(2), "a", 1):
        with pytest.raises((RuntimeError, TypeError, ValueError)):
            x.grad = wrong
    assert x.grad.tolist() == [3, 3]


# ---- What is refused ----


def test_backward_of_what_has_no_graph() -> None:
    with pytest.raises(RuntimeError, match="does not require grad"):
        treadle.ones(1).backward()
    with pytest.raises(RuntimeError, match="scalar"):
        (leaf(1, 2) * 2).backward()


@pytest.mark.parametrize("gradient", [treadle.ones(3), treadle.ones(2, 2), 1, "a", [1, 2]])
def test_wrong_gradients_are_refused(gradient: Any) -> None:
    x = leaf(1, 2)
    with pytest.raises((RuntimeError, TypeError, ValueError)) as info:
        (x * 2).backward(gradient)
    assert len(str(info.value).splitlines()) <= 6
    assert x.grad is None


def test_a_gradient_of_another_shape_is_not_summed() -> None:
    """That is done for operators that broadcast; of others such a gradient is a mistake."""
    w, x = treadle.ones(1, 1, requires_grad=True), treadle.ones(1, 3)
    y = (w @ x).sum()
    x.data = treadle.ones(5, 3)  # which no version counts
    with pytest.raises(
        RuntimeError,
        match=r"^MmBackward0: gradient 0: expected a gradient of shape \(1, 1\), got \(1, 5\)$",
    ):
        y.backward()
    assert w.grad is None


def test_wrong_numbers_of_gradients() -> None:
    x = leaf(1)
    with pytest.raises(RuntimeError, match="expected 1 gradients"):
        treadle.autograd.backward([x * 2], [None, None])
    with pytest.raises((RuntimeError, ValueError)):
        grad((x * 2).sum(), ())
    with pytest.raises(RuntimeError):
        treadle.autograd.backward((x * 2).sum(), inputs=[])


def test_integers_take_no_gradient() -> None:
    with pytest.raises(RuntimeError, match="floating point"):
        treadle.ones(2, dtype=treadle.int64).requires_grad_()
    with pytest.raises(RuntimeError, match="floating point"):
        treadle.tensor([1, 2], requires_grad=True)


# ---- Versions: values changed after being saved ----


def test_a_saved_value_that_changed_is_told() -> None:
    x = leaf(1, 2)
    y = x.exp()
    z = y * 3 + y * y
    y.add_(1)
    with pytest.raises(RuntimeError) as info:
        z.sum().backward()
    message = str(info.value)
    assert (
        message.startswith("MulBackward0: expected ")
        and "version 0, got version 1" in message
        and "changed in place" in message
    )
    assert x.grad is None


@pytest.mark.parametrize(
    "change",
    [
        lambda w: w.add_(1),
        lambda w: w.zero_(),
        lambda w: w[0].fill_(3),
        lambda w: w.t().mul_(2),
        lambda w: w.copy_(treadle.ones(2, 2)),
        lambda w: treadle.add(w, 1, out=w),
        lambda w: w.__setitem__(0, 5.0),
        lambda w: w.detach().zero_(),
        lambda w: w.normal_(),
        lambda w: w.index_fill_(0, treadle.tensor([0]), 1.0),
    ],
)
def test_every_way_of_writing_is_noticed(change: Any) -> None:
    x = treadle.ones(2, 2, requires_grad=True)
    w = treadle.ones(2, 2)
    y = (x * w).sum()
    change(w)
    with pytest.raises(RuntimeError, match="changed in place"):
        y.backward()


def test_values_that_are_not_needed_may_change() -> None:
    x = leaf(1, 2)
    y = x + 1
    z = y + 2
    y.mul_(5)
    z.sum().backward()
    assert x.grad.tolist() == [1, 1]


# ---- Writing in place ----


def test_in_place_on_a_leaf_that_requires_grad_is_refused() -> None:
    x = leaf(1, 2)
    for write in (
        lambda: x.add_(1),
        lambda: x[0].zero_(),
        lambda: x.__setitem__(0, 1.0),
        lambda: treadle.add(x.detach(), 1, out=x),
    ):
        with pytest.raises(RuntimeError) as info:
            write()
        assert "leaf" in str(info.value) or "out" in str(info.value)
    assert x.tolist() == [1, 2] and x._version == 0
    with treadle.no_grad():
        x.add_(1)
    assert x.tolist() == [2, 3] and x.is_leaf and x.requires_grad


def test_in_place_is_recorded() -> None:
    x = leaf(1, 2)
    y = x * 2
    y.mul_(3).add_(1)
    y.sin_()
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 6 * np.cos([7, 13]))


def test_out_of_recorded_tensors_is_refused() -> None:
    x = leaf(1, 2)
    with pytest.raises(RuntimeError, match="out="):
        treadle.mul(x, 2, out=treadle.empty(2, dtype=treadle.float64))
    with treadle.no_grad():
        assert treadle.mul(x, 2, out=treadle.empty(2, dtype=treadle.float64)).tolist() == [2, 4]


WRITES = {
    "select": lambda y, v: y[1].mul_(v),
    "slice": lambda y, v: y[:, 1:].mul_(v),
    "transposed": lambda y, v: y.t().mul_(v),
    "view of a view": lambda y, v: y.t()[0].unsqueeze(0).mul_(v),
    "diagonal": lambda y, v: y.diagonal().mul_(v),
    "reshaped": lambda y, v: y.view(6)[2:4].mul_(v),
    "copied": lambda y, v: y[0].copy_(v * treadle.ones(3, dtype=treadle.float64)),
    "item": lambda y, v: y.__setitem__((0, 1), v * 2),
    "items": lambda y, v: y.__setitem__(
        treadle.tensor([1]), v * treadle.ones(1, 3, dtype=treadle.float64)
    ),
    "masked": lambda y, v: y.masked_fill_(y.detach() > 0, 2.0) * v,
    "filled": lambda y, v: y[0].fill_(v),
    "split": lambda y, v: y.narrow(1, 0, 2).select(0, 1).mul_(v),
    "as_strided": lambda y, v: y.as_strided((2,), (3,), 1).mul_(v),
    "expanded": lambda y, v: y[:, :1].add_(v),
}


@pytest.mark.parametrize("name", WRITES)
def test_writes_through_views_rebase_history(name: str) -> None:
    write = WRITES[name]

    def f(x: Any, v: Any) -> Any:
        y = x * 1.5
        write(y, v)
        return y * y

    x = treadle.randn(2, 3, dtype=treadle.float64, requires_grad=True)
    v = treadle.tensor(1.3, dtype=treadle.float64, requires_grad=True)
    assert gradcheck(f, (x, v))
    assert gradgradcheck(f, (x, v))


def test_a_view_sees_writes_to_its_base() -> None:
    x = leaf(1, 2, 3)
    y = x * 2
    view = y[1:]
    y.mul_(3)
    assert view.tolist() == [12, 18]
    view.sum().backward()
    assert x.grad.tolist() == [0, 6, 6]


def test_two_views_of_one_base() -> None:
    x = leaf(1, 2, 3)
    y = x * 1
    a, b = y[:2], y[1:]
    a.mul_(10)
    b.mul_(b)
    y.sum().backward()
    assert x.grad.tolist() == [10, 400, 6]


def test_writing_a_recorded_value_into_a_plain_tensor() -> None:
    x = leaf(1, 2)
    buffer = treadle.zeros(4, dtype=treadle.float64)
    buffer[1:3] = x * 3
    assert buffer.requires_grad
    (buffer * buffer).sum().backward()
    assert x.grad.tolist() == [18, 36]


def test_in_place_on_one_of_several_views_is_refused() -> None:
    parts = (leaf(1, 2, 3) * 1).unbind(0)
    with pytest.raises(RuntimeError):
        parts[0].mul_(2)


def test_detach_in_place() -> None:
    x = leaf(1)
    y = x * 2
    y.detach_()
    assert not y.requires_grad and y.grad_fn is None
    assert y.is_leaf


# ---- Hooks ----


def test_tensor_hooks() -> None:
    x = leaf(1, 2)
    seen = []
    first = x.register_hook(lambda g: seen.append(g.tolist()))
    x.register_hook(lambda g: g * 10)
    (x * 2).sum().backward()
    assert seen == [[2, 2]] and x.grad.tolist() == [20, 20]
    first.remove()
    x.grad = None
    (x * 2).sum().backward()
    assert len(seen) == 1 and x.grad.tolist() == [20, 20]


def test_hooks_of_inner_tensors() -> None:
    x = leaf(1, 2)
    y = x * 2
    y.register_hook(lambda g: g + 1)
    (y * 3).sum().backward()
    assert x.grad.tolist() == [8, 8]


def test_hooks_that_fail_or_return_nonsense() -> None:
    def broken(g: Any) -> Any:
        raise KeyError("mine")

    x = leaf(1)
    x.register_hook(broken)
    with pytest.raises(KeyError, match="mine"):
        (x * 2).sum().backward()
    assert x.grad is None
    for nonsense in (lambda g: "a", lambda g: treadle.ones(7)):
        x = leaf(1, 2)
        x.register_hook(nonsense)
        with pytest.raises((RuntimeError, TypeError, ValueError)):
            (x * 2).sum().backward()
    with pytest.raises((RuntimeError, TypeError)):
        treadle.ones(2).register_hook(lambda g: g)


def test_node_hooks() -> None:
    x = leaf(1, 2)
    y = x * 3
    seen: list[Any] = []
    y.grad_fn.register_prehook(lambda grads: seen.append(("before", grads[0].tolist())))
    handle = y.grad_fn.register_hook(
        lambda inputs, outputs: seen.append(("after", inputs[0].tolist(), outputs[0].tolist()))
    )
    y.sum().backward(retain_graph=True)
    assert seen == [("before", [1, 1]), ("after", [3, 3], [1, 1])]
    handle.remove()
    y.sum().backward()
    assert len(seen) == 3


def test_post_accumulate_hook() -> None:
    x = leaf(1, 2)
    seen = []

    def step(t: Any) -> None:
        seen.append(t.grad.tolist())
        t.grad = None

    x.register_post_accumulate_grad_hook(step)
    (x * 2).sum().backward()
    assert seen == [[2, 2]] and x.grad is None


# ---- Modes ----


def test_no_grad_and_enable_grad() -> None:
    x = leaf(1)
    with treadle.no_grad():
        assert not (x * 2).requires_grad and not treadle.is_grad_enabled()
        with treadle.enable_grad():
            assert (x * 2).requires_grad
        assert not treadle.is_grad_enabled()
    assert treadle.is_grad_enabled() and (x * 2).requires_grad
    with pytest.raises(ZeroDivisionError), treadle.no_grad():
        1 / 0
    assert treadle.is_grad_enabled()


def test_modes_as_decorators() -> None:
    x = leaf(1)

    @treadle.no_grad()
    def plain() -> Any:
        return x * 2

    @treadle.no_grad()
    def steps() -> Any:
        for _ in range(2):
            yield (x * 2).requires_grad, treadle.is_grad_enabled()

    assert not plain().requires_grad
    for inside, _ in steps():
        assert not inside and treadle.is_grad_enabled()


def test_a_mode_over_a_class_is_about_its_construction() -> None:
    class Sees:
        def __init__(self) -> None:
            self.recorded = treadle.is_grad_enabled()

        def now(self) -> bool:
            return treadle.is_grad_enabled()

    with pytest.warns(FutureWarning) as given:
        Decorated = treadle.no_grad()(Sees)
    assert [str(one.message) for one in given] == [
        "no_grad: decorating a class is deprecated, and is about its __init__ alone; decorate its "
        "methods"
    ]
    made = Decorated()
    assert not made.recorded and made.now()


def test_grad_needs_inputs() -> None:
    with pytest.raises(RuntimeError) as error:
        treadle.autograd.grad(leaf(1.0) * 2, [])
    assert str(error.value) == "grad: expected at least one input, got none"


def test_zeros_for_what_is_not_used_can_be_differentiated_again() -> None:
    x, y = leaf(2.0), leaf(3.0)
    (first,) = treadle.autograd.grad(x * y, x, create_graph=True)
    (second,) = treadle.autograd.grad(first, x, create_graph=True, materialize_grads=True)
    assert second.item() == 0 and second.requires_grad
    (third,) = treadle.autograd.grad(second, x, materialize_grads=True)
    assert third.item() == 0 and not third.requires_grad


def test_a_hook_behind_accumulation_returns_nothing() -> None:
    x = leaf(1.0)
    x.register_post_accumulate_grad_hook(lambda t: t.grad)
    with pytest.raises(RuntimeError) as error:
        (x * 2).backward()
    assert str(error.value) == (
        "register_post_accumulate_grad_hook: expected a hook that returns None, got Tensor"
    )


def test_set_grad_enabled() -> None:
    x = leaf(1)
    with treadle.set_grad_enabled(False):
        assert not (x * 2).requires_grad
    treadle.set_grad_enabled(False)
    try:
        assert not (x * 2).requires_grad
    finally:
        treadle.set_grad_enabled(True)
    assert (x * 2).requires_grad


def test_inference_mode() -> None:
    x = leaf(1, 2)
    with treadle.inference_mode():
        y = x * 2
        assert y.is_inference() and not y.requires_grad
        y.add_(1)
    assert y.tolist() == [3, 5]
    with pytest.raises(RuntimeError, match="inference"):
        x * y
    with pytest.raises(RuntimeError, match="inference"):
        y.requires_grad_()
    assert (x * y.clone()).requires_grad
    with treadle.inference_mode(False):
        assert (x * 2).requires_grad


# ---- Custom functions ----


class Square(treadle.autograd.Function):
    """x * x, with the gradient given by hand."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * x * g


def test_custom_function() -> None:
    x = leaf(1, 2, 3)
    y = Square.apply(x)
    assert "SquareBackward" in y.grad_fn.name()
    y.sum().backward()
    assert x.grad.tolist() == [2, 4, 6]
    assert gradcheck(Square.apply, (x,)) and gradgradcheck(Square.apply, (x,))
    assert not Square.apply(x.detach()).requires_grad


def test_custom_function_with_several_arguments_and_results() -> None:
    class Both(treadle.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, n: int, y: Any) -> Any:
            ctx.n = n
            assert ctx.needs_input_grad == (True, False, False)
            index = treadle.tensor([1, 2])
            ctx.mark_non_differentiable(index)
            return x * n, x + y, index

        @staticmethod
        def backward(ctx: Any, a: Any, b: Any, _: Any) -> Any:
            return a * ctx.n + b, None, None

    x = leaf(1, 2)
    a, b, index = Both.apply(x, 3, treadle.ones(2, dtype=treadle.float64))
    assert not index.requires_grad
    (a * 2 + b).sum().backward()
    assert x.grad.tolist() == [7, 7]


def test_custom_function_with_setup_context() -> None:
    class Scale(treadle.autograd.Function):
        @staticmethod
        def forward(x: Any, n: float) -> Any:
            return x * n

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.n = inputs[1]

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * ctx.n, None

    x = leaf(1)
    Scale.apply(x, 4.0).backward()
    assert x.grad.tolist() == [4]


def test_custom_function_that_is_wrong() -> None:
    class Few(treadle.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            return x + y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    class Misshapen(Square):
        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return treadle.ones(9, dtype=treadle.float64)

    class Raises(Square):
        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            raise LookupError("mine")

    class Text(Square):
        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return "a"

    x = leaf(1, 2)
    with pytest.raises(RuntimeError, match="expected to return 2 gradients"):
        Few.apply(x, leaf(1, 2)).sum().backward()
    with pytest.raises(RuntimeError, match="shape"):
        Misshapen.apply(x).sum().backward()
    with pytest.raises(LookupError, match="mine"):
        Raises.apply(x).sum().backward()
    with pytest.raises((TypeError, RuntimeError)):
        Text.apply(x).sum().backward()
    with pytest.warns(DeprecationWarning, match="apply"):
        Square(x)
    assert x.grad is None


def test_custom_function_that_writes_in_place() -> None:
    class Double(treadle.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    x = leaf(1, 2)
    y = x * 1
    z = Double.apply(y)
    assert z is y
    y.sum().backward()
    assert x.grad.tolist() == [2, 2]


# ---- Large graphs and memory ----


@pytest.mark.slow
def test_a_chain_of_a_million_nodes() -> None:
    treadle.ones(1, requires_grad=True).mul(1).backward()  # what the first backward sets up
    before = memory()
    x = treadle.ones(1, requires_grad=True)
    y = x
    for _ in range(1_000_000):
        y = y + 1
    y.backward()
    assert x.grad.item() == 1
    del x, y
    assert memory() == before


@pytest.mark.slow
def test_a_chain_of_a_million_nodes_is_destroyed_without_backward() -> None:
    before = memory()
    y = treadle.ones(1, requires_grad=True)
    for _ in range(1_000_000):
        y = y * y
    del y
    assert memory() == before


@pytest.mark.slow
def test_a_long_chain_of_custom_functions() -> None:
    y = x = leaf(1)
    for _ in range(20_000):
        y = Square.apply(y)
    y.sum().backward()
    assert x.grad is not None
    del y


@pytest.mark.slow
def test_a_long_chain_of_views_and_writes() -> None:
    x = leaf(1, 2)
    y = x * 1
    for _ in range(20_000):
        y[0].add_(1)
        y = y.view(2)
    y.sum().backward()
    assert x.grad.tolist() == [1, 1]
    del y


def test_a_wide_graph() -> None:
    x = leaf(1)
    y = sum((x * n for n in range(2000)), x * 0)
    y.sum().backward()
    assert x.grad.tolist() == [sum(range(2000))]


def test_memory_is_given_back() -> None:
    def step() -> None:
        x = treadle.randn(100, 100, requires_grad=True)
        y = (x @ x).relu().sum()
        y.backward()
        (g,) = grad((x * x).sum(), x, create_graph=True)
        g.sum().backward()
        Square.apply(x).sum().backward()

    step()
    before = memory()
    for _ in range(20):
        step()
    assert memory() == before


def test_cycles_through_attributes_are_collected() -> None:
    class Holder:
        pass

    holder = Holder()
    holder.tensor = leaf(1)
    holder.tensor.holder = holder
    alive = weakref.ref(holder)
    del holder
    gc.collect()
    assert alive() is None


def test_backward_in_backward() -> None:
    class Inner(treadle.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            with treadle.enable_grad():
                x = ctx.saved_tensors[0].detach().requires_grad_()
                return g * grad((x * x).sum(), x)[0]

    x = leaf(3)
    Inner.apply(x).sum().backward()
    assert x.grad.tolist() == [6]


def test_complex_gradients() -> None:
    x = treadle.tensor([1 + 2j, -0.5 + 1j], requires_grad=True)
    (x * x.conj()).real.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * x.detach().numpy(), rtol=1e-6)
    with pytest.raises(RuntimeError, match="real"):
        (x * x).sum().backward()


@pytest.mark.parametrize(
    ("values", "median", "nanmedian"),
    [
        ([1, 2, 2, 2, 3, 0], [0, 1, 1, 1, 0, 0], [0, 1, 1, 1, 0, 0]),
        ([2, 1], [0, 3], [0, 3]),
        ([1, np.nan, np.nan, 1], [0, 1.5, 1.5, 0], [1.5, 0, 0, 1.5]),
        ([np.nan, np.nan], [1.5, 1.5], [1.5, 1.5]),
        ([], [], []),
    ],
)
def test_elements_that_are_the_median_share_its_gradient(
    values: list[float], median: list[float], nanmedian: list[float]
) -> None:
    """NaNs are the median together; along a dimension the element at `indices` has it all."""
    for function, want in ((treadle.median, median), (treadle.nanmedian, nanmedian)):
        x = leaf(*values)
        function(x).backward(treadle.tensor(3.0, dtype=treadle.float64))
        assert x.grad.tolist() == want
        if values:
            x = leaf(*values)
            value, index = function(x, 0)
            value.backward()
            assert x.grad.tolist() == [float(i == index) for i in range(len(values))]


def test_the_older_name_of_a_gradient_is_the_gradient() -> None:
    x = treadle.ones(2, requires_grad=True)
    x._grad = treadle.full((2,), 3.0)
    assert x.grad is x._grad and x.grad.tolist() == [3, 3]
