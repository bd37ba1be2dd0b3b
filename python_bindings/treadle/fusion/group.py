"""Groups: operators that are computed in one pass. A group can be printed, read back, and run by a
plain interpreter, which calls one operator after the other.

    group (1000, 1000)
      %0 = read float32 (1000, 1000) strides (1000, 1)
      %1 = read float32 (1000,) strides (1,)
      %2 = aten::mul.Tensor(%0, %1) float32
      %3 = aten::add.Scalar(%2, 1, 1) float32 strides (1000, 1) written
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple, Union

from treadle import _C
from treadle._C import Tensor, dtype
from treadle._ops import ops

from .modes import fuse


class Value(NamedTuple):
    """An argument that is a value of the group, by its number."""

    number: int

    def __str__(self) -> str:
        return f"%{self.number}"


# Lists are of dimensions; None is an argument that was left out.
Argument = Union[Value, bool, int, float, complex, str, List[int], dtype, None]


@dataclass(frozen=True)
class Read:
    """A value that the group reads from memory."""

    value: int
    dtype: _C.dtype
    shape: Tuple[int, ...]
    strides: Tuple[int, ...]
    why_apart: str = ""  # why it is of another group, where it is
    source: int = -1  # the value of that group

    def __str__(self) -> str:
        text = f"%{self.value} = read {_name(self.dtype)} {self.shape} strides {self.strides}"
        if not self.why_apart:
            return text
        return f"{text}  # %{self.source} of another group: {self.why_apart}"


@dataclass(frozen=True)
class Step:
    """An operator, and the value that it computes."""

    value: int
    operator: str  # "aten::add.Tensor"
    arguments: Tuple[Argument, ...]  # in the order of its schema
    dtype: _C.dtype
    strides: Tuple[int, ...]  # empty where it is not written
    is_written: bool  # to memory: a tensor or another group reads it

    @property
    def inputs(self) -> Tuple[int, ...]:
        """The numbers of the values that it reads."""
        return tuple(a.number for a in self.arguments if isinstance(a, Value))

    @property
    def call(self) -> str:
        """The text of the operator with its arguments."""
        return f"%{self.value} = {self.operator}({', '.join(map(_written, self.arguments))})"

    def __str__(self) -> str:
        text = f"{self.call} {_name(self.dtype)}"
        return f"{text} strides {self.strides} written" if self.is_written else text


@dataclass(frozen=True)
class Group:
    """Operators whose results have one shape, and which are computed in one pass over memory."""

    shape: Tuple[int, ...]
    reads: Tuple[Read, ...]
    steps: Tuple[Step, ...]

    def __str__(self) -> str:
        lines = [f"group {self.shape}"]
        return "\n  ".join(lines + [str(part) for part in (*self.reads, *self.steps)])

    @staticmethod
    def parse(text: str) -> Group:
        """The group that `str` gave as `text`. ValueError for a text that it does not give."""
        return _parse(text)

    def run(self, inputs: Sequence[Tensor]) -> Dict[int, Tensor]:
        """Call the operators one after the other.

        inputs: a tensor for each of `reads`, in their order. Returns the values that are written,
        by their numbers.
        """
        if len(inputs) != len(self.reads):
            raise ValueError(
                f"Group.run: expected {len(self.reads)} tensors, as the group reads, "
                f"got {len(inputs)}"
            )
        values = self._values(inputs)
        return {step.value: values[step.value] for step in self.steps if step.is_written}

    def shapes(self) -> Dict[int, Tuple[int, ...]]:
        """The shape of each value, by its number."""
        inputs = [_C.empty(read.shape, dtype=read.dtype, device="meta") for read in self.reads]
        return {value: tuple(tensor.shape) for value, tensor in self._values(inputs).items()}

    def _values(self, inputs: Sequence[Tensor]) -> Dict[int, Tensor]:
        values = {read.value: tensor for read, tensor in zip(self.reads, inputs)}
        with fuse(enabled=False):
            for step in self.steps:
                values[step.value] = _call(step, values)
        return values


def _written(argument: Argument) -> str:
    if isinstance(argument, Value):
        return str(argument)
    return _name(argument) if isinstance(argument, dtype) else repr(argument)


def _name(d: dtype) -> str:
    return str(d).rpartition(".")[2]


def _call(step: Step, values: Dict[int, Tensor]) -> Tensor:
    namespace, _, name = step.operator.partition("::")
    packet, _, overload = name.partition(".")
    operator = getattr(getattr(getattr(ops, namespace), packet), overload or "default")
    given = [values[a.number] if isinstance(a, Value) else a for a in step.arguments]
    by_place: List[Any] = []
    by_name: Dict[str, Any] = {}
    for argument, value in zip(operator._schema.arguments, given):
        if argument.kwarg_only:
            by_name[argument.name] = value
        else:
            by_place.append(value)
    return operator(*by_place, **by_name)


_LIST = r"\([0-9, -]*\)"
_ARGUMENT = re.compile(r"'[^']*'|\[[^]]*\]|[^, ]+")
_READ = re.compile(rf"%(\d+) = read (\w+) ({_LIST}) strides ({_LIST})(?:  # %(\d+) .*: (.*))?")
_STEP = re.compile(rf"%(\d+) = ([\w:.]+)\((.*?)\) (\w+)(?: strides ({_LIST}) written)?")


def _parse(text: str) -> Group:
    head, *rest = text.strip().splitlines()
    if not head.startswith("group "):
        raise ValueError(f"Group.parse: expected a line that begins with 'group ', got {head!r}")
    reads: List[Read] = []
    steps: List[Step] = []
    for line in map(str.strip, rest):
        if found := _READ.fullmatch(line):
            value, kind, shape, strides, source, why = found.groups()
            apart = (why, int(source)) if why else ()
            reads.append(Read(int(value), _dtype(kind), _ints(shape), _ints(strides), *apart))
        elif found := _STEP.fullmatch(line):
            value, operator, arguments, kind, strides = found.groups()
            steps.append(
                Step(
                    int(value),
                    operator,
                    tuple(map(_argument, _ARGUMENT.findall(arguments))),
                    _dtype(kind),
                    _ints(strides or "()"),
                    strides is not None,
                )
            )
        else:
            raise ValueError(f"Group.parse: expected a read or a step of a group, got {line!r}")
    return Group(_ints(head[len("group ") :]), tuple(reads), tuple(steps))


def _ints(text: str) -> Tuple[int, ...]:
    return ast.literal_eval(text)


def _dtype(name: str) -> dtype:
    found = getattr(_C, name, None)
    if not isinstance(found, dtype):
        raise ValueError(f"Group.parse: expected the name of a dtype, got {name!r}")
    return found


def _argument(text: str) -> Argument:
    if text.startswith("%"):
        return Value(int(text[1:]))
    if text.startswith(("[", "'")) or text in ("True", "False", "None"):
        return ast.literal_eval(text)
    for kind in (int, float, complex):
        try:
            return kind(text)
        except ValueError:
            continue
    return _dtype(text)
