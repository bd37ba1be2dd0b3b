"""How a loss combines the values of a batch: the names users write and the numbers operators
take."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import warnings
from typing import Optional

from treadle._C import Tensor

_CODES = {"none": 0, "mean": 1, "elementwise_mean": 1, "sum": 2}


def code(reduction: str, size_average: Optional[bool] = None, reduce: Optional[bool] = None) -> int:
    """The number of a reduction; the two older flags, where given, decide instead."""
    if size_average is not None or reduce is not None:
        reduction = _from_flags(size_average, reduce)
        warnings.warn(
            f"size_average and reduce are deprecated, use reduction='{reduction}'", stacklevel=3
        )
    if reduction not in _CODES:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return _CODES[reduction]


def name(reduction: str, size_average: Optional[bool] = None, reduce: Optional[bool] = None) -> str:
    """The name of a reduction where the two older flags may be given instead."""
    if size_average is None and reduce is None:
        return reduction
    return _from_flags(size_average, reduce)


def _from_flags(size_average: Optional[bool], reduce: Optional[bool]) -> str:
    if reduce is False:
        return "none"
    return "sum" if size_average is False else "mean"


def apply(values: Tensor, reduction: str) -> Tensor:
    """Combine the losses of single elements."""
    number = code(reduction)
    return values if number == 0 else values.mean() if number == 1 else values.sum()
