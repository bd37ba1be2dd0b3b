"""Mixed precision: the context autocast, and the gradient scaler. The policy of each operator is
tested in test_amp_policies.py.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
import pickle
import threading
import warnings
from typing import Any

import numpy as np
import pytest

import treadle
from treadle import nn
from treadle.nn import functional as F


def test_float64_and_other_kinds_are_left_alone() -> None:
    x = treadle.rand(3, 3, dtype=treadle.float64)
    n = treadle.ones(3, 3, dtype=treadle.int64)
    c = treadle.randn(3, 3, dtype=treadle.complex64)
    with treadle.autocast("cpu"):
        assert (x @ x).dtype == treadle.float64
        assert (n @ n).dtype == treadle.int64
        assert (c @ c).dtype == treadle.complex64
        assert treadle.rand(2, 2, device="meta").mm(treadle.rand(2, 2, device="meta")).dtype == (
            treadle.float32
        )


def test_operators_without_a_policy_run_as_called() -> None:
    x = treadle.rand(3, 3)
    with treadle.autocast("cpu"):
        for f in (treadle.exp, treadle.sum, lambda t: treadle.softmax(t, 0), lambda t: t + t):
            assert f(x).dtype == treadle.float32
            assert f(x.bfloat16()).dtype == treadle.bfloat16
        assert (x + x.bfloat16()).dtype == treadle.float32


# ---- the context -------------------------------------------------------------------------------


def state() -> tuple:
    return (
        treadle.is_autocast_enabled("cpu"),
        treadle.get_autocast_dtype("cpu"),
        treadle.is_autocast_cache_enabled(),
    )


OFF = (False, treadle.bfloat16, True)


def test_nested_contexts() -> None:
    x = treadle.rand(2, 2)
    assert state() == OFF
    with treadle.autocast("cpu", dtype=treadle.float16, cache_enabled=False):
        assert state() == (True, treadle.float16, False)
        assert (x @ x).dtype == treadle.float16
        with treadle.autocast("cpu", enabled=False):
            assert state() == (False, treadle.float16, False)
            assert (x @ x).dtype == treadle.float32
            with treadle.autocast("cpu", dtype=treadle.bfloat16):
                assert (x @ x).dtype == treadle.bfloat16
        assert (x @ x).dtype == treadle.float16
        with pytest.raises(ZeroDivisionError), treadle.autocast("cpu", enabled=False):
            raise ZeroDivisionError
        assert (x @ x).dtype == treadle.float16
    assert state() == OFF
    assert (x @ x).dtype == treadle.float32


def test_one_context_entered_twice() -> None:
    context = treadle.autocast("cpu")
    with context:
        with context:
            assert state()[0]
        assert state()[0]
    assert state() == OFF


def test_as_a_decorator() -> None:
    @treadle.autocast("cpu", dtype=treadle.bfloat16)
    def product(x: treadle.Tensor, depth: int = 3) -> treadle.Tensor:
        """Its documentation."""
        return product(x, depth - 1) if depth else x @ x

    assert product.__name__ == "product" and product.__doc__ == "Its documentation."
    assert product(treadle.rand(2, 2)).dtype == treadle.bfloat16
    assert state() == OFF


def test_it_holds_for_one_thread() -> None:
    x = treadle.rand(2, 2)
    found = {}
    inside, done = threading.Event(), threading.Event()

    @treadle.autocast("cpu")
    def wait_inside() -> None:
        found["there"] = (x @ x).dtype
        inside.set()
        done.wait(10)

    thread = threading.Thread(target=wait_inside)
    thread.start()
    assert inside.wait(10)
    found["here"] = (x @ x).dtype, state()
    done.set()
    thread.join()
    assert found == {"there": treadle.bfloat16, "here": (treadle.float32, OFF)}


def test_one_decorated_function_in_many_threads() -> None:
    x = treadle.rand(4, 4)
    product = treadle.autocast("cpu")(lambda: (x @ x).dtype)
    results: list = []

    def work() -> None:
        for _ in range(200):
            results.append((product(), treadle.is_autocast_enabled("cpu")))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(results) == {(treadle.bfloat16, False)} and len(results) == 800


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match="Expected `device_type` of type `str`"):
        treadle.autocast(treadle.device("cpu"))
    with pytest.raises(RuntimeError, match="unsupported autocast device_type 'meta'"):
        treadle.autocast("meta")
    with pytest.raises(RuntimeError):
        treadle.autocast("toaster")
    with pytest.warns(UserWarning, match="target dtype is not supported. Disabling autocast"):
        context = treadle.autocast("cpu", dtype=treadle.float64)
    with context:
        assert not treadle.is_autocast_enabled("cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        treadle.autocast("cuda", enabled=False)
    assert state() == OFF


@pytest.mark.skipif(treadle.cuda.is_available(), reason="there is CUDA")
def test_without_cuda_it_is_disabled() -> None:
    with pytest.warns(UserWarning, match="CUDA is not available. Disabling"):
        context = treadle.autocast("cuda")
    with context:
        assert not treadle.is_autocast_enabled()


def test_settings_by_their_old_names() -> None:
    treadle.set_autocast_cpu_enabled(True)
    treadle.set_autocast_cpu_dtype(treadle.float16)
    try:
        assert treadle.is_autocast_cpu_enabled()
        assert treadle.get_autocast_cpu_dtype() == treadle.float16
        assert (treadle.rand(2, 2) @ treadle.rand(2, 2)).dtype == treadle.float16
    finally:
        treadle.set_autocast_cpu_enabled(False)
        treadle.set_autocast_cpu_dtype(treadle.bfloat16)
    assert treadle.get_autocast_gpu_dtype() == treadle.float16
    assert not treadle.is_autocast_enabled()
    assert state() == OFF
    with pytest.warns(FutureWarning, match="Please use `treadle.amp.autocast"):
        context = treadle.cpu.amp.autocast()
    with context:
        assert state() == (True, treadle.bfloat16, True)


def test_outside_it_the_layer_is_off() -> None:
    x = treadle.rand(2, 2)
    assert treadle._C._active_layers("aten::mm", x, x) == []
    with treadle.autocast("cpu"):
        assert treadle._C._active_layers("aten::mm", x, x) == ["autocast"]
    assert treadle._C._active_layers("aten::mm", x, x) == []


# ---- gradients, and the cache of weights -------------------------------------------------------


def test_gradients_have_the_dtype_of_what_was_cast() -> None:
    treadle.manual_seed(1)
    x, w, b = treadle.randn(5, 4), treadle.randn(3, 4), treadle.randn(3)
    for t in (w, b):
        t.requires_grad_()
    with treadle.autocast("cpu"):
        y = F.linear(x, w, b)
        loss = F.mse_loss(y, treadle.zeros(5, 3))
    assert y.dtype == treadle.bfloat16 and loss.dtype == treadle.float32
    loss.backward()
    assert w.grad.dtype == b.grad.dtype == treadle.float32
    by_autocast = w.grad.clone(), b.grad.clone()
    w.grad = b.grad = None
    low = treadle.bfloat16
    F.mse_loss(F.linear(x.to(low), w.to(low), b.to(low)).float(), treadle.zeros(5, 3)).backward()
    assert treadle.equal(w.grad, by_autocast[0]) and treadle.equal(b.grad, by_autocast[1])


def test_backward_inside_and_outside() -> None:
    treadle.manual_seed(2)
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten())
    model.append(nn.Linear(4 * 6 * 6, 10))
    x, t = treadle.randn(8, 1, 8, 8), treadle.randint(10, (8,))
    grads = []
    for inside in (False, True):
        net = copy.deepcopy(model)
        with treadle.autocast("cpu"):
            loss = F.cross_entropy(net(x), t)
            if inside:
                loss.backward()
        if not inside:
            loss.backward()
        grads.append([p.grad for p in net.parameters()])
        assert all(p.grad.dtype == p.dtype == treadle.float32 for p in net.parameters())
    for a, b in zip(*grads):
        treadle.testing.assert_close(a, b, rtol=0.05, atol=0.02)


def test_backward_inside_runs_in_the_dtypes_of_the_context() -> None:
    """Also that of what was computed outside."""
    treadle.manual_seed(4)
    w, start = treadle.randn(8, 8), treadle.randn(8, 8)
    x = treadle.randn(8, 8, requires_grad=True)
    y = x.mm(w)
    (outside,) = treadle.autograd.grad(y, x, start, retain_graph=True)
    with treadle.autocast("cpu"):
        (inside,) = treadle.autograd.grad(y, x, start)
    assert treadle.equal(outside, start.mm(w.t()))
    assert treadle.equal(inside, start.bfloat16().mm(w.bfloat16().t()).float())
    assert not treadle.equal(inside, outside)


def cast_node(y: treadle.Tensor) -> Any:
    """The node in the graph of x @ w that cast w."""
    return y.grad_fn.next_functions[1][0]


def test_a_weight_is_cast_once() -> None:
    x, w = treadle.rand(2, 2), treadle.rand(2, 2, requires_grad=True)
    with treadle.autocast("cpu"):
        first, second = x.mm(w), x.mm(w)
        assert cast_node(first) is cast_node(second)
        with treadle.autocast("cpu"):
            assert cast_node(x.mm(w)) is cast_node(first)
        assert cast_node(x.mm(w)) is cast_node(first)
        treadle.clear_autocast_cache()
        assert cast_node(x.mm(w)) is not cast_node(first)
    with treadle.autocast("cpu", cache_enabled=False):
        assert cast_node(x.mm(w)) is not cast_node(x.mm(w))
    (first.sum() + second.sum()).backward()
    expected = (2 * x.bfloat16().t() @ treadle.ones(2, 2).bfloat16()).float()
    treadle.testing.assert_close(w.grad, expected, rtol=1e-2, atol=1e-2)


def test_a_weight_cast_without_recording_still_gets_its_gradient() -> None:
    x, w = treadle.rand(2, 2), treadle.rand(2, 2, requires_grad=True)
    with treadle.autocast("cpu"):
        with treadle.no_grad():
            assert not x.mm(w).requires_grad
        y = x.mm(w)
    y.sum().backward()
    assert w.grad is not None


def test_a_weight_that_was_written_is_cast_again() -> None:
    x, w = treadle.eye(2), treadle.zeros(2, 2, requires_grad=True)
    with treadle.autocast("cpu"):
        assert x.mm(w).sum().item() == 0
        with treadle.no_grad():
            w.add_(1)
        assert x.mm(w).sum().item() == 4


def test_the_cache_ends_with_the_outermost_context() -> None:
    x = treadle.rand(64, 64)
    held = treadle._C._memory_stats()["current_bytes"]
    with treadle.autocast("cpu"):
        for _ in range(10):
            x.mm(treadle.rand(64, 64, requires_grad=True))
        assert treadle._C._memory_stats()["current_bytes"] > held + 10 * 64 * 64 * 2
    assert treadle._C._memory_stats()["current_bytes"] == held


@pytest.mark.parametrize("dtype", (treadle.bfloat16, treadle.float16), ids=str)
@pytest.mark.parametrize("norm", ["batch", "batch_eval", "layer", "group", "instance", "rms"])
def test_normalisations_take_a_low_input_and_float32_weights(
    norm: str, dtype: treadle.dtype
) -> None:
    treadle.manual_seed(3)
    x = treadle.randn(4, 6, 5).to(dtype).requires_grad_()
    w, b = treadle.rand(6).requires_grad_(), treadle.rand(6).requires_grad_()
    f = {
        "batch": lambda x: F.batch_norm(x, treadle.zeros(6), treadle.ones(6), w, b, True),
        "batch_eval": lambda x: F.batch_norm(x, treadle.zeros(6), treadle.ones(6), w, b),
        "layer": lambda x: F.layer_norm(x.transpose(1, 2), (6,), w, b),
        "group": lambda x: F.group_norm(x, 2, w, b),
        "instance": lambda x: F.instance_norm(x, None, None, w, b),
        "rms": lambda x: F.rms_norm(x.transpose(1, 2), (6,), w),
    }[norm]
    y = f(x)
    y.float().square().sum().backward()
    found = x.grad, w.grad, b.grad
    assert y.dtype == x.grad.dtype == dtype and w.grad.dtype == treadle.float32
    x.grad = w.grad = b.grad = None
    wide = x.detach().float().requires_grad_()
    expected = f(wide)
    expected.to(dtype).float().square().sum().backward()
    treadle.testing.assert_close(y.float(), expected, rtol=1e-2, atol=1e-2)
    for got, exact in zip(found, (wide.grad, w.grad, b.grad)):
        if exact is not None:
            treadle.testing.assert_close(got.float(), exact, rtol=2e-2, atol=2e-2)


# ---- custom functions --------------------------------------------------------------------------


class Product(treadle.autograd.Function):
    @staticmethod
    @treadle.amp.custom_fwd(device_type="cpu")
    def forward(ctx: Any, x: treadle.Tensor, w: treadle.Tensor) -> treadle.Tensor:
        ctx.save_for_backward(x, w)
        return x @ w

    @staticmethod
    @treadle.amp.custom_bwd(device_type="cpu")
    def backward(ctx: Any, grad: treadle.Tensor) -> tuple:
        x, w = ctx.saved_tensors
        Product.seen.append((treadle.is_autocast_enabled("cpu"), treadle.get_autocast_dtype("cpu")))
        return grad @ w.t(), x.t() @ grad

    seen: list = []


class InFloat32(treadle.autograd.Function):
    @staticmethod
    @treadle.amp.custom_fwd(device_type="cpu", cast_inputs=treadle.float32)
    def forward(ctx: Any, x: treadle.Tensor, pair: tuple) -> treadle.Tensor:
        InFloat32.seen.append((x.dtype, pair[0].dtype, treadle.is_autocast_enabled("cpu")))
        return (x @ x).clone()

    @staticmethod
    @treadle.amp.custom_bwd(device_type="cpu")
    def backward(ctx: Any, grad: treadle.Tensor) -> tuple:
        InFloat32.seen.append((grad.dtype, treadle.is_autocast_enabled("cpu")))
        return grad, None

    seen: list = []


def test_custom_functions_run_backward_as_forward() -> None:
    Product.seen = []
    x, w = treadle.rand(2, 2, requires_grad=True), treadle.rand(2, 2, requires_grad=True)
    with treadle.autocast("cpu", dtype=treadle.float16):
        y = Product.apply(x, w)
    assert y.dtype == treadle.float16
    y.sum().backward()
    Product.apply(x, w).sum().backward()
    assert Product.seen == [(True, treadle.float16), (False, treadle.bfloat16)]
    assert w.grad.dtype == treadle.float32


def test_custom_functions_that_cast_run_without_autocast() -> None:
    InFloat32.seen = []
    x = treadle.rand(2, 2).bfloat16().requires_grad_()
    with treadle.autocast("cpu"):
        y = InFloat32.apply(x, (x, "text"))
    assert y.dtype == treadle.float32
    y.sum().backward()
    assert InFloat32.seen == [
        (treadle.float32, treadle.float32, False),
        (treadle.float32, False),
    ]
    InFloat32.seen.clear()
    assert InFloat32.apply(x, (x,)).dtype == treadle.bfloat16
    assert InFloat32.seen == [(treadle.bfloat16, treadle.bfloat16, False)]


def test_custom_decorators_want_a_device_type() -> None:
    for decorator in (treadle.amp.custom_fwd, treadle.amp.custom_bwd):
        with pytest.raises(ValueError, match="Expected `device_type` of type `str`"):
            decorator(device_type=None)


# ---- the scaler --------------------------------------------------------------------------------


def scaler_of(w: treadle.Tensor, **settings: Any) -> tuple:
    return treadle.amp.GradScaler("cpu", **settings), treadle.optim.SGD([w], lr=1.0)


def iterate(scaler: Any, optimizer: Any, w: treadle.Tensor, slope: float) -> None:
    w.grad = None
    scaler.scale((w * slope).sum()).backward()
    scaler.step(optimizer)
    scaler.update()


def test_the_factor_grows_and_backs_off() -> None:
    w = treadle.zeros(2, requires_grad=True)
    scaler, optimizer = scaler_of(w, init_scale=8.0, growth_interval=3, backoff_factor=0.25)
    scales = []
    for slope in (1.0, 1.0, float("inf"), 1.0, 1.0, 1.0, float("nan"), 1.0):
        iterate(scaler, optimizer, w, slope)
        scales.append(scaler.get_scale())
    assert scales == [8, 8, 2, 2, 2, 4, 1, 1]
    assert w.tolist() == [-6.0, -6.0]  # the two steps that overflowed were left out


def test_the_factor_does_not_grow_beyond_float32() -> None:
    w = treadle.zeros(1, requires_grad=True)
    scaler, optimizer = scaler_of(w, init_scale=2.0**127, growth_interval=1)
    iterate(scaler, optimizer, w, 2.0**-10)
    assert scaler.get_scale() == 2.0**127


def test_a_gradient_of_a_dtype_without_arithmetic_leaves_the_others() -> None:
    small = treadle.zeros(2, dtype=treadle.uint8).view(treadle.float4_e2m1fn_x2)
    gradients = [treadle.ones(2), small]
    message = (
        r"^_amp_foreach_non_finite_check_and_unscale_: expected self\[1\] of a floating dtype "
        "with arithmetic, got float4_e2m1fn_x2$"
    )
    with pytest.raises(NotImplementedError, match=message):
        treadle._amp_foreach_non_finite_check_and_unscale_(
            gradients, treadle.zeros(()), treadle.full((), 0.5)
        )
    assert gradients[0].tolist() == [1, 1]
    gradients[1] = treadle.ones(2).to(treadle.float8_e5m2)
    treadle._amp_foreach_non_finite_check_and_unscale_(
        gradients, treadle.zeros(()), treadle.full((), 0.5)
    )
    assert [g.tolist() for g in gradients] == [[0.5, 0.5], [0.5, 0.5]]


def test_a_gradient_that_cannot_be_written_leaves_the_others() -> None:
    def unscale(*gradients: treadle.Tensor) -> None:
        treadle._amp_foreach_non_finite_check_and_unscale_(
            list(gradients), treadle.zeros(()), treadle.full((), 0.5)
        )

    name = "_amp_foreach_non_finite_check_and_unscale_"
    with treadle.inference_mode():
        of_inference = treadle.ones(2)
    for other, message in (
        (
            treadle.ones(2, requires_grad=True),
            "expected self to require no grad, got one that does; call it within no_grad()",
        ),
        (
            of_inference,
            "expected self to be a normal tensor outside inference mode, got an inference tensor",
        ),
    ):
        gradient = treadle.ones(2)
        with pytest.raises(RuntimeError) as error:
            unscale(gradient, other)
        assert str(error.value) == f"{name}: {message}"
        assert gradient.tolist() == [1, 1]
    leaf = treadle.ones(2, requires_grad=True)
    with treadle.no_grad():
        unscale(leaf, treadle.ones(2))
    assert leaf.tolist() == [0.5, 0.5]


def test_gradients_are_unscaled_once() -> None:
    w = treadle.zeros(3, requires_grad=True)
    scaler, optimizer = scaler_of(w, init_scale=4.0)
    scaler.scale(w.sum()).backward()
    assert w.grad.tolist() == [4.0] * 3
    scaler.unscale_(optimizer)
    assert w.grad.tolist() == [1.0] * 3
    with pytest.raises(RuntimeError, match="already been called"):
        scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_([w], 0.5)
    clipped = w.grad.clone()
    scaler.step(optimizer)
    assert treadle.equal(w, -clipped)
    with pytest.raises(RuntimeError, match="step.. has already been called"):
        scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="being called after step"):
        scaler.unscale_(optimizer)
    scaler.update()
    w.grad = None
    scaler.scale(w.sum()).backward()
    scaler.unscale_(optimizer)


def test_several_losses_and_optimisers() -> None:
    a, b = treadle.zeros(1, requires_grad=True), treadle.zeros(1, requires_grad=True)
    scaler = treadle.amp.GradScaler("cpu", init_scale=16.0)
    optimizers = [treadle.optim.SGD([p], lr=1.0) for p in (a, b)]
    losses = scaler.scale([(a * 2).sum(), (b * float("inf")).sum()])
    assert isinstance(losses, list)
    for loss in losses:
        loss.backward()
    for optimizer in optimizers:
        scaler.step(optimizer)
    scaler.update()
    assert (a.item(), b.item(), scaler.get_scale()) == (-2.0, 0.0, 8.0)
    assert [t.item() for t in scaler.scale(t for t in (treadle.ones(()),))] == [8.0]
    with pytest.raises(ValueError, match="Tensor or an iterable"):
        scaler.scale(3)


def test_an_optimiser_that_scales_by_itself() -> None:
    class Own(treadle.optim.SGD):
        _step_supports_amp_scaling = True
        seen: list = []

        def step(self, closure: Any = None) -> None:
            scale = None if self.grad_scale is None else self.grad_scale.item()
            self.seen.append((scale, self.found_inf.item()))

    w = treadle.zeros(1, requires_grad=True)
    scaler, optimizer = treadle.amp.GradScaler("cpu", init_scale=32.0), Own([w], lr=1.0)
    iterate(scaler, optimizer, w, 1.0)
    iterate(scaler, optimizer, w, float("inf"))
    w.grad = None
    scaler.scale(w.sum()).backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    assert optimizer.seen == [(32.0, 0.0), (32.0, 1.0), (None, 0.0)]
    assert not hasattr(optimizer, "found_inf")


def test_state_of_the_scaler() -> None:
    w = treadle.zeros(1, requires_grad=True)
    scaler, optimizer = scaler_of(w, init_scale=8.0, growth_interval=5)
    assert scaler.state_dict() == {
        "scale": 8.0,
        "growth_factor": 2.0,
        "backoff_factor": 0.5,
        "growth_interval": 5,
        "_growth_tracker": 0,
    }
    for _ in range(3):
        iterate(scaler, optimizer, w, 1.0)
    saved = scaler.state_dict()
    assert saved["_growth_tracker"] == 3
    for other in (treadle.amp.GradScaler("cpu"), pickle.loads(pickle.dumps(scaler))):
        other.load_state_dict(saved)
        assert other.state_dict() == saved
        for _ in range(2):
            iterate(other, optimizer, w, 1.0)
        assert other.get_scale() == 16.0
    scaler.set_growth_factor(3.0)
    scaler.set_backoff_factor(0.1)
    scaler.set_growth_interval(7)
    settings = scaler.get_growth_factor(), scaler.get_backoff_factor()
    assert (*settings, scaler.get_growth_interval()) == (3.0, 0.1, 7)
    scaler.update(64.0)
    assert scaler.get_scale() == 64.0
    scaler.update(treadle.tensor(32.0))
    assert scaler.get_scale() == 32.0
    with pytest.raises(RuntimeError, match="state dict is empty"):
        scaler.load_state_dict({})


def test_what_the_scaler_refuses() -> None:
    w = treadle.zeros(1, requires_grad=True)
    scaler, optimizer = scaler_of(w)
    with pytest.raises(AssertionError, match="Attempted step but _scale is None"):
        scaler.step(optimizer)
    scaler.scale(w.sum()).backward()
    with pytest.raises(AssertionError, match="No inf checks were recorded prior to update"):
        scaler.update()
    with pytest.raises(RuntimeError, match="Closure use is not currently supported"):
        scaler.step(optimizer, closure=lambda: None)
    with pytest.raises(AssertionError, match="growth factor must be > 1.0"):
        treadle.amp.GradScaler("cpu", growth_factor=1.0)
    with pytest.raises(AssertionError, match="backoff factor must be < 1.0"):
        treadle.amp.GradScaler("cpu", backoff_factor=1.0)
    half = treadle.zeros(1, dtype=treadle.float16, requires_grad=True)
    scaler, optimizer = scaler_of(half, init_scale=2.0)
    scaler.scale(half.sum()).backward()
    with pytest.raises(ValueError, match="Attempting to unscale FP16 gradients"):
        scaler.unscale_(optimizer)


def test_a_disabled_scaler_does_nothing() -> None:
    w = treadle.zeros(1, requires_grad=True)
    scaler, optimizer = scaler_of(w, enabled=False)
    loss = w.sum()
    assert scaler.scale(loss) is loss and not scaler.is_enabled()
    loss.backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    assert w.item() == -1.0 and scaler.get_scale() == 1.0 and scaler.state_dict() == {}
    scaler.load_state_dict({"scale": 3.0})
    assert scaler.get_scale() == 1.0


# ---- together ----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", (treadle.bfloat16, treadle.float16), ids=str)
def test_training_converges(dtype: treadle.dtype) -> None:
    """A network learns which of three spirals a point is on, as well as it does in float32."""
    treadle.manual_seed(4)
    turn = treadle.rand(300)
    label = treadle.arange(300) % 3
    angle = 4 * turn + label * (2 * np.pi / 3)
    x = treadle.stack([turn * angle.cos(), turn * angle.sin()], 1)
    x = treadle.cat([x, x * 4, (x * 4).sin()], 1)
    model = nn.Sequential(nn.Linear(6, 64), nn.LayerNorm(64), nn.GELU(), nn.Linear(64, 3))
    optimizer = treadle.optim.Adam(model.parameters(), lr=1e-2)
    scaler = treadle.amp.GradScaler("cpu", init_scale=2.0**20, growth_interval=50)
    for _ in range(150):
        optimizer.zero_grad()
        with treadle.autocast("cpu", dtype=dtype):
            scores = model(x)
            loss = F.cross_entropy(scores, label)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
    assert scores.dtype == dtype
    assert all(p.dtype == treadle.float32 for p in model.parameters())
    accuracy = (scores.argmax(1) == label).float().mean().item()
    assert loss.item() < 0.15 and accuracy > 0.95
    # In float16 the first factor overflows, so that it backed off; in bfloat16 it can but grow.
    assert (scaler.get_scale() < 2.0**20) == (dtype == treadle.float16)


def test_einsum_multiplies_what_it_does_not_sum() -> None:
    """An outer product promotes; a contraction is a product of matrices."""
    x = treadle.rand(2, 3)
    with treadle.autocast("cpu"):
        assert treadle.einsum("bi,bj->bij", x, x.bfloat16()).dtype == treadle.float32
        assert treadle.einsum("bi,bj->ij", x, x.bfloat16()).dtype == treadle.bfloat16
    assert treadle.einsum("bi,bj->bij", x, x.double()).dtype == treadle.float64
    with pytest.raises(RuntimeError, match="^einsum: expected"):
        treadle.einsum("bi,bj->ij", x, x.double())


def test_a_scaler_on_the_cpu_leaves_out_a_step_that_overflowed() -> None:
    param = treadle.ones(2, requires_grad=True)
    optimizer = treadle.optim.SGD([param], lr=1.0)
    scaler = treadle.amp.GradScaler("cpu", init_scale=4.0, growth_interval=1)
    scaler.scale((param * 2).sum()).backward()
    scaler.unscale_(optimizer)
    assert param.grad.tolist() == [2.0, 2.0]
    assert scaler._found_inf_per_device(optimizer)[param.device].item() == 0
    scaler.step(optimizer)
    scaler.update()
    assert param.tolist() == [-1.0, -1.0] and scaler.get_scale() == 8.0
    scaler.scale((param * float("inf")).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert param.tolist() == [-1.0, -1.0] and scaler.get_scale() == 4.0
