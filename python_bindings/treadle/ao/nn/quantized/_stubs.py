"""From floats to quantized tensors, and back."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Dict, Optional

from treadle import _C, nn
from treadle._C import Tensor
from treadle.ao.nn._weights import qparams


class Quantize(nn.Module):
    """Quantizes a tensor of floats of any shape, with the scale and the zero point that it was made
    with, buffers of shape (1,)."""

    scale: Tensor
    zero_point: Tensor

    def __init__(
        self,
        scale: float,
        zero_point: int,
        dtype: Any,
        factory_kwargs: Optional[Dict[str, Any]] = None,
    ) -> None:
        super().__init__()
        options = nn.factory_kwargs(factory_kwargs)
        self.register_buffer("scale", _C.tensor([scale], **options))
        device = options.get("device")
        self.register_buffer("zero_point", _C.tensor([zero_point], dtype=_C.int64, device=device))
        self.dtype = dtype

    def forward(self, X: Tensor) -> Tensor:  # noqa: N803
        """The tensor, quantized."""
        return _C.quantize_per_tensor(X, float(self.scale), int(self.zero_point), self.dtype)

    @staticmethod
    def from_float(mod: nn.Module) -> Quantize:
        """For what the observer of a module saw."""
        return Quantize(*qparams(mod), mod.activation_post_process.dtype)

    def extra_repr(self) -> str:
        """The scale, the zero point and the dtype."""
        return f"scale={self.scale}, zero_point={self.zero_point}, dtype={self.dtype}"


class DeQuantize(nn.Module):
    """The floats of a quantized tensor."""

    def forward(self, Xq: Tensor) -> Tensor:  # noqa: N803
        """The numbers in float32."""
        return Xq.dequantize()

    @staticmethod
    def from_float(mod: nn.Module) -> DeQuantize:
        """In place of a DeQuantStub, which tells nothing."""
        del mod
        return DeQuantize()
