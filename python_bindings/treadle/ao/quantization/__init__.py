"""Marks of where a model's tensors would be quantized: modules that pass on what they are given."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any

from treadle import _names, nn
from treadle._C import Tensor

from .weight_only import Int4WeightOnlyConfig, Int8WeightOnlyConfig, quantize_  # noqa: F401


class QuantStub(nn.Module):
    """Where tensors would be quantized. It gives back its argument."""

    def __init__(self, qconfig: Any = None) -> None:
        super().__init__()
        if qconfig is not None:
            self.qconfig = qconfig

    def forward(self, x: Tensor) -> Tensor:
        """The argument."""
        return x


class DeQuantStub(QuantStub):
    """Where tensors would be quantized no longer. It gives back its argument."""


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
