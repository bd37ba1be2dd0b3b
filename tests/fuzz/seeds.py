"""The samples of operators as recipes: valid calls, which are then changed."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import itertools
from functools import lru_cache
from typing import Optional

from treadle_testing.cases import dtypes_of, has_samples, samples_of
from treadle_testing.catalogue import Operator, operators
from treadle_testing.sample import Sample

from . import surface
from .recipe import Recipe, node_of

# The most samples of each operator and dtype; there are seldom more.
MOST = 24


@lru_cache(maxsize=4000)
def samples(op: Operator, dtype: str) -> tuple[Sample, ...]:
    return tuple(itertools.islice(samples_of(op, dtype), MOST))


@lru_cache(maxsize=4000)
def recipes(op: Operator, dtype: str) -> tuple[Recipe, ...]:
    """The samples of an operator for one dtype."""
    return tuple(
        Recipe(
            op.id,
            "functional",
            [node_of(a, dtype) for a in sample.args],
            {k: node_of(v, dtype) for k, v in sample.kwargs.items()},
            sample=(dtype, number),
        )
        for number, sample in enumerate(samples(op, dtype))
    )


def dtypes(op: Operator) -> tuple[str, ...]:
    """Dtypes that the operator has samples of."""
    return dtypes_of(op) if op.kind != "binding" and has_samples(op) else ()


def callable_from_python(op: Operator) -> bool:
    """Whether programs call it: internal operators are for kernels, and checked by these."""
    if op.kind != "binding" and op.internal:
        return False
    try:
        op.function
    except AttributeError:
        return False
    return True


@lru_cache(maxsize=None)
def targets(name: Optional[str] = None) -> tuple[Operator, ...]:
    """The operators to call: all, and the bindings written by hand; or those whose name or id is
    `name`. A name that ends in a dot stands for all that begin with it: `treadle.Tensor.`.
    """
    return tuple(
        op
        for op in [*operators(), *surface.bindings().values()]
        if callable_from_python(op)
        and (
            name in (None, op.name, op.id, op.name + "_")
            or (name is not None and name.endswith(".") and op.id.startswith(name))
        )
    )
