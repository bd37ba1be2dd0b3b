"""partition_cudagraphs: the parts of a graph that have to do with tensors on CUDA devices only."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import operator
from typing import Any, Mapping, Sequence

from treadle import nn
from treadle._C import Tensor
from treadle.autograd.grad_mode import no_grad
from treadle.fx.graph_module import GraphModule
from treadle.fx.interpreter import Interpreter
from treadle.fx.node import Node
from treadle.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from treadle.fx.passes.operator_support import OperatorSupport
from treadle.fx.passes.tools_common import CALLABLE_NODE_OPS
from treadle.utils._pytree import tree_leaves


def _devices(nodes: Sequence[Node]) -> set:
    leaves = (leaf for node in nodes for leaf in tree_leaves(node.meta.get("val")))
    return {leaf.device.type for leaf in leaves if isinstance(leaf, Tensor)}


class CudaGraphsSupport(OperatorSupport):
    """Supports calls whose arguments and results are on CUDA devices, as the examples in
    `meta["val"]` of the nodes are, and items of results."""

    def is_node_supported(self, submodules: Mapping[str, nn.Module], node: Node) -> bool:
        """Whether the call has to do with CUDA devices only."""
        if node.op not in CALLABLE_NODE_OPS:
            return False
        if node.target is operator.getitem:
            return True
        return _devices([node, *node.all_input_nodes]) <= {"cuda"}


class _Examples(Interpreter):
    def run_node(self, n: Node) -> Any:
        result = super().run_node(n)
        n.meta["val"] = result
        return result


def partition_cudagraphs(gm: GraphModule, inputs: Sequence[Any]) -> GraphModule:
    """A module whose calls on CUDA devices are in submodules. The graph is run on the inputs, to
    know where its tensors are."""
    before = {node: node.meta.get("val") for node in gm.graph.nodes}
    with no_grad():
        _Examples(gm).run(*inputs)
    support = CudaGraphsSupport()
    partitioner = CapabilityBasedPartitioner(gm, support, allows_single_node_partition=True)
    made = partitioner.fuse_partitions(partitioner.propose_partitions())
    for node, value in before.items():
        node.meta.pop("val", None)
        if value is not None:
            node.meta["val"] = value
    return made


__all__ = ["CudaGraphsSupport", "partition_cudagraphs"]
