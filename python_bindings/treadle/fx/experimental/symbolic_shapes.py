"""Questions about sizes that may be symbols to a compiler. Sizes here are numbers, so each question
has its answer at once, and no value has a symbol in it.

    if guard_or_false(x.shape[0] == 1): ...       # the comparison itself

The classes of what a program tells a compiler about sizes keep what they are given.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple

from treadle import _names
from treadle._C import Tensor

__getattr__ = _names.attributes_of(__name__)

SHAPEENV_EVENT_KEY = "shapeenv_event"
CURRENT_NODE_KEY = "current_node"

# The functions that expressions of sizes may call, by name.
SYMPY_INTERP: Dict[str, Any] = {
    "cast_symbool_to_symint_guardless": int,
    "math": math,
    "torch": _names.package(),
}


def _checked(function: str, value: Any, *kinds: type) -> Any:
    if not isinstance(value, kinds):
        names = " or ".join(kind.__name__ for kind in kinds)
        raise AssertionError(f"{function}: expected a {names}, got a {type(value).__name__}")
    return value


# ---- questions ----


def guard_or_false(a: bool) -> bool:
    """The truth value. AssertionError for what is no bool, as in all of these."""
    return _checked("guard_or_false", a, bool)


def guard_or_true(a: bool) -> bool:
    """The truth value."""
    return _checked("guard_or_true", a, bool)


def guard_size_oblivious(expr: bool) -> bool:
    """The truth value."""
    return _checked("guard_size_oblivious", expr, bool)


def statically_known_true(x: bool) -> bool:
    """The truth value, which is known."""
    return _checked("statically_known_true", x, bool)


def statically_known_false(x: bool) -> bool:
    """Whether it is false, which is known."""
    return not _checked("statically_known_false", x, bool)


def guard_bool(a: bool) -> bool:
    """The truth value."""
    return _checked("guard_bool", a, bool)


def expect_true(a: bool, skip: int = 0) -> bool:
    """The truth value. `skip`, of frames that a message would leave out, has no effect."""
    return _checked("expect_true", a, bool)


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _integer(function: str, value: Any) -> int:
    if not _is_int(value):
        raise AssertionError(f"{function}: expected a int, got a {type(value).__name__}")
    return value


def guard_int(a: int) -> int:
    """The number."""
    return _integer("guard_int", a)


def guard_float(a: float) -> float:
    """The number."""
    return _checked("guard_float", a, float)


def guard_scalar(a: Any) -> Any:
    """The bool, int or float."""
    return _checked("guard_scalar", a, bool, int, float)


def guarding_hint_or_throw(a: Any) -> Any:
    """The int or bool."""
    return _checked("guarding_hint_or_throw", a, int)


def optimization_hint(a: int, fallback: Optional[int] = None) -> int:
    """The number. `fallback` would be for a symbol without an example."""
    return _integer("optimization_hint", a)


def has_static_value(a: Any) -> bool:
    """Whether the value of a bool, int or float is known: it is."""
    _checked("has_static_value", a, bool, int, float)
    return True


def is_concrete_bool(a: bool) -> bool:
    """Whether a bool is known: it is."""
    _checked("is_concrete_bool", a, bool)
    return True


def is_concrete_int(a: int) -> bool:
    """Whether an int is known: it is."""
    _checked("is_concrete_int", a, int)
    return True


def is_concrete_float(a: float) -> bool:
    """Whether a float is known: it is."""
    _checked("is_concrete_float", a, float)
    return True


def is_nested_int(s: Any) -> bool:
    """Whether a size stands for the sizes of a nested tensor: those are tensors of their own."""
    return False


def is_symbolic(val: Any) -> bool:
    """Whether a bool, int or float is a symbol: none is."""
    _checked("is_symbolic", val, bool, int, float)
    return False


def free_symbols(val: Any) -> Set[Any]:
    """The symbols in numbers, tensors or lists of them: none."""
    return set()


def free_unbacked_symbols(x: Any) -> Set[Any]:
    """The symbols without an example: none."""
    return set()


def has_free_symbols(val: Any) -> bool:
    """Whether there are symbols in it: there are none."""
    return False


def has_free_unbacked_symbols(x: Any) -> bool:
    """Whether there are symbols without an example in it: there are none."""
    return False


def has_symbolic_sizes_strides(elem: Tensor) -> bool:
    """Whether a tensor has symbols among its sizes and strides: none has."""
    _checked("has_symbolic_sizes_strides", elem, Tensor)
    return False


# ---- what is computed ----


def sym_eq(x: Any, y: Any) -> bool:
    """Whether two numbers, or lists of as many numbers, are equal. AssertionError for others."""
    if isinstance(x, (tuple, list)) and isinstance(y, (tuple, list)):
        return len(x) == len(y) and all(map(sym_eq, x, y))
    numbers = (int, float, bool)
    if not (isinstance(x, numbers) and isinstance(y, numbers)):
        got = f"a {type(x).__name__} and a {type(y).__name__}"
        raise AssertionError(f"sym_eq: expected two numbers or two lists, got {got}")
    return x == y


def sym_and(x: Any, *others: Any) -> Any:
    """Whether all are true; one alone as it is."""
    for other in others:
        x = x & other
    return x


def sym_or(x: Any, *others: Any) -> Any:
    """Whether one is true; one alone as it is."""
    for other in others:
        x = x | other
    return x


def canonicalize_bool_expr(expr: Any) -> Any:
    """A bool as it is. NotImplementedError for an expression of sympy."""
    if type(expr).__module__.partition(".")[0] == "sympy":
        raise NotImplementedError(
            f"canonicalize_bool_expr: expected a bool, got {expr}: sizes are numbers here"
        )
    return expr


def create_contiguous(shape: Sequence[int]) -> List[int]:
    """The strides of a contiguous tensor of that shape; [1] for one without dimensions."""
    strides = [1]
    for size in reversed(shape[1:]):
        strides.append(strides[-1] * size)
    return strides[::-1]


def check_consistent(new: Any, old: Any) -> None:
    """RuntimeError for two tensors of other shapes, and for two other numbers."""
    if isinstance(new, Tensor):
        new, old = tuple(new.shape), tuple(_checked("check_consistent", old, Tensor).shape)
    elif isinstance(new, bool) or not isinstance(new, (int, float)):
        return
    if new != old:
        raise RuntimeError(f"check_consistent: expected what was before, {old}, got {new}")


def compute_unbacked_bindings(
    shape_env: Any, example_value: Any, old_example_value: Any = None, peek: bool = False
) -> None:
    """Where symbols are made in a value: nowhere, None."""
    return None


def resolve_unbacked_bindings(shape_env: Any, bindings: Any) -> Any:
    """The bindings after replacements of symbols, of which there are none."""
    return bindings


def rebind_unbacked(shape_env: Any, n: Any, result: Any) -> None:
    """Nothing: a node makes no symbols."""


_ACCESSORS = ("sym_size", "sym_stride", "sym_storage_offset", "sym_numel")


def is_accessor_node(node: Any) -> bool:
    """Whether a node reads a size, stride, offset or count of a tensor that is known: one with an
    example in its `meta`."""
    given = node.args[0] if node.args else None
    meta = getattr(given, "meta", {})
    if node.op == "call_method":
        known = isinstance(meta.get("example_value"), Tensor)
        return known and node.target in ("size", "stride", "storage_offset", "item")
    if node.op == "call_function" and isinstance(meta.get("val"), Tensor):
        name = getattr(getattr(node.target, "_schema", None), "name", "")
        return str(name).partition("::")[2] in _ACCESSORS
    return False


def is_symbol_binding_fx_node(node: Any) -> None:
    """The symbol that a node makes: None."""
    return None


# ---- what a program tells a compiler ----


class DimDynamic(Enum):
    """A compiler's assumption about a size."""

    DYNAMIC = 0
    DUCK = 1
    STATIC = 2
    UNBACKED = 3
    INFER_STRIDE = 4


