"""Sparse tensors in coordinate form: results are those of NumPy on the dense arrays, gradients
those of the strided computation, texts those that PyTorch 2.9.1 printed for the same tensors.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
import io
import pickle
from typing import Any, Callable

import numpy as np
import pytest

import treadle
from treadle.testing import assert_close

RNG = np.random.default_rng(7)


def _entries(n: int, m: int, nnz: int) -> tuple[Any, Any]:
    """Coordinates, some of them repeated, and float64 values."""
    indices = np.stack([RNG.integers(0, n, nnz), RNG.integers(0, m, nnz)])
    indices[:, -1] = indices[:, 0]
    return treadle.tensor(indices), treadle.tensor(RNG.normal(size=nnz))


def _matrix(n: int, m: int, nnz: int) -> tuple[treadle.Tensor, np.ndarray]:
    """A sparse matrix that is not coalesced, and the same in NumPy."""
    indices, values = _entries(n, m, nnz)
    dense = np.zeros((n, m))
    np.add.at(dense, tuple(indices.numpy()), values.numpy())
    return treadle.sparse_coo_tensor(indices, values, (n, m)), dense


def _dense(*shape: int) -> tuple[treadle.Tensor, np.ndarray]:
    array = RNG.normal(size=shape)
    return treadle.tensor(array), array


def _equal(tensor: treadle.Tensor, array: Any) -> None:
    np.testing.assert_allclose(tensor.to_dense().detach().numpy(), array, rtol=1e-12, atol=1e-12)


SMALL = treadle.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3))
TWICE = treadle.sparse_coo_tensor([[1, 0, 1], [0, 2, 0]], [1.0, 2.0, 3.0], (2, 3))
HYBRID = treadle.sparse_coo_tensor([[0, 1]], [[0.0, 1.0], [2.0, 3.0]], (3, 2))


# ---- making ----


def test_attributes() -> None:
    s = SMALL
    assert s.shape == (2, 3) and s.size(-1) == 3 and s.dim() == s.ndim == 2 and s.numel() == 6
    assert s.is_sparse and s.layout == treadle.sparse_coo != treadle.strided
    assert s.dtype == treadle.float32 and s.device.type == "cpu" and not s.requires_grad
    assert (s._nnz(), s.sparse_dim(), s.dense_dim(), len(s)) == (3, 2, 0, 2)
    assert (HYBRID.sparse_dim(), HYBRID.dense_dim()) == (1, 1)
    assert isinstance(s, treadle.Tensor) and treadle.is_tensor(s)
    assert isinstance(treadle.sparse_coo, treadle.layout)
    assert isinstance(s, treadle.sparse.FloatTensor) and not isinstance(s, treadle.FloatTensor)
    assert s.type() == "treadle.sparse.FloatTensor"
    strided = s.to_dense()
    assert not strided.is_sparse and (strided.sparse_dim(), strided.dense_dim()) == (0, 2)


def test_sizes_are_inferred_and_may_be_zero() -> None:
    assert treadle.sparse_coo_tensor([[0, 4], [2, 0]], [1, 2]).shape == (5, 3)
    assert treadle.sparse_coo_tensor((2, 3)).to_dense().tolist() == [[0.0] * 3] * 2
    none = treadle.sparse_coo_tensor(treadle.zeros(2, 0), treadle.zeros(0), (0, 3))
    assert none.coalesce()._nnz() == 0 and none.to_dense().shape == (0, 3)
    product = treadle.zeros(2, 0).to_sparse() @ treadle.zeros(0, 3)
    assert product.tolist() == [[0.0] * 3] * 2
    number = treadle.tensor(3.0).to_sparse()
    assert number.shape == () and number._indices().shape == (0, 1) and number.item() == 3.0


def test_legacy_constructors() -> None:
    indices, values = treadle.tensor([[0], [1]]), treadle.tensor([2.0])
    made = treadle.sparse.FloatTensor(indices, values, treadle.Size([2, 2]))
    assert made.to_dense().tolist() == [[0.0, 2.0], [0.0, 0.0]]
    assert treadle.sparse.DoubleTensor(2, 3).dtype == treadle.float64
    assert treadle.sparse.LongTensor().shape == (0,)


@pytest.mark.parametrize(
    "arguments, said",
    [
        (([[0, 2]], [1.0, 1.0], (2,)), "from 0 to 1, got 2"),
        (([[0, -1]], [1.0, 1.0], (2,)), "got -1"),
        (([[0, -1]], [1.0, 1.0]), "got -1"),
        (([[0, 1]], [1.0], (2,)), "2 columns of indices and 1 values"),
        (([[0, 1]], [1.0, 1.0], (2, 2)), "1 sparse and 0 dense dimensions"),
        (([[0]], [[1.0, 2.0]], (2, 3)), "values of shape (1, 3)"),
        (([0, 1], [1.0, 1.0], (2,)), "shape (sparse dims, nnz), got (2,)"),
        (([[0]], [1.0], (-1,)), "sizes >= 0"),
    ],
)
def test_what_does_not_fit_is_refused(arguments: tuple, said: str) -> None:
    with pytest.raises(RuntimeError) as error:
        treadle.sparse_coo_tensor(*arguments)
    assert said in str(error.value)


def test_to_sparse_and_back() -> None:
    x = treadle.tensor([[0.0, 1.0, 0.0], [2.0, 0.0, 3.0]])
    s = x.to_sparse()
    assert s.is_coalesced() and s.to_sparse() is s
    assert s.indices().tolist() == [[0, 1, 1], [1, 0, 2]] and s.values().tolist() == [1, 2, 3]
    assert_close(s.to_dense(), x)
    rows = x.to_sparse(1)
    assert rows._indices().tolist() == [[0, 1]] and rows._values().tolist() == x.tolist()
    assert_close(x.to_sparse(layout=treadle.strided), x)
    for count in (0, 3):
        with pytest.raises(RuntimeError, match="sparse_dim"):
            x.to_sparse(count)
    with pytest.raises(RuntimeError, match="dtype"):
        s.to_dense(treadle.float64)


def test_coalesce_adds_up_what_is_there_twice() -> None:
    assert not TWICE.is_coalesced()
    for read in (TWICE.indices, TWICE.values):
        with pytest.raises(RuntimeError, match="coalesce"):
            read()
    once = TWICE.coalesce()
    assert once.is_coalesced() and once.coalesce() is once
    assert once.indices().tolist() == [[0, 1], [2, 0]] and once.values().tolist() == [2.0, 4.0]
    truth = treadle.sparse_coo_tensor([[0, 0]], [True, True], (2,))
    assert truth.coalesce().values().tolist() == [True] == truth.to_dense()[:1].tolist()


def test_strided_tensors_have_no_entries() -> None:
    x = treadle.zeros(2, 2)
    for name in ("coalesce", "is_coalesced", "indices", "values", "_indices", "_values", "_nnz"):
        with pytest.raises(RuntimeError, match=f"{name}: expected a sparse tensor"):
            getattr(x, name)()


# ---- text ----

TEXTS = [
    (
        lambda: TWICE.coalesce(),
        "tensor(indices=tensor([[0, 1],\n                       [2, 0]]),\n"
        "       values=tensor([2., 4.]),\n"
        "       size=(2, 3), nnz=2, layout=treadle.sparse_coo)",
    ),
    (
        lambda: HYBRID.double(),
        "tensor(indices=tensor([[0, 1]]),\n"
        "       values=tensor([[0., 1.],\n                      [2., 3.]]),\n"
        "       size=(3, 2), nnz=2, dtype=treadle.float64, layout=treadle.sparse_coo)",
    ),
    (
        lambda: treadle.sparse_coo_tensor((2, 3), requires_grad=True),
        "tensor(indices=tensor([], size=(2, 0)),\n       values=tensor([], size=(0,)),\n"
        "       size=(2, 3), nnz=0, layout=treadle.sparse_coo, requires_grad=True)",
    ),
]


@pytest.mark.parametrize("make, text", TEXTS)
def test_text(make: Callable, text: str) -> None:
    assert repr(make()) == str(make()) == text


# ---- products ----

PRODUCTS: dict[str, Callable] = {
    "sparse.mm": treadle.sparse.mm,
    "spmm": treadle.spmm,
    "mm": treadle.mm,
    "matmul": treadle.matmul,
    "@": lambda a, b: a @ b,
    "method": lambda a, b: a.mm(b),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_of_matrices(name: str) -> None:
    product = PRODUCTS[name]
    (s, a), (other, b), (d, c), (e, f) = (
        _matrix(5, 7, 20), _matrix(7, 4, 9), _dense(7, 3), _dense(3, 5),
    )  # fmt: skip
    _equal(product(s, d), a @ c)
    _equal(product(e, s), f @ a)
    both = product(s, other)
    assert both.is_sparse and both.is_coalesced()
    _equal(both, a @ b)
    _equal(product(d.t(), s.t()), c.T @ a.T)


def test_products_of_vectors_and_batches() -> None:
    (s, a), (v, b), (w, c) = _matrix(5, 7, 20), _dense(7), _dense(2, 7, 3)
    for product in (s @ v, treadle.mv(s, v), s.mv(v), v @ s.t()):
        _equal(product, a @ b)
    _equal(s @ w, a @ c)
    _equal(w.transpose(1, 2) @ s.t(), c.swapaxes(1, 2) @ a.T)
    other, a2 = _matrix(5, 7, 11)
    _equal(treadle.bmm(treadle.stack([s, other]), w), np.stack([a, a2]) @ c)


def test_addmm_and_linear() -> None:
    (s, a), (d, b), (x, c) = _matrix(5, 7, 20), _dense(7, 3), _dense(5, 3)
    for addmm in (treadle.sparse.addmm, treadle.addmm):
        _equal(addmm(x, s, d), c + a @ b)
        _equal(addmm(x[0], s, d, beta=2, alpha=0.5), 2 * c[0] + 0.5 * a @ b)
    unread = treadle.full((5, 3), float("nan"), dtype=treadle.float64)
    _equal(treadle.addmm(unread, s, d, beta=0), a @ b)
    bias, e = _dense(3)
    _equal(treadle.nn.functional.linear(s, d.t(), bias), a @ b + e)


def test_products_that_do_not_fit() -> None:
    with pytest.raises(RuntimeError, match="shapes that multiply"):
        SMALL @ treadle.zeros(2, 2)
    with pytest.raises(RuntimeError, match="same dtype"):
        SMALL @ treadle.zeros(3, 2, dtype=treadle.float64)
    with pytest.raises(RuntimeError, match="2 and 2 dimensions"):
        treadle.sparse.mm(SMALL, treadle.zeros(3))
    with pytest.raises(RuntimeError, match="without dense dimensions"):
        HYBRID @ treadle.zeros(2, 2)


# ---- elements and dimensions ----


def test_sums_and_products_of_elements() -> None:
    (s, a), (t, b), (d, c) = _matrix(4, 6, 15), _matrix(4, 6, 9), _dense(4, 6)
    for result, expected in [
        (s + t, a + b),
        (s - t, a - b),
        (treadle.add(s, t, alpha=3), a + 3 * b),
        (s * t, a * b),
        (s * d, a * c),
        (d * s, a * c),
        (s * d[:, :1], a * c[:, :1]),
        (s * 2, a * 2),
        (2.5 * s, 2.5 * a),
        (s / 4, a / 4),
        (-s, -a),
        (s * treadle.tensor(3.0), a * 3),
        (s**2, a**2),
    ]:
        assert result.is_sparse
        _equal(result, expected)
    for result, expected in [
        (d + s, c + a),
        (d - s, c - a),
        (treadle.add(d, s, alpha=2), c + 2 * a),
    ]:
        assert not result.is_sparse
        _equal(result, expected)
    d += s
    _equal(d, c + a)


def test_sums_and_products_that_do_not_fit() -> None:
    dense = treadle.zeros(2, 3)
    for call in (
        lambda: SMALL + 1,
        lambda: SMALL / SMALL,
        lambda: dense / SMALL,
        lambda: SMALL + SMALL.t(),
        lambda: SMALL * SMALL.t(),
        lambda: SMALL * treadle.zeros(4, 5, 3),
        lambda: SMALL**0,
    ):
        with pytest.raises(RuntimeError, match="expected"):
            call()


@pytest.mark.parametrize("name", ["abs", "sqrt", "relu", "sin", "tanh", "expm1", "sign", "isnan"])
def test_functions_of_elements_take_sums_of_entries(name: str) -> None:
    result = getattr(treadle, name)(TWICE)
    assert result.is_sparse
    assert_close(result.to_dense(), getattr(TWICE.to_dense(), name)())


def test_what_is_not_there_says_so() -> None:
    for call in (
        lambda: treadle.exp(SMALL),
        lambda: SMALL.exp(),
        lambda: SMALL.view(-1),
        lambda: SMALL == SMALL,
        lambda: treadle.where(treadle.ones(2, 3) > 0, SMALL, SMALL),
    ):
        with pytest.raises(NotImplementedError, match="expected"):
            call()
    with pytest.raises(TypeError):
        np.asarray(SMALL)
    with pytest.raises(AttributeError):
        SMALL.no_such_attribute  # noqa: B018
    assert not hasattr(SMALL, "no_such_attribute")


@pytest.mark.parametrize("dim", [None, 0, 1, -1, (0, 1)])
@pytest.mark.parametrize("make", [lambda: SMALL, lambda: TWICE, lambda: HYBRID])
def test_sum(dim: Any, make: Callable) -> None:
    s = make()
    expected = s.to_dense().numpy().sum(dim)
    _equal(treadle.sparse.sum(s, dim), expected)
    _equal(s.sum() if dim is None else s.sum(dim), expected)
    if dim is not None:
        _equal(s.sum(dim, keepdim=True), s.to_dense().numpy().sum(dim, keepdims=True))


def test_sum_of_integers() -> None:
    s = SMALL.to(treadle.int32)
    assert s.sum(0).dtype == s.sum().dtype == treadle.sparse.sum(s).dtype == treadle.int64
    assert treadle.sparse.sum(s, 0).dtype == treadle.int32
    assert treadle.sparse.sum(s, 0, dtype=treadle.float64).dtype == treadle.float64
    with pytest.raises(RuntimeError, match="sparse"):
        treadle.sparse.sum(treadle.zeros(2))


@pytest.mark.parametrize("dim", [0, 1])
def test_softmax_is_over_the_entries(dim: int) -> None:
    s, a = _matrix(5, 6, 15)
    there = treadle.sparse_coo_tensor(s._indices(), treadle.ones(15), (5, 6)).to_dense().numpy() > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        powers = np.where(there, np.exp(a), 0.0)
        expected = np.where(there, powers / powers.sum(dim, keepdims=True), 0.0)
        logarithms = np.where(there, np.log(expected), 0.0)
    _equal(treadle.sparse.softmax(s, dim), expected)
    _equal(treadle.sparse.log_softmax(s, dim), logarithms)
    of_parts = treadle.sparse.softmax(HYBRID, 1)
    assert_close(of_parts._values(), HYBRID._values().softmax(1))


def test_dimensions() -> None:
    s, a = _matrix(4, 6, 15)
    _equal(s.t(), a.T)
    _equal(s.T, a.T)
    _equal(s.transpose(0, -1), a.T)
    _equal(s.unsqueeze(1), a[:, None])
    _equal(HYBRID.unsqueeze(-1), HYBRID.to_dense().numpy()[..., None])
    _equal(s[1], a[1])
    _equal(s[:, -2], a[:, -2])
    _equal(s[2, 3], a[2, 3])
    _equal(s[None], a[None])
    _equal(HYBRID[:, 1], HYBRID.to_dense().numpy()[:, 1])
    for row, expected in zip(s, a):
        _equal(row, expected)
    for dim in (0, 1):
        index = np.array([3, 0, 3, 1])
        _equal(s.index_select(dim, treadle.tensor(index)), a.take(index, dim))
        _equal(treadle.cat([s, 2 * s], dim), np.concatenate([a, 2 * a], dim))
    _equal(treadle.stack([s, s], 1), np.stack([a, a], 1))
    with pytest.raises(RuntimeError, match="dense"):
        HYBRID.t()
    with pytest.raises(IndexError):
        s[4]
    with pytest.raises(IndexError):
        s.index_select(0, treadle.tensor([4]))
    with pytest.raises(RuntimeError, match="strided one at 1"):
        treadle.cat([s, s.to_dense()])


def test_sparse_mask_keeps_the_places_of_the_mask() -> None:
    x = treadle.arange(6.0).reshape(2, 3)
    kept = x.sparse_mask(SMALL)
    assert kept._indices().tolist() == SMALL._indices().tolist()
    assert kept._values().tolist() == [2.0, 3.0, 5.0]
    with pytest.raises(RuntimeError, match="shape"):
        x.t().sparse_mask(SMALL)


# ---- gradients ----


def _gradients(function: Callable, *inputs: treadle.Tensor) -> list[treadle.Tensor]:
    leaves = [x.detach().clone().requires_grad_() for x in inputs]
    result = function(*leaves)
    if result.is_sparse:
        result = result.to_dense()
    weights = treadle.arange(1.0, result.numel() + 1, dtype=result.dtype).reshape(result.shape)
    (result * weights).sum().backward()
    return [x.grad for x in leaves]


INDICES, VALUES = _entries(5, 7, 20)
OTHER_INDICES, _ = _entries(7, 5, 20)


def _strided(indices: treadle.Tensor, values: treadle.Tensor, n: int, m: int) -> treadle.Tensor:
    zeros = treadle.zeros(n, m, dtype=values.dtype)
    return zeros.index_put(tuple(indices), values, accumulate=True)


@pytest.mark.parametrize(
    "function",
    [
        lambda s, d: s @ d,
        lambda s, d: (d.t() @ s.t()).t(),
        lambda s, d: s @ d[:, 0],
        lambda s, d: s * d[:5, :1],
        lambda s, d: (d[:5, :1] + d.sum()).expand(5, 7) + s,
        lambda s, d: s.t() * d[:, :1],
        lambda s, d: (s * 2 - s / 3) @ d,
        lambda s, d: s.sin().sum(0) * d[:, 0],
    ],
)
def test_gradients_are_those_of_the_strided_computation(function: Callable) -> None:
    d, _ = _dense(7, 3)
    of_sparse = _gradients(
        lambda v, d: function(treadle.sparse_coo_tensor(INDICES, v, (5, 7)), d), VALUES, d
    )
    of_strided = _gradients(lambda v, d: function(_strided(INDICES, v, 5, 7), d), VALUES, d)
    assert_close(of_sparse, of_strided)


def test_gradients_of_sparse_products_and_coalesced_values() -> None:
    def product(make: Callable) -> Callable:
        return lambda v, w: make(INDICES, v, (5, 7)) @ make(OTHER_INDICES, w, (7, 5))

    of_sparse = _gradients(product(treadle.sparse_coo_tensor), VALUES, VALUES.flip(0))
    of_strided = _gradients(product(lambda i, v, n: _strided(i, v, *n)), VALUES, VALUES.flip(0))
    assert_close(of_sparse, of_strided)
    (grad,) = _gradients(
        lambda v: treadle.sparse_coo_tensor([[1, 0, 1]], v, (2,)).coalesce().values(),
        treadle.tensor([1.0, 2.0, 3.0]),
    )
    assert grad.tolist() == [2.0, 1.0, 2.0]


def test_gradients_of_softmax_and_to_sparse() -> None:
    values = VALUES[:-1]
    indices = INDICES[:, :-1]
    assert treadle.autograd.gradcheck(
        lambda v: treadle.sparse.softmax(
            treadle.sparse_coo_tensor(indices, v, (5, 7)), 1
        ).to_dense(),
        (values.clone().requires_grad_(),),
    )
    x = treadle.tensor([[0.0, 1.0], [2.0, 0.0]])
    (grad,) = _gradients(lambda x: x.to_sparse(), x)
    assert grad.tolist() == [[0.0, 2.0], [3.0, 0.0]]


def test_a_leaf_has_a_sparse_gradient() -> None:
    s = treadle.sparse_coo_tensor(
        [[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3), requires_grad=True
    )
    assert s.is_leaf and s.requires_grad and s.grad is None and s.grad_fn is None
    (s @ treadle.tensor([[1.0], [2.0], [3.0]])).sum().backward()
    assert s.grad.is_sparse and s.grad.to_dense().tolist() == [[0, 0, 3], [1, 0, 3]]
    assert not s.detach().requires_grad and not s._values().requires_grad
    with pytest.raises(RuntimeError, match="leaf"):
        s.mul_(2)
    values = treadle.ones(1)
    made = treadle.sparse_coo_tensor([[0]], values, (1,), requires_grad=True)
    assert made.requires_grad and not values.requires_grad
    made = treadle.sparse_coo_tensor([[0]], values.requires_grad_(), (1,))
    assert made.requires_grad and not made.is_leaf


class _Product(treadle.autograd.Function):
    """As graph attention networks multiply."""

    @staticmethod
    def forward(ctx: Any, indices: Any, values: Any, shape: Any, b: Any) -> Any:
        a = treadle.sparse_coo_tensor(indices, values, shape)
        ctx.save_for_backward(a, None, b)
        return treadle.matmul(a, b)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        a, none, b = ctx.saved_tensors
        assert none is None and a.is_sparse and a.shape == (5, 7)
        row, column = a._indices()
        return None, (grad @ b.t())[row, column], None, a.t() @ grad


def test_custom_functions_keep_sparse_tensors() -> None:
    d, _ = _dense(7, 3)
    of_function = _gradients(lambda v, d: _Product.apply(INDICES, v, (5, 7), d), VALUES, d)
    of_strided = _gradients(lambda v, d: _strided(INDICES, v, 5, 7) @ d, VALUES, d)
    assert_close(of_function, of_strided)


# ---- conversions, copies, files ----


def test_conversions() -> None:
    assert SMALL.to("cpu") is SMALL.float() is SMALL.cpu() is SMALL
    for name in ("double", "half", "long", "int", "bool", "bfloat16"):
        converted = getattr(SMALL, name)()
        assert_close(converted.to_dense(), getattr(SMALL.to_dense(), name)())
    assert SMALL.to(HYBRID.double()).dtype == SMALL.type_as(treadle.zeros(1).double()).dtype
    zeros = treadle.zeros_like(SMALL, dtype=treadle.int64)
    assert zeros.is_sparse and zeros._nnz() == 0 and zeros.dtype == treadle.int64
    with pytest.raises(RuntimeError):
        SMALL.cuda()


def test_in_place() -> None:
    s = SMALL.clone()
    s.mul_(2)
    s += SMALL
    _equal(s, SMALL.to_dense().numpy() * 3)
    s.copy_(TWICE)
    _equal(s, TWICE.to_dense())
    assert s.zero_()._nnz() == 0 and SMALL._values().tolist() == [3.0, 4.0, 5.0]
    with pytest.raises(RuntimeError, match="casts"):
        SMALL.int().mul_(0.5)


def test_modules_hold_and_files_keep_sparse_tensors() -> None:
    module = treadle.nn.Linear(2, 2)
    module.register_buffer("adjacency", TWICE)
    module.double()
    assert module.adjacency.dtype == treadle.float64
    file = io.BytesIO()
    treadle.save(module.state_dict(), file)
    file.seek(0)
    state = treadle.load(file)
    assert state["adjacency"]._indices().tolist() == TWICE._indices().tolist()
    assert not state["adjacency"].is_coalesced()
    module.adjacency.zero_()
    module.load_state_dict(state)
    _equal(module.adjacency, TWICE.to_dense())


def test_copies() -> None:
    for copied in (copy.copy(SMALL), copy.deepcopy(SMALL), pickle.loads(pickle.dumps(SMALL))):
        assert copied.layout is treadle.sparse_coo and copied is not SMALL
        _equal(copied, SMALL.to_dense())


def test_a_file_may_not_have_entries_outside() -> None:
    bad = treadle.sparse_coo_tensor([[1]], [1.0], (2,))
    bad._indices()[0, 0] = 5
    file = io.BytesIO()
    treadle.save(bad, file)
    file.seek(0)
    with pytest.raises(Exception, match="from 0 to 1, got 5"):
        treadle.load(file)


def test_a_sparse_tensor_begins_a_backward_pass() -> None:
    dense = treadle.tensor([[1.0, 0.0], [0.0, 2.0]], requires_grad=True)
    weights = treadle.tensor([[3.0, 4.0], [5.0, 6.0]])
    kept = treadle.tensor([[3.0, 0.0], [0.0, 6.0]])
    for given in (weights, weights.to_sparse()):
        (found,) = treadle.autograd.grad(dense.to_sparse(), dense, given)
        assert treadle.equal(found, kept)
    treadle.autograd.backward([dense.to_sparse()], [weights])
    assert dense.grad is not None and treadle.equal(dense.grad, kept)
