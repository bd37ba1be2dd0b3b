"""Long sums: every kernel of the model that adds up or multiplies any number of elements, how it is
called with `n` terms in each value of the result, and how far from float64's the value may be.

A kernel is in SUMS or in OTHERS; what is made of other operators adds by means of these. `./dev
python tests/python/operators/accuracy/write_page.py` writes the table to docs/accuracy.md.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Mapping

import numpy as np

import treadle
import treadle.meta
import treadle.nn.functional as F

# In parts of the largest value of the result; where signs mix, of the sum of the magnitudes.
BOUND = 1e-6
COUNTS = (10**6, 10**7)

Numbers = Callable[..., Any]
Tensor = treadle.Tensor


@dataclass(frozen=True)
class Sum:
    """How `n` terms get into one value: the function, and its arguments in float64."""

    call: Callable[..., Any]
    arguments: Callable[[int, np.random.Generator], tuple[np.ndarray, ...]]
    gradient: bool = False  # whether what counts is the gradients of the arguments
    # Where signs mix: the sum of the magnitudes, of the largest value.
    magnitude: float = 1


def _uniform(*shape: Callable[[int], tuple[int, ...]]) -> Any:
    """Positive numbers, in arrays of these shapes."""
    return lambda n, rng: tuple(rng.uniform(0.5, 1.5, s(n)) for s in shape)


def _apart(*shape: Callable[[int], tuple[int, ...]]) -> Any:
    """The same, but the columns of the first differ: rows that vary little have no good norm."""

    def make(n: int, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        first, *rest = _uniform(*shape)(n, rng)
        return (first + 2.0 * np.arange(first.shape[-1]), *rest)

    return make


def _near_one(*shape: Callable[[int], tuple[int, ...]]) -> Any:
    """Numbers whose product is neither large nor small."""
    return lambda n, rng: tuple(np.exp(rng.standard_normal(s(n)) * 1e-3) for s in shape)


def _zeros(t: Tensor, *sizes: int) -> Tensor:
    return treadle.zeros(*sizes, dtype=t.dtype)


def _places(t: Tensor) -> Tensor:
    """Index 0 for each row of t."""
    return treadle.zeros(t.shape[0], dtype=treadle.int64)


def _sparse_row(values: Tensor) -> Tensor:
    """The row as a sparse matrix."""
    n = len(values)
    return treadle.sparse_csr_tensor(treadle.tensor([0, n]), treadle.arange(n), values, (1, n))


def _batch_norm(x: Tensor, *parameters: Tensor) -> Tensor:
    return F.batch_norm(x, None, None, *parameters, training=True)


def _int8_product(x: Tensor) -> Tensor:
    """float32 by the operator, float64 by its definition."""
    n = x.shape[1]
    weight = (treadle.arange(2 * n).reshape(2, n) % 100 + 1).to(treadle.int8)
    scales = treadle.ones(2, dtype=x.dtype)
    if x.dtype == treadle.float64:
        return x @ weight.to(x.dtype).t()
    return treadle._weight_int8pack_mm(x, weight, scales)


def _int4_product(x: Tensor) -> Tensor:
    """float32 by the operator, float64 by its definition."""
    n = x.shape[1] // 256 * 256
    numbers = (treadle.arange(16 * n).reshape(16, n) % 7 + 9).to(treadle.int32)
    if x.dtype == treadle.float64:
        return x[:, :n] @ (numbers - 8).to(x.dtype).t()
    factors = treadle.tensor([1.0, 0.0]).expand(n // 256, 16, 2)
    packed = treadle._convert_weight_to_int4pack_for_cpu(numbers, 1)
    return treadle._weight_int4pack_mm_for_cpu(x[:, :n].contiguous(), packed, 256, factors)


def _attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v)


ROW, ROWS, COLUMNS = (lambda n: (n,)), (lambda n: (n, 3)), (lambda n: (3, n))
IMAGE = lambda n: (1, 1, n // 1000, 1000)  # noqa: E731
VOLUME = lambda n: (1, 1, n // 10000, 100, 100)  # noqa: E731
LINE = lambda n: (1, 1, n)  # noqa: E731
PLANES = lambda n: (n // 1000, 2, 1000)  # noqa: E731
FEW, TWO = (lambda n: (3,)), (lambda n: (2,))

SUMS: Mapping[str, Sum] = {
    "sum": Sum(treadle.sum, _uniform(ROW)),
    "sum.dim_IntList": Sum(lambda x: treadle.sum(x, 0), _uniform(ROWS)),
    "nansum": Sum(lambda x: treadle.nansum(x, 0), _uniform(ROWS)),
    "_sum_of_squares": Sum(treadle.linalg.vector_norm, _uniform(ROW)),
    "_sum_of_magnitudes": Sum(lambda x: treadle.linalg.vector_norm(x, 1, 0), _uniform(ROWS)),
    "mean": Sum(treadle.mean, _uniform(ROW)),
    "mean.dim": Sum(lambda x: treadle.mean(x, 0), _uniform(ROWS)),
    "prod": Sum(treadle.prod, _near_one(ROW)),
    "prod.dim_int": Sum(lambda x: treadle.prod(x, 0), _near_one(ROWS)),
    "var.correction": Sum(lambda x: treadle.var(x, 0), _uniform(ROWS)),
    "std.correction": Sum(lambda x: treadle.std(x, 1), _uniform(COLUMNS)),
    "cumsum": Sum(lambda x: treadle.cumsum(x, 0), _uniform(ROW)),
    "cumprod": Sum(lambda x: treadle.cumprod(x, 0), _near_one(ROW)),
    "logcumsumexp": Sum(lambda x: treadle.logcumsumexp(x, 0), _uniform(ROW)),
    "mm": Sum(treadle.mm, _uniform(COLUMNS, ROWS)),
    "addmm": Sum(treadle.addmm, _uniform(FEW, COLUMNS, ROWS)),
    "bmm": Sum(treadle.bmm, _uniform(lambda n: (2, 1, n), lambda n: (2, n, 1))),
    "baddbmm": Sum(
        treadle.baddbmm, _uniform(lambda n: (2, 1, 1), lambda n: (2, 1, n), lambda n: (2, n, 1))
    ),
    "_weight_int8pack_mm": Sum(_int8_product, _uniform(COLUMNS)),
    "_weight_int4pack_mm_for_cpu": Sum(_int4_product, _uniform(COLUMNS)),
    "_softmax": Sum(lambda x: treadle.softmax(x, 1), _uniform(COLUMNS)),
    "_softmax_backward_data": Sum(
        lambda x, g: treadle.softmax(x, 1) * g, _uniform(COLUMNS, COLUMNS), gradient=True
    ),
    "_log_softmax": Sum(lambda x: treadle.log_softmax(x, 0), _uniform(ROWS)),
    "_log_softmax_backward_data": Sum(
        lambda x: treadle.log_softmax(x, 0), _uniform(ROWS), gradient=True, magnitude=4
    ),
    "nll_loss_forward": Sum(lambda x: F.nll_loss(x, _places(x)), _uniform(lambda n: (n, 1))),
    "native_layer_norm": Sum(lambda x: F.layer_norm(x, x.shape[1:]), _uniform(COLUMNS)),
    "_layer_norm_backward": Sum(
        lambda x, w, b: F.layer_norm(x, (3,), w, b),
        _apart(ROWS, FEW, FEW),
        gradient=True,
        magnitude=4,
    ),
    "native_group_norm": Sum(lambda x: F.group_norm(x, 2), _uniform(PLANES)),
    "_group_norm_backward": Sum(
        lambda x, w, b: F.group_norm(x, 2, w, b),
        _uniform(PLANES, TWO, TWO),
        gradient=True,
        magnitude=4,
    ),
    "_rms_norm": Sum(lambda x: F.rms_norm(x, x.shape[1:]), _uniform(COLUMNS)),
    "_rms_norm_backward": Sum(
        lambda x, w: F.rms_norm(x, (3,), w), _apart(ROWS, FEW), gradient=True
    ),
    "_batch_norm_train": Sum(_batch_norm, _uniform(PLANES)),
    "_batch_norm_backward": Sum(_batch_norm, _uniform(PLANES, TWO, TWO), gradient=True),
    "avg_pool1d": Sum(lambda x: F.avg_pool1d(x, x.shape[-1]), _uniform(LINE)),
    "avg_pool2d": Sum(lambda x: F.avg_pool2d(x, x.shape[-2:]), _uniform(IMAGE)),
    "avg_pool3d": Sum(lambda x: F.avg_pool3d(x, x.shape[-3:]), _uniform(VOLUME)),
    "adaptive_avg_pool1d": Sum(lambda x: F.adaptive_avg_pool1d(x, 1), _uniform(LINE)),
    "adaptive_avg_pool2d": Sum(lambda x: F.adaptive_avg_pool2d(x, 1), _uniform(IMAGE)),
    "adaptive_avg_pool3d": Sum(lambda x: F.adaptive_avg_pool3d(x, 1), _uniform(VOLUME)),
    "_adaptive_avg_pool_backward": Sum(
        lambda x, g: F.adaptive_avg_pool1d(x, g.shape[-1]) * g,
        _uniform(lambda n: (1, 1, 1), LINE),
        gradient=True,
    ),
    "_max_pool_backward": Sum(
        lambda x, g: F.adaptive_max_pool1d(x, g.shape[-1]) * g,
        _uniform(lambda n: (1, 1, 1), LINE),
        gradient=True,
    ),
    "_resample": Sum(
        lambda x: F.interpolate(x, size=(1, 1), mode="bilinear", antialias=True),
        _uniform(lambda n: (1, 1, 1, n)),
    ),
    "_resample_backward": Sum(
        lambda x, g: F.interpolate(x, size=g.shape[-1], mode="linear") * g,
        _uniform(lambda n: (1, 1, 2), LINE),
        gradient=True,
    ),
    "_grid_sampler_backward": Sum(
        # The gradient of the grid jumps where a point rounds to another cell.
        lambda x, grid: F.grid_sample(x, grid.detach(), align_corners=False, padding_mode="border"),
        lambda n, rng: (
            rng.uniform(0.5, 1.5, (1, 1, 2, 2)),
            rng.uniform(-1, 1, (1, 1, n, 2)),
        ),
        gradient=True,
    ),
    "embedding_dense_backward": Sum(
        lambda w, g: F.embedding(_places(g), w) * g, _uniform(lambda n: (1, 3), ROWS), gradient=True
    ),
    "_embedding_bag": Sum(
        lambda w, f: F.embedding_bag(
            _places(f), w, treadle.tensor([0]), mode="sum", per_sample_weights=f
        ),
        _uniform(lambda n: (1, 3), ROW),
    ),
    "index_add": Sum(lambda x: _zeros(x, 1, 3).index_add(0, _places(x), x), _uniform(ROWS)),
    "_index_put_integer": Sum(
        lambda x: _zeros(x, 2).index_put((_places(x),), x, accumulate=True), _uniform(ROW)
    ),
    "scatter_add": Sum(lambda x: _zeros(x, 2).scatter_add(0, _places(x), x), _uniform(ROW)),
    "scatter.reduce": Sum(
        lambda x: _zeros(x, 2).scatter(0, _places(x), x, reduce="add"), _uniform(ROW)
    ),
    "scatter.value_reduce": Sum(
        lambda x: _zeros(x, 2).scatter(0, _places(x), 0.1, reduce="add"), _uniform(ROW)
    ),
    "scatter_reduce.two": Sum(
        lambda x: _zeros(x, 2).scatter_reduce(0, _places(x), x, "mean"), _uniform(ROW)
    ),
    "reindex_reduce": Sum(
        lambda x: treadle.meta.reindex_reduce(x, "sum", (2,), ["i0 // 1000000000"]), _uniform(ROW)
    ),
    "_histogramdd": Sum(
        lambda x, w: treadle.histogram(x, bins=2, range=(0.0, 2.0), weight=w).hist,
        _uniform(ROW, ROW),
    ),
    "_cdist": Sum(lambda a, b: treadle.cdist(a, b, p=1.0), _uniform(COLUMNS, COLUMNS)),
    "convolution": Sum(
        F.conv1d, _uniform(lambda n: (1, 1000, n // 1000), lambda n: (2, 1000, n // 1000))
    ),
    "_convolution_grad_weight": Sum(
        lambda x, w, b: F.conv2d(x, w, b),
        _uniform(lambda n: (n // 10000, 1, 102, 102), lambda n: (2, 1, 3, 3), TWO),
        gradient=True,
    ),
    "_csr_mm": Sum(lambda x, w: _sparse_row(x) @ w, _uniform(ROW, ROWS)),
    "_csr_mv_turned": Sum(
        lambda x, w: _sparse_row(x).to_sparse_csc() @ w[:, 0], _uniform(ROW, ROWS)
    ),
    "_csr_sampled_mm": Sum(
        lambda x, w: treadle.sparse.sampled_addmm(_sparse_row(_zeros(w, 1)), x, w).values(),
        _uniform(lambda n: (1, n), lambda n: (n, 1)),
    ),
    "_csr_row_dots": Sum(
        lambda x, w: (_sparse_row(x) @ _sparse_row(w).t()).values(),
        _uniform(ROW, ROW),
        gradient=True,
    ),
    "_attention": Sum(
        _attention, _uniform(lambda n: (1, 1, 1, 2), lambda n: (1, 1, n, 2), lambda n: (1, 1, n, 2))
    ),
    "_attention_backward": Sum(
        lambda q, k, v: _attention(q.detach(), k, v),  # q's gradient has a term for each key
        _uniform(lambda n: (1, 1, n, 2), lambda n: (1, 1, 2, 2), lambda n: (1, 1, 2, 2)),
        gradient=True,
    ),
}

# Kernels without long sums: by what each does.
OTHERS: Mapping[str, str] = {
    "They choose or move elements": """
        amax amin argmax argmin cummax cummin flip frexp.Tensor gather index_copy
        index_fill.int_Scalar reindex index_select kthvalue max.dim min.dim median.dim nanmedian.dim
        mode scatter.src scatter.value _searchsorted sort _sort_values topk tril triu embedding
        im2col _cat _stack _index_integer _max_pool_gather _max_unpool max_pool1d_with_indices
        max_pool2d_with_indices max_pool3d_with_indices adaptive_max_pool1d adaptive_max_pool2d
        adaptive_max_pool3d _csr_dense
        """,
    "They count elements": "all all.dim all.dims any any.dim any.dims histc",
    "They compute each element by itself": """
        _dirichlet_grad _standard_gamma_grad _attention_dropout_mask _quantize_affine
        nll_loss_backward
        grid_sampler_2d grid_sampler_3d _gru_cell _gru_cell_backward _lstm_cell
        _lstm_cell_backward _float4_bytes
        """,
    "They add one term for each overlapping window": "col2im _avg_pool_backward",
    "They compute one time step after the other": "_ctc_loss _ctc_loss_backward",
    "The error of this transform grows with the logarithm of its length": "_fft_r2c",
    "Their error depends on the condition number of the matrix": """
        geqrf ormqr linalg_householder_product linalg_matrix_exp linalg_qr linalg_solve_triangular
        _csr_triangular_solve
        linalg_ldl_solve _linalg_cholesky _linalg_eig _linalg_eigh _linalg_ldl _linalg_lu
        _linalg_solve _linalg_svd
        """,
}


def reason(operator: str) -> str:
    """Why a kernel has no long sums; empty where it is not named."""
    return next((why for why, names in OTHERS.items() if operator in names.split()), "")


def _gradient(result: Tensor) -> Tensor:
    """A gradient that differs from value to value, and grows with them: sums of its products with
    them do not cancel.
    """
    noise = np.random.default_rng(0).uniform(0.5, 1.5, tuple(result.shape))
    centred = result - result.mean()
    largest = max(float(centred.abs().max()), 1e-300)
    return (treadle.from_numpy(noise) + centred / largest).float().double()


def _computed(
    case: Sum, arrays: tuple[np.ndarray, ...], dtype: Any, given: list[Tensor]
) -> list[np.ndarray]:
    """The result, or the gradients for the gradient `given`, which the first call makes."""
    tensors = [treadle.from_numpy(a).to(dtype) for a in arrays]
    if not case.gradient:
        return [case.call(*tensors).double().numpy()]
    leaves = [t.requires_grad_() for t in tensors]
    result = case.call(*leaves)
    if not given:
        given.append(_gradient(result.detach()))
    result.backward(given[0].to(dtype))
    return [t.grad.double().numpy() for t in leaves if t.grad is not None]


def error(operator: str, n: int) -> float:
    """The largest error of float32 with `n` terms, of the largest value."""
    case = SUMS[operator]
    rng = np.random.default_rng(n)
    arrays = tuple(a.astype(np.float32).astype(np.float64) for a in case.arguments(n, rng))
    given: list[Tensor] = []
    exact = _computed(case, arrays, treadle.float64, given)
    found = _computed(case, arrays, treadle.float32, given)
    return max(
        float(np.abs(f - e).max() / (case.magnitude * max(np.abs(e).max(), 1e-300)))
        for f, e in zip(found, exact)
    )
