"""Pictures of computations, and of memory.

treadle.viz.graph(loss, net).save("graph.svg")    # how the loss came to be
treadle.viz.memory(treadle.cuda.memory_snapshot()).save("memory.svg")   # what a device holds
"""

# SPDX-License-Identifier: Apache-2.0

from .drawing import Drawing, graph
from .segments import memory

__all__ = ["Drawing", "graph", "memory"]
