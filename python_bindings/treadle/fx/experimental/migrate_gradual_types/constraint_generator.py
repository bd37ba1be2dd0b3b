"""ConstraintGenerator: what has to be true of the sizes in a graph for it to run.

    generator = ConstraintGenerator(traced)
    constraint, counter = generator.generate_constraints()
    generator.symbol_dict[node]     # the variable of a node

Rules are called with the node, the layer if it calls one, the variables of nodes, the constraints
so far, and the last number of a variable; they return constraints, and that number afterwards.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import operator
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, TypeVar

from treadle import _C, nn
from treadle.functional import _assert
from treadle.fx.experimental.migrate_gradual_types.constraint import (
    ApplyBroadcasting,
    BinConstraintD,
    BinConstraintT,
    CalcConv,
    CalcMaxPool,
    CalcProduct,
    CanReshape,
    Conj,
    Constraint,
    DGreatestUpperBound,
    Disj,
    DVar,
    F,
    GetItem,
    GetItemTensor,
    IndexSelect,
    T,
    TGreatestUpperBound,
    Transpose,
    TVar,
)
from treadle.fx.experimental.migrate_gradual_types.constraint_transformation import (
    MAX_TENSOR_RANK,
    _has_type,
    _is,
    _is_not,
)
from treadle.fx.experimental.migrate_gradual_types.operation import (
    op_consistency,
    op_div,
    op_eq,
    op_gt,
    op_leq,
    op_lt,
    op_matching,
    op_neq,
    op_precision,
    op_sub,
)
from treadle.fx.experimental.migrate_gradual_types.util import (
    gen_bvar,
    gen_dvar,
    gen_nat_constraints,
    gen_tensor_dims,
    gen_tvar,
)
from treadle.fx.node import Node
from treadle.fx.tensor_type import Dyn, TensorType

_Rule = TypeVar("_Rule", bound=Callable[..., Any])
_Made = Tuple[List[Any], int]
_Symbols = Dict[Any, Any]

_INFERENCE_RULES: Dict[Any, Callable[..., Any]] = {}


def register_inference_rule(call_target: Any) -> Callable[[_Rule], _Rule]:
    """A decorator: the rule gives the constraints of calls of a function, of a method by its name,
    or of layers of a class. RuntimeError for a second rule."""

    def decorate(rule: _Rule) -> _Rule:
        if call_target in _INFERENCE_RULES:
            raise RuntimeError(f"{call_target}: expected no inference rule, got another")
        _INFERENCE_RULES[call_target] = rule
        return rule

    return decorate


def _argument(n: Node, index: int, name: str, default: Any = None) -> Any:
    return n.args[index] if len(n.args) > index else n.kwargs.get(name, default)


def _input(n: Node, symbols: _Symbols) -> Any:
    return symbols[_argument(n, 0, "input")]


def _output(n: Node, symbols: _Symbols, counter: int) -> Tuple[TVar, int]:
    symbols[n], counter = gen_tvar(counter)
    return symbols[n], counter


def _both_dyn(one: TVar, other: TVar) -> Conj:
    return Conj([_has_type(one, Dyn), _has_type(other, Dyn)])


def _by_rank(
    given: TVar, made: TVar, counter: int, statement: Callable[[List[DVar]], Sequence[Any]],
    last: int = MAX_TENSOR_RANK,
) -> Tuple[Disj, int]:  # fmt: skip
    """For each rank, the type of the input and the statement of its sizes."""
    choices = []
    for rank in range(1, last + 1):
        dims, counter = gen_tensor_dims(rank, counter)
        nat = gen_nat_constraints(dims)
        choices.append(Conj([_has_type(given, dims), *statement(dims), *nat]))
    return Disj([_both_dyn(given, made), Disj(choices)]), counter


# ---- what keeps the type of its input ----


@register_inference_rule(nn.functional.gelu)
@register_inference_rule(nn.functional.dropout)
@register_inference_rule(nn.functional.softmax)
@register_inference_rule("detach")
@register_inference_rule("to")
@register_inference_rule("int")
@register_inference_rule("long")
@register_inference_rule("contiguous")
@register_inference_rule(_C.ones)
@register_inference_rule(_C.zeros)
def equality_inference_rule(
    n: Node, symbols: _Symbols, constraints: List[Constraint], counter: int
) -> _Made:
    """The type of the input; that of the sizes which are given where there is no input."""
    given = n.args[0]
    if isinstance(given, Node) and isinstance(symbols[given], TVar):
        output, counter = _output(n, symbols, counter)
        return [BinConstraintT(symbols[given], output, op_eq)], counter
    sizes = list(given) if isinstance(given, (tuple, list)) else list(n.args)
    return _of_sizes(n, sizes, symbols, counter)


def _of_sizes(n: Node, sizes: Sequence[Any], symbols: _Symbols, counter: int) -> _Made:
    output, counter = _output(n, symbols, counter)
    return [_has_type(output, [symbols.get(size, size) for size in sizes])], counter


@register_inference_rule(nn.Dropout)
@register_inference_rule(nn.ReLU)
def relu_inference_rule(
    n: Node, module_instance: Any, symbols: _Symbols, constraints: List[Constraint], counter: int
) -> _Made:
    """The type of the input."""
    output, counter = _output(n, symbols, counter)
    return [BinConstraintT(_input(n, symbols), output, op_eq)], counter


@register_inference_rule(getattr)
def get_attr_inference_rule(
    n: Node, symbols: _Symbols, constraints: List[Constraint], counter: int
) -> _Made:
    """The type of the input, of which `shape` and `device` are. NotImplementedError for another
    attribute."""
    if n.args[1] not in ("shape", "device"):
        raise NotImplementedError(f"{n.name}: expected shape or device, got {n.args[1]}")
    output, counter = _output(n, symbols, counter)
    return [BinConstraintT(_input(n, symbols), output, op_eq)], counter


@register_inference_rule("type_as")
def type_inference_rule(
    n: Node, symbols: _Symbols, constraints: List[Constraint], counter: int
) -> _Made:
    """The type of the other tensor, which is consistent with that of the input."""
    output, counter = _output(n, symbols, counter)
    given, other = _input(n, symbols), symbols[n.args[1]]
    consistent = BinConstraintT(given, other, op_consistency)
    return [consistent, BinConstraintT(output, other, op_eq)], counter


@register_inference_rule(_assert)
def assert_inference_rule(
    n: Node, symbols: _Symbols, constraints: List[Constraint], counter: int
) -> _Made:
    """Nothing."""
    return [], counter


@register_inference_rule(_C.tensor)
def tensor_inference_rule(
    n: Node, symbols: _Symbols, constraints: List[Constraint], counter: int
) -> _Made:
    """Nothing: what a tensor is made of is not known."""
    _, counter = _output(n, symbols, counter)
    return [], counter


# ---- broadcasting and comparisons ----


def gen_broadcasting_constraints(
    e1: TVar, e2: TVar, symbols: _Symbols, counter: int, output_var: TVar
) -> _Made:
    """That the output is the bound of both types after broadcasting."""
    one, counter = gen_tvar(counter)
    other, counter = gen_tvar(counter)
    bound = TGreatestUpperBound(output_var, one, other)
    applied = ApplyBroadcasting(one, other, e1, e2)
    return [bound, applied, BinConstraintT(one, other, op_consistency)], counter


def _operands(n: Node) -> Tuple[Any, Any]:
    return _argument(n, 0, "input"), _argument(n, 1, "other")


@register_inference_rule(operator.mul)
@register_inference_rule(_C.ne)
@register_inference_rule("ne")
@register_inference_rule(_C.add)
@register_inference_rule(operator.add)
def broadcasting_inference_rule(
    n: Node, symbols: _Symbols, constraints: List[Constraint], counter: int
) -> _Made:
    """The bound of both types after broadcasting; beside a number, the type of the tensor; for
    sizes their sum or product."""
    first, second = _operands(n)
    signs = {operator.add: "+", _C.add: "+", operator.mul: "*"}
    known = [symbols[v] if isinstance(v, Node) else v for v in (first, second)]
    tensors = [v for v in known if isinstance(v, TVar)]
    if not tensors:
        made, counter = gen_dvar(counter)
        symbols[n] = made
        total = BinConstraintD(known[0], known[1], signs[n.target])
        return [_is(made, total), BinConstraintD(0, made, op_leq)], counter
    output, counter = _output(n, symbols, counter)
    if len(tensors) == 1:
        return [BinConstraintT(output, tensors[0], op_eq)], counter
    return gen_broadcasting_constraints(known[0], known[1], symbols, counter, output)


@register_inference_rule("masked_fill_")
def masked_fill_inference_rule(
    n: Node, symbols: _Symbols, constraints: List[Constraint], counter: int
) -> _Made:
    """The bound of the types of the input and the mask after broadcasting."""
    output, counter = _output(n, symbols, counter)
    given, mask = _input(n, symbols), symbols[n.args[1]]
    return gen_broadcasting_constraints(given, mask, symbols, counter, output)


def _comparison(n: Node, symbols: _Symbols, counter: int, sign: str) -> _Made:
    known = [symbols[v] if isinstance(v, Node) else v for v in _operands(n)]
    if any(isinstance(v, TVar) for v in known):
        return broadcasting_inference_rule(n, symbols, [], counter)
    truth, counter = gen_bvar(counter)
    return [_is(truth, BinConstraintD(known[0], known[1], sign))], counter


@register_inference_rule(operator.gt)
def gt_inference_rule(
    n: Node, symbols: _Symbols, constraints: List[Constraint], counter: int
) -> _Made:
    """That a truth value says whether a size is greater; of tensors, their type."""
    return _comparison(n, symbols, counter, op_gt)


@register_inference_rule(operator.lt)
def lt_inference_rule(
    n: Node, symbols: _Symbols, constraints: List[Constraint], counter: int
) -> _Made:
    """That a truth value says whether a size is less; of tensors, their type."""
    return _comparison(n, symbols, counter, op_lt)


@register_inference_rule(operator.eq)
def eq_inference_rule(
    n: Node, symbols: _Symbols, constraints: List[Constraint], counter: int
) -> _Made:
    """That a truth value says whether sizes are equal; of tensors, their type."""
    return _comparison(n, symbols, counter, op_eq)


@register_inference_rule(operator.ne)
def neq_inference_rule(
    n: Node, symbols: _Symbols, constraints: List[Constraint], counter: int
) -> _Made:
    """That a truth value says whether sizes differ; of tensors, their type."""
    return _comparison(n, symbols, counter, op_neq)


# ---- sizes of a tensor ----


def _size_at(given: TVar, index: int, n: Node, symbols: _Symbols, counter: int) -> _Made:
    size, counter = gen_dvar(counter)
    symbols[n] = size
    choices = [GetItem(rank, index, size, given) for rank in range(1, MAX_TENSOR_RANK + 1)]
    unknown = Conj([_has_type(given, Dyn), _is(size, Dyn)])
    return [Disj([unknown, Conj([Disj(choices), BinConstraintD(0, size, op_leq)])])], counter


@register_inference_rule("size")
def size_inference_rule(
    n: Node, symbols: _Symbols, constraints: List[Constraint], counter: int
) -> _Made:
    """The size at an index, or the type of the input for all."""
    index = _argument(n, 1, "dim")
    if isinstance(index, int):
        return _size_at(_input(n, symbols), index, n, symbols, counter)
    output, counter = _output(n, symbols, counter)
    return [BinConstraintT(_input(n, symbols), output, op_eq)], counter


@register_inference_rule(operator.getitem)
def getitem_inference_rule(
    n: Node, symbols: _Symbols, constraints: List[Constraint], counter: int
) -> _Made:
    """The size at an index, or the type of a tensor indexed by None and slices. RuntimeError for
    another index."""
    given, index = _input(n, symbols), n.args[1]
    if isinstance(index, int):
        return _size_at(given, index, n, symbols, counter)
    if not isinstance(index, tuple):
        raise RuntimeError(f"{n.name}: expected a number or a tuple as index, got {index}")
    output, counter = _output(n, symbols, counter)
    choices = [GetItemTensor(r, index, output, given) for r in range(1, MAX_TENSOR_RANK + 1)]
    return [Disj([_both_dyn(given, output), *choices])], counter


@register_inference_rule("dim")
def torch_dim_inference_rule(
    n: Node, symbols: _Symbols, constraints: List[Constraint], counter: int
) -> _Made:
    """The rank."""
    rank_of, counter = gen_dvar(counter)
    symbols[n], given = rank_of, _input(n, symbols)
    choices = []
    for rank in range(1, MAX_TENSOR_RANK + 1):
        dims, counter = gen_tensor_dims(rank, counter)
        choices.append(Conj([_has_type(given, dims), _is(rank_of, rank)]))
    unknown = Conj([_has_type(given, Dyn), _is(rank_of, Dyn)])
    return [Disj([unknown, Disj(choices)])], counter


# ---- tensors of other sizes ----


@register_inference_rule(_C.full)
def full_inference_rule(
    n: Node, symbols: _Symbols, constraints: List[Constraint], counter: int
) -> _Made:
    """The sizes that are given."""
    return _of_sizes(n, _argument(n, 0, "size"), symbols, counter)


@register_inference_rule(_C.arange)
def arange_inference_rule(
    n: Node, symbols: _Symbols, constraints: List[Constraint], counter: int
) -> _Made:
    """One size: the steps from the start to the end."""
    given = [symbols.get(v, v) for v in n.args]
    start, end, step = [0, *given, 1] if len(given) == 1 else [*given, 1][:3]
    size, counter = gen_dvar(counter)
    output, counter = _output(n, symbols, counter)
    parts = (end, start, step)
    unknown = Conj([Disj([_is(v, Dyn) for v in parts]), _is(size, Dyn)])
    count = BinConstraintD(BinConstraintD(end, start, op_sub), step, op_div)
    known = Conj([Conj([_is_not(v, Dyn) for v in parts]), _is_not(size, Dyn), _is(size, count)])
    return [_has_type(output, [size]), Disj([unknown, known])], counter


@register_inference_rule(_C.reshape)
def reshape_inference_rule(
    n: Node, symbols: _Symbols, constraints: List[Constraint], counter: int
) -> _Made:
    """The sizes that are asked for, Dyn for -1, which hold as much as the input."""
    output, counter = _output(n, symbols, counter)
    sizes = [Dyn if d == -1 else symbols.get(d, d) for d in _argument(n, 1, "shape")]
    return [_has_type(output, sizes), CanReshape(_input(n, symbols), TensorType(sizes))], counter


@register_inference_rule("reshape")
@register_inference_rule("view")
def view_inference_rule(
    n: Node, symbols: _Symbols, constraints: List[Constraint], counter: int
) -> _Made:
    """The sizes that are asked for, a new one for -1, which hold as much as the input."""
    output, counter = _output(n, symbols, counter)
    wanted = n.args[1:]
    sizes: List[Any] = []
    for size in wanted[0] if len(wanted) == 1 and isinstance(wanted[0], (tuple, list)) else wanted:
        if size == -1:
            made, counter = gen_dvar(counter)
            sizes.append(made)
        else:
            sizes.append(symbols.get(size, size))
    known = [_is_not(size, Dyn) for size in sizes]
    can = CanReshape(_input(n, symbols), TensorType(sizes))
    return [_has_type(output, sizes), can, *known], counter


@register_inference_rule("expand")
def expand_inference_rule(
    n: Node, symbols: _Symbols, constraints: List[Constraint], counter: int
) -> _Made:
    """The bound of the input and the sizes that are asked for, after broadcasting."""
    output, counter = _output(n, symbols, counter)
    wanted, counter = gen_tvar(counter)
    sizes = [symbols.get(size, size) for size in n.args[1:]]
    nat = [BinConstraintD(0, size, op_leq) for size in sizes if isinstance(size, DVar)]
    bound, counter = gen_broadcasting_constraints(
        _input(n, symbols), wanted, symbols, counter, output
    )
    dims, counter = gen_tensor_dims(len(sizes), counter)
    made = [_has_type(output, dims), *gen_nat_constraints(dims)]
    return [*bound, *made, _has_type(wanted, sizes), *nat], counter


@register_inference_rule("transpose")
def transpose_inference_rule(
    n: Node, symbols: _Symbols, constraints: List[Constraint], counter: int
) -> _Made:
    """The type with two sizes exchanged, for each rank."""
    output, counter = _output(n, symbols, counter)
    given, first, second = _input(n, symbols), n.args[1], n.args[2]
    ranks = range(1, MAX_TENSOR_RANK + 1)
    choices = [Transpose(rank, given, first, second, output) for rank in ranks]
    return [Disj([_both_dyn(given, output), Disj(choices)])], counter


@register_inference_rule("index_select")
def index_select_inference_rule(
    n: Node, symbols: _Symbols, constraints: List[Constraint], counter: int
) -> _Made:
    """The type with the size of the index, which has one, at a place."""
    output, counter = _output(n, symbols, counter)
    size, counter = gen_dvar(counter)
    given, place, index = _input(n, symbols), n.args[1], symbols[n.args[2]]
    ranks = range(1, MAX_TENSOR_RANK + 1)

    def chosen(by: Any) -> Disj:
        return Disj([IndexSelect(rank, given, by, place, output) for rank in ranks])

    known = Conj([_has_type(index, [size]), chosen(size)])
    return [Disj([known, Conj([_has_type(index, Dyn), chosen(Dyn)])])], counter


def range_check(i: int, n: int) -> Constraint:
    """T if a type of `n` sizes has one at index `i`, else F."""
    return T() if -n <= i < n else F()


@register_inference_rule(_C.cumsum)
def cumsum_inference_rule(
    n: Node, symbols: _Symbols, constraints: List[Constraint], counter: int
) -> _Made:
    """The type of the input, which has the size that is summed over."""
    output, counter = _output(n, symbols, counter)
    index = _argument(n, 1, "dim")

    def same(dims: List[DVar]) -> List[Any]:
        return [_has_type(output, dims), range_check(index, len(dims))]

    found, counter = _by_rank(_input(n, symbols), output, counter, same)
    return [found], counter


def generate_flatten_constraints(
    start_dim: int, end_dim: int, input: TVar, flattened: TVar, n: int, counter: int
) -> Tuple[Conj, int]:
    """For rank `n`, that the sizes from one to another are joined; -1 is the last."""
    dims, counter = gen_tensor_dims(n, counter)
    start, end = (d + n if d < 0 else d for d in (start_dim, end_dim))
    end += 1
    joined = CalcProduct(start, end, flattened, dims)
    return Conj([_has_type(input, dims), joined, *gen_nat_constraints(dims)]), counter


@register_inference_rule(_C.flatten)
def flatten_inference_rule(
    n: Node, symbols: _Symbols, constraints: List[Constraint], counter: int
) -> _Made:
    """The type with a range of sizes joined, for each rank."""
    output, counter = _output(n, symbols, counter)
    given = _input(n, symbols)
    start, end = _argument(n, 1, "start_dim", 0), _argument(n, 2, "end_dim", -1)
    choices: List[Constraint] = [_both_dyn(given, output)]
    for rank in range(1, MAX_TENSOR_RANK + 1):
        one, counter = generate_flatten_constraints(start, end, given, output, rank, counter)
        choices.append(one)
    return [Disj(choices)], counter


@register_inference_rule(_C.bmm)
def bmm_inference_rule(
    n: Node, symbols: _Symbols, constraints: List[Constraint], counter: int
) -> _Made:
    """Three sizes: the batch of both, the rows of the first and the columns of the second."""
    output, counter = _output(n, symbols, counter)
    first, second = symbols[n.args[0]], symbols[n.args[1]]
    one, counter = gen_tensor_dims(3, counter)
    other, counter = gen_tensor_dims(3, counter)
    batch, counter = gen_dvar(counter)
    is_first, is_second = _has_type(first, one), _has_type(second, other)
    all_unknown = Conj([_has_type(v, Dyn) for v in (first, second, output)])
    by_second = _has_type(output, [other[0], Dyn, other[2]])
    by_first = _has_type(output, [one[0], one[1], Dyn])
    known = [
        is_first,
        is_second,
        _has_type(output, [batch, one[1], other[2]]),
        BinConstraintD(one[0], other[0], op_consistency),
        DGreatestUpperBound(batch, one[0], other[0]),
    ]
    choices = [
        all_unknown,
        Conj([_has_type(first, Dyn), is_second, by_second]),
        Conj([_has_type(second, Dyn), is_first, by_first]),
        Conj(known),
    ]
    return [Disj(choices)], counter


# ---- layers ----


def gen_embedding_rules(n: Node, symbols: _Symbols, embedding_dim: Any, counter: int) -> _Made:
    """The sizes of the input and behind them that of an embedding."""
    output, counter = _output(n, symbols, counter)

    def longer(dims: List[DVar]) -> List[Any]:
        return [_has_type(output, [*dims, embedding_dim])]

    given = _input(n, symbols)
    found, counter = _by_rank(given, output, counter, longer, MAX_TENSOR_RANK - 1)
    return [found], counter


@register_inference_rule(nn.Embedding)
def embedding_inference_rule(
    n: Node, module_instance: Any, symbols: _Symbols, constraints: List[Constraint], counter: int
) -> _Made:
    """The sizes of the input and behind them that of an embedding."""
    return gen_embedding_rules(n, symbols, module_instance.embedding_dim, counter)


@register_inference_rule(nn.functional.embedding)
def embedding_inference_rule_functional(
    n: Node, symbols: _Symbols, constraints: List[Constraint], counter: int
) -> _Made:
    """The same, by the weight, which has two sizes."""
    dims, counter = gen_tensor_dims(2, counter)
    is_weight = _has_type(symbols[_argument(n, 1, "weight")], dims)
    found, counter = gen_embedding_rules(n, symbols, dims[1], counter)
    return [is_weight, *found], counter


def add_layer_norm_constraints(
    input_dim: Sequence[DVar], normalized_dim: Sequence[Any]
) -> List[Constraint]:
    """That the last sizes are consistent with those of a normalisation; F for a lower rank."""
    if len(normalized_dim) > len(input_dim):
        return [F()]
    pairs = zip(reversed(input_dim), reversed(normalized_dim))
    return [BinConstraintD(a, b, op_consistency) for a, b in pairs]


def gen_layer_norm_constraints(
    n: Node, normalized_shape: Any, symbols: _Symbols, counter: int
) -> _Made:
    """The type of the input, whose last sizes are those of a normalisation."""
    output, counter = _output(n, symbols, counter)

    def same(dims: List[DVar]) -> List[Any]:
        return [_has_type(output, dims), *add_layer_norm_constraints(dims, list(normalized_shape))]

    found, counter = _by_rank(_input(n, symbols), output, counter, same)
    return [found], counter


@register_inference_rule(nn.LayerNorm)
def layer_norm_inference_rule(
    n: Node, module_instance: Any, symbols: _Symbols, constraints: List[Constraint], counter: int
) -> _Made:
    """The type of the input, whose last sizes are those of the layer."""
    return gen_layer_norm_constraints(n, module_instance.normalized_shape, symbols, counter)


@register_inference_rule(nn.functional.layer_norm)
def layer_norm_functional(
    n: Node, symbols: _Symbols, constraints: List[Constraint], counter: int
) -> _Made:
    """The type of the input, whose last sizes are those that are given."""
    return gen_layer_norm_constraints(n, _argument(n, 1, "normalized_shape"), symbols, counter)


def add_linear_constraints(
    dims1: Sequence[DVar], dims2: Sequence[DVar], in_features: Any, out_features: Any
) -> List[Constraint]:
    """That the last sizes are the features, and the others are equal."""
    others: List[Constraint] = [_is(a, b) for a, b in zip(dims1[:-1], dims2)]
    last = BinConstraintD(dims1[-1], in_features, op_consistency)
    return [*others, last, _is(dims2[-1], out_features)]


def linear_constraints(
    n: Node, in_features: Any, out_features: Any, symbols: _Symbols, counter: int
) -> _Made:
    """The type of the input with other features as last size, for each rank."""
    output, counter = _output(n, symbols, counter)
    given = _input(n, symbols)
    choices = []
    for rank in range(1, MAX_TENSOR_RANK + 1):
        before, counter = gen_tensor_dims(rank, counter)
        after, counter = gen_tensor_dims(rank, counter)
        about = add_linear_constraints(before, after, in_features, out_features)
        nat = gen_nat_constraints([*before, *after])
        choices.append(Conj([_has_type(given, before), _has_type(output, after), *about, *nat]))
    return [Disj([_both_dyn(given, output), Disj(choices)])], counter


@register_inference_rule(nn.Linear)
def linear_inference_rule(
    n: Node, module_instance: Any, symbols: _Symbols, constraints: List[Constraint], counter: int
) -> _Made:
    """The type of the input with the layer's features as last size."""
    features = module_instance.in_features, module_instance.out_features
    return linear_constraints(n, *features, symbols, counter)


