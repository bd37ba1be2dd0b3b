"""The table of what is quantized in a graph: which calls have a quantized form, and which pass on
the scale of their argument.

A call that is not in the table computes on floats. Its result is quantized where a call of the
table takes it.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import enum
import operator
from typing import Any, Dict, Optional, Tuple

from treadle import _C, nn
from treadle.ao.nn import intrinsic as nni
from treadle.ao.quantization.fuser_method_mappings import METHODS
from treadle.ao.quantization.quantization_mappings import (
    DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS,
    DEFAULT_QAT_MODULE_MAPPINGS,
    DEFAULT_STATIC_QUANT_MODULE_MAPPINGS,
    FIXED_RANGES,
)
from treadle.fx import GraphModule, Node
from treadle.nn import functional


class Kind(enum.Enum):
    """What a call is to quantization."""

    LAYER = "a module with a weight"
    WEIGHTED = "a function of a weight"
    BINARY = "a sum or a product of two tensors"
    CAT = "tensors beside each other"
    RELU = "relu(), which joins the call before it"
    SHARES = "what has the scale of its argument"
    FIXED = "what has a range that is known"


def _named(*names: str) -> Tuple[Any, ...]:
    """The functions of these names and the methods, by what a graph has for each."""
    found = []
    for name in names:
        found += [getattr(home, name) for home in (functional, _C) if hasattr(home, name)]
        found.append(name)
    return tuple(dict.fromkeys(found))


SUMS = (operator.add, operator.iadd, *_named("add", "add_"))
PRODUCTS = (operator.mul, operator.imul, *_named("mul", "mul_"))
# For each function of a weight: how many dimensions it goes over; 0 for a linear layer.
WEIGHTED: Dict[Any, int] = {
    functional.linear: 0,
    _C.conv1d: 1,
    _C.conv2d: 2,
    _C.conv3d: 3,
    functional.conv1d: 1,
    functional.conv2d: 2,
    functional.conv3d: 3,
}
_LAYERS = frozenset(
    (
        *DEFAULT_QAT_MODULE_MAPPINGS,
        *DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS,
        *(
            kind
            for kind, quantized in DEFAULT_STATIC_QUANT_MODULE_MAPPINGS.items()
            if hasattr(quantized, "set_weight_bias")
        ),
    )
)
_MODULES: Dict[Any, Kind] = {
    **dict.fromkeys(_LAYERS, Kind.LAYER),
    nn.ReLU: Kind.RELU,
    **dict.fromkeys(
        (
            nn.AdaptiveAvgPool1d,
            nn.AdaptiveAvgPool2d,
            nn.AdaptiveAvgPool3d,
            nn.AvgPool1d,
            nn.AvgPool2d,
            nn.AvgPool3d,
            nn.Dropout,
            nn.Flatten,
            nn.Hardtanh,
            nn.Identity,
            nn.MaxPool1d,
            nn.MaxPool2d,
            nn.MaxPool3d,
            nn.ReLU6,
            nn.Unflatten,
            nn.Upsample,
            nn.UpsamplingNearest2d,
        ),
        Kind.SHARES,
    ),
    **dict.fromkeys(FIXED_RANGES, Kind.FIXED),
}
_CALLS: Dict[Any, Kind] = {
    **dict.fromkeys(WEIGHTED, Kind.WEIGHTED),
    **dict.fromkeys((*SUMS, *PRODUCTS), Kind.BINARY),
    **dict.fromkeys(_named("cat"), Kind.CAT),
    **dict.fromkeys(_named("relu", "relu_"), Kind.RELU),
    **dict.fromkeys(
        (
            operator.getitem,
            *_named(
                "adaptive_avg_pool1d",
                "adaptive_avg_pool2d",
                "adaptive_avg_pool3d",
                "avg_pool1d",
                "avg_pool2d",
                "avg_pool3d",
                "clamp",
                "flatten",
                "hardtanh",
                "interpolate",
                "max_pool1d",
                "max_pool2d",
                "max_pool3d",
                "mean",
                "permute",
                "relu6",
                "reshape",
                "squeeze",
                "transpose",
                "unsqueeze",
                "view",
            ),
        ),
        Kind.SHARES,
    ),
    **dict.fromkeys(FIXED_RANGES, Kind.FIXED),
}

_CLAMP = _named("clamp")
_INTERPOLATE = _named("interpolate")
# The modes of interpolation that quantized tensors have.
_MODES = frozenset(("nearest", "bilinear", "area"))

# What gives numbers or sizes rather than tensors.
_NO_TENSORS = frozenset(("size", "dim", "ndimension", "numel", "stride", "item", "tolist"))
_NO_TENSOR_ATTRIBUTES = frozenset(("shape", "ndim", "dtype", "device", "layout", "is_cuda"))

# Layers in a row that become one before anything else; the longest count first.
FUSED_ROWS = sorted(
    (row for row in METHODS if row[0] in DEFAULT_QAT_MODULE_MAPPINGS), key=len, reverse=True
)


def module_of(model: GraphModule, node: Any) -> Optional[nn.Module]:
    """The module that a node calls; None for other nodes."""
    if isinstance(node, Node) and node.op == "call_module":
        return model.get_submodule(str(node.target))
    return None


def key_of(model: GraphModule, node: Node) -> Any:
    """What the table has for a call: a class, a function, or the name of a method."""
    module = module_of(model, node)
    return node.target if module is None else type(module)


def gives_tensor(node: Any) -> bool:
    """Whether the result of a node may be a tensor: not a size, or what is computed of sizes."""
    if not isinstance(node, Node):
        return False
    if node.op == "call_method":
        return node.target not in _NO_TENSORS
    if node.op != "call_function":
        return True
    if node.target is getattr:
        return node.args[1] not in _NO_TENSOR_ATTRIBUTES
    if node.target in (operator.getitem, *SUMS, *PRODUCTS) and node.all_input_nodes:
        return any(gives_tensor(source) for source in node.all_input_nodes)
    return True


def kind_of(model: GraphModule, node: Node) -> Optional[Kind]:
    """What a node is to quantization; None where it computes on floats."""
    module = module_of(model, node)
    if module is not None:
        if isinstance(module, nni._FusedModule):
            return Kind.LAYER if type(module) in _LAYERS else None
        if getattr(module, "return_indices", False):
            return None
        if isinstance(module, nn.Upsample) and module.mode not in _MODES:
            return None
        return _MODULES.get(type(module))
    if node.op not in ("call_function", "call_method") or not gives_tensor(node):
        return None
    try:
        kind = _CALLS.get(node.target)
    except TypeError:  # what cannot be hashed is not in the table
        return None
    if kind is Kind.BINARY:
        takes_two = len(node.args) == 2 and not node.kwargs
        return kind if takes_two and all(map(gives_tensor, node.args)) else None
    if kind is Kind.SHARES and not _keeps_scale(node):
        return None
    if kind is Kind.CAT and not isinstance(argument(node, 0, "tensors"), (list, tuple)):
        return None  # the tensors are known when the graph runs
    if kind is Kind.WEIGHTED:
        weight = argument(node, 1, "weight")
        if module_of(model, weight) is not None:  # its observer
            weight = weight.all_input_nodes[0]
        return kind if isinstance(weight, Node) and weight.op == "get_attr" else None
    return kind


def _keeps_scale(node: Node) -> bool:
    """Whether a call of the kind SHARES does so with its arguments, too."""
    if node.target in _INTERPOLATE:
        return argument(node, 3, "mode", "nearest") in _MODES
    if node.target in _CLAMP:
        return not any(map(gives_tensor, node.all_input_nodes[1:]))
    return not node.kwargs.get("return_indices", False)


def argument(node: Node, place: int, name: str, default: Any = None) -> Any:
    """An argument of a call, by position or by name."""
    return node.args[place] if len(node.args) > place else node.kwargs.get(name, default)


def tensors_of(node: Node, kind: Kind) -> Tuple[Any, ...]:
    """The arguments of a call that are quantized with it."""
    if kind is Kind.BINARY:
        return tuple(node.args)
    if kind is Kind.CAT:
        return tuple(argument(node, 0, "tensors", ()))
    first = node.args[0] if node.args else node.kwargs.get("input")
    return (first,) if isinstance(first, Node) else ()
