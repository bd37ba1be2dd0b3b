"""Statements about sizes and types of tensors, and the variables in them.

    BinConstraintD(DVar(1), 3, op_eq)                    # (DV(1) = 3)
    Conj([BinConstraintT(TVar(1), TVar(2), op_eq), T()]) # And([(TV(1) = TV(2)), True])

Constraints are equal that say the same. AssertionError for parts of the wrong kind.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Iterable, List, Sequence, Tuple

from treadle.fx.experimental.migrate_gradual_types.operation import (
    op_add,
    op_div,
    op_eq,
    op_gt,
    op_lt,
    op_mod,
    op_mul,
    op_neq,
    op_sub,
)
from treadle.fx.tensor_type import TensorType, _DynType


class _OfParts:
    """Objects of one class that are equal if their attributes are."""

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self).__name__, repr(self)))


class TVar(_OfParts):
    """A variable for the type of a tensor."""

    def __init__(self, tvar: int) -> None:
        self.tvar = tvar

    def __repr__(self) -> str:
        return f"TV({self.tvar})"


class DVar(_OfParts):
    """A variable for a size."""

    def __init__(self, c: int) -> None:
        self.c = c

    def __repr__(self) -> str:
        return f"DV({self.c})"


class BVar(_OfParts):
    """A variable for a truth value."""

    def __init__(self, c: int) -> None:
        self.c = c

    def __repr__(self) -> str:
        return f"BV({self.c})"


def is_dim(d: Any) -> bool:
    """Whether that is a size: a variable, a number or Dyn."""
    return isinstance(d, (DVar, int, _DynType))


def _expect(function: str, kind: type, *values: Any) -> None:
    for value in values:
        if not isinstance(value, kind):
            got = type(value).__name__
            raise AssertionError(f"{function}: expected a {kind.__name__}, got a {got}")


def _expect_dims(function: str, *values: Any) -> None:
    for value in values:
        if not is_dim(value):
            raise AssertionError(
                f"{function}: expected a size, a DVar, number or Dyn, got a {type(value).__name__}"
            )


class Constraint:
    """A statement. Two of the same class with the same parts are equal."""

    def __eq__(self, other: object) -> bool:
        if type(self) is Constraint:
            return self is other
        return type(other) is type(self) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self).__name__, repr(self)))


class Conj(Constraint):
    """All of them are true."""

    def __init__(self, conjuncts: Sequence[Constraint]) -> None:
        self.conjucts = conjuncts  # spelled as in PyTorch

    def __repr__(self) -> str:
        return f"And({self.conjucts})"


class Disj(Constraint):
    """One of them is true."""

    def __init__(self, disjuncts: Sequence[Constraint]) -> None:
        self.disjuncts = disjuncts

    def __repr__(self) -> str:
        return f"Or({self.disjuncts})"


class Prod(Constraint):
    """The product of sizes."""

    def __init__(self, products: Sequence[Any]) -> None:
        self.products = products

    def __repr__(self) -> str:
        return f"Product({self.products})"


class T(Constraint):
    """The constraint that is true."""

    def __repr__(self) -> str:
        return "True"


class F(Constraint):
    """The constraint that is false."""

    def __repr__(self) -> str:
        return "False"


class BinaryConstraint(Constraint):
    """Two operands and the sign between them."""

    def __init__(self, lhs: Any, rhs: Any, op: Any) -> None:
        self.lhs, self.rhs, self.op = lhs, rhs, op

    def __repr__(self) -> str:
        return f"({self.lhs} {self.op} {self.rhs})"


class BinConstraintT(BinaryConstraint):
    """A statement about types of tensors."""

    def __init__(self, lhs: Any, rhs: Any, op: Any) -> None:
        for side in (lhs, rhs):
            if not isinstance(side, (TVar, TensorType, int, _DynType)):
                raise AssertionError(
                    f"BinConstraintT: expected a TVar, a type or Dyn, got a {type(side).__name__}"
                )
        super().__init__(lhs, rhs, op)


class BinConstraintD(BinaryConstraint):
    """A statement about sizes, or the sum, product, ... of them."""

    def __init__(self, lhs: Any, rhs: Any, op: Any) -> None:
        for side in (lhs, rhs):
            if not (is_algebraic_expression(side) or is_dim(side) or is_bool_expr(side)):
                raise AssertionError(
                    f"BinConstraintD: expected a size or an expression of sizes, "
                    f"got a {type(side).__name__}"
                )
        super().__init__(lhs, rhs, op)


class TGreatestUpperBound(Constraint):
    """`res` is the most precise type that is consistent with both others."""

    def __init__(self, res: Any, rhs1: Any, rhs2: Any) -> None:
        self.res, self.rhs1, self.rhs2 = res, rhs1, rhs2

    def __repr__(self) -> str:
        return f"{self.res} = {self.rhs1}\N{SQUARE CUP}*{self.rhs2}"


class DGreatestUpperBound(Constraint):
    """`res` is the most precise size that is consistent with both others."""

    def __init__(self, res: Any, rhs1: Any, rhs2: Any) -> None:
        _expect_dims("DGreatestUpperBound", res, rhs1, rhs2)
        self.res, self.rhs1, self.rhs2 = res, rhs1, rhs2

    def __repr__(self) -> str:
        return f"{self.res} = {self.rhs1}\N{SQUARE CUP}{self.rhs2}"


class CanReshape(Constraint):
    """A tensor of type `src` can be reshaped to `target`."""

    def __init__(self, src: Any, target: Any) -> None:
        self.src, self.target = src, target

    def __repr__(self) -> str:
        return f"can-reshape({self.src}, {self.target})"


class IndexSelect(Constraint):
    """`output` is `input_var`, of `tensor_size` sizes, with `dim_replace` at `index`."""

    def __init__(
        self, tensor_size: int, input_var: TVar, dim_replace: Any, index: int, output: TVar
    ) -> None:
        _expect("IndexSelect", TVar, input_var, output)
        _expect("IndexSelect", int, index)
        _expect_dims("IndexSelect", dim_replace)
        self.tensor_size, self.input_var, self.output = tensor_size, input_var, output
        self.dim_replace, self.index = dim_replace, index

    def __repr__(self) -> str:
        return (
            f" {self.output} = IndexSelect({self.input_var}, tensor_size: {self.tensor_size}, "
            f"{self.dim_replace}, {self.index})"
        )


class Transpose(Constraint):
    """`output` is `input_var`, of `tensor_size` sizes, with two of them exchanged."""

    def __init__(
        self, tensor_size: int, input_var: TVar, index1: int, index2: int, output: TVar
    ) -> None:
        _expect("Transpose", TVar, input_var, output)
        _expect("Transpose", int, index1, index2)
        self.tensor_size, self.input_var, self.output = tensor_size, input_var, output
        self.index1, self.index2 = index1, index2

    def __repr__(self) -> str:
        return (
            f" {self.output} = Transpose({self.input_var}, tensor_size: {self.tensor_size}, "
            f"{self.index1}, {self.index2})"
        )


class GetItem(Constraint):
    """`res` is the size at `index` of `input_var`, of `tensor_size` sizes."""

    def __init__(self, tensor_size: int, index: int, res: DVar, input_var: TVar) -> None:
        _expect("GetItem", DVar, res)
        self.tensor_size, self.index = tensor_size, index
        self.res, self.input_var = res, input_var

    def __repr__(self) -> str:
        return (
            f" {self.res} = GetItem({self.input_var}, tensor_size: {self.tensor_size}, "
            f"{self.index})"
        )


class GetItemTensor(Constraint):
    """`res` is `input_var`, of `tensor_size` sizes, indexed by None and slices."""

    def __init__(
        self, tensor_size: int, index_tuple: Tuple[Any, ...], res: TVar, input_var: TVar
    ) -> None:
        _expect("GetItemTensor", TVar, res)
        self.tensor_size, self.index_tuple = tensor_size, index_tuple
        self.res, self.input_var = res, input_var

    def __repr__(self) -> str:
        return (
            f" {self.res} = GetItemT({self.input_var}, tensor_size: {self.tensor_size}, "
            f"{self.index_tuple})"
        )


class CalcConv(Constraint):
    """`conv_result` is a convolution of `input_var`, whose sizes `matching_constraint` names."""

    def __init__(
        self,
        conv_result: TVar,
        input_var: TVar,
        c_out: int,
        kernel: Any,
        padding: Any,
        stride: Any,
        dilation: Any,
        matching_constraint_vars: List[DVar],
    ) -> None:
        self.conv_result, self.input_var, self.c_out = conv_result, input_var, c_out
        self.kernel, self.padding, self.stride = kernel, padding, stride
        self.dilation, self.matching_constraint = dilation, matching_constraint_vars

    def __repr__(self) -> str:
        return (
            f"{self.conv_result} = calc-conv({self.input_var}, {self.c_out}, {self.kernel}, "
            f"{self.padding}, {self.stride}, {self.dilation})"
        )


class CalcMaxPool(Constraint):
    """`maxpool_result` is a pool of `input_var`, whose sizes `matching_constraint` names."""

    def __init__(
        self,
        maxpool_result: TVar,
        input_var: TVar,
        kernel: Any,
        padding: Any,
        stride: Any,
        dilation: Any,
        matching_constraint_vars: List[DVar],
    ) -> None:
        self.maxpool_result, self.input_var = maxpool_result, input_var
        self.kernel, self.padding, self.stride = kernel, padding, stride
        self.dilation, self.matching_constraint = dilation, matching_constraint_vars

    def __repr__(self) -> str:
        return (
            f"{self.maxpool_result} = calc-maxpool({self.input_var},  {self.kernel}, "
            f"{self.padding}, {self.stride}, {self.dilation})"
        )


class ApplyBroadcasting(Constraint):
    """`res1` and `res2` are the types that broadcasting gives two inputs."""

    def __init__(self, res1: TVar, res2: TVar, input1: TVar, input2: TVar) -> None:
        self.res1, self.res2, self.input1, self.input2 = res1, res2, input1, input2

    def __repr__(self) -> str:
        return f"{self.res1}, {self.res2} = apply-broadcasting({self.input1}, {self.input2})"


class CalcProduct(Constraint):
    """`flattened` is a type of these sizes, of which those from `start` to `end` are multiplied."""

    def __init__(self, start: int, end: int, flattened: TVar, dims_to_flatten: List[Any]) -> None:
        _expect("CalcProduct", list, dims_to_flatten)
        _expect("CalcProduct", TVar, flattened)
        _expect("CalcProduct", int, start, end)
        self.start, self.end = start, end
        self.flattened, self.dims_to_flatten = flattened, dims_to_flatten

    def __repr__(self) -> str:
        return f"{self.flattened} = CalcProduct({self.start}, {self.end}, {self.dims_to_flatten})"


def _is_of(constraint: Any, signs: Iterable[str]) -> bool:
    return isinstance(constraint, BinConstraintD) and constraint.op in signs


def is_algebraic_expression(constraint: Any) -> bool:
    """Whether that is a number made of sizes: a sum, product, ..."""
    arithmetic = (op_add, op_sub, op_div, op_mul, op_mod)
    return isinstance(constraint, Prod) or _is_of(constraint, arithmetic)


def is_bool_expr(constraint: Any) -> bool:
    """Whether that is true or false: a comparison of sizes, or several of them."""
    comparisons = (op_gt, op_lt, op_neq, op_eq)
    return isinstance(constraint, (BVar, Conj, Disj)) or _is_of(constraint, comparisons)


__all__ = [
    "ApplyBroadcasting",
    "BVar",
    "BinConstraintD",
    "BinConstraintT",
    "BinaryConstraint",
    "CalcConv",
    "CalcMaxPool",
    "CalcProduct",
    "CanReshape",
    "Conj",
    "Constraint",
    "DGreatestUpperBound",
    "DVar",
    "Disj",
    "F",
    "GetItem",
    "GetItemTensor",
    "IndexSelect",
    "Prod",
    "T",
    "TGreatestUpperBound",
    "TVar",
    "Transpose",
    "is_algebraic_expression",
    "is_bool_expr",
    "is_dim",
]
