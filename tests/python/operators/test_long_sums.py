"""Long sums: every kernel of the model that adds keeps its digits over a million and ten million
terms, with the same bits at any number of threads. The table is accuracy/sums.py.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import numpy as np
import pytest
from accuracy.sums import BOUND, COUNTS, OTHERS, SUMS, error, reason

import treadle
import treadle.nn.functional as F
from treadle_testing.catalogue import operators


def test_every_kernel_adds_or_says_why_not() -> None:
    kernels = {
        op.id
        for op in operators()
        if op.kind in ("reduce", "kernel") and "float32" in op.dtypes and not op.random
    }
    missing = [k for k in kernels if k not in SUMS and not reason(k)]
    assert not missing, f"no row in accuracy/sums.py for {missing}"
    named = {*SUMS, *(n for names in OTHERS.values() for n in names.split())}
    assert named <= kernels, f"no such kernel: {named - kernels}"


@pytest.mark.parametrize("kernel", SUMS)
def test_a_million_terms(kernel: str) -> None:
    assert error(kernel, COUNTS[0]) <= BOUND


@pytest.mark.slow
@pytest.mark.parametrize("kernel", SUMS)
def test_ten_million_terms(kernel: str) -> None:
    assert error(kernel, COUNTS[1]) <= BOUND


def test_a_loss_of_many_samples_is_their_mean() -> None:
    losses = treadle.full((10**6, 1), -0.1)
    target = treadle.zeros(10**6, dtype=treadle.int64)
    assert abs(float(F.nll_loss(losses, target)) - 0.1) < 1e-7
    ones = treadle.full((2**25, 1), -1.0)
    target = treadle.zeros(2**25, dtype=treadle.int64)
    assert float(F.nll_loss(ones, target, reduction="sum")) == 2**25
    assert float(F.nll_loss(ones, target)) == 1


def test_weights_of_bins_are_added_up_exactly() -> None:
    weights = treadle.full((10**6,), 0.1)
    total = treadle.bincount(treadle.zeros(10**6, dtype=treadle.int64), weights)
    assert abs(float(total) / (10**6 * float(np.float32(0.1))) - 1) < 1e-7


@pytest.mark.parametrize("kernel", SUMS)
def test_the_same_bits_at_any_number_of_threads(kernel: str) -> None:
    case, n = SUMS[kernel], 10**5
    arrays = case.arguments(n, np.random.default_rng(0))
    threads, found = treadle.get_num_threads(), []
    try:
        for count in (1, 2, 3):
            treadle.set_num_threads(count)
            leaves = [treadle.from_numpy(a.astype(np.float32)).requires_grad_() for a in arrays]
            result = case.call(*(leaves if case.gradient else [t.detach() for t in leaves]))
            if case.gradient:
                result.backward(treadle.linspace(0, 1, result.numel()).reshape(result.shape))
            found.append(
                [result.detach().numpy(), *(t.grad.numpy() for t in leaves if t.grad is not None)]
            )
    finally:
        treadle.set_num_threads(threads)
    for others in found[1:]:
        for a, b in zip(found[0], others):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("shape", [(300, 3000), (3000, 300), (40, 30, 50)], ids=str)
def test_nan_adds_nothing(shape: tuple) -> None:
    numbers = np.random.default_rng(0).random(shape).astype(np.float32)
    has_nan = numbers < 0.3
    x = treadle.from_numpy(np.where(has_nan, np.float32(np.nan), numbers)).requires_grad_()
    zeros = treadle.from_numpy(np.where(has_nan, np.float32(0), numbers))
    for dim in (None, *range(len(shape))):
        total = treadle.nansum(x, dim)
        # The bits of the sum without them.
        np.testing.assert_array_equal(total.detach().numpy(), treadle.sum(zeros, dim).numpy())
        (slope,) = treadle.autograd.grad(total.sum() * np.inf, x)
        np.testing.assert_array_equal(slope.numpy(), np.where(has_nan, 0, np.inf))
