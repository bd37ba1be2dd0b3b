"""Entries: all that native_functions.yaml and derivatives.yaml say of an operator.

schemac has checked them and filled in what they leave out, so nothing here parses a schema or
checks a rule.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Iterator, Mapping, Optional

from ..diagnostics import Place
from .dtypes import NO_DTYPES, Dtype, Row
from .expr import Call, Expr, Name, String, walk
from .functions import MethodInfo, ScalarFunction
from .kept import Kept
from .schema import Arg, Form, FormKind, Return
from .words import Word


class Kind(Word):
    """How an operator comes to its result."""

    POINTWISE = "pointwise"  # from its `pointwise` expression, for one element at a time
    REDUCE = "reduce"  # from its `reduce` expressions
    VIEW = "view"  # a kernel that only touches metadata, the same on every device
    KERNEL = "kernel"  # kernels that fill outputs allocated from the shape rule
    RETURNS = "returns"  # kernels that return their results, whose shape depends on values
    COMPOSITE = "composite"  # from other operators
    MUTATING = "mutating"  # kernels that write an argument


class Variant(Word):
    FUNCTION = "function"
    METHOD = "method"


class Promotion(Word):
    COMMON = "common"
    FLOAT = "float"
    COMPARE = "compare"
    BOOL = "bool"
    SUM = "sum"
    REAL = "real"
    NONE = "none"


class Policy(Word):
    """In which dtype an operator runs under autocast."""

    LOWER = "lower"
    FLOAT32 = "float32"
    WIDEST = "widest"
    AS_CALLED = "as_called"
    REFUSED = "refused"


@dataclass(frozen=True)
class Expression:
    text: str  # as messages and pages show it
    tree: Expr


@dataclass(frozen=True)
class Condition(Expression):
    """One of `check`."""

    line: int
    column: int


@dataclass(frozen=True)
class Shape:
    text: str
    rule: Optional[Call]  # None: the shape depends on values


@dataclass(frozen=True)
class Reduction:
    init: Optional[Expression]  # the partial result of no element
    step: Optional[Expression]  # one more element
    combine: Expression  # two partial results
    final: Optional[Expression]

    @property
    def parts(self) -> Mapping[str, Expression]:
        """Those that the entry gives."""
        every = {
            "init": self.init, "step": self.step, "combine": self.combine, "final": self.final,
        }  # fmt: skip
        return {name: part for name, part in every.items() if part is not None}


@dataclass(frozen=True)
class ArgumentDtypes:
    """The dtypes that a tensor argument beside the one that selects the kernel may have."""

    argument: str
    dtypes: Row
    same: bool  # also the dtype of the argument that selects the kernel
    sums: bool  # also the one in which sums of its elements are kept


@dataclass(frozen=True)
class Dispatch:
    key: str  # a backend, "Composite", "View" or "Alias"
    kernel: str
    line: int


@dataclass(frozen=True)
class Save:
    name: str
    what: Kept
    is_output: bool
    index: int  # among the arguments or the results


@dataclass(frozen=True)
class Formula:
    targets: tuple[str, ...]
    text: str
    tree: Expr
    saves: tuple[Save, ...]
    gradients: tuple[int, ...]  # of the results, which it reads one by one
    is_derived: bool  # from the entry's expression
    line: int  # in the file of the derivatives; of a derived one, in that of the entries

    @property
    def reason(self) -> Optional[str]:
        """Why there is no derivative: of `not_implemented("reason")`."""
        tree = self.tree
        if isinstance(tree, Call) and tree.function == "not_implemented":
            reason = tree.arguments[0]
            return reason.value if isinstance(reason, String) else None
        return None

    def names(self, name: str) -> bool:
        return any(isinstance(node, Name) and node.text == name for node in walk(self.tree))


@dataclass(frozen=True)
class Derivative:
    place: Place
    formulas: tuple[Formula, ...]
    non_differentiable: tuple[str, ...]
    output_differentiability: tuple[bool, ...]


@dataclass(frozen=True)
class Derivation:
    """What follows from a pointwise expression by differentiating it, whether it is used or not."""

    gradients: Mapping[str, Expression]  # by argument
    missing: Mapping[str, str]  # the arguments without one, and why
    # How the result changes where an argument `self` changes by `self_t`; None where an operator or
    # the derivative by an argument is missing.
    tangent: Optional[Expression]


@dataclass(frozen=True)
class ForeachOf:
    """The call that an operator on lists makes for each place of them."""

    of: str  # the entry, as in `add.Tensor`
    form: FormKind  # of it, functional or inplace
    arguments: Mapping[str, str]  # of the entry, to their names here; others have their defaults


@dataclass(frozen=True, eq=False)  # compared by identity: there is one of each
class Entry:
    namespace: str
    name: str
    overload: str
    id: str
    schema: str
    place: Place
    doc: str
    variants: tuple[Variant, ...]
    python_module: Optional[str]
    tags: tuple[str, ...]
    moves: tuple[str, ...]  # arguments whose elements are moved without a look at them
    kind: Kind
    args: tuple[Arg, ...]
    returns: tuple[Return, ...]
    result_names: tuple[str, ...]  # what formulas call the results: result; values, indices
    forms: tuple[Form, ...]  # the one of `func` first
    dispatch: tuple[Dispatch, ...]
    shape: Optional[Shape]
    check: tuple[Condition, ...]
    unlimited: tuple[str, ...]  # arguments of which every value is fine
    pointwise: Optional[Expression]
    reduce: Optional[Reduction]
    throws: Row  # the dtypes in which computing either may end in an exception
    throws_if_zero: tuple[str, ...]  # the arguments of which one is 0 where it does, if known
    keeps_low_bits: bool  # the lowest bits of a result follow from those of the operands
    promote: Optional[Promotion]
    autocast: Mapping[str, Policy]  # by device, or "all"
    dtypes: Mapping[str, Row]  # by device, or "all"
    dtype_of: Optional[str]
    argument_dtypes: tuple[ArgumentDtypes, ...]  # only of operators with kernels of their own
    out_from: Optional[str]
    foreach_of: Optional[ForeachOf]
    derivation: Optional[Derivation]  # of pointwise entries
    derivative: Optional[Derivative]

    @property
    def full_name(self) -> str:
        return f"{self.name}.{self.overload}" if self.overload else self.name

    @property
    def first_form(self) -> Form:
        """The one that `func` writes."""
        return self.forms[0]

    def form(self, kind: FormKind) -> Optional[Form]:
        return next((f for f in self.forms if f.form is kind), None)

    def arg(self, name: str) -> Arg:
        return next(a for a in self.args if a.name == name)

    def find_arg(self, name: str) -> Optional[Arg]:
        return next((a for a in self.args if a.name == name), None)

    def outs(self, form: Form) -> tuple[Arg, ...]:
        """The arguments that a form has beside the entry's: where it writes its results."""
        return form.args[len(self.args) :]

    @cached_property
    def tensor_args(self) -> tuple[Arg, ...]:
        return tuple(a for a in self.args if a.type.is_tensor)

    @cached_property
    def differentiable_outputs(self) -> tuple[bool, ...]:
        if self.derivative is not None:
            return self.derivative.output_differentiability
        return tuple(r.type.holds_tensors for r in self.returns)

    @property
    def formulas(self) -> tuple[Formula, ...]:
        return self.derivative.formulas if self.derivative is not None else ()

    @property
    def trees(self) -> Iterator[Expr]:
        """Every expression of the entry and of its derivative."""
        yield from (condition.tree for condition in self.check)
        if self.shape and self.shape.rule:
            yield self.shape.rule
        if self.pointwise:
            yield self.pointwise.tree
        if self.reduce:
            yield from (part.tree for part in self.reduce.parts.values())
        yield from (formula.tree for formula in self.formulas)

    @property
    def is_internal(self) -> bool:
        """Whether only formulas and other operators call it."""
        return "internal" in self.tags or "no_python" in self.tags

    @cached_property
    def makes_tensors(self) -> bool:
        """Whether it makes a tensor from options, and so takes `requires_grad=` in Python."""
        options = {"dtype", "layout", "device", "pin_memory"} <= {a.name for a in self.args}
        like = self.name.endswith("_like") or self.name.startswith("new_")
        return options and (not self.tensor_args or like)

    def dtypes_on(self, device: str) -> Row:
        return self.dtypes.get(device, self.dtypes.get("all", NO_DTYPES))

    def dispatch_of(self, key: str) -> Optional[Dispatch]:
        return next((d for d in self.dispatch if d.key == key), None)


