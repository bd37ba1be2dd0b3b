"""Draws calls: number N of a run is the same call wherever and whenever it is drawn.

A third are samples as they are, in other layouts and forms; a third are samples with something
changed; the rest are drawn from the schema alone.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any, Callable, Optional

from treadle_testing.catalogue import Operator

from . import numbers, seeds, strangers
from .recipe import (
    ALIASES,
    INJECTIVE,
    LAYOUTS,
    Alias,
    Items,
    Literal,
    Node,
    Recipe,
    Stranger,
    TensorNode,
    map_tensors,
    tensor_nodes,
)  # fmt: skip
from .values import FILLED, ORDINARY, PALETTES, Palette

SHAPES: list[tuple[int, ...]] = [
    (), (1,), (2,), (3,), (5,), (0,), (2, 3), (3, 4), (3, 3), (1, 3), (4, 1), (0, 3), (3, 0),
    (2, 3, 4), (1, 1, 1), (2, 0, 3), (2, 3, 4, 4), (1, 2, 5, 5), (2, 1, 3, 1, 2), (17,), (8, 8),
]  # fmt: skip
ODD_SHAPES: list[tuple[int, ...]] = [
    (0, 2**62), (2**40, 0), (1, 2, 1, 2, 1, 1, 1, 1, 2), (1,) * 24, (300,), (1000, 3), (70, 70),
    (1, 0, 2**31), (2**16, 1), (1,) * 70, (0,) * 5, (1023,), (4, 4, 4, 4, 4),
]  # fmt: skip
HUGE_SHAPES: list[tuple[int, ...]] = [
    (2**31,), (2**31, 2**31), (2**62,), (2**20, 2**40), (2**32, 3), (3, 2**61), (2**63 - 1,),
]  # fmt: skip
NAMES = FILLED
COMMON = ("float32", "float64", "int64", "float32", "bool", "complex64", "float16", "bfloat16")


def draw(seed: int, number: int, only: Optional[str] = None) -> Recipe:
    """Call `number` of the run with `seed`."""
    rng = Random(f"{seed}:{number}")
    targets = seeds.targets(only)
    # By turns, so that a run of few calls reaches every operator too.
    op = targets[number % len(targets)]
    recipe = None
    choice = rng.random()
    dtypes = seeds.dtypes(op)
    if dtypes and choice < 0.8:
        found = seeds.recipes(op, rng.choice(dtypes))
        if found:
            recipe = rng.choice(found).copied()
            if choice > 0.35:
                recipe.sample = None
                for _ in range(rng.choice((1, 1, 1, 2, 3))):
                    mutate(rng, op, recipe)
    if recipe is None:
        recipe = free(rng, op)
    choose_form(rng, op, recipe)
    if rng.random() < 0.4:
        lay_out(rng, recipe)
    if rng.random() < 0.25:
        require_grad(rng, recipe)
    recipe.checks = frozenset(
        name
        for name, share in (
            ("meta", 0.25), ("layout", 0.15), ("forms", 0.15), ("leak", 0.01), ("reference", 0.3),
        )
        if rng.random() < share
    )  # fmt: skip
    return recipe


# ---- Arguments from the schema ----


def free(rng: Random, op: Operator) -> Recipe:
    """A call whose arguments are drawn by their types alone."""
    shape = any_shape(rng)
    dtype = rng.choice(op.dtypes or COMMON) if rng.random() < 0.7 else rng.choice(NAMES)
    recipe = Recipe(op.id, "functional", [])
    positional = True
    for arg in op.args:
        if arg["default"] is not None and rng.random() < 0.4:
            positional = False
            continue
        node = value_for(rng, op, arg, shape, dtype)
        if positional and not arg["kwarg_only"] and rng.random() < 0.97:
            recipe.args.append(node)
        else:
            positional = False
            recipe.kwargs[arg["name"]] = node
    if rng.random() < 0.15:
        alias(rng, op, recipe)
    return recipe


def any_shape(rng: Random) -> tuple[int, ...]:
    return rng.choice(SHAPES if rng.random() < 0.9 else ODD_SHAPES)


def value_for(rng: Random, op: Operator, arg: Any, shape: tuple[int, ...], dtype: str) -> Node:
    """A value of an argument's type; now and then of another."""
    kind = arg["type"]
    if kind["optional"] and rng.random() < 0.3:
        return Literal(None)
    if rng.random() < 0.04:
        return Stranger(rng.choice(strangers.NAMES))
    return typed_value(rng, op, kind, shape, dtype)


