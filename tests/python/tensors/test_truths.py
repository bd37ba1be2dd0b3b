"""A bool is true where its byte is not zero: memory that was written as another dtype, or by
nobody, holds other bytes than 0 and 1, and no operator takes harm or gives another result by them.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import numpy as np
import pytest

import treadle
from treadle_testing.cases import pairs, samples_of
from treadle_testing.catalogue import Operator
from treadle_testing.check import assert_matches, expected, outcome, tensors
from treadle_testing.sample import map_arrays, to_tensor

TRUE_BYTES = np.array([2, 128, 255, 1, 64], np.uint8)


def with_other_bytes(t: treadle.Tensor) -> treadle.Tensor:
    """The same truths, by other bytes."""
    if t.dtype != treadle.bool or t.numel() == 0:
        return t
    given = t.numpy().astype(np.uint8)
    made = np.asarray(given * np.resize(TRUE_BYTES, given.shape))
    return treadle.from_numpy(made).view(treadle.bool)


def plain(t: treadle.Tensor) -> treadle.Tensor:
    """With bytes of 0 and 1 again."""
    return t.logical_or(False) if t.dtype == treadle.bool else t


def of_values(op: Operator, dtype: str) -> bool:
    """Whether an operator's results follow from the values that it is given."""
    named = op.name.endswith("_") or op.name.startswith("view")
    return dtype in ("bool", "float32") and not (op.random or named)


@pytest.mark.parametrize("op, dtype", [p for p in pairs() if of_values(*p.values)])
def test_any_byte_but_zero_is_true(op: Operator, dtype: str) -> None:
    def made(given: object) -> object:
        return map_arrays(given, lambda a: with_other_bytes(to_tensor(a, dtype)))

    for sample in samples_of(op, dtype):
        args, kwargs = made(sample.args), {k: made(v) for k, v in sample.kwargs.items()}
        bools = [t for t in tensors([args, list(kwargs.values())]) if t.dtype == treadle.bool]
        if not bools or sample.expect is None:
            continue
        result = map_results(outcome(op, op.function(*args, **kwargs), args, kwargs))
        assert_matches(result, expected(sample, dtype), dtype, sample, f"{op.id} of other bytes")


def map_results(result: object) -> object:
    """A result with plain bools."""
    if isinstance(result, treadle.Tensor):
        return plain(result)
    if isinstance(result, (list, tuple)):
        return [map_results(r) for r in result]
    return result


def test_values_of_such_bools() -> None:
    t = treadle.tensor([0, 2, 128], dtype=treadle.uint8).view(treadle.bool)
    assert t.tolist() == [False, True, True] and t[2].item() is True and bool(t[1])
    assert repr(t) == "tensor([False,  True,  True])"
    assert t.nonzero().tolist() == [[1], [2]] and t.sum().item() == 2
    assert treadle.arange(3)[t].tolist() == [1, 2]
    assert treadle.tensor([1.0, 0.0]).view(treadle.bool).sum().item() == 2
    assert treadle.view_copy(treadle.tensor([1.0]), treadle.bool).float().sum().item() == 2
