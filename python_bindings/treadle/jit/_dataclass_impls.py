"""The methods that Python makes for dataclasses, as text that TorchScript's front can read."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import ast
import dataclasses
import inspect
from functools import partial
from typing import Any, Callable, Dict, List, Optional

from treadle._sources import ParsedDef, SourceContext


def _written(annotation: Any) -> str:
    return inspect.formatannotation(annotation).replace("typing.", "")


def _method(cls: type, name: str, arguments: str, result: str, body: List[str]) -> ParsedDef:
    source = "\n".join([f"def {name}(self{arguments}) -> {result}:", *(f"  {b}" for b in body)])
    file = f"__torch_jit_dataclass/{cls.__name__}/{name}"
    context = SourceContext(source, file, 0, 0, True, name)
    return ParsedDef(ast.parse(source), context, source, file, 0)


def synthesize__init__(cls: type) -> ParsedDef:
    """Sets the fields. NotImplementedError for fields whose default is made by a function."""
    fields = dataclasses.fields(cls)
    if any(field.default_factory is not dataclasses.MISSING for field in fields):
        raise NotImplementedError(
            f"{cls.__name__}: expected fields with plain defaults, got one with default_factory"
        )
    own = cls.__dict__.get("__dataclass_fields__", {})
    given = [f for f in own.values() if f.init and f._field_type is not dataclasses._FIELD_CLASSVAR]  # type: ignore[attr-defined]
    arguments, variables = "", []
    for field in given:
        kind = field.type
        if isinstance(kind, dataclasses.InitVar):
            variables.append(field.name)
            kind = kind.type
        default = "" if field.default is dataclasses.MISSING else f" = {field.default!r}"
        arguments += f", {field.name}: {_written(kind)}{default}"
    body = [f"self.{f.name} = {f.name}" for f in fields if f.init]
    if hasattr(cls, "__post_init__"):
        body.append(f"self.__post_init__({', '.join(variables)})")
    return _method(cls, "__init__", arguments, "None", body or ["pass"])


def synthesize__repr__(cls: type) -> ParsedDef:
    """The names of the fields."""
    names = [field.name for field in dataclasses.fields(cls) if field.repr]
    text = f"{cls.__name__}({', '.join(f'{name}=self.{name}' for name in names)})"
    return _method(cls, "__repr__", "", "str", [f"return '{text}'"])


def synthesize__hash__(cls: type) -> ParsedDef:
    """Raises: TorchScript has no such number."""
    text = "dataclasses have no __hash__ in TorchScript"
    return _method(cls, "__hash__", "", "int", [f"raise NotImplementedError('{text}')"])


def _by_fields(cls: type, name: str, tests: List[str], end: str) -> ParsedDef:
    body = []
    for field in dataclasses.fields(cls):
        if field.compare:
            body += [f"val1 = self.{field.name}", f"val2 = other.{field.name}", *tests]
    return _method(cls, name, f", other: {cls.__name__}", "bool", [*body, f"return {end}"])


def synthesize_equality(cls: type, name: str, converse: str) -> ParsedDef:
    """Whether the fields are equal, or are not; `converse` is the operator of the other."""
    return _by_fields(cls, name, [f"if val1 {converse} val2: return False"], "True")


def synthesize_inequality(cls: type, name: str, op: str, allow_eq: bool) -> ParsedDef:
    """The order by the first fields that differ."""
    tests = [f"if val1 {op} val2: return True", f"elif val2 {op} val1: return False"]
    return _by_fields(cls, name, tests, str(allow_eq))


DATACLASS_MAGIC_METHODS: Dict[str, Callable[[Any], ParsedDef]] = {
    "__init__": synthesize__init__,
    "__repr__": synthesize__repr__,
    "__hash__": synthesize__hash__,
    "__eq__": partial(synthesize_equality, name="__eq__", converse="!="),
    "__ne__": partial(synthesize_equality, name="__ne__", converse="=="),
    "__lt__": partial(synthesize_inequality, name="__lt__", op="<", allow_eq=False),
    "__le__": partial(synthesize_inequality, name="__le__", op="<", allow_eq=True),
    "__gt__": partial(synthesize_inequality, name="__gt__", op=">", allow_eq=False),
    "__ge__": partial(synthesize_inequality, name="__ge__", op=">", allow_eq=True),
}


def synthesized(cls: type, name: str) -> Optional[ParsedDef]:
    """The method of that name, if it is one that Python made for a dataclass."""
    if not dataclasses.is_dataclass(cls) or name not in DATACLASS_MAGIC_METHODS:
        return None
    method = getattr(cls, name)
    try:
        inspect.getsource(method)
    except (OSError, TypeError):
        return DATACLASS_MAGIC_METHODS[name](cls)
    return None
