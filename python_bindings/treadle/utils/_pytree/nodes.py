"""The classes whose objects are nodes of trees, and how each is taken apart and put together."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Tuple, Type

from treadle import _C
from treadle.utils._pytree.keys import GetAttrKey, KeyEntry, MappingKey, SequenceKey

PyTree = Any
Context = Any
DumpableContext = Any
Keyed = Tuple[List[Tuple[KeyEntry, Any]], Context]
FlattenFunc = Callable[[Any], Tuple[List[Any], Context]]
UnflattenFunc = Callable[[Iterable[Any], Context], Any]
FlattenWithKeysFunc = Callable[[Any], Keyed]
ToDumpableContextFn = Callable[[Context], DumpableContext]
FromDumpableContextFn = Callable[[DumpableContext], Context]


class NodeDef(NamedTuple):
    """How containers of one class are taken apart and put together."""

    type: Type[Any]
    flatten_fn: FlattenFunc
    unflatten_fn: UnflattenFunc
    flatten_with_keys_fn: Optional[FlattenWithKeysFunc] = None


# ---- the containers that Python has ----


def _with_places(values: Iterable[Any]) -> List[Tuple[KeyEntry, Any]]:
    return [(SequenceKey(i), value) for i, value in enumerate(values)]


def _with_keys(mapping: Dict[Any, Any]) -> List[Tuple[KeyEntry, Any]]:
    return [(MappingKey(key), value) for key, value in mapping.items()]


def _tuple_flatten(d: tuple) -> Tuple[List[Any], Context]:
    return list(d), None


def _tuple_flatten_with_keys(d: tuple) -> Keyed:
    return _with_places(d), None


def _tuple_unflatten(values: Iterable[Any], context: Context) -> tuple:
    return tuple(values)


def _list_flatten(d: list) -> Tuple[List[Any], Context]:
    return list(d), None


def _list_flatten_with_keys(d: list) -> Keyed:
    return _with_places(d), None


def _list_unflatten(values: Iterable[Any], context: Context) -> list:
    return list(values)


def _dict_flatten(d: dict) -> Tuple[List[Any], Context]:
    return list(d.values()), list(d)


def _dict_flatten_with_keys(d: dict) -> Keyed:
    return _with_keys(d), list(d)


def _dict_unflatten(values: Iterable[Any], context: Context) -> dict:
    return dict(zip(context, values))


_ordereddict_flatten = _dict_flatten
_ordereddict_flatten_with_keys = _dict_flatten_with_keys


def _ordereddict_unflatten(values: Iterable[Any], context: Context) -> OrderedDict:
    return OrderedDict(zip(context, values))


_odict_flatten, _odict_unflatten = _ordereddict_flatten, _ordereddict_unflatten


def _defaultdict_flatten(d: defaultdict) -> Tuple[List[Any], Context]:
    return list(d.values()), [d.default_factory, list(d)]


def _defaultdict_flatten_with_keys(d: defaultdict) -> Keyed:
    return _with_keys(d), [d.default_factory, list(d)]


def _defaultdict_unflatten(values: Iterable[Any], context: Context) -> defaultdict:
    return defaultdict(context[0], zip(context[1], values))


def _deque_flatten(d: deque) -> Tuple[List[Any], Context]:
    return list(d), d.maxlen


def _deque_flatten_with_keys(d: deque) -> Keyed:
    return _with_places(d), d.maxlen


def _deque_unflatten(values: Iterable[Any], context: Context) -> deque:
    return deque(values, context)


def _namedtuple_flatten(d: Any) -> Tuple[List[Any], Context]:
    return list(d), type(d)


def _namedtuple_flatten_with_keys(d: Any) -> Keyed:
    return [(GetAttrKey(name), value) for name, value in zip(d._fields, d)], type(d)


def _namedtuple_unflatten(values: Iterable[Any], context: Context) -> Any:
    return context(*values)


# ---- the table ----

SUPPORTED_NODES: Dict[Any, NodeDef] = {
    kind: NodeDef(kind, flatten, unflatten, with_keys)  # type: ignore[arg-type]
    for kind, flatten, unflatten, with_keys in (
        (tuple, _tuple_flatten, _tuple_unflatten, _tuple_flatten_with_keys),
        (list, _list_flatten, _list_unflatten, _list_flatten_with_keys),
        (dict, _dict_flatten, _dict_unflatten, _dict_flatten_with_keys),
        # Stands for all classes that namedtuple() makes.
        (namedtuple, _namedtuple_flatten, _namedtuple_unflatten, _namedtuple_flatten_with_keys),
        (
            OrderedDict,
            _ordereddict_flatten,
            _ordereddict_unflatten,
            _ordereddict_flatten_with_keys,
        ),
        (
            defaultdict,
            _defaultdict_flatten,
            _defaultdict_unflatten,
            _defaultdict_flatten_with_keys,
        ),
        (deque, _deque_flatten, _deque_unflatten, _deque_flatten_with_keys),
        (_C.Size, _tuple_flatten, lambda values, _: _C.Size(values), _tuple_flatten_with_keys),
        # The results of operators that have several with names.
        *(
            (kind, _tuple_flatten, lambda values, _, kind=kind: kind(values), None)
            for kind in _C._return_types().values()
        ),
    )
}
SUPPORTED_NODES.update(
    (kind, node._replace(flatten_with_keys_fn=_tuple_flatten_with_keys))
    for kind, node in SUPPORTED_NODES.items()
    if node.flatten_with_keys_fn is None
)

STANDARD_DICT_TYPES = frozenset({dict, OrderedDict, defaultdict})
BUILTIN_TYPES = frozenset({tuple, list, dict, namedtuple, OrderedDict, defaultdict, deque})


class structseq(tuple):  # noqa: N801
    """Stands for all classes of tuples with named parts that C code made."""


# ---- questions about classes ----


def is_namedtuple_class(cls: Any) -> bool:
    """Whether namedtuple() made the class, or it is derived from such a one."""
    fields = getattr(cls, "_fields", None)
    return (
        isinstance(cls, type)
        and issubclass(cls, tuple)
        and isinstance(fields, tuple)
        and all(isinstance(field, str) for field in fields)
    )


def is_namedtuple_instance(obj: Any) -> bool:
    """Whether an object is a named tuple."""
    return is_namedtuple_class(type(obj))


def is_namedtuple(obj: Any) -> bool:
    """Whether an object, or a class, is a named tuple."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def is_structseq_class(cls: Any) -> bool:
    """Whether C code made the class as a tuple with named parts, as those of operators' results."""
    return (
        isinstance(cls, type)
        and issubclass(cls, tuple)
        and cls is not structseq
        and all(
            isinstance(cls.__dict__.get(name), int)
            for name in ("n_fields", "n_sequence_fields", "n_unnamed_fields")
        )
    )


def is_structseq_instance(obj: Any) -> bool:
    """Whether an object is of such a class."""
    return is_structseq_class(type(obj))


def is_structseq(obj: Any) -> bool:
    """Whether an object, or a class, is such a one."""
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


_is_namedtuple_instance = is_namedtuple_instance


def _get_node_type(tree: Any) -> Any:
    """The key of the table for an object: its class, or namedtuple."""
    kind = type(tree)
    if kind not in SUPPORTED_NODES and is_namedtuple_class(kind):
        return namedtuple
    return kind


def definition_of(tree: Any) -> Optional[NodeDef]:
    """How an object is taken apart; None for a leaf."""
    found = SUPPORTED_NODES.get(type(tree))
    if found is None and isinstance(tree, tuple) and is_namedtuple_class(type(tree)):
        return SUPPORTED_NODES[namedtuple]
    return found
