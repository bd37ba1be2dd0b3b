"""utils.checkpoint: the same values and gradients as without, random numbers and autocast too; what
is kept in memory; and what is refused.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import gc
import warnings
import weakref
from typing import Any, Callable

import pytest

import treadle
from treadle import nn
from treadle.utils import checkpoint as module
from treadle.utils.checkpoint import (
    CheckpointError,
    checkpoint,
    checkpoint_sequential,
    set_checkpoint_debug_enabled,
    set_checkpoint_early_stop,
)

BOTH = pytest.mark.parametrize("reentrant", [True, False])


def memory() -> int:
    gc.collect()
    return treadle._C._memory_stats()["current_bytes"]


def leaf(*sizes: int) -> treadle.Tensor:
    return treadle.randn(*sizes, dtype=treadle.float64).requires_grad_()


@contextlib.contextmanager
def quiet() -> Any:
    """The first run of a function with reentrance is unrecorded: checkpoints in it warn of that."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="checkpoint: expected an input that requires")
        yield


class Counted:
    """A function that knows how often it ran."""

    def __init__(self, function: Callable) -> None:
        self.function, self.runs = function, 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.runs += 1
        return self.function(*args, **kwargs)


def waves(x: treadle.Tensor) -> treadle.Tensor:
    return (x.sin() * x.exp()).cos()


# ---- values and gradients ----


@BOTH
def test_gradients_are_those_without(reentrant: bool) -> None:
    x = leaf(3, 4)
    (expected,) = treadle.autograd.grad(waves(x).sum(), x)
    f = Counted(waves)
    y = checkpoint(f, x, use_reentrant=reentrant)
    assert f.runs == 1 and treadle.equal(y, waves(x)) and y.requires_grad
    y.sum().backward()
    assert f.runs == 2 and treadle.equal(x.grad, expected)


@BOTH
def test_several_arguments_and_results(reentrant: bool) -> None:
    x, w = leaf(3), leaf(3)

    def function(x: Any, n: int, w: Any, nothing: None) -> tuple:
        return x * w * n, (w**2).sum(), "text", treadle.ones(1)

    product, square, text, constant = checkpoint(function, x, 3, w, None, use_reentrant=reentrant)
    assert text == "text"
    (product.sum() + square).backward()
    assert treadle.equal(x.grad, 3 * w) and treadle.allclose(w.grad, 3 * x + 2 * w)


@BOTH
def test_modules_and_their_parameters(reentrant: bool) -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    x = treadle.randn(5, 4, requires_grad=True)
    model(x).pow(2).sum().backward()
    expected = [p.grad for p in model.parameters()]
    model.zero_grad()
    checkpoint(model, x, use_reentrant=reentrant).pow(2).sum().backward()
    assert all(treadle.allclose(p.grad, g) for p, g in zip(model.parameters(), expected))


@BOTH
def test_nested(reentrant: bool) -> None:
    x = leaf(4)
    inner = Counted(waves)

    def middle(x: treadle.Tensor) -> treadle.Tensor:
        return checkpoint(inner, x * 2, use_reentrant=reentrant).exp()

    def outer(x: treadle.Tensor) -> treadle.Tensor:
        return checkpoint(middle, x.tanh(), use_reentrant=reentrant) * 3

    with quiet():
        checkpoint(outer, x, use_reentrant=reentrant).sum().backward()
    (expected,) = treadle.autograd.grad((waves(x.tanh() * 2).exp() * 3).sum(), x)
    assert treadle.allclose(x.grad, expected)


@BOTH
def test_one_after_the_other_and_again(reentrant: bool) -> None:
    x, f = leaf(4), Counted(waves)
    y = x
    for _ in range(3):
        y = checkpoint(f, y, use_reentrant=reentrant)
    y.sum().backward(retain_graph=True)
    first, x.grad = x.grad, None
    assert f.runs == 6
    y.sum().backward()
    assert f.runs == 9 and treadle.equal(x.grad, first)
    with pytest.raises(RuntimeError, match="second time"):
        y.sum().backward()


def test_grad_and_higher_derivatives_without_reentrance() -> None:
    x = leaf(3)
    y = checkpoint(waves, x, use_reentrant=False).sum()
    (g,) = treadle.autograd.grad(y, x, create_graph=True)
    (h,) = treadle.autograd.grad(g.sum(), x)
    (g0,) = treadle.autograd.grad(waves(x).sum(), x, create_graph=True)
    (h0,) = treadle.autograd.grad(g0.sum(), x)
    assert treadle.allclose(g, g0) and treadle.allclose(h, h0)
    checkpoint(waves, x, use_reentrant=False).sum().backward(inputs=[x])
    assert treadle.allclose(x.grad, g0)


def test_a_function_that_differentiates_inside() -> None:
    x = leaf(3)

    def penalty(x: treadle.Tensor) -> treadle.Tensor:
        (g,) = treadle.autograd.grad((x**3).sum(), x, create_graph=True)
        return (g**2).sum()

    checkpoint(penalty, x, use_reentrant=False).backward()
    assert treadle.allclose(x.grad, 36 * x**3)


