"""Trees of Python containers: taken apart into leaves and put together again.

    leaves, spec = tree_flatten({"a": [x, y], "b": z})      # [x, y, z] and the form
    tree_unflatten([1, 2, 3], spec)                         # {"a": [1, 2], "b": 3}
    tree_map(lambda t: t * 2, tree)                         # the same form, other leaves

Tuples, named tuples, lists, dictionaries (in their own order), OrderedDict, defaultdict, deque and
results with named parts are nodes; so are classes given to register_pytree_node(). Anything else,
None too, is a leaf.
"""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, defaultdict, deque, namedtuple
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Tuple, Type, Union

PyTree = Any
Context = Any
Flatten = Callable[[Any], Tuple[List[Any], Context]]
Unflatten = Callable[[Iterable[Any], Context], Any]


class NodeDef(NamedTuple):
    """How containers of one class are taken apart and put together."""

    type: Any
    flatten_fn: Flatten
    unflatten_fn: Unflatten


def _is_named_tuple(kind: type) -> bool:
    fields = getattr(kind, "_fields", None)
    return issubclass(kind, tuple) and isinstance(fields, tuple)


def _is_structure(kind: type) -> bool:
    """Whether it is a tuple with named parts that C code made, as results of operators are."""
    return issubclass(kind, tuple) and hasattr(kind, "n_sequence_fields")


def _flatten_dict(d: dict) -> Tuple[List[Any], Context]:
    return list(d.values()), list(d)


def _unflatten_dict(values: Iterable[Any], keys: Context) -> dict:
    return dict(zip(keys, values))


SUPPORTED_NODES: Dict[Any, NodeDef] = {
    definition.type: definition
    for definition in (
        NodeDef(tuple, lambda t: (list(t), None), lambda values, _: tuple(values)),
        NodeDef(list, lambda t: (list(t), None), lambda values, _: list(values)),
        NodeDef(dict, _flatten_dict, _unflatten_dict),
        NodeDef(OrderedDict, _flatten_dict, lambda values, keys: OrderedDict(zip(keys, values))),
        NodeDef(
            defaultdict,
            lambda d: (list(d.values()), [d.default_factory, list(d)]),
            lambda values, context: defaultdict(context[0], zip(context[1], values)),
        ),
        NodeDef(deque, lambda d: (list(d), d.maxlen), lambda values, size: deque(values, size)),
    )
}


class structseq(tuple):
    """Stands for all classes of tuples with named parts that C code made."""


_NAMED_TUPLE = NodeDef(namedtuple, lambda t: (list(t), type(t)), lambda values, kind: kind(*values))
_STRUCTURE = NodeDef(structseq, lambda t: (list(t), type(t)), lambda values, kind: kind(values))
SUPPORTED_NODES[namedtuple] = _NAMED_TUPLE
SUPPORTED_NODES[structseq] = _STRUCTURE


def register_pytree_node(
    cls: type, flatten_fn: Flatten, unflatten_fn: Unflatten, **described: Any
) -> None:
    """Make objects of `cls` nodes: flatten_fn(object) gives (children, context), and
    unflatten_fn(children, context) the object again. ValueError for a class that is one already."""
    if cls in SUPPORTED_NODES:
        raise ValueError(f"register_pytree_node: expected a new class, got {cls.__name__} again")
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn)


_register_pytree_node = register_pytree_node


def _definition(tree: Any) -> Optional[NodeDef]:
    kind = type(tree)
    found = SUPPORTED_NODES.get(kind)
    if found is not None or not isinstance(tree, tuple):
        return found
    if _is_structure(kind):
        return _STRUCTURE
    return _NAMED_TUPLE if _is_named_tuple(kind) else None


# ---- forms ----