@register_inference_rule(nn.functional.linear)
def torch_linear_inference_rule(
    n: Node, symbols: _Symbols, constraints: List[Constraint], counter: int
) -> _Made:
    """The same, by the weight, which has two sizes."""
    dims, counter = gen_tensor_dims(2, counter)
    is_weight = _has_type(symbols[_argument(n, 1, "weight")], dims)
    found, counter = linear_constraints(n, dims[1], dims[0], symbols, counter)
    return [is_weight, *found], counter


def _four_sizes(
    n: Node, symbols: _Symbols, counter: int
) -> Tuple[TVar, List[DVar], BinConstraintT, List[Any], int]:
    output, counter = _output(n, symbols, counter)
    dims, counter = gen_tensor_dims(4, counter)
    matches = BinConstraintT(_input(n, symbols), TensorType(dims), op_matching)
    return output, dims, matches, gen_nat_constraints(dims), counter


@register_inference_rule(nn.BatchNorm2d)
def batchnorm_inference_rule(
    n: Node, module_instance: Any, symbols: _Symbols, constraints: List[Constraint], counter: int
) -> _Made:
    """The type of the input, of four sizes."""
    output, _, matches, nat, counter = _four_sizes(n, symbols, counter)
    return [matches, BinConstraintT(_input(n, symbols), output, op_eq), *nat], counter


