"""Lists and dictionaries that cannot be changed: the arguments of nodes.

A node has to know of every change, since the nodes among its arguments count it as a user.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Dict, List, NoReturn, Tuple

from treadle.utils import _pytree


def _refuse(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    raise TypeError(
        f"{type(self).__name__}: expected no change of arguments in place; "
        "assign a changed copy to node.args or node.kwargs"
    )


class immutable_list(list):  # noqa: N801
    """A list without ways to change it. Equal to a list of the same elements."""

    append = clear = extend = insert = pop = remove = reverse = sort = _refuse
    __delitem__ = __iadd__ = __imul__ = __setitem__ = _refuse

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __reduce__(self) -> Tuple[type, Tuple[tuple]]:
        return type(self), (tuple(self),)


class immutable_dict(dict):  # noqa: N801
    """A dictionary without ways to change it. Equal to a dictionary of the same items."""

    clear = pop = popitem = setdefault = update = _refuse
    __delitem__ = __ior__ = __setitem__ = _refuse

    def __hash__(self) -> int:
        return hash(frozenset(self.items()))

    def __reduce__(self) -> Tuple[type, Tuple[tuple]]:
        return type(self), (tuple(self.items()),)


def _list_flatten(values: List[Any]) -> Tuple[List[Any], Any]:
    return list(values), None


def _dict_flatten(values: Dict[Any, Any]) -> Tuple[List[Any], Any]:
    return list(values.values()), list(values.keys())


_pytree.register_pytree_node(
    immutable_list,
    _list_flatten,
    lambda values, context: immutable_list(values),
    serialized_type_name="torch.fx.immutable_collections.immutable_list",
)
_pytree.register_pytree_node(
    immutable_dict,
    _dict_flatten,
    lambda values, context: immutable_dict(zip(context, values)),
    serialized_type_name="torch.fx.immutable_collections.immutable_dict",
)

__all__ = ["immutable_dict", "immutable_list"]
