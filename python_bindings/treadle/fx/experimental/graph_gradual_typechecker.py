"""Types of all nodes of a graph, from those that a program gives its inputs.

    traced = fx.symbolic_trace(module)
    next(iter(traced.graph.nodes)).type = TensorType((Dyn, 3, 32, 32))
    GraphTypeChecker({}, traced).type_check()        # TypeError where sizes do not fit
    [node.type for node in traced.graph.nodes]

Refine gives unknown sizes names, and finds which of them are the same.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import itertools
import math
import operator
from typing import Any, Callable, Dict, List, Optional, Tuple, TypeVar

from treadle import _C, nn
from treadle.fx.experimental._sizes_of_layers import (
    adaptiveavgpool2d_check,
    broadcast_types,
    calculate_out_dimension,
    expand_to_tensor_dim,
    flat_range,
    flatten_check,
    get_greatest_upper_bound,
    linear_check,
    maxpool2d_check,
)
from treadle.fx.experimental.refinement_types import Equality
from treadle.fx.experimental.unification import Var
from treadle.fx.node import Node, map_arg
from treadle.fx.tensor_type import Dyn, TensorType, is_consistent, is_more_precise

_Rule = TypeVar("_Rule", bound=Callable[..., Any])

_INFERENCE_RULES: Dict[Any, Callable[..., Any]] = {}
_REFINEMENT_RULES: Dict[Any, Callable[..., Any]] = {}
_RULES: Dict[Any, Callable[..., Any]] = {}


def _register(rules: Dict[Any, Any], kind: str, target: Any) -> Callable[[_Rule], _Rule]:
    def decorate(rule: _Rule) -> _Rule:
        if target in rules:
            raise RuntimeError(f"{target}: expected no {kind} rule, got another")
        rules[target] = rule
        return rule

    return decorate


def register_inference_rule(call_target: Any) -> Callable[[_Rule], _Rule]:
    """A decorator: the rule gives nodes that call this function, or layers of this class, types. It
    is called with the node, and the layer if there is one. RuntimeError for a second rule."""
    return _register(_INFERENCE_RULES, "inference", call_target)


def register_refinement_rule(call_target: Any) -> Callable[[_Rule], _Rule]:
    """A decorator: the rule returns the equalities of sizes at a node. RuntimeError for a
    second."""
    return _register(_REFINEMENT_RULES, "refinement", call_target)


def register_algebraic_expressions_inference_rule(call_target: Any) -> Callable[[_Rule], _Rule]:
    """A decorator: the rule gives a node a type in terms of the sizes of its input. RuntimeError
    for a second."""
    return _register(_RULES, "algebraic", call_target)


def _argument(n: Node, index: int, name: str, default: Any = None) -> Any:
    return n.args[index] if len(n.args) > index else n.kwargs.get(name, default)


def _input(n: Node) -> Node:
    return _argument(n, 0, "input")


def _bounded(n: Node, found: TensorType) -> Any:
    """Give the node the type, which what a program said of it may make more precise."""
    n.type = get_greatest_upper_bound(found, n.type)
    return n.type


def _checked(n: Node, check: Callable[[TensorType], TensorType]) -> Any:
    """The type of a node by that of its input, which is expanded where only the node's is known."""
    given = _input(n)
    if given.type == Dyn and isinstance(n.type, TensorType):
        given.type = expand_to_tensor_dim(given.type, len(n.type.__args__))
    return _bounded(n, check(given.type)) if isinstance(given.type, TensorType) else n.type


def _type_of(argument: Any) -> Any:
    return argument.type if isinstance(argument, Node) else type(argument)


@register_inference_rule(_C.add)
@register_inference_rule(operator.add)
def add_inference_rule(n: Node) -> Any:
    """The less precise of the types of the operands after broadcasting; numbers change none.
    TypeError for sizes that do not broadcast."""
    t1, t2 = _type_of(_argument(n, 0, "input")), _type_of(_argument(n, 1, "other"))
    numbers = (int, float, bool, complex)
    if t1 in numbers or t2 in numbers:
        n.type = t2 if t1 in numbers else t1
        return n.type
    new_t1, new_t2 = broadcast_types(t1, t2)
    if not is_consistent(new_t1, new_t2):
        raise TypeError(f"{n.name}: expected operands of types that broadcast, got {t1} and {t2}")
    n.type = new_t2 if is_more_precise(new_t1, new_t2) else new_t1
    return n.type


