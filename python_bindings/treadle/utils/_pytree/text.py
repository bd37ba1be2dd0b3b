"""Forms of trees as text, and read again.

Example:

    text = treespec_dumps(spec)         # JSON: the number of the format, and the form
    treespec_loads(text) == spec
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import enum
import importlib
import json
from typing import Any, Callable, Dict, NamedTuple, Optional, Tuple

from treadle.utils._pytree.registration import (
    NO_SERIALIZED_TYPE_NAME_FOUND,
    SERIALIZED_TYPE_TO_PYTHON_TYPE,
    SUPPORTED_SERIALIZED_TYPES,
)
from treadle.utils._pytree.spec import _LEAF_SPEC, TreeSpec
from treadle.utils._pytree.walk import tree_unflatten

DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL = 1


class EnumEncoder(json.JSONEncoder):
    """Writes members of enumerations by the names of their class and of themselves."""

    def default(self, o: Any) -> Any:
        """The written form of an object that JSON does not have."""
        if isinstance(o, enum.Enum):
            kind = type(o)
            place = f"{kind.__module__}:{kind.__qualname__}"
            return {"__enum__": True, "fqn": place, "name": o.name}
        return super().default(o)


def enum_object_hook(obj: Dict[str, Any]) -> Any:
    """For json.loads: the members that EnumEncoder wrote."""
    if not obj.get("__enum__"):
        return obj
    module, _, path = obj["fqn"].partition(":")
    kind: Any = importlib.import_module(module)
    for part in path.split("."):
        kind = getattr(kind, part)
    return kind[obj["name"]]


def _treespec_to_json(treespec: TreeSpec) -> Dict[str, Any]:
    if treespec.is_leaf():
        return {"type": None, "context": None, "children_spec": []}
    text = SUPPORTED_SERIALIZED_TYPES.get(treespec.type)
    if text is None or text.serialized_type_name == NO_SERIALIZED_TYPE_NAME_FOUND:
        raise NotImplementedError(
            f"treespec_dumps: expected classes with a name in text, got {treespec.type.__name__}; "
            "register_pytree_node(..., serialized_type_name=...) gives one"
        )
    if text.to_dumpable_context is not None:
        context = text.to_dumpable_context(treespec.context)
    else:
        try:
            context = json.dumps(treespec.context, cls=EnumEncoder)
        except TypeError as error:
            raise TypeError(
                "treespec_dumps: expected a context that JSON has, got that of "
                f"{treespec.type.__name__}; register_pytree_node(..., to_dumpable_context=..., "
                "from_dumpable_context=...) makes one of it"
            ) from error
    return {
        "type": text.serialized_type_name,
        "context": context,
        "children_spec": [_treespec_to_json(child) for child in treespec.children_specs],
    }


def _json_to_treespec(json_schema: Dict[str, Any]) -> TreeSpec:
    name = json_schema["type"]
    if name is None:
        return _LEAF_SPEC
    if name not in SERIALIZED_TYPE_TO_PYTHON_TYPE:
        raise NotImplementedError(
            f"treespec_loads: expected the name of a registered class, got '{name}'"
        )
    kind = SERIALIZED_TYPE_TO_PYTHON_TYPE[name]
    read: Optional[Callable] = SUPPORTED_SERIALIZED_TYPES[kind].from_dumpable_context
    written = json_schema["context"]
    if read is not None:
        context = read(written)
    else:
        context = json.loads(written, object_hook=enum_object_hook)
    return TreeSpec(
        kind, context, [_json_to_treespec(child) for child in json_schema["children_spec"]]
    )


class _ProtocolFn(NamedTuple):
    """The two ways of one format."""

    treespec_to_json: Callable[[TreeSpec], Any]
    json_to_treespec: Callable[[Any], TreeSpec]


_SUPPORTED_PROTOCOLS: Dict[int, _ProtocolFn] = {
    DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL: _ProtocolFn(_treespec_to_json, _json_to_treespec)
}


def _protocol(what: str, number: Any) -> _ProtocolFn:
    if number not in _SUPPORTED_PROTOCOLS:
        raise ValueError(
            f"{what}: expected one of the protocols {list(_SUPPORTED_PROTOCOLS)}, got {number}"
        )
    return _SUPPORTED_PROTOCOLS[number]


def treespec_dumps(treespec: TreeSpec, protocol: Optional[int] = None) -> str:
    """A form as text. TypeError for something else; NotImplementedError for a form with classes
    that were registered without a name; ValueError for an unknown protocol."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(
            f"treespec_dumps: expected treespec to be a TreeSpec, got {type(treespec).__name__}"
        )
    number = DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL if protocol is None else protocol
    written = _protocol("treespec_dumps", number).treespec_to_json(treespec)
    return json.dumps((number, written), cls=EnumEncoder)


def treespec_loads(serialized: str) -> TreeSpec:
    """The form that a text says. ValueError for an unknown protocol; NotImplementedError for a
    class that is not registered."""
    number, written = json.loads(serialized, object_hook=enum_object_hook)
    return _protocol("treespec_loads", number).json_to_treespec(written)


class _Asterisk(str):
    """The look of a leaf in a picture of a form."""

    def __repr__(self) -> str:
        return "*"


def treespec_pprint(treespec: TreeSpec) -> str:
    """A form as its tree would be printed, with a * for each leaf."""
    return repr(tree_unflatten([_Asterisk("*")] * treespec.num_leaves, treespec))


def pytree_to_str(treespec: TreeSpec) -> str:
    """treespec_dumps by its older name."""
    return treespec_dumps(treespec)


def str_to_pytree(json: str) -> TreeSpec:  # noqa: A002
    """treespec_loads by its older name."""
    return treespec_loads(json)


__all__: Tuple[str, ...] = (
    "DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL",
    "EnumEncoder",
    "enum_object_hook",
    "pytree_to_str",
    "str_to_pytree",
    "treespec_dumps",
    "treespec_loads",
    "treespec_pprint",
)
