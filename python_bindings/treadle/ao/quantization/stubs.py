"""Marks of where a model's tensors are quantized, and where they are floats again."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any

from treadle import _names, nn
from treadle._C import Tensor


class _Stub(nn.Module):
    def __init__(self, qconfig: Any = None) -> None:
        super().__init__()
        if qconfig is not None:
            self.qconfig = qconfig

    def forward(self, x: Tensor) -> Tensor:
        """The argument."""
        return x


class QuantStub(_Stub):
    """Marks where tensors get quantized. It returns its argument; prepare() puts an observer into
    it, and convert() replaces it by Quantize."""


class DeQuantStub(_Stub):
    """Marks where tensors become floats. It returns its argument; convert() puts DeQuantize in its
    place."""


class QuantWrapper(nn.Module):
    """A module between a QuantStub and a DeQuantStub."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        qconfig = getattr(module, "qconfig", None)
        self.quant, self.dequant = QuantStub(qconfig), DeQuantStub(qconfig)
        self.module = module
        self.train(module.training)

    def forward(self, X: Tensor) -> Tensor:  # noqa: N803
        """The result of the module for its argument."""
        return self.dequant(self.module(self.quant(X)))


__getattr__ = _names.attributes_of(__name__)
