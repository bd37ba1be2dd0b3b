"""Leaves of nested arguments in the order that a form says, which may be laxer than the values."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Type

from treadle.utils._pytree import PyTree, TreeSpec

FlattenFuncSpec = Callable[[Any, TreeSpec], List[Any]]
FlattenFuncExactMatchSpec = Callable[[Any, TreeSpec], bool]

SUPPORTED_NODES: Dict[Type[Any], FlattenFuncSpec] = {}
SUPPORTED_NODES_EXACT_MATCH: Dict[Type[Any], Optional[FlattenFuncExactMatchSpec]] = {}


def register_pytree_flatten_spec(
    cls: Type[Any],
    flatten_fn_spec: FlattenFuncSpec,
    flatten_fn_exact_match_spec: Optional[FlattenFuncExactMatchSpec] = None,
) -> None:
    """Say how values of a class are taken apart as a form asks for."""
    SUPPORTED_NODES[cls] = flatten_fn_spec
    SUPPORTED_NODES_EXACT_MATCH[cls] = flatten_fn_exact_match_spec


def tree_flatten_spec(pytree: PyTree, spec: TreeSpec, exact_structural_match: bool = False) -> List:
    """The leaves of a value, in the order of a form. RuntimeError for a class of the form that
    nobody registered."""
    if spec.is_leaf():
        return [pytree]
    take_apart = SUPPORTED_NODES.get(spec.type)
    if take_apart is None:
        raise RuntimeError(
            f"tree_flatten_spec: expected a registered class, got {spec.type}; "
            "call register_pytree_flatten_spec first"
        )
    parts = take_apart(pytree, spec)
    check = SUPPORTED_NODES_EXACT_MATCH.get(spec.type)
    if exact_structural_match and check is not None and not check(pytree, spec):
        raise RuntimeError(f"tree_flatten_spec: expected a value of the form {spec}, got {pytree}")
    leaves: List[Any] = []
    for part, part_spec in zip(parts, spec.children()):
        leaves.extend(tree_flatten_spec(part, part_spec, exact_structural_match))
    return leaves


def _sequence(values: Any, spec: TreeSpec) -> List[Any]:
    return [values[i] for i in range(spec.num_children)]


def _same_length(values: Any, spec: TreeSpec) -> bool:
    return len(values) == spec.num_children


register_pytree_flatten_spec(
    dict,
    lambda values, spec: [values[key] for key in spec.context],
    lambda values, spec: list(values) == list(spec.context),
)
register_pytree_flatten_spec(list, _sequence, _same_length)
register_pytree_flatten_spec(tuple, _sequence, _same_length)
