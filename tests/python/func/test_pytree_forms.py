"""utils._pytree: ways to leaves, forms as text, and classes that become nodes."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import dataclasses
import enum
from collections import OrderedDict, defaultdict, deque, namedtuple
from typing import Any, Iterator

import pytest

import treadle
from treadle.utils import _pytree as pytree

Pair = namedtuple("Pair", "a b")


@pytest.fixture
def forget() -> Iterator[Any]:
    """Registers for the time of a test."""
    classes: list = []
    yield classes.append
    for cls in classes:
        pytree._deregister_pytree_node(cls)


def test_ways_to_leaves() -> None:
    tree = {"b": [1, (2,)], "d": defaultdict(int, q=3), "e": deque([4]), "n": Pair(5, 6), 0: None}
    tree["s"] = treadle.tensor([[1.0, 2.0]]).max(0)
    keyed, spec = pytree.tree_flatten_with_path(tree)
    assert [pytree.keystr(path) for path, _ in keyed] == [
        "['b'][0]",
        "['b'][1][0]",
        "['d']['q']",
        "['e'][0]",
        "['n'].a",
        "['n'].b",
        "[0]",
        "['s'][0]",
        "['s'][1]",
    ]
    assert spec == pytree.tree_structure(tree)
    for path, leaf in keyed:
        assert pytree.key_get(tree, path) is leaf
    assert keyed[1][0] == (
        pytree.MappingKey("b"),
        pytree.SequenceKey(1),
        pytree.SequenceKey(0),
    )
    assert pytree.GetAttrKey("a").get(Pair(5, 6)) == 5
    named = pytree.tree_map_with_path(
        lambda path, x, y: (pytree.keystr(path), x + y), [1, {"a": 2}], [10, {"a": 20}]
    )
    assert named == [("[0]", 11), {"a": ("[1]['a']", 22)}]
    assert pytree.arg_tree_leaves(1, [2], k={"z": 3}) == [1, 2, 3]
    assert pytree.tree_is_leaf(None) and not pytree.tree_is_leaf([])


def test_ways_through_a_class_without_keys(forget: Any) -> None:
    class Box:
        pass

    pytree.register_pytree_node(Box, lambda b: ([1], None), lambda values, _: Box())
    forget(Box)
    with pytest.raises(
        ValueError, match="expected nodes that say the keys of their children, got a Box"
    ):
        pytree.tree_leaves_with_path([Box()])


def test_forms_as_text(forget: Any) -> None:
    class Color(enum.Enum):
        RED = 1

    globals()["Color"], Color.__qualname__ = Color, "Color"
    tree = {
        "b": [1, (2, 3)],
        "a": OrderedDict(x=1),
        "d": defaultdict(int, q=4),
        "e": deque([1, 2], 4),
        Color.RED.name: {Color.RED.value: treadle.Size([1])},
    }
    spec = pytree.tree_structure(tree)
    text = pytree.treespec_dumps(spec)
    assert pytree.treespec_loads(text) == spec
    assert pytree.treespec_dumps(pytree.tree_structure([1])) == (
        '[1, {"type": "builtins.list", "context": "null", "children_spec": '
        '[{"type": null, "context": null, "children_spec": []}]}]'
    )
    of_enum = pytree.TreeSpec(dict, [Color.RED], [pytree.treespec_leaf()])
    assert pytree.treespec_loads(pytree.treespec_dumps(of_enum)).context == [Color.RED]
    assert pytree.treespec_pprint(pytree.tree_structure({"a": [1, (2,)]})) == "{'a': [*, (*,)]}"
    with pytest.raises(
        NotImplementedError,
        match=r"treespec_dumps: expected a name for the named tuples Pair, got none; "
        r"_register_namedtuple\(cls, serialized_type_name=...\) gives one",
    ):
        pytree.treespec_dumps(pytree.tree_structure(Pair(1, 2)))
    with pytest.raises(
        ValueError, match=r"treespec_loads: expected one of the protocols \[1\], got 2"
    ):
        pytree.treespec_loads("[2, {}]")
    with pytest.raises(TypeError, match="treespec_dumps: expected treespec to be a TreeSpec"):
        pytree.treespec_dumps([])  # type: ignore[arg-type]
    with pytest.raises(NotImplementedError, match="expected the name of a registered class, got"):
        pytree.treespec_loads('[1, {"type": "no.such", "context": null, "children_spec": []}]')


def test_named_tuples_as_text() -> None:
    Named = namedtuple("Named", "a")
    pytree._register_namedtuple(Named, serialized_type_name="tests.Named")
    spec = pytree.tree_structure(Named(1))
    assert pytree.treespec_loads(pytree.treespec_dumps(spec)) == spec


def test_text_of_a_registered_class(forget: Any) -> None:
    class Scaled:
        def __init__(self, x: Any, by: complex) -> None:
            self.x, self.by = x, by

    pytree.register_pytree_node(
        Scaled,
        lambda s: ([s.x], s.by),
        lambda values, by: Scaled(next(iter(values)), by),
        serialized_type_name="tests.Scaled",
        to_dumpable_context=lambda by: [by.real, by.imag],
        from_dumpable_context=lambda parts: complex(*parts),
        flatten_with_keys_fn=lambda s: ([(pytree.GetAttrKey("x"), s.x)], s.by),
    )
    forget(Scaled)
    spec = pytree.tree_structure(Scaled(1, 2j))
    assert pytree.treespec_loads(pytree.treespec_dumps(spec)) == spec
    assert pytree.keystr(pytree.tree_leaves_with_path([Scaled(1, 0)])[0][0]) == "[0].x"
    with pytest.raises(ValueError, match="expected both to_dumpable_context and"):
        pytree.register_pytree_node(
            int, lambda x: ([], x), lambda _, x: x, to_dumpable_context=lambda x: x
        )


def test_data_classes(forget: Any) -> None:
    @dataclasses.dataclass
    class Batch:
        x: Any
        y: Any = None
        made: Any = dataclasses.field(default=7, init=False)

    pytree.register_dataclass(Batch)
    forget(Batch)
    keyed, _ = pytree.tree_flatten_with_path(Batch(1, [2]))
    assert [(pytree.keystr(path), x) for path, x in keyed] == [(".x", 1), (".y[0]", 2)]
    assert pytree.tree_map(lambda v: v + 1, Batch(1, [2])) == Batch(2, [3])
    assert pytree.tree_leaves(Batch(1)) == [1]
    assert pytree.tree_map(lambda v: v + 1, Batch(1)) == Batch(2)

    @dataclasses.dataclass
    class Partly:
        x: Any
        note: str = "none"

    pytree.register_dataclass(Partly, drop_field_names=["note"])
    forget(Partly)
    assert pytree.tree_map(lambda v: v + 1, Partly(1, "two")) == Partly(2, "none")
    with pytest.raises(ValueError, match="expected drop_field_names among the fields of Partly"):
        pytree.register_dataclass(Partly, drop_field_names=["other"])
    with pytest.raises(ValueError, match="expected field_names to be the fields of Partly"):
        pytree.register_dataclass(Partly, field_names=["x", "z"])
    with pytest.raises(ValueError, match="expected field_names for a class that is not a"):
        pytree.register_dataclass(int)


def test_constants(forget: Any) -> None:
    @dataclasses.dataclass(frozen=True)
    class Config:
        name: str

    pytree.register_constant(Config)
    forget(Config)
    leaves, spec = pytree.tree_flatten([Config("a"), 2])
    assert leaves == [2] and spec.unflatten([3]) == [Config("a"), 3]
    assert spec != pytree.tree_structure([Config("b"), 2])
    assert pytree.is_constant_class(Config) and not pytree.is_constant_class(int)
    assert pytree._is_constant_holder(spec.child(0))
    assert pytree._retrieve_constant(spec.child(0)) == Config("a")
    with pytest.raises(ValueError, match="_retrieve_constant: expected the form of a constant"):
        pytree._retrieve_constant(spec)

    class Plain:
        pass

    with pytest.raises(TypeError, match="expected a class with an `__eq__` of its own, got Plain"):
        pytree.register_constant(Plain)
    with pytest.raises(TypeError, match="expected a class with a `__hash__`"):
        pytree.register_constant(list)


def test_classes_of_tuples() -> None:
    result = treadle.tensor([[1.0, 2.0]]).max(0)
    assert pytree.is_namedtuple(Pair) and pytree.is_namedtuple(Pair(1, 2))
    assert pytree.is_namedtuple_class(Pair) and not pytree.is_namedtuple_class(tuple)
    assert pytree.is_structseq_instance(result) and not pytree.is_structseq_instance(Pair(1, 2))
    assert pytree.is_structseq_class(type(result)) and pytree.is_structseq(result)
    assert pytree._get_node_type(Pair(1, 2)) is namedtuple
    assert pytree._get_node_type({}) is dict and pytree._get_node_type(3) is int
    assert type(pytree.tree_map(lambda x: x, result)) is type(result)
    assert pytree.tree_map(lambda x: x + 1, treadle.Size([1, 2])) == treadle.Size([2, 3])


def test_forms_that_are_made() -> None:
    leaf = pytree.treespec_leaf()
    assert pytree.treespec_tuple([leaf, leaf]) == pytree.tree_structure((1, 2))
    assert pytree.treespec_dict({"a": leaf}, b=leaf) == pytree.tree_structure({"a": 1, "b": 2})
    assert pytree.tree_structure([1, (2,)]).children() == [leaf, pytree.treespec_tuple([leaf])]
    assert pytree.tree_map_only(int | float, lambda x: x + 1, [1, "a", 2.0]) == [2, "a", 3.0]


def test_parts_that_programs_register_again() -> None:
    class Output(OrderedDict):
        pass

    pytree._register_pytree_node(
        Output,
        pytree._dict_flatten,
        lambda values, context: Output(pytree._dict_unflatten(values, context)),
        flatten_with_keys_fn=pytree._dict_flatten_with_keys,
    )
    try:
        out = Output(a=1, b=[2])
        again = pytree.tree_map(lambda x: x + 1, out)
        assert type(again) is Output and again == {"a": 2, "b": [3]}
        assert pytree.keystr(pytree.tree_leaves_with_path(out)[1][0]) == "['b'][0]"
    finally:
        pytree._deregister_pytree_node(Output)
    assert pytree.tree_is_leaf(out)
