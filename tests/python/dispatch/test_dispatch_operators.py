"""Every operator with samples gives what it gives without a mode: under one that lets calls
through, and on tensors of a class that stands for others.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any

import pytest

import treadle
from treadle.utils._python_dispatch import BaseTorchDispatchMode
from treadle.utils._pytree import tree_map_only
from treadle_testing.cases import has_samples, in_suite, samples_of
from treadle_testing.catalogue import Operator, operators
from treadle_testing.check import call, outcome, same_bits, tensors
from treadle_testing.checks import differentiable_calls
from treadle_testing.sample import map_arrays, to_tensor

PUBLIC = [o for o in operators() if in_suite(o) and has_samples(o)]


def dtype_of(op: Operator) -> str:
    """One dtype of the entry: the first in which it has gradients."""
    return next((d for d in ("float64", "float32") if d in op.dtypes), op.dtypes[0])


def made(op: Operator, sample: Any, dtype: str) -> Any:
    """The result of a call with the same random numbers, or the class of its error."""
    treadle.manual_seed(0)
    try:
        return call(op, sample, dtype)
    except (RuntimeError, ValueError, IndexError, NotImplementedError, TypeError) as error:
        return type(error)


@pytest.mark.parametrize("op", PUBLIC, ids=repr)
def test_a_mode_that_lets_calls_through(op: Operator) -> None:
    dtype = dtype_of(op)
    for sample in samples_of(op, dtype):
        expected = made(op, sample, dtype)
        with BaseTorchDispatchMode():
            found = made(op, sample, dtype)
        compare(op, found, expected)


def compare(op: Operator, found: Any, expected: Any) -> None:
    assert type(found) is type(expected)
    if not tensors(expected):
        assert found == expected or found != found
    elif op.is_unwritten:
        assert [t.shape for t in tensors(found)] == [t.shape for t in tensors(expected)]
    else:
        assert same_bits(found, expected)


DIFFERENTIABLE = [o for o in PUBLIC if "float64" in o.dtypes]


@pytest.mark.parametrize("op", DIFFERENTIABLE, ids=repr)
def test_gradients_under_a_mode(op: Operator) -> None:
    for leaves, function in differentiable_calls(op, "float64"):

        def gradients() -> Any:
            outputs = [t for t in function(op, *leaves) if t.requires_grad]
            weights = [treadle.ones_like(t) * 0.5 for t in outputs]
            return treadle.autograd.grad(outputs, leaves, weights, allow_unused=True)

        try:
            expected = gradients()
        except NotImplementedError:
            continue  # for some arguments there is none
        with BaseTorchDispatchMode():
            found = gradients()
        assert [g is None for g in found] == [g is None for g in expected]
        assert same_bits(
            [g for g in found if g is not None], [g for g in expected if g is not None]
        )


class Standing(treadle.Tensor):
    """Stands for a tensor, which does the work."""

    inner: treadle.Tensor

    @staticmethod
    def __new__(cls, inner: treadle.Tensor) -> Any:
        made = treadle.Tensor._make_wrapper_subclass(
            cls,
            inner.shape,
            strides=inner.stride() if min(inner.stride(), default=0) >= 0 else None,
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            device=inner.device,
        )
        made.inner = inner
        return made

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        args, kwargs = tree_map_only(Standing, lambda t: t.inner, (args, kwargs or {}))
        return tree_map_only(treadle.Tensor, Standing, func(*args, **kwargs))


def inner_of(value: Any) -> Any:
    return tree_map_only(Standing, lambda t: t.inner, value)


# Operators made of others by the values of a tensor: lengths, and where to split.
READING = ("tensor_split", "ctc_loss", "lstm", "gru", "rnn_tanh", "rnn_relu")
STANDING = [o for o in PUBLIC if not o.name.endswith("_") and o.name not in READING]


@pytest.mark.parametrize("op", STANDING, ids=repr)
def test_a_class_that_stands_for_tensors(op: Operator) -> None:
    dtype = dtype_of(op)
    for sample in samples_of(op, dtype):
        expected = made(op, sample, dtype)
        if isinstance(expected, type):
            continue

        def stand(a: Any) -> Any:
            return Standing(to_tensor(a, dtype))

        args = map_arrays(sample.args, stand)
        kwargs = {k: map_arrays(v, stand) for k, v in sample.kwargs.items()}
        treadle.manual_seed(0)
        found = outcome(op, op.function(*args, **kwargs), args, kwargs)
        compare(op, inner_of(found), expected)
