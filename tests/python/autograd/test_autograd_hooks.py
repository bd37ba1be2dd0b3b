"""Hooks of the graph: in which order they run, when they go, and what a walk that stops early runs
of them."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import threading
from typing import Any, Callable, List

import pytest

import treadle
from treadle.autograd import Variable, graph


def leaf(*values: float) -> treadle.Tensor:
    return treadle.tensor(values, dtype=treadle.float32, requires_grad=True)


def accumulator(tensor: treadle.Tensor) -> Any:
    return tensor.view_as(tensor).grad_fn.next_functions[0][0]


def test_hooks_of_a_tensor_run_before_those_of_its_node() -> None:
    log: List[str] = []

    def of_tensor(grad: treadle.Tensor) -> treadle.Tensor:
        log.append("tensor")
        return grad * 3

    def of_node(grads: tuple) -> tuple:
        log.append("node")
        return tuple(g * 2 for g in grads)

    a = treadle.tensor(1.0, requires_grad=True)
    b = a.clone()
    b.grad_fn.register_prehook(of_node)
    b.register_hook(of_tensor)
    b.sum().backward(retain_graph=True)
    assert log == ["tensor", "node"] and a.grad.item() == 6

    # The `grad` of a tensor that is an input of backward is what the tensor's own hooks made of
    # it; the node runs for those who watch it, and nothing goes on from there.
    log.clear()
    a.grad = None
    b.grad_fn.register_hook(lambda inputs, outputs: log.append(f"after {inputs} {outputs}"))
    b.sum().backward(inputs=(b,), retain_graph=True)
    assert log == ["tensor", "node", "after (None,) (tensor(6.),)"]
    assert b.grad.item() == 3 and a.grad is None

    log.clear()
    assert treadle.autograd.grad(b.sum(), b)[0].item() == 3
    assert log == ["tensor"]


def test_hooks_of_a_leaf_and_of_its_accumulator() -> None:
    x = leaf(1, 2, 3)
    node = accumulator(x)
    x.register_hook(lambda grad: grad - 2)
    node.register_prehook(lambda grads: (grads[0] / 4,))

    def accumulated(tensor: treadle.Tensor) -> None:
        tensor.grad.add_(0.5)

    x.register_post_accumulate_grad_hook(accumulated)

    def after(inputs: tuple, outputs: tuple) -> None:
        assert inputs == ()
        # The first gradient of a leaf becomes its `grad` itself.
        assert outputs[0].data_ptr() == x.grad.data_ptr()
        x.grad = outputs[0] * 10

    node.register_hook(after)
    x.sum().backward()
    assert x.grad.tolist() == [2.5, 2.5, 2.5]  # ((1 - 2) / 4 + 0.5) * 10


def test_a_second_gradient_is_added_and_not_what_the_hook_is_given() -> None:
    x = leaf(1)
    seen: List[float] = []
    node = accumulator(x)
    node.register_hook(lambda inputs, outputs: seen.append(outputs[0].item()))
    for _ in range(2):
        (x * 3).sum().backward()
    assert x.grad.tolist() == [6] and seen == [3, 3]


Register = Callable[[treadle.Tensor, treadle.Tensor, Callable], Any]

PLACES = {
    "tensor": lambda a, b, f: b.register_hook(lambda grad: f()),
    "leaf": lambda a, b, f: a.register_hook(lambda grad: f()),
    "post-accumulate": lambda a, b, f: a.register_post_accumulate_grad_hook(lambda t: f()),
    "pre-hook": lambda a, b, f: b.grad_fn.register_prehook(lambda grads: f()),
    "post-hook": lambda a, b, f: b.grad_fn.register_hook(lambda inputs, outputs: f()),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_hook_removed_by_one_before_it_runs_a_last_time(place: str) -> None:
    register: Register = PLACES[place]
    a = leaf(1, 2)
    b = a * 2
    log: List[str] = []
    handles: List[Any] = []

    def first() -> None:
        log.append("first")
        handles[0].remove()
        handles[0].remove()

    register(a, b, first)
    handles.append(register(a, b, lambda: log.append("second")))
    b.sum().backward(retain_graph=True)
    assert log == ["first", "second"]
    b.sum().backward()
    assert log == ["first", "second", "first"]


def test_a_removed_hook_of_a_tensor_that_was_changed_is_silent() -> None:
    log: List[str] = []
    b = leaf(1, 2) * 2
    loss = b.sum()
    handle = b.register_hook(lambda grad: log.append("hook"))
    b.mul_(3)  # the hook is at the node that b no longer has
    handle.remove()
    loss.backward()
    assert log == []


def test_prehooks_are_given_the_gradients_of_all_outputs() -> None:
    b = treadle.rand(3, 3)
    for function, name in (
        (treadle.var_mean, "VarMeanBackward0"),
        (treadle.std_mean, "StdMeanBackward0"),
    ):
        plain, doubled = (b.clone().requires_grad_() for _ in range(2))
        spread, mean = function(plain, dim=0, correction=1)
        assert spread.grad_fn is mean.grad_fn and mean.grad_fn.name() == name
        assert [m.shape for m in mean.grad_fn._input_metadata] == [(3,), (3,)]
        (spread + mean).sum().backward()
        spread, mean = function(doubled, dim=0, correction=1)
        mean.grad_fn.register_prehook(lambda grads: tuple(g * 2 for g in grads))
        (spread + mean).sum().backward()
        assert treadle.allclose(doubled.grad, plain.grad * 2)


def test_one_output_of_two_takes_the_other_gradient_as_zeros() -> None:
    x = treadle.rand(4, dtype=treadle.float64, requires_grad=True)
    for function, of_spread in ((treadle.var_mean, treadle.var), (treadle.std_mean, treadle.std)):
        spread, mean = function(x, correction=1)
        (only,) = treadle.autograd.grad(spread, x, retain_graph=True)
        assert treadle.allclose(only, treadle.autograd.grad(of_spread(x), x)[0])
        assert treadle.autograd.grad(mean, x)[0].tolist() == [0.25] * 4
        assert treadle.autograd.gradcheck(function, (x,))
        assert treadle.autograd.gradgradcheck(function, (x,))


def test_callbacks_may_queue_callbacks() -> None:
    log: List[Any] = []
    queue = Variable._execution_engine.queue_callback

    def at_last() -> None:
        log.append("last")

    def first() -> None:
        log.append(treadle.is_grad_enabled())
        queue(at_last)

    x = leaf(1)
    y = x * 2
    y.register_hook(lambda grad: queue(first))
    y.sum().backward()
    assert log == [True, "last"]
    with pytest.raises(RuntimeError) as error:
        queue(first)
    assert str(error.value) == "queue_callback: expected to be called during a backward pass"


def test_a_callback_that_fails_ends_the_backward() -> None:
    def fail() -> None:
        raise ValueError("callback")

    x = leaf(1)
    y = x * 2
    y.register_hook(lambda grad: graph.queue_callback(fail))
    with pytest.raises(ValueError, match="^callback$"):
        y.sum().backward()
    with pytest.raises(RuntimeError, match="during a backward pass"):
        graph.queue_callback(fail)


def test_backward_leaves_the_hooks_on_saved_tensors_as_they_were() -> None:
    log: List[str] = []

    def leave(packed: Any) -> Any:
        inner.__exit__()
        return packed

    def enter(packed: Any) -> Any:
        entered.__enter__()
        return packed

    def noted(tensor: treadle.Tensor) -> treadle.Tensor:
        log.append("outer")
        return tensor

    inner = graph.saved_tensors_hooks(lambda t: t, leave)
    entered = graph.saved_tensors_hooks(lambda t: t, enter)
    outer = graph.saved_tensors_hooks(noted, lambda t: t)
    x = leaf(1, 2)
    with outer:
        inner.__enter__()
        x.sin().sum().backward()
        inner.__exit__()
        x.sin()
    assert log == ["outer"]
    with entered:
        loss = x.sin().sum()
    loss.backward()
    with graph.disable_saved_tensors_hooks("no hooks"):  # an error where some are in force
        x.sin()
        with pytest.raises(RuntimeError, match="^no hooks$"):
            outer.__enter__()


def test_hooks_at_the_first_gradient_keep_backwards_on_two_threads_apart() -> None:
    first, second = leaf(1), leaf(2)
    entered, go_on = threading.Event(), threading.Event()
    log: List[str] = []

    def any_gradient(grad: treadle.Tensor) -> None:
        log.append(threading.current_thread().name)

    graph.register_multi_grad_hook((first, second), any_gradient, mode="any")
    # Between the gradients of its two leaves, the first backward waits for the second one.
    product = second.exp()

    def wait(grad: treadle.Tensor) -> None:
        if threading.current_thread().name == "waiting":
            entered.set()
            go_on.wait(60)

    loss = (first * 3).sum() + product.sum()
    product.register_hook(wait)
    waiting = threading.Thread(
        target=lambda: loss.backward(retain_graph=True, inputs=(first, second)), name="waiting"
    )
    waiting.start()
    assert entered.wait(60)
    loss.backward(retain_graph=True, inputs=(first, second))
    go_on.set()
    waiting.join()
    assert sorted(log) == ["MainThread", "waiting"]
