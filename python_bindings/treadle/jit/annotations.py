"""Types that programs write for TorchScript, in annotations and in comments, as type objects.

Example:

    BroadcastingList2[int]                       # an int or two of them
    get_signature(f, None, None, False)          # ([int, Tensor], str)
    ann_to_type(List[int], loc)                  # List[int], an object of jit's types
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import builtins
import enum
import inspect
import re
import typing
from typing import Any, Callable, Dict, List, Optional, Tuple, Union

from treadle import _C
from treadle._C import Tensor
from treadle._jit_internal import BroadcastingList1 as BroadcastingList1
from treadle._jit_internal import BroadcastingList2 as BroadcastingList2
from treadle._jit_internal import BroadcastingList3 as BroadcastingList3
from treadle._sources import get_source_lines_and_file
from treadle.futures import Future
from treadle.jit import _type_objects
from treadle.jit._type_objects import (
    AnyType,
    AwaitType,
    BoolType,
    ComplexType,
    DeviceObjType,
    DictType,
    EnumType,
    FloatType,
    FutureType,
    InterfaceType,
    IntType,
    ListType,
    NoneType,
    NumberType,
    OptionalType,
    RRefType,
    StreamObjType,
    StringType,
    TensorType,
    TupleType,
    UnionType,
)
from treadle.jit._types import _UNIONS


class Module:
    """A name for some values, by which text of types finds them. RuntimeError for a name that is
    not among them."""

    def __init__(self, name: str, members: Dict[str, Any]) -> None:
        self.name, self.members = name, members

    def __getattr__(self, name: str) -> Any:
        try:
            return self.members[name]
        except KeyError:
            raise RuntimeError(
                f"{self.name}: expected one of {sorted(self.members)}, got {name}"
            ) from None


# ---- questions about annotations -----------------------------------------------------------------


def _is(ann: Any, bare: Any, kind: type) -> bool:
    if ann is bare:
        raise RuntimeError(f"expected {bare} with the types of its elements, got it alone")
    return typing.get_origin(ann) is kind


def is_list(ann: Any) -> bool:
    """Whether it is List[...] or list[...]. RuntimeError for List alone."""
    return _is(ann, List, list)


def is_tuple(ann: Any) -> bool:
    """Whether it is Tuple[...] or tuple[...]. RuntimeError for Tuple alone."""
    return _is(ann, Tuple, tuple)


def is_dict(ann: Any) -> bool:
    """Whether it is Dict[...] or dict[...]. RuntimeError for Dict alone."""
    return _is(ann, Dict, dict)


def is_union(ann: Any) -> bool:
    """Whether it is a Union, an Optional among them. RuntimeError for Union alone."""
    if ann is Union:
        raise RuntimeError(f"expected {Union} with the types of its elements, got it alone")
    return typing.get_origin(ann) in _UNIONS


def is_optional(ann: Any) -> bool:
    """Whether it is one type or None. RuntimeError for Optional alone."""
    if ann is Optional:
        raise RuntimeError(f"expected {Optional} with the types of its elements, got it alone")
    arguments = typing.get_args(ann)
    return is_union(ann) and len(arguments) == 2 and type(None) in arguments


# ---- from annotations to types -------------------------------------------------------------------

_SIMPLE: Dict[Any, Any] = {
    None: NoneType,
    type(None): NoneType,
    inspect.Signature.empty: TensorType,
    Tensor: TensorType,
    bool: BoolType,
    complex: ComplexType,
    float: FloatType,
    int: IntType,
    str: StringType,
    Any: AnyType,
    _C.device: DeviceObjType,
    _C.dtype: IntType,
    _C.Generator: _type_objects.GeneratorType,
}


def _of_name(ann: Any) -> Any:
    """The type of a class that other modules have, which are not loaded for it."""
    if not isinstance(ann, type) or ann.__module__.partition(".")[0] not in ("treadle", "torch"):
        return None
    kinds = {"Stream": StreamObjType, "qscheme": IntType, "SymInt": IntType, "SymBool": BoolType}
    return kinds.get(ann.__name__)


def try_ann_to_type(ann: Any, loc: Any, rcb: Optional[Callable[[str], Any]] = None) -> Any:
    """The type object for an annotation, or None for one that is not known. loc: where it is
    written; rcb: what names in text are, for annotations that are text."""
    if isinstance(ann, str):
        return None if rcb is None else try_ann_to_type(rcb(ann), loc, rcb)
    simple = _SIMPLE.get(ann) if ann.__hash__ is not None else None
    simple = simple or _of_name(ann)
    if simple is not None:
        return simple.get()
    if isinstance(ann, type) and issubclass(ann, Tensor):
        return TensorType.get()
    if isinstance(ann, type) and issubclass(ann, enum.Enum):
        values = [try_ann_to_type(type(member.value), loc) for member in ann]
        if None in values or not values:
            return None
        value = _type_objects.unify_type_list(values)
        return EnumType(f"__torch__.{ann.__qualname__}", value, list(ann))
    if is_list(ann) or is_dict(ann) or is_tuple(ann) or is_optional(ann) or is_union(ann):
        return _of_parts(ann, loc, rcb)
    if typing.get_origin(ann) is Future:
        return FutureType(ann_to_type(typing.get_args(ann)[0], loc, rcb))
    return None


def _of_parts(ann: Any, loc: Any, rcb: Any) -> Any:
    arguments = typing.get_args(ann)
    if is_tuple(ann) and arguments == ((),):  # of older Pythons
        arguments = ()
    if is_optional(ann):
        (element,) = (a for a in arguments if a is not type(None))
        return OptionalType(ann_to_type(element, loc, rcb))
    parts = [ann_to_type(argument, loc, rcb) for argument in arguments]
    if is_list(ann):
        return ListType(parts[0])
    if is_dict(ann):
        key, value = parts
        if not isinstance(key, (IntType, FloatType, StringType, BoolType, ComplexType, TensorType)):
            raise RuntimeError(
                f"expected a dict from numbers, texts or tensors, got {ann}{_at(loc)}"
            )
        return DictType(key, value)
    return TupleType(parts) if is_tuple(ann) else UnionType(parts)


def _at(loc: Any) -> str:
    return f" at\n{loc.highlight()}" if loc is not None else ""


def ann_to_type(ann: Any, loc: Any, rcb: Optional[Callable[[str], Any]] = None) -> Any:
    """The type object for an annotation; ValueError for one that is not known."""
    found = try_ann_to_type(ann, loc, rcb)
    if found is None:
        raise ValueError(f"expected a type that TorchScript has, got {ann!r}{_at(loc)}")
    return found


# ---- signatures ----------------------------------------------------------------------------------


def try_real_annotations(fn: Callable[..., Any], loc: Any) -> Any:
    """([types of the arguments], type of the result) by annotations, Tensor where there is none;
    None where there are none at all."""
    try:
        signature = inspect.signature(fn)
    except (TypeError, ValueError):
        return None
    annotations = [p.annotation for p in signature.parameters.values()]
    annotations.append(signature.return_annotation)
    if all(annotation is signature.empty for annotation in annotations):
        return None
    if any(isinstance(annotation, str) for annotation in annotations):
        known = typing.get_type_hints(fn)
        names = [*signature.parameters, "return"]
        annotations = [known.get(name, a) for name, a in zip(names, annotations)]
    *arguments, result = (ann_to_type(annotation, loc) for annotation in annotations)
    return arguments, result


def get_param_names(fn: Any, n_args: int) -> List[str]:
    """The names of the arguments that a function takes by position, or "0", "1" and so on for one
    that does not say them."""
    if inspect.isfunction(fn) or inspect.ismethod(fn):
        return inspect.getfullargspec(fn).args
    return [str(place) for place in range(n_args)]


def check_fn(fn: Callable[..., Any], loc: Any) -> None:
    """Raises RuntimeError for a function whose text is not that of one function, as for a
    lambda."""
    import ast
    import textwrap

    try:
        lines, _, _ = get_source_lines_and_file(fn)
        body = ast.parse(textwrap.dedent("".join(lines))).body
    except (OSError, TypeError):
        return
    if len(body) != 1 or not isinstance(body[0], ast.FunctionDef):
        raise RuntimeError(f"expected one function, got {getattr(fn, '__name__', fn)}{_at(loc)}")


def get_signature(fn: Callable[..., Any], rcb: Any, loc: Any, is_method: bool) -> Any:
    """([types of the arguments], type of the result) by annotations or by a comment; None where
    there is neither. A method is without its first argument."""
    signature = try_real_annotations(fn, loc)
    if signature is not None:
        return (signature[0][1:], signature[1]) if is_method else signature
    try:
        lines, _, _ = get_source_lines_and_file(fn)
    except (OSError, TypeError):
        return None
    line = get_type_line("".join(lines))
    return None if line is None else parse_type_line(line, rcb, loc)


_TYPE = re.compile(r"#\s*type:\s*(.*?)\s*$")


def get_type_line(source: str) -> Optional[str]:
    """The comment `# type: (...) -> ...` of a function's text, made of those of its arguments where
    they have one each; None where there is none. RuntimeError for comments of arguments without one
    of the result."""
    found = [(line, match) for line in source.split("\n") if (match := _TYPE.search(line))]
    found = [(line, match) for line, match in found if not match[1].startswith("ignore")]
    if not found:
        return None
    if len(found) == 1 and found[0][1][1].startswith("("):
        return found[0][0][found[0][1].start() :].strip()
    results = [match[1] for _, match in found if re.match(r"\(\s*\.\.\.\s*\)\s*->", match[1])]
    if len(results) != 1:
        raise RuntimeError(
            "expected one comment `# type: (...) -> ...` below those of the arguments, got "
            f"{len(results)}"
        )
    arguments = [match[1] for _, match in found if match[1] != results[0]]
    return f"# type: ({', '.join(arguments)}) ->{results[0].partition('->')[2]}"


def split_type_line(type_line: str) -> Tuple[str, str]:
    """("(int, Tensor)", "str") of `# type: (int, Tensor) -> str`. RuntimeError without an arrow."""
    text = re.sub(r"^\s*#\s*type:", "", type_line)
    arguments, arrow, result = text.partition("->")
    if not arrow:
        raise RuntimeError(f"expected a type with ->, got {type_line!r}")
    return arguments.strip(), result.strip()


class _Names(dict):
    """The meanings of names in a comment."""

    def __init__(self, rcb: Any) -> None:
        super().__init__(
            torch=Module("torch", {"Tensor": Tensor}),
            Tensor=Tensor,
            typing=typing,
            Tuple=Tuple,
            List=List,
            Dict=Dict,
            Optional=Optional,
            Union=Union,
            Future=Future,
        )
        self._rcb = rcb

    def __missing__(self, name: str) -> Any:
        found = self._rcb(name) if self._rcb is not None else None
        if found is None and name != "None":
            found = getattr(builtins, name)
        return found


def parse_type_line(type_line: str, rcb: Any, loc: Any) -> Tuple[List[Any], Any]:
    """([types of the arguments], type of the result) of a comment. rcb: what names are that are not
    of `typing`. RuntimeError for text that cannot be evaluated, ValueError for no type."""
    arguments, result = split_type_line(type_line)
    values = []
    for text in (arguments, result):
        try:
            values.append(eval(text, {"__builtins__": {}}, _Names(rcb)))  # noqa: S307  as written
        except (AttributeError, NameError, SyntaxError, TypeError) as error:
            raise RuntimeError(f"expected types, got {text!r}{_at(loc)}") from error
    kinds = values[0] if isinstance(values[0], tuple) else (values[0],)
    return [ann_to_type(kind, loc) for kind in kinds], ann_to_type(values[1], loc)


__all__ = [
    "Any", "AnyType", "AwaitType", "BoolType", "BroadcastingList1", "BroadcastingList2",
    "BroadcastingList3", "ComplexType", "DeviceObjType", "Dict", "DictType", "EnumType",
    "FloatType", "FutureType", "IntType", "InterfaceType", "List", "ListType", "Module", "NoneType",
    "NumberType", "OptionalType", "RRefType", "StreamObjType", "StringType", "TensorType", "Tuple",
    "TupleType", "UnionType", "ann_to_type", "check_fn", "get_param_names", "get_signature",
    "get_type_line", "is_dict", "is_list", "is_optional", "is_tuple", "is_union",
    "parse_type_line", "split_type_line", "try_ann_to_type", "try_real_annotations",
]  # fmt: skip
