"""The functions that expressions call without an operator: those of elements, and methods."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from dataclasses import dataclass
from typing import Mapping, Optional

from .dtypes import Row
from .kept import Kept
from .words import Word


class MethodOf(Word):
    TENSOR = "tensor"
    LIST = "list"
    SCALAR = "scalar"


@dataclass(frozen=True)
class MethodInfo:
    of: MethodOf
    name: str
    parameters: tuple[str, ...]  # their types
    returns: str  # the type
    saves: Optional[Kept]  # what backward keeps of a tensor for it; None where it needs the tensor
    cpp: str  # its name in C++


class Gives(Word):
    ELEMENT = "element"
    TRUTH = "truth"


@dataclass(frozen=True)
class ScalarArgument:
    name: str
    default: Optional[str]  # a number


@dataclass(frozen=True)
class ScalarFunction:
    """A function or an operator of elements; docs/scalar-functions.md says what each part is."""

    name: str  # of an operator its sign
    is_operator: bool
    text: str  # softplus(x, beta=1, threshold=20), a % b
    args: tuple[ScalarArgument, ...]
    function: Optional[str]  # the one that an operator is in C++
    section: str
    doc: str
    dtypes: Row
    gives: Gives
    throws: Row  # the dtypes of which a call may end in an exception
    throws_if_zero: Optional[str]  # the argument that is 0 in each such call
    keeps_low_bits: bool  # the lowest bits of a result follow from those of the operands
    derivative: Mapping[str, str]  # by argument, in terms of the arguments and `result`
    holomorphic: bool  # the derivative is that by a complex number, too
    reference: Optional[str]  # a function of NumPy or SciPy
    samples: Optional[tuple[float, ...]]  # the ends of a range
    rounded: bool  # results are the nearest numbers to the exact ones
    ulp: Mapping[str, float]  # how far from them they may be, by dtype
    ulp_of: Optional[str]
    complex_ulp_of: Optional[str]
    range: Optional[str]
    above: Optional[float]
