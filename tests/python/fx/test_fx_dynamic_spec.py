"""fx.experimental.dynamic_spec: what a program says of the sizes of its arguments."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import json
import re

import pytest

from treadle.fx.experimental.dynamic_spec import (
    STATIC,
    DictSpec,
    IntVar,
    ObjectSpec,
    ParamsSpec,
    SeqSpec,
    ShapesSpec,
    ShapeVar,
    TensorSpec,
    dynamic_spec,
)


def shown(value):
    """The text without the numbers of variables."""
    return re.sub(r"#\d+", "", repr(value))


def test_variables():
    assert shown(ShapeVar("b")) == "ShapeVar(b, min=0)" and shown(IntVar()) == "IntVar(anon)"
    full = ShapeVar("b", min=2, max=64, optimization_hint=32)
    assert shown(full) == "ShapeVar(b, min=2, max=64, optimization_hint=32)"
    assert full.to_jsonable() == {
        "type": "ShapeVar", "name": "b", "min": 2, "max": 64, "optimization_hint": 32,
    }  # fmt: skip
    assert repr(IntVar("a")) != repr(IntVar("a")) and isinstance(full, IntVar)
    assert len({full, full}) == 1


def test_expressions():
    a, b = IntVar("a"), IntVar("b")
    texts = {
        "a + 1": 1 + a,
        "a*b + 1": a * b + 1,
        "2*(a + b)": (a + b) * 2,
        "a - (b - 1)": a - (b - 1),
        "5 - a": 5 - a,
        "a//2": a // 2,
        "Mod(a, 2)": a % 2,
        "-a": -a,
        "a > 0": a > 0,
        "a <= b": a <= b,
        "a >= b + 1": a >= b + 1,
        "a < 3": a < 3,
        "Eq(a, 3)": a == 3,
        "Ne(a, b)": a != b,
    }
    assert {text: shown(made) for text, made in texts.items()} == {t: t for t in texts}
    with pytest.raises(TypeError, match="expected a truth value, got a relation of sizes"):
        bool(a > 0)
    with pytest.raises(TypeError, match="expected a number, got a size that is not known yet"):
        bool(a + 1)
    with pytest.raises(TypeError) as caught:
        a + 1.5
    assert str(caught.value) == "expected a number or a variable, got a float"


def test_specs_of_values():
    b = ShapeVar("b")
    tensor = TensorSpec([b, 10, STATIC, b + 1])
    assert shown(tensor) == "Tensor:\n  0: ShapeVar(b, min=0)\n  1: 10\n  2: None\n  3: b + 1"
    assert len(tensor) == 4 and tensor[1] == 10 and list(tensor)[2] is STATIC
    assert shown(DictSpec({"x": TensorSpec([1]), 0: None})) == (
        "dict_spec:\n  ['x']:\n    Tensor:\n      0: 1\n  [0]: None"
    )
    assert repr(ObjectSpec({"w": 1})) == "object_spec:\n  .w: 1"
    assert repr(DictSpec()) == "dict_spec:"
    items = SeqSpec([TensorSpec([1]), 1])
    assert repr(items) == "seq_spec:\n  [0]:\n    Tensor:\n      0: 1\n  [1]: 1"
    assert len(items) == 2 and items[1] == 1 and list(DictSpec({"x": 1}).items()) == [("x", 1)]


def test_specs_of_functions():
    b = ShapeVar("b")
    params = ParamsSpec({"x": TensorSpec([b]), "*args": [1, None], "**kwargs": {"k": 2}})
    assert shown(params) == (
        "x:\n  Tensor:\n    0: ShapeVar(b, min=0)\n*args:\n  0: 1\n  1: None\n**kwargs:\n  k: 2"
    )
    shapes = ShapesSpec(params, assumptions=[b > 2])
    assert shown(shapes).endswith("\n  assumptions:\n    b > 2")
    assert json.loads(json.dumps(shapes.to_jsonable()))["params"]["params"]["*args"] == [1, None]
    assert repr(ShapesSpec()) == "shapes_spec:" and repr(ParamsSpec()) == ""
    assert ShapesSpec({"x": 1}).to_jsonable() == {
        "type": "ShapesSpec",
        "params": {"type": "ParamsSpec", "params": {"x": 1}},
    }
    assert SeqSpec([1]).to_jsonable() == {"type": "SeqSpec", "entries": [1]}
    assert ObjectSpec({"w": 1}).to_jsonable() == {"type": "ObjectSpec", "fields": {"w": 1}}
    assert DictSpec({"w": 1}).to_jsonable() == {"type": "DictSpec", "entries": {"w": 1}}


def test_specs_are_kept_with_functions():
    @dynamic_spec({"x": TensorSpec([ShapeVar("b")])})
    def step(x):
        return x + 1

    assert step(1) == 2 and isinstance(step._dynamic_spec, ShapesSpec)
    with pytest.raises(ValueError) as caught:
        dynamic_spec({})(step)
    assert str(caught.value) == "dynamic_spec: expected step without a spec, got one with another"


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (
            lambda: TensorSpec([1, 3.5]),
            TypeError,
            "TensorSpec: expected a variable, a number or STATIC as size 1, got 3.5",
        ),
        (
            lambda: DictSpec({1.5: None}),
            TypeError,
            "DictSpec: expected keys that are str or int, got 1.5",
        ),
        (lambda: ParamsSpec({1: 2}), TypeError, "ParamsSpec: expected names that are str, got 1"),
        (
            lambda: ParamsSpec({"*args": 3}),
            ValueError,
            "ParamsSpec: expected a list for *args, got a int",
        ),
        (
            lambda: ShapesSpec(3),
            TypeError,
            "ShapesSpec: expected a ParamsSpec or a dict, got a int",
        ),
        (
            lambda: ShapesSpec(globals={}),
            NotImplementedError,
            "ShapesSpec: expected no globals, got some",
        ),
        (
            lambda: ShapesSpec(assumptions=[True]),
            TypeError,
            "ShapesSpec: expected relations of sizes, got True",
        ),
        (
            lambda: ShapeVar(min=-1),
            ValueError,
            "ShapeVar: expected min >= 0, got -1; IntVar takes any number",
        ),
        (lambda: IntVar(min=5, max=3), ValueError, "IntVar: expected min <= max, got 5 and 3"),
        (
            lambda: dynamic_spec(3),
            TypeError,
            "dynamic_spec: expected a dict, ParamsSpec or ShapesSpec, got a int",
        ),
    ],
)
def test_what_is_no_spec(make, error, text):
    with pytest.raises(error) as caught:
        make()
    assert str(caught.value) == text