@dataclass(frozen=True)
class SymbolicContext:
    """The statements about the sizes of one input."""


@dataclass(frozen=True)
class SymIntSymbolicContext(SymbolicContext):
    """The statement about an int."""

    constraint: Any


def _filled(values: Optional[List[Any]], count: int, make: Callable[[], Any]) -> List[Any]:
    return [make() for _ in range(count)] if values is None else values


@dataclass(frozen=True)
class StatelessSymbolicContext(SymbolicContext):
    """The statements about each size of a tensor; a list that is not given has nothing for each."""

    dynamic_sizes: List[DimDynamic]
    dynamic_strides: Any = None
    constraint_sizes: Any = None
    constraint_strides: Any = None
    specialize_on: Any = None
    view_base_context: Optional[SymbolicContext] = None
    shape_ids: Optional[Dict[int, Optional[str]]] = None
    unbacked_bounds: Optional[Dict[int, Tuple[Optional[int], Optional[int]]]] = None

    def __post_init__(self) -> None:
        makers: Dict[str, Callable[[], Any]] = {
            "dynamic_strides": lambda: DimDynamic.INFER_STRIDE,
            "constraint_sizes": lambda: None,
            "constraint_strides": lambda: None,
            "specialize_on": list,
        }
        for name, make in makers.items():
            made = _filled(getattr(self, name), len(self.dynamic_sizes), make)
            object.__setattr__(self, name, made)


