"""Statements of a program on the sizes of its arguments: which vary, in which range, and how they
relate.

    B = ShapeVar("batch", max=64)

    @dynamic_spec({"x": TensorSpec([B, STATIC]), "n": IntVar("n")})
    def step(x, n): ...

The specs are kept with the function, for whoever reads them. Programs run as they are written, for
the sizes that come, so nothing is compiled and nothing is checked.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import itertools
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, TypeVar, Union

_F = TypeVar("_F", bound=Callable[..., Any])

STATIC = None  # a size that does not vary

_SUM, _PRODUCT, _ATOM = range(3)


class _Expression:
    """A number made of variables, by its text."""

    def __init__(self, text: str, strength: int = _ATOM) -> None:
        self._text, self._strength = text, strength

    def __repr__(self) -> str:
        return self._text

    def _within(self, strength: int) -> str:
        return self._text if self._strength >= strength else f"({self._text})"

    def __add__(self, other: Any) -> _Expression:
        return _Expression(f"{_text(self, _SUM)} + {_text(other, _SUM)}", _SUM)

    def __radd__(self, other: Any) -> _Expression:
        return self + other

    def __sub__(self, other: Any) -> _Expression:
        return _Expression(f"{_text(self, _SUM)} - {_text(other, _PRODUCT)}", _SUM)

    def __rsub__(self, other: Any) -> _Expression:
        return _Expression(f"{_text(other, _SUM)} - {_text(self, _PRODUCT)}", _SUM)

    def __mul__(self, other: Any) -> _Expression:
        first, second = (other, self) if isinstance(other, int) else (self, other)
        return _Expression(f"{_text(first, _PRODUCT)}*{_text(second, _PRODUCT)}", _PRODUCT)

    def __rmul__(self, other: Any) -> _Expression:
        return self * other

    def __floordiv__(self, other: Any) -> _Expression:
        return _Expression(f"{_text(self, _PRODUCT)}//{_text(other, _ATOM)}", _PRODUCT)

    def __mod__(self, other: Any) -> _Expression:
        return _Expression(f"Mod({_text(self, _SUM)}, {_text(other, _SUM)})")

    def __neg__(self) -> _Expression:
        return _Expression(f"-{_text(self, _PRODUCT)}", _PRODUCT)

    def __gt__(self, other: Any) -> _Assumption:
        return _Assumption(f"{_text(self, _SUM)} > {_text(other, _SUM)}")

    def __ge__(self, other: Any) -> _Assumption:
        return _Assumption(f"{_text(self, _SUM)} >= {_text(other, _SUM)}")

    def __lt__(self, other: Any) -> _Assumption:
        return _Assumption(f"{_text(self, _SUM)} < {_text(other, _SUM)}")

    def __le__(self, other: Any) -> _Assumption:
        return _Assumption(f"{_text(self, _SUM)} <= {_text(other, _SUM)}")

    def __eq__(self, other: Any) -> Any:
        return _Assumption(f"Eq({_text(self, _SUM)}, {_text(other, _SUM)})")

    def __ne__(self, other: Any) -> Any:
        return _Assumption(f"Ne({_text(self, _SUM)}, {_text(other, _SUM)})")

    def __hash__(self) -> int:
        return id(self)

    def __bool__(self) -> bool:
        raise TypeError(f"{self}: expected a number, got a size that is not known yet")


class _Assumption:
    """A relation of numbers, by its text."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text

    def __bool__(self) -> bool:
        raise TypeError(f"{self}: expected a truth value, got a relation of sizes not known yet")


def _text(value: Any, strength: int) -> str:
    if isinstance(value, IntVar):
        return value._symbol
    if isinstance(value, _Expression):
        return value._within(strength)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise TypeError(f"expected a number or a variable, got a {type(value).__name__}")


class IntVar(_Expression):
    """A whole number that varies, from `min` to `max` where they are given. ValueError for bounds
    that no number is between."""

    _numbers = itertools.count()

    def __init__(
        self,
        name: Optional[str] = None,
        min: Optional[int] = None,
        max: Optional[int] = None,
        optimization_hint: Optional[int] = None,
    ) -> None:
        if min is not None and max is not None and min > max:
            raise ValueError(f"{type(self).__name__}: expected min <= max, got {min} and {max}")
        self.name, self.min, self.max = name, min, max
        self.optimization_hint = optimization_hint
        self._symbol = f"{'anon' if name is None else name}#{next(self._numbers)}"
        super().__init__(self._described())

    def _described(self) -> str:
        given = ((key, getattr(self, key)) for key in ("min", "max", "optimization_hint"))
        parts = [f"{key}={value}" for key, value in given if value is not None]
        return f"{type(self).__name__}({', '.join([self._symbol, *parts])})"

    def to_jsonable(self) -> Dict[str, Any]:
        """The variable as a dict for JSON."""
        keys = ("name", "min", "max", "optimization_hint")
        return {"type": type(self).__name__, **{key: getattr(self, key) for key in keys}}


