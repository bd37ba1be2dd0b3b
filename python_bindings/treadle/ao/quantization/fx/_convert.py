"""From a graph with observers to one of quantized calls.

Each node is written as a float, as a quantized tensor, or as both, at the place where one of them
is first needed. So a tensor is quantized where a quantized call takes it, and not before.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
from typing import Any, Callable, Dict, List, Optional, Set, Tuple

from treadle import _C, nn
from treadle._C import Tensor
from treadle.ao.nn import quantized as nnq
from treadle.ao.nn._weights import WithState, qparams_of
from treadle.ao.nn.quantized import dynamic as nnqd
from treadle.ao.quantization.fx._patterns import (
    SUMS,
    WEIGHTED,
    Kind,
    argument,
    kind_of,
    module_of,
    tensors_of,
)
from treadle.ao.quantization.fx._prepare import KNOWN
from treadle.ao.quantization.fx._qconfigs import outer_names
from treadle.ao.quantization.observer import _is_activation_post_process
from treadle.ao.quantization.quantization_mappings import (
    DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS,
    DEFAULT_STATIC_QUANT_MODULE_MAPPINGS,
)
from treadle.ao.quantization.quantize import _remove_qconfig
from treadle.fx import Graph, GraphModule, Node, map_arg
from treadle.nn._tuples import tuple_of

# Modules that give back what they are given once training is over, and those with a quantized form.
_EXCHANGED = (nn.Dropout, nn.ReLU6)


class _Scaled(WithState):
    """A call of an operator whose result has a scale of its own."""

    _numbers = (("scale", float), ("zero_point", int))

    def __init__(self, scale: float, zero_point: int) -> None:
        super().__init__()
        self.scale, self.zero_point = scale, zero_point

    def extra_repr(self) -> str:
        """The scale and the zero point."""
        return f"scale={self.scale}, zero_point={self.zero_point}"


class QuantizedAdd(_Scaled):
    """x + y of quantized tensors, with relu() after it or without."""

    def __init__(self, scale: float, zero_point: int, relu: bool = False) -> None:
        super().__init__(scale, zero_point)
        self.relu = relu

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """The sum, quantized."""
        return _C._quantized_add(x, y, self.scale, self.zero_point, self.relu)


class QuantizedMul(_Scaled):
    """x * y of quantized tensors, with relu() after it or without."""

    def __init__(self, scale: float, zero_point: int, relu: bool = False) -> None:
        super().__init__(scale, zero_point)
        self.relu = relu

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """The product, quantized."""
        return _C._quantized_mul(x, y, self.scale, self.zero_point, self.relu)


class QuantizedCat(_Scaled):
    """cat() of quantized tensors."""

    def forward(self, tensors: List[Tensor], dim: int = 0) -> Tensor:
        """The tensors beside each other."""
        return _C._quantized_cat(list(tensors), dim, self.scale, self.zero_point)


class _Converted:
    """Writes the graph of quantized calls beside the one with observers."""

    def __init__(self, model: GraphModule) -> None:
        self._model = model
        self._known: Dict[str, Any] = getattr(model, KNOWN)
        self._graph = Graph()
        self._graph._codegen = copy.deepcopy(model.graph._codegen)
        self._floats: Dict[Node, Node] = {}
        self._quantized: Dict[Node, Node] = {}
        # The new modules, by the nodes that call them.
        self._made: Dict[Node, nn.Module] = {}
        self._inputs = 0

    def run(self) -> GraphModule:
        """The new model."""
        for node in self._model.graph.nodes:
            self._write(node)
        self._graph.eliminate_dead_code(self._has_effects)
        self._add_modules()
        made = GraphModule(self._model, self._graph, type(self._model).__name__)
        made.meta = dict(self._model.meta)
        made.delete_all_unused_submodules()
        _remove_qconfig(made)
        return made

    def _write(self, node: Node) -> None:
        if node.op == "output":
            self._output(node)
        elif node.op == "placeholder":
            given = self._graph.node_copy(node)
            is_quantized = self._inputs in self._known["inputs"]
            (self._quantized if is_quantized else self._floats)[node] = given
            self._inputs += 1
        elif _is_activation_post_process(module_of(self._model, node)):
            self._observer(node)
        elif not self._call(node):
            self._floats[node] = self._graph.node_copy(node, self._float)

    def _call(self, node: Node) -> bool:
        """Write a call in its quantized form; False where it has none here."""
        kind = kind_of(self._model, node)
        form, qconfig = self._known["forms"].get(node.name, (None, None))
        if form is not None and kind is Kind.LAYER:
            self._layer(node, form, qconfig)
        elif form == "dynamic":
            self._dynamic_function(node, qconfig)
        elif form == "static":
            self._function(node, kind, self._relu_after(node))
        elif kind is Kind.RELU and self._joined(node):
            self._quantized[node] = self._quantized[self._source(node, kind)]
        elif kind in (Kind.SHARES, Kind.RELU) and self._is_quantized_already(node, kind):
            self._same_call(node, kind)
        else:
            return False
        return True

    def _has_effects(self, node: Node) -> bool:
        """Whether a node of the new graph stays, though nothing uses its result."""
        if node.op == "call_module":
            is_new = node in self._made
            return not is_new and getattr(module_of(self._model, node), "_is_impure", False)
        return node.is_impure()

    # ---- new modules ----

    def _call_module(self, path: str, module: nn.Module, args: Tuple[Any, ...]) -> Node:
        """A call of a new module, which gets this path or a similar one."""
        node = self._graph.call_module(path, args)
        self._made[node] = module
        return node

    def _add_modules(self) -> None:
        """Put the new modules into the model, at paths that nothing else has that the graph uses.
        A layer that is quantized in one call may be a float layer in another."""
        used: Set[str] = set()
        for node in self._graph.nodes:
            if node.op in ("call_module", "get_attr") and node not in self._made:
                used.update(outer_names(str(node.target)))
        for node in self._graph.nodes:
            if node not in self._made:
                continue
            path = free = str(node.target)
            count = 0
            while free in used:
                count += 1
                free = f"{path}_{count}"
            used.update(outer_names(free))
            node.target = free
            self._model.add_submodule(free, self._made[node])

    # ---- tensors in both forms ----

    def _float(self, node: Node) -> Node:
        if node not in self._floats:
            self._floats[node] = self._graph.call_method("dequantize", (self._quantized[node],))
        return self._floats[node]

    def _as_quantized(self, node: Node) -> Node:
        if node in self._quantized:
            return self._quantized[node]
        observer: Any = module_of(self._model, node)
        if not _is_activation_post_process(observer):
            raise ValueError(
                "convert_fx: expected quantized calls for the results in output_quantized_idxs, "
                f"got {node.name}, which computes on floats"
            )
        source = self._float(node)
        made = nnq.Quantize(*qparams_of(observer), observer.dtype)
        self._quantized[node] = self._call_module(f"{source.name}_quantize", made, (source,))
        return self._quantized[node]

    def _observer(self, node: Node) -> None:
        """An observer passes on what it observed, in the forms that there are."""
        source = node.all_input_nodes[0]
        for forms in (self._floats, self._quantized):
            if source in forms:
                forms[node] = forms[source]

    def _observer_after(self, node: Node) -> Any:
        """The observer of a node's result; None where there is none."""
        for user in node.users:
            observer = module_of(self._model, user)
            if _is_activation_post_process(observer):
                return observer
        return None

    def _source(self, node: Node, kind: Kind) -> Any:
        return next(iter(tensors_of(node, kind)), None)

    # ---- calls ----

    def _relu_after(self, node: Node) -> Optional[Node]:
        users = list(node.users)
        if len(users) == 1 and kind_of(self._model, users[0]) is Kind.RELU:
            return users[0]
        return None

    def _is_quantized_already(self, node: Node, kind: Kind) -> bool:
        """Whether an argument is a quantized tensor anyway, so that a call on it saves time."""
        observed = self._observer_after(node) is not None
        return observed and self._source(node, kind) in self._quantized

    def _joined(self, node: Node) -> bool:
        """Whether a relu() is a part of the quantized call before it."""
        source = self._source(node, Kind.RELU)
        return isinstance(source, Node) and (
            source.name in self._known["forms"] and self._relu_after(source) is node
            and source in self._quantized and module_of(self._model, source) is None
        )  # fmt: skip

    def _layer(self, node: Node, form: str, qconfig: Any) -> None:
        module: Any = module_of(self._model, node)
        module.qconfig = qconfig
        if form == "static":
            module.activation_post_process = self._observer_after(node)
            made = DEFAULT_STATIC_QUANT_MODULE_MAPPINGS[type(module)].from_float(module)
            source = self._as_quantized(self._source(node, Kind.LAYER))
            self._quantized[node] = self._call_module(str(node.target), made, (source,))
        else:
            new = self._floats[node] = self._graph.node_copy(node, self._float)
            self._made[new] = DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS[type(module)].from_float(module)

    def _weighted_layer(self, node: Node, qconfig: Any) -> Any:
        """A float layer for a function of a weight, with the observer of the weight."""
        dims = WEIGHTED[node.target]
        weight, bias = argument(node, 1, "weight"), argument(node, 2, "bias")
        observer = None
        if node.name in self._known["weights"]:
            observer = module_of(self._model, weight)
            weight = weight.all_input_nodes[0]
        tensor = _attribute(self._model, weight)
        if not dims:
            layer: Any = nn.Linear(tensor.shape[1], tensor.shape[0], bias is not None)
        else:
            conv: Any = (nn.Conv1d, nn.Conv2d, nn.Conv3d)[dims - 1]
            names = (("stride", 1), ("padding", 0), ("dilation", 1), ("groups", 1))
            values = [argument(node, 3 + i, *pair) for i, pair in enumerate(names)]
            stride, padding, dilation = (
                value if isinstance(value, str) else tuple_of(value, dims) for value in values[:3]
            )
            layer = conv(
                tensor.shape[1] * values[3],
                tensor.shape[0],
                tuple(tensor.shape[2:]),
                stride,
                padding,
                dilation,
                values[3],
                bias is not None,
            )
        layer.weight = nn.Parameter(tensor.detach())
        if bias is not None:
            layer.bias = nn.Parameter(_attribute(self._model, bias).detach())
        layer.qconfig = qconfig
        if observer is not None:
            layer.weight_fake_quant = observer
        return layer.train(self._model.training)

    def _dynamic_function(self, node: Node, qconfig: Any) -> None:
        if WEIGHTED[node.target]:
            self._floats[node] = self._graph.node_copy(node, self._float)
            return
        made = nnqd.Linear.from_float(self._weighted_layer(node, qconfig))
        source = self._float(argument(node, 0, "input"))
        self._floats[node] = self._call_module(node.name, made, (source,))

    def _function(self, node: Node, kind: Any, relu: Optional[Node]) -> None:
        observer = self._observer_after(relu or node)
        args: Tuple[Any, ...] = tuple(
            self._as_quantized(source) for source in tensors_of(node, kind)
        )
        if kind is Kind.WEIGHTED:
            layer = self._weighted_layer(node, self._known["forms"][node.name][1])
            layer.activation_post_process = observer
            made: Any = DEFAULT_STATIC_QUANT_MODULE_MAPPINGS[type(layer)].from_float(layer)
            made._relu = relu is not None
        elif kind is Kind.CAT:
            made = QuantizedCat(*qparams_of(observer))
            args = (list(args), argument(node, 1, "dim", 0))
        else:
            operation = QuantizedAdd if node.target in SUMS else QuantizedMul
            made = operation(*qparams_of(observer), relu is not None)
        self._quantized[node] = self._call_module(node.name, made, args)

    def _same_call(self, node: Node, kind: Any) -> None:
        """A call on the quantized tensor itself, which keeps its scale."""
        source = self._source(node, kind)
        module = module_of(self._model, node)
        quantized = self._as_quantized(source)
        new = self._graph.node_copy(
            node, lambda old: quantized if old is source else self._float(old)
        )
        if isinstance(module, _EXCHANGED):
            self._made[new] = DEFAULT_STATIC_QUANT_MODULE_MAPPINGS[type(module)].from_float(module)
        self._quantized[node] = new

    def _output(self, node: Node) -> None:
        wanted = self._known["outputs"]
        result = node.args[0]
        parts = list(result) if isinstance(result, (list, tuple)) else [result]

        def given(place: int, part: Any) -> Any:
            load: Callable[[Node], Node] = self._as_quantized if place in wanted else self._float
            return map_arg(part, load)

        made = [given(place, part) for place, part in enumerate(parts)]
        value: Any = type(result)(made) if isinstance(result, (list, tuple)) else made[0]
        self._graph.output(value, node.type)


def _attribute(model: GraphModule, node: Node) -> Any:
    """The tensor that a get_attr node names."""
    path, _, name = str(node.target).rpartition(".")
    return getattr(model.get_submodule(path), name)


def convert(model: GraphModule) -> GraphModule:
    """The model of quantized calls for a prepared one, whose modules it takes over."""
    return _Converted(model).run()
