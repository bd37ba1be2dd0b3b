"""Views share memory with what they are views of, and writes through one are seen through the
other.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import pytest

import treadle
from treadle_testing.cases import dtypes_of, in_suite, samples_of
from treadle_testing.catalogue import Operator, operators
from treadle_testing.check import tensors
from treadle_testing.sample import map_arrays, to_array, to_tensor


def _is_view(op: Operator) -> bool:
    """The schema says that the result shares memory with an argument that it does not write to."""
    alias = op.args[0]["type"]["alias"] if op.args else None
    # With an argument `copy` the result is a view only where nothing is converted.
    return bool(alias and not alias["write"]) and all(a["name"] != "copy" for a in op.args)


VIEWS = [o for o in operators() if in_suite(o) and _is_view(o)]


@pytest.mark.parametrize("op", VIEWS, ids=repr)
def test_shares_memory(op: Operator) -> None:
    dtype = next(d for d in ("float32", *dtypes_of(op)) if d in dtypes_of(op))
    for sample in samples_of(op, dtype):
        base = to_tensor(sample.args[0], dtype)
        args = map_arrays(list(sample.args[1:]), lambda a: to_tensor(a, dtype))
        for view in tensors(op.function(base, *args, **sample.kwargs)):
            if view.numel() == 0:
                continue
            assert view.untyped_storage().data_ptr() == base.untyped_storage().data_ptr()
            base.fill_(1 + 1j if base.is_complex() else 1)
            assert (to_array(view) != 0).any()
            base.zero_()
            assert (to_array(view) == 0).all()
            assert view._version == base._version


CHAINS: list[Callable[[Any], Any]] = [
    lambda x: x.permute(2, 0, 1).select(0, 1).t(),
    lambda x: x.transpose(0, 1).narrow(0, 1, 2).diagonal(0, 1, 2) if x.ndim == 3 else x,
    lambda x: x.unfold(2, 2, 1).select(3, 1),
    lambda x: x.flatten(1)[1:, ::2],
    lambda x: x.unsqueeze(1).expand(2, 5, 3, 4).select(1, 3),
    lambda x: x.chunk(2, 2)[1].unbind(0)[1],
]


@pytest.mark.parametrize("chain", CHAINS)
def test_writes_through_a_chain_reach_the_base(chain: Callable[[Any], Any]) -> None:
    """The same elements change as in NumPy, told by numbering them."""
    base = treadle.arange(24).reshape(2, 3, 4).clone()
    view = chain(base)
    numbers = set(np.unique(to_array(view)).tolist())
    view.mul_(0).sub_(1) if len(numbers) == view.numel() else view.fill_(-1)
    changed = set(np.flatnonzero(to_array(base).reshape(-1) == -1).tolist())
    assert changed == numbers


def test_a_view_outlives_its_base() -> None:
    view = treadle.arange(1000)[10:20]
    np.testing.assert_array_equal(to_array(view), np.arange(10, 20))


def test_reshape_copies_only_where_it_must() -> None:
    x = treadle.arange(6).reshape(2, 3)
    assert x.reshape(3, 2).data_ptr() == x.data_ptr()
    assert x.t().reshape(6).data_ptr() != x.data_ptr()
    with pytest.raises(RuntimeError, match="view"):
        x.t().view(6)


def test_a_copy_of_a_view_shares_nothing() -> None:
    x = treadle.arange(6.0).reshape(2, 3)
    turned = x.t()
    copies = [
        treadle.view_copy(x, [6]),
        treadle.view_copy(turned, [6]),
        treadle.permute_copy(x, [1, 0]),
        treadle.alias_copy(x),
        *treadle.unbind_copy(x),
        *treadle.split_copy(x, 2, 1),
    ]
    before = [c.tolist() for c in copies]
    x.zero_()
    assert [c.tolist() for c in copies] == before
    assert all(c.is_contiguous() and c._version == 0 for c in copies)


def test_changing_the_geometry_names_the_method() -> None:
    x = treadle.ones(2, 3)
    for name, arguments in [("swapaxes_", (0, 7)), ("transpose_", (0, 7)), ("squeeze_", (7,))]:
        with pytest.raises(IndexError, match=f"^{name}: "):
            getattr(x, name)(*arguments)
    assert x.shape == (2, 3)


def test_a_written_diagonal_takes_no_gradient() -> None:
    x = treadle.ones(4, 3, requires_grad=True)
    (x * 2).fill_diagonal_(5.0).sum().backward()
    np.testing.assert_array_equal(to_array(x.grad), 2 - 2 * np.eye(4, 3))


def test_writing_through_an_expanded_view_is_refused() -> None:
    x = treadle.zeros(3)
    with pytest.raises(RuntimeError):
        x.expand(4, 3).add_(1)
    assert x.tolist() == [0.0, 0.0, 0.0]


def test_expand_gives_new_dimensions_the_strides_of_unsqueeze():
    x = treadle.ones(5)
    assert x.expand(1, 1, 5).stride() == x[None, None].stride() == (5, 5, 1)
    assert x.expand(1, 3, 5).stride() == (0, 0, 1)
    assert treadle.ones(()).expand(1, 1).stride() == (0, 0)


def test_resize_keeps_the_strides_of_a_tensor_that_has_the_size():
    x = treadle.arange(6).view(2, 3).t()
    assert x.resize_(3, 2).stride() == (1, 3) == x.resize_as_(x).stride()
    assert x.resize_(3, 2, memory_format=treadle.contiguous_format).stride() == (2, 1)


def test_resize_as_keeps_the_format_of_the_template():
    like = treadle.ones(2, 3, 4, 5).contiguous(memory_format=treadle.channels_last)
    flat = treadle.ones(120)
    flat.resize_as_(like, memory_format=treadle.preserve_format)
    assert flat.shape == like.shape and flat.stride() == like.stride()
    assert treadle.ones(120).resize_as_(like).is_contiguous()


def test_a_copy_of_what_has_gaps_keeps_the_order_of_dimensions():
    x = treadle.rand(10, 8).t()[::2, ::2]
    for copy in (x.clone(), treadle.empty_like(x), x.double(), x * 2):
        assert copy.stride() == (1, 4)
    images = treadle.rand(4, 3, 8, 8).contiguous(memory_format=treadle.channels_last)[..., ::2, ::2]
    assert images.clone().stride() == treadle.ones_like(images).stride() == (48, 1, 12, 3)
    assert treadle.equal(images.clone(), images)
    assert treadle.rand(3, 1, 4).expand(3, 5, 4).clone().stride() == (20, 4, 1)
    assert x.clone(memory_format=treadle.contiguous_format).stride() == (5, 1)