@register_inference_rule(getattr)
def get_attr_inference_rule(n: Node, traced: Any) -> Any:
    """Dyn for the `shape` of a tensor. TypeError for another attribute."""
    if n.args[1] != "shape":
        raise TypeError(f"{n.name}: expected the attribute shape, got {n.args[1]}")
    n.type = Dyn
    return n.type


@register_inference_rule(_C.transpose)
def transpose_inference_rule(n: Node) -> Any:
    """The type with two sizes exchanged. TypeError for a dimension that there is not."""
    given = _input(n)
    dims = _argument(n, 1, "dim0"), _argument(n, 2, "dim1")
    if not isinstance(given.type, TensorType):
        return n.type
    sizes = list(given.type.__args__)
    if any(not -len(sizes) <= dim < len(sizes) for dim in dims):
        raise TypeError(f"{n.name}: expected dimensions {dims[0]} and {dims[1]}, got {given.type}")
    sizes[dims[0]], sizes[dims[1]] = sizes[dims[1]], sizes[dims[0]]
    return _bounded(n, TensorType(sizes))


def _may_hold_as_much(given: List[Any], wanted: List[Any]) -> bool:
    count, other = (math.prod(d for d in sizes if d != Dyn) for sizes in (given, wanted))
    if Dyn not in given and Dyn not in wanted:
        return count == other
    if Dyn not in given:
        return other != 0 and count % other == 0
    if Dyn not in wanted:
        return count != 0 and other % count == 0
    return count != 0 and other != 0 and (count % other == 0 or other % count == 0)


@register_inference_rule(_C.reshape)
def reshape_inference_rule(n: Node) -> TensorType:
    """The sizes that are asked for, Dyn for -1. TypeError where as many elements cannot be."""
    given = _input(n)
    wanted = [Dyn if size == -1 else size for size in _argument(n, 1, "shape")]
    found = TensorType(tuple(wanted))
    fits = given.type == Dyn or (
        isinstance(given.type, TensorType) and _may_hold_as_much(list(given.type.__args__), wanted)
    )
    if not fits:
        raise TypeError(f"{n.name}: expected as many elements as {given.type} has, got {found}")
    n.type = found
    return found


def _of_channels(n: Node, channels: int) -> Tuple[TensorType, TensorType]:
    """The types of the input and of the node as types of 4 sizes; the former is kept."""
    given = _input(n)
    given.type = expand_to_tensor_dim(given.type, 4)
    if not is_consistent(given.type.__args__[1], channels):
        raise TypeError(f"{n.name}: expected {channels} channels, got {given.type}")
    return given.type, expand_to_tensor_dim(n.type, 4)


@register_inference_rule(nn.BatchNorm2d)
def bn2d_inference_rule(n: Node, module_instance: Any) -> Any:
    """The more precise of the types of the input and of the node. TypeError where they differ or
    have other channels than the layer."""
    given, known = _of_channels(n, module_instance.num_features)
    if not is_consistent(known.__args__[1], module_instance.num_features):
        raise TypeError(f"{n.name}: expected {module_instance.num_features} channels, got {known}")
    n.type = get_greatest_upper_bound(known, given)
    return n.type


@register_inference_rule(nn.Conv2d)
def conv2d_inference_rule(n: Node, module_instance: Any) -> Any:
    """The type of a convolution of 4 sizes. TypeError for other channels than the layer's."""
    given, known = _of_channels(n, module_instance.in_channels)
    batch, _, *spatial = given.__args__
    ends = (calculate_out_dimension(d, module_instance, i) for i, d in enumerate(spatial))
    found = TensorType((batch, module_instance.out_channels, *ends))
    n.type = get_greatest_upper_bound(found, known)
    return n.type


@register_inference_rule(nn.ReLU)
def relu_inference_rule(n: Node, module_instance: Any) -> Any:
    """The type of the input."""
    return _checked(n, lambda t: t)


@register_inference_rule(nn.MaxPool2d)
def maxpool2d_inference_rule(n: Node, module_instance: Any) -> Any:
    """The type of a pool of 3 or 4 sizes."""
    return _checked(n, lambda t: maxpool2d_check(t, module_instance))