@dataclasses.dataclass(frozen=True, eq=True)
class TreeSpec:
    """The form of a tree without its leaves: the class of the node and its children's forms."""

    type: Any
    context: Context
    children_specs: List["TreeSpec"]
    num_nodes: int = dataclasses.field(init=False, compare=False)
    num_leaves: int = dataclasses.field(init=False, compare=False)
    num_children: int = dataclasses.field(init=False, compare=False)

    def __post_init__(self) -> None:
        leaf, children = self.type is None, self.children_specs
        put = object.__setattr__
        put(self, "num_nodes", 1 + sum(c.num_nodes for c in children))
        put(self, "num_leaves", 1 if leaf else sum(c.num_leaves for c in children))
        put(self, "num_children", len(children))

    def __hash__(self) -> int:
        return hash((self.type, repr(self.context), tuple(self.children_specs)))

    def __repr__(self) -> str:
        return self._text(0)

    def _text(self, indent: int) -> str:
        if self.is_leaf():
            return "*"
        separator = ",\n" + " " * (indent + 2)
        children = separator.join(child._text(indent + 2) for child in self.children_specs)
        return f"TreeSpec({self.type.__name__}, {self.context}, [{children}])"

    def is_leaf(self) -> bool:
        """Whether the form is that of a leaf alone."""
        return self.type is None

    def unflatten(self, leaves: Iterable[Any]) -> PyTree:
        """The tree of this form with these leaves; ValueError when there are more or fewer."""
        values = list(leaves)
        if len(values) != self.num_leaves:
            raise ValueError(
                f"unflatten: expected {self.num_leaves} leaves for the form {self!r}, got "
                f"{len(values)}"
            )
        return self._build(iter(values))

    def _build(self, leaves: Any) -> PyTree:
        if self.is_leaf():
            return next(leaves)
        children = [child._build(leaves) for child in self.children_specs]
        return SUPPORTED_NODES[self.type].unflatten_fn(children, self.context)

    def flatten_up_to(self, tree: PyTree) -> List[PyTree]:
        """The parts of `tree` that are where this form has leaves; ValueError where they differ."""
        if self.is_leaf():
            return [tree]
        definition = _definition(tree)
        if definition is None or definition.type is not self.type:
            raise ValueError(
                f"flatten_up_to: expected a {self.type.__name__}, got {type(tree).__name__}"
            )
        children, context = definition.flatten_fn(tree)
        if len(children) != self.num_children:
            raise ValueError(
                f"Node arity mismatch; expected {self.num_children}, but got {len(children)}."
            )
        if self.type in (dict, OrderedDict, defaultdict):
            children = [tree[key] for key in self._keys(tree)]
        elif context != self.context and self.type is not deque:
            raise ValueError(
                f"flatten_up_to: expected context {self.context!r}, got {context!r}"
            )
        return [
            part
            for child, spec in zip(children, self.children_specs)
            for part in spec.flatten_up_to(child)
        ]

    def _keys(self, tree: dict) -> List[Any]:
        keys = self.context[1] if self.type is defaultdict else self.context
        if set(keys) != set(tree):
            raise ValueError(f"Node keys mismatch; expected {keys!r}, but got {list(tree)!r}.")
        return keys


class LeafSpec(TreeSpec):
    """The form of a leaf."""

    def __init__(self) -> None:
        super().__init__(None, None, [])

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, TreeSpec) and other.is_leaf()

    __hash__ = TreeSpec.__hash__


_LEAF = LeafSpec()


# ---- taking apart and putting together ----


def _flatten(tree: PyTree, leaves: List[Any], is_leaf: Optional[Callable[[Any], bool]]) -> TreeSpec:
    definition = None if is_leaf is not None and is_leaf(tree) else _definition(tree)
    if definition is None:
        leaves.append(tree)
        return _LEAF
    children, context = definition.flatten_fn(tree)
    return TreeSpec(
        definition.type, context, [_flatten(child, leaves, is_leaf) for child in children]
    )


def tree_flatten(
    tree: PyTree, is_leaf: Optional[Callable[[PyTree], bool]] = None
) -> Tuple[List[Any], TreeSpec]:
    """The leaves in order, and the form. What `is_leaf` says is one is not taken apart."""
    leaves: List[Any] = []
    spec = _flatten(tree, leaves, is_leaf)
    return leaves, spec


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> PyTree:
    """The tree of a form with these leaves; ValueError when there are more or fewer."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(
            f"tree_unflatten: expected treespec to be a TreeSpec, got {type(treespec).__name__}"
        )
    return treespec.unflatten(leaves)


def tree_leaves(tree: PyTree, is_leaf: Optional[Callable[[PyTree], bool]] = None) -> List[Any]:
    """The leaves in order."""
    return tree_flatten(tree, is_leaf)[0]


def tree_iter(tree: PyTree, is_leaf: Optional[Callable[[PyTree], bool]] = None) -> Iterable[Any]:
    """An iterator over the leaves."""
    return iter(tree_leaves(tree, is_leaf))


def tree_structure(tree: PyTree, is_leaf: Optional[Callable[[PyTree], bool]] = None) -> TreeSpec:
    """The form."""
    return tree_flatten(tree, is_leaf)[1]


# ---- over all leaves ----


def tree_map(
    func: Callable[..., Any],
    tree: PyTree,
    *rests: PyTree,
    is_leaf: Optional[Callable[[PyTree], bool]] = None,
) -> PyTree:
    """The tree of func(leaf); with further trees of that form, of func(leaf, its counterparts)."""
    leaves, spec = tree_flatten(tree, is_leaf)
    columns = [leaves, *(spec.flatten_up_to(rest) for rest in rests)]
    return spec.unflatten(func(*row) for row in zip(*columns))


def tree_map_(
    func: Callable[..., Any],
    tree: PyTree,
    *rests: PyTree,
    is_leaf: Optional[Callable[[PyTree], bool]] = None,
) -> PyTree:
    """Call `func` for every leaf, as tree_map does, and return the tree itself."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


