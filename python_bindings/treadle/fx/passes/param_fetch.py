"""lift_lowering_attrs_to_nodes: the attributes of modules that a backend reads, on the nodes."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, Dict, List, Tuple

from treadle import nn
from treadle.fx.graph_module import GraphModule, _get_attr


def default_matching(name: str, target_version: int) -> str:
    """The name of an attribute in its newest version: the name itself."""
    return name


module_fetch_book: Dict[type, Tuple[int, List[str], Callable[[str, int], str]]] = {
    nn.Linear: (1, ["weight", "bias"], default_matching),
    nn.Conv2d: (
        1,
        "weight bias kernel_size stride padding dilation groups padding_mode".split(),
        default_matching,
    ),
    nn.BatchNorm2d: (
        2,
        ["weight", "bias", "running_mean", "running_var", "eps"],
        default_matching,
    ),
    nn.AdaptiveAvgPool2d: (1, [], default_matching),
    nn.MaxPool2d: (
        1,
        ["kernel_size", "stride", "padding", "dilation", "return_indices", "ceil_mode"],
        default_matching,
    ),
    nn.ReLU: (1, ["inplace"], default_matching),
}


def extract_attrs_for_lowering(mod: nn.Module) -> Dict[str, Any]:
    """The attributes of a module that a backend reads, and its name. RuntimeError for a class that
    module_fetch_book does not have."""
    if type(mod) not in module_fetch_book:
        raise RuntimeError(
            f"extract_attrs_for_lowering: expected a module of module_fetch_book, got {type(mod)}"
        )
    version, attributes, match = module_fetch_book[type(mod)]
    made: Dict[str, Any] = {"name": f"{type(mod).__module__}.{type(mod).__qualname__}"}
    for name in attributes:
        made[name] = getattr(mod, match(name, version))
    return made


def lift_lowering_attrs_to_nodes(fx_module: GraphModule) -> None:
    """Give each node that calls a module `attrs_for_lowering`, of its module."""
    for node in fx_module.graph.nodes:
        if node.op == "call_module":
            called = _get_attr(fx_module, node.target)
            if isinstance(called, GraphModule):
                lift_lowering_attrs_to_nodes(called)
            else:
                node.attrs_for_lowering = extract_attrs_for_lowering(called)  # type: ignore[attr-defined]


__all__ = [
    "default_matching",
    "extract_attrs_for_lowering",
    "lift_lowering_attrs_to_nodes",
    "module_fetch_book",
]
