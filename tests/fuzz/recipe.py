"""Recipes: calls as data, which can be made, printed as Python, and changed piece by piece.

Example:

    Recipe("add.Tensor", "out", [TensorNode((2, 3), "float32"), Literal(1)], out=Alias(0, "tail"))
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import prod
from typing import Any, Callable, Iterator, Optional

import numpy as np

import treadle
from treadle_testing.catalogue import Operator, by_id

from . import strangers, surface
from .values import DTYPES, Data, Fixed, Palette, cycled, flat, literal

# Tensors above this many elements repeat one of them by a stride of 0.
DENSE = 1 << 14
LAYOUTS = ("plain", "offset", "transposed", "stepped", "flipped", "expanded", "overlapping")
# Layouts in which every element has memory of its own.
INJECTIVE = LAYOUTS[:5]


class Node:
    """One argument."""


@dataclass(frozen=True)
class Literal(Node):
    """A Python value that prints as itself."""

    value: Any

    def source(self) -> str:
        return literal(self.value)


@dataclass(frozen=True)
class Stranger(Node):
    """A value by name: an object that belongs nowhere (strangers.py)."""

    name: str


@dataclass(frozen=True)
class Items(Node):
    """A list or a tuple of nodes."""

    items: tuple[Node, ...]
    kind: type = list


@dataclass(frozen=True)
class Alias(Node):
    """The tensor that is argument `of`, or a view of its memory."""

    of: int
    how: str = "same"


ALIASES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "same": (lambda t: t, "{}"),
    "detached": (lambda t: t.detach(), "{}.detach()"),
    "tail": (lambda t: t.reshape(-1)[1:], "{}.reshape(-1)[1:]"),
    "head": (lambda t: t[: t.shape[0] // 2 + 1], "{0}[:{0}.shape[0] // 2 + 1]"),
    "reversed dims": (
        lambda t: t.permute(tuple(reversed(range(t.dim())))),
        "{0}.permute(tuple(reversed(range({0}.dim()))))",
    ),
}


@dataclass(frozen=True)
class TensorNode(Node):
    """A tensor."""

    shape: tuple[int, ...]
    dtype: str = "float32"
    data: Data = Palette("small")
    layout: str = "plain"
    device: str = "cpu"
    grad: bool = False

    def build(self) -> tuple[Any, Any]:
        """The tensor, and the tensor that owns its memory (the same, for plain ones)."""
        tensor, base = self._build()
        if self.grad:
            tensor.requires_grad_()
        return tensor, base

    def _build(self) -> tuple[Any, Any]:
        shape, dtype, data = self.shape, self.dtype, self.data
        if self.device != "cpu":
            if prod(shape) > DENSE:
                small = treadle.empty((1,) * len(shape), dtype=DTYPES[dtype], device=self.device)
                return small.expand(shape), small
            t = treadle.empty(shape, dtype=DTYPES[dtype], device=self.device)
            return t, t
        layout, count = self.effective_layout(), prod(shape)
        if layout == "plain":
            t = flat(data, dtype, count).reshape(shape).clone()
            return t, t
        if layout == "huge":
            base = flat(data, dtype, 1).clone()
            return base.expand(shape), base
        if layout == "offset":
            guard = flat(Palette("ones"), dtype, 3)
            base = treadle.cat([guard, flat(data, dtype, count), guard])
            return base[3:-3].view(shape), base
        if layout == "transposed":
            dims = tuple(reversed(range(len(shape))))
            base = (
                flat(data, dtype, count)
                .reshape(shape)
                .permute(dims)
                .clone(memory_format=treadle.contiguous_format)
            )
            return base.permute(dims), base
        if layout == "stepped":
            values = flat(data, dtype, count).reshape(shape)
            base = treadle.stack([values, values], -1)
            return base.select(-1, 0), base
        if layout == "flipped":
            array = flat(data, dtype, count).reshape(shape).numpy()[..., ::-1].copy()
            return treadle.from_numpy(array[..., ::-1]), treadle.from_numpy(array)
        if layout == "expanded":
            small = self.narrow_shape()
            base = flat(data, dtype, prod(small)).clone()
            return base.view(small).expand(shape), base
        base = flat(data, dtype, sum(shape) - len(shape) + 1).clone()
        return base.as_strided(shape, (1,) * len(shape)), base

    def effective_layout(self) -> str:
        """The layout that the tensor has: not every shape can have each."""
        count, shape = prod(self.shape), self.shape
        own = isinstance(self.data, Fixed) and self.data.array.size == count
        if count > DENSE and not own:
            return "huge"
        if not count or (not shape and self.layout not in ("offset", "stepped")):
            return "plain"
        # NumPy has at most 64 dimensions (32 before its version 2).
        if self.layout == "flipped" and (not hasattr(np, self.dtype) or len(shape) > 32):
            return "stepped"
        if self.layout == "expanded" and max(shape) == 1:
            return "plain"
        return self.layout

    def narrow_shape(self) -> tuple[int, ...]:
        """The shape with its first dimension of more than one element made 1."""
        at = next(i for i, s in enumerate(self.shape) if s > 1)
        return self.shape[:at] + (1,) + self.shape[at + 1 :]

    def source(self) -> str:
        shape, count = self.shape, prod(self.shape)
        dtype = f"dtype=treadle.{self.dtype}"
        end = ".requires_grad_()" if self.grad else ""
        if self.device != "cpu":
            huge = count > DENSE
            made = (1,) * len(shape) if huge else shape
            text = f'treadle.empty({literal(made)}, {dtype}, device="{self.device}")'
            return text + (f".expand({literal(shape)})" if huge else "") + end
        layout = self.effective_layout()

        def values(n: int) -> str:
            found = self.data.values(self.dtype)
            n = max(n, 0)
            if n <= 16 or n <= len(found):
                text = literal(cycled(found, n))
            else:
                text = f"({literal(found)} * {n // len(found) + 1})[:{n}]"
            return f"treadle.tensor({text}, {dtype})"

        if layout == "plain":
            return f"{values(count)}.reshape({literal(shape)}){end}"
        if layout == "huge":
            return f"{values(1)}.expand({literal(shape)}){end}"
        if layout == "offset":
            guard = f"treadle.ones(3, {dtype})"
            memory = f"treadle.cat([{guard}, {values(count)}, {guard}])"
            return f"{memory}[3:-3].view({literal(shape)}){end}"
        plain = f"{values(count)}.reshape({literal(shape)})"
        if layout == "transposed":
            dims = literal(tuple(reversed(range(len(shape)))))
            return f"{plain}.permute({dims}).contiguous().permute({dims}){end}"
        if layout == "stepped":
            return f"treadle.stack([{plain}] * 2, -1).select(-1, 0){end}"
        if layout == "flipped":
            array = f"{plain}.numpy()[..., ::-1].copy()[..., ::-1]"
            return f"treadle.from_numpy({array}){end}"
        if layout == "expanded":
            small = self.narrow_shape()
            return f"{values(prod(small))}.view({literal(small)}).expand({literal(shape)}){end}"
        memory = values(sum(shape) - len(shape) + 1)
        return f"{memory}.as_strided({literal(shape)}, {literal((1,) * len(shape))}){end}"


@dataclass
class Recipe:
    """One call."""

    op: str
    form: str  # functional, method, inplace or out
    args: list[Node]
    kwargs: dict[str, Node] = field(default_factory=dict)
    out: Optional[Node] = None
    # The checks beside how the call ended: "meta", "layout", "forms", "leak", "reference".
    checks: frozenset[str] = frozenset()
    # The sample that the arguments are, for "reference": dtype and number.
    sample: Optional[tuple[str, int]] = None

    @property
    def operator(self) -> Operator:
        return surface.find(self.op)

    def nodes(self) -> list[Node]:
        """The arguments in the order in which they are built: an alias names an earlier one."""
        return [*self.args, *self.kwargs.values(), *([self.out] if self.out else [])]

    def elements(self) -> int:
        """How many elements the largest tensor on the cpu has, or pairs of elements of the two
        largest ones.
        """
        found = [t for node in self.nodes() for t in tensor_nodes(node) if t.device == "cpu"]
        return prod(sorted(prod(max(1, n) for n in t.shape) for t in found)[-2:])

    def function(self) -> Callable[..., Any]:
        op = self.operator
        if self.form == "inplace":
            return op.inplace
        if self.form == "method":
            return getattr(treadle.Tensor, op.name)
        return op.function

    def with_nodes(self, change: Callable[[Node], Node]) -> Recipe:
        """The recipe with every argument changed."""
        return replace(
            self,
            args=[change(n) for n in self.args],
            kwargs={k: change(n) for k, n in self.kwargs.items()},
            out=change(self.out) if self.out else None,
        )

    def copied(self) -> Recipe:
        return replace(self, args=list(self.args), kwargs=dict(self.kwargs))


@dataclass
class Piece:
    """A tensor of a call that was built, and where it came from."""

    tensor: Any
    base: Any
    node: Node
    argument: int  # in the order of nodes()


@dataclass
class Built:
    """A recipe's arguments."""

    args: list[Any]
    kwargs: dict[str, Any]
    pieces: list[Piece]


