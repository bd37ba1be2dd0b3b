"""Optimizers of programs with several processes.

Example:

    optimizer = ZeroRedundancyOptimizer(model.parameters(), treadle.optim.Adam, lr=0.01)
"""

# SPDX-License-Identifier: Apache-2.0

from treadle import _names
from treadle.distributed.optim.post_localSGD_optimizer import PostLocalSGDOptimizer
from treadle.distributed.optim.zero_redundancy_optimizer import ZeroRedundancyOptimizer

__getattr__ = _names.attributes_of(__name__)

__all__ = ["PostLocalSGDOptimizer", "ZeroRedundancyOptimizer"]
