"""Batch normalisation: what training writes into the running statistics."""

# SPDX-License-Identifier: Apache-2.0

import numpy as np

import treadle


def test_running_statistics() -> None:
    x = treadle.randn(6, 2)
    mean, var = treadle.zeros(2), treadle.ones(2)
    treadle.batch_norm(x, None, None, mean, var, True, 0.1, 1e-5, True)
    a = x.numpy()
    np.testing.assert_allclose(mean.numpy(), 0.1 * a.mean(0), rtol=1e-5, atol=1e-6)
    # The running variance is the unbiased one.
    np.testing.assert_allclose(var.numpy(), 0.9 + 0.1 * a.var(0, ddof=1), rtol=1e-5)
