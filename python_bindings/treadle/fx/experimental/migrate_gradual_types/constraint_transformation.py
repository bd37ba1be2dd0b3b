"""Constraints in terms of simpler ones, until only equalities and arithmetic of sizes are left.

    transform_constraint(DGreatestUpperBound(d1, d2, d3), counter)     # (constraint, counter)

Types have 1 to 4 sizes. `counter` is the last number of a variable that is in use, before and
after.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import itertools
from typing import Any, Callable, Dict, List, Sequence, Tuple, TypeVar

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
    Prod,
    T,
    TGreatestUpperBound,
    Transpose,
    TVar,
)
from treadle.fx.experimental.migrate_gradual_types.operation import (
    op_add,
    op_consistency,
    op_div,
    op_eq,
    op_leq,
    op_matching,
    op_mod,
    op_mul,
    op_neq,
    op_precision,
    op_sub,
)
from treadle.fx.experimental.migrate_gradual_types.util import (
    gen_dvar,
    gen_nat_constraints,
    gen_tensor_dims,
)
from treadle.fx.tensor_type import Dyn, TensorType

MAX_TENSOR_RANK = 4

_Rule = TypeVar("_Rule", bound=Callable[..., Any])
_Made = Tuple[Constraint, int]

_TRANSFORMATION_RULES: Dict[Any, Callable[..., Any]] = {}


def register_transformation_rule(call_target: Any) -> Callable[[_Rule], _Rule]:
    """A decorator: the rule transforms constraints of a class. RuntimeError for a second rule."""

    def decorate(rule: _Rule) -> _Rule:
        if call_target in _TRANSFORMATION_RULES:
            raise RuntimeError(f"{call_target}: expected no transformation rule, got another")
        _TRANSFORMATION_RULES[call_target] = rule
        return rule

    return decorate


def transform_constraint(constraint: Any, counter: int) -> Any:
    """The constraint one step simpler, itself where there is no rule for it; and the counter."""
    rule = _TRANSFORMATION_RULES.get(type(constraint))
    return (constraint, counter) if rule is None else rule(constraint, counter)


def _is(a: Any, b: Any) -> BinConstraintD:
    return BinConstraintD(a, b, op_eq)


def _is_not(a: Any, b: Any) -> BinConstraintD:
    return BinConstraintD(a, b, op_neq)


def _has_type(variable: Any, dims: Any) -> BinConstraintT:
    """That a type is Dyn, or has these sizes."""
    kind = TensorType(dims) if isinstance(dims, (list, tuple)) else dims
    return BinConstraintT(variable, kind, op_eq)


# ---- sizes of one tensor from those of another ----


def valid_index(index: int, dims: Sequence[DVar]) -> Constraint:
    """T if there is such a size, else F."""
    return T() if -len(dims) <= index < len(dims) else F()


def valid_index_tensor(index: Sequence[Any], dims: Sequence[DVar]) -> Constraint:
    """T if an index of None and slices has no more slices than there are sizes, else F."""
    return F() if sum(isinstance(part, slice) for part in index) > len(dims) else T()


@register_transformation_rule(Transpose)
def transform_transpose(constraint: Transpose, counter: int) -> _Made:
    """Both types by their sizes."""
    dims, counter = gen_tensor_dims(constraint.tensor_size, counter)
    first, second = constraint.index1, constraint.index2
    valid = [valid_index(first, dims), valid_index(second, dims)]
    after = list(dims)
    if all(check == T() for check in valid):
        after[first], after[second] = dims[second], dims[first]
    nat = gen_nat_constraints(dims)
    before = _has_type(constraint.input_var, dims)
    return Conj([before, *nat, *valid, _has_type(constraint.output, after)]), counter


@register_transformation_rule(IndexSelect)
def transform_index_select(constraint: IndexSelect, counter: int) -> _Made:
    """Both types by their sizes."""
    dims, counter = gen_tensor_dims(constraint.tensor_size, counter)
    valid = valid_index(constraint.index, dims)
    after: List[Any] = list(dims)
    if valid == T():
        after[constraint.index] = constraint.dim_replace
    nat = gen_nat_constraints(dims)
    before = _has_type(constraint.input_var, dims)
    return Conj([before, *nat, valid, _has_type(constraint.output, after)]), counter


@register_transformation_rule(GetItem)
def transform_get_item(constraint: GetItem, counter: int) -> _Made:
    """The type by its sizes, of which one is the result."""
    dims, counter = gen_tensor_dims(constraint.tensor_size, counter)
    valid = valid_index(constraint.index, dims)
    known = [_has_type(constraint.input_var, dims), *gen_nat_constraints(dims), valid]
    if valid == T():
        known.append(_is(constraint.res, dims[constraint.index]))
    return Conj(known), counter


@register_transformation_rule(GetItemTensor)
def transform_get_item_tensor(constraint: GetItemTensor, counter: int) -> _Made:
    """Both types by their sizes. NotImplementedError for an index of other than None and whole
    slices."""
    index = constraint.index_tuple
    if not all(part is None or part == slice(None) for part in index):
        text = f"expected an index of None and whole slices, got {index}"
        raise NotImplementedError(f"getitem: {text}")
    dims, counter = gen_tensor_dims(constraint.tensor_size, counter)
    left = iter(dims)
    after = [part for part in (1 if i is None else next(left, None) for i in index) if part]
    after += left
    known = [_has_type(constraint.input_var, dims), _has_type(constraint.res, after)]
    return Conj([*known, *gen_nat_constraints(dims), valid_index_tensor(index, dims)]), counter


# ---- relations of types and of sizes ----


@register_transformation_rule(BinConstraintT)
def generate_binconstraint_t(constraint: BinConstraintT, counter: int) -> _Made:
    """Precision, matching, consistency and rank of types in terms of sizes."""
    lhs, rhs = constraint.lhs, constraint.rhs
    if constraint.op == op_precision:
        if not isinstance(lhs, TensorType):
            return T(), counter
        dims, counter = gen_tensor_dims(len(lhs.__args__), counter)
        known = [BinConstraintD(a, d, op_precision) for a, d in zip(lhs.__args__, dims)]
        positive = [BinConstraintD(1, d, op_leq) for d in dims]
        return Conj([*known, _has_type(rhs, dims), *positive]), counter
    if constraint.op == op_matching:
        sizes = list(rhs.__args__)
        unknown = Conj([_has_type(lhs, Dyn), *(_is(d, Dyn) for d in sizes)])
        return Disj([unknown, _has_type(lhs, sizes)]), counter
    if constraint.op == op_consistency:
        unknown_one = Disj([_has_type(lhs, Dyn), _has_type(rhs, Dyn)])
        by_rank, counter = gen_consistency_constraints(constraint, counter)
        return Disj([unknown_one, *by_rank]), counter
    if constraint.op == op_leq:
        choices = [_has_type(lhs, Dyn)]
        for rank in range(1, rhs + 1):
            dims, counter = gen_tensor_dims(rank, counter)
            choices.append(_has_type(lhs, dims))
        return Disj(choices), counter
    return constraint, counter


@register_transformation_rule(BinConstraintD)
def generate_binconstraint_d(constraint: BinConstraintD, counter: int) -> _Made:
    """Precision and consistency of sizes as equalities."""
    lhs, rhs = constraint.lhs, constraint.rhs
    if constraint.op == op_precision:
        if isinstance(lhs, int):
            return _is(lhs, rhs), counter
        return (T() if lhs == Dyn else constraint), counter
    if constraint.op == op_consistency:
        return Disj([_is(lhs, rhs), _is(rhs, Dyn), _is(lhs, Dyn)]), counter
    return constraint, counter


def _each(constraints: Sequence[Any], counter: int) -> Tuple[List[Any], int]:
    made = []
    for part in constraints:
        part, counter = transform_constraint(part, counter)
        made.append(part)
    return made, counter


@register_transformation_rule(Conj)
def generate_conj(constraint: Conj, counter: int) -> _Made:
    """Each of them one step simpler."""
    made, counter = _each(constraint.conjucts, counter)
    return Conj(made), counter


@register_transformation_rule(Disj)
def generate_disj(constraint: Disj, counter: int) -> _Made:
    """Each of them one step simpler."""
    made, counter = _each(constraint.disjuncts, counter)
    return Disj(made), counter


@register_transformation_rule(TGreatestUpperBound)
def generate_gub(constraint: TGreatestUpperBound, counter: int) -> _Made:
    """Dyn where one type is Dyn, or the bounds of sizes for each rank."""
    unknown = Disj([_has_type(constraint.rhs1, Dyn), _has_type(constraint.rhs2, Dyn)])
    by_rank, counter = gen_greatest_upper_bound(constraint, counter)
    return Disj([Conj([unknown, _has_type(constraint.res, Dyn)]), *by_rank]), counter


@register_transformation_rule(DGreatestUpperBound)
def generate_d_gub(constraint: DGreatestUpperBound, counter: int) -> _Made:
    """The size that is known, or the one that both are."""
    one, other, result = constraint.rhs1, constraint.rhs2, constraint.res
    return (
        Disj(
            [
                Conj([_is(one, Dyn), _is(result, other)]),
                Conj([_is(other, Dyn), _is(result, one)]),
                Conj([_is(other, one), _is(result, one)]),
            ]
        ),
        counter,
    )


# ---- layers ----


@register_transformation_rule(CalcConv)
def generate_calc_conv(constraint: CalcConv, counter: int) -> _Made:
    """The type of a convolution by its sizes."""
    dims, counter = gen_tensor_dims(4, counter)
    channels = Conj([_is(dims[1], constraint.c_out), _is_not(dims[1], Dyn)])
    batch = _is(constraint.matching_constraint[0], dims[0])
    ends = calc_last_two_dims(constraint, dims)
    nat = Conj(gen_nat_constraints(dims))
    return Conj([_has_type(constraint.conv_result, dims), channels, batch, *ends, nat]), counter


@register_transformation_rule(CalcMaxPool)
def generate_calc_maxpool(constraint: CalcMaxPool, counter: int) -> _Made:
    """The type of a pool by its sizes."""
    dims, counter = gen_tensor_dims(4, counter)
    given = constraint.matching_constraint
    same = [_is(given[1], dims[1]), _is(given[0], dims[0])]
    ends = calc_last_two_dims(constraint, dims)
    nat = Conj(gen_nat_constraints(dims))
    return Conj([_has_type(constraint.maxpool_result, dims), *same, *ends, nat]), counter


def _pair(value: Any) -> Tuple[Any, Any]:
    return value if isinstance(value, tuple) else (value, value)


def calc_last_two_dims(constraint: Any, d: Sequence[DVar]) -> Tuple[Disj, Disj]:
    """Height and width of what a convolution or pool makes, which are `d[2]` and `d[3]`."""
    settings = (_pair(getattr(constraint, n)) for n in ("padding", "dilation", "kernel", "stride"))
    found = []
    places = zip(d[2:], constraint.matching_constraint[2:], *settings)
    for result, given, padding, dilation, kernel, stride in places:
        padded = BinConstraintD(given, BinConstraintD(2, padding, op_mul), op_add)
        reach = BinConstraintD(dilation, BinConstraintD(kernel, 1, op_sub), op_mul)
        room = BinConstraintD(BinConstraintD(padded, reach, op_sub), 1, op_sub)
        size = BinConstraintD(BinConstraintD(room, stride, op_div), 1, op_add)
        known = Conj([_is_not(result, Dyn), _is_not(given, Dyn)])
        unknown = Conj([_is(result, Dyn), _is(given, Dyn)])
        found.append(Disj([unknown, Conj([known, _is(result, size)])]))
    height, width = found
    return height, width


@register_transformation_rule(CalcProduct)
def generate_calc_product(constraint: CalcProduct, counter: int) -> _Made:
    """The joined size is Dyn where one of those is, else their product."""
    dims, start, end = constraint.dims_to_flatten, constraint.start, constraint.end
    before, joined, after = dims[:start], dims[start:end], dims[end:]
    valid = T() if 0 <= start < end <= len(dims) else F()
    product, counter = gen_dvar(counter)
    if valid == F():
        return Conj([Disj([F()]), valid]), counter
    choices = []
    for known in generate_all_int_dyn_dim_possibilities(joined):
        if any(one.op == op_eq for one in known):
            size, about = Dyn, []
        else:
            size = product  # type: ignore[assignment]
            about = [Conj([_is(product, Prod(joined)), _is_not(product, Dyn)])]
        kind = _has_type(constraint.flattened, [*before, size, *after])
        choices.append(Conj([kind, *about, *known]))
    return Conj([Disj(choices), valid]), counter


@register_transformation_rule(CanReshape)
def generate_reshape(constraint: CanReshape, counter: int) -> _Made:
    """That the sizes have the product of those asked for, or a multiple where one is Dyn."""
    dims, counter = gen_tensor_dims(MAX_TENSOR_RANK, counter)
    wanted = [size for size in constraint.target.__args__ if size != Dyn]
    is_known = len(wanted) == len(constraint.target.__args__)
    choices: List[Constraint] = [_has_type(constraint.src, Dyn)]
    for rank in range(1, MAX_TENSOR_RANK + 1):
        given = dims[:rank]
        if is_known and rank == 1:
            size = given[0]
            is_all = Conj([_is_not(size, Dyn), _is(size, Prod(wanted))])
            about: Constraint = Disj([_is(size, Dyn), is_all])
        elif is_known:
            about = gen_all_reshape_possibilities(given, wanted)
        else:
            about = _divides(given, wanted)
        choices.append(Conj([_has_type(constraint.src, given), about]))
    return Conj([Disj(choices), *gen_nat_constraints(dims)]), counter


def _divides(given: List[DVar], wanted: List[Any]) -> Disj:
    """That one size is unknown, or the others make a multiple of the product of those wanted."""
    unknown = [_is(d, Dyn) for d in given]
    product: Any = given[0] if len(given) == 1 else Prod(given)
    known = Conj([*(_is_not(d, Dyn) for d in given), is_dim_div_by_target(wanted, product)])
    return Disj([unknown[0] if len(given) == 1 else Disj(unknown), known])


def generate_all_int_dyn_dim_possibilities(
    my_list: Sequence[DVar],
) -> List[Tuple[BinConstraintD, ...]]:
    """Every way in which each of the sizes is Dyn or is not."""
    return list(itertools.product(*([_is(d, Dyn), _is_not(d, Dyn)] for d in my_list)))


def is_target_div_by_dim(target: Sequence[Any], dim: Any) -> BinConstraintD:
    """That a size, or a product of sizes, divides the product of those in the list."""
    return _is(BinConstraintD(Prod(target), dim, op_mod), 0)


def is_dim_div_by_target(target: Sequence[Any], dim: Any) -> BinConstraintD:
    """That the product of the sizes in the list divides a size, or a product of sizes."""
    return _is(BinConstraintD(dim, Prod(target), op_mod), 0)


def gen_all_reshape_possibilities(list_of_dims: Sequence[DVar], target: Sequence[Any]) -> Disj:
    """For every way in which the sizes are Dyn or not, that those that are not divide the product
    of the target, or are it where all are known."""
    choices = []
    for known in generate_all_int_dyn_dim_possibilities(list_of_dims):
        sizes = [one.lhs for one in known if one.op == op_neq]
        if not sizes:
            about = []
        elif len(sizes) < len(known):
            about = [is_target_div_by_dim(target, Prod(sizes))]
        else:
            about = [_is(Prod(sizes), Prod(target))]
        choices.append(Conj([*known, *about]))
    return Disj(choices)


# ---- broadcasting ----


@register_transformation_rule(ApplyBroadcasting)
def generate_broadcasting(constraint: ApplyBroadcasting, counter: int) -> _Made:
    """Types stay where one is Dyn; for each rank sizes of 1 become the other's, and missing ones
    are taken from it."""
    e1, e2 = constraint.input1, constraint.input2
    e11, e12 = constraint.res1, constraint.res2
    same = [BinConstraintT(e1, e11, op_eq), BinConstraintT(e2, e12, op_eq)]
    choices: List[Constraint] = [Conj([_has_type(e, Dyn), *same]) for e in (e1, e2)]
    nats: List[Constraint] = []
    for rank in range(1, MAX_TENSOR_RANK + 1):
        plain, first, second, nat, counter = gen_broadcasting_constraints(
            e1, e2, e11, e12, rank, counter
        )
        choices += [plain, first, second] if rank > 1 else [plain]
        nats += nat
    return Conj([Disj(choices), *nats]), counter


def gen_lists_of_dims(
    num_tensors: int, dim_size: int, counter: int
) -> Tuple[List[List[DVar]], int]:
    """New sizes for several types of one rank."""
    found = []
    for _ in range(num_tensors):
        dims, counter = gen_tensor_dims(dim_size, counter)
        found.append(dims)
    return found, counter


def create_equality_constraints_for_broadcasting(
    e1: TVar,
    e2: TVar,
    e11: TVar,
    e12: TVar,
    d1: List[DVar],
    d2: List[DVar],
    d11: List[DVar],
    d12: List[DVar],
) -> List[BinConstraintT]:
    """That both inputs and both results have these sizes."""
    pairs = [(e1, d1), (e11, d11), (e2, d2), (e12, d12)]
    return [_has_type(variable, dims) for variable, dims in pairs]


def broadcast_dim(
    tensor_input1: Sequence[DVar],
    tensor_input2: Sequence[DVar],
    res1: Sequence[DVar],
    res2: Sequence[DVar],
    index: int,
    padding: bool = False,
) -> Conj:
    """That the size of the first at an index is 1, or missing with `padding`, and becomes that of
    the second."""
    same = [_is(res1[index], res2[index]), _is(res2[index], tensor_input2[index])]
    return Conj(same if padding else [_is(tensor_input1[index], 1), *same])


def no_broadcast_dim_with_index(
    d1: Sequence[DVar], d2: Sequence[DVar], d3: Sequence[DVar], d4: Sequence[DVar], i: int
) -> Conj:
    """That both sizes at an index are 1 or neither is, and that they stay."""
    both = Conj([_is(d1[i], 1), _is(d2[i], 1)])
    neither = Conj([_is_not(d1[i], 1), _is_not(d2[i], 1)])
    return Conj([Disj([both, neither]), _is(d1[i], d3[i]), _is(d2[i], d4[i])])


def generate_all_broadcasting_possibilities_no_padding(
    d1: Sequence[DVar], d2: Sequence[DVar], d11: Sequence[DVar], d12: Sequence[DVar]
) -> Conj:
    """For each place, that one of the sizes is 1 and becomes the other, or that both stay."""
    return Conj(
        [
            Disj(
                [
                    broadcast_dim(d1, d2, d11, d12, i),
                    broadcast_dim(d2, d1, d12, d11, i),
                    no_broadcast_dim_with_index(d1, d2, d11, d12, i),
                ]
            )
            for i in range(len(d1))
        ]
    )


def apply_padding(
    e1_var: TVar,
    e11: Constraint,
    e2: Constraint,
    e12: Constraint,
    d2: List[DVar],
    d11: List[DVar],
    d12: List[DVar],
    counter: int,
) -> Tuple[Disj, int]:
    """For each lower rank of the first type, that the sizes it has not are those of the second."""
    choices = []
    for rank in range(1, len(d2)):
        d1, counter = gen_tensor_dims(rank, counter)
        missing = len(d2) - rank
        before: List[Any] = [*[None] * missing, *d1]
        padded = [broadcast_dim(before, d2, d11, d12, i, padding=True) for i in range(missing)]
        rest = generate_all_broadcasting_possibilities_no_padding(
            d1, d2[missing:], d11[missing:], d12[missing:]
        )
        nat = gen_nat_constraints([*d1, *d2, *d11, *d12])
        choices.append(Conj([_has_type(e1_var, d1), e11, e2, e12, *padded, rest, *nat]))
    return Disj(choices), counter


def gen_broadcasting_constraints(
    e1: TVar, e2: TVar, e11: TVar, e12: TVar, i: int, counter: int
) -> Tuple[Constraint, Disj, Disj, List[Constraint], int]:
    """For rank `i`: what holds where both have it, where the first or the second has a lower one,
    that sizes are not negative; and the counter."""
    (d1, d2, d11, d12), counter = gen_lists_of_dims(4, i, counter)
    known = create_equality_constraints_for_broadcasting(e1, e2, e11, e12, d1, d2, d11, d12)
    is_e1, is_e11, is_e2, is_e12 = known
    first, counter = apply_padding(e1, is_e11, is_e2, is_e12, d2, d11, d12, counter)
    second, counter = apply_padding(e2, is_e12, is_e1, is_e11, d1, d12, d11, counter)
    plain = generate_all_broadcasting_possibilities_no_padding(d1, d2, d11, d12)
    nat = gen_nat_constraints([*d1, *d2, *d11, *d12])
    return Conj([*known, plain]), first, second, nat, counter


# ---- one statement for each rank ----


def gen_consistency_constraints(
    constraint: BinConstraintT, counter: int
) -> Tuple[List[Constraint], int]:
    """For each rank, that the sizes of two types are consistent."""
    found: List[Constraint] = []
    for rank in range(1, MAX_TENSOR_RANK + 1):
        (one, other), counter = gen_lists_of_dims(2, rank, counter)
        types = [_has_type(constraint.lhs, one), _has_type(constraint.rhs, other)]
        sizes = [BinConstraintD(a, b, op_consistency) for a, b in zip(one, other)]
        found.append(Conj([*types, *sizes, *gen_nat_constraints([*one, *other])]))
    return found, counter


def gen_greatest_upper_bound(
    constraint: TGreatestUpperBound, counter: int
) -> Tuple[List[Constraint], int]:
    """For each rank, that the sizes of the result are the bounds of those of two types."""
    found: List[Constraint] = []
    for rank in range(1, MAX_TENSOR_RANK + 1):
        (one, other, result), counter = gen_lists_of_dims(3, rank, counter)
        variables = (constraint.rhs1, constraint.rhs2, constraint.res)
        types = [_has_type(v, dims) for v, dims in zip(variables, (one, other, result))]
        nat = gen_nat_constraints([*one, *other, *result])
        bounds = [DGreatestUpperBound(r, a, b) for r, a, b in zip(result, one, other)]
        found.append(Conj([*types, *nat, *bounds]))
    return found, counter
