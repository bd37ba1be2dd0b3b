"""Adafactor, Muon and SparseAdam against their formulas in NumPy; the algorithms as functions; what
optimisers outside of the package are written with."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import treadle
from treadle import optim
from treadle.optim import functional
from treadle.optim.optimizer import (
    _default_to_fused_or_foreach,
    _use_grad_for_differentiable,
)

RNG = np.random.default_rng(0)


def parameter(*shape: int) -> treadle.Tensor:
    return treadle.tensor(RNG.standard_normal(shape), requires_grad=True)


def steps(optimizer: Any, params: list[treadle.Tensor], grads: list[list[np.ndarray]]) -> None:
    for values in grads:
        for param, value in zip(params, values):
            param.grad = treadle.tensor(value)
        optimizer.step()


def gradients(count: int, *shapes: tuple[int, ...]) -> list[list[np.ndarray]]:
    return [[RNG.standard_normal(shape) for shape in shapes] for _ in range(count)]


def adafactor(x: np.ndarray, grads: list[np.ndarray], lr: float, decay: float) -> np.ndarray:
    def rms(a: np.ndarray) -> float:
        return float(np.sqrt(np.mean(a * a)))

    rows = columns = variance = 0.0
    eps = np.finfo(np.float64).eps
    for t, g in enumerate(grads, 1):
        keep = 1 - t**-0.8
        rate = max(1e-3, rms(x)) * min(lr, 1 / np.sqrt(t))
        x = x * (1 - lr * decay)
        if x.ndim > 1:
            rows = keep * rows + (1 - keep) * np.mean(g * g, -1, keepdims=True)
            columns = keep * columns + (1 - keep) * np.mean(g * g, -2, keepdims=True)
            estimate = rows @ columns / np.mean(rows, -2, keepdims=True)
        else:
            variance = keep * variance + (1 - keep) * g * g
            estimate = variance
        update = g / np.sqrt(np.maximum(estimate, eps * eps))
        x = x - rate / max(1.0, rms(update)) * update
    return x


@pytest.mark.parametrize("shape", [(4, 3), (5,), (2, 3, 4)])
def test_adafactor(shape: tuple[int, ...]) -> None:
    param = parameter(*shape)
    start = param.detach().numpy().copy()
    grads = gradients(4, shape)
    optimizer = optim.Adafactor([param], lr=0.05, weight_decay=0.1)
    steps(optimizer, [param], grads)
    want = adafactor(start, [g for (g,) in grads], 0.05, 0.1)
    np.testing.assert_allclose(param.detach().numpy(), want, rtol=1e-12)
    kept = {"row_var", "col_var"} if len(shape) > 1 else {"variance"}
    assert set(optimizer.state[param]) == {"step", *kept}


def test_muon_steps_along_an_orthogonal_matrix() -> None:
    param = parameter(6, 4)
    start = param.detach().numpy().copy()
    (grad,) = gradients(1, (6, 4))
    optimizer = optim.Muon([param], lr=0.1, weight_decay=0.5, adjust_lr_fn="match_rms_adamw")
    steps(optimizer, [param], [grad])
    moved = (start * (1 - 0.1 * 0.5) - param.detach().numpy()) / (0.1 * 0.2 * 6**0.5)
    # Newton-Schulz with these coefficients leaves singular values near 1, not at it.
    values = np.linalg.svd(moved, compute_uv=False)
    assert 0.6 < values.min() and values.max() < 1.3
    u, _, vt = np.linalg.svd(grad[0], full_matrices=False)
    assert np.abs(moved - u @ vt).max() < 0.3
    np.testing.assert_allclose(
        optimizer.state[param]["momentum_buffer"].numpy(), 0.05 * grad[0], rtol=1e-12
    )


def test_muon_takes_matrices_alone() -> None:
    with pytest.raises(ValueError, match="Muon only supports 2D parameters"):
        optim.Muon([parameter(3)])
    with pytest.raises(ValueError, match="Adjust learning rate function other is not supported"):
        optim.Muon([parameter(3, 3)], adjust_lr_fn="other")


def test_sparse_adam_leaves_rows_without_entries_alone() -> None:
    table, dense = parameter(4, 2), treadle.zeros(2, 2, dtype=treadle.float64, requires_grad=True)
    start = table.detach().clone()
    with treadle.no_grad():
        dense.copy_(table[1::2])
    # The epsilon is added before the bias is corrected here, after it there.
    settings = {"lr": 0.1, "eps": 1e-16}
    sparse_adam, adam = optim.SparseAdam([table], **settings), optim.Adam([dense], **settings)
    for _ in range(3):
        row = RNG.standard_normal((2, 2))
        whole = np.zeros((4, 2))
        whole[1::2] = row
        steps(sparse_adam, [table], [[whole]])
        steps(adam, [dense], [[row]])
    np.testing.assert_allclose(table.detach().numpy()[1::2], dense.detach().numpy(), rtol=1e-12)
    assert table[::2].equal(start[::2])


def test_the_function_takes_sparse_gradients() -> None:
    param = treadle.zeros(3, 2)
    grad = treadle.sparse_coo_tensor([[1, 1]], [[1.0, 2.0], [1.0, 0.0]], (3, 2))
    means, squares = treadle.zeros(3, 2), treadle.zeros(3, 2)
    functional.sparse_adam(
        [param], [grad], [means], [squares], [1],
        eps=1e-8, beta1=0.9, beta2=0.999, lr=0.5, maximize=False,
    )  # fmt: skip
    treadle.testing.assert_close(param, treadle.tensor([[0, 0], [-0.5, -0.5], [0, 0]]))
    treadle.testing.assert_close(means[1], treadle.tensor([0.2, 0.2]))


def test_complex_parameters_are_refused() -> None:
    param = treadle.zeros(2, 2, dtype=treadle.complex64, requires_grad=True)
    param.grad = treadle.ones_like(param)
    for name in ("Adafactor", "Muon"):
        with pytest.raises(RuntimeError, match=f"^{name} does not support complex parameters$"):
            getattr(optim, name)([param]).step()
    with pytest.raises(ValueError, match="SparseAdam does not support complex parameters"):
        optim.SparseAdam([param])


# ---- functions -----------------------------------------------------------------------------------

ALGORITHMS: dict[str, tuple[type, dict[str, Any], dict[str, str]]] = {
    "adadelta": (optim.Adadelta, dict(lr=0.5, rho=0.8, eps=1e-6, weight_decay=0.1),
                 {"square_avgs": "square_avg", "acc_deltas": "acc_delta"}),
    "adagrad": (optim.Adagrad, dict(lr=0.1, lr_decay=0.1, eps=1e-8, weight_decay=0.1),
                {"state_sums": "sum"}),
    "adamax": (optim.Adamax, dict(lr=0.1, eps=1e-8, weight_decay=0.1),
               {"exp_avgs": "exp_avg", "exp_infs": "exp_inf"}),
    "adam": (optim.Adam, dict(lr=0.1, eps=1e-8, weight_decay=0.1, amsgrad=False),
             {"exp_avgs": "exp_avg", "exp_avg_sqs": "exp_avg_sq", "max_exp_avg_sqs": ""}),
    "adamw": (optim.AdamW, dict(lr=0.1, eps=1e-8, weight_decay=0.1, amsgrad=True),
              {"exp_avgs": "exp_avg", "exp_avg_sqs": "exp_avg_sq",
               "max_exp_avg_sqs": "max_exp_avg_sq"}),
    "nadam": (optim.NAdam, dict(lr=0.1, eps=1e-8, weight_decay=0.1, momentum_decay=0.1),
              {"exp_avgs": "exp_avg", "exp_avg_sqs": "exp_avg_sq", "mu_products": "mu_product"}),
    "radam": (optim.RAdam, dict(lr=0.1, eps=1e-8, weight_decay=0.1),
              {"exp_avgs": "exp_avg", "exp_avg_sqs": "exp_avg_sq"}),
    "rmsprop": (optim.RMSprop, dict(lr=0.1, alpha=0.9, eps=1e-8, weight_decay=0.1, momentum=0.5,
                                    centered=True),
                {"square_avgs": "square_avg", "grad_avgs": "grad_avg",
                 "momentum_buffer_list": "momentum_buffer"}),
    "asgd": (optim.ASGD, dict(lr=0.1, lambd=0.1, t0=1, alpha=0.5, weight_decay=0.1),
             {"axs": "ax", "mus": "mu", "etas": "eta"}),
}  # fmt: skip


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_function_does_the_optimisers_step(name: str) -> None:
    cls, settings, lists = ALGORITHMS[name]
    params = [parameter(3), parameter(2, 2)]
    optimizer = cls(params, **settings)
    steps(optimizer, params, gradients(2, (3,), (2, 2)))
    copies = [param.detach().clone() for param in params]
    states = [optimizer.state[param] for param in params]
    given = {n: [s[key].clone() for s in states] if key else [] for n, key in lists.items()}
    counts = [state["step"].clone() for state in states]
    (values,) = gradients(1, (3,), (2, 2))
    steps(optimizer, params, [values])
    plain = {n: v for n, v in settings.items()}
    if "betas" in optimizer.defaults:
        plain["beta1"], plain["beta2"] = optimizer.defaults["betas"]
    grads = [treadle.tensor(value) for value in values]
    getattr(functional, name)(
        copies, grads, *given.values(), state_steps=counts, maximize=False, **plain
    )
    for mine, theirs in zip(copies, params):
        assert mine.equal(theirs.detach())
    for n, key in lists.items():
        assert all(mine.equal(s[key]) for mine, s in zip(given[n], states))
    assert counts[0].item() == 3


def test_sgd_as_a_function_fills_the_buffers() -> None:
    param, buffers = treadle.ones(2), [None]
    settings = dict(
        weight_decay=0, momentum=0.5, lr=0.1, dampening=0, nesterov=False, maximize=False
    )
    for _ in range(2):
        functional.sgd([param], [treadle.ones(2)], buffers, **settings)
    assert buffers[0].tolist() == [1.5, 1.5]
    treadle.testing.assert_close(param, treadle.full((2,), 0.75))
    functional.sgd([param], [param], buffers, found_inf=treadle.ones(()), **settings)
    treadle.testing.assert_close(param, treadle.full((2,), 0.75))


# ---- for authors of optimisers -------------------------------------------------------------------


def test_the_decorator_of_step() -> None:
    class Mine(optim.Optimizer):
        def __init__(self, params: Any, differentiable: bool) -> None:
            super().__init__(params, {"differentiable": differentiable})

        @_use_grad_for_differentiable
        def step(self, closure: Any = None) -> bool:
            return treadle.is_grad_enabled()

    assert not Mine([parameter(1)], False).step()
    assert Mine([parameter(1)], True).step()


def test_which_implementation_suits() -> None:
    params = [parameter(1)]
    assert _default_to_fused_or_foreach(params, False) == (False, False)
    assert _default_to_fused_or_foreach(params, False, use_fused=True) == (True, False)
    assert _default_to_fused_or_foreach(params, True, use_fused=True) == (False, False)


def test_tensors_by_device_and_dtype() -> None:
    x, y, z = treadle.ones(1), treadle.ones(2).double(), treadle.ones(3)
    groups = optim.Optimizer._group_tensors_by_device_and_dtype([[x, y, z], [z, None, x], []], True)
    cpu = treadle.device("cpu")
    assert list(groups) == [(cpu, treadle.float32), (cpu, treadle.float64)]
    (first, second, none), places = groups[cpu, treadle.float32]
    assert [first[0] is x, first[1] is z, second[0] is z, second[1] is x] == [True] * 4
    assert none == [] and places == [0, 2]
    assert groups[cpu, treadle.float64][0][1] == [None]
    with pytest.raises(RuntimeError, match="expected lists of 1 tensors, as the first one, got 2"):
        treadle._C._group_tensors_by_device_and_dtype([[x], [y, z]], False)


def test_other_parameters_and_state_for_a_while() -> None:
    param = parameter(2)
    optimizer = optim.SGD([param], lr=1.0, momentum=0.5)
    steps(optimizer, [param], [[np.ones(2)]])
    before, state = param.detach().clone(), optimizer.state_dict()
    other = treadle.zeros(2, dtype=treadle.float64)
    other.grad = treadle.ones_like(other)
    lent = {
        "state": {0: {"momentum_buffer": treadle.ones(2, dtype=treadle.float64)}},
        "param_groups": [{**state["param_groups"][0], "lr": 2.0}],
    }
    with optim.swap_in_optimizer_params_and_state(optimizer, {"weight": other}, lent):
        optimizer.step()
    assert other.tolist() == [-3.0, -3.0] and param.detach().equal(before)
    assert lent["state"][0]["momentum_buffer"].tolist() == [1.5, 1.5]
    assert optimizer.param_groups[0]["lr"] == 1.0
    with pytest.raises(ValueError, match=r"expected parameters and groups as the optimizer has"):
        with optim.swap_in_optimizer_params_and_state(optimizer, {}, lent):
            pass


def test_bfloat16_products_keep_their_factors() -> None:
    x = treadle.tensor([[1.0]]).bfloat16()
    sum_ = treadle.addmm(x, x, x, beta=3.4445, alpha=-2.4445)  # 3.4445 is no bfloat16
    assert sum_.item() == 1.0
    batch = treadle.baddbmm(x[None], x[None], x[None], beta=3.4445, alpha=-2.4445)
    assert batch.item() == 1.0


@pytest.mark.parametrize("interval", [-1, 2**31])
def test_an_interval_that_no_counter_reaches_is_refused_before_anything_is_written(
    interval: int,
) -> None:
    scale, steps = treadle.tensor([8.0]), treadle.tensor([3], dtype=treadle.int32)
    with pytest.raises(RuntimeError) as refused:
        treadle._amp_update_scale_(scale, steps, treadle.tensor([0.0]), 2.0, 0.5, interval)
    assert str(refused.value) == (
        f"_amp_update_scale_: expected growth_interval from 0 to 2147483647, got {interval}"
    )
    assert scale.item() == 8.0 and steps.item() == 3
