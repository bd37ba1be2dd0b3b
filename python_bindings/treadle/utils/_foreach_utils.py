"""Lists of tensors for operators over lists: grouped by device and dtype, and where such operators
pay."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import functools
from typing import Any, Optional

from treadle import _C, _names
from treadle._C import Tensor
from treadle.autograd.grad_mode import no_grad

TensorListList = list[list[Optional[Tensor]]]
Indices = list[int]


@functools.lru_cache(maxsize=None)
def _supported_types() -> list[type]:
    """`_foreach_supported_types`: the types of tensors that operators over lists take."""
    from treadle.nn.parameter import Parameter

    return [Tensor, Parameter]


def __getattr__(name: str) -> Any:
    if name != "_foreach_supported_types":
        raise _names.missing(__name__, name)
    return _supported_types()


def _get_foreach_kernels_supported_devices() -> list[str]:
    """The types of devices on which one operator over a list beats one for each tensor."""
    return ["cuda", "xpu", "mtia", "privateuseone"]


def _get_fused_kernels_supported_devices() -> list[str]:
    """The types of devices that have steps of optimisers in one call."""
    return ["cuda", "cpu", "xpu", "hpu", "mps", "mtia", "privateuseone"]


@no_grad()
def _group_tensors_by_device_and_dtype(
    tensorlistlist: TensorListList, with_indices: bool = False
) -> dict[tuple[_C.device, _C.dtype], tuple[TensorListList, Indices]]:
    """Lists that belong together place by place, split by device and dtype of the first list's
    tensors; with the places, if they are asked for."""
    return _C._group_tensors_by_device_and_dtype(tensorlistlist, with_indices)


def _device_has_foreach_support(device: _C.device) -> bool:
    return device.type in (*_get_foreach_kernels_supported_devices(), "cpu")


def _has_foreach_support(tensors: list[Tensor], device: _C.device) -> bool:
    """Whether operators over lists take these tensors, all on this device."""
    return _device_has_foreach_support(device) and all(
        t is None or type(t) in _supported_types() for t in tensors
    )
