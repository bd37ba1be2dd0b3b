"""Weights of convolutions in another order in memory."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Tuple, TypeVar

from treadle import nn

M = TypeVar("M", bound=nn.Module)


def _convert(module: M, memory_format: Any, kinds: Tuple[type, ...]) -> M:
    for part in module.modules():
        if isinstance(part, kinds):
            part.weight.data = part.weight.detach().clone().contiguous(memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module: M, memory_format: Any) -> M:
    """Give the weights of all Conv2d and ConvTranspose2d in a module that order."""
    return _convert(module, memory_format, (nn.Conv2d, nn.ConvTranspose2d))


def convert_conv3d_weight_memory_format(module: M, memory_format: Any) -> M:
    """Give the weights of all Conv3d and ConvTranspose3d in a module that order."""
    return _convert(module, memory_format, (nn.Conv3d, nn.ConvTranspose3d))


__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]
