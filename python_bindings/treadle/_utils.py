"""Functions by the names that programs know from `torch._utils`.

Example:

    flat = treadle._utils._flatten_dense_tensors(gradients)         # one piece of memory
    parts = treadle._utils._unflatten_dense_tensors(flat, gradients)    # views of it
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import importlib
from typing import Any, List, Optional, Sequence, Tuple

from treadle import _C
from treadle._C import Tensor
from treadle._device.registry import get_device_module as _get_device_module
from treadle._introspection.build import classproperty as classproperty
from treadle._rebuild import (
    _rebuild_meta_tensor_no_storage,
    _rebuild_parameter,
    _rebuild_sparse_tensor,
    _rebuild_tensor,
    _rebuild_tensor_v2,
    _rebuild_tensor_v3,
    _rebuild_wrapper_subclass,
)
from treadle.utils._exception_wrapper import ExceptionWrapper

__all__ = [
    "ExceptionWrapper",
    "_element_size",
    "_flatten_dense_tensors",
    "_get_all_device_indices",
    "_get_available_device_type",
    "_get_device_index",
    "_get_device_module",
    "_import_dotted_name",
    "_rebuild_meta_tensor_no_storage",
    "_rebuild_parameter",
    "_rebuild_sparse_tensor",
    "_rebuild_tensor",
    "_rebuild_tensor_v2",
    "_rebuild_tensor_v3",
    "_rebuild_wrapper_subclass",
    "_reorder_tensors_as",
    "_take_tensors",
    "_unflatten_dense_tensors",
    "classproperty",
]


def _flatten_dense_tensors(tensors: Sequence[Tensor]) -> Tensor:
    """The elements of tensors of one dtype, one after another, as a tensor of one dimension."""
    return _C.cat([tensor.reshape(-1) for tensor in tensors])


def _unflatten_dense_tensors(flat: Tensor, tensors: Sequence[Tensor]) -> Tuple[Tensor, ...]:
    """Views of a tensor of one dimension, with the sizes of `tensors`, one after another."""
    parts = flat.split([tensor.numel() for tensor in tensors])
    return tuple(part.view(tensor.shape) for part, tensor in zip(parts, tensors))


def _take_tensors(tensors: Sequence[Tensor], size_limit: int) -> Any:
    """Lists of tensors of one type, each of at most `size_limit` bytes where more than one tensor
    is in it."""
    groups: dict = {}
    for tensor in tensors:
        group: List[Tensor] = groups.setdefault(tensor.type(), [])
        size = sum(each.numel() * each.element_size() for each in group)
        if group and size + tensor.numel() * tensor.element_size() > size_limit:
            yield groups.pop(tensor.type())
            group = groups.setdefault(tensor.type(), [])
        group.append(tensor)
    yield from groups.values()


def _reorder_tensors_as(
    tensors: Sequence[Tensor], ordered_tensors: Sequence[Tensor]
) -> Tuple[Tensor, ...]:
    """Tensors that came grouped by type, in the order of `ordered_tensors`, which have the
    types."""
    by_type: dict = {}
    for tensor in tensors:
        by_type.setdefault(tensor.type(), []).append(tensor)
    iterators = {kind: iter(group) for kind, group in by_type.items()}
    return tuple(next(iterators[tensor.type()]) for tensor in ordered_tensors)


def _element_size(dtype: _C.dtype) -> int:
    """Bytes of an element."""
    if not isinstance(dtype, _C.dtype):
        raise RuntimeError(f"_element_size: expected a dtype, got {type(dtype).__name__}")
    return dtype.itemsize


def _get_available_device_type() -> Optional[str]:
    """The type of device, beside the CPU, that is there: "cuda", for example; None for none."""
    from treadle import accelerator

    found = accelerator.current_accelerator(check_available=True)
    return None if found is None else found.type


def _get_all_device_indices() -> Optional[List[int]]:
    """The numbers of the devices of that type; None where there is none."""
    kind = _get_available_device_type()
    return None if kind is None else list(range(_get_device_module(kind).device_count()))


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    """The number of a device, given as a number, a device or its name.

    The current device's where none is given and `optional` is True; -1 for the CPU where it is
    allowed. ValueError for another.
    """
    from treadle import accelerator

    if isinstance(device, str):
        device = _C.device(device)
    if isinstance(device, _C.device):
        if device.type == "cpu" and not allow_cpu:
            raise ValueError("_get_device_index: expected a device that is not the CPU, got cpu")
        if device.type == "cpu":
            return -1
        index = device.index
    else:
        index = device
    if isinstance(index, int):
        return index
    if index is None and optional:
        return accelerator.current_device_index()
    raise ValueError(f"_get_device_index: expected a device with an index, got {device!r}")


def _import_dotted_name(name: str) -> Any:
    """The object of a dotted name such as "torch.nn.Linear"."""
    first, *rest = name.split(".")
    found = importlib.import_module(first)
    for part in rest:
        found = getattr(found, part)
    return found