def typed_value(rng: Random, op: Operator, kind: Any, shape: tuple[int, ...], dtype: str) -> Node:
    base = kind["base"]
    if base == "Any":
        return any_value(rng, op, shape, dtype)
    if base == "Tensor":
        if not kind["list"]:
            return any_tensor(rng, shape, dtype)
        nodes: list[Node] = [
            Literal(None)
            if kind["element_optional"] and rng.random() < 0.3
            else any_tensor(rng, shape, dtype)
            for _ in range(rng.choice((0, 1, 2, 2, 3)))
        ]
        return Items(tuple(nodes), rng.choice((list, tuple)))
    if base == "int":
        if kind["list"]:
            return Literal(numbers.int_list(rng, op, kind["list_size"]))
        return Literal(numbers.any_int(rng, op))
    if base == "float":
        if kind["list"]:
            return Literal([numbers.any_float(rng) for _ in range(rng.randrange(4))])
        return Literal(numbers.any_float(rng))
    if base == "Scalar":
        if kind["list"]:
            return Literal([numbers.any_scalar(rng, op) for _ in range(rng.randrange(4))])
        return Literal(numbers.any_scalar(rng, op))
    if base == "bool":
        one = rng.random() < 0.5
        return Literal([one] * rng.randrange(4) if kind["list"] else one)
    simple: dict[str, Callable[[], Any]] = {
        "ScalarType": lambda: numbers.any_dtype(rng),
        "str": lambda: numbers.any_word(rng, op),
        "Device": lambda: rng.choice(numbers.DEVICES),
        "Layout": lambda: numbers.any_format(rng),
        "MemoryFormat": lambda: numbers.any_format(rng),
    }
    if base in simple:
        return Literal(simple[base]())
    return Stranger("generator of numbers") if base == "Generator" else Literal(None)


def any_value(rng: Random, op: Operator, shape: tuple[int, ...], dtype: str) -> Node:
    """A value of any type: an index, a size, a tensor, a dtype, ..."""
    how = rng.randrange(12)
    if how < 3:
        return any_tensor(rng, shape, dtype)
    if how == 3:
        return Literal(numbers.any_int(rng, op))
    if how == 4:
        return Literal(numbers.any_scalar(rng, op))
    if how == 5:
        return Literal(numbers.int_list(rng, op, None))
    if how == 6:
        edges = [None, None, numbers.any_int(rng, op), numbers.small_int(rng)]
        step = rng.choice((None, 1, 2, *edges))
        return Literal(slice(rng.choice(edges), rng.choice(edges), step))
    if how == 7:
        return Literal(rng.choice((None, None, ..., True, False, numbers.any_word(rng, op))))
    if how == 8:
        return Literal(rng.choice((numbers.any_dtype(rng), rng.choice(numbers.DEVICES))))
    if how == 9:
        return Stranger(rng.choice(strangers.NAMES))
    items = tuple(any_value(rng, op, shape, dtype) for _ in range(rng.choice((0, 1, 2, 2, 3))))
    return Items(items, rng.choice((list, tuple, tuple)))


def any_tensor(rng: Random, shape: tuple[int, ...], dtype: str) -> TensorNode:
    choice = rng.random()
    if choice < 0.2:
        shape = any_shape(rng)
    elif choice < 0.3 and shape:
        at = rng.randrange(len(shape))
        shape = shape[:at] + (1,) + shape[at + 1 :]
    elif choice < 0.35 and shape:
        shape = shape[1:]
    elif choice < 0.38:
        shape = ()
    if rng.random() < 0.15:
        dtype = rng.choice(NAMES)
    palette = rng.choice(ORDINARY if rng.random() < 0.6 else PALETTES)
    return TensorNode(shape, dtype, Palette(palette, rng.randrange(8)))


# ---- Forms, layouts, gradients ----


def choose_form(rng: Random, op: Operator, recipe: Recipe) -> None:
    forms = ["functional", "functional"]
    if op.has_form("inplace") and not op.name.endswith("_"):
        forms.append("inplace")
    if op.takes_out:
        forms.append("out")
    variants = op.json["variants"]
    if "method" in variants and "function" in variants and op.args[0]["name"] == "self":
        forms.append("method")
    recipe.form = rng.choice(forms)
    if recipe.form != "functional":
        recipe.sample = None if recipe.form != "method" else recipe.sample
    if recipe.form == "out":
        recipe.out = any_out(rng, op, recipe)


def any_out(rng: Random, op: Operator, recipe: Recipe) -> Node:
    """The tensors to write to: as many as there are results, mostly."""
    if rng.random() < 0.03:
        return Stranger(rng.choice(strangers.NAMES))
    count = len(op.json["returns"])
    if rng.random() < 0.03:
        count = rng.choice((0, 1, 2, 3))
    first = next((t for n in recipe.nodes() for t in tensor_nodes(n)), TensorNode((2, 3)))

    def one() -> Node:
        choice = rng.random()
        if choice < 0.2 and recipe.args:
            return Alias(rng.randrange(len(recipe.args)), rng.choice(tuple(ALIASES)))
        shape = (0,) if choice < 0.5 else first.shape if choice < 0.85 else any_shape(rng)
        dtype = first.dtype if rng.random() < 0.7 else rng.choice(NAMES)
        layout = rng.choice(LAYOUTS) if rng.random() < 0.3 else "plain"
        device = "meta" if rng.random() < 0.02 else "cpu"
        return TensorNode(shape, dtype, Palette("small"), layout, device)

    return one() if count == 1 else Items(tuple(one() for _ in range(count)), tuple)


