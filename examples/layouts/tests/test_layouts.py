"""The layout low_rank and the dtype q16_16, built as the README says."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
import io
import pickle
from pathlib import Path

import pytest

import treadle
from treadle import Tensor
from treadle.testing import assert_close

HERE = Path(__file__).parent.parent
treadle.ops.load_library(HERE / "low_rank.so")
treadle.ops.load_library(HERE / "q16_16.so")
low_rank = treadle.library.registered_layout("low_rank")
q16_16 = treadle.library.registered_dtype("q16_16")


def example(n: int = 4, m: int = 6, seed: int = 0) -> Tensor:
    generator = treadle.Generator().manual_seed(seed)
    left = treadle.randn(n, 2, generator=generator, dtype=treadle.float64)
    right = treadle.randn(2, m, generator=generator, dtype=treadle.float64)
    return low_rank.tensor((n, m), left=left, right=right)


def test_products() -> None:
    a, b = example(), example(6, 5, 1)
    dense = treadle.randn(6, 3, dtype=treadle.float64)
    assert (a @ b).layout is low_rank.layout
    assert_close((a @ b).to_dense(), a.to_dense() @ b.to_dense())
    assert_close(a @ dense, a.to_dense() @ dense)
    assert_close(dense.t() @ a.t(), (a.to_dense() @ dense).t())
    assert_close((-a * 3).to_dense(), a.to_dense() * -3)
    assert_close(a.clone().neg_().to_dense(), -a.to_dense())


def test_gradients_flow_to_both_parts() -> None:
    left = treadle.ones(4, 2, requires_grad=True)
    right = treadle.ones(2, 6, requires_grad=True)
    a = low_rank.tensor((4, 6), left=left, right=right)
    (a @ treadle.ones(6, 3)).sum().backward()
    assert left.grad is not None and right.grad is not None
    assert left.grad.tolist() == [[18.0, 18.0]] * 4 and right.grad.tolist() == [[12.0] * 6] * 2


def test_copies_files_and_conversions() -> None:
    a = example()
    file = io.BytesIO()
    treadle.save(a, file)
    file.seek(0)
    for again in (copy.deepcopy(a), pickle.loads(pickle.dumps(a)), treadle.load(file)):
        assert again.layout is low_rank.layout
        assert_close(again.to_dense(), a.to_dense())
    small = a.to(treadle.float32)
    assert small.dtype is treadle.float32 and low_rank.contents(small).right.dtype is small.dtype


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError) as error:
        low_rank.tensor((4, 6), left=treadle.ones(4, 2), right=treadle.ones(3, 6))
    assert str(error.value) == (
        "low_rank_tensor: expected left (n, r) and right (r, m) for size (4, 6), got (4, 2) and "
        "(3, 6)"
    )
    with pytest.raises(NotImplementedError) as refused:
        example().exp()
    assert str(refused.value) == (
        "exp: expected strided tensors, got one of layout low_rank; call to_dense()"
    )


def test_a_library_is_refused_twice(tmp_path: Path) -> None:
    """A copy of it registers the same names."""
    again = tmp_path / "again.so"
    again.write_bytes((HERE / "low_rank.so").read_bytes())
    with pytest.raises(RuntimeError) as error:
        treadle.ops.load_library(again)
    assert str(error.value) == (
        "again.so: expected a new layout name, got 'low_rank', which is taken"
    )


def test_the_dtype() -> None:
    x = treadle.tensor([0.1, 3.0, 1e9], dtype=q16_16)
    assert repr(q16_16) == "treadle.q16_16" and x.element_size() == 4
    assert x.view(treadle.int32).tolist() == [6554, 3 * 65536, 2**31 - 1]
    assert (x[:2] * 2).dtype is q16_16 and (x[:2] * 2).view(treadle.int32).tolist()[1] == 6 * 65536
    assert (x + treadle.ones(3)).dtype is treadle.float64
    many = treadle.arange(100_000).to(treadle.float64) / 65536
    assert treadle.equal(many.to(q16_16).to(treadle.float64), many)
    assert pickle.loads(pickle.dumps(x)).tolist() == x.tolist()