@register_inference_rule(nn.Linear)
def linear_inference_rule(n: Node, module_instance: Any) -> Any:
    """The type with the layer's features as last size."""
    return _checked(n, lambda t: linear_check(t, module_instance))


@register_inference_rule(nn.AdaptiveAvgPool2d)
def adaptiveavgpool2d_inference_rule(n: Node, module_instance: Any) -> Any:
    """The type with the layer's sizes at the end."""
    return _checked(n, lambda t: adaptiveavgpool2d_check(t, module_instance))


def _flat_dims(n: Node) -> Tuple[int, int]:
    return _argument(n, 1, "start_dim", 0), _argument(n, 2, "end_dim", -1)


@register_inference_rule(_C.flatten)
def flatten_inference_rule(n: Node) -> Any:
    """The type with the sizes of the range joined."""
    given = _input(n)
    if not isinstance(given.type, TensorType):
        return n.type
    return _bounded(n, flatten_check(given.type, *_flat_dims(n)))


def get_parameter(traced: Any, target: str) -> Any:
    """The parameter at a path through modules. AttributeError where there is none."""
    return traced.get_parameter(target)


class GraphTypeChecker:
    """Gives every node of a traced module a type; `env` is kept for the caller."""

    def __init__(self, env: Any, traced: Any) -> None:
        self.env, self.traced = env, traced

    def type_check(self) -> bool:
        """Give every node its type, and return True. TypeError where types do not fit, RuntimeError
        for a call that has no rule, NotImplementedError for a call of a method."""
        for node in self.traced.graph.nodes:
            self.type_check_node(node)
        return True

    def type_check_node(self, n: Node) -> Any:
        """Give a node its type, by those of its arguments, and return it."""
        n.type = Dyn if n.type is None else n.type
        if n.op == "get_attr":
            value = get_parameter(self.traced, str(n.target))
            n.type = TensorType(tuple(value.shape))
        elif n.op == "output":
            n.type = map_arg(n.args[0], _type_of)
        elif n.op == "call_function":
            rule = self._rule(n, n.target)
            return rule(n, self.traced) if n.target is getattr else rule(n)
        elif n.op == "call_module":
            layer = self.traced.get_submodule(str(n.target))
            return self._rule(n, type(layer))(n, layer)
        elif n.op != "placeholder":
            raise NotImplementedError(f"{n.name}: expected a function or a layer, got {n.op}")
        return n.type

    def _rule(self, n: Node, target: Any) -> Callable[..., Any]:
        if target not in _INFERENCE_RULES:
            text = f"expected a call that has an inference rule, got {target}"
            raise RuntimeError(f"{n.name}: {text}")
        return _INFERENCE_RULES[target]


def _sizes(n: Node) -> Optional[Tuple[Any, Any]]:
    """The sizes of a node's input and of the node; None unless both are known as a list."""
    types = _input(n).type, n.type
    known = all(isinstance(t, TensorType) for t in types)
    return (types[0].__args__, types[1].__args__) if known else None


def _first_equal(n: Node, count: Optional[int]) -> List[Equality]:
    found = _sizes(n)
    return [] if found is None else [Equality(a, b) for a, b in zip(*found)][:count]


@register_refinement_rule(nn.Conv2d)
def conv_refinement_rule(n: Node) -> List[Equality]:
    """The first sizes of input and result are equal."""
    return _first_equal(n, 1)


@register_refinement_rule(nn.Linear)
def linear_refinement_rule(n: Node) -> List[Equality]:
    """The first sizes of input and result are equal."""
    return _first_equal(n, 1)


@register_refinement_rule(nn.BatchNorm2d)
@register_refinement_rule(nn.ReLU)
def all_eq(n: Node) -> List[Equality]:
    """All sizes of input and result are equal."""
    return _first_equal(n, None)


@register_refinement_rule(nn.AdaptiveAvgPool2d)
@register_refinement_rule(nn.MaxPool2d)
def first_two_eq(n: Node) -> List[Equality]:
    """The first two sizes of input and result are equal."""
    return _first_equal(n, 2)