def lay_out(rng: Random, recipe: Recipe) -> None:
    """Gives tensors other strides."""
    layouts = INJECTIVE if rng.random() < 0.7 else LAYOUTS

    def change(node: TensorNode) -> Node:
        if node.layout != "plain" or node.device != "cpu" or rng.random() < 0.3:
            return node
        return replace(node, layout=rng.choice(layouts))

    # Repeated or overlapping elements are other elements than those of the sample.
    if recipe.sample is not None:
        layouts = INJECTIVE
    _change_tensors(recipe, change)


def require_grad(rng: Random, recipe: Recipe) -> None:
    def change(node: TensorNode) -> Node:
        able = node.dtype in ("float32", "float64", "float16", "bfloat16") or (
            node.dtype.startswith("complex")
        )
        return replace(node, grad=True) if able and rng.random() < 0.8 else node

    _change_tensors(recipe, change)


def _change_tensors(recipe: Recipe, change: Callable[[TensorNode], Node]) -> None:
    recipe.args = [map_tensors(n, change) for n in recipe.args]
    recipe.kwargs = {k: map_tensors(n, change) for k, n in recipe.kwargs.items()}


# ---- Changes to calls that fit ----


def mutate(rng: Random, op: Operator, recipe: Recipe) -> None:
    """Changes one thing of a call."""
    weights, changes = zip(*_CHANGES)
    rng.choices(changes, weights)[0](rng, op, recipe)


def _place(rng: Random, recipe: Recipe) -> Optional[int | str]:
    places: list[int | str] = [*range(len(recipe.args)), *recipe.kwargs]
    return rng.choice(places) if places else None


def _at(recipe: Recipe, place: int | str) -> Node:
    return recipe.args[place] if isinstance(place, int) else recipe.kwargs[place]


def _put(recipe: Recipe, place: int | str, node: Node) -> None:
    if isinstance(place, int):
        recipe.args[place] = node
    else:
        recipe.kwargs[place] = node


def _argument(op: Operator, place: int | str) -> Any:
    if isinstance(place, int):
        return op.args[place] if place < len(op.args) else None
    return next((a for a in op.args if a["name"] == place), None)


def another_value(rng: Random, op: Operator, recipe: Recipe) -> None:
    """One argument becomes another of its type."""
    place = _place(rng, recipe)
    if place is None:
        return
    arg, node = _argument(op, place), _at(recipe, place)
    tensors = [t for n in recipe.nodes() for t in tensor_nodes(n)]
    like = tensors[0] if tensors else TensorNode((2, 3))
    if isinstance(node, TensorNode) or arg is None:
        change_tensor(rng, op, recipe)
    elif isinstance(node, Literal) and isinstance(node.value, (list, tuple)) and rng.random() < 0.6:
        values = list(node.value)
        how = rng.randrange(4)
        if how == 0 and values:
            values[rng.randrange(len(values))] = numbers.any_int(rng, op)
        elif how == 1 and values:
            values.pop(rng.randrange(len(values)))
        elif how == 2:
            values.append(numbers.small_int(rng))
        elif values:
            values[rng.randrange(len(values))] = rng.choice(
                (None, "a", 1.5, [1], True, float("nan"))
            )
        _put(recipe, place, Literal(type(node.value)(values)))
    else:
        _put(recipe, place, typed_value(rng, op, arg["type"], like.shape, like.dtype))


def another_type(rng: Random, op: Operator, recipe: Recipe) -> None:
    """One argument becomes something that does not belong there."""
    place = _place(rng, recipe)
    if place is None:
        return
    node: Node
    choice = rng.random()
    if choice < 0.6:
        node = Stranger(rng.choice(strangers.NAMES))
    elif choice < 0.75:
        node = Literal(None)
    elif choice < 0.9:
        node = Literal(rng.choice([1, -1, 1.5, "a", True, [], [1, 2], (3,), 1j, 2**70]))
    else:
        node = any_tensor(rng, (2, 3), rng.choice(NAMES))
    old = _at(recipe, place)
    if isinstance(old, Items) and old.items and rng.random() < 0.6:
        items = list(old.items)
        items[rng.randrange(len(items))] = node
        node = replace(old, items=tuple(items))
    _put(recipe, place, node)


