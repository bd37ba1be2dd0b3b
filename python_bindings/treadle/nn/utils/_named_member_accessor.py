"""A tensor of a module changed for another, parameter or not."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any

from treadle import nn
from treadle._C import Tensor

_MISSING: Any = object()


def swap_tensor(module: nn.Module, name: str, tensor: Any, allow_missing: bool = False) -> Any:
    """Put a tensor in the place of the parameter or buffer `name`; the one that was there.

    AttributeError where there is none and `allow_missing` is False; KeyError for a name with a
    dot; TypeError for what is no tensor.
    """
    if "." in name:
        raise KeyError(f"swap_tensor: expected a name without a dot, got '{name}'")
    if tensor is not _MISSING and tensor is not None and not isinstance(tensor, Tensor):
        raise TypeError(f"swap_tensor: expected a Tensor, got {type(tensor).__name__}")
    for members in (module._parameters, module._buffers):
        if name in members:
            before = members[name]
            if tensor is _MISSING:
                del members[name]
            else:
                members[name] = tensor
            return before
    before = getattr(module, name, _MISSING)
    if before is _MISSING and not allow_missing:
        raise AttributeError(f"swap_tensor: {module._get_name()} has no attribute '{name}'")
    if before is not _MISSING and not isinstance(before, Tensor):
        raise TypeError(
            f"swap_tensor: expected '{name}' to be a Tensor, got {type(before).__name__}"
        )
    if tensor is not _MISSING:
        setattr(module, name, tensor)
    elif before is not _MISSING:
        delattr(module, name)
    return before
