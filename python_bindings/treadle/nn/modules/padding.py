"""Padding layers: a border around the last one to three dimensions."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any

from treadle._C import Tensor

from .. import functional as F
from .._tuples import tuple_of
from .module import Module


class _PadNd(Module):
    """`padding` is (before, after) for each dimension, the last one first; one number for all."""

    _dims = 0
    _mode = ""

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = tuple_of(padding, 2 * self._dims)

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPadNd(_PadNd):
    _mode = "constant"

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPadNd):
    """A border of `value` around lines."""

    _dims = 1


class ConstantPad2d(_ConstantPadNd):
    """A border of `value` around images."""

    _dims = 2


class ConstantPad3d(_ConstantPadNd):
    """A border of `value` around volumes."""

    _dims = 3


class _ZeroPadNd(_ConstantPadNd):
    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad1d(_ZeroPadNd):
    """A border of zeros around lines."""

    _dims = 1


class ZeroPad2d(_ZeroPadNd):
    """A border of zeros around images."""

    _dims = 2


class ZeroPad3d(_ZeroPadNd):
    """A border of zeros around volumes."""

    _dims = 3


class _ReflectionPadNd(_PadNd):
    """Base of the layers of this kind."""


class ReflectionPad1d(_ReflectionPadNd):
    """Lines mirrored at their ends, which are not repeated."""

    _dims, _mode = 1, "reflect"


class ReflectionPad2d(_ReflectionPadNd):
    """Images mirrored at their edges, which are not repeated."""

    _dims, _mode = 2, "reflect"


class ReflectionPad3d(_ReflectionPadNd):
    """Volumes mirrored at their faces, which are not repeated."""

    _dims, _mode = 3, "reflect"


class _ReplicationPadNd(_PadNd):
    """Base of the layers of this kind."""


class ReplicationPad1d(_ReplicationPadNd):
    """Lines whose ends are repeated."""

    _dims, _mode = 1, "replicate"


class ReplicationPad2d(_ReplicationPadNd):
    """Images whose edges are repeated."""

    _dims, _mode = 2, "replicate"


class ReplicationPad3d(_ReplicationPadNd):
    """Volumes whose faces are repeated."""

    _dims, _mode = 3, "replicate"


class _CircularPadNd(_PadNd):
    """Base of the layers of this kind."""


class CircularPad1d(_CircularPadNd):
    """Lines continued from their other end."""

    _dims, _mode = 1, "circular"


class CircularPad2d(_CircularPadNd):
    """Images continued from their other edge."""

    _dims, _mode = 2, "circular"


class CircularPad3d(_CircularPadNd):
    """Volumes continued from their other face."""

    _dims, _mode = 3, "circular"
