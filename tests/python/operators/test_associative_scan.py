"""associative_scan against running sums, products and a recurrence."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import pytest

import treadle
from treadle._higher_order_ops.associative_scan import associative_scan
from treadle.testing import assert_close


@pytest.mark.parametrize("size", range(1, 10))
@pytest.mark.parametrize("mode", ["pointwise", "generic"])
def test_running_sums(size: int, mode: str) -> None:
    x = treadle.arange(6.0 * size).reshape(2, size, 3)
    add = lambda a, b: a + b  # noqa: E731
    assert_close(associative_scan(add, x, 1, combine_mode=mode), x.cumsum(1))
    backwards = x.flip(1).cumsum(1).flip(1)
    assert_close(associative_scan(add, x, -2, reverse=True, combine_mode=mode), backwards)


def test_a_recurrence_and_its_gradient() -> None:
    treadle.manual_seed(0)
    gate, new = (treadle.rand(7, 2, dtype=treadle.float64, requires_grad=True) for _ in range(2))
    scanned = associative_scan(lambda a, b: (a[0] * b[0], b[0] * a[1] + b[1]), (gate, new), 0)[1]
    state, states = treadle.zeros(2, dtype=treadle.float64), []
    for i in range(7):
        state = gate[i] * state + new[i]
        states.append(state)
    expected = treadle.stack(states)
    assert_close(scanned, expected)
    grads = treadle.autograd.grad(scanned.sin().sum(), (gate, new))
    assert_close(grads, treadle.autograd.grad(expected.sin().sum(), (gate, new)))


def test_order_is_kept_where_it_matters() -> None:
    treadle.manual_seed(0)
    matrices = treadle.randn(6, 2, 2, dtype=treadle.float64)
    products = associative_scan(lambda a, b: a @ b, matrices, 0, combine_mode="generic")
    assert_close(products[5], treadle.linalg.multi_dot(list(matrices)))


def test_arguments_that_do_not_fit() -> None:
    x, add = treadle.ones(4), lambda a, b: a + b
    with pytest.raises(ValueError, match="expected combine_mode to be 'pointwise' or 'generic'"):
        associative_scan(add, x, 0, combine_mode="z")
    with pytest.raises(TypeError, match="expected combine_fn to be a function"):
        associative_scan(3, x, 0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="associative_scan: expected tensors, got none"):
        associative_scan(add, [], 0)
    with pytest.raises(ValueError, match=r"expected one size along dimension 0, got \[3, 4\]"):
        associative_scan(add, [x, x[:3]], 0)
    with pytest.raises(RuntimeError, match="expected combine_fn to return what it was given"):
        associative_scan(lambda a, b: (a + b).sum(), x, 0)
    with pytest.raises(IndexError):
        associative_scan(add, x, 3)


def test_names_of_modules_that_programs_look_at() -> None:
    from treadle.nn.modules import module
    from treadle.nn.parameter import UninitializedTensorMixin, is_lazy

    lazy = treadle.nn.LazyLinear(3).weight
    assert is_lazy(lazy) and isinstance(lazy, UninitializedTensorMixin)
    assert not is_lazy(treadle.nn.Linear(2, 2).weight)
    handle = treadle.nn.modules.module.register_module_forward_hook(lambda *args: None)
    assert len(module._global_forward_hooks) == 1
    handle.remove()
    assert not module._global_forward_hooks and not module._global_parameter_registration_hooks
    assert module._EXTRA_STATE_KEY_SUFFIX == "_extra_state"
    loaded = treadle.nn.Linear(2, 2).load_state_dict({}, strict=False)
    assert isinstance(loaded, module._IncompatibleKeys)
    assert treadle.nn.init._calculate_correct_fan(treadle.ones(2, 3), "FAN_IN") == 3