@dataclass(frozen=True)
class StatefulSymbolicContext(StatelessSymbolicContext):
    """The same of a tensor that is at `tensor_source`."""

    tensor_source: Any = field(kw_only=True)
    shape_env_to_source_to_symbol_cache: Dict[int, Dict[str, Any]] = field(
        default_factory=dict, kw_only=True
    )
    excluded_sizes: Optional[Tuple[Optional[int], ...]] = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.tensor_source is None:
            raise AssertionError("tensor_source: expected where the tensor is, got None")


@dataclass(frozen=True)
class SubclassSymbolicContext(StatefulSymbolicContext):
    """The same of a tensor that holds others, each with its own."""

    inner_contexts: Dict[str, SymbolicContext] = field(default_factory=dict)
    track_outer_size_stride: bool = True


@dataclass(frozen=True)
class Specialization:
    """A size for which a program is compiled on its own, and how it is known."""

    source: Any
    check_fn: Callable[[int], bool]


@dataclass
class TrackedFake:
    """An example of an input, where it is, and what is said of its sizes."""

    fake: Any
    source: Any
    symbolic_context: Optional[SymbolicContext]

    def __hash__(self) -> int:
        return hash((self.fake, self.source.name))

    def __eq__(self, other: object) -> bool:
        same = isinstance(other, TrackedFake) and self.fake is other.fake
        return same and self.source.name == other.source.name  # type: ignore[attr-defined]


@dataclass
class ValueRangesSLoc:
    """Where in a program the bounds of a size are from."""

    lower: Any
    upper: Any


# ---- paths to a number in a value ----


@dataclass(frozen=True)
class ConvertIntKey:
    """The step from a bool to an int."""

    def __str__(self) -> str:
        return ".cast_symbool_to_symint_guardless()"

    def get(self, b: bool) -> int:
        """The bool as an int."""
        return int(_checked("ConvertIntKey", b, bool))


@dataclass(frozen=True)
class CallMethodKey:
    """The step from a value to what a method of it returns."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}()"

    def get(self, o: Any) -> Any:
        """The result of the method."""
        return getattr(o, self.name)()


@dataclass(frozen=True)
class InnerTensorKey:
    """The step from a tensor to one that it holds."""

    inner_name: str

    def __str__(self) -> str:
        return f".{self.inner_name}"

    def get(self, o: Any) -> Any:
        """The tensor."""
        return getattr(o, self.inner_name)


@dataclass(frozen=True)
class DivideByKey:
    """The step from a number to its quotient."""

    divisor: int

    def __str__(self) -> str:
        return f".__floordiv__({self.divisor})"

    def get(self, o: int) -> int:
        """The quotient, rounded down."""
        return o // self.divisor


class SymIntEqByExpr:
    """An int that can be a key of a dict."""

    def __init__(self, val: int) -> None:
        self.val = val

    def __repr__(self) -> str:
        return str(self.val)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SymIntEqByExpr) and self.val == other.val

    def __hash__(self) -> int:
        return hash(self.val)


# ---- exceptions, which a program may catch: nothing here raises them ----


class GuardOnDataDependentSymNode(RuntimeError):
    """A branch that depends on a symbol without an example; `cond` is the condition."""

    def __init__(self, cond: Any, *args: Any) -> None:
        super().__init__(*args)
        self.cond = cond


class ConstraintViolationError(RuntimeError):
    """A size is not as the program said."""


class PendingUnbackedSymbolNotFound(RuntimeError):
    """A symbol was made that is nowhere in the result."""
