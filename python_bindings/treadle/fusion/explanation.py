"""What would be computed now, and how: as text and as a picture."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, NamedTuple, Optional, Tuple

from treadle import _C
from treadle._C import Tensor
from treadle.viz import Drawing, groups

from .group import Group, Read, Step, Value


class ExplainedGroup(NamedTuple):
    """A group, and what it costs."""

    group: Group
    bytes: int  # that it reads and writes
    bytes_alone: int  # that its operators would read and write one after the other
    way: str  # how they are computed: "in one pass", "as one convolution", "piece by piece"

    @property
    def cost(self) -> str:
        """The number of operators, and the bytes, in words."""
        count = len(self.group.steps)
        return (
            f"{count} operator{'s' if count > 1 else ''} {self.way}: "
            f"{self.bytes} bytes instead of {self.bytes_alone}"
        )


class Explanation:
    """The groups in which values that wait would be computed, in order; `str` is their text, and a
    notebook shows their picture.
    """

    def __init__(self, groups: Tuple[ExplainedGroup, ...]) -> None:
        self.groups = groups

    @property
    def bytes_saved(self) -> int:
        """Bytes that are not read and written, since the groups keep values in the cache."""
        return sum(g.bytes_alone - g.bytes for g in self.groups)

    def __str__(self) -> str:
        if not self.groups:
            return "nothing waits"
        return "\n".join(f"{g.group}\n  {g.cost}" for g in self.groups)

    def draw(self) -> Drawing:
        """The groups as a picture, which `save` writes to a file: the operators of each, what it
        reads and writes, and why values pass from one group to another through memory."""
        return groups.draw(self.groups)

    def _repr_svg_(self) -> str:
        return self.draw().svg

    def __repr__(self) -> str:
        return f"<Explanation of {len(self.groups)} groups, {self.bytes_saved} bytes saved>"


def explain(x: Optional[Tensor] = None) -> Explanation:
    """The groups in which `x` would be computed; without it, those of everything that waits.

    Nothing is computed by this. TypeError for what is no tensor.
    """
    if x is not None and not isinstance(x, Tensor):
        raise TypeError(f"explain: expected a tensor, got {type(x).__name__}")
    return Explanation(tuple(_explained(*parts) for parts in _C._describe_pending(x)))


def _explained(
    shape: Any, reads: Any, nodes: Any, moved: int, alone: int, way: str
) -> ExplainedGroup:
    steps = (
        Step(
            value,
            operator,
            tuple(Value(*a) if isinstance(a, tuple) else a for a in arguments),
            dtype,
            strides if is_written else (),
            is_written,
        )
        for value, operator, arguments, dtype, strides, is_written in nodes
    )
    group = Group(shape, tuple(Read(*r) for r in reads), tuple(steps))
    return ExplainedGroup(group, moved, alone, way)