@register_inference_rule(nn.AdaptiveAvgPool2d)
def adaptive_inference_rule(
    n: Node, module_instance: Any, symbols: _Symbols, constraints: List[Constraint], counter: int
) -> _Made:
    """Four sizes, of which the last two are the layer's."""
    output, dims, matches, nat, counter = _four_sizes(n, symbols, counter)
    wanted = module_instance.output_size
    ends = wanted if isinstance(wanted, (tuple, list)) else (wanted, wanted)
    sizes = [d if size is None else size for d, size in zip(dims[2:], ends)]
    return [matches, _has_type(output, [*dims[:2], *sizes]), *nat], counter


@register_inference_rule(nn.Conv2d)
def conv2d_inference_rule(
    n: Node, module_instance: Any, symbols: _Symbols, constraints: List[Constraint], counter: int
) -> _Made:
    """Four sizes, whose channels fit, and those of a convolution of them."""
    output, dims, matches, nat, counter = _four_sizes(n, symbols, counter)
    layer = module_instance
    channels = BinConstraintD(layer.in_channels, dims[1], op_consistency)
    made = CalcConv(
        output,
        _input(n, symbols),
        layer.out_channels,
        layer.kernel_size,
        layer.padding,
        layer.stride,
        layer.dilation,
        dims,
    )
    return [matches, channels, made, *nat], counter


