"""TreeSpec: the form of a tree without its leaves."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import dataclasses
from collections import defaultdict, deque
from typing import Any, Iterable, List, Mapping, Tuple, Union

from treadle.utils._pytree.nodes import (
    STANDARD_DICT_TYPES,
    SUPPORTED_NODES,
    Context,
    PyTree,
    definition_of,
)
from treadle.utils._pytree.registration import ConstantNode


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

    def children(self) -> List["TreeSpec"]:
        """The forms of the children."""
        return list(self.children_specs)

    def child(self, index: int) -> "TreeSpec":
        """The form of one child."""
        return self.children_specs[index]

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
        definition = definition_of(tree)
        if definition is None or definition.type is not self.type:
            raise ValueError(
                f"flatten_up_to: expected a {self.type.__name__}, got {type(tree).__name__}"
            )
        children, context = definition.flatten_fn(tree)
        if len(children) != self.num_children:
            raise ValueError(
                f"Node arity mismatch; expected {self.num_children}, but got {len(children)}."
            )
        if self.type in STANDARD_DICT_TYPES:
            children = [tree[key] for key in self._keys(tree)]
        elif context != self.context and self.type is not deque:
            raise ValueError(f"flatten_up_to: expected context {self.context!r}, got {context!r}")
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


_LEAF_SPEC = LeafSpec()
PyTreeSpec = TreeSpec


def treespec_leaf() -> TreeSpec:
    """The form of a leaf."""
    return _LEAF_SPEC


def treespec_tuple(iterable: Iterable[TreeSpec] = (), /) -> TreeSpec:
    """The form of a tuple whose children have these forms."""
    return TreeSpec(tuple, None, list(iterable))


def treespec_dict(
    mapping: Union[Mapping[Any, TreeSpec], Iterable[Tuple[Any, TreeSpec]]] = (),
    /,
    **kwargs: TreeSpec,
) -> TreeSpec:
    """The form of a dict whose values have these forms."""
    forms = dict(mapping, **kwargs)
    return TreeSpec(dict, list(forms), list(forms.values()))


def _is_constant_holder(spec: TreeSpec) -> bool:
    """Whether the form is that of a constant."""
    return isinstance(spec.context, ConstantNode)


def _retrieve_constant(spec: TreeSpec) -> Any:
    """The constant whose form this is; ValueError for the form of something else."""
    if not _is_constant_holder(spec):
        raise ValueError(f"_retrieve_constant: expected the form of a constant, got {spec!r}")
    return spec.unflatten(())
