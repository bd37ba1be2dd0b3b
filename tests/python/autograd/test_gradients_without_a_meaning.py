"""Gradients of what the argument does not decide: the other half of a Hermitian matrix, vectors
that only complete others, rows that are masked."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import treadle
from treadle.testing import assert_close

INF = float("inf")


def test_the_gradient_of_a_hermitian_matrix_is_hermitian() -> None:
    generator = treadle.Generator().manual_seed(0)
    a = treadle.randn(4, 4, dtype=treadle.complex128, generator=generator)
    weights = treadle.randn(4, 4, dtype=treadle.complex128, generator=generator)
    a = (a @ a.mH).requires_grad_()
    (whole,) = treadle.autograd.grad((treadle.linalg.matrix_sqrth(a) * weights).real.sum(), a)
    assert_close(whole, whole.mH)
    (values,) = treadle.autograd.grad(treadle.linalg.eigvalsh(a)[0], a, create_graph=True)
    (second,) = treadle.autograd.grad((values * weights).real.sum(), a)
    assert_close(second, second.mH)


def test_vectors_that_complete_a_basis_have_no_gradient() -> None:
    generator = treadle.Generator().manual_seed(0)
    a = treadle.randn(4, 2, dtype=treadle.float64, generator=generator, requires_grad=True)
    u, s, v = treadle.svd(a, some=False)
    (found,) = treadle.autograd.grad((u.square()[:, :2].cos() + s).sum(), a)
    thin_u, thin_s, _ = treadle.svd(a)
    (wanted,) = treadle.autograd.grad((thin_u.square().cos() + thin_s).sum(), a)
    assert u.shape == (4, 4) and v.shape == (2, 2)
    assert_close(found, wanted)
    (rest,) = treadle.autograd.grad(treadle.linalg.svd(a)[0][:, 2:].sum(), a)
    assert not rest.any()


def test_a_row_without_a_number_has_no_gradient() -> None:
    x = treadle.tensor([[1.0, 2.0], [-INF, -INF]], requires_grad=True)
    result = treadle._safe_softmax(x, 1)
    assert result[1].tolist() == [0.0, 0.0]
    (found,) = treadle.autograd.grad(result[:, 0].sum(), x)
    assert found[1].tolist() == [0.0, 0.0] and found[0, 0] == -found[0, 1] != 0
