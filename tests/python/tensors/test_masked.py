"""Functions of the elements that a mask lets count."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import treadle
from treadle import masked
from treadle.testing import assert_close

RNG = np.random.default_rng(0)
DATA = RNG.standard_normal((3, 4, 5))
MASK = RNG.random((3, 4, 5)) < 0.6
MASK[1, 2] = False
X, M = treadle.tensor(DATA), treadle.tensor(MASK)
ARRAY = np.ma.array(DATA, mask=~MASK)


@pytest.mark.parametrize("dim", [None, (), 0, -1, (0, 2), (0, 1, 2)])
@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("name", ["sum", "prod", "amax", "amin", "mean", "var", "std"])
def test_reductions(name: str, dim: Any, keepdim: bool) -> None:
    axis = None if dim is None or dim == () else dim
    of_none = {"sum": 0.0, "prod": 1.0, "amax": -math.inf, "amin": math.inf}.get(name, math.nan)
    settings = {"ddof": 1} if name in ("var", "std") else {}
    array = ARRAY
    if name == "prod" and isinstance(axis, tuple):  # NumPy has one axis at a time here
        for one in sorted(axis, reverse=True):
            array = np.ma.prod(array, one, keepdims=keepdim)
        expected = array
    else:
        expected = getattr(np.ma, name)(array, axis, keepdims=keepdim, **settings)
    found = getattr(masked, name)(X, dim, keepdim=keepdim, mask=M)
    count = M.sum(tuple(range(3)) if axis is None else axis, keepdim=keepdim)
    known = count > (1 if settings else 0)
    wanted = treadle.tensor(np.ma.filled(expected, of_none))
    assert found.shape == wanted.shape
    assert_close(found[known], wanted[known])
    if name not in ("var", "std"):
        assert_close(found[~known], wanted[~known], equal_nan=True)


def test_places_medians_and_norms() -> None:
    rows = np.ma.filled(ARRAY, -np.inf).argmax(1)
    assert (masked.argmax(X, 1, mask=M).long().numpy() == rows).all()
    assert masked.argmin(X.float(), mask=M).dtype == treadle.float32
    found = masked.median(X, 2, mask=M)
    rows = zip(found.flatten().tolist(), DATA.reshape(-1, 5), MASK.reshape(-1, 5))
    for row, values, counts in rows:
        left = sorted(values[counts])
        assert row == left[(len(left) - 1) // 2] if left else math.isnan(row)
    assert_close(masked.norm(X, 1, 0, mask=M), (X.abs() * M).sum(0))
    assert_close(masked.norm(X, mask=M), (X * X * M).sum().sqrt())
    assert masked.norm(X, -math.inf, mask=M) == X[M].abs().min()
    with pytest.raises(ValueError, match="^masked.median: expected a floating dtype, got treadle."):
        masked.median(X.long(), 1, mask=M)


def test_exponentials() -> None:
    hidden = X.masked_fill(~M, -math.inf)
    assert_close(masked.logsumexp(X, (1, 2), mask=M), hidden.logsumexp((1, 2)))
    assert_close(masked.softmax(X, 0, mask=M), hidden.softmax(0), equal_nan=True)
    assert_close(masked.log_softmax(X, 1, mask=M), hidden.log_softmax(1), equal_nan=True)
    low = (-X).masked_fill(~M, -math.inf).softmax(0)
    assert_close(masked.softmin(X, 0, mask=M), low, equal_nan=True)
    both = masked.logaddexp(X, X, input_mask=M, other_mask=~M)
    assert_close(both, X)
    size = (X * X * M).sum(1, keepdim=True).sqrt()
    assert_close(masked.normalize(X, 2, 1, mask=M), X * M / size.clamp(min=1e-12))
    assert_close(masked.cumsum(X, 1, mask=M), (X * M).cumsum(1))
    assert_close(masked.cumprod(X, 2, mask=M), X.masked_fill(~M, 1).cumprod(2))


def test_dtypes_and_gradients() -> None:
    whole = treadle.tensor([1, 2, 3], dtype=treadle.int32)
    some = treadle.tensor([True, False, True])
    assert masked.sum(whole, mask=some).dtype == treadle.int64
    assert masked.amax(whole, mask=~some | some).item() == 3
    assert masked.amax(whole, mask=some & ~some) == treadle.iinfo(treadle.int32).min
    assert masked.mean(whole, mask=some).dtype == treadle.float32
    assert masked.sum(whole, dtype=treadle.float64).dtype == treadle.float64
    x = X.clone().requires_grad_()
    mask = M[:, :2].clone()
    mask[0] = True
    part = X[:, :2].clone().requires_grad_()
    assert treadle.autograd.gradcheck(lambda x: masked.mean(x, 0, mask=mask), part)
    masked.var(x, mask=M).backward()
    assert (x.grad[~M] == 0).all() and (x.grad[M] != 0).any()


def test_what_does_not_fit() -> None:
    with pytest.raises(TypeError, match="^masked: expected a mask of bools, got treadle.float64$"):
        masked.sum(X, mask=X)
    text = r"^masked: expected each dimension once, got \(0, -3\)$"
    with pytest.raises(RuntimeError, match=text):
        masked.sum(X, (0, -3), mask=M)
    with pytest.raises(ValueError, match="^masked: expected unbiased or correction, got both$"):
        masked.var(X, 0, True, correction=0)


def test_masked_tensors() -> None:
    m = masked.masked_tensor(X, M)
    assert isinstance(m, treadle.Tensor) and masked.is_masked_tensor(m)
    assert not masked.is_masked_tensor(X)
    assert treadle.equal(m.get_data(), X) and treadle.equal(m.get_mask(), M)
    assert treadle.equal(m.to_tensor(7.0), X.masked_fill(~M, 7.0))
    doubled = m + m
    assert treadle.equal((2 * m).to_tensor(0), doubled.to_tensor(0))
    assert treadle.equal(doubled.get_data(), X * 2) and treadle.equal(doubled.get_mask(), M)
    assert treadle.equal(m.exp().to_tensor(0.0), X.exp() * M)
    rows = m.mean(2)
    assert treadle.equal(rows.get_mask(), M.any(2))
    assert_close(rows.get_data(), masked.mean(X, 2, mask=M), equal_nan=True)
    assert m.sum().get_data().item() == pytest.approx(DATA[MASK].sum())
    turned = m.transpose(0, 1)[1]
    assert treadle.equal(turned.get_mask(), M[:, 1]) and treadle.equal(turned.get_data(), X[:, 1])
    assert m.shape == X.shape and m.dtype == X.dtype


def test_gradients_of_masked_tensors() -> None:
    m = masked.masked_tensor(X, M, requires_grad=True)
    (m * 3).sum().get_data().backward()
    assert treadle.equal(m.grad.as_subclass(treadle.Tensor), 3.0 * M)
    x = X.clone().requires_grad_()
    masked.as_masked_tensor(x, M).mean().get_data().backward()
    assert_close(x.grad, M.double() / M.sum())


def test_masked_tensors_as_text() -> None:
    mask = treadle.tensor([[True, False], [False, True]])
    m = masked.masked_tensor(treadle.tensor([[1.0, 2.0], [3.0, -4.5]]), mask)
    assert repr(m) == "MaskedTensor(\n  [\n    [1.0000,     --],\n    [     --, -4.5000]\n  ]\n)"
    assert repr(masked.masked_tensor(treadle.tensor(3), treadle.tensor(True))) == (
        "MaskedTensor(\n  3\n)"
    )


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: masked.masked_tensor(X, X),
            TypeError,
            "masked_tensor: expected a mask of bools, got treadle.float64",
        ),
        (
            lambda: masked.masked_tensor(X, M[0]),
            ValueError,
            "masked_tensor: expected a mask of shape (3, 4, 5), got (4, 5)",
        ),
        (
            lambda: masked.as_masked_tensor([1], M),
            TypeError,
            "masked_tensor: expected data to be a tensor, got list",
        ),
        (
            lambda: masked.masked_tensor(X, M) + masked.masked_tensor(X, ~M),
            ValueError,
            "MaskedTensor: expected tensors of one mask, got two that differ",
        ),
        (
            lambda: treadle.diag_embed(masked.masked_tensor(X, M)),
            TypeError,
            "MaskedTensor: expected a function that keeps masks, got diag_embed",
        ),
    ],
)
def test_masked_tensors_that_do_not_fit(call: Any, error: Any, message: str) -> None:
    with pytest.raises(error) as raised:
        call()
    assert str(raised.value) == message
