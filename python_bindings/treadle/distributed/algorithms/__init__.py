"""Uses of collectives: hooks of DistributedDataParallel, averages of models, uneven inputs."""

# SPDX-License-Identifier: Apache-2.0

from treadle import _names
from treadle.distributed.algorithms.join import Join, Joinable, JoinHook

__getattr__ = _names.attributes_of(__name__)

__all__ = ["Join", "JoinHook", "Joinable"]
