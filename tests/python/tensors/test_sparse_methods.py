"""Functions and methods of tensors on sparse layouts beside products and pointwise operators:
factories by a tensor, values that are replaced, broadcasts, joins, changes of shape in place.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable

import pytest

import treadle
from treadle.testing import assert_close

COMPRESSED = ("sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc")
LAYOUTS = ("sparse_coo", *COMPRESSED)


def _dense() -> treadle.Tensor:
    return treadle.tensor(
        [[0.0, 1.0, 0.0, -2.0], [3.0, 0.0, 0.0, 0.0], [0.0, 0.0, 4.0, 0.0], [0.0, 0.0, 0.0, 0.0]]
    )


def _in(layout: str, x: treadle.Tensor) -> treadle.Tensor:
    blocks = {"blocksize": (2, 2)} if layout in ("sparse_bsr", "sparse_bsc") else {}
    return x.to_sparse(layout=getattr(treadle, layout), **blocks)


RANDOM: dict[str, Callable[..., treadle.Tensor]] = {
    "rand_like": treadle.rand_like,
    "randn_like": treadle.randn_like,
    "randint_like": lambda x, **options: treadle.randint_like(x, 5, 9, **options),
}


@pytest.mark.parametrize("layout", COMPRESSED)
@pytest.mark.parametrize("name", RANDOM)
def test_random_tensors_like_a_compressed_one_have_its_entries(layout: str, name: str) -> None:
    s = _in(layout, _dense())
    treadle.manual_seed(0)
    made = RANDOM[name](s)
    treadle.manual_seed(0)
    values = RANDOM[name](s.values())
    assert made.layout is s.layout and made.shape == s.shape and made.dtype == s.dtype
    assert treadle.equal(made.values(), values) and not treadle.equal(values, s.values())
    assert_close(s.to_dense(), _dense())
    assert RANDOM[name](s, dtype=treadle.float64).values().dtype == treadle.float64


@pytest.mark.parametrize("name", RANDOM)
def test_random_tensors_like_coordinates_are_refused(name: str) -> None:
    with pytest.raises(NotImplementedError, match="expected strided tensors or compressed ones"):
        RANDOM[name](_in("sparse_coo", _dense()))


@pytest.mark.parametrize("layout", COMPRESSED)
def test_values_are_replaced_in_place(layout: str) -> None:
    s = _in(layout, _dense())
    values = s.values()
    assert s.fill_(3.0) is s and (s.values() == 3).all()
    assert (treadle.fill(s, 2.0).values() == 2).all() and (s.values() == 3).all()
    assert s.uniform_(5, 6) is s and ((s.values() >= 5) & (s.values() < 6)).all()
    assert s.normal_(100, 1) is s and (s.values() > 80).all()
    assert s.random_(7, 8) is s and (s.values() == 7).all()
    assert s.values().shape == values.shape
    with pytest.raises(RuntimeError, match="leaf"):
        s.clone().requires_grad_().normal_()


def test_values_of_coordinates_are_not_replaced() -> None:
    with pytest.raises(NotImplementedError, match="fill_: expected strided tensors or compressed"):
        _in("sparse_coo", _dense()).fill_(3.0)


@pytest.mark.parametrize("transposed", [False, True])
def test_products_with_a_sparse_vector(transposed: bool) -> None:
    x, matrix = treadle.tensor([0.0, 2.0, 0.0, -1.0]), treadle.arange(16.0).reshape(4, 4)
    s = x.to_sparse()
    if transposed:
        assert_close(matrix @ s, matrix @ x)
        assert_close(matrix.mv(s), matrix @ x)
    else:
        assert_close(s @ matrix, x @ matrix)
        assert_close(s @ matrix[0], x @ matrix[0])


@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 4), (1, 4), (3, 1)], ids=str)
def test_a_product_broadcasts_coordinates(shape: Any) -> None:
    x = treadle.tensor([0.0, 2.0, 0.0, -1.0])
    other = treadle.arange(1.0, 1 + treadle.Size(shape).numel()).reshape(shape)
    for made in (x.to_sparse() * other, other * x.to_sparse()):
        assert made.layout is treadle.sparse_coo
        assert_close(made.to_dense(), x * other)
    column = treadle.tensor([[1.0], [0.0], [5.0]])
    assert_close((column.to_sparse() * x).to_dense(), column * x)
    outer = treadle.outer(treadle.ones(3), x.to_sparse())
    assert_close(outer.to_dense(), treadle.outer(treadle.ones(3), x))
    with pytest.raises(NotImplementedError):
        x.to_sparse() * treadle.ones(3)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("other", LAYOUTS)
def test_pointwise_operators_of_two_layouts(layout: str, other: str) -> None:
    x, y = _dense(), _dense().t() + _dense().flip(0)
    for operator in (treadle.mul, treadle.maximum, treadle.add):
        made = operator(_in(layout, x), _in(other, y))
        assert made.layout is getattr(treadle, layout)
        assert_close(made.to_dense(), operator(x, y))


def test_expand() -> None:
    hybrid = treadle.sparse_coo_tensor([[0, 2]], treadle.tensor([[1.0], [2.0]]), (3, 1)).coalesce()
    for size in ((3, 1), (3, 4), (-1, 4), (2, 3, 4), (2, 2, 3, 1)):
        made = hybrid.expand(size)
        assert_close(made.to_dense(), hybrid.to_dense().expand(size))
        assert made.is_coalesced()
    one = treadle.sparse_coo_tensor([[0, 0], [1, 3]], [1.0, 2.0], (1, 4)).coalesce()
    assert_close(one.expand(3, 4).coalesce().to_dense(), one.to_dense().expand(3, 4))
    assert one.expand(0, 4).shape == (0, 4) and one.expand(0, 4)._nnz() == 0
    first, second = treadle.broadcast_tensors(one, treadle.ones(3, 4))
    assert first.is_sparse and first.shape == second.shape == (3, 4)
    for size in ((3, 5), (4,), (1, -1, 5)):
        with pytest.raises(RuntimeError, match="expand: expected"):
            one.expand(size)


@pytest.mark.parametrize("join", [treadle.cat, treadle.concat, treadle.concatenate])
def test_joins_along_dense_dimensions(join: Any) -> None:
    first = treadle.sparse_coo_tensor([[0, 2]], treadle.ones(2, 2), (4, 2))
    second = treadle.sparse_coo_tensor([[1, 2]], treadle.full((2, 3), 5.0), (4, 3))
    made = join([first, second], 1)
    assert made.shape == (4, 5) and made.dense_dim() == 1
    assert_close(made.to_dense(), join([first.to_dense(), second.to_dense()], 1))
    assert_close(join([first, first]).to_dense(), join([first.to_dense(), first.to_dense()]))
    assert treadle.hstack([first, second]).shape == (4, 5)


def test_changes_of_shape_in_place() -> None:
    x = treadle.arange(6.0).reshape(2, 3)
    for change in (
        lambda t: t.t_(),
        lambda t: t.transpose_(0, 1),
        lambda t: t.swapaxes_(0, 1),
        lambda t: t.swapdims_(0, 1),
    ):
        s = x.to_sparse()
        assert change(s) is s and s.shape == (3, 2)
        assert_close(s.to_dense(), x.t())
    s = x.to_sparse()
    like = treadle.sparse_coo_tensor([[0], [1]], [1.0], (4, 4))
    assert s.resize_as_(like) is s and s.shape == (4, 4) and s._nnz() == 5
    csr = x.to_sparse_csr()
    assert csr.resize_(2, 3) is csr and csr.resize_as_(csr) is csr
    assert_close(csr.to_dense(), x)
    with pytest.raises(NotImplementedError, match="resize_: expected a strided tensor"):
        csr.resize_(3, 3)
    with pytest.raises(RuntimeError, match="expected a result of layout sparse_csr"):
        csr.t_()
    with pytest.raises(RuntimeError, match="does not require grad"):
        x.to_sparse().requires_grad_().t_()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_reductions_over_all_dimensions(layout: str) -> None:
    s = _in(layout, _dense())
    assert s.any(dim=None) and s.any((0, 1)) and not (s * 0).any((0, 1))
    assert_close(treadle.norm(s, dim=(0, 1)), treadle.norm(_dense()))
    with pytest.raises(NotImplementedError, match="expected no dim"):
        s.any((0,))


def test_a_sparse_input_of_a_product_with_a_strided_matrix() -> None:
    s, dense = _dense().to_sparse(), treadle.arange(16.0).reshape(4, 4)
    made = treadle.addmm(s, s, dense, beta=2, alpha=3)
    assert made.layout is treadle.sparse_coo
    assert_close(made.to_dense(), treadle.addmm(_dense(), _dense(), dense, beta=2, alpha=3))


def test_older_functions() -> None:
    repeated = treadle.sparse_coo_tensor([[0, 0, 2], [1, 1, 2]], [1.0, 2.0, 3.0], (4, 4))
    assert_close(repeated.sparse_mask(repeated).to_dense(), repeated.to_dense())
    for product in (treadle.hsmm, treadle.hspmm):
        made = product(repeated, _dense())
        assert made.layout is treadle.sparse_coo and made._nnz() == 2
        assert_close(made.to_dense(), repeated.to_dense() @ _dense())


@pytest.mark.parametrize("make", [treadle.zeros, treadle.empty])
@pytest.mark.parametrize("size", [(2, 3), (2, 2, 3), (0, 3)], ids=str)
@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr", "sparse_csc"])
def test_factories_of_tensors_without_entries(make: Any, size: Any, layout: str) -> None:
    made = make(size, layout=getattr(treadle, layout), dtype=treadle.float64)
    assert made.layout is getattr(treadle, layout) and made.dtype == treadle.float64
    assert made.shape == size and made._nnz() == 0
    assert_close(made.to_dense(), treadle.zeros(size, dtype=treadle.float64))


def test_factories_of_other_layouts_are_refused() -> None:
    assert treadle.zeros(3, layout=treadle.sparse_coo).sparse_dim() == 1
    with pytest.raises(NotImplementedError) as error:
        treadle.zeros(2, 3, layout=treadle.sparse_bsr)
    assert str(error.value) == (
        "zeros: expected the layout strided, sparse_coo, sparse_csr or sparse_csc, got sparse_bsr"
    )
    with pytest.raises(RuntimeError, match="zeros: expected a tensor of 2 or more sparse dim"):
        treadle.zeros(3, layout=treadle.sparse_csr)
    with pytest.raises(NotImplementedError, match="ones: expected layout = treadle.strided"):
        treadle.ones(2, 3, layout=treadle.sparse_coo)