@dataclass(frozen=True)
class Helper:
    """A function written by hand that formulas may call."""

    namespace: str  # of its C++ function
    name: str
    schema: str
    args: tuple[Arg, ...]
    returns: tuple[Return, ...]
    # Names of arguments in groups: linear in those of a group together, while the others are held.
    linear: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, eq=False)
class Model:
    functions: str  # file names as the user wrote them
    derivatives: Optional[str]
    dtypes: tuple[Dtype, ...]  # every one
    methods: tuple[MethodInfo, ...]  # that expressions may call
    scalar_functions: tuple[ScalarFunction, ...]  # what expressions of elements are made of
    helpers: tuple[Helper, ...]  # the functions that formulas may call beside operators
    entries: tuple[Entry, ...]

    @cached_property
    def by_name(self) -> Mapping[str, tuple[Entry, ...]]:
        """Entries by base name, in file order; every overload of a name stays together."""
        groups: dict[str, list[Entry]] = {}
        for e in self.entries:
            groups.setdefault(e.name, []).append(e)
        return {k: tuple(v) for k, v in groups.items()}

    @cached_property
    def by_full_name(self) -> Mapping[str, Entry]:
        return {e.full_name: e for e in self.entries}

    @cached_property
    def headers(self) -> Mapping[str, str]:
        """C++ function -> base name of the entry whose header declares it."""
        return {f.function: e.name for e in self.entries for f in e.forms}

    @cached_property
    def shape_rules(self) -> frozenset[str]:
        """Names of the shape rules that entries call."""
        rules = (e.shape.rule for e in self.entries if e.shape)
        return frozenset(rule.function for rule in rules if rule)
