"""Equal sizes of a graph by one name: solves what Refine finds.

Example:

    GraphTypeChecker({}, traced).type_check()
    infer_symbolic_types(traced)        # types of nodes, in variables and expressions of sympy
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Dict, Iterable, Tuple

from treadle.fx.experimental.graph_gradual_typechecker import Refine, _mapped
from treadle.fx.experimental.refinement_types import Equality
from treadle.fx.experimental.unification import isvar, reify, unify
from treadle.fx.experimental.unification.utils import transitive_get


def infer_symbolic_types_single_pass(traced: Any) -> None:
    """Give sizes of the graph names, and equal sizes the same. TypeError where sizes that must be
    equal are not."""
    refine = Refine(traced)
    refine.refine()
    found: Any = {}
    for equality in refine.constraints:
        known, found = found, unify(equality.lhs, equality.rhs, found)
        if found is False:
            one, other = reify((equality.lhs, equality.rhs), known)
            raise TypeError(f"expected equal sizes, got {one} and {other}")
    substitute_all_types(traced.graph, found)


def infer_symbolic_types(traced: Any) -> None:
    """The same twice, as what the first pass finds shows further equalities; and then sizes of
    convolutions as expressions, which needs the package sympy."""
    for _ in range(2):
        infer_symbolic_types_single_pass(traced)
    Refine(traced).symbolic_relations()


def convert_eq(list_of_eq: Iterable[Equality]) -> Tuple[Tuple[Any, ...], Tuple[Any, ...]]:
    """The left sides and the right sides."""
    equalities = list(list_of_eq)
    return tuple(e.lhs for e in equalities), tuple(e.rhs for e in equalities)


def unify_eq(list_of_eq: Iterable[Equality]) -> Any:
    """The values of variables that make all of them true; False if there are none."""
    return unify(*convert_eq(list_of_eq), {})


def substitute_solution_one_type(mapping: Dict[Any, Any], t: Any) -> Any:
    """The type with the values of the variables that the mapping has."""
    return _mapped(t, lambda part: mapping.get(part, part) if isvar(part) else part)


def substitute_all_types(graph: Any, mapping: Dict[Any, Any]) -> None:
    """Give all nodes types with the values of variables, which may be variables again."""
    last = {variable: transitive_get(variable, mapping) for variable in mapping}
    for node in graph.nodes:
        node.type = substitute_solution_one_type(last, node.type)


def check_for_type_equality(g1: Any, g2: Any) -> bool:
    """Whether the nodes of two graphs have the same types, in their order."""
    return all(a.type == b.type for a, b in zip(g1.nodes, g2.nodes))
