"""A module on several devices of one process; where there is none beside the CPU, the module."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Dict, Optional, Sequence

from treadle import _C

from ..modules.module import Module
from .parallel_apply import parallel_apply
from .replicate import replicate
from .scatter_gather import gather, scatter_kwargs


def _all_devices() -> Sequence[Any]:
    from treadle import accelerator

    found = accelerator.current_accelerator()
    if found is None:
        return []
    return [_C.device(found.type, i) for i in range(accelerator.device_count())]


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Optional[Sequence[Any]] = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: Optional[Dict[str, Any]] = None,
) -> Any:
    """The result of the module for a batch that is split along `dim` among the devices, by default
    all there are beside the CPU; on the CPU its result for the batch."""
    arguments = inputs if isinstance(inputs, tuple) else () if inputs is None else (inputs,)
    keywords = module_kwargs or {}
    devices = _all_devices() if device_ids is None else device_ids
    if not devices:
        return module(*arguments, **keywords)
    pieces, piece_keywords = scatter_kwargs(arguments, keywords, devices, dim)
    used = list(devices)[: max(len(pieces), 1)]
    replicas = replicate(module, used)
    outputs = parallel_apply(replicas, pieces or [()], piece_keywords or [{}], used)
    return gather(outputs, devices[0] if output_device is None else output_device, dim)


class DataParallel(Module):
    """A module whose batches are split among the devices of `device_ids`, by default all there are
    beside the CPU. Where there is none, it calls the module `self.module`."""

    def __init__(
        self,
        module: Module,
        device_ids: Optional[Sequence[Any]] = None,
        output_device: Any = None,
        dim: int = 0,
    ) -> None:
        super().__init__()
        self.dim = dim
        self.module = module
        available = _all_devices()
        self.device_ids = list(available if device_ids is None else device_ids) if available else []
        if self.device_ids:
            self.output_device = self.device_ids[0] if output_device is None else output_device

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """The result of the module for the batch."""
        if not self.device_ids:
            return self.module(*inputs, **kwargs)
        return data_parallel(
            self.module, inputs, self.device_ids, self.output_device, self.dim, kwargs
        )
