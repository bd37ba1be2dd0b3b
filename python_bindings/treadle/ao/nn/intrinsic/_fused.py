"""Float layers in a row that are quantized as one."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Tuple

from treadle import nn
from treadle._names import package


class _FusedModule(nn.Sequential):
    """Some layers in a row; `_parts` are their classes. AssertionError for others."""

    _parts: Tuple[type, ...] = ()

    def __init__(self, *layers: nn.Module) -> None:
        before = package().nn.utils.parametrize.type_before_parametrizations
        classes = tuple(before(layer) for layer in layers)
        if classes != self._parts and type(self)._parts:
            wanted, got = (
                ", ".join(kind.__name__ for kind in kinds) for kinds in (self._parts, classes)
            )
            raise AssertionError(f"{type(self).__name__}: expected {wanted}, got {got}")
        super().__init__(*layers)


def _row(name: str, *parts: type) -> type:
    names = " and ".join(part.__name__ for part in parts)
    members = {"__doc__": f"{names} as one.", "__module__": __name__, "_parts": parts}
    return type(name, (_FusedModule,), members)


ConvReLU1d = _row("ConvReLU1d", nn.Conv1d, nn.ReLU)
ConvReLU2d = _row("ConvReLU2d", nn.Conv2d, nn.ReLU)
ConvReLU3d = _row("ConvReLU3d", nn.Conv3d, nn.ReLU)
LinearReLU = _row("LinearReLU", nn.Linear, nn.ReLU)
ConvBn1d = _row("ConvBn1d", nn.Conv1d, nn.BatchNorm1d)
ConvBn2d = _row("ConvBn2d", nn.Conv2d, nn.BatchNorm2d)
ConvBn3d = _row("ConvBn3d", nn.Conv3d, nn.BatchNorm3d)
ConvBnReLU1d = _row("ConvBnReLU1d", nn.Conv1d, nn.BatchNorm1d, nn.ReLU)
ConvBnReLU2d = _row("ConvBnReLU2d", nn.Conv2d, nn.BatchNorm2d, nn.ReLU)
ConvBnReLU3d = _row("ConvBnReLU3d", nn.Conv3d, nn.BatchNorm3d, nn.ReLU)
BNReLU2d = _row("BNReLU2d", nn.BatchNorm2d, nn.ReLU)
BNReLU3d = _row("BNReLU3d", nn.BatchNorm3d, nn.ReLU)
LinearBn1d = _row("LinearBn1d", nn.Linear, nn.BatchNorm1d)
