"""The QConfig of each node of a graph, by a QConfigMapping."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import re
from collections import Counter
from typing import Any, Dict, List

from treadle import nn
from treadle.ao.nn.intrinsic import _FusedModule
from treadle.ao.quantization.fx._patterns import key_of, module_of
from treadle.ao.quantization.qconfig_mapping import QConfigMapping
from treadle.fx import GraphModule, Node


def _outer_names(name: str) -> List[str]:
    """A name and those of the modules around it, from the inside."""
    parts = name.split(".") if name else []
    return [".".join(parts[:count]) for count in range(len(parts), 0, -1)]


def qconfigs_of(
    model: GraphModule, mapping: QConfigMapping, scopes: Dict[str, Any]
) -> Dict[str, Any]:
    """The QConfig, or None, of each node's name. `scopes` has the module in which a node is called.
    What says more counts more: the number of a call in a module, a name, an expression that a name
    matches, a class or function, and then the QConfig for all."""
    calls: Counter = Counter()
    found = {}
    for node in model.graph.nodes:
        home = str(node.target) if node.op == "call_module" else scopes.get(node.name, ("",))[0]
        key = _key(model, node)
        place = (home.rpartition(".")[0] if node.op == "call_module" else home, key)
        found[node.name] = _qconfig(mapping, model, node, home, key, (*place, calls[place]))
        calls[place] += 1
    return found


def _key(model: GraphModule, node: Node) -> Any:
    key = key_of(model, node)
    return key if getattr(key, "__hash__", None) else None


def _qconfig(
    mapping: QConfigMapping, model: GraphModule, node: Node, home: str, key: Any, order: Any
) -> Any:
    if order in mapping.module_name_object_type_order_qconfigs:
        return mapping.module_name_object_type_order_qconfigs[order]
    for name in _outer_names(home):
        if name in mapping.module_name_qconfigs:
            return mapping.module_name_qconfigs[name]
    for expression, qconfig in mapping.module_name_regex_qconfigs.items():
        if re.match(expression, home):
            return qconfig
    module: Any = module_of(model, node)
    parts = [type(part) for part in module] if isinstance(module, _FusedModule) else []
    outer = _classes_around(model, home) if module is not None else []
    for kind in (key, *parts, *outer):
        if kind in mapping.object_type_qconfigs:
            return mapping.object_type_qconfigs[kind]
    return mapping.global_qconfig


def _classes_around(model: GraphModule, path: str) -> List[type]:
    """The classes of the modules around a path, from the inside, but for plain containers."""
    found: List[Any] = []
    for name in _outer_names(path)[1:]:
        kind = type(model.get_submodule(name))
        if kind is not nn.Module:
            found.append(kind)
    return found
