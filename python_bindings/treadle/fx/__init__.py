"""Programs as graphs: trace a module or function, change its graph, and run it as a module again.

    class Net(treadle.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = treadle.nn.Linear(2, 2)

        def forward(self, x):
            return self.linear(x).relu() + 1

    traced = treadle.fx.symbolic_trace(Net())    # a GraphModule: a module made of a graph
    print(traced.graph)                          # its nodes
    print(traced.code)                           # the Python code that it runs

Tracing calls the program once with stand-ins (Proxy) in place of its arguments, which record what
is done with them. The conditions of branches and loops have to be known then: a branch on the value
of a stand-in raises TraceError.
"""

# SPDX-License-Identifier: Apache-2.0

from treadle import _names
from treadle.fx._symbolic_trace import PH, ProxyableClassMeta, Tracer, symbolic_trace, wrap
from treadle.fx.graph import CodeGen, Graph
from treadle.fx.graph_module import GraphModule
from treadle.fx.interpreter import Interpreter, Transformer
from treadle.fx.node import Node, has_side_effect, map_arg
from treadle.fx.proxy import Proxy
from treadle.fx.subgraph_rewriter import replace_pattern

__getattr__ = _names.attributes_of(__name__)

__all__ = [
    "CodeGen",
    "Graph",
    "GraphModule",
    "Interpreter",
    "Node",
    "PH",
    "Proxy",
    "ProxyableClassMeta",
    "Tracer",
    "Transformer",
    "has_side_effect",
    "map_arg",
    "replace_pattern",
    "symbolic_trace",
    "wrap",
]
