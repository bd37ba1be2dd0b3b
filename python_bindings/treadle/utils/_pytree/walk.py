"""Taking trees apart, putting them together, and functions over all leaves."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import sys
from typing import Any, Callable, Iterable, List, Optional, Tuple, Type, Union

from treadle.utils._pytree.keys import KeyPath
from treadle.utils._pytree.nodes import PyTree, definition_of
from treadle.utils._pytree.spec import _LEAF_SPEC, TreeSpec


def _flatten(tree: PyTree, leaves: List[Any], is_leaf: Optional[Callable[[Any], bool]]) -> TreeSpec:
    definition = None if is_leaf is not None and is_leaf(tree) else definition_of(tree)
    if definition is None:
        leaves.append(tree)
        return _LEAF_SPEC
    children, context = definition.flatten_fn(tree)
    return TreeSpec(
        definition.type, context, [_flatten(child, leaves, is_leaf) for child in children]
    )


def tree_flatten(
    tree: PyTree, is_leaf: Optional[Callable[[PyTree], bool]] = None
) -> Tuple[List[Any], TreeSpec]:
    """The leaves in order, and the form. A node that is a leaf by `is_leaf` is not taken apart."""
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


def tree_is_leaf(tree: PyTree, is_leaf: Optional[Callable[[PyTree], bool]] = None) -> bool:
    """Whether an object is a leaf, or `is_leaf` says so."""
    return (is_leaf is not None and is_leaf(tree)) or definition_of(tree) is None


_is_leaf = tree_is_leaf


def tree_leaves(tree: PyTree, is_leaf: Optional[Callable[[PyTree], bool]] = None) -> List[Any]:
    """The leaves in order."""
    return tree_flatten(tree, is_leaf)[0]


def tree_iter(tree: PyTree, is_leaf: Optional[Callable[[PyTree], bool]] = None) -> Iterable[Any]:
    """An iterator over the leaves."""
    return iter(tree_leaves(tree, is_leaf))


def tree_structure(tree: PyTree, is_leaf: Optional[Callable[[PyTree], bool]] = None) -> TreeSpec:
    """The form."""
    return tree_flatten(tree, is_leaf)[1]


def arg_tree_leaves(*args: PyTree, **kwargs: PyTree) -> List[Any]:
    """The leaves of the arguments of a call: of those by position, then of those by name."""
    return tree_leaves([*args, *kwargs.values()])


# ---- with the ways to the leaves ----


def _generate_key_paths(
    key_path: KeyPath, tree: PyTree, is_leaf: Optional[Callable[[PyTree], bool]] = None
) -> Iterable[Tuple[KeyPath, Any]]:
    definition = None if is_leaf is not None and is_leaf(tree) else definition_of(tree)
    if definition is None:
        yield key_path, tree
        return
    if definition.flatten_with_keys_fn is None:
        raise ValueError(
            "tree_flatten_with_path: expected nodes that say the keys of their children, got a "
            f"{type(tree).__name__}; register_pytree_node(..., flatten_with_keys_fn=...) gives them"
        )
    for key, child in definition.flatten_with_keys_fn(tree)[0]:
        yield from _generate_key_paths((*key_path, key), child, is_leaf)


def tree_leaves_with_path(
    tree: PyTree, is_leaf: Optional[Callable[[PyTree], bool]] = None
) -> List[Tuple[KeyPath, Any]]:
    """The leaves in order, each with the way to it; ValueError for a class of nodes that was
    registered without flatten_with_keys_fn."""
    return list(_generate_key_paths((), tree, is_leaf))


def tree_flatten_with_path(
    tree: PyTree, is_leaf: Optional[Callable[[PyTree], bool]] = None
) -> Tuple[List[Tuple[KeyPath, Any]], TreeSpec]:
    """The leaves in order, each with the way to it, and the form."""
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_map_with_path(
    func: Callable[..., Any],
    tree: PyTree,
    *rests: PyTree,
    is_leaf: Optional[Callable[[PyTree], bool]] = None,
) -> PyTree:
    """The tree of func(path, leaf); with further trees of that form, of func(path, leaf, its
    counterparts)."""
    keyed, spec = tree_flatten_with_path(tree, is_leaf)
    columns = [spec.flatten_up_to(rest) for rest in rests]
    return spec.unflatten(func(*pair, *row) for pair, *row in zip(keyed, *columns))


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


# int | float, which Python has from 3.10 on.
_UNION: Tuple[type, ...] = (type(eval("int | float")),) if sys.version_info >= (3, 10) else ()


def _chosen(choice: Any) -> Callable[[Any], bool]:
    if isinstance(choice, (type, tuple, *_UNION)):
        return lambda leaf: isinstance(leaf, choice)  # type: ignore[arg-type]
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
    definition = None if is_leaf is not None and is_leaf(tree) else definition_of(tree)
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
