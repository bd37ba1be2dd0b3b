"""Neural networks: layers, containers, losses, and the functions and initial values they are made
of.

    import treadle.nn as nn
    net = nn.Sequential(nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 10))
"""

# SPDX-License-Identifier: Apache-2.0

from .. import _names
from . import attention, functional, init, parallel, utils
from .modules import *  # noqa: F403
from .modules import __all__ as _module_names
from .parallel import DataParallel
from .parameter import Buffer, Parameter
from .uninitialized import UninitializedBuffer, UninitializedParameter

__getattr__ = _names.attributes_of(
    __name__,
    {
        "Container": "modules.older",
        "LinearCrossEntropyLoss": "modules.linear_cross_entropy",
        "LinearCrossEntropyOptions": "modules.linear_cross_entropy_options",
        "NLLLoss2d": "modules.older",
        "factory_kwargs": "modules.older",
    },
)

__all__ = [
    *_module_names,
    "Buffer",
    "DataParallel",
    "Parameter",
    "attention",
    "functional",
    "init",
    "parallel",
    "utils",
    "UninitializedBuffer",
    "UninitializedParameter",
]
