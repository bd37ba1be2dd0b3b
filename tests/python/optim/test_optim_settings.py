"""The arguments of optimisers: settings out of range, learning rates that are tensors, dtypes and
layouts of parameters, recorded steps, and scaled gradients."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
import inspect
from typing import Any

import numpy as np
import pytest

import treadle
from treadle import nn, optim

# Not those that take parameters or gradients of one kind alone: test_optim_new.py.
KINDS = [
    name
    for name in optim.__all__
    if name not in ("Adafactor", "Muon", "Optimizer", "SparseAdam")
    and isinstance(getattr(optim, name), type)
]
# LBFGS steps by a closure, over all parameters at once.
BY_GRADIENT = [name for name in KINDS if name != "LBFGS"]
RECORDED = [
    n for n in BY_GRADIENT if "differentiable" in inspect.signature(getattr(optim, n)).parameters
]
# More than the defaults: each optimiser with all that it can keep.
FULL: dict[str, dict[str, Any]] = {
    "SGD": {"momentum": 0.9, "weight_decay": 0.1},
    "Adam": {"amsgrad": True, "weight_decay": 0.1},
    "AdamW": {"amsgrad": True},
    "RMSprop": {"centered": True, "momentum": 0.5},
    "Adagrad": {"lr_decay": 0.1},
    "ASGD": {"t0": 1, "lambd": 0.1},
}


def make(name: str, params: Any, **settings: Any) -> optim.Optimizer:
    return getattr(optim, name)(params, **{"lr": 0.05, **FULL.get(name, {}), **settings})


def values(*shape: int, phase: float = 0.0) -> treadle.Tensor:
    count = int(np.prod(shape))
    return treadle.sin(1.7 * treadle.arange(count, dtype=treadle.float64) ** 2 + phase).view(shape)


def walk(optimizer: optim.Optimizer, params: list[treadle.Tensor], steps: int = 4) -> None:
    """Steps by gradients that turn now and then."""
    for step in range(steps):
        for i, param in enumerate(params):
            grad = values(*param.shape, phase=step + i)
            if param.is_complex():
                grad = treadle.complex(grad, values(*param.shape, phase=step - i))
            param.grad = grad.to(param.dtype)
        optimizer.step()


# ---- settings out of range -----------------------------------------------------------------------

REFUSED = [
    ("SGD", {"lr": -1}, "Invalid learning rate: -1"),
    ("SGD", {"momentum": -0.5}, "Invalid momentum value: -0.5"),
    ("SGD", {"weight_decay": -1}, "Invalid weight_decay value: -1"),
    ("SGD", {"momentum": 0, "nesterov": True}, "Nesterov momentum requires a momentum and zero"),
    ("SGD", {"lr": treadle.ones(2)}, "Tensor lr must be 1-element"),
    ("Adam", {"eps": -1}, "Invalid epsilon value: -1"),
    ("Adam", {"betas": (1.0, 0.9)}, "Invalid beta parameter at index 0: 1.0"),
    ("AdamW", {"betas": (0.9, -0.1)}, "Invalid beta parameter at index 1: -0.1"),
    ("Adagrad", {"lr_decay": -1}, "Invalid lr_decay value: -1"),
    ("Adagrad", {"initial_accumulator_value": -1}, "Invalid initial_accumulator_value value: -1"),
    ("Adadelta", {"rho": 1.5}, "Invalid rho value: 1.5"),
    ("RMSprop", {"alpha": -1}, "Invalid alpha value: -1"),
    ("RMSprop", {"momentum": -1}, "Invalid momentum value: -1"),
    ("Adamax", {"betas": (0.9, 1.0)}, "Invalid beta parameter at index 1: 1.0"),
    ("NAdam", {"momentum_decay": -1}, "Invalid momentum_decay value: -1"),
    ("RAdam", {"weight_decay": -1}, "Invalid weight_decay value: -1"),
    ("ASGD", {"weight_decay": -1}, "Invalid weight_decay value: -1"),
    ("Rprop", {"etas": (1.1, 1.2)}, "Invalid eta values: 1.1, 1.2"),
    ("LBFGS", {"lr": -1}, "Invalid learning rate: -1"),
]


@pytest.mark.parametrize("name, settings, text", REFUSED, ids=lambda v: str(v)[:40])
def test_refused(name: str, settings: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        make(name, [nn.Parameter(treadle.ones(1))], **settings)


@pytest.mark.parametrize("name", KINDS)
def test_no_negative_rate_and_none_of_two_numbers(name: str) -> None:
    params = [nn.Parameter(treadle.ones(1))]
    for lr, text in ((-0.5, "Invalid learning rate: -0.5"), (treadle.ones(2), "must be 1-element")):
        with pytest.raises(ValueError, match=text):
            getattr(optim, name)(params, lr=lr)


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "Adagrad"])
def test_choices_that_contradict_each_other(name: str) -> None:
    params = [nn.Parameter(treadle.ones(1))]
    with pytest.raises(RuntimeError, match="`fused` does not support `differentiable`"):
        make(name, params, fused=True, differentiable=True)
    with pytest.raises(RuntimeError, match="`fused` and `foreach` cannot be `True` together"):
        make(name, params, fused=True, foreach=True)


def test_lbfgs_has_one_group_and_one_line_search() -> None:
    a, b = nn.Parameter(treadle.ones(1)), nn.Parameter(treadle.ones(1))
    with pytest.raises(ValueError, match="doesn't support per-parameter options"):
        optim.LBFGS([{"params": [a]}, {"params": [b]}])
    optimizer = optim.LBFGS([a], line_search_fn="backtracking")

    def closure() -> treadle.Tensor:
        optimizer.zero_grad()
        loss = (a * a).sum()
        loss.backward()
        return loss

    with pytest.raises(RuntimeError, match="only 'strong_wolfe' is supported"):
        optimizer.step(closure)


def test_lbfgs_finds_the_lowest_point_of_a_narrow_valley() -> None:
    at = treadle.tensor([-1.2, 1.0], dtype=treadle.float64, requires_grad=True)
    idle = nn.Parameter(treadle.ones(2, dtype=treadle.float64))  # never has a gradient
    optimizer = optim.LBFGS([at, idle], max_iter=60, line_search_fn="strong_wolfe")

    def closure() -> treadle.Tensor:
        optimizer.zero_grad()
        loss = (1 - at[0]) ** 2 + 100 * (at[1] - at[0] ** 2) ** 2
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == pytest.approx(24.2)
    assert closure().item() < 1e-8
    np.testing.assert_allclose(at.detach().numpy(), [1.0, 1.0], atol=1e-4)
    assert idle.tolist() == [1.0, 1.0]


# ---- learning rates that are tensors -------------------------------------------------------------


@pytest.mark.parametrize("name", KINDS)
def test_a_rate_that_is_a_tensor(name: str) -> None:
    ends = []
    for lr in (0.05, treadle.tensor(0.05, dtype=treadle.float64), treadle.full((1,), 0.05)):
        param = nn.Parameter(values(3))
        optimizer = make(name, [param], lr=lr)
        for _ in range(3):
            optimizer.step(lambda p=param: _quartic(p))
        ends.append(param.tolist())
    assert ends[0] == ends[1]
    assert ends[2] == pytest.approx(ends[0], abs=1e-7)


def _quartic(param: treadle.Tensor) -> treadle.Tensor:
    param.grad = None
    loss = (param**4).sum()
    loss.backward()
    return loss


# ---- dtypes and layouts --------------------------------------------------------------------------


@pytest.mark.parametrize("name", BY_GRADIENT)
def test_complex_numbers_are_pairs_of_reals(name: str) -> None:
    start = treadle.complex(values(2, 3), values(2, 3, phase=0.5))
    whole = nn.Parameter(start)
    pairs = nn.Parameter(treadle.view_as_real(start).clone())
    first, second = make(name, [whole]), make(name, [pairs])
    for step in range(4):
        grad = treadle.complex(values(2, 3, phase=step), values(2, 3, phase=step + 0.5))
        whole.grad, pairs.grad = grad, treadle.view_as_real(grad).clone()
        first.step()
        second.step()
    np.testing.assert_array_equal(
        treadle.view_as_real(whole.detach()).numpy(), pairs.detach().numpy()
    )
    assert all(
        value.dtype == whole.dtype
        for key, value in first.state[whole].items()
        if value.shape == whole.shape
    )


@pytest.mark.parametrize("name", BY_GRADIENT)
@pytest.mark.parametrize("dtype", [treadle.float32, treadle.bfloat16, treadle.float16])
def test_precision(name: str, dtype: treadle.dtype) -> None:
    """Close to the same in float64, each state in the dtype of its parameter."""
    tolerance = {treadle.float32: 1e-5, treadle.bfloat16: 0.05, treadle.float16: 6e-3}[dtype]
    settings = {} if dtype == treadle.float32 else {"eps": 1e-3}
    if "eps" not in inspect.signature(getattr(optim, name)).parameters:
        settings = {}
    exact, rounded = nn.Parameter(values(40)), nn.Parameter(values(40).to(dtype))
    walk(make(name, [exact], **settings), [exact])
    optimizer = make(name, [rounded], **settings)
    walk(optimizer, [rounded])
    np.testing.assert_allclose(
        rounded.detach().double().numpy(), exact.detach().numpy(), rtol=tolerance, atol=tolerance
    )
    assert all(v.dtype == dtype for v in optimizer.state[rounded].values() if v.dim())


@pytest.mark.parametrize("name", BY_GRADIENT)
def test_parameters_of_several_dtypes_and_layouts(name: str) -> None:
    """The same as each parameter by itself, contiguous."""
    starts = [
        values(3, 4),
        values(3, 4).float(),
        values(4, 3).t(),
        values(6)[::2],
        values(2, 3, 2, 2).to(memory_format=treadle.channels_last),
        treadle.complex(values(2), values(2, phase=1.0)),
        values(),
        values(0, 3),
    ]
    together = [
        nn.Parameter(start.clone(memory_format=treadle.preserve_format)) for start in starts
    ]
    together[3] = values(6)[::2].detach().requires_grad_()  # stays with its gaps
    assert not together[2].is_contiguous() and not together[3].is_contiguous()
    walk(make(name, together), together)
    for i, start in enumerate(starts):
        alone = nn.Parameter(start.contiguous().clone())
        before = [nn.Parameter(treadle.zeros(1)) for _ in range(i)]  # only take their turns
        walk(make(name, [alone]), [*before, alone])
        np.testing.assert_array_equal(together[i].detach().numpy(), alone.detach().numpy())


def test_gradients_of_other_strides() -> None:
    """A gradient that repeats one number, and one the other way round."""
    a, b = nn.Parameter(treadle.zeros(2, 3)), nn.Parameter(treadle.zeros(2, 3))
    optimizer = optim.Adam([a, b], lr=0.5, eps=0.0)
    a.grad = treadle.ones(1).expand(2, 3)
    b.grad = treadle.tensor([[1.0, -2.0], [3.0, -4.0], [5.0, -6.0]]).t()
    optimizer.step()
    np.testing.assert_allclose(a.detach().numpy(), np.full((2, 3), -0.5), rtol=1e-6)
    np.testing.assert_allclose(b.detach().numpy(), [[-0.5] * 3, [0.5] * 3], rtol=1e-6)
    assert a.grad.tolist() == [[1.0] * 3] * 2


def test_no_data_is_needed() -> None:
    """On the meta device a step makes the state and nothing else."""
    for name in BY_GRADIENT:
        if name in ("ASGD", "NAdam"):
            continue
        param = nn.Parameter(treadle.ones(2, 3, device="meta"))
        param.grad = treadle.ones(2, 3, device="meta")
        optimizer = make(name, [param])
        optimizer.step()
        assert all(v.is_meta for v in optimizer.state[param].values() if v.dim())


# ---- recorded steps ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RECORDED)
def test_gradients_flow_through_a_step(name: str) -> None:
    """From the new parameter back to the old one and its gradient, as finite differences say."""
    warmup = nn.Parameter(values(4))
    before = make(name, [warmup])
    walk(before, [warmup], 2)
    state = copy.deepcopy(before.state[warmup])

    def step(start: treadle.Tensor, grad: treadle.Tensor) -> treadle.Tensor:
        param = start.clone()
        optimizer = make(name, [param], differentiable=True)
        optimizer.state[param].update({key: value.clone() for key, value in state.items()})
        param.grad = grad
        optimizer.step()
        return param

    start = values(4, phase=0.2).requires_grad_()
    grad = values(4, phase=0.7).requires_grad_()
    assert treadle.autograd.gradcheck(step, (start, grad))
    np.testing.assert_allclose(
        step(start, grad).detach().numpy(), _plain_step(name, start, grad, state), rtol=1e-12
    )


def _plain_step(name: str, start: Any, grad: Any, state: dict[str, Any]) -> np.ndarray:
    """The same step, not recorded."""
    param = nn.Parameter(start.detach().clone())
    optimizer = make(name, [param])
    optimizer.state[param].update({key: value.clone() for key, value in state.items()})
    param.grad = grad.detach()
    optimizer.step()
    return param.detach().numpy()


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "Adagrad"])
def test_gradients_of_the_settings(name: str) -> None:
    """Through two steps, with respect to the learning rate."""

    def steps(lr: treadle.Tensor) -> treadle.Tensor:
        param = values(4).requires_grad_().clone()
        optimizer = make(name, [param], lr=lr, differentiable=True)
        for phase in range(2):
            param.grad = values(4, phase=phase)
            optimizer.step()
        return param

    assert treadle.autograd.gradcheck(
        steps, (treadle.tensor(0.1, dtype=treadle.float64).requires_grad_(),)
    )


# ---- gradients of a scaled loss ------------------------------------------------------------------


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW"])
def test_scaled_gradients(name: str) -> None:
    """The step divides them, and is left out where they overflowed."""
    plain, scaled = nn.Parameter(values(5)), nn.Parameter(values(5))
    first, second = make(name, [plain]), make(name, [scaled], fused=True)
    assert second._step_supports_amp_scaling and not hasattr(first, "_step_supports_amp_scaling")
    for step in range(3):
        plain.grad = values(5, phase=step)
        scaled.grad = plain.grad * 8
        second.grad_scale, second.found_inf = treadle.tensor(8.0), treadle.tensor(0.0)
        first.step()
        second.step()
        assert scaled.grad.tolist() == plain.grad.tolist()
        kept = copy.deepcopy((scaled, second.state[scaled]))
        scaled.grad = treadle.full((5,), float("inf"), dtype=treadle.float64)
        second.found_inf = treadle.tensor(1.0)
        second.step()
        assert scaled.tolist() == kept[0].tolist()
        assert {k: v.tolist() for k, v in second.state[scaled].items()} == {
            k: v.tolist() for k, v in kept[1].items()
        }
    assert scaled.tolist() == plain.tolist()


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
def test_lbfgs_can_maximise(search):
    points = [nn.Parameter(treadle.tensor([1.0, -2.0])) for _ in range(2)]
    kinds = [
        optim.LBFGS([points[0]], lr=0.5, line_search_fn=search),
        optim.LBFGS([points[1]], lr=0.5, line_search_fn=search, maximize=True),
    ]
    for _ in range(3):
        for sign, point, optimizer in zip((1, -1), points, kinds):

            def closure():
                optimizer.zero_grad()
                loss = sign * ((point - 3) ** 4 + point**2).sum()
                loss.backward()
                return loss

            optimizer.step(closure)
    assert treadle.equal(*points) and points[0][0].item() != 1.0
    old = kinds[0].state_dict()
    del old["param_groups"][0]["maximize"]  # from before there was the choice
    kinds[0].load_state_dict(old)
    kinds[0].step(lambda: (points[0] ** 2).sum())


def test_lbfgs_takes_a_step_where_the_gradient_is_zero() -> None:
    x = treadle.zeros(2, requires_grad=True)
    optimizer = treadle.optim.LBFGS([x], lr=0.5, max_iter=2, tolerance_grad=-1)

    def closure() -> treadle.Tensor:
        optimizer.zero_grad()
        loss = (x * x).sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 0.0
    assert x.tolist() == [0.0, 0.0]


def test_gradients_of_nadam_flow_to_its_product_of_momenta() -> None:
    def stepped(product: treadle.Tensor) -> treadle.Tensor:
        x = treadle.tensor([1.0, 2.0], dtype=treadle.float64)
        weight = x.clone()
        optimizer = treadle.optim.NAdam([weight], differentiable=True)
        weight.grad = treadle.tensor([0.5, -1.0], dtype=treadle.float64)
        zeros = treadle.zeros_like(x)
        optimizer.state[weight].update(
            step=treadle.tensor(3.0), mu_product=product.clone(), exp_avg=zeros + 0.1,
            exp_avg_sq=zeros + 0.2,
        )  # fmt: skip
        optimizer.step()
        return weight

    product = treadle.tensor(0.7, dtype=treadle.float64, requires_grad=True)
    assert treadle.autograd.gradcheck(stepped, (product,))
