"""Pictures of computations.

treadle.viz.graph(loss, net).save("graph.svg")    # how the loss came to be
"""

from .drawing import Drawing, graph

__all__ = ["Drawing", "graph"]
