"""Sparse tensors by rows, by columns and by blocks: conversions, every pointwise operator, products
and gradients are those of the strided tensors; hostile indices are refused.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
import gc
import io
import pickle
import weakref
from typing import Any, Callable

import numpy as np
import pytest

import treadle
from treadle.testing import assert_close
from treadle_testing.cases import in_suite, operators, samples_of

LAYOUTS = ("sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc")
COMPRESSED = LAYOUTS[1:]


def _dense(n: int = 6, m: int = 8, seed: int = 0, dtype: Any = treadle.float64) -> treadle.Tensor:
    rng = np.random.default_rng(seed)
    return treadle.tensor(np.where(rng.random((n, m)) < 0.3, rng.normal(size=(n, m)), 0)).to(dtype)


def _in(layout: str, x: treadle.Tensor) -> treadle.Tensor:
    blocks = {"blocksize": (2, 2)} if layout in ("sparse_bsr", "sparse_bsc") else {}
    return x.to_sparse(layout=getattr(treadle, layout), **blocks)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_conversions(layout: str) -> None:
    x = _dense()
    s = _in(layout, x)
    assert type(s) is treadle.Tensor and s.layout is getattr(treadle, layout)
    assert s.shape == x.shape and s.dtype == x.dtype and not s.is_contiguous()
    assert_close(s.to_dense(), x)
    for other in LAYOUTS:
        assert_close(_in(other, s).to_dense(), x)
    assert_close(s.t().to_dense(), x.t())
    assert s.to(treadle.float32).dtype == treadle.float32
    assert_close(s.to(treadle.float32).to_dense(), x.float())
    for again in (copy.copy(s), copy.deepcopy(s), pickle.loads(pickle.dumps(s)), s.clone()):
        assert again.layout is s.layout and again is not s
        assert_close(again.to_dense(), x)
    file = io.BytesIO()
    treadle.save({"x": s}, file)
    file.seek(0)
    assert_close(treadle.load(file)["x"].to_dense(), x)


def test_parts_are_those_that_were_given() -> None:
    s = treadle.sparse_csr_tensor([0, 2, 2, 3], [0, 2, 1], [1.0, 2.0, 3.0])
    assert s.shape == (3, 3) and s._nnz() == 3 and s.is_sparse_csr and not s.is_sparse
    assert s.to_dense().tolist() == [[1, 0, 2], [0, 0, 0], [0, 3, 0]]
    assert s.crow_indices().tolist() == [0, 2, 2, 3] and s.col_indices().tolist() == [0, 2, 1]
    assert s.values().tolist() == [1, 2, 3]
    assert (s.sparse_dim(), s.dense_dim()) == (2, 0)
    columns = s.t()
    assert columns.layout is treadle.sparse_csc
    assert columns.ccol_indices().tolist() == [0, 2, 2, 3]
    blocks = treadle.sparse_bsr_tensor([0, 1, 2], [1, 0], treadle.arange(8.0).reshape(2, 2, 2))
    assert blocks.to_dense().tolist() == [[0, 0, 0, 1], [0, 0, 2, 3], [4, 5, 0, 0], [6, 7, 0, 0]]
    batch = treadle.sparse_csr_tensor(
        [[0, 1, 2], [0, 0, 2]], [[0, 1], [0, 1]], [[1.0, 2.0], [3.0, 4.0]], (2, 2, 2)
    )
    assert batch.to_dense().tolist() == [[[1, 0], [0, 2]], [[0, 0], [3, 4]]]
    assert_close(batch.to_dense().to_sparse_csr().to_dense(), batch.to_dense())


def test_text() -> None:
    s = treadle.sparse_csr_tensor([0, 1, 2], [1, 0], [1.0, 2.0])
    assert repr(s) == (
        "tensor(crow_indices=tensor([0, 1, 2]),\n       col_indices=tensor([1, 0]),\n"
        "       values=tensor([1., 2.]),\n       size=(2, 2), nnz=2, layout=treadle.sparse_csr)"
    )


@pytest.mark.parametrize(
    "arguments, said",
    [
        (([0, 1], [5], [1.0], (1, 2)), "columns in order, each once, from 0 to 1, got 5"),
        (([0, 1], [-1], [1.0], (1, 2)), "from 0 to 1, got -1"),
        (([0, 2], [1, 0], [1.0, 2.0], (1, 2)), "got 0 behind 1"),
        (([0, 2], [1, 1], [1.0, 2.0], (1, 2)), "got 1 behind 1"),
        (([0, 5, 1], [0], [1.0], (2, 2)), "offsets of rows that do not fall, got 0 and 5"),
        (([1, 1], [0], [1.0], (1, 2)), "offsets of rows from 0 to 1, got 1 to 1"),
        (([0, 1], [0], [1.0], (2, 2)), "3 offsets of rows"),
        (([0, 1], [0], [1.0, 2.0], (1, 2)), "fit the size (1, 2)"),
        (([0.0, 1.0], [0], [1.0], (1, 2)), "indices of one dtype, int64 or int32"),
    ],
)
def test_indices_that_do_not_fit_are_refused(arguments: tuple, said: str) -> None:
    with pytest.raises(RuntimeError) as error:
        treadle.sparse_csr_tensor(*arguments)
    assert said in str(error.value)


def test_indices_that_are_changed_later_are_refused() -> None:
    """The parts of a tensor are its own memory, which a program may write."""
    x = _dense(4, 4)
    for write in (
        lambda s: s.col_indices().fill_(1 << 40),
        lambda s: s.col_indices().fill_(-(1 << 40)),
        lambda s: s.crow_indices().fill_(1 << 40),
        lambda s: s.crow_indices().fill_(-1),
    ):
        s = x.to_sparse_csr()
        write(s)
        for call in (
            lambda: s @ treadle.ones(4, 3, dtype=x.dtype),
            lambda: s @ x.to_sparse_csr(),
            lambda: x.to_sparse_csr() @ s,
            lambda: s.to_dense(),
            lambda: s + x.to_sparse_csr(),
            lambda: treadle.sparse.sampled_addmm(s, x, x),
        ):
            with pytest.raises((RuntimeError, IndexError)):
                call()
    s = x.to_sparse()
    s.indices()[0] = 1 << 40
    for call in (lambda: s.to_dense(), lambda: s @ x, lambda: s + s, lambda: s.sum(1)):
        with pytest.raises((RuntimeError, IndexError)):
            call()


@pytest.mark.parametrize(
    "call, error, said",
    [
        (
            lambda s: treadle.mul(s, s, out=treadle.empty(4, 4)),
            NotImplementedError,
            "mul: expected no out= for tensors of layout sparse_csr, got one",
        ),
        (
            lambda s: s.copy_(treadle.ones(4, 4)),
            RuntimeError,
            "copy_: expected a tensor of layout sparse_csr and shape (4, 4), got strided of shape "
            "(4, 4)",
        ),
        (
            lambda s: s.mul_(s.to_sparse()[:3]),
            RuntimeError,
            "mul: expected sparse tensors of one shape, got sparse_csr of shape (4, 4) and "
            "sparse_coo of shape (3, 4)",
        ),
        (
            lambda s: np.asarray(s),
            TypeError,
            "numpy: expected a strided tensor, got one of layout sparse_csr; call to_dense()",
        ),
        (
            lambda s: s.tolist(),
            TypeError,
            "tolist: expected a strided tensor, got one of layout sparse_csr; call to_dense()",
        ),
        (
            lambda s: s.stride(),
            RuntimeError,
            "stride: expected a strided tensor, got one of layout sparse_csr",
        ),
        (
            lambda s: s.set_(treadle.ones(3, dtype=s.dtype)),
            NotImplementedError,
            "set_: expected strided tensors, got layouts sparse_csr and strided",
        ),
        (
            lambda s: s.register_hook(print),
            NotImplementedError,
            "register_hook: expected a strided tensor, got one of layout sparse_csr; a hook on its "
            "values() sees their gradient",
        ),
        (
            lambda s: s.sparse_resize_((5, 5), 2, 0),
            RuntimeError,
            "sparse_resize_: expected a sparse_coo tensor, got a sparse_csr one of shape (4, 4)",
        ),
        (
            lambda s: s.to_sparse_bsr((3, 2)),
            RuntimeError,
            "to_sparse_bsr: expected blocks that divide a matrix of 4 by 4, got blocksize (3, 2)",
        ),
        (
            lambda s: s.row_indices(),
            RuntimeError,
            "row_indices: expected a sparse tensor by columns, got a sparse_csr one of shape "
            "(4, 4)",
        ),
        (
            lambda s: s.coalesce(),
            RuntimeError,
            "coalesce: expected a sparse tensor, got a sparse_csr one of shape (4, 4)",
        ),
        (
            lambda s: s.resize_(4, 5),
            NotImplementedError,
            "resize_: expected a strided tensor, got one of layout sparse_csr; call to_dense()",
        ),
        (
            lambda s: s.to_sparse_coo().resize_(5, 5),
            NotImplementedError,
            "resize_: expected a strided tensor, got one of layout sparse_coo; call "
            "sparse_resize_()",
        ),
    ],
)
def test_what_is_refused(call: Callable, error: type, said: str) -> None:
    with pytest.raises(error) as raised:
        call(_dense(4, 4).to_sparse_csr())
    assert str(raised.value) == said


# ---- with strided tensors ----


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_strided_operand_makes_sums_strided(layout: str) -> None:
    x, d = _dense(4, 4), treadle.arange(16, dtype=treadle.float64).reshape(4, 4)
    s = _in(layout, x)
    for found, expected in (
        (s + d, x + d),
        (d + s, x + d),
        (s - d, x - d),
        (treadle.sub(d, s, alpha=2), d - 2 * x),
        (treadle.addmm(d, s, s), d + x @ x),
        (treadle.addmm(d, s, s, beta=0, alpha=3), 3 * x @ x),
        (d.clone().mul_(s), d * x),
        (d.clone().add_(s), d + x),
    ):
        assert found.layout is treadle.strided
        assert_close(found, expected)
    with pytest.raises(RuntimeError) as raised:
        s.add_(d)
    text = "add_: expected a sparse tensor to add to a sparse one, got a strided one"
    assert str(raised.value) == text
    made = treadle.addmm(s, s, d)
    assert made.layout is s.layout
    assert_close(made.to_dense(), x + x @ d)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_new_tensor_has_the_layout(layout: str) -> None:
    s = _in(layout, _dense(4, 4))
    blocks = layout in ("sparse_bsr", "sparse_bsc")
    for made in (s.new_zeros((2, 3)), s.new_empty(2, 3)):
        assert made.layout is (treadle.sparse_coo if blocks else s.layout)
        assert made.shape == (2, 3) and made._nnz() == 0 and made.dtype == s.dtype
    assert s.new_zeros(3).layout is treadle.sparse_coo


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_tensor_of_one_value_has_the_entries_of_another(layout: str) -> None:
    s = _in(layout, _dense(4, 4))
    for made in (
        treadle.ones_like(s, layout=treadle.strided),
        treadle.full_like(s, 1, layout=treadle.strided),
    ):
        assert made.equal(treadle.ones(4, 4, dtype=s.dtype))
    if layout == "sparse_coo":
        with pytest.raises(NotImplementedError) as refused:
            treadle.ones_like(s)
        assert str(refused.value) == (
            "ones_like: expected strided tensors or compressed ones, got one of layout sparse_coo; "
            "call to_dense()"
        )
        assert treadle.empty_like(s)._nnz() == 0
        return
    for made, value in (
        (treadle.ones_like(s), 1),
        (treadle.full_like(s, 2.5, dtype=treadle.float64), 2.5),
    ):
        assert made.layout is s.layout and made.shape == s.shape
        assert made.values().shape == s.values().shape and (made.values() == value).all()
        assert (made * s).to_dense().equal((s * value).to_dense().to(made.dtype))
    assert treadle.empty_like(s).values().shape == s.values().shape
    with pytest.raises(RuntimeError, match=f"ones_like: expected the layout {layout}"):
        treadle.ones_like(s, layout=treadle.sparse_coo)
    first = treadle.ones_like(s)
    parts = first.crow_indices() if "sr" in layout else first.ccol_indices()
    parts.zero_()  # its indices are its own
    assert s.to_dense().equal(_in(layout, _dense(4, 4)).to_dense())


@pytest.mark.parametrize("layout", LAYOUTS)
def test_decompositions_take_sparse_matrices(layout: str) -> None:
    x = _dense(12, 6)
    s = _in(layout, x)
    u, values, v = treadle.svd_lowrank(s, q=8)
    assert_close(u @ values.diag() @ v.mT, x)
    u, values, v = treadle.pca_lowrank(s, q=6)
    assert_close(u @ values.diag() @ v.mT, x - x.mean(0))
    square = x @ x.mT
    assert_close(treadle.lobpcg(_in(layout, square), 2)[0], treadle.lobpcg(square, 2)[0])


# ---- gradients of embedding ----


def test_embedding_has_a_sparse_gradient() -> None:
    index = treadle.tensor([[1, 4], [1, 0]])
    found = []
    for sparse in (True, False):
        table = treadle.nn.Embedding(6, 3, padding_idx=0, sparse=sparse)
        with treadle.no_grad():
            table.weight.copy_(treadle.arange(18.0).reshape(6, 3))
        optimizer = treadle.optim.SGD(table.parameters(), lr=0.1)
        for _ in range(2):  # gradients add up
            (table(index) ** 2).sum().backward()
        assert table.weight.grad.is_sparse == sparse
        grad = table.weight.grad.to_dense()
        optimizer.step()
        found.append((grad, table.weight.detach()))
    assert_close(*found)


def test_optimisers_refuse_sparse_gradients_before_a_write() -> None:
    table = treadle.nn.Embedding(5, 2, sparse=True)
    before = table.weight.detach().clone()
    optimizer = treadle.optim.Adam(table.parameters())
    table(treadle.tensor([1])).sum().backward()
    with pytest.raises(RuntimeError) as error:
        optimizer.step()
    assert str(error.value) == (
        "Adam does not support sparse gradients, please consider SparseAdam instead"
    )
    assert treadle.equal(table.weight, before) and not optimizer.state


def test_gradient_scaler_takes_sparse_gradients() -> None:
    table = treadle.nn.Embedding(5, 2, sparse=True)
    before = table.weight.detach().clone()
    optimizer = treadle.optim.SGD(table.parameters(), lr=1.0)
    scaler = treadle.amp.GradScaler("cpu", init_scale=8.0)
    scaler.scale(table(treadle.tensor([1, 1])).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert_close(
        before - table.weight.detach(), treadle.tensor([[0.0] * 2, [2.0] * 2] + [[0.0] * 2] * 3)
    )


def test_strided_and_sparse_gradients_add_up() -> None:
    for order in (0, 1):
        weight = treadle.ones(4, 2, requires_grad=True)
        parts = [
            treadle.nn.functional.embedding(treadle.tensor([1, 1]), weight, sparse=True).sum(),
            (weight * 3).sum(),
        ]
        for part in parts[::-1] if order else parts:
            part.backward()
        assert weight.grad.to_dense().tolist() == [[3, 3], [5, 5], [3, 3], [3, 3]]
        (total,) = treadle.autograd.grad(
            treadle.nn.functional.embedding(treadle.tensor([2]), weight, sparse=True).sum()
            + (weight * 2).sum(),
            weight,
        )
        assert total.to_dense().tolist() == [[2, 2], [2, 2], [3, 3], [2, 2]]


def _doubled(queue: Any, answers: Any) -> None:
    s = queue.get()
    s.values().mul_(2)
    answers.put((str(s.layout), s.to_dense().tolist()))


@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr", "sparse_bsc"])
def test_other_processes_share_the_memory(layout: str) -> None:
    s = _in(layout, treadle.eye(2)).share_memory_()
    assert s.is_shared()
    queue, answers = treadle.multiprocessing.Queue(), treadle.multiprocessing.Queue()
    process = treadle.multiprocessing.Process(target=_doubled, args=(queue, answers))
    process.start()
    queue.put(s)
    there = answers.get(timeout=60)
    process.join()
    assert there == (f"treadle.{layout}", [[2, 0], [0, 2]])
    assert s.to_dense().tolist() == [[2, 0], [0, 2]]


class _Marker:
    pass


@pytest.mark.parametrize("layout", ["strided", "sparse_coo", "sparse_csr"])
def test_cycles_through_the_values_are_collected(layout: str) -> None:
    """A hook in the graph of the values holds the tensor that holds these."""

    def cycle() -> Any:
        x = treadle.eye(2, requires_grad=True)
        tensor = (x * 2).to_sparse(layout=getattr(treadle, layout))
        marker = _Marker()
        tensor.grad_fn.register_hook(lambda *_, kept=(tensor, marker): None)
        return weakref.ref(marker)

    marker = cycle()
    gc.collect()
    assert marker() is None


def test_parameters_are_sparse() -> None:
    parameter = treadle.nn.Parameter(treadle.eye(2).to_sparse())
    assert parameter.is_sparse and parameter.requires_grad and parameter.is_leaf
    (parameter @ treadle.ones(2, 1)).sum().backward()
    assert parameter.grad.to_dense().tolist() == [[1, 0], [0, 1]]


def test_a_file_with_indices_outside_names_the_tensor() -> None:
    bad = treadle.eye(2).to_sparse_csr()
    bad.col_indices()[0] = 7
    with pytest.raises(RuntimeError) as error:
        pickle.loads(pickle.dumps(bad))
    assert str(error.value) == (
        "sparse_csr_tensor: expected columns in order, each once, from 0 to 1, got 7"
    )


# ---- pointwise operators, by the entries of the model ----


def _of_matrices(op: Any) -> Any:
    """The arguments of a sample whose tensors are matrices of one shape; None if there is none."""
    for sample in samples_of(op, "float64"):
        given = (*sample.args, *sample.kwargs.values())
        shapes = {a.shape for a in given if isinstance(a, np.ndarray)}
        if len(shapes) == 1 and len(next(iter(shapes))) == 2 and 0 not in next(iter(shapes)):
            return sample
    return None


def _pointwise() -> list:
    """Every pointwise operator that takes float64, with arguments from its samples."""
    found = [op for op in operators() if op.kind == "pointwise" and in_suite(op) and not op.random]
    pairs = [(op, _of_matrices(op)) for op in found if "float64" in op.dtypes]
    return [pytest.param(op, s, id=op.id) for op, s in pairs if s is not None]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("op, sample", _pointwise())
def test_pointwise_operators_agree_with_the_strided_ones(op: Any, sample: Any, layout: str) -> None:
    """The result is that of the strided tensors, or the operator is refused by its name, and then
    it is not 0 at zeros."""
    rng = np.random.default_rng(1)

    def call(make: Callable) -> Any:
        args = [make(a) if isinstance(a, np.ndarray) else a for a in sample.args]
        named = sample.kwargs.items()
        kwargs = {k: make(a) if isinstance(a, np.ndarray) else a for k, a in named}
        return op.function(*args, **kwargs)

    masks = {
        id(a): rng.random(a.shape) < 0.5
        for a in (*sample.args, *sample.kwargs.values())
        if isinstance(a, np.ndarray)
    }
    strided = {
        id(a): treadle.tensor(np.where(masks[id(a)], a, a.dtype.type(0)))
        for a in (*sample.args, *sample.kwargs.values())
        if isinstance(a, np.ndarray)
    }

    def sparse(a: Any) -> Any:
        blocks = {"blocksize": (1, a.shape[1])} if layout in ("sparse_bsr", "sparse_bsc") else {}
        return strided[id(a)].to_sparse(layout=getattr(treadle, layout), **blocks)

    try:
        result = call(sparse)
    except NotImplementedError as error:
        assert layout in str(error) and ": expected " in str(error)
        at_zero = call(lambda a: treadle.zeros(1, dtype=strided[id(a)].dtype))
        assert len(masks) > 2 or bool((at_zero != 0).any())
        return
    assert result.layout is getattr(treadle, layout)
    assert_close(result.to_dense(), call(lambda a: strided[id(a)]), equal_nan=True)


def test_the_pointwise_operators_are_many() -> None:
    assert len(_pointwise()) > 150


def test_what_stays_sparse() -> None:
    s, t = _dense(seed=1).to_sparse(), _dense(seed=2).to_sparse()
    both = (s.to_dense() != 0) & (t.to_dense() != 0)
    assert (s * t)._nnz() == int(both.sum())
    assert s.sin()._nnz() == s._nnz() and s.maximum(t)._nnz() >= s._nnz()
    for call in (s.exp, s.cos, lambda: s + 1.0, lambda: s == t):
        with pytest.raises(NotImplementedError, match="expected"):
            call()


# ---- products and gradients ----


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "complex128", "bfloat16"])
def test_products(layout: str, dtype: str) -> None:
    kind = getattr(treadle, dtype)
    a, b = (3 * _dense(seed=3)).to(kind), (3 * _dense(8, 6, seed=4)).to(kind)
    s, t = _in(layout, a), _in(layout, b)
    vector = b[:, 0]
    for result, wanted in (
        (s @ b, a @ b),
        (a @ t, a @ b),
        (s @ t, a @ b),
        (s @ vector, a @ vector),
        (treadle.addmm(a @ b, s, b), a @ b + a @ b),
    ):
        result = result.to_dense()
        assert_close(
            result,
            wanted,
            rtol=2e-2 if dtype == "bfloat16" else 1e-5,
            atol=1e-1 if dtype == "bfloat16" else 1e-5,
        )


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "function",
    [
        lambda s, d: s @ d,
        lambda s, d: d.t() @ s.t(),
        lambda s, d: (s @ s.t()).to_dense(),
        lambda s, d: s.sin().to_dense(),
        lambda s, d: (s * s).to_dense() * 2,
        lambda s, d: (s * d.t()[:1]).to_dense(),
        lambda s, d: s.sum(0).to_dense(),
    ],
)
def test_gradients_are_those_of_the_strided_computation(function: Callable, layout: str) -> None:
    x, d = _dense(seed=5), _dense(8, 3, seed=6) + 1
    d = d[:, :1].expand(8, 8) if function.__code__.co_consts[-1] == 1 else d
    found = []
    for make in (lambda t: _in(layout, t), lambda t: t):
        leaves = [x.clone().requires_grad_(), d.detach().clone().requires_grad_()]
        result = function(make(leaves[0] * 1), leaves[1])
        weights = treadle.arange(1.0, result.numel() + 1, dtype=result.dtype).reshape(result.shape)
        (result * weights).sum().backward()
        found.append([leaf.grad for leaf in leaves])
    # Elements without an entry have no gradient.
    mask = _in(layout, x.clone()).to_dense() != 0
    stored = mask if layout not in ("sparse_bsr", "sparse_bsc") else None
    sparse, strided = found
    if stored is not None:
        assert_close(sparse[0] * stored, strided[0] * stored)
        assert not (sparse[0] * ~stored).any()
    if strided[1] is not None:
        assert_close(sparse[1], strided[1])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_gradcheck_takes_sparse_inputs_and_outputs(layout: str) -> None:
    check = treadle.sparse.as_sparse_gradcheck(treadle.autograd.gradcheck)
    s = _in(layout, _dense(4, 4)).requires_grad_()
    d = treadle.randn(4, 2, dtype=treadle.float64, requires_grad=True)
    assert check(lambda a, b: a.sin() @ b, (s, d), masked=True)
    assert check(lambda a: a * a, s)
    assert treadle.autograd.gradgradcheck(lambda a, b: a.sin() @ b, (s, d))

    class Twice(treadle.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: treadle.Tensor) -> treadle.Tensor:
            return a.clone()

        @staticmethod
        def backward(ctx: Any, grad: treadle.Tensor) -> treadle.Tensor:
            return 2 * grad

    with pytest.raises(RuntimeError, match="^Jacobian mismatch"):
        check(lambda a: Twice.apply(a @ d), s)


def test_gradients_of_a_sampled_product() -> None:
    s = _dense(6, 8, seed=7).to_sparse_csr()
    a, b = _dense(6, 3, seed=8) + 1, _dense(3, 8, seed=9) + 1

    def function(values: Any, a: Any, b: Any) -> Any:
        pattern = treadle.sparse_csr_tensor(s.crow_indices(), s.col_indices(), values, s.shape)
        return treadle.sparse.sampled_addmm(pattern, a, b, beta=0.5, alpha=2.0).values()

    mask = s.to_dense() != 0
    wanted = (0.5 * s.to_dense() + 2 * (a @ b))[mask]
    assert_close(function(s.values(), a, b), wanted)
    inputs = [x.detach().clone().requires_grad_() for x in (s.values(), a, b)]
    assert treadle.autograd.gradcheck(function, inputs)


def test_second_gradients_of_a_product() -> None:
    s = _dense(seed=5).to_sparse_csr()

    def function(values: Any, dense: Any) -> Any:
        return treadle.sparse_csr_tensor(s.crow_indices(), s.col_indices(), values, s.shape) @ dense

    inputs = [x.detach().clone().requires_grad_() for x in (s.values(), _dense(8, 2, seed=6) + 1)]
    assert treadle.autograd.gradcheck(function, inputs)
    assert treadle.autograd.gradgradcheck(function, inputs)


@pytest.mark.parametrize("layout", COMPRESSED)
def test_the_same_bits_at_any_number_of_threads(layout: str) -> None:
    x = _dense(400, 300, dtype=treadle.float32)
    s, d = _in(layout, x), _dense(300, 40, seed=1, dtype=treadle.float32)
    results = []
    before = treadle.get_num_threads()
    for threads in (1, 2, 3, 8):
        treadle.set_num_threads(threads)
        results.append((s @ d, (s @ s.t()).to_dense()))
    treadle.set_num_threads(before)
    for result in results[1:]:
        assert treadle.equal(result[0], results[0][0]) and treadle.equal(result[1], results[0][1])
