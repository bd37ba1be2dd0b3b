"""The results of operators for arguments at the edge of what they take, as programs rely on it."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import pytest

import treadle
import treadle.nn.functional as F  # noqa: N812


def test_factors_of_integer_products_lose_their_fractions() -> None:
    matrix, vector = treadle.tensor([[1, 2], [3, 4]]), treadle.tensor([5, 6])
    product = matrix @ vector
    found = treadle.addmv(vector, matrix, vector, beta=1.9, alpha=2.5)
    assert found.equal(vector + 2 * product)
    # A term whose factor is cut to 0 is not looked at.
    assert treadle.addmm(matrix, matrix, matrix, beta=0.5).equal(matrix @ matrix)
    batch = matrix[None]
    assert treadle.baddbmm(batch, batch, batch, beta=0.2, alpha=0.6).equal(batch * 0)
    assert treadle.addbmm(matrix, batch, batch, beta=2.9, alpha=-1.5).equal(
        2 * matrix - matrix @ matrix
    )


def test_ranges_of_integers_begin_and_step_by_integers() -> None:
    assert treadle.arange(-4.5, 3, 2, dtype=treadle.int64).tolist() == [-4, -2, 0, 2]
    assert treadle.arange(0.1, -7.9, -4.0, dtype=treadle.int64).tolist() == [0, -4]
    assert treadle.arange(0.9, 5, 1.7, dtype=treadle.int32).tolist() == [0, 1, 2]
    assert treadle.linspace(4.3, 10.9, 4, dtype=treadle.int64).tolist() == [4, 6, 8, 10]
    assert treadle.logspace(2, 1.2, 2, dtype=treadle.int64).tolist() == [100, 10]
    out = treadle.empty(0)
    assert treadle.arange(1, 4, out=out) is out and out.tolist() == [1, 2, 3]


def test_batch_norm_of_nothing() -> None:
    mean, var = treadle.zeros(3), treadle.ones(3)
    weight = treadle.ones(3, requires_grad=True)
    x = treadle.ones(0, 3, 2, requires_grad=True)
    result = F.batch_norm(x, mean, var, weight, training=True)
    result.sum().backward()
    assert result.shape == (0, 3, 2) and x.grad.shape == (0, 3, 2)
    assert weight.grad.tolist() == [0, 0, 0]
    assert mean.tolist() == [0, 0, 0] and var.tolist() == [1, 1, 1]
    assert F.batch_norm(treadle.ones(0), treadle.ones(0), treadle.ones(0)).shape == (0,)


def test_divergence_of_what_is_no_probability() -> None:
    target = treadle.tensor([0.0, -1.0, float("nan")])
    loss = F.kl_div(treadle.zeros(3), target, reduction="none")
    assert loss[0] == 0 and loss[1:].isnan().all()


def test_bounds_of_logit_that_changed_places() -> None:
    x = treadle.tensor([0.1, 0.45, 0.9])
    low, high = treadle.logit(treadle.tensor([0.7, 0.3])).tolist()
    assert treadle.logit(x, 0.7).tolist() == [low, low, high]


def test_positions_along_a_dimension_count_from_the_end() -> None:
    x = treadle.tensor([[1, 2, 3], [4, 5, 6]])
    assert treadle.take_along_dim(x, treadle.tensor([[-1], [-3]]), 1).tolist() == [[3], [4]]
    assert treadle.take_along_dim(x, treadle.tensor([-1, 0])).tolist() == [6, 1]
    with pytest.raises(IndexError, match=r"gather: expected index in \[0, 3\), got index = -1"):
        treadle.take_along_dim(x, treadle.tensor([[-4], [0]]), 1)


def test_dropout_takes_what_it_does_not_drop() -> None:
    whole, z = treadle.tensor([1, 2]), treadle.ones(2, 3, dtype=treadle.complex64)
    for function in (F.dropout, F.alpha_dropout):
        assert function(whole, 0.5, False).equal(whole)
        assert (function(z, 1.0, True) == 0).all()
    kept = F.dropout(treadle.ones(1000, dtype=treadle.complex64), 0.5, True)
    assert set(kept.tolist()) == {0j, 2 + 0j}
    said = "dropout: expected input of a floating or complex dtype"
    with pytest.raises(RuntimeError, match=said):
        F.dropout(whole, 0.5, True)


def test_complex_numbers_in_operators_of_real_ones() -> None:
    inf, nan = float("inf"), float("nan")
    z = treadle.tensor([complex(nan, 1), complex(2, -inf)])
    assert treadle.nan_to_num(z, neginf=-3.0).tolist() == [1j, 2 - 3j]
    z = treadle.tensor([1 + 2j, -1 + 0.5j], dtype=treadle.complex128)
    treadle.testing.assert_close(treadle.logsumexp(z, 0), z.exp().sum().log())
    treadle.testing.assert_close(
        F.rms_norm(z, (2,), eps=0.0), z / (z * z).mean().sqrt(), check_dtype=True
    )
    drawn = treadle.rand(1000, dtype=treadle.complex64)
    for part in (drawn.real, drawn.imag, treadle.empty_like(drawn).uniform_(0, 1).imag):
        assert 0 <= part.min() < 0.1 and 0.9 < part.max() < 1


def test_weights_of_another_dtype_in_rms_norm() -> None:
    x = treadle.tensor([3.0, 4.0], dtype=treadle.float64)
    result = F.rms_norm(x, (2,), treadle.tensor([1.0, 2.0]), eps=0.0)
    treadle.testing.assert_close(result, x / (12.5**0.5) * treadle.tensor([1.0, 2.0]).double())


def test_dtypes_of_sums_of_small_integers() -> None:
    x = treadle.ones(2, 3, dtype=treadle.uint8)
    assert treadle.einsum("ij->i", x).dtype == treadle.int64
    assert treadle.einsum("ij,kj->ik", x, x).dtype == treadle.uint8
    assert F.bilinear(x, x, treadle.ones(1, 3, 3, dtype=treadle.uint8)).dtype == treadle.uint8
    assert treadle.unravel_index(treadle.tensor(4, dtype=treadle.uint8), (2, 300))[1].item() == 4
    assert treadle.masked.cumsum(x, 1).dtype == treadle.uint8
    assert treadle.masked.logsumexp(treadle.tensor([2, 2])).item() == 2
    assert treadle.masked.var(treadle.ones(3, dtype=treadle.complex64)).dtype == treadle.complex64


def test_out_of_operators_that_had_none() -> None:
    x, w = treadle.ones(2, 3), treadle.ones(4, 3)
    for call in (
        lambda **out: F.linear(x, w, **out),
        lambda **out: F.avg_pool2d(x[None], 1, **out),
        lambda **out: treadle.quantile(x, 0.5, **out),
        lambda **out: treadle.empty(2, 3, **out),
        lambda **out: treadle.normal(x, 1.0, **out),
        lambda **out: treadle.multinomial(x, 2, **out),
    ):
        expected = call()
        out = treadle.empty(0, dtype=expected.dtype)
        assert call(out=out) is out and out.shape == expected.shape
    out = (treadle.empty(0), treadle.empty(0))
    result = treadle.triangular_solve(treadle.ones(2, 1), treadle.eye(2), out=out)
    assert result[0] is out[0] and out[0].tolist() == [[1], [1]]


def test_pieces_that_are_written() -> None:
    x = treadle.arange(6).reshape(2, 3)
    out = [treadle.empty(0, dtype=treadle.int64), treadle.empty(3, dtype=treadle.int64)]
    assert treadle.unbind_copy(x, out=out) is None
    assert [t.tolist() for t in out] == [[0, 1, 2], [3, 4, 5]]
    memory = treadle.zeros(6, dtype=treadle.int64)
    row = treadle.empty(3, dtype=treadle.int64)
    for dim, given, said in (
        (1, out, "unbind_copy: expected 3 tensors in out, got 2"),
        (0, [memory[:2], row],
         "unbind_copy: expected an out of shape (3,), for it is a view and may not take in what "
         "lies beside it, got (2,)"),
        (0, [memory[:3], memory[2:5]],
         "unbind_copy: expected outs in memory of their own, got outs 0 and 1 that overlap"),
        (0, [row, treadle.empty(3, dtype=treadle.bool)],
         "unbind_copy: expected out of a dtype that int64 can be cast to, got bool"),
        (0, [row, treadle.empty(3, device="meta")],
         "unbind_copy: expected out on cpu, got out on meta"),
    ):  # fmt: skip
        with pytest.raises(RuntimeError) as info:
            treadle.unbind_copy(x, dim, out=given)
        assert str(info.value) == said
    assert memory.tolist() == [0] * 6


def test_segments_that_do_not_fit() -> None:
    x = treadle.ones(4)
    for kwargs, said in (
        ({}, "segment_reduce: expected lengths or offsets, got neither"),
        ({"lengths": treadle.tensor([1, 2])},
         "segment_reduce: expected lengths that sum to the size of the dimension, 4, got others; "
         "unsafe=True lets them"),
        ({"lengths": treadle.tensor([5, -1])},
         "segment_reduce: expected lengths >= 0, got one below"),
        ({"lengths": treadle.tensor([4.0])},
         "segment_reduce: expected lengths or offsets of dtype int64 or int32, got "
         "treadle.float32"),
        ({"lengths": treadle.tensor([[4]])},
         "segment_reduce: expected lengths or offsets with the sizes of data before axis and one "
         "more, got (1, 1) for data of shape (4,) and axis = 0"),
    ):  # fmt: skip
        with pytest.raises(RuntimeError) as info:
            treadle.segment_reduce(x, "sum", **kwargs)
        assert str(info.value) == said


def test_chunks_of_tensors_that_do_not_fit() -> None:
    a, b = treadle.ones(2, 3), treadle.ones(4)
    for tensors, dim, said in (
        ([], 0, "expected a non-empty list of tensors, got an empty one"),
        ([a, b], -1, "expected dim >= 0 for tensors that differ in their dimensions, got dim = -1"),
        ([a, b], 1, "expected a dim that every tensor has, got dim = 1 for shape (4,)"),
        ([a, a[:1]], 1,
         "expected tensors with the same sizes before dim, got shapes (2, 3) and (1, 3)"),
        ([b[:0]], 0, "expected tensors with elements, got shape (0,)"),
    ):  # fmt: skip
        with pytest.raises(RuntimeError) as info:
            treadle._chunk_cat(tensors, dim, 2)
        assert str(info.value) == f"_chunk_cat: {said}"


def test_linear_cross_entropy_says_what_does_not_fit() -> None:
    x, w, target = treadle.ones(2, 3), treadle.ones(4, 3), treadle.tensor([0, 1])
    for call, said in (
        (lambda: F.linear_cross_entropy(x[None], w, target),
         "input (in) or (N, in), got (1, 2, 3)"),
        (lambda: F.linear_cross_entropy(x, w[:, :2], target),
         "linear_weight (C, ..., 3), got (4, 2)"),
        (lambda: F.linear_cross_entropy(x[0], w[:, None], target),
         "a batch of inputs for linear_weight of shape (4, 1, 3), got input of shape (3,)"),
        (lambda: F.linear_cross_entropy(x, w, target, linear_bias=treadle.ones(3)),
         "linear_bias of shape (4,), got (3,)"),
        (lambda: F.linear_cross_entropy(x, w, treadle.ones(2, 4), ignore_index=1),
         "no ignore_index for a target of probabilities, got 1"),
    ):  # fmt: skip
        with pytest.raises(RuntimeError) as info:
            call()
        assert str(info.value) == f"linear_cross_entropy: expected {said}"


def test_older_names_of_methods() -> None:
    x = treadle.tensor([2.0, 4.0])
    assert x.__rdiv__(8).tolist() == [4.0, 2.0]
    assert x.chalf().dtype == treadle.complex32


def test_constants_keep_the_graph() -> None:
    x = treadle.eye(2).requires_grad_()
    for result in (treadle.fill(x, 3.0), treadle.linalg.matrix_power(x, 0)):
        (gradient,) = treadle.autograd.grad(result.sum(), x)
        assert (gradient == 0).all()