Chooses = Union[Type, Tuple[Type, ...], Callable[[Any], bool]]


def _chosen(choice: Chooses) -> Callable[[Any], bool]:
    if isinstance(choice, (type, tuple)):
        return lambda leaf: isinstance(leaf, choice)
    if callable(choice):
        return choice
    raise TypeError(
        "expected a type, a tuple of types or a function that chooses leaves, got "
        f"{type(choice).__name__}"
    )


def map_only(type_or_types_or_pred: Chooses) -> Callable:
    """Decorates a function of a leaf: leaves that are not chosen stay as they are."""
    chosen = _chosen(type_or_types_or_pred)

    def decorate(func: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda leaf: func(leaf) if chosen(leaf) else leaf

    return decorate


def tree_map_only(
    type_or_types_or_pred: Chooses,
    func: Callable[[Any], Any],
    tree: PyTree,
    is_leaf: Optional[Callable[[PyTree], bool]] = None,
) -> PyTree:
    """tree_map for the leaves of a type, or that a function chooses; the others stay."""
    return tree_map(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_map_only_(
    type_or_types_or_pred: Chooses,
    func: Callable[[Any], Any],
    tree: PyTree,
    is_leaf: Optional[Callable[[PyTree], bool]] = None,
) -> PyTree:
    """Call `func` for the leaves of a type, and return the tree itself."""
    return tree_map_(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_all(
    pred: Callable[[Any], bool],
    tree: PyTree,
    is_leaf: Optional[Callable[[PyTree], bool]] = None,
) -> bool:
    """Whether pred(leaf) holds for every leaf."""
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(
    pred: Callable[[Any], bool],
    tree: PyTree,
    is_leaf: Optional[Callable[[PyTree], bool]] = None,
) -> bool:
    """Whether pred(leaf) holds for some leaf."""
    return any(map(pred, tree_leaves(tree, is_leaf)))


def tree_all_only(
    type_or_types: Chooses,
    pred: Callable[[Any], bool],
    tree: PyTree,
    is_leaf: Optional[Callable[[PyTree], bool]] = None,
) -> bool:
    """Whether pred(leaf) holds for every leaf of a type."""
    return all(map(pred, filter(_chosen(type_or_types), tree_leaves(tree, is_leaf))))


def tree_any_only(
    type_or_types: Chooses,
    pred: Callable[[Any], bool],
    tree: PyTree,
    is_leaf: Optional[Callable[[PyTree], bool]] = None,
) -> bool:
    """Whether pred(leaf) holds for some leaf of a type."""
    return any(map(pred, filter(_chosen(type_or_types), tree_leaves(tree, is_leaf))))


def _broadcast_to_and_flatten(
    tree: PyTree, treespec: TreeSpec, is_leaf: Optional[Callable[[PyTree], bool]] = None
) -> Optional[List[Any]]:
    """The leaves of `tree`, each as often as the form has leaves in its place; None where `tree`
    does not begin as the form does."""
    definition = None if is_leaf is not None and is_leaf(tree) else _definition(tree)
    if definition is None:
        return [tree] * treespec.num_leaves
    if treespec.is_leaf() or definition.type is not treespec.type:
        return None
    children, context = definition.flatten_fn(tree)
    if len(children) != treespec.num_children or context != treespec.context:
        return None
    result: List[Any] = []
    for child, spec in zip(children, treespec.children_specs):
        part = _broadcast_to_and_flatten(child, spec, is_leaf)
        if part is None:
            return None
        result.extend(part)
    return result
