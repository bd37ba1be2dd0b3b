"""opmodel.json -> Model.

Every key that schemac writes is read here: one that is not, or is missing, is an error, so that
nothing is dropped without a word and the two programs cannot drift apart.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable, Mapping, Optional, TypedDict, TypeVar, Union

from ..diagnostics import CodegenError, Place
from . import expr
from .dtypes import Dtype, DtypeKind, Row
from .entry import (
    ArgumentDtypes,
    Condition,
    Derivation,
    Derivative,
    Dispatch,
    Entry,
    Expression,
    ForeachOf,
    Formula,
    Helper,
    Kind,
    Model,
    Policy,
    Promotion,
    Reduction,
    Save,
    Shape,
    Variant,
)
from .functions import Gives, MethodInfo, MethodOf, ScalarArgument, ScalarFunction
from .kept import Kept
from .schema import Alias, Arg, Default, DefaultKind, Form, FormKind, Return, Type, Value
from .words import Word

T = TypeVar("T")
W = TypeVar("W", bound=Word)

FORMAT = 1
CONSTANTS = ("inf", "nan", "pi")  # numbers that have a name in every expression


class _Object:
    """A JSON object, of which each key is taken once and none may be left."""

    def __init__(self, value: Any, path: str, dtypes: Mapping[str, Dtype]):
        self._path = path
        self.known_dtypes = dtypes  # by name
        self._left = dict(self._check(value, dict))

    def error(self, expected: str, got: str, key: str = "") -> CodegenError:
        path = f"{self._path}.{key}" if key else self._path
        return CodegenError(f"{path}: expected {expected}, got {got}")

    def _check(self, value: Any, kind: type[T], key: str = "") -> T:
        if type(value) is not kind:
            raise self.error(kind.__name__, repr(value), key)
        return value

    def has(self, key: str) -> bool:
        return key in self._left

    def take(self, key: str) -> Any:
        if key not in self._left:
            raise self.error(f"the key '{key}'", "none")
        return self._left.pop(key)

    def end(self) -> None:
        if self._left:
            raise self.error("no other keys", ", ".join(f"'{key}'" for key in self._left))

    def text(self, key: str) -> str:
        return self._check(self.take(key), str, key)

    def number(self, key: str) -> int:
        return self._check(self.take(key), int, key)

    def flag(self, key: str) -> bool:
        return self._check(self.take(key), bool, key)

    def optional_text(self, key: str) -> Optional[str]:
        value = self.take(key)
        return None if value is None else self._check(value, str, key)

    def optional_number(self, key: str) -> Optional[int]:
        value = self.take(key)
        return None if value is None else self._check(value, int, key)

    def real(self, key: str) -> float:
        return self._check(self.take(key), float, key)

    def optional_real(self, key: str) -> Optional[float]:
        value = self.take(key)
        return None if value is None else self._check(value, float, key)

    def reals(self, key: str) -> Optional[tuple[float, ...]]:
        """A list of numbers, or null."""
        value = self.take(key)
        if value is None:
            return None
        return tuple(self._check(item, float, key) for item in self._check(value, list, key))

    def texts(self, key: str) -> tuple[str, ...]:
        return tuple(self._check(item, str, key) for item in self._list(key))

    def numbers(self, key: str) -> tuple[int, ...]:
        return tuple(self._check(item, int, key) for item in self._list(key))

    def flags(self, key: str) -> tuple[bool, ...]:
        return tuple(self._check(item, bool, key) for item in self._list(key))

    def word(self, key: str, words: type[W]) -> W:
        return self._word(self.text(key), words, key)

    def optional_word(self, key: str, words: type[W]) -> Optional[W]:
        text = self.optional_text(key)
        return None if text is None else self._word(text, words, key)

    def words(self, key: str, words: type[W]) -> tuple[W, ...]:
        return tuple(self._word(text, words, key) for text in self.texts(key))

    def _word(self, text: str, words: type[W], key: str) -> W:
        for word in words:
            if word.value == text:
                return word
        raise self.error(f"one of {', '.join(map(str, words))}", repr(text), key)

    def _list(self, key: str) -> list[Any]:
        return self._check(self.take(key), list, key)

    def one(self, key: str, read: Callable[[_Object], T]) -> T:
        return self._read(self.take(key), key, read)

    def optional(self, key: str, read: Callable[[_Object], T]) -> Optional[T]:
        value = self.take(key)
        return None if value is None else self._read(value, key, read)

    def each(self, key: str, read: Callable[[_Object], T]) -> tuple[T, ...]:
        items = enumerate(self._list(key))
        return tuple(self._read(item, f"{key}[{i}]", read) for i, item in items)

    def table(self, key: str, read: Callable[[_Object, str], T]) -> Mapping[str, T]:
        """An object whose keys are names, not known beforehand; empty for null."""
        value = self.take(key)
        if value is None:
            return {}
        table = _Object(value, f"{self._path}.{key}", self.known_dtypes)
        return {name: read(table, name) for name in value}

    def row(self, key: str) -> Row:
        names = self.texts(key)
        for name in names:
            if name not in self.known_dtypes:
                raise self.error("dtypes", repr(name), key)
        dtypes = tuple(self.known_dtypes[name] for name in names)
        return Row(dtypes, is_every=len(dtypes) == len(self.known_dtypes))

    def _read(self, value: Any, key: str, read: Callable[[_Object], T]) -> T:
        found = _Object(value, f"{self._path}.{key}", self.known_dtypes)
        result = read(found)
        found.end()
        return result


# ---- schemas -------------------------------------------------------------------------------------


def _alias(o: _Object) -> Alias:
    return Alias(o.texts("before"), o.flag("write"), o.texts("after"))


def _type(o: _Object) -> Type:
    return Type(
        text=o.text("text"),
        base=o.text("base"),
        optional=o.flag("optional"),
        list=o.flag("list"),
        list_size=o.optional_number("list_size"),
        element_optional=o.flag("element_optional"),
        alias=o.optional("alias", _alias),
    )


def _value(value: Any) -> Value:
    return tuple(map(_value, value)) if isinstance(value, list) else value


def _default(o: _Object) -> Default:
    kind, text, value = o.word("kind", DefaultKind), o.text("text"), _value(o.take("value"))
    if kind is DefaultKind.NAME:
        for dtype in o.known_dtypes.values():
            if text in (dtype.name, dtype.alias):
                value = dtype
    return Default(kind, text, value)


def _arg(o: _Object) -> Arg:
    return Arg(
        name=o.text("name"),
        type=o.one("type", _type),
        default=o.optional("default", _default),
        kwarg_only=o.flag("kwarg_only"),
    )


def _return(o: _Object) -> Return:
    return Return(o.optional_text("name"), o.one("type", _type))


def _form(o: _Object) -> Form:
    return Form(
        form=o.word("form", FormKind),
        name=o.text("name"),
        overload=o.text("overload"),
        id=o.text("id"),
        schema=o.text("schema"),
        args=o.each("args", _arg),
        returns=o.each("returns", _return),
    )


# ---- tables --------------------------------------------------------------------------------------


def _dtype(o: _Object) -> Dtype:
    return Dtype(
        name=o.text("name"),
        enumerator=o.text("enumerator"),
        cpp=o.text("cpp"),
        kind=o.word("kind", DtypeKind),
        alias=o.optional_text("alias"),
        index=o.number("index"),
    )


def _method_info(o: _Object) -> MethodInfo:
    return MethodInfo(
        of=o.word("of", MethodOf),
        name=o.text("name"),
        parameters=o.texts("parameters"),
        returns=o.text("returns"),
        saves=o.optional_word("saves", Kept),
        cpp=o.text("cpp"),
    )


def _scalar_argument(o: _Object) -> ScalarArgument:
    return ScalarArgument(o.text("name"), o.optional_text("default"))


def _scalar_function(o: _Object) -> ScalarFunction:
    return ScalarFunction(
        name=o.text("name"),
        is_operator=o.flag("is_operator"),
        text=o.text("text"),
        args=o.each("args", _scalar_argument),
        function=o.optional_text("function"),
        section=o.text("section"),
        doc=o.text("doc"),
        dtypes=o.row("dtypes"),
        gives=o.word("gives", Gives),
        throws=o.row("throws"),
        throws_if_zero=o.optional_text("throws_if_zero"),
        keeps_low_bits=o.flag("keeps_low_bits"),
        derivative=o.table("derivative", lambda table, argument: table.text(argument)),
        holomorphic=o.flag("holomorphic"),
        reference=o.optional_text("reference"),
        samples=o.reals("samples"),
        rounded=o.flag("rounded"),
        ulp=o.table("ulp", lambda table, dtype: table.real(dtype)),
        ulp_of=o.optional_text("ulp_of"),
        complex_ulp_of=o.optional_text("complex_ulp_of"),
        range=o.optional_text("range"),
        above=o.optional_real("above"),
    )


def _helper(o: _Object) -> Helper:
    return Helper(
        namespace=o.text("namespace"),
        name=o.text("name"),
        schema=o.text("schema"),
        args=o.each("args", _arg),
        returns=o.each("returns", _return),
        linear=tuple(tuple(group) for group in o.take("linear")),
    )


# ---- expressions ---------------------------------------------------------------------------------


class _Known(TypedDict):
    """The keys of every node."""

    type: str
    callee: Optional[expr.Callee]


def _callee(o: _Object) -> expr.Callee:
    def text(key: str) -> str:
        return o.text(key) if o.has(key) else ""

    return expr.Callee(
        kind=o.word("kind", expr.CalleeKind),
        namespace=text("namespace"),
        function=o.text("function"),
        name=text("name"),
        entry=text("entry"),
    )


def _optional_callee(o: _Object) -> Optional[expr.Callee]:
    return o.one("callee", _callee) if o.has("callee") else None


def _name(o: _Object, known: _Known) -> expr.Expr:
    name = o.text("name")
    if name in o.known_dtypes:
        return expr.DtypeName(o.known_dtypes[name], **known)
    return (expr.Constant if name in CONSTANTS else expr.Name)(name, **known)


def _method(o: _Object, known: _Known) -> expr.Expr:
    return expr.Method(o.one("on", _tree), o.text("name"), o.each("args", _tree), **known)


def _binary(o: _Object, known: _Known) -> expr.Expr:
    return expr.Binary(o.text("operator"), o.one("lhs", _tree), o.one("rhs", _tree), **known)


def _ternary(o: _Object, known: _Known) -> expr.Expr:
    return expr.Ternary(o.one("cond", _tree), o.one("then", _tree), o.one("else", _tree), **known)


_NODES: Mapping[str, Callable[[_Object, _Known], expr.Expr]] = {
    "name": _name,
    "int": lambda o, known: expr.Number(o.text("value"), is_integer=True, **known),
    "float": lambda o, known: expr.Number(o.text("value"), is_integer=False, **known),
    "bool": lambda o, known: expr.Bool(o.flag("value"), **known),
    "string": lambda o, known: expr.String(o.text("value"), **known),
    "none": lambda o, known: expr.Nothing(**known),
    "call": lambda o, known: expr.Call(o.text("fn"), o.each("args", _tree), **known),
    "method": _method,
    "index": lambda o, known: expr.Index(o.one("on", _tree), o.one("index", _tree), **known),
    "unary": lambda o, known: expr.Unary(o.text("operator"), o.one("of", _tree), **known),
    "binary": _binary,
    "select": _ternary,
    "list": lambda o, known: expr.Items(o.each("items", _tree), **known),
}


def _tree(o: _Object) -> expr.Expr:
    op = o.text("op")
    if op not in _NODES:
        raise o.error(f"one of {', '.join(_NODES)}", f"'{op}'", "op")
    known: _Known = {"type": o.text("type"), "callee": _optional_callee(o)}
    return _NODES[op](o, known)


def _expression(o: _Object) -> Expression:
    return Expression(o.text("text"), o.one("tree", _tree))


def _condition(o: _Object) -> Condition:
    return Condition(o.text("text"), o.one("tree", _tree), o.number("line"), o.number("column"))


def _shape(o: _Object) -> Shape:
    text, tree = o.text("text"), o.optional("tree", _tree)
    if tree is not None and not isinstance(tree, expr.Call):
        raise o.error("the call of a shape rule", f"'{text}'", "tree")
    return Shape(text, tree)


def _reduction(o: _Object) -> Reduction:
    def part(key: str) -> Optional[Expression]:
        return o.one(key, _expression) if o.has(key) else None

    return Reduction(part("init"), part("step"), o.one("combine", _expression), part("final"))


# ---- entries -------------------------------------------------------------------------------------


def _place(o: _Object) -> Place:
    return Place(o.text("file"), o.number("line"), o.number("column"))


def _save(o: _Object) -> Save:
    return Save(o.text("name"), o.word("what", Kept), o.flag("is_output"), o.number("index"))


def _formula(o: _Object) -> Formula:
    return Formula(
        targets=o.texts("targets"),
        text=o.text("text"),
        tree=o.one("tree", _tree),
        saves=o.each("saves", _save),
        gradients=o.numbers("gradients"),
        is_derived=o.flag("derived"),
        line=o.number("line"),
    )


def _derivation(o: _Object) -> Derivation:
    return Derivation(
        gradients=o.table("gradients", lambda table, argument: table.one(argument, _expression)),
        missing=o.table("missing", lambda table, argument: table.text(argument)),
        tangent=o.optional("tangent", _expression),
    )


def _derivative(o: _Object) -> Derivative:
    return Derivative(
        place=o.one("location", _place),
        formulas=o.each("formulas", _formula),
        non_differentiable=o.texts("non_differentiable"),
        output_differentiability=o.flags("output_differentiability"),
    )


def _dispatch(o: _Object) -> Dispatch:
    return Dispatch(o.text("key"), o.text("kernel"), o.number("line"))


def _argument_dtypes(table: _Object, argument: str) -> ArgumentDtypes:
    return table.one(
        argument,
        lambda o: ArgumentDtypes(argument, o.row("dtypes"), o.flag("same"), o.flag("sums")),
    )


def _foreach_of(o: _Object) -> ForeachOf:
    return ForeachOf(
        of=o.text("of"),
        form=o.word("form", FormKind),
        arguments=o.table("arguments", lambda table, name: table.text(name)),
    )


def _entry(o: _Object) -> Entry:
    return Entry(
        namespace=o.text("namespace"),
        name=o.text("name"),
        overload=o.text("overload"),
        id=o.text("id"),
        schema=o.text("schema"),
        place=o.one("location", _place),
        doc=o.text("doc"),
        variants=o.words("variants", Variant),
        python_module=o.optional_text("python_module"),
        tags=o.texts("tags"),
        moves=o.texts("moves"),
        kind=o.word("kind", Kind),
        args=o.each("args", _arg),
        returns=o.each("returns", _return),
        result_names=o.texts("result_names"),
        forms=o.each("forms", _form),
        dispatch=o.each("dispatch", _dispatch),
        shape=o.optional("shape", _shape),
        check=o.each("check", _condition),
        unlimited=o.texts("unlimited"),
        pointwise=o.optional("pointwise", _expression),
        reduce=o.optional("reduce", _reduction),
        throws=o.row("throws"),
        throws_if_zero=o.texts("throws_if_zero"),
        keeps_low_bits=o.flag("keeps_low_bits"),
        promote=o.optional_word("promote", Promotion),
        autocast=o.table("autocast", lambda table, device: table.word(device, Policy)),
        dtypes=o.table("dtypes", lambda table, device: table.row(device)),
        dtype_of=o.optional_text("dtype_of"),
        argument_dtypes=tuple(o.table("argument_dtypes", _argument_dtypes).values()),
        out_from=o.optional_text("out_from"),
        foreach_of=o.optional("foreach_of", _foreach_of),
        derivation=o.optional("derivation", _derivation),
        derivative=o.optional("derivative", _derivative),
    )


def _model(o: _Object) -> Model:
    written = o.number("format")
    if written != FORMAT:
        raise o.error(f"format {FORMAT}", str(written), "format")
    dtypes = o.each("dtypes", _dtype)
    o.known_dtypes = {dtype.name: dtype for dtype in dtypes}
    return Model(
        functions=o.text("functions"),
        derivatives=o.optional_text("derivatives"),
        dtypes=dtypes,
        methods=o.each("methods", _method_info),
        scalar_functions=o.each("scalar_functions", _scalar_function),
        helpers=o.each("helpers", _helper),
        entries=o.each("operators", _entry),
    )


def load(path: Union[str, Path]) -> Model:
    o = _Object(json.loads(Path(path).read_text()), str(path), {})
    model = _model(o)
    o.end()
    return model
