"""Names for the types of arguments, for annotations: `def f(x: types.Number) -> None`."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import os
from builtins import bool as _bool
from builtins import bytes as _bytes
from builtins import complex as _complex
from builtins import float as _float
from builtins import int as _int
from builtins import str as _str
from typing import IO, List, Sequence, Tuple, Union

from treadle._C import Size, Tensor, UntypedStorage
from treadle._C import device as _device
from treadle._C import dtype as _dtype
from treadle._C import layout as _layout

Number = Union[int, float, bool]
_Number = (int, float, bool)
Device = Union[_device, str, int, None]
FileLike = Union[str, "os.PathLike[str]", IO[bytes]]
Storage = UntypedStorage

# The types of sizes that are symbols to a compiler: no value is of these types.
py_sym_types: Tuple[type, ...] = ()

_size = Union[Size, List[int], Tuple[int, ...]]
_TensorOrTensors = Union[Tensor, Sequence[Tensor]]
# Sizes are known numbers: there are no symbolic ones.
IntLikeType = int
FloatLikeType = float
BoolLikeType = bool

__all__ = [
    "BoolLikeType",
    "Device",
    "FileLike",
    "FloatLikeType",
    "IntLikeType",
    "Number",
    "Size",
    "Storage",
    "Tensor",
    "_bool",
    "_bytes",
    "_complex",
    "_device",
    "_dtype",
    "_float",
    "_int",
    "_layout",
    "_size",
    "_str",
]