def test_keyword_arguments_without_reentrance() -> None:
    x = leaf(3)
    y = checkpoint(lambda x, *, scale: x.sin() * scale, x, use_reentrant=False, scale=3)
    y.sum().backward()
    assert treadle.allclose(x.grad, 3 * x.cos())
    with pytest.raises(ValueError, match="Unexpected keyword arguments: scale"):
        checkpoint(lambda x, scale: x, x, use_reentrant=True, scale=3)


def test_parameters_alone_need_no_input_that_requires_grad() -> None:
    layer = nn.Linear(3, 2)
    checkpoint(layer, treadle.ones(3), use_reentrant=False).sum().backward()
    assert treadle.equal(layer.weight.grad, treadle.ones(2, 3))


@BOTH
def test_nothing_is_kept_without_gradients(reentrant: bool) -> None:
    f = Counted(waves)
    with treadle.no_grad():
        assert not checkpoint(f, leaf(3), use_reentrant=reentrant).requires_grad
    assert f.runs == 1


# ---- surroundings ----


@BOTH
def test_random_numbers_are_drawn_again(reentrant: bool) -> None:
    x = leaf(50)
    drawn: list = []

    def dropout(x: treadle.Tensor) -> treadle.Tensor:
        mask = treadle.rand(50, dtype=treadle.float64)
        drawn.append(mask)
        return (x * mask).sin()

    treadle.manual_seed(1)
    y = checkpoint(dropout, x, use_reentrant=reentrant)
    after = treadle.rand(3)
    y.sum().backward()
    following = treadle.rand(3)
    assert treadle.equal(drawn[0], drawn[1])
    treadle.manual_seed(1)
    treadle.rand(50, dtype=treadle.float64)
    assert treadle.equal(treadle.rand(3), after) and treadle.equal(treadle.rand(3), following)
    drawn.clear()
    y = checkpoint(dropout, x, use_reentrant=reentrant, preserve_rng_state=False)
    y.sum().backward()
    assert not treadle.equal(drawn[0], drawn[1])


@BOTH
def test_autocast_is_as_it_was(reentrant: bool) -> None:
    layer, seen = nn.Linear(4, 4), []
    x = treadle.randn(2, 4, requires_grad=True)

    def function(x: treadle.Tensor) -> treadle.Tensor:
        y = layer(x)
        seen.append(y.dtype)
        return y.sin()

    with treadle.autocast("cpu", dtype=treadle.bfloat16):
        y = checkpoint(function, x, use_reentrant=reentrant)
    y.float().sum().backward()
    assert seen == [treadle.bfloat16] * 2 and x.grad.dtype == treadle.float32


def test_contexts_of_both_runs() -> None:
    log: list = []

    @contextlib.contextmanager
    def context(name: str) -> Any:
        log.append(name)
        try:
            yield
        finally:
            log.append("end of " + name)

    x = leaf(3)
    y = checkpoint(
        waves, x, use_reentrant=False, context_fn=lambda: (context("first"), context("second"))
    )
    assert log == ["first", "end of first"]
    y.sum().backward()
    assert log == ["first", "end of first", "second", "end of second"]
    with pytest.raises(ValueError, match="use_reentrant=False"):
        checkpoint(waves, x, use_reentrant=True, context_fn=lambda: (None, None))


# ---- memory ----


@BOTH
def test_what_is_between_is_gone_between_forward_and_backward(reentrant: bool) -> None:
    x, between = leaf(1000), []

    def function(x: treadle.Tensor) -> treadle.Tensor:
        y = x
        for _ in range(10):
            y = y.sin()
            between.append(weakref.ref(y))
        return y.sum()

    before = memory()
    y = checkpoint(function, x, use_reentrant=reentrant)
    assert len(between) == 10 and all(ref() is None for ref in between)
    assert memory() - before < 8 * 1000
    y.backward()
    assert all(ref() is None for ref in between)
    del y
    assert memory() - before <= 8 * 1000 + 1024, "the gradient of x alone is new"
    x.grad = None
    y = function(x)  # noqa: F841  its graph is measured
    assert memory() - before >= 9 * 8 * 1000, "all but the gradient that was dropped"


@BOTH
def test_inputs_of_inner_checkpoints_are_not_kept(reentrant: bool) -> None:
    x, inputs = leaf(1000), []

    def outer(x: treadle.Tensor) -> treadle.Tensor:
        y = x
        for _ in range(5):
            y = checkpoint(waves, y, use_reentrant=reentrant)
            inputs.append(weakref.ref(y))
        return y.sum()

    with quiet():
        y = checkpoint(outer, x, use_reentrant=reentrant)
    assert all(ref() is None for ref in inputs)
    y.backward()
    (expected,) = treadle.autograd.grad(outer(x.detach().requires_grad_()), x, allow_unused=True)
    assert expected is None and x.grad.isfinite().all()


