"""The cases of the tests: (operator, dtype) pairs, and the samples of each."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import importlib
import pkgutil
from functools import lru_cache
from typing import Iterator, Optional

import pytest

from .catalogue import Operator, operators
from .expression import pointwise_samples
from .lists import foreach_samples
from .sample import REGISTRY, Maker, Sample, SampleFunction


@lru_cache(maxsize=None)
def load_families() -> None:
    """Registers the samples of Treadle's own operators; a library registers its own."""
    from . import families

    for module in pkgutil.iter_modules(families.__path__):
        importlib.import_module(f"{families.__name__}.{module.name}")


def registered(op: Operator) -> Optional[SampleFunction]:
    """The function that makes the operator's samples; None where its expression does."""
    if op.library is None:
        load_families()
    if op.json.get("foreach_of"):
        return lambda make: foreach_samples(op, make, _samples)
    return REGISTRY.get(op.id)


def in_suite(op: Operator) -> bool:
    """Internal operators (gradients of others) are tested through the gradients of those, and
    operators of sparse tensors by the tests of the layouts."""
    return not op.internal and "layouts" not in op.json["tags"]


def has_samples(op: Operator) -> bool:
    return op.kind == "pointwise" or registered(op) is not None


def has_reference(op: Operator) -> bool:
    """Whether NumPy says what it returns; of a random operator it can only say the shape."""
    if not has_samples(op):
        return False
    return op.random or any(s.expect is not None for d in op.dtypes for s in samples_of(op, d))


# One dtype of each kind, and the two that gradients are checked in.
FEW = ("bool", "int64", "bfloat16", "float32", "float64", "complex128")


def dtypes_of(op: Operator) -> tuple[str, ...]:
    """The dtypes that every test is run for: all that have kernels of their own.

    An operator made of others is the front door of kernels that are tested themselves; for it a
    few dtypes stand in. Its results are compared in all of them (cells).
    """
    if op.kind not in ("composite", "view"):
        return op.dtypes
    return tuple(d for d in FEW if d in op.dtypes) or op.dtypes[:1]


def cells(library: str = "aten") -> list:
    """(operator, dtype) for every declared cell of the table."""
    return [
        pytest.param(op, d, id=f"{op.id}-{d}")
        for op in operators(library)
        if in_suite(op) and has_samples(op)
        for d in op.dtypes
    ]


def samples_of(op: Operator, dtype: str, seed: int = 0) -> Iterator[Sample]:
    yield from _samples(op, Maker(dtype, seed))


def _samples(op: Operator, make: Maker) -> Iterator[Sample]:
    # A registered function comes first: it may give a reference where the expression alone cannot
    # (a random mask, say).
    function = registered(op)
    if function is not None:
        yield from function(make)
    else:
        yield from pointwise_samples(op, make)


def pairs(only: str = "", library: str = "aten") -> list:
    """(operator, dtype) for every operator that has samples; `only` is "differentiable" or
    empty.
    """
    out = []
    for op in operators(library):
        if not in_suite(op) or not has_samples(op):
            continue
        dtypes = dtypes_of(op)
        if (
            only == "differentiable"
            and not op.differentiable
            and op.kind not in ("composite", "view")
        ):
            continue
        if only == "differentiable":
            dtypes = tuple(d for d in dtypes if d in ("float64", "complex128"))
        out += [pytest.param(op, d, id=f"{op.id}-{d}") for d in dtypes]
    return out