def build(recipe: Recipe) -> Built:
    """Makes the arguments, all anew."""
    pieces: list[Piece] = []
    built: list[Any] = []
    first: dict[int, Piece] = {}

    def make(node: Node, argument: int) -> Any:
        if isinstance(node, Literal):
            value = node.value
            return copy.copy(value) if type(value) is list else value
        if isinstance(node, TensorNode):
            piece = Piece(*node.build(), node, argument)
        elif isinstance(node, Alias):
            of = first.get(node.of)
            if of is None:
                return None
            try:
                tensor = ALIASES[node.how][0](of.tensor)
            except (RuntimeError, IndexError, ValueError, TypeError):
                tensor = of.tensor
            piece = Piece(tensor, of.base, node, argument)
        elif isinstance(node, Items):
            return node.kind([make(n, argument) for n in node.items])
        else:
            assert isinstance(node, Stranger)
            return strangers.make(node.name)
        pieces.append(piece)
        first.setdefault(argument, piece)
        return piece.tensor

    for argument, node in enumerate(recipe.nodes()):
        built.append(make(node, argument))
    count = len(recipe.args)
    kwargs = dict(zip(recipe.kwargs, built[count:]))
    if recipe.out is not None:
        kwargs["out"] = built[-1]
    return Built(built[:count], kwargs, pieces)


