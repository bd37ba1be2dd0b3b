"""A row has the same bits in a batch of any size: of products, convolutions, norms, softmax and
attention.
"""

# SPDX-License-Identifier: Apache-2.0

import pytest

import treadle
from treadle.nn import functional

SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 12, 13, 31, 64)


def _numbers(*sizes, dtype):
    return treadle.randn(*sizes).to(dtype)


def _mm(dtype):
    right = _numbers(70, 45, dtype=dtype)
    return (70,), lambda x: x @ right


def _mm_of_few_columns(dtype):
    right = _numbers(700, 3, dtype=dtype)
    return (700,), lambda x: x @ right


def _mm_by_columns(dtype):
    right = _numbers(33, 300, dtype=dtype).t()
    return (300,), lambda x: x @ right


def _mv(dtype):
    right = _numbers(5000, dtype=dtype)
    return (5000,), lambda x: x @ right


def _long_mm(dtype):
    right = _numbers(20_000, 9, dtype=dtype)
    return (20_000,), lambda x: x @ right


def _linear(dtype):
    weight, bias = _numbers(37, 520, dtype=dtype), _numbers(37, dtype=dtype)
    return (520,), lambda x: functional.linear(x, weight, bias)


def _einsum(dtype):
    right = _numbers(24, 5, 18, dtype=dtype)
    return (24, 5), lambda x: treadle.einsum("bij,ijk->bk", x, right)


def _convolution(dtype):
    weight = _numbers(16, 8, 3, 3, dtype=dtype)
    return (8, 12, 12), lambda x: functional.conv2d(x, weight, padding=1)


def _layer_norm(dtype):
    return (65,), lambda x: functional.layer_norm(x, (65,))


def _group_norm(dtype):
    return (8, 9), lambda x: functional.group_norm(x, 4)


def _softmax(dtype):
    return (101,), lambda x: functional.softmax(x, 1)


def _attention(dtype):
    return (2, 40, 16), lambda x: functional.scaled_dot_product_attention(x, x, x, is_causal=True)


@pytest.mark.parametrize("dtype", [treadle.float32, treadle.bfloat16], ids=str)
@pytest.mark.parametrize(
    "case",
    [
        _mm,
        _mm_of_few_columns,
        _mm_by_columns,
        _mv,
        _long_mm,
        _linear,
        _einsum,
        _convolution,
        _layer_norm,
        _group_norm,
        _softmax,
        _attention,
    ],
    ids=lambda case: case.__name__.strip("_"),
)
def test_rows_have_the_same_bits_in_any_batch(case, dtype):
    treadle.manual_seed(0)
    sizes, function = case(dtype)
    batch = _numbers(max(SIZES), *sizes, dtype=dtype)
    expected = function(batch)
    for size in SIZES:
        assert treadle.equal(function(batch[:size]), expected[:size]), size
        assert treadle.equal(function(batch[-size:]), expected[-size:]), size


@pytest.mark.parametrize("columns", [1, 2, 65, 129])
@pytest.mark.parametrize("dtype", [treadle.float32, treadle.bfloat16], ids=str)
def test_threads_that_share_the_columns_give_the_same_bits(columns, dtype):
    # A thread's part of the columns may be a single one.
    left, right = _numbers(5, 9000, dtype=dtype), _numbers(9000, columns, dtype=dtype)
    threads, results = treadle.get_num_threads(), []
    try:
        for count in (1, 2, 3, 8):
            treadle.set_num_threads(count)
            results.append(left @ right)
    finally:
        treadle.set_num_threads(threads)
    assert all(treadle.equal(result, results[0]) for result in results)


@pytest.mark.parametrize("dtype", [treadle.float32, treadle.float64], ids=str)
def test_a_column_of_rows_has_the_same_bits_as_rows(dtype):
    # A matrix whose columns are contiguous takes another way through the loops.
    left, right = _numbers(64, 300, dtype=dtype), _numbers(300, 40, dtype=dtype)
    expected = left @ right
    by_columns = left.t().contiguous().t()
    assert treadle.equal(by_columns @ right, expected)
    assert treadle.equal(by_columns[:3] @ right, expected[:3])


@pytest.mark.parametrize("terms", [7, 64, 250, 300, 520, 777, 1040])
@pytest.mark.parametrize(
    "dtype", [treadle.float32, treadle.float64, treadle.bfloat16, treadle.float16], ids=str
)
def test_one_row_by_columns_has_the_bits_of_a_row_of_many(terms, dtype):
    """Whether its sums are of one piece or several, an odd number too, and of few columns."""
    batch = _numbers(8, terms, dtype=dtype)
    for columns in (3, 10, 16, 33, 70):
        weight = _numbers(columns, terms, dtype=dtype)
        expected = functional.linear(batch, weight)
        for row in range(2):
            one = functional.linear(batch[row : row + 1], weight)
            assert treadle.equal(one, expected[row : row + 1]), (columns, row)


def test_one_row_by_a_large_matrix_has_the_bits_of_a_row_of_many():
    batch, weight = treadle.randn(8, 1030), treadle.randn(2100, 1030)
    assert treadle.equal(functional.linear(batch[:1], weight), functional.linear(batch, weight)[:1])


@pytest.mark.parametrize("addend", [(40, 30), (1, 30), (30,), (40, 1), (1,), ()])
@pytest.mark.parametrize("terms", [3, 300, 5000])
def test_addmm_adds_last(addend, terms):
    """Whatever the addend's shape and the length of the sums, and in place."""
    a, b, c = treadle.randn(40, terms), treadle.randn(terms, 30), treadle.randn(addend)
    expected = 0.5 * (a @ b) + 2 * c
    for given in (c, treadle.stack([c, c], -1)[..., 0]):
        assert treadle.equal(treadle.addmm(given, a, b, beta=2, alpha=0.5), expected)
        assert treadle.equal(treadle.addmm(given.expand(40, 30), a, b, beta=2, alpha=0.5), expected)
    whole = c.expand(40, 30).clone()
    assert treadle.equal(whole.addmm_(a, b, beta=2, alpha=0.5), expected)


def _strided(rows, columns, way):
    """A matrix of bfloat16 whose rows, or columns, or neither, lie together."""
    if way == "rows":
        return treadle.randn(rows + 1, columns + 3).bfloat16()[1:, 3:]
    if way == "columns":
        return treadle.randn(columns, rows).bfloat16().t()
    return treadle.randn(rows * 2 + 1, columns * 3 + 2).bfloat16()[1::2, 2::3][:rows, :columns]


@pytest.mark.parametrize("length", (1, 2, 3, 16, 33, 511, 513, 1025))
def test_products_of_bfloat16_with_any_strides(length):
    treadle.manual_seed(length)
    for rows in (1, 2, 4, 5, 13, 40):
        for columns in (1, 3, 15, 16, 33, 70):
            for of_left in ("rows", "columns", "neither"):
                for of_right in ("rows", "columns", "neither"):
                    left = _strided(rows, length, of_left)
                    right = _strided(length, columns, of_right)
                    result = left @ right
                    expected = left.double() @ right.double()
                    terms = left.double().abs() @ right.double().abs()
                    bound = expected.abs() * 2**-8 + terms * length * 2**-23
                    assert bool(((result.double() - expected).abs() <= bound).all())
                    row = rows // 2
                    assert treadle.equal(left[row : row + 1] @ right, result[row : row + 1])
