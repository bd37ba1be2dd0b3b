"""Views whose values are conjugated or negated when they are read."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
import io
from typing import Any

import numpy as np
import pytest

import treadle
from treadle.multiprocessing import reductions
from treadle.utils import safetensors
from treadle_testing.cases import has_samples, in_suite, samples_of
from treadle_testing.catalogue import Operator, operators
from treadle_testing.check import tensors
from treadle_testing.sample import Sample, map_arrays, to_tensor


def pair() -> tuple[treadle.Tensor, treadle.Tensor]:
    x = treadle.tensor([1 + 2j, 3 - 4j])
    return x, x.conj()


def test_a_conjugate_shares_memory_and_says_so() -> None:
    x, c = pair()
    assert c.is_conj() and not x.is_conj() and c.data_ptr() == x.data_ptr()
    assert treadle.is_conj(c) and not treadle.is_neg(c)
    assert c.tolist() == [1 - 2j, 3 + 4j] and repr(c) == "tensor([1.-2.j, 3.+4.j])"
    assert not c.conj().is_conj() and c.conj().data_ptr() == x.data_ptr()
    x[0] = 5j
    assert c[0].item() == -5j
    real = treadle.ones(2)
    assert real.conj() is real and not real.is_conj()
    assert x.reshape(1, 2).mH.is_conj() and x.reshape(1, 2).adjoint().is_conj()


def test_views_keep_the_bit_and_copies_resolve_it() -> None:
    _, c = pair()
    for view in (c.view(2, 1), c[0], c.t(), c.detach(), c.data, c.expand(3, 2), c.contiguous()):
        assert view.is_conj()
    for made in (c.clone(), c.resolve_conj(), c.conj_physical(), treadle.empty_like(c), c + 0):
        assert not made.is_conj()
    x = c.conj()
    assert x.resolve_conj() is x and x.resolve_neg() is x


def test_conj_physical_returns_real_numbers_as_they_are() -> None:
    for dtype in (treadle.float32, treadle.int64, treadle.bool):
        x = treadle.ones(2, dtype=dtype)
        assert treadle.conj_physical(x) is x and x.conj_physical_() is x
        out = treadle.empty(2, dtype=dtype)
        assert treadle.conj_physical(x, out=out) is out and out.data_ptr() != x.data_ptr()
        assert out.tolist() == x.tolist()
    z, c = pair()
    made = z.conj_physical()
    assert made.data_ptr() != z.data_ptr() and made.tolist() == [1 - 2j, 3 + 4j]
    out = treadle.empty_like(z)
    assert treadle.conj_physical(z, out=out) is out and out.tolist() == made.tolist()
    assert z.conj_physical_() is z and z.tolist() == made.tolist()
    assert c.tolist() == [1 + 2j, 3 - 4j]  # a view of the memory that changed


def test_negated_views() -> None:
    x = treadle.tensor([1.0, -2.0])
    n = treadle._neg_view(x)
    assert n.is_neg() and n.data_ptr() == x.data_ptr() and n.tolist() == [-1.0, 2.0]
    assert not treadle._neg_view(n).is_neg()
    assert not n.resolve_neg().is_neg() and n.resolve_neg().tolist() == [-1.0, 2.0]
    n[0] = 7
    assert x.tolist() == [-7.0, -2.0]
    z, c = pair()
    assert c.imag.is_neg() and c.imag.tolist() == [-2.0, 4.0]
    assert c.imag.data_ptr() == z.imag.data_ptr()
    assert not c.real.is_neg() and c.real.tolist() == [1.0, 3.0]


def test_writes_go_through() -> None:
    x, c = pair()
    c[0] = 5 + 5j
    assert x.tolist() == [5 - 5j, 3 - 4j]
    c.add_(1j)
    assert x.tolist() == [5 - 6j, 3 - 5j]
    treadle.mul(c, 2, out=c)
    assert x.tolist() == [10 - 12j, 6 - 10j]
    c.copy_(x.clone())
    assert x.tolist() == [10 + 12j, 6 + 10j]
    c.zero_()
    assert x.tolist() == [0, 0]


def test_parts_are_assigned_to() -> None:
    x = treadle.zeros(2, dtype=treadle.complex64)
    x.real = treadle.tensor([1.0, 2.0])
    x.imag = 3
    assert x.tolist() == [1 + 3j, 2 + 3j]
    x.conj().imag = treadle.ones(2)
    assert x.tolist() == [1 - 1j, 2 - 1j]
    y = treadle.zeros(2)
    y.real = treadle.tensor([1.0, 2.0])
    assert y.tolist() == [1.0, 2.0]
    z = treadle.zeros(2, dtype=treadle.complex64, requires_grad=True)
    w, part = z * 1, treadle.ones(2, requires_grad=True)
    w.imag = part * 2
    w.imag.sum().backward()
    assert part.grad.tolist() == [2.0, 2.0] and z.grad.tolist() == [0, 0]


def test_gradients() -> None:
    a = treadle.tensor([1 + 1j, 2 - 1j], dtype=treadle.complex128, requires_grad=True)

    def through_a_view(x: treadle.Tensor) -> treadle.Tensor:
        y = x * 1
        y.conj().mul_(2j)
        return y

    def parts(x: treadle.Tensor) -> treadle.Tensor:
        return x.conj().imag * 3 + treadle._neg_view(x.real)

    for f in (lambda x: x.conj(), lambda x: treadle._neg_view(x), through_a_view, parts):
        assert treadle.autograd.gradcheck(f, (a,)) and treadle.autograd.gradgradcheck(f, (a,))


def test_what_looks_at_the_bytes_is_refused() -> None:
    x, c = pair()
    with pytest.raises(RuntimeError) as error:
        c.numpy()
    assert str(error.value) == (
        "numpy: expected a tensor whose is_conj() is False, got one that is computed when it is "
        "read; use tensor.resolve_conj().numpy() instead"
    )
    with pytest.raises(RuntimeError) as error:
        c.imag.numpy()
    assert str(error.value) == (
        "numpy: expected a tensor whose is_neg() is False, got one that is computed when it is "
        "read; use tensor.resolve_neg().numpy() instead"
    )
    assert c.numpy(force=True).tolist() == [1 - 2j, 3 + 4j]
    with pytest.raises(RuntimeError) as error:
        treadle.view_as_real(c)
    assert str(error.value) == (
        "view_as_real: expected a tensor that is not conjugated lazily, got one whose is_conj() is "
        "True\nresolve_conj() gives a copy that can be seen as real"
    )
    with pytest.raises(RuntimeError) as error:
        c.view(treadle.float32)
    assert str(error.value) == (
        "view: expected a tensor whose bytes are its values, got one whose is_conj() is True\n"
        "resolve_conj() gives a copy that can be seen as another dtype"
    )


def test_copies_and_files() -> None:
    x, c = pair()
    assert copy.deepcopy(c).tolist() == c.tolist()
    shared = copy.copy(c)
    assert shared.is_conj() and shared.data_ptr() == x.data_ptr()
    file = io.BytesIO()
    treadle.save({"x": x, "c": c}, file)
    file.seek(0)
    loaded = treadle.load(file)
    assert loaded["c"].is_conj() and loaded["c"].data_ptr() == loaded["x"].data_ptr()
    assert loaded["c"].tolist() == c.tolist()
    file = io.BytesIO()
    treadle.save(c.imag, file)
    file.seek(0)
    assert treadle.load(file).tolist() == c.imag.tolist()


def test_what_another_process_is_sent() -> None:
    x = treadle.tensor([1 + 2j, 3 - 4j]).share_memory_()
    for lazy in (x.conj(), x.conj().imag):
        rebuild, arguments = reductions.reduce_tensor(lazy)
        assert rebuild(*arguments).tolist() == lazy.tolist()


def test_bytes_that_are_written_are_of_the_values() -> None:
    _, c = pair()
    assert safetensors.load(safetensors.save({"c": c}))["c"].tolist() == c.tolist()


def _lazy(t: Any, turned: Any) -> Any:
    """The same values, by way of memory that holds others."""
    if not isinstance(t, treadle.Tensor) or not (t.is_complex() or t.is_floating_point()):
        return t
    return turned(t)


def _conjugated(t: treadle.Tensor) -> treadle.Tensor:
    return treadle._conj(t.conj_physical()) if t.is_complex() else t


def _negated(t: treadle.Tensor) -> treadle.Tensor:
    return treadle._neg_view(-t)


def _map(value: Any, f: Any) -> Any:
    if isinstance(value, (list, tuple)) and not isinstance(value, treadle.Size):
        return type(value)(_map(v, f) for v in value)
    return f(value)


def _applies(op: Operator) -> bool:
    # Operators that look at bytes are refused, and those that tell of the bits answer otherwise.
    refused = {"view.dtype", "view_copy.dtype", "view_as_real", "view_as_real_copy"}
    other = refused | {"is_conj", "is_neg"}
    written = not op.name.startswith(("empty", "new_empty"))
    return in_suite(op) and has_samples(op) and op.id not in other and not op.random and written


CASES = [
    pytest.param(op, dtype, id=f"{op.id}-{dtype}")
    for op in operators()
    if _applies(op)
    for dtype in ("complex128", "float64")
    if dtype in op.dtypes
]


def _outcome(op: Operator, sample: Sample, dtype: str, turned: Any) -> list[treadle.Tensor]:
    convert = lambda a: _lazy(to_tensor(a, dtype), turned)
    args = map_arrays(list(sample.args), convert)
    kwargs = {k: map_arrays(v, convert) for k, v in sample.kwargs.items()}
    returned = op.function(*args, **kwargs)
    return tensors(args[0] if returned is None else returned)


@pytest.mark.parametrize("op, dtype", CASES)
def test_every_operator_gives_the_same_for_lazy_arguments(op: Operator, dtype: str) -> None:
    turned = _conjugated if dtype == "complex128" else _negated
    for sample in list(samples_of(op, dtype))[:2]:
        plain = _outcome(op, sample, dtype, lambda t: t)
        lazy = _outcome(op, sample, dtype, turned)
        assert len(plain) == len(lazy)
        for a, b in zip(plain, lazy):
            assert a.shape == b.shape and a.dtype == b.dtype
            np.testing.assert_allclose(
                a.detach().numpy(force=True), b.detach().numpy(force=True), equal_nan=True
            )