@register_refinement_rule(_C.add)
@register_refinement_rule(operator.add)
def element_wise_eq(n: Node) -> List[Equality]:
    """Sizes that both operands have after broadcasting are those of the result."""
    types = [_type_of(_argument(n, i, name)) for i, name in enumerate(("input", "other"))]
    if not all(isinstance(t, TensorType) for t in (*types, n.type)):
        return []
    first, second = broadcast_types(*types)
    places = zip(first.__args__, second.__args__, n.type.__args__)
    return [Equality(a, result) for a, b, result in places if a == b]


@register_refinement_rule(_C.flatten)
def flatten_refinement_rule(n: Node) -> List[Equality]:
    """Sizes outside of the range that is joined stay."""
    found = _sizes(n)
    if found is None:
        return []
    before, after = found
    start, end = flat_range(_input(n).type, *_flat_dims(n))
    left = len(before) - end
    pairs = [*zip(after[:start], before), *zip(after[len(after) - left :], before[end:])]
    return [Equality(a, b) for a, b in pairs]


@register_algebraic_expressions_inference_rule(nn.Conv2d)
def conv_rule(n: Node, module_instance: Any) -> Optional[TensorType]:
    """The sizes of a convolution in terms of those of its input; None where they are not known."""
    found = _sizes(n)
    if found is None:
        return None
    before, after = found
    ends = (calculate_out_dimension(d, module_instance, i) for i, d in enumerate(before[2:]))
    n.type = TensorType((*after[:2], *ends))
    return n.type


def _mapped(typ: Any, function: Callable[[Any], Any]) -> Any:
    """The type with the function of each of its parts that is no container."""
    if isinstance(typ, TensorType):
        return TensorType(tuple(_mapped(size, function) for size in typ.__args__))
    if isinstance(typ, (list, tuple)):
        return type(typ)(_mapped(part, function) for part in typ)
    return function(typ)


class Refine:
    """Gives sizes that are not known names, variables of unification, and finds equalities.

    `constraints` are these. treadle.fx.experimental.unify_refinements solves them."""

    def __init__(self, traced: Any) -> None:
        self.constraints: List[Equality] = []
        self.traced = traced
        self.symbol_iter = itertools.count(0, 1)

    def refine(self) -> bool:
        """Go through the graph, whose nodes have types, and return True."""
        for node in self.traced.graph.nodes:
            self.refine_node(node)
        return True

    def symbolic_relations(self) -> bool:
        """Let sizes be symbols of sympy, and those of convolutions expressions of them, and return
        True. ImportError without the package sympy."""
        for node in self.traced.graph.nodes:
            self.infer_symbolic_relations(node)
        return True

    def replace_dyn_with_fresh_var(self, typ: Any) -> Any:
        """The type with a new variable for each Dyn."""
        return _mapped(typ, lambda t: Var(next(self.symbol_iter)) if t == Dyn else t)

    def convert_to_sympy_symbols(self, typ: Any) -> Any:
        """The type with a symbol of sympy for each variable."""

        def symbol(part: Any) -> Any:
            if not isinstance(part, Var):
                return part
            import sympy  # only who asks for symbols needs it

            return sympy.symbols(str(part))

        return _mapped(typ, symbol)

    def _target(self, n: Node) -> Any:
        if n.op == "call_module":
            return type(self.traced.get_submodule(str(n.target)))
        return n.target if n.op == "call_function" else None

    def refine_node(self, n: Node) -> Any:
        """Give the sizes of a node names, and take its equalities in."""
        n.type = self.replace_dyn_with_fresh_var(Dyn if n.type is None else n.type)
        rule = _REFINEMENT_RULES.get(self._target(n))
        if rule is not None:
            self.constraints += rule(n)
        if n.op == "output":
            n.type = map_arg(n.args[0], _type_of)
        return n.type

    def infer_symbolic_relations(self, n: Node) -> Any:
        """Let the sizes of a node be symbols, or expressions of those of its input."""
        n.type = self.convert_to_sympy_symbols(n.type)
        rule = _RULES.get(self._target(n))
        if rule is not None:
            is_layer = n.op == "call_module"
            return rule(n, self.traced.get_submodule(str(n.target))) if is_layer else rule(n)
        if n.op == "output":
            n.type = map_arg(n.args[0], _type_of)
        return n.type