def test_values_go_as_backward_goes() -> None:
    x, alive = leaf(1000), []

    class Watch(treadle.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: treadle.Tensor) -> treadle.Tensor:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, g: treadle.Tensor) -> treadle.Tensor:
            alive.append(memory())
            return g

    def function(x: treadle.Tensor) -> treadle.Tensor:
        for _ in range(6):
            x = Watch.apply(x.sin())
        return x.sum()

    checkpoint(function, x, use_reentrant=False).backward()
    # The second run comes after the first of the nodes, and fills everything.
    assert max(alive) == alive[1] and alive[-1] <= alive[1] - 4 * 8 * 1000


def test_a_second_run_stops_early() -> None:
    x, log = leaf(3), []

    def function(x: treadle.Tensor) -> treadle.Tensor:
        try:
            y = x.sin()
            log.append("saved")
            y = y + 1
            log.append("end")
            return y
        except Exception:
            log.append("caught")
            raise

    y = checkpoint(function, x, use_reentrant=False)
    y.sum().backward()
    assert log == ["saved", "end"]
    log.clear()
    with set_checkpoint_early_stop(False):
        y = checkpoint(function, x, use_reentrant=False)
    y.sum().backward()
    assert log == ["saved", "end"] * 2
    log.clear()
    checkpoint(function, x, use_reentrant=False, early_stop=False).sum().backward()
    assert log == ["saved", "end"] * 2


# ---- what is refused ----


def test_a_function_that_does_something_else_the_second_time() -> None:
    x = leaf(3)

    def changing(first: Callable, second: Callable) -> Callable:
        calls = iter([first, second])
        return lambda x: next(calls)(x)

    fewer = changing(lambda x: x.sin().cos(), lambda x: x.sin())
    with pytest.raises(CheckpointError, match="different number of tensors .* 2 at first, 1 then"):
        checkpoint(fewer, x, use_reentrant=False).sum().backward()
    more = changing(lambda x: x.sin(), lambda x: x.sin().cos())
    with pytest.raises(CheckpointError, match="1 at first, 2 then"):
        checkpoint(more, x, use_reentrant=False, early_stop=False).sum().backward()
    other = changing(lambda x: x.sin().sum(), lambda x: x[:2].sin().sum())
    with set_checkpoint_debug_enabled(False):
        with pytest.raises(CheckpointError, match=r"(?s)metadata .*\(3,\).*at first.*\(2,\)"):
            checkpoint(other, x, use_reentrant=False).backward()
    wide = changing(lambda x: x.sin(), lambda x: x.float().sin().double())
    checkpoint(wide, x, use_reentrant=False, determinism_check="none", early_stop=True)
    with pytest.raises(ValueError, match="'some'"):
        checkpoint(waves, x, use_reentrant=False, determinism_check="some")


def test_an_exception_of_the_function() -> None:
    x, calls = leaf(3), iter([0, 1])

    def function(x: treadle.Tensor) -> treadle.Tensor:
        if next(calls):
            raise KeyError("second")
        return x.sin()

    y = checkpoint(function, x, use_reentrant=False)
    with pytest.raises(KeyError, match="second"):
        y.sum().backward()


@BOTH
def test_an_input_that_was_changed_since(reentrant: bool) -> None:
    x = leaf(3)
    z = x * 1
    y = checkpoint(waves, z, use_reentrant=reentrant)
    z.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_what_reentrance_cannot_do() -> None:
    x = leaf(3)
    y = checkpoint(waves, x, use_reentrant=True).sum()
    with pytest.raises(RuntimeError, match="use_reentrant=False allows both"):
        treadle.autograd.grad(y, x)
    with pytest.warns(UserWarning, match="no gradients"):
        assert not checkpoint(waves, x.detach(), use_reentrant=True).requires_grad
    y = checkpoint(lambda x: x.detach() * 2, x, use_reentrant=True)
    with pytest.raises(RuntimeError, match="not necessary"):
        y.sum().backward()
    with pytest.warns(UserWarning, match="use_reentrant parameter should be passed"):
        checkpoint(waves, x)
    with pytest.raises(RuntimeError, match="got list"):
        module.detach_variable([x])


# ---- sequences ----


@BOTH
def test_checkpoint_sequential(reentrant: bool) -> None:
    layers = nn.Sequential(*(nn.Linear(4, 4) for _ in range(7)))
    x = treadle.randn(2, 4, requires_grad=True)
    (expected,) = treadle.autograd.grad(layers(x).sum(), x)
    for functions in (layers, list(layers)):
        for segments in (1, 3, 7):
            x.grad = None
            y = checkpoint_sequential(functions, segments, x, use_reentrant=reentrant)
            y.sum().backward()
            assert treadle.allclose(x.grad, expected)
    with pytest.raises(ValueError, match="Unexpected keyword arguments: other"):
        checkpoint_sequential(layers, 2, x, use_reentrant=reentrant, other=1)
    with pytest.warns(UserWarning, match="checkpoint_sequential: the use_reentrant"):
        checkpoint_sequential(layers, 2, x)


def test_a_look_outside_of_backward_keeps_nothing() -> None:
    x = leaf(10_000)
    y = checkpoint(lambda t: t.exp().sin(), x, use_reentrant=False)
    before = memory()
    assert treadle.equal(y.grad_fn._saved_self, x.exp())
    assert memory() == before
    y.sum().backward()
