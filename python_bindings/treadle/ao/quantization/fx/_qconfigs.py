"""The QConfig of each node of a graph, by a QConfigMapping."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import re
from collections import Counter
from typing import Any, Dict, List

from treadle.ao.nn.intrinsic import _FusedModule
from treadle.ao.quantization.fx._patterns import key_of, module_of
from treadle.ao.quantization.qconfig_mapping import QConfigMapping
from treadle.fx import GraphModule, Node


def outer_names(name: str) -> List[str]:
    """A name and those of the modules around it, from the inside."""
    parts = name.split(".") if name else []
    return [".".join(parts[:count]) for count in range(len(parts), 0, -1)]


def qconfigs_of(
    model: GraphModule, mapping: QConfigMapping, scopes: Dict[str, Any]
) -> Dict[str, Any]:
    """The QConfig, or None, of each node's name. `scopes` has the name and the class of the module
    in which a node is called. The first of these counts: the number of a call in a module, a name,
    an expression that a name matches, the class around a function, a class or function, the QConfig
    for all."""
    calls: Counter = Counter()
    found = {}
    for node in model.graph.nodes:
        home, around = scopes.get(node.name, ("", None))
        module: Any = module_of(model, node)
        key = _key(model, node)
        kinds = [around, key]
        if module is not None:
            home = str(node.target)
            kinds = [key, *(map(type, module) if isinstance(module, _FusedModule) else ())]
        place = (home if module is None else home.rpartition(".")[0], key)
        found[node.name] = _qconfig(mapping, home, kinds, (*place, calls[place]))
        calls[place] += 1
    return found


def _key(model: GraphModule, node: Node) -> Any:
    key = key_of(model, node)
    return key if getattr(key, "__hash__", None) else None


def _qconfig(mapping: QConfigMapping, home: str, kinds: List[Any], order: Any) -> Any:
    if order in mapping.module_name_object_type_order_qconfigs:
        return mapping.module_name_object_type_order_qconfigs[order]
    for name in outer_names(home):
        if name in mapping.module_name_qconfigs:
            return mapping.module_name_qconfigs[name]
    for expression, qconfig in mapping.module_name_regex_qconfigs.items():
        if re.match(expression, home):
            return qconfig
    for kind in kinds:
        if kind in mapping.object_type_qconfigs:
            return mapping.object_type_qconfigs[kind]
    return mapping.global_qconfig
