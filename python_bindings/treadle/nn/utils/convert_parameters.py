"""All parameters of a model as one vector, and back."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Iterable

from treadle import _C
from treadle._C import Tensor


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """The elements of all parameters, one after the other."""
    return _C.cat([parameter.reshape((-1,)) for parameter in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Give each parameter its part of the vector; the inverse of `parameters_to_vector`."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected treadle.Tensor, but got: {type(vec).__name__}")
    begin = 0
    for parameter in parameters:
        count = parameter.numel()
        parameter.data = vec.narrow(0, begin, count).view(parameter.shape).data
        begin += count
