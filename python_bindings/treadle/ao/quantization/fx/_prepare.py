"""Observers in a graph: after each call with a quantized form, and before it where its argument is
a float.

What is known of the nodes is kept in an attribute of the model, for _convert.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Dict, List, Optional

from treadle._introspection.build import per_channel_affine_float_qparams
from treadle.ao.nn.qat._rounded import RoundsWeight
from treadle.ao.quantization.fx._patterns import (
    Kind,
    argument,
    gives_tensor,
    kind_of,
    module_of,
    tensors_of,
)
from treadle.ao.quantization.observer import _is_activation_post_process
from treadle.ao.quantization.quantization_mappings import (
    DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS,
    DEFAULT_QAT_MODULE_MAPPINGS,
    DEFAULT_STATIC_QUANT_MODULE_MAPPINGS,
)
from treadle.ao.quantization.quantize import swap_module
from treadle.ao.quantization.utils import is_quantized_dtype
from treadle.fx import GraphModule, Node

# The attribute of a prepared model.
KNOWN = "_quantization"


def form_of(qconfig: Any) -> Optional[str]:
    """How a QConfig quantizes: "static", "dynamic", "weight_only"; None where it does not."""
    if qconfig is None or qconfig.activation is None or qconfig.weight is None:
        return None
    activation, weight = qconfig.activation(), qconfig.weight()
    kept = getattr(weight, "dtype", None)
    if getattr(activation, "is_dynamic", False):
        return "dynamic"
    if is_quantized_dtype(getattr(activation, "dtype", None)):
        return "static"
    of_rows = getattr(weight, "qscheme", None) == per_channel_affine_float_qparams
    return "weight_only" if is_quantized_dtype(kept) and of_rows else None


class _Prepared:
    """A graph that gets observers."""

    def __init__(self, model: GraphModule, qconfigs: Dict[str, Any], is_qat: bool) -> None:
        self._model, self._qconfigs, self._is_qat = model, qconfigs, is_qat
        self._count = 0
        # The observer's node for each node that has one.
        self._observed: Dict[Node, Node] = {}
        # What _convert needs: the form and the QConfig of each call that becomes a quantized one,
        # and the observers of weights.
        self.forms: Dict[str, Any] = {}
        self.weights: Dict[str, str] = {}

    def run(self) -> None:
        """Put the observers in."""
        for node in list(self._model.graph.nodes):
            kind = kind_of(self._model, node)
            qconfig = self._qconfigs.get(node.name)
            form = form_of(qconfig)
            if kind is Kind.LAYER:
                self._layer(node, qconfig, form)
            elif form != "static":
                if kind is Kind.WEIGHTED and form == "dynamic":
                    self.forms[node.name] = (form, qconfig)
            elif kind in (Kind.WEIGHTED, Kind.BINARY, Kind.CAT):
                self._call(node, kind, qconfig)
            elif kind in (Kind.SHARES, Kind.RELU):
                self._shares(node, kind, qconfig)
            elif kind is Kind.FIXED:
                self._observe(node, qconfig)
        self._model.graph.lint()
        self._model.recompile()

    def _layer(self, node: Node, qconfig: Any, form: Optional[str]) -> None:
        module: Any = module_of(self._model, node)
        kind = type(module)
        module.qconfig = qconfig
        if self._is_qat and form is not None and not isinstance(module, RoundsWeight):
            module = swap_module(module, DEFAULT_QAT_MODULE_MAPPINGS)
            parent, _, name = str(node.target).rpartition(".")
            setattr(self._model.get_submodule(parent), name, module)
        if form == "dynamic" and kind in DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS:
            if not hasattr(DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS[kind], "set_weight"):
                self.forms[node.name] = (form, qconfig)
        elif form == "weight_only" and hasattr(
            DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS.get(kind), "set_weight"
        ):
            self.forms[node.name] = (form, qconfig)
        elif form == "static" and hasattr(
            DEFAULT_STATIC_QUANT_MODULE_MAPPINGS.get(type(module)), "set_weight_bias"
        ):
            self.forms[node.name] = (form, qconfig)
            self._observe_arguments(node, Kind.LAYER, qconfig)
            self._observe(node, qconfig)

    def _call(self, node: Node, kind: Kind, qconfig: Any) -> None:
        self.forms[node.name] = ("static", qconfig)
        self._observe_arguments(node, kind, qconfig)
        if kind is Kind.WEIGHTED:
            weight = argument(node, 1, "weight")
            observer = self._add(weight, qconfig.weight())
            node.replace_input_with(weight, observer)
            self.weights[node.name] = str(observer.target)
        after = list(node.users)
        # relu() after it is a part of it, and its result is the one that is observed.
        joins = (
            kind is not Kind.CAT and len(after) == 1 and kind_of(self._model, after[0]) is Kind.RELU
        )
        if not joins:
            self._observe(node, qconfig)

    def _shares(self, node: Node, kind: Kind, qconfig: Any) -> None:
        source = next(iter(tensors_of(node, kind)), None)
        if not isinstance(source, Node):
            return
        before = self._observer_at(source)
        if before is not None:
            # The same observer: it sees both.
            self._insert(node, str(before.target))
        elif kind is Kind.RELU and source.name in self.forms and source.op != "call_module":
            self._observe(node, qconfig)

    def _observer_at(self, node: Node) -> Optional[Node]:
        """A node, if it is an observer's."""
        is_one = _is_activation_post_process(module_of(self._model, node))
        return node if is_one else None

    def _observe_arguments(self, node: Node, kind: Kind, qconfig: Any) -> None:
        for source in dict.fromkeys(tensors_of(node, kind)):
            if not gives_tensor(source) or self._observer_at(source):
                continue
            observer = self._observed.get(source)
            if observer is None:
                observer = self._observed[source] = self._add(source, qconfig.activation())
            node.replace_input_with(source, observer)

    def _observe(self, node: Node, qconfig: Any) -> None:
        """Put an observer after a node, for all that use it."""
        self._insert(node, self._new(qconfig.activation()))

    def _new(self, observer: Any) -> str:
        name = f"activation_post_process_{self._count}"
        self._count += 1
        for tensor in (*self._model.parameters(), *self._model.buffers()):
            observer = observer.to(tensor.device)
            break
        self._model.add_module(name, observer)
        return name

    def _add(self, node: Node, observer: Any) -> Node:
        """An observer's node after a node, that nothing uses yet."""
        with self._model.graph.inserting_after(node):
            return self._model.graph.call_module(self._new(observer), (node,))

    def _insert(self, node: Node, target: str) -> None:
        with self._model.graph.inserting_after(node):
            observer = self._model.graph.call_module(target, (node,))
        node.replace_all_uses_with(observer)
        observer.args = (node,)
        self._observed[node] = observer


def prepare(
    model: GraphModule,
    qconfigs: Dict[str, Any],
    is_qat: bool,
    quantized_inputs: List[int],
    quantized_outputs: List[int],
) -> None:
    """Put observers into a graph, in place, by the QConfig of each node."""
    made = _Prepared(model, qconfigs, is_qat)
    made.run()
    known = {
        "forms": made.forms,
        "weights": made.weights,
        "inputs": list(quantized_inputs),
        "outputs": list(quantized_outputs),
    }
    setattr(model, KNOWN, known)
