"""Functions that PyTorch keeps beside newer ones."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import pytest

import treadle
from treadle.testing import assert_close

X = treadle.randn(4, 3, 5)


def test_norms() -> None:
    matrix = treadle.tensor([[3.0, 0.0], [0.0, -4.0]])
    assert treadle.frobenius_norm(matrix) == 5.0
    assert treadle.frobenius_norm(matrix, 1, True).tolist() == [[3.0], [4.0]]
    assert treadle.nuclear_norm(matrix).item() == pytest.approx(7.0)
    assert treadle.native_norm(matrix, 1).item() == 7.0
    assert treadle.native_norm(matrix, 1, [0], True, treadle.float64).dtype == treadle.float64


def test_native_dropout() -> None:
    treadle.manual_seed(0)
    x = treadle.ones(1000)
    result, mask = treadle.native_dropout(x, 0.25, True)
    assert treadle.equal(result, mask / 0.75) and 650 < mask.sum() < 850
    result, mask = treadle.native_dropout(x, 0.25, False)
    assert treadle.equal(result, x) and mask.all()
    assert not treadle.native_dropout(x, 1.0, True)[0].any()


def test_native_batch_norm() -> None:
    mean, var = treadle.zeros(3), treadle.ones(3)
    result, batch_mean, inverse = treadle.native_batch_norm(
        X, None, None, mean, var, True, 0.1, 1e-5
    )
    assert_close(result, (X - batch_mean[:, None]) * inverse[:, None], rtol=1e-4, atol=1e-5)
    assert_close(mean, batch_mean * 0.1)
    out = treadle.native_batch_norm(X, None, None, mean, var, False, 0.1, 1e-5)
    assert [t.numel() for t in out] == [60, 0, 0]


@pytest.mark.parametrize("name", ["native_batch_norm", "_native_batch_norm_legit"])
def test_native_batch_norm_writes_to_what_it_is_given(name: str) -> None:
    operator = getattr(treadle, name)
    means = [treadle.zeros(3), treadle.ones(3), treadle.zeros(3), treadle.ones(3)]
    wanted = operator(X, None, None, *means[:2], True, 0.1, 1e-5)
    out = (treadle.empty(0), treadle.empty(3), treadle.empty(3, dtype=treadle.float64))
    assert operator(X, None, None, *means[2:], True, 0.1, 1e-5, out=out) is out
    assert all(treadle.equal(t.to(w.dtype), w) for t, w in zip(out, wanted))
    assert treadle.equal(means[0], means[2]) and treadle.equal(means[1], means[3])


def test_native_batch_norm_that_cannot_write_learns_nothing() -> None:
    mean, var = treadle.zeros(3), treadle.ones(3)
    out = (treadle.empty(4, 3, 5), treadle.empty(3), treadle.empty(3, dtype=treadle.int64))
    with pytest.raises(RuntimeError, match="expected out of a dtype that float32 can be cast to"):
        treadle.native_batch_norm(X, None, None, mean, var, True, 0.1, 1e-5, out=out)
    assert not mean.any() and (var == 1).all()
    with pytest.raises(TypeError) as error:
        treadle.native_batch_norm(X, None, None, mean, var, True, 0.1, 1e-5, out=list(out[:2]))
    assert str(error.value) == "native_batch_norm: expected out of three tensors, got 2"
    outs = (mean, var, treadle.empty(0))
    made = treadle._native_batch_norm_legit(X, None, None, True, 0.1, 1e-5, out=outs)
    assert made[0] is mean and mean.shape == X.shape


def test_convolution_over_time() -> None:
    weight, bias = treadle.randn(3, 5, 2), treadle.randn(2)
    expected = treadle.conv1d(X.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=1)
    assert_close(treadle.conv_tbc(X, weight, bias, 1), expected.permute(2, 0, 1))
    with pytest.raises(RuntimeError) as error:
        treadle.conv_tbc(X, weight[0], bias)
    assert str(error.value) == (
        "conv_tbc: expected an input and a weight of three dimensions and a bias of one, got "
        "(4, 3, 5), (5, 2) and (2,)"
    )


def test_embedding_renorm() -> None:
    rows = treadle.tensor([[3.0, 4.0], [0.3, 0.4], [6.0, 8.0]])
    assert treadle.embedding_renorm_(rows, treadle.tensor([0, 1, 1]), 1.0, 2.0) is rows
    assert_close(rows, treadle.tensor([[0.6, 0.8], [0.3, 0.4], [6.0, 8.0]]))


def test_fake_quantization() -> None:
    x = treadle.tensor([-9.0, -0.26, 0.24, 0.3, 9.0], requires_grad=True)
    result = treadle.fake_quantize_per_tensor_affine(x, 0.5, 1, 0, 10)
    assert result.tolist() == [-0.5, -0.5, 0.0, 0.5, 4.5]
    result.sum().backward()
    assert x.grad.tolist() == [0, 1, 1, 1, 0]
    by_channel = treadle.fake_quantize_per_channel_affine(
        treadle.tensor([[0.3, 0.3]]), treadle.tensor([1.0, 0.25]), treadle.tensor([0, 0]), 1, 0, 9
    )
    assert by_channel.tolist() == [[0.0, 0.25]]
    with pytest.raises(RuntimeError) as error:
        treadle.fake_quantize_per_tensor_affine(x, 0.5, 1, 3, 2)
    message = "fake_quantize_per_tensor_affine: expected quant_min <= quant_max, got 3 and 2"
    assert str(error.value) == message
    with pytest.raises(RuntimeError) as error:
        treadle.fake_quantize_per_channel_affine(x, x[:1], x[:1], 0, 0, 9)
    assert str(error.value) == (
        "fake_quantize_per_channel_affine: expected a scale and a zero point for each of 5 "
        "channels, got shapes (1,) and (1,)"
    )


def test_sparse_products() -> None:
    sparse = treadle.tensor([[0.0, 2.0], [0.0, 0.0], [1.0, 3.0]]).to_sparse()
    dense = treadle.tensor([[1.0, 2.0], [3.0, 4.0]])
    product = sparse.to_dense() @ dense
    assert treadle.smm(sparse, dense).is_sparse
    assert treadle.equal(treadle.smm(sparse, dense).to_dense(), product)
    rows = treadle.hspmm(sparse, dense).coalesce()
    assert rows.indices().tolist() == [[0, 2]] and treadle.equal(rows.to_dense(), product)
    added = treadle.sspaddmm(sparse.to_dense()[:, :2].to_sparse(), sparse, dense, beta=2, alpha=3)
    assert treadle.equal(added.to_dense(), sparse.to_dense() * 2 + product * 3)
    assert treadle.values_copy(sparse.coalesce()).tolist() == [2.0, 1.0, 3.0]
    assert treadle.indices_copy(sparse.coalesce()).tolist() == [[0, 2, 2], [1, 0, 1]]


def test_some_eigenvalues() -> None:
    treadle.manual_seed(0)
    a = treadle.randn(9, 9, dtype=treadle.float64)
    a = a + a.mT
    b = treadle.eye(9, dtype=treadle.float64) * 2 + 0.1
    values, vectors = treadle.lobpcg(a, 3, B=b)
    assert values.shape == (3,) and (values[:-1] >= values[1:]).all()
    assert_close(a @ vectors, b @ vectors * values)
    values, _ = treadle.lobpcg(a, largest=False)
    assert_close(values, treadle.linalg.eigvalsh(a)[:1])
    with pytest.raises(ValueError, match="^LPBPCG algorithm is not applicable when the number of"):
        treadle.lobpcg(a, 4)


def test_functions_that_are_methods_elsewhere() -> None:
    x = treadle.ones(2)
    assert treadle.get_device(x) == -1 and not treadle.is_distributed(x)
    assert treadle.resize_as_(treadle.zeros(6), treadle.zeros(2, 3)).shape == (2, 3)
    y = treadle.ones(2, requires_grad=True) * 2
    assert treadle.detach_(y) is y and not y.requires_grad
    assert treadle.dsmm is treadle.mm and treadle.saddmm is treadle.addmm
    assert treadle.native_channel_shuffle(X[:, :2], 2).shape == (4, 2, 5)


@pytest.mark.parametrize("name", ["eig", "lstsq", "matrix_rank", "solve"])
def test_what_was_removed_says_what_does_it(name: str) -> None:
    with pytest.raises(RuntimeError) as error:
        getattr(treadle, name)(X)
    assert str(error.value) == (
        f"{name}: expected a call of treadle.linalg.{name}, which does this; this function was "
        "removed from PyTorch"
    )


def test_sizes_as_numbers() -> None:
    assert treadle.sym_max(2, 3.0) == 3.0 and isinstance(treadle.sym_min(2, 3.0), float)
    assert treadle.sym_int(-2.5) == -2 and treadle.sym_float(2) == 2.0
    assert treadle.sym_not(0) is True and treadle.sym_sqrt(4) == 2.0
    assert treadle.sym_sum([1, 2]) == treadle.sym_sum(1, 2) == 3
    assert treadle.sym_ite(True, 1, 2) == 1
    with pytest.raises(AssertionError) as error:
        treadle.sym_ite(1, 1, 2.0)
    message = "sym_ite: expected a bool and two values of one type, got int, int and float"
    assert str(error.value) == message


def test_facts_of_the_build() -> None:
    assert treadle.has_lapack and treadle.has_openmp and not treadle.has_mkl
    assert treadle.compiled_with_cxx11_abi() and not treadle.is_vulkan_available()
    assert treadle.get_file_path("treadle", "__init__.py") == treadle.__file__
    assert treadle.AVG is treadle.AggregationType.AVG
    assert issubclass(treadle.AcceleratorError, RuntimeError)
    assert treadle.thread_safe_generator() is None

    class Named:
        @treadle.classproperty
        def name(cls) -> str:  # noqa: N805
            return cls.__name__  # type: ignore[attr-defined]

    assert Named.name == Named().name == "Named"
