"""TorchScript's types as objects: `ListType(IntType.get())` is List[int].

Each is equal to another of the same parts; those without parts are one object, `IntType.get()`.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, List, Optional, Sequence


class Type:
    """Base of types."""

    _written = ""

    @property
    def annotation_str(self) -> str:
        """How a program writes it."""
        return self.str()

    def str(self) -> str:
        """How it is printed."""
        return self._written

    def kind(self) -> Any:
        """The name of its class."""
        return type(self).__name__

    def containedTypes(self) -> List["Type"]:  # noqa: N802
        """Its parts."""
        return []

    def is_interface_type(self) -> bool:
        """Whether it is what an interface declares."""
        return isinstance(self, InterfaceType)

    def isSubtypeOf(self, other: "Type") -> bool:  # noqa: N802
        """Whether its values are values of the other. RuntimeError for what is no type."""
        if not isinstance(other, Type):
            raise RuntimeError(f"isSubtypeOf: expected a type, got {other!r}")
        if isinstance(self, UnionType):
            return all(part.isSubtypeOf(other) for part in self._options)
        if isinstance(other, UnionType):
            return any(self.isSubtypeOf(part) for part in other._options)
        if isinstance(other, AnyType) or self == other:
            return True
        if isinstance(other, NumberType):
            return isinstance(self, (IntType, FloatType, ComplexType))
        ours, theirs = self.containedTypes(), other.containedTypes()
        both = isinstance(self, TupleType) and isinstance(other, TupleType)
        both = both and len(ours) == len(theirs)
        return both and all(a.isSubtypeOf(b) for a, b in zip(ours, theirs))

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.str() == other.str()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> Any:
        return self.annotation_str

    __str__ = __repr__


class _Single(Type):
    """A type without parts."""

    _only: Optional["_Single"] = None

    @classmethod
    def get(cls) -> Any:
        """The type."""
        if cls.__dict__.get("_only") is None:
            cls._only = cls()
        return cls._only


def _single(name: Any, written: Any, doc: Any) -> Any:
    body = {"_written": written, "__doc__": doc, "__module__": "treadle.jit._type_objects"}
    return type(name, (_Single,), body)


AnyType = _single("AnyType", "Any", "What any value is of.")
BoolType = _single("BoolType", "bool", "Truth values.")
ComplexType = _single("ComplexType", "complex", "Complex numbers.")
DeviceObjType = _single("DeviceObjType", "Device", "Devices.")
FloatType = _single("FloatType", "float", "Floating-point numbers.")
GeneratorType = _single("GeneratorType", "Generator", "Random number generators.")
IntType = _single("IntType", "int", "Integers, dtypes and the like.")
NoneType = _single("NoneType", "NoneType", "None.")
NumberType = _single("NumberType", "number", "Integers, floating-point and complex numbers.")
PyObjectType = _single("PyObjectType", "PyObject", "Any objects of Python.")
StreamObjType = _single("StreamObjType", "Stream", "Streams of devices.")
StringType = _single("StringType", "str", "Texts.")
SymBoolType = _single("SymBoolType", "bool", "Truth values of sizes.")
SymIntType = _single("SymIntType", "int", "Sizes.")
TensorType = _single("TensorType", "Tensor", "Tensors.")


class _OfOne(Type):
    """A type with one part."""

    def __init__(self, element: Type) -> None:
        self._element = element

    def getElementType(self) -> Type:  # noqa: N802
        """The part."""
        return self._element

    def containedTypes(self) -> List[Type]:  # noqa: N802
        """The part, in a list."""
        return [self._element]

    def str(self) -> Any:
        return f"{self._written}[{self._element.str()}]"


class ListType(_OfOne):
    """Lists of values of one type."""

    _written = "List"

    @staticmethod
    def ofInts() -> "ListType":  # noqa: N802
        """Lists of integers."""
        return ListType(IntType.get())

    @staticmethod
    def ofFloats() -> "ListType":  # noqa: N802
        """Lists of floating-point numbers."""
        return ListType(FloatType.get())

    @staticmethod
    def ofBools() -> "ListType":  # noqa: N802
        """Lists of truth values."""
        return ListType(BoolType.get())

    @staticmethod
    def ofStrings() -> "ListType":  # noqa: N802
        """Lists of texts."""
        return ListType(StringType.get())

    @staticmethod
    def ofTensors() -> "ListType":  # noqa: N802
        """Lists of tensors."""
        return ListType(TensorType.get())


class FutureType(_OfOne):
    """Futures."""

    _written = "Future"


class AwaitType(_OfOne):
    """Values that are computed when they are asked for."""

    _written = "Await"


class RRefType(_OfOne):
    """Values of another process."""

    _written = "RRef"


class DictType(Type):
    """Dicts from one type to another."""

    def __init__(self, key: Type, value: Type) -> None:
        self._key, self._value = key, value

    def getKeyType(self) -> Type:  # noqa: N802
        """The type of keys."""
        return self._key

    def getValueType(self) -> Type:  # noqa: N802
        """The type of values."""
        return self._value

    def containedTypes(self) -> List[Type]:  # noqa: N802
        """Both."""
        return [self._key, self._value]

    def str(self) -> Any:
        return f"Dict[{self._key.str()}, {self._value.str()}]"


class TupleType(Type):
    """Tuples of so many values of these types."""

    def __init__(self, elements: Sequence[Type]) -> None:
        self._elements = list(elements)

    def elements(self) -> List[Type]:
        """The types."""
        return list(self._elements)

    containedTypes = elements  # noqa: N815

    def str(self) -> Any:
        return f"Tuple[{', '.join(e.str() for e in self._elements) or '()'}]"


class UnionType(Type):
    """Values of any of these types, in whichever order."""

    def __init__(self, options: Sequence[Type]) -> None:
        self._options: List[Type] = []
        for option in options:
            for part in option._options if isinstance(option, UnionType) else [option]:
                if part not in self._options:
                    self._options.append(part)

    def containedTypes(self) -> List[Type]:  # noqa: N802
        """The types."""
        return list(self._options)

    def __eq__(self, other: object) -> bool:
        ours, theirs = self._options, other._options if isinstance(other, UnionType) else []
        return len(ours) == len(theirs) and all(option in theirs for option in ours)

    def str(self) -> Any:
        rest = [o for o in self._options if not isinstance(o, NoneType)]
        if len(rest) == 1 and len(self._options) == 2:
            return f"Optional[{rest[0].str()}]"
        return f"Union[{', '.join(o.str() for o in self._options)}]"


class OptionalType(UnionType):
    """Values of a type, and None."""

    def __init__(self, element: Type) -> None:
        super().__init__([element, NoneType.get()])
        self._element = element._element if isinstance(element, OptionalType) else element  # type: ignore[has-type]

    @staticmethod
    def ofTensor() -> "OptionalType":  # noqa: N802
        """Tensors and None."""
        return OptionalType(TensorType.get())

    def getElementType(self) -> Type:  # noqa: N802
        """The type."""
        return self._element

    def containedTypes(self) -> List[Type]:  # noqa: N802
        """The type, in a list."""
        return [self._element]


class _Named(Type):
    """A type with a name."""

    def __init__(self, qualified_name: Any) -> None:
        self._written = qualified_name

    def qualified_name(self) -> Any:
        """The name with its module."""
        return self._written

    def name(self) -> Any:
        """The name alone."""
        return self._written.rpartition(".")[2]


class ClassType(_Named):
    """Objects of a class."""


class InterfaceType(_Named):
    """Objects that have the methods of an interface."""


class EnumType(_Named):
    """The members of an enumeration, whose values are of one type."""

    def __init__(self, qualified_name: Any, value_type: Type, members: Sequence[Any]) -> None:
        super().__init__(qualified_name)
        self._value, self._members = value_type, list(members)

    def str(self) -> Any:
        return f"Enum<{self._written}>"


def unify_type_list(types: Sequence[Type]) -> Type:
    """The one type that the values of all have: the type of which the others are, or an optional
    one. RuntimeError where there is none."""
    if not types:
        raise RuntimeError("unify_type_list: expected types, got none")
    found = types[0]
    for other in types[1:]:
        if other.isSubtypeOf(found):
            continue
        if found.isSubtypeOf(other):
            found = other
        elif isinstance(other, NoneType):
            found = OptionalType(found)
        elif isinstance(found, NoneType):
            found = OptionalType(other)
        else:
            raise RuntimeError(f"unify_type_list: expected types that fit, got {list(types)}")
    return found


__all__ = [
    "AnyType", "AwaitType", "BoolType", "ClassType", "ComplexType", "DeviceObjType", "DictType",
    "EnumType", "FloatType", "FutureType", "GeneratorType", "IntType", "InterfaceType", "ListType",
    "NoneType", "NumberType", "OptionalType", "PyObjectType", "RRefType", "StreamObjType",
    "StringType", "SymBoolType", "SymIntType", "TensorType", "TupleType", "Type", "UnionType",
    "unify_type_list",
]  # fmt: skip
