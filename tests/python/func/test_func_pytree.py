"""utils._pytree: trees of containers, taken apart, put together and mapped over."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple
from typing import Any

import pytest

import treadle
from treadle.utils import _pytree as pytree

Pair = namedtuple("Pair", "a b")


def tree() -> dict:
    return {
        "b": 1,
        "a": [2, (3, None)],
        "n": Pair(4, 5),
        "o": OrderedDict(z=6),
        "d": deque([7], maxlen=3),
        "dd": defaultdict(list, q=8),
    }


def test_taking_apart_and_putting_together() -> None:
    leaves, spec = pytree.tree_flatten(tree())
    assert leaves == [1, 2, 3, None, 4, 5, 6, 7, 8]
    assert (spec.num_leaves, spec.num_nodes, spec.num_children) == (9, 16, 6)
    again = pytree.tree_unflatten(leaves, spec)
    assert again == tree() and type(again["n"]) is Pair and type(again["o"]) is OrderedDict
    assert again["d"].maxlen == 3 and again["dd"].default_factory is list
    same = pytree.tree_structure(tree())
    assert same == spec and hash(same) == hash(spec)
    assert pytree.tree_flatten(1) == ([1], pytree.LeafSpec())
    assert list(pytree.tree_iter([1, [2]])) == [1, 2]
    assert pytree.tree_leaves([1, [2]], is_leaf=lambda t: t == [2]) == [1, [2]]
    with pytest.raises(ValueError, match="(?s)expected 9 leaves .* got 1"):
        spec.unflatten([1])
    with pytest.raises(TypeError, match="got int"):
        pytree.tree_unflatten([1], 2)


def test_forms_as_text() -> None:
    assert repr(pytree.tree_structure(1)) == "*"
    text = repr(pytree.tree_structure((1, [])))
    assert text == "TreeSpec(tuple, None, [*,\n  TreeSpec(list, None, [])])"
    lines = repr(pytree.tree_structure({"a": [1, Pair(2, 3)]})).split("\n")
    assert lines[0] == "TreeSpec(dict, ['a'], [TreeSpec(list, None, [*,"
    assert lines[1].startswith("    TreeSpec(namedtuple, ")


def test_mapping() -> None:
    assert pytree.tree_map(lambda x: x, tree()) == tree()
    pairs = pytree.tree_map(lambda a, b: (a, b), [1, {"k": 2}], [3, {"k": [4]}])
    assert pairs == [(1, 3), {"k": (2, [4])}]
    sums = pytree.tree_map(lambda a, b: a + b, {"a": 1, "b": 2}, {"b": 20, "a": 10})
    assert sums == {"a": 11, "b": 22}
    seen: list = []
    given = [1, [2]]
    assert pytree.tree_map_(seen.append, given) is given and seen == [1, 2]
    assert pytree.tree_map_only(int, lambda x: -x, [1, "a", 2.0]) == [-1, "a", 2.0]
    assert pytree.tree_map_only((int, float), lambda x: -x, [1, "a", 2.0]) == [-1, "a", -2.0]
    assert pytree.tree_map_only(lambda x: x == 1, lambda x: -x, [1, 2]) == [-1, 2]
    assert pytree.tree_map_only_(int, seen.append, (3,)) == (3,) and seen[-1] == 3
    largest = treadle.max(treadle.ones(2, 2), 0)
    assert type(pytree.tree_map(lambda t: t + 1, largest)) is type(largest)
    for other in ([3], (3, 4), [3, 4, 5]):
        with pytest.raises(ValueError):
            pytree.tree_map(lambda a, b: a, [1, 2], other)
    with pytest.raises(ValueError, match="keys mismatch"):
        pytree.tree_map(lambda a, b: a, {"a": 1}, {"b": 1})
    with pytest.raises(TypeError, match="got int"):
        pytree.tree_map_only(3, abs, [1])


def test_asking() -> None:
    assert pytree.tree_any(lambda x: x == 3, tree()) and not pytree.tree_all(bool, tree())
    assert pytree.tree_all_only(int, lambda x: x > 0, [1, "a"])
    assert not pytree.tree_any_only(str, lambda x: x == "b", [1, "a"])


def test_classes_of_the_user() -> None:
    class Point:
        def __init__(self, x: Any, y: Any) -> None:
            self.x, self.y = x, y

    pytree.register_pytree_node(Point, lambda p: ([p.x, p.y], None), lambda xy, _: Point(*xy))
    moved = pytree.tree_map(lambda v: v + 1, [Point(1, 2)])
    assert (moved[0].x, moved[0].y) == (2, 3)
    with pytest.raises(ValueError, match="Point again"):
        pytree.register_pytree_node(Point, lambda p: ([], None), lambda xy, _: Point(0, 0))


def test_spreading_over_a_form() -> None:
    spec = pytree.tree_structure({"a": [1, 2], "b": 3})
    assert pytree._broadcast_to_and_flatten(0, spec) == [0, 0, 0]
    assert pytree._broadcast_to_and_flatten({"a": 0, "b": None}, spec) == [0, 0, None]
    assert pytree._broadcast_to_and_flatten([0, 1], spec) is None
    assert pytree._broadcast_to_and_flatten({"a": [1], "b": 2}, spec) is None