class ShapeVar(IntVar):
    """A size that varies, which is at least 0. ValueError for a lower `min`."""

    def __init__(
        self,
        name: Optional[str] = None,
        min: Optional[int] = 0,
        max: Optional[int] = None,
        optimization_hint: Optional[int] = None,
    ) -> None:
        if min is None or min < 0:
            raise ValueError(f"ShapeVar: expected min >= 0, got {min}; IntVar takes any number")
        super().__init__(name, min, max, optimization_hint)


def _jsonable(spec: Any) -> Any:
    if hasattr(spec, "to_jsonable"):
        return spec.to_jsonable()
    return repr(spec) if isinstance(spec, _Expression) else spec


def _lines(label: str, spec: Any) -> List[str]:
    """One line, or that of the label and below it those of what has several."""
    lines = repr(spec).splitlines()
    if len(lines) == 1 and not isinstance(spec, _Several):
        return [f"{label}: {lines[0]}"]
    return [f"{label}:", *(f"  {line}" for line in lines)]


class _Several:
    """A spec with parts, which prints them below one another."""

    _title = ""

    def _parts(self) -> Iterable[tuple]:
        raise NotImplementedError

    def __repr__(self) -> str:
        below = [line for label, spec in self._parts() for line in _lines(label, spec)]
        if not self._title:
            return "\n".join(below)
        return "\n".join([f"{self._title}:", *(f"  {line}" for line in below)])


class TensorSpec(_Several):
    """The size of each dimension: a variable, an expression, a number, or STATIC. TypeError for
    something else."""

    _title = "Tensor"

    def __init__(self, dims: Iterable[Any]) -> None:
        self._dims = list(dims)
        for i, dim in enumerate(self._dims):
            fits = dim is None or isinstance(dim, _Expression)
            if not fits and (not isinstance(dim, int) or isinstance(dim, bool)):
                raise TypeError(
                    f"TensorSpec: expected a variable, a number or STATIC as size {i}, got {dim!r}"
                )

    def _parts(self) -> Iterable[tuple]:
        return enumerate(self._dims)

    def __len__(self) -> int:
        return len(self._dims)

    def __getitem__(self, index: int) -> Any:
        return self._dims[index]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._dims)

    def to_jsonable(self) -> Dict[str, Any]:
        """The spec as a dict for JSON."""
        return {"type": "TensorSpec", "dims": list(map(_jsonable, self._dims))}


class DictSpec(_Several):
    """The specs of the values of a dict, by its keys, which are str or int: TypeError."""

    _title = "dict_spec"

    def __init__(self, entries: Optional[Dict[Any, Any]] = None) -> None:
        self._entries = dict(entries or {})
        for key in self._entries:
            if not isinstance(key, (str, int)):
                raise TypeError(f"DictSpec: expected keys that are str or int, got {key!r}")

    def _parts(self) -> Iterable[tuple]:
        return ((f"[{key!r}]", spec) for key, spec in self._entries.items())

    def items(self) -> Any:
        """The keys and specs."""
        return self._entries.items()

    def to_jsonable(self) -> Dict[str, Any]:
        """The spec as a dict for JSON."""
        entries = {key: _jsonable(spec) for key, spec in self._entries.items()}
        return {"type": "DictSpec", "entries": entries}


class ObjectSpec(_Several):
    """The specs of the attributes of an object."""

    _title = "object_spec"

    def __init__(self, fields: Optional[Dict[str, Any]] = None) -> None:
        self._fields = dict(fields or {})

    def _parts(self) -> Iterable[tuple]:
        return ((f".{name}", spec) for name, spec in self._fields.items())

    def items(self) -> Any:
        """The names and specs."""
        return self._fields.items()

    def to_jsonable(self) -> Dict[str, Any]:
        """The spec as a dict for JSON."""
        fields = {name: _jsonable(spec) for name, spec in self._fields.items()}
        return {"type": "ObjectSpec", "fields": fields}


class SeqSpec(_Several):
    """The specs of the items of a list or tuple; those that have none do not vary."""

    _title = "seq_spec"

    def __init__(self, entries: Iterable[Any]) -> None:
        self._entries = list(entries)

    def _parts(self) -> Iterable[tuple]:
        return ((f"[{i}]", spec) for i, spec in enumerate(self._entries))

    def __len__(self) -> int:
        return len(self._entries)

    def __getitem__(self, index: int) -> Any:
        return self._entries[index]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._entries)

    def to_jsonable(self) -> Dict[str, Any]:
        """The spec as a dict for JSON."""
        return {"type": "SeqSpec", "entries": list(map(_jsonable, self._entries))}


