"""Calls of operators with kernels of their own in which one tensor differs from what the others
lead one to expect: in its dtype, its strides, its shape or its device.

A kernel that reads such a tensor as if it were like the others reads other numbers than it holds,
or memory beside it. So each call either is refused, or gives what the call with a plain tensor of
the same numbers gives.

Pointwise operators convert their operands. On a device they are called with operands of several
dtypes, and with numbers of the CPU, and give what the CPU gives.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, Iterator, Optional, Sequence

import numpy as np

import treadle

from . import device, law
from .cases import dtypes_of, samples_of
from .catalogue import Operator
from .check import outcome, tensors
from .sample import map_arrays, to_array, to_tensor, widen

Tensor = treadle.Tensor
Change = Callable[[Tensor], Tensor]
DTYPES = ("bool", "uint8", "int8", "int32", "int64", "float16", "float32", "float64", "complex128")


def _as(dtype: str) -> Change:
    return lambda t: t.to(getattr(treadle, dtype))


def _apart(t: Tensor) -> Tensor:
    """The numbers with gaps between them, from the middle of a buffer."""
    wide = t.new_zeros([*t.shape, 3])
    return wide.select(-1, 1).copy_(t)


def _turned(t: Tensor) -> Tensor:
    order = list(reversed(range(t.dim())))
    return t.permute(order).contiguous().permute(order)


def _repeated(t: Tensor) -> Tensor:
    """The first number everywhere, without memory for the others."""
    return t.reshape(-1)[:1].reshape([1] * t.dim()).expand(t.shape) if t.numel() else t


def _shorter(t: Tensor) -> Tensor:
    """One less along the last dimension, at the end of its memory."""
    return t[..., 1:].contiguous() if t.dim() and t.shape[-1] else t


AS_DTYPES: dict[str, Change] = {f"as {dtype}": _as(dtype) for dtype in DTYPES}
SAME: dict[str, Change] = {
    **AS_DTYPES,
    "with gaps": _apart,
    "transposed": _turned,
    "expanded": _repeated,
}
# Changes that have no plain tensor to compare with.
OTHER: dict[str, Change] = {
    "shorter": _shorter,
    "longer": lambda t: treadle.cat([t, t]) if t.dim() else t,
    "without elements": lambda t: t.new_zeros([0] * max(1, t.dim())),
    "on the meta device": lambda t: t.to("meta"),
}


def _places(args: Sequence[Any]) -> Iterator[tuple[int, Optional[int]]]:
    """Where tensors are: an argument's number, and the place in it where it is a list."""
    for i, a in enumerate(args):
        if isinstance(a, Tensor):
            yield i, None
        elif isinstance(a, (list, tuple)):
            yield from ((i, k) for k, item in enumerate(a) if isinstance(item, Tensor))


def _replaced(args: Sequence[Any], place: tuple[int, Optional[int]], change: Change) -> list[Any]:
    i, k = place
    new = list(args)
    if k is None:
        new[i] = change(new[i])
    else:
        new[i] = [change(t) if n == k else t for n, t in enumerate(new[i])]
    return new


def _numbers(value: Any) -> list[np.ndarray]:
    return [widen(to_array(t)) for t in tensors(value)]


def _result(op: Operator, args: list[Any], kwargs: dict[str, Any]) -> Optional[list[np.ndarray]]:
    """The numbers that the call gives; None where it is refused, as calls may be."""
    try:
        returned = outcome(op, op.function(*args, **kwargs), args, kwargs)
    except law.REFUSALS as error:
        assert not isinstance(error, treadle.InternalError), f"{op.id}: {error}"
        return None
    return None if any(t.is_meta for t in tensors(returned)) else _numbers(returned)


def _plain_dtype(op: Operator) -> str:
    dtypes = dtypes_of(op)
    return next((d for d in ("float32", "float64", "int64") if d in dtypes), dtypes[0])


def _number(t: Tensor) -> Tensor:
    return t.reshape(-1)[0].clone()


def _mixed_operands_agree(op: Operator) -> None:
    """Each operand by itself in every dtype, and as a number, in each shape of the samples."""
    if device.kind() == "cpu" or op.random:
        return
    dtype = _plain_dtype(op)
    for sample in samples_of(op, dtype):

        def fresh() -> tuple[list[Any], dict[str, Any]]:
            return (
                map_arrays(list(sample.args), lambda a: to_tensor(a, dtype).cpu()),
                {
                    k: map_arrays(v, lambda a: to_tensor(a, dtype).cpu())
                    for k, v in sample.kwargs.items()
                },
            )

        def moved(args: list[Any]) -> list[Any]:
            return [device.here(a) if isinstance(a, Tensor) else a for a in args]

        places = list(_places(fresh()[0]))
        if len(places) < 2:
            continue
        for place in places:
            changes = dict(AS_DTYPES)
            if fresh()[0][place[0]].numel():
                changes["as a number"] = _number
                changes["as a number of float64"] = lambda t: _number(t).double()
            for label, change in changes.items():
                args, kwargs = fresh()
                args = _replaced(args, place, change)
                there = moved(args)
                if label not in AS_DTYPES:
                    there[place[0]] = args[place[0]]  # numbers may stay on the CPU
                wanted, got = _result(op, args, kwargs), _result(op, there, kwargs)
                if wanted is None or got is None:
                    continue
                assert len(got) == len(wanted)
                for a, b in zip(got, wanted):
                    np.testing.assert_allclose(
                        a, b, rtol=2e-3, atol=2e-3, err_msg=f"{op.id}: operand {place} {label}"
                    )


def mixed_arguments_agree(op: Operator) -> None:
    """Each tensor of a call by itself, in every way of SAME and OTHER."""
    if op.kind == "pointwise":
        _mixed_operands_agree(op)
    if not op.json.get("argument_dtypes"):
        return
    dtype = _plain_dtype(op)
    for sample in list(samples_of(op, dtype))[:3]:

        def fresh() -> tuple[list[Any], dict[str, Any]]:
            return (
                map_arrays(list(sample.args), lambda a: to_tensor(a, dtype)),
                {k: map_arrays(v, lambda a: to_tensor(a, dtype)) for k, v in sample.kwargs.items()},
            )

        for place in _places(fresh()[0]):
            # The dtype of this one decides what is computed, not how the others are read.
            is_key = op.args[place[0]]["name"] == op.json["dtype_of"] and place[1] in (None, 0)
            for label, change in {**SAME, **OTHER}.items():
                if is_key and label in AS_DTYPES:
                    continue
                args, kwargs = fresh()
                changed = _replaced(args, place, change)
                got = _result(op, changed, kwargs)
                if got is None or label in OTHER or op.random:
                    continue
                # The same numbers as the entry wants them.
                args, kwargs = fresh()
                plain = _replaced(
                    args, place, lambda t: treadle.empty_like(t).copy_(change(t).to(t.dtype))
                )
                wanted = _result(op, plain, kwargs)
                assert wanted is not None, f"{op.id}: argument {place} {label} alone is taken"
                assert len(got) == len(wanted)
                for a, b in zip(got, wanted):
                    np.testing.assert_allclose(
                        a, b, rtol=2e-3, atol=2e-3, err_msg=f"{op.id}: argument {place} {label}"
                    )
