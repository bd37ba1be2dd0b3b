"""Comparing what Treadle returned with what NumPy says."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Mapping, Sequence

import numpy as np

import treadle

from .catalogue import Operator
from .sample import TOLERANCE, Sample, map_arrays, to_array, to_tensor, widen


def tensors(value: Any) -> list[treadle.Tensor]:
    """The tensors of a result, in order."""
    if isinstance(value, treadle.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in tensors(v)]
    return []


def call(op: Operator, sample: Sample, dtype: str, **extra: Any) -> Any:
    args = map_arrays(sample.args, lambda a: to_tensor(a, dtype))
    kwargs = {k: map_arrays(v, lambda a: to_tensor(a, dtype)) for k, v in sample.kwargs.items()}
    return outcome(op, op.function(*args, **kwargs, **extra), args, kwargs)


def outcome(op: Operator, returned: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """The part of a call that is judged: its result, or, for an operator that returns nothing, the
    arguments that it writes, in order.
    """
    if op.json["returns"]:
        return returned
    given = {**dict(zip((a["name"] for a in op.args), args)), **kwargs}
    return [given[a["name"]] for a in op.args if a["type"]["alias"] and a["name"] in given]


def rounded(array: np.ndarray, dtype: str) -> np.ndarray:
    """The values a tensor of the dtype holds, widened: references start from what the kernel
    saw.
    """
    if dtype == "bfloat16" and array.dtype == np.float32:
        array = to_array(to_tensor(array, dtype))
    return widen(array)


def expected(sample: Sample, dtype: str) -> list[Any]:
    args = map_arrays(sample.args, lambda a: rounded(a, dtype))
    kwargs = {k: map_arrays(v, lambda a: rounded(a, dtype)) for k, v in sample.kwargs.items()}
    assert sample.expect is not None
    with np.errstate(all="ignore"):
        result = sample.expect(*args, **kwargs)
    return list(result) if isinstance(result, (list, tuple)) else [result]


def assert_matches(actual: Any, wanted: list[Any], dtype: str, sample: Sample, what: str) -> None:
    if sample.settle is not None:
        actual = sample.settle(actual)
    got = tensors(actual) if not isinstance(actual, (bool, int, float, complex)) else [actual]
    assert len(got) == len(wanted), f"{what}: expected {len(wanted)} results, got {len(got)}"
    for i, (g, w) in enumerate(zip(got, wanted)):
        array = to_array(g) if isinstance(g, treadle.Tensor) else np.asarray(g)
        w = np.asarray(w)
        assert array.shape == w.shape, (
            f"{what}: result {i}: expected shape {w.shape}, got {array.shape}"
        )
        kind = array.dtype.kind.replace("u", "i")
        assert kind == w.dtype.kind.replace("u", "i"), (
            f"{what}: result {i}: expected a dtype like {w.dtype}, got {array.dtype}"
        )
        if sample.shape_only:
            continue
        result_dtype = (
            str(g.dtype).removeprefix("treadle.") if isinstance(g, treadle.Tensor) else dtype
        )
        if sample.exact or result_dtype not in TOLERANCE:
            np.testing.assert_array_equal(
                array, w.astype(array.dtype), err_msg=f"{what}: result {i}"
            )
        else:
            # An integer input gives a float32 result: the coarser of the two dtypes sets the
            # tolerance.
            rtol, atol = max(TOLERANCE[result_dtype], TOLERANCE.get(dtype, (0, 0)))
            np.testing.assert_allclose(
                widen(array),
                w,
                rtol=rtol * sample.loose,
                atol=atol * sample.loose,
                err_msg=f"{what}: result {i}",
                equal_nan=True,
            )


def same_bits(a: Any, b: Any) -> bool:
    xs, ys = tensors(a), tensors(b)
    return len(xs) == len(ys) and all(
        x.dtype == y.dtype and x.shape == y.shape and to_array(x).tobytes() == to_array(y).tobytes()
        for x, y in zip(xs, ys)
    )