class ParamsSpec(_Several):
    """The specs of the parameters of a function, by their names; a list for "*args", a dict for
    "**kwargs". TypeError for names that are no str, ValueError for other values of these two."""

    _VARARGS_KEY, _VARKW_KEY = "*args", "**kwargs"

    def __init__(self, params: Optional[Dict[str, Any]] = None) -> None:
        self._params = dict(params or {})
        for name, spec in self._params.items():
            if not isinstance(name, str):
                raise TypeError(f"ParamsSpec: expected names that are str, got {name!r}")
            kind = {self._VARARGS_KEY: list, self._VARKW_KEY: dict}.get(name)
            if kind is not None and not isinstance(spec, kind):
                got = type(spec).__name__
                raise ValueError(f"ParamsSpec: expected a {kind.__name__} for {name}, got a {got}")

    def _parts(self) -> Iterable[tuple]:
        for name, spec in self._params.items():
            if isinstance(spec, (list, dict)):
                yield name, _Nested(spec.items() if isinstance(spec, dict) else enumerate(spec))
            else:
                yield name, spec

    def to_jsonable(self) -> Dict[str, Any]:
        """The spec as a dict for JSON."""
        params: Dict[str, Any] = {}
        for name, spec in self._params.items():
            if isinstance(spec, list):
                params[name] = list(map(_jsonable, spec))
            elif isinstance(spec, dict):
                params[name] = {key: _jsonable(value) for key, value in spec.items()}
            else:
                params[name] = _jsonable(spec)
        return {"type": "ParamsSpec", "params": params}


class _Nested(_Several):
    def __init__(self, parts: Iterable[tuple]) -> None:
        self._all = list(parts)

    def _parts(self) -> Iterable[tuple]:
        return self._all


class ShapesSpec(_Several):
    """The specs of the parameters of a function, and relations of the variables in them. TypeError
    for others, NotImplementedError for `globals`, which PyTorch does not take either."""

    _title = "shapes_spec"

    def __init__(
        self,
        params: Union[ParamsSpec, Dict[str, Any], None] = None,
        globals: Optional[Dict[str, Any]] = None,
        assumptions: Optional[Iterable[Any]] = None,
    ) -> None:
        if globals is not None:
            raise NotImplementedError("ShapesSpec: expected no globals, got some")
        if params is not None and not isinstance(params, (ParamsSpec, dict)):
            got = type(params).__name__
            raise TypeError(f"ShapesSpec: expected a ParamsSpec or a dict, got a {got}")
        self.params = ParamsSpec(params) if isinstance(params, dict) else params
        self.assumptions = list(assumptions or [])
        for assumption in self.assumptions:
            if not isinstance(assumption, _Assumption):
                raise TypeError(f"ShapesSpec: expected relations of sizes, got {assumption!r}")

    def _parts(self) -> Iterable[tuple]:
        if self.params is not None:
            yield "params", self.params
        if self.assumptions:
            yield "assumptions", _Texts(self.assumptions)

    def to_jsonable(self) -> Dict[str, Any]:
        """The spec as a dict for JSON."""
        found: Dict[str, Any] = {"type": "ShapesSpec", "params": _jsonable(self.params)}
        if self.assumptions:
            found["assumptions"] = list(map(repr, self.assumptions))
        return found


class _Texts(_Several):
    def __init__(self, values: Iterable[Any]) -> None:
        self._values = list(values)

    def __repr__(self) -> str:
        return "\n".join(map(repr, self._values))


LeafIntSpec = IntVar | int | None
LeafSpec = IntVar | int | None | TensorSpec
IntermediateSpec = IntVar | int | None | TensorSpec | ObjectSpec | DictSpec | SeqSpec


def dynamic_spec(spec: Any) -> Callable[[_F], _F]:
    """A decorator that keeps a ParamsSpec, ShapesSpec or dict with a function, as `_dynamic_spec`.
    TypeError for something else, ValueError for a function that has one."""
    if not isinstance(spec, (dict, ParamsSpec, ShapesSpec)):
        got = type(spec).__name__
        raise TypeError(f"dynamic_spec: expected a dict, ParamsSpec or ShapesSpec, got a {got}")
    kept = spec if isinstance(spec, ShapesSpec) else ShapesSpec(spec)

    def decorate(function: _F) -> _F:
        if hasattr(function, "_dynamic_spec"):
            name = getattr(function, "__name__", repr(function))
            raise ValueError(f"dynamic_spec: expected {name} without a spec, got one with another")
        function._dynamic_spec = kept  # type: ignore[attr-defined]
        return function

    return decorate


__all__ = [
    "DictSpec",
    "IntVar",
    "IntermediateSpec",
    "LeafIntSpec",
    "LeafSpec",
    "ObjectSpec",
    "ParamsSpec",
    "STATIC",
    "SeqSpec",
    "ShapeVar",
    "ShapesSpec",
    "TensorSpec",
    "dynamic_spec",
]
