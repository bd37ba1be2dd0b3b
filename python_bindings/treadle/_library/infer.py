"""The schema of a function from its annotations."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import collections.abc
import inspect
import types
import typing
from typing import Any, Callable, Dict, Iterable, List, Optional, Union

from treadle import _C
from treadle.types import Number

_BASES: Dict[Any, str] = {
    _C.Tensor: "Tensor",
    int: "SymInt",
    float: "float",
    bool: "bool",
    str: "str",
    Number: "Scalar",
    _C.dtype: "ScalarType",
    _C.device: "Device",
}
_IN_LISTS = ("Tensor", "SymInt", "float", "bool", "Scalar")
_RESULTS = ("Tensor", "SymInt", "float", "bool", "Scalar", "Tensor[]")
_LISTS = (list, collections.abc.Sequence)
_UNIONS = (Union, getattr(types, "UnionType", Union))


def _without_none(annotation: Any) -> Any:
    """X of Optional[X]; None for anything else."""
    if typing.get_origin(annotation) not in _UNIONS:
        return None
    parts = typing.get_args(annotation)
    rest = [p for p in parts if p is not type(None)]
    return Union[tuple(rest)] if len(rest) < len(parts) else None


def type_text(annotation: Any) -> Optional[str]:
    """How a schema writes the type; None where it has none for it."""
    if typing.get_origin(annotation) in _UNIONS and annotation == Number:
        return "Scalar"
    try:
        if annotation in _BASES:
            return _BASES[annotation]
    except TypeError:  # not hashable
        return None
    inner = _without_none(annotation)
    if inner is not None:
        text = type_text(inner)
        return None if text is None or text.endswith("?") else text + "?"
    if typing.get_origin(annotation) not in _LISTS:
        return None
    item = type_text(typing.get_args(annotation)[0])
    return f"{item}[]" if item in (*_IN_LISTS, "Tensor?") else None


def _default_text(value: Any) -> Optional[str]:
    if value is None or isinstance(value, (bool, int, float)):
        return str(value)
    if isinstance(value, (str, _C.device)):
        text = str(value).replace("\\", "\\\\").replace('"', '\\"')
        return f'"{text}"'
    if isinstance(value, _C.dtype):
        return str(value).rpartition(".")[2]
    return None


class _Reader:
    """Reads one function."""

    def __init__(self, function: Callable, mutates_args: Union[str, Iterable[str]]) -> None:
        self.signature = inspect.signature(function)
        try:
            hints = typing.get_type_hints(function)
        except Exception as error:  # whatever a name in a text raises
            self.fail(f"expected annotations that can be evaluated, got {error}")
        self.types = {
            name: hints.get(name, inspect.Parameter.empty)
            for name in (*self.signature.parameters, "return")
        }
        # get_type_hints() adds Optional where a default is None; the annotation says what is meant.
        for name, parameter in self.signature.parameters.items():
            if not isinstance(parameter.annotation, str) and name in hints:
                self.types[name] = parameter.annotation
        self.mutates = mutates_args if isinstance(mutates_args, str) else set(mutates_args)
        if isinstance(self.mutates, str) and self.mutates != "unknown":
            self.fail(
                "expected mutates_args to be names of arguments or 'unknown', got "
                f"'{self.mutates}'; one name is given as ('{self.mutates}',)"
            )

    def fail(self, message: str) -> typing.NoReturn:
        raise ValueError(f"infer_schema: {message}\nthe function is {self.signature}")

    def argument(self, index: int, name: str, parameter: inspect.Parameter) -> str:
        annotation = self.types[name]
        if annotation is inspect.Parameter.empty:
            self.fail(f"expected a type for every argument, got none for '{name}'")
        text = type_text(annotation)
        if text is None:
            self.fail(
                f"expected argument '{name}' to be a Tensor, int, float, bool, str, Number, dtype "
                f"or device, or an Optional or a Sequence of one, got {_shown(annotation)}"
            )
        if self.mutates == "unknown":
            written = text.startswith("Tensor")
        else:
            written = name in self.mutates
        if written:
            if not text.startswith("Tensor"):
                self.fail(
                    f"expected mutates_args to name tensors or lists of tensors, got '{name}', "
                    f"which is {text}"
                )
            text = f"Tensor(a{index}!)" + text[len("Tensor") :]
        if parameter.default is inspect.Parameter.empty:
            return f"{text} {name}"
        default = _default_text(parameter.default)
        if default is None:
            self.fail(
                f"expected the default of '{name}' to be a number, str, dtype, device or None, got "
                f"{type(parameter.default).__name__}"
            )
        if default == "None" and not text.endswith("?"):
            text += "?"
        return f"{text} {name}={default}"

    def arguments(self) -> str:
        parts: List[str] = []
        kinds = inspect.Parameter
        for index, (name, parameter) in enumerate(self.signature.parameters.items()):
            if parameter.kind not in (kinds.POSITIONAL_OR_KEYWORD, kinds.KEYWORD_ONLY):
                self.fail(
                    f"expected arguments that can be given by name, got '{name}', which is "
                    f"{parameter.kind.description}"
                )
            if parameter.kind is kinds.KEYWORD_ONLY and "*" not in parts:
                parts.append("*")
            parts.append(self.argument(index, name, parameter))
        if not isinstance(self.mutates, str):
            unknown = sorted(self.mutates - set(self.signature.parameters))
            if unknown:
                self.fail(
                    f"expected mutates_args to name arguments, got {', '.join(map(repr, unknown))}"
                )
        return ", ".join(parts)

    def results(self) -> str:
        annotation = self.types["return"]
        if annotation is inspect.Parameter.empty:
            self.fail("expected a type for the result, got none; write '-> None' for no result")
        if annotation is None or annotation is type(None):
            return "()"
        if typing.get_origin(annotation) is tuple:
            parts = [self.result(a) for a in typing.get_args(annotation)]
            return f"({', '.join(parts)})" if len(parts) != 1 else parts[0]
        return self.result(annotation)

    def result(self, annotation: Any) -> str:
        text = type_text(annotation)
        if text not in _RESULTS:
            self.fail(
                "expected results that are Tensor, List[Tensor], int, float, bool or Number, got "
                f"{_shown(annotation)}"
            )
        return text


def _shown(annotation: Any) -> str:
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)


def infer_schema(
    prototype_function: Callable,
    /,
    *,
    mutates_args: Union[str, Iterable[str]],
    op_name: Optional[str] = None,
) -> str:
    """The schema of a function from the annotations of its arguments and result.

    `mutates_args` names the tensors that it writes to; "unknown" says that it may write to any.
    Types are Tensor, int, float, bool, str, types.Number, dtype and device, and an Optional or
    Sequence of one. ValueError for anything else.

    >>> def scale(x: Tensor, by: float = 2.0) -> Tensor: ...
    >>> infer_schema(scale, mutates_args=())
    '(Tensor x, float by=2.0) -> Tensor'
    """
    reader = _Reader(prototype_function, mutates_args)
    return f"{op_name or ''}({reader.arguments()}) -> {reader.results()}"
