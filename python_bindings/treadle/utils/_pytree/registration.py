"""Making objects of other classes nodes."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import dataclasses
from collections import defaultdict, namedtuple
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple

from treadle.utils._pytree.keys import GetAttrKey
from treadle.utils._pytree.nodes import (
    SUPPORTED_NODES,
    Context,
    DumpableContext,
    FlattenFunc,
    FlattenWithKeysFunc,
    FromDumpableContextFn,
    Keyed,
    NodeDef,
    ToDumpableContextFn,
    UnflattenFunc,
    is_namedtuple_class,
)

NO_SERIALIZED_TYPE_NAME_FOUND = "NO_SERIALIZED_TYPE_NAME_FOUND"


class _SerializeNodeDef(NamedTuple):
    """How a node of a class is written in text: its name there, and its context."""

    typ: type
    serialized_type_name: str
    to_dumpable_context: Optional[ToDumpableContextFn]
    from_dumpable_context: Optional[FromDumpableContextFn]


SUPPORTED_SERIALIZED_TYPES: Dict[Any, _SerializeNodeDef] = {}
SERIALIZED_TYPE_TO_PYTHON_TYPE: Dict[str, Any] = {}
CONSTANT_NODES: set = set()


def set_text(
    cls: Any,
    name: Optional[str],
    to_text: Optional[ToDumpableContextFn] = None,
    from_text: Optional[FromDumpableContextFn] = None,
) -> None:
    """Say how nodes of a class are written; a class without a name cannot be."""
    given = NO_SERIALIZED_TYPE_NAME_FOUND if name is None else name
    SUPPORTED_SERIALIZED_TYPES[cls] = _SerializeNodeDef(cls, given, to_text, from_text)
    if name is not None:
        SERIALIZED_TYPE_TO_PYTHON_TYPE[name] = cls


def register_pytree_node(
    cls: type,
    flatten_fn: FlattenFunc,
    unflatten_fn: UnflattenFunc,
    *,
    serialized_type_name: Optional[str] = None,
    to_dumpable_context: Optional[ToDumpableContextFn] = None,
    from_dumpable_context: Optional[FromDumpableContextFn] = None,
    flatten_with_keys_fn: Optional[FlattenWithKeysFunc] = None,
) -> None:
    """Make objects of `cls` nodes: flatten_fn(object) gives (children, context), and
    unflatten_fn(children, context) the object again.

    flatten_with_keys_fn(object) gives ([(key, child), ...], context); without it there are no paths
    through such a node. `serialized_type_name` is what treespec_dumps() writes for the class,
    `to_dumpable_context` makes its contexts something that JSON has, and `from_dumpable_context` is
    the way back. ValueError for a class that is a node already, and where one of the latter two is
    given without the other.
    """
    if cls in SUPPORTED_NODES:
        raise ValueError(
            f"register_pytree_node: expected a new class, got {_class_name(cls)} again: it is "
            "already registered as pytree node."
        )
    if (to_dumpable_context is None) != (from_dumpable_context is None):
        raise ValueError(
            "register_pytree_node: expected both to_dumpable_context and from_dumpable_context for "
            f"{_class_name(cls)}, or neither, got one"
        )
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)
    set_text(cls, serialized_type_name, to_dumpable_context, from_dumpable_context)


_private_register_pytree_node = register_pytree_node


def _register_pytree_node(
    cls: type,
    flatten_fn: FlattenFunc,
    unflatten_fn: UnflattenFunc,
    to_str_fn: Any = None,
    maybe_from_str_fn: Any = None,
    **described: Any,
) -> None:
    """register_pytree_node by its older name, which took two functions that are no longer used."""
    register_pytree_node(cls, flatten_fn, unflatten_fn, **described)


def _deregister_pytree_node(cls: type) -> None:
    """Make objects of a class leaves again."""
    del SUPPORTED_NODES[cls]
    name = SUPPORTED_SERIALIZED_TYPES.pop(cls).serialized_type_name
    if SERIALIZED_TYPE_TO_PYTHON_TYPE.get(name) is cls:
        del SERIALIZED_TYPE_TO_PYTHON_TYPE[name]
    CONSTANT_NODES.discard(cls)


def _class_name(cls: Any) -> str:
    return getattr(cls, "__name__", repr(cls))


def _register_namedtuple(cls: type, *, serialized_type_name: str) -> None:
    """Give a class of named tuples, which are nodes already, a name in text."""
    set_text(cls, serialized_type_name)


# ---- data classes ----


def _fields_of(
    cls: Any, field_names: Optional[Sequence[str]], dropped: Optional[Sequence[str]]
) -> List[str]:
    drop = list(dropped or ())
    if not dataclasses.is_dataclass(cls):
        if field_names is None:
            raise ValueError(
                "register_dataclass: expected field_names for a class that is not a dataclass, got "
                f"none for {_class_name(cls)}"
            )
        return [name for name in field_names if name not in drop]
    own = [field.name for field in dataclasses.fields(cls) if field.init]
    unknown = sorted(set(drop) - set(own))
    if unknown:
        raise ValueError(
            f"register_dataclass: expected drop_field_names among the fields of {_class_name(cls)}"
            f", got {', '.join(unknown)}"
        )
    kept = [name for name in own if name not in drop]
    if field_names is not None and set(field_names) != set(kept):
        raise ValueError(
            f"register_dataclass: expected field_names to be the fields of {_class_name(cls)}, "
            f"{', '.join(kept)}, got {', '.join(field_names)}"
        )
    return list(kept if field_names is None else field_names)


def register_dataclass(
    cls: type,
    *,
    field_names: Optional[List[str]] = None,
    drop_field_names: Optional[List[str]] = None,
    serialized_type_name: Optional[str] = None,
) -> None:
    """Make objects of a dataclass nodes, with the fields as children.

    `drop_field_names` are left out, and come back as their defaults; so are fields that the class
    does not take when it is made. A field that is None is no child. A class that is not a dataclass
    needs `field_names`. ValueError for names that are not the class's.
    """
    names = _fields_of(cls, field_names, drop_field_names)

    def parts(obj: Any) -> Tuple[List[str], Context]:
        there = [name for name in names if getattr(obj, name) is not None]
        return there, [there, [name for name in names if name not in there]]

    def flatten(obj: Any) -> Tuple[List[Any], Context]:
        there, context = parts(obj)
        return [getattr(obj, name) for name in there], context

    def flatten_with_keys(obj: Any) -> Keyed:
        there, context = parts(obj)
        return [(GetAttrKey(name), getattr(obj, name)) for name in there], context

    def unflatten(values: Iterable[Any], context: Context) -> Any:
        there, absent = context
        return cls(**dict(zip(there, values)), **dict.fromkeys(absent))

    register_pytree_node(
        cls,
        flatten,
        unflatten,
        serialized_type_name=serialized_type_name,
        flatten_with_keys_fn=flatten_with_keys,
    )


# ---- constants ----


@dataclasses.dataclass(frozen=True)
class ConstantNode:
    """The context of a node that is a constant: the constant."""

    value: Any


def register_constant(cls: type) -> None:
    """Make objects of a class a part of the form: nodes without children. They are compared, and
    are hashed. TypeError for a class that has no `__eq__` or no `__hash__` of its own."""
    if cls.__eq__ is object.__eq__:  # type: ignore[comparison-overlap]
        raise TypeError(
            "register_constant: expected a class with an `__eq__` of its own, got "
            f"{_class_name(cls)}, which has a default `__eq__` implementation"
        )
    if cls.__hash__ is None:
        raise TypeError(
            "register_constant: expected a class with a `__hash__`, as a frozen dataclass has, got "
            f"{_class_name(cls)}"
        )
    register_pytree_node(
        cls,
        lambda value: ([], ConstantNode(value)),
        lambda _, context: context.value,
        flatten_with_keys_fn=lambda value: ([], ConstantNode(value)),
    )
    CONSTANT_NODES.add(cls)


def is_constant_class(cls: Any) -> bool:
    """Whether register_constant() was given the class."""
    return isinstance(cls, type) and cls in CONSTANT_NODES


# ---- the text of what Python has ----


def _namedtuple_serialize(context: Context) -> DumpableContext:
    name = SUPPORTED_SERIALIZED_TYPES.get(context)
    if name is None or name.serialized_type_name == NO_SERIALIZED_TYPE_NAME_FOUND:
        raise NotImplementedError(
            f"treespec_dumps: expected a name for the named tuples {_class_name(context)}, got "
            "none; _register_namedtuple(cls, serialized_type_name=...) gives one"
        )
    return name.serialized_type_name


def _namedtuple_deserialize(dumpable_context: DumpableContext) -> Context:
    cls = SERIALIZED_TYPE_TO_PYTHON_TYPE.get(dumpable_context)
    if not is_namedtuple_class(cls):
        raise NotImplementedError(
            f"treespec_loads: expected the name of a class of named tuples, got "
            f"'{dumpable_context}'; _register_namedtuple(cls, serialized_type_name=...) gives one"
        )
    return cls


def _defaultdict_serialize(context: Context) -> DumpableContext:
    factory, keys = context
    return {
        "default_factory_module": factory.__module__,
        "default_factory_name": factory.__qualname__,
        "dict_context": keys,
    }


def _defaultdict_deserialize(dumpable_context: DumpableContext) -> Context:
    import importlib

    module, name = (dumpable_context[f"default_factory_{part}"] for part in ("module", "name"))
    factory = getattr(importlib.import_module(module), name)
    return [factory, dumpable_context["dict_context"]]


for _kind in SUPPORTED_NODES:
    set_text(_kind, f"{_kind.__module__}.{_kind.__name__}")
set_text(namedtuple, "collections.namedtuple", _namedtuple_serialize, _namedtuple_deserialize)
set_text(defaultdict, "collections.defaultdict", _defaultdict_serialize, _defaultdict_deserialize)
