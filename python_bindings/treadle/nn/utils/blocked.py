"""Models for inference whose images stay in the order in which convolutions compute fastest.

    fast = to_mkldnn(model.eval())
    with treadle.no_grad():
        y = fast(x.to_mkldnn()).to_dense()

treadle.fx.experimental.optimization.optimize_for_inference() does it by the model's graph, with
batch normalisation and relu in the convolutions.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
from typing import Any, Optional

from treadle import _C, nn
from treadle._C import Tensor

_CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)


class MkldnnConvolution(nn.Module):
    """A convolution of images (N, C, ...) of any layout. The result has layout mkldnn. With `relu`
    it is at least 0. The weight, of float32, is packed at the first call."""

    def __init__(self, layer: Any, relu: bool = False) -> None:
        super().__init__()
        if layer.padding_mode != "zeros" or isinstance(layer.padding, str):
            raise ValueError(
                "MkldnnConvolution: expected a padding of zeros in numbers, got "
                f"{layer.padding!r} of {layer.padding_mode}"
            )
        self.register_buffer("weight", layer.weight.detach().to_mkldnn())
        self.register_buffer("bias", None if layer.bias is None else layer.bias.detach())
        self.stride, self.padding, self.dilation = layer.stride, layer.padding, layer.dilation
        self.groups, self.relu = layer.groups, relu
        self.training = False

    def forward(self, x: Tensor) -> Tensor:
        """The convolution of x."""
        return _C._mkldnn_convolution(
            x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups,
            self.relu,
        )  # fmt: skip


def is_convertible(layer: nn.Module) -> bool:
    """Whether a layer is a convolution that MkldnnConvolution takes."""
    return (
        type(layer) in _CONVOLUTIONS
        and layer.padding_mode == "zeros"
        and not isinstance(layer.padding, str)
        and layer.weight.dtype == _C.float32
        and layer.weight.device.type == "cpu"
    )


def to_mkldnn(module: nn.Module, dtype: Optional[Any] = None) -> nn.Module:
    """A copy of a module in eval mode whose convolutions keep the order of their images, and are
    MkldnnConvolution. The rest is as it was. RuntimeError in training mode, NotImplementedError for
    a dtype other than float32."""
    if module.training:
        raise RuntimeError("to_mkldnn: expected a module in eval mode, got one in training mode")
    if dtype not in (None, _C.float32):
        raise NotImplementedError(f"to_mkldnn: expected the dtype float32, got {dtype}")
    made = copy.deepcopy(module)
    if is_convertible(made):
        return MkldnnConvolution(made)
    for parent in list(made.modules()):
        for name, child in list(parent.named_children()):
            if is_convertible(child):
                setattr(parent, name, MkldnnConvolution(child))
    return made
