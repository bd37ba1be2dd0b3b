"""The dtypes that kernels know, in the order of the enum ScalarType.

Example:

    Dtype("float32", "Float32", "float", DtypeKind.FLOATING, "float", 11)
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from dataclasses import dataclass
from typing import Iterator, Optional

from .words import Word


class DtypeKind(Word):
    BOOL = "bool"
    UNSIGNED = "unsigned"
    SIGNED = "signed"
    FLOATING = "floating"
    COMPLEX = "complex"


@dataclass(frozen=True)
class Dtype:
    name: str  # in entries and in Python
    enumerator: str  # of ScalarType
    cpp: str  # the type of an element in C++
    kind: DtypeKind
    alias: Optional[str]  # by which defaults name it as well
    index: int  # in ScalarType

    @property
    def is_inexact(self) -> bool:
        return self.kind in (DtypeKind.FLOATING, DtypeKind.COMPLEX)

    @property
    def computes_in(self) -> str:
        """The type in C++ that kernels compute in: float for floats of 16 bits."""
        return "float" if self.name in ("float16", "bfloat16") else self.cpp

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Row:
    """The dtypes that an entry gives a device, or an argument."""

    dtypes: tuple[Dtype, ...]
    is_every: bool

    @property
    def mask(self) -> int:
        """A bit for each dtype, at its place in ScalarType."""
        return sum(1 << dtype.index for dtype in self.dtypes)

    def __iter__(self) -> Iterator[Dtype]:
        return iter(self.dtypes)

    def __len__(self) -> int:
        return len(self.dtypes)

    def __str__(self) -> str:
        return ", ".join(map(str, self.dtypes))


NO_DTYPES = Row((), is_every=False)
