"""One module on several devices, or in several processes.

Example:

    model = nn.parallel.DistributedDataParallel(model)      # in each process of treadle.distributed
"""

# SPDX-License-Identifier: Apache-2.0

from typing import Any

from ... import _names
from .data_parallel import DataParallel, data_parallel
from .parallel_apply import parallel_apply
from .replicate import replicate
from .scatter_gather import gather, scatter, scatter_kwargs


def __getattr__(name: str) -> Any:
    # It brings treadle.distributed with it. The second is an older name.
    if name in ("DistributedDataParallel", "DistributedDataParallelCPU"):
        from .distributed import DistributedDataParallel

        return DistributedDataParallel
    return _submodule(name)


_submodule = _names.attributes_of(__name__)

__all__ = [
    "DataParallel",
    "DistributedDataParallel",
    "DistributedDataParallelCPU",
    "data_parallel",
    "gather",
    "parallel_apply",
    "replicate",
    "scatter",
    "scatter_kwargs",
]
