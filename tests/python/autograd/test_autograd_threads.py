"""Autograd in threads: passes over one graph, hooks and gradients that change meanwhile, backward
passes inside one another. Each may give either order's values; none may end the process or wait for
ever.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import subprocess
import sys
import threading
from typing import Callable

import pytest

import treadle


def together(*functions: Callable[[], None]) -> list[BaseException]:
    """Runs each in a thread of its own, all at once; what they raised."""
    raised: list[BaseException] = []
    start = threading.Barrier(len(functions))

    def run(function: Callable[[], None]) -> None:
        start.wait()
        try:
            function()
        except RuntimeError as error:
            raised.append(error)

    threads = [threading.Thread(target=run, args=(f,)) for f in functions]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
        assert not t.is_alive(), "a thread waits for ever"
    return raised


@pytest.fixture(autouse=True)
def _often_another_thread():  # type: ignore[no-untyped-def]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval)


def chain(x: treadle.Tensor, n: int = 60) -> treadle.Tensor:
    y = x
    for _ in range(n):
        y = (y * x).tanh() + y.exp() * 0.01
    return y.sum()


def test_two_passes_over_one_graph_that_is_freed() -> None:
    for _ in range(40):
        x = treadle.ones(4, requires_grad=True)
        y = chain(x)
        for error in together(y.backward, y.backward):
            assert "Trying to backward through the graph a second time" in str(error)


FREED = """
import sys, threading, time
import treadle

sys.setswitchinterval(1e-6)
end, wrong = time.monotonic() + 6, []
while time.monotonic() < end and not wrong:
    x = y = treadle.ones(4, requires_grad=True)
    for _ in range(60):
        y = (y * x).tanh() + y.exp() * 0.01
    y = y.sum()
    start = threading.Barrier(3)

    def run():
        start.wait()
        try:
            y.backward()
        except RuntimeError as error:
            if "Trying to backward through the graph a second time" not in str(error):
                wrong.append(error)

    threads = [threading.Thread(target=run) for _ in range(3)]
    [t.start() for t in threads]
    [t.join() for t in threads]
print(wrong)
"""


def test_many_graphs_that_are_freed_while_others_walk_them() -> None:
    """Some thousand times: what one thread lets go of is seldom what another reads just then."""
    ran = subprocess.run([sys.executable, "-c", FREED], capture_output=True, text=True, timeout=120)
    assert ran.stdout == "[]\n", f"{ran.returncode}: {ran.stdout}{ran.stderr[-2000:]}"


def test_two_passes_through_a_change_of_a_view_and_a_custom_function() -> None:
    class Twice(treadle.autograd.Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, grad):  # type: ignore[no-untyped-def]
            (x,) = ctx.saved_tensors
            return grad * 2 + x * 0

    for _ in range(40):
        x = treadle.ones(6, requires_grad=True)
        y = x * 1
        for _ in range(15):
            y[:3].mul_(0.3).exp_()
            y = Twice.apply(y)
        y = y.sum()
        for error in together(y.backward, y.backward):
            assert "Trying to backward through the graph a second time" in str(error)


def test_passes_that_keep_the_graph_add_up() -> None:
    x = treadle.ones(1000, dtype=treadle.float64, requires_grad=True)
    y = chain(x)
    (once,) = treadle.autograd.grad(y, x, retain_graph=True)

    def backward() -> None:
        for _ in range(10):
            y.backward(retain_graph=True)

    assert together(backward, backward, backward) == []
    treadle.testing.assert_close(x.grad, once * 30)


def test_hooks_that_come_and_go_during_backward() -> None:
    x = treadle.ones(4, requires_grad=True)
    middle = x * 2
    y = chain(middle)
    done = threading.Event()

    def backward() -> None:
        try:
            for _ in range(20):
                y.backward(retain_graph=True)
        finally:
            done.set()

    def register() -> None:
        while not done.is_set():
            handles = [
                x.register_hook(lambda g: g),
                middle.register_hook(lambda g: g),
                x.register_post_accumulate_grad_hook(lambda t: None),
                middle.grad_fn.register_hook(lambda a, b: None),
                middle.grad_fn.register_prehook(lambda a: None),
            ]
            for handle in handles:
                handle.remove()

    assert together(backward, register, register) == []


def test_a_gradient_that_is_set_and_read_during_backward() -> None:
    x = treadle.ones(4, requires_grad=True)
    y = chain(x)
    done = threading.Event()

    def backward() -> None:
        try:
            for _ in range(60):
                y.backward(retain_graph=True)
        finally:
            done.set()

    def change() -> None:
        while not done.is_set():
            x.grad = None
            x.grad = treadle.zeros(4)
            if x.grad is not None:
                x.grad.sum()

    assert together(backward, change, change) == []


def test_two_threads_bring_one_view_up_to_date() -> None:
    for _ in range(50):
        x = treadle.ones(8, requires_grad=True)
        base = x * 1
        views = [base[i : i + 4] for i in range(4)]
        base.mul_(2)

        def read() -> None:
            for v in views:
                assert v.grad_fn is not None and v.requires_grad
                v.sum().backward(retain_graph=True)

        assert together(read, read) == []
        assert x.grad.sum().item() == 2 * 2 * 16


# ---- backward passes inside one another ----


def test_a_hook_after_accumulating_may_go_backward_to_its_own_leaf() -> None:
    x = treadle.ones(3, requires_grad=True)
    rounds = []

    def again(t: treadle.Tensor) -> None:
        rounds.append(t.grad.tolist())
        if len(rounds) < 4:
            with treadle.enable_grad():
                t.sum().backward()

    x.register_post_accumulate_grad_hook(again)
    assert together(lambda: x.sum().backward()) == []
    assert x.grad.tolist() == [4.0, 4.0, 4.0]
    assert [r[0] for r in rounds] == [1.0, 2.0, 3.0, 4.0]


NESTED = """
import sys, threading
import treadle

sys.setrecursionlimit(1_000_000)
depth = 0

def hook(grad):
    global depth
    depth += 1
    if depth < 20_000:
        with treadle.enable_grad():
            y = treadle.ones(1, requires_grad=True) * 2
        y.register_hook(hook)
        y.backward()

def run():
    try:
        hook(None)
        print("done", depth)
    except RuntimeError as error:
        print(type(error).__name__, error)

run()
thread = threading.Thread(target=run)
depth = 0
thread.start()
thread.join()
"""


def test_backward_passes_that_nest_without_end_raise() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", NESTED], capture_output=True, text=True, check=True, timeout=300
    )
    lines = ran.stdout.splitlines()
    assert len(lines) == 2
    for line in lines:
        assert line == "done 20000" or (
            "RuntimeError backward: expected room for one more backward pass inside those that run "
            "on this thread, got less than 1 MiB of stack: a hook, or the backward of a function, "
            "goes backward again and again" == line
        )
