"""What is tested: (operator, dtype) pairs, and the samples of each."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Iterator

import pytest

from . import families
from .catalogue import Operator, operators
from .expression import pointwise_samples
from .sample import REGISTRY, UNDECLARED, Maker, Sample

for module in pkgutil.iter_modules(families.__path__):
    importlib.import_module(f"{families.__name__}.{module.name}")


def in_suite(op: Operator) -> bool:
    """Internal operators (gradients of others) are tested through the gradients of those."""
    return not op.internal


def has_samples(op: Operator) -> bool:
    return op.kind == "pointwise" or op.id in REGISTRY


def dtypes_of(op: Operator) -> tuple[str, ...]:
    return op.dtypes or UNDECLARED.get(op.id, ())


def samples_of(op: Operator, dtype: str, seed: int = 0) -> Iterator[Sample]:
    make = Maker(dtype, seed)
    # A registered function comes first: it may give a reference where the expression alone cannot
    # (a random mask, say).
    if op.id in REGISTRY:
        yield from REGISTRY[op.id](make)
    else:
        yield from pointwise_samples(op, make)


def pairs(only: str = "") -> list:
    """(operator, dtype) for every operator that has samples; `only` is "differentiable" or
    empty.
    """
    out = []
    for op in operators():
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
