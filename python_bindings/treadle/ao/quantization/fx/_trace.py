"""From a model to a graph whose layers in a row are one.

Example:

    traced, scopes = traced_model(model, [], [])
    fuse(traced, is_qat=False)
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
import inspect
import operator
from typing import Any, Dict, List, Sequence, Tuple

from treadle import nn
from treadle.ao.nn import quantized as nnq
from treadle.ao.nn.intrinsic import _FusedModule
from treadle.ao.quantization.fuser_method_mappings import get_fuser_method
from treadle.ao.quantization.fx._patterns import FUSED_ROWS, Kind, kind_of, module_of
from treadle.fx import GraphModule, Node, Tracer


class QuantizationTracer(Tracer):
    """Traces a model; modules of these names and classes are one call."""

    def __init__(
        self,
        skipped_module_names: Sequence[str] = (),
        skipped_module_classes: Sequence[type] = (),
    ) -> None:
        super().__init__()
        self.skipped_module_names = skipped_module_names
        self.skipped_module_classes = skipped_module_classes

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        """Whether a call of a module is one node: layers of nn, fused ones, and the given ones."""
        return (
            isinstance(m, _FusedModule)
            or module_qualified_name in self.skipped_module_names
            or type(m) in self.skipped_module_classes
            or (
                super().is_leaf_module(m, module_qualified_name)
                and not isinstance(m, nnq.FXFloatFunctional)
            )
        )


def _exchange_functionals(model: nn.Module) -> None:
    """FloatFunctional, which has an observer, becomes the operations that it is made of."""
    for name, child in model.named_children():
        if isinstance(child, nnq.FloatFunctional):
            setattr(model, name, nnq.FXFloatFunctional())
        else:
            _exchange_functionals(child)


def traced_model(
    model: nn.Module, names: Sequence[str], classes: Sequence[type]
) -> Tuple[GraphModule, Dict[str, Any]]:
    """A copy of a model as a graph, and the module in which each node is called."""
    model = copy.deepcopy(model)
    _exchange_functionals(model)
    tracer = QuantizationTracer(names, classes)
    made = GraphModule(model, tracer.trace(model), type(model).__name__)
    _use_results(made)
    return made, dict(tracer.node_name_to_scope)


def _writes_argument(model: GraphModule, node: Node) -> bool:
    """Whether a call may write its first argument, and give it back."""
    if node.op == "call_module":
        return bool(getattr(module_of(model, node), "inplace", False))
    if node.op not in ("call_method", "call_function"):
        return False
    name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
    if name.endswith("_") and not name.endswith("__"):
        return True
    if node.target in (operator.iadd, operator.imul):
        return True
    try:
        given = inspect.signature(node.target).bind(*node.args, **node.kwargs)
    except (TypeError, ValueError):  # a method, or a function of C++
        return False
    return bool(given.arguments.get("inplace", False))


def _use_results(model: GraphModule) -> None:
    """Let what comes after a call that writes its argument use the result of the call: the
    quantized form of the call writes nothing."""
    earlier = set()
    for node in model.graph.nodes:
        earlier.add(node)
        if node.args and isinstance(node.args[0], Node) and _writes_argument(model, node):
            for user in list(node.args[0].users):
                if user not in earlier:
                    user.replace_input_with(node.args[0], node)
    model.recompile()


def _row_from(model: GraphModule, first: Node, kinds: Tuple[type, ...]) -> List[Node]:
    """The nodes from `first` whose modules are of these classes, each the one user of that before;
    relu() counts as nn.ReLU in any form. Empty where the row is another."""
    nodes = [first]
    for kind in kinds[1:]:
        users = list(nodes[-1].users)
        if len(users) != 1 or users[0].all_input_nodes != [nodes[-1]]:
            return []
        after = users[0]
        fits = (
            kind_of(model, after) is Kind.RELU
            if kind is nn.ReLU
            else type(module_of(model, after)) is kind
        )
        if not fits:
            return []
        nodes.append(after)
    return nodes


def _is_called_once(model: GraphModule, node: Node) -> bool:
    return sum(other.target == node.target for other in model.graph.nodes) == 1


def fuse(model: GraphModule, is_qat: bool) -> None:
    """Make one of layers in a row, in place."""
    for node in list(model.graph.nodes):
        first = module_of(model, node)
        for kinds in FUSED_ROWS:
            if type(first) is not kinds[0]:
                continue
            row = _row_from(model, node, kinds)
            modules = [module_of(model, part) for part in row]
            if row and all(
                part.op != "call_module" or _is_called_once(model, part) for part in row
            ):
                _replace(model, row, kinds, modules, is_qat)
                break
    model.graph.lint()
    model.delete_all_unused_submodules()
    model.recompile()


def _replace(
    model: GraphModule, row: List[Node], kinds: Any, modules: List[Any], is_qat: bool
) -> None:
    first = modules[0]
    layers = [nn.ReLU().train(first.training) if m is None else m for m in modules]
    fused = get_fuser_method(kinds)(is_qat, *layers).train(first.training)
    parent, _, name = str(row[0].target).rpartition(".")
    setattr(model.get_submodule(parent), name, fused)
    row[-1].replace_all_uses_with(row[0])
    for node in reversed(row[1:]):
        model.graph.erase_node(node)