def change_tensor(rng: Random, op: Operator, recipe: Recipe) -> None:
    """One tensor gets another shape, dtype, device, layout or values."""
    places = [
        p
        for p in [*range(len(recipe.args)), *recipe.kwargs]
        if any(True for _ in tensor_nodes(_at(recipe, p)))
    ]
    if not places:
        return
    place = rng.choice(places)
    node = _at(recipe, place)
    count = sum(1 for _ in tensor_nodes(node))
    chosen = iter([rng.randrange(count)] if rng.random() < 0.8 else range(count))
    wanted = set(chosen)
    numbered = iter(range(count))
    _put(
        recipe,
        place,
        map_tensors(node, lambda t: changed(rng, op, t) if next(numbered) in wanted else t),
    )


def changed(rng: Random, op: Operator, node: TensorNode) -> TensorNode:
    how = rng.randrange(8)
    shape = node.shape
    if how == 0:
        return replace(node, dtype=rng.choice(NAMES))
    if how in (1, 2):
        return replace(node, data=Palette(rng.choice(PALETTES), rng.randrange(8)))
    if how == 3:
        huge = rng.random() < 0.5 and not _returns_list(op)
        return replace(node, device="meta", shape=rng.choice(HUGE_SHAPES) if huge else shape)
    if how == 4:
        return replace(node, shape=any_shape(rng))
    if how == 5 and shape:
        at = rng.randrange(len(shape))
        size = rng.choice((0, 1, shape[at] + 1, max(shape[at] - 1, 0), 2, 7))
        return replace(node, shape=shape[:at] + (size,) + shape[at + 1 :])
    if how == 6:
        if shape and rng.random() < 0.5:
            return replace(node, shape=shape[1:] if rng.random() < 0.5 else shape[:-1])
        return replace(node, shape=(1, *shape) if rng.random() < 0.5 else (*shape, 2))
    return replace(node, layout=rng.choice(LAYOUTS))


def _returns_list(op: Operator) -> bool:
    # One result for each of 2^62 rows is nothing that can be answered.
    return any(r["type"]["list"] for r in op.json["returns"])


def alias(rng: Random, op: Operator, recipe: Recipe) -> None:
    """One tensor shares the memory of one before it."""
    tensors = [i for i, n in enumerate(recipe.args) if isinstance(n, TensorNode)]
    if len(tensors) < 2:
        return
    of, at = sorted(rng.sample(tensors, 2))
    recipe.args[at] = Alias(of, rng.choice(tuple(ALIASES)))


def drop(rng: Random, op: Operator, recipe: Recipe) -> None:
    """One argument is missing."""
    if recipe.kwargs and rng.random() < 0.5:
        recipe.kwargs.pop(rng.choice(list(recipe.kwargs)))
    elif recipe.args:
        recipe.args.pop(rng.randrange(len(recipe.args)) if rng.random() < 0.3 else -1)


def add(rng: Random, op: Operator, recipe: Recipe) -> None:
    """One more argument: an option of the schema, one that it does not have, or one too many."""
    choice = rng.random()
    given = {a["name"] for a in op.args[: len(recipe.args)]} | set(recipe.kwargs)
    missing = [a for a in op.args if a["name"] not in given]
    if missing and choice < 0.8:
        arg = rng.choice(missing)
        recipe.kwargs[arg["name"]] = value_for(rng, op, arg, (2, 3), "float32")
    elif choice < 0.9:
        recipe.kwargs[rng.choice(("nonsense", "input", "self", "dtype", "é", ""))] = Literal(
            rng.choice((1, None, "a"))
        )
    else:
        recipe.args += [Literal(1)] * rng.choice((1, 2, 40))


def by_name(rng: Random, op: Operator, recipe: Recipe) -> None:
    """The last positional argument is given by its name."""
    if recipe.args and len(recipe.args) <= len(op.args):
        name = op.args[len(recipe.args) - 1]["name"]
        node = recipe.args[-1]
        if not any(isinstance(n, Alias) for n in recipe.nodes()):
            recipe.args.pop()
            recipe.kwargs = {("input" if name == "self" else name): node, **recipe.kwargs}


def swap(rng: Random, op: Operator, recipe: Recipe) -> None:
    """Two arguments change places."""
    if len(recipe.args) > 1 and not any(isinstance(n, Alias) for n in recipe.args):
        a, b = rng.sample(range(len(recipe.args)), 2)
        recipe.args[a], recipe.args[b] = recipe.args[b], recipe.args[a]


_CHANGES: list[tuple[int, Callable[[Random, Operator, Recipe], None]]] = [
    (40, another_value),
    (12, another_type),
    (30, change_tensor),
    (8, alias),
    (4, drop),
    (12, add),
    (3, by_name),
    (2, swap),
]