def tensor_nodes(node: Node) -> Iterator[TensorNode]:
    """The tensors in a node."""
    if isinstance(node, TensorNode):
        yield node
    elif isinstance(node, Items):
        for item in node.items:
            yield from tensor_nodes(item)


def map_tensors(node: Node, change: Callable[[TensorNode], Node]) -> Node:
    """The node with each tensor in it changed."""
    if isinstance(node, TensorNode):
        return change(node)
    if isinstance(node, Items):
        return replace(node, items=tuple(map_tensors(n, change) for n in node.items))
    return node


def node_of(value: Any, dtype: str) -> Node:
    """The node of an argument of a sample, in which NumPy arrays stand for tensors."""
    import numpy as np

    if isinstance(value, np.ndarray):
        name = str(value.dtype)
        if dtype == "bfloat16" and name == "float32":
            name = dtype
        return TensorNode(tuple(value.shape), name, Fixed(value))
    if isinstance(value, (list, tuple)) and any(_holds_array(v) for v in value):
        return Items(tuple(node_of(v, dtype) for v in value), type(value))
    return Literal(value)


def _holds_array(value: Any) -> bool:
    import numpy as np

    return isinstance(value, np.ndarray) or (
        isinstance(value, (list, tuple)) and any(_holds_array(v) for v in value)
    )


@lru_cache(maxsize=None)
def written(op_name: str) -> tuple[frozenset[int], frozenset[str]]:
    """The arguments that functions of a name may write: positions and names, over all overloads."""
    positions, names = set(), set()
    for op in [*by_id().values(), *surface.bindings().values()]:
        if op.name == op_name:
            for i, a in enumerate(op.args):
                if a["type"]["alias"] and a["type"]["alias"]["write"]:
                    positions.add(i)
                    names.add(a["name"])
    return frozenset(positions), frozenset(names)