@register_inference_rule(nn.MaxPool2d)
def maxpool_inference_rule(
    n: Node, module_instance: Any, symbols: _Symbols, constraints: List[Constraint], counter: int
) -> _Made:
    """Four sizes, and those of a pool of them."""
    output, dims, matches, nat, counter = _four_sizes(n, symbols, counter)
    layer = module_instance
    settings = (layer.kernel_size, layer.padding, layer.stride, layer.dilation)
    made = CalcMaxPool(output, _input(n, symbols), *settings, dims)
    return [matches, made, *nat], counter


class ConstraintGenerator:
    """Makes the constraints of a traced module, or of the graph that is given for it."""

    def __init__(self, traced: Any, graph: Optional[Any] = None) -> None:
        self.traced = traced
        self.traced_params = dict(traced.named_parameters())
        self.constraints: List[Any] = []
        self.symbol_dict: _Symbols = {}
        self.graph = traced.graph if graph is None else graph

    def generate_constraints(self, counter: int = 0) -> Tuple[Conj, int]:
        """All constraints as one, and the last number of a variable. RuntimeError for a call that
        has no rule."""
        self.constraints = []
        for n in self.graph.nodes:
            found, counter = self.generate_constraints_node(n, counter)
            self.constraints += found
        return Conj(self.constraints), counter

    def generate_constraints_node(self, n: Node, counter: int) -> _Made:
        """The constraints of a node."""
        symbols, before = self.symbol_dict, self.constraints
        if n.op == "placeholder":
            variable, counter = _output(n, symbols, counter)
            kind = Dyn if n.type is None or isinstance(n.type, type) else n.type
            precise = BinConstraintT(kind, variable, op_precision)
            return [precise, BinConstraintT(variable, MAX_TENSOR_RANK, op_leq)], counter
        if n.op == "get_attr":
            variable, counter = _output(n, symbols, counter)
            value = operator.attrgetter(str(n.target))(self.traced)
            return [_has_type(variable, list(value.shape))], counter
        if n.op == "output":
            return [], counter
        if n.op == "call_module":
            layer = self.traced.get_submodule(str(n.target))
            return self._rule(n, type(layer))(n, layer, symbols, before, counter)
        return self._rule(n, n.target)(n, symbols, before, counter)

    @staticmethod
    def _rule(n: Node, target: Any) -> Callable[..., _Made]:
        if target not in _INFERENCE_RULES:
            text = f"expected a call that has an inference rule, got {target}"
            raise RuntimeError(f"{n.name}: {text}")
        return _INFERENCE_RULES[target]
