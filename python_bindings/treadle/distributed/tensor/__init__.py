"""Tensors that are spread over processes: DTensor, and how it lies, Shard, Replicate, Partial."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from treadle import _names
from treadle.distributed.device_mesh import DeviceMesh, init_device_mesh
from treadle.distributed.tensor._api import DTensor, distribute_tensor
from treadle.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
from treadle.distributed.tensor._factories import (
    empty,
    full,
    linspace,
    logspace,
    ones,
    rand,
    randn,
    zeros,
)
from treadle.distributed.tensor._modules import distribute_module
from treadle.distributed.tensor.placement_types import (
    Partial,
    Placement,
    Replicate,
    Shard,
    _StridedShard,
)
from treadle.serialization import _safe_globals

_safe_globals.add_data_classes(
    DTensor, DTensorSpec, TensorMeta, DeviceMesh, Shard, _StridedShard, Replicate, Partial
)

__all__ = [
    "DTensor",
    "Partial",
    "Placement",
    "Replicate",
    "Shard",
    "distribute_module",
    "distribute_tensor",
    "empty",
    "full",
    "linspace",
    "logspace",
    "ones",
    "rand",
    "randn",
    "zeros",
]

__getattr__ = _names.attributes_of(__name__)
