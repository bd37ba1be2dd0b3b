"""The grammar of one call of a kernel: how a problem is reported, and how it is made again.

    gather f32 [3,4] s[1,3] uniform(-2.0,2.0)#1, 1, i64 [3,2] below(4) | threads

    line      name [arguments] [" | " check]
    argument  [name"="] value
    value     tensor | "&"N["+"elements] | "["values"]" | a Python literal | dtype.NAME
    tensor    dtype " ["sizes"]" [" s["strides"]"] [" "fill]
    fill      "{"numbers"}" | word["("numbers")"]["#"seed]

Strides are in elements; without them the tensor is contiguous. A fill that is a list of numbers is
repeated as often as the tensor needs. `&N` is the tensor that is argument N, `&N+1` a tensor of its
shape whose memory begins one element later. parse() and str() are exact inverses.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import Any, Callable, Optional, Union

Number = Union[int, float, complex, bool]

# Dtypes have short names; others are written in full.
SHORT = {
    "float64": "f64",
    "float32": "f32",
    "float16": "f16",
    "bfloat16": "bf16",
    "complex32": "c32",
    "complex64": "c64",
    "complex128": "c128",
    **{f"{u}int{n}": f"{u or 'i'}{n}" for u in ("", "u") for n in (8, 16, 32, 64)},
}
LONG = {short: name for name, short in SHORT.items()}
DEFAULT_CHECK = "call"

_REAL = r"(?:nan|inf|\d[\d.]*(?:e[+-]?\d+)?)"
_COMPLEX = rf"\(-?{_REAL}[+-]{_REAL}j\)"
_NUMBER = rf"{_COMPLEX}|True|False|-?{_REAL}j?"


@dataclass(frozen=True)
class Fill:
    """The values of a tensor: `word` with its numbers and its seed; the word "" is a list."""

    word: str
    numbers: tuple[Number, ...] = ()
    seed: int = 0

    def __str__(self) -> str:
        listed = ",".join(map(_number, self.numbers))
        if not self.word:
            return "{" + listed + "}"
        arguments = f"({listed})" if self.numbers else ""
        return self.word + arguments + (f"#{self.seed}" if self.seed else "")


@dataclass(frozen=True)
class Tensor:
    """A tensor with memory of its own."""

    dtype: str
    shape: tuple[int, ...]
    strides: Optional[tuple[int, ...]] = None
    fill: Optional[Fill] = None

    def __str__(self) -> str:
        text = f"{SHORT.get(self.dtype, self.dtype)} {_sizes(self.shape)}"
        if self.strides is not None:
            text += f" s{_sizes(self.strides)}"
        return text + (f" {self.fill}" if self.fill is not None else "")


@dataclass(frozen=True)
class Same:
    """The tensor of another argument, or one whose memory begins `shift` elements after its."""

    of: int
    shift: int = 0

    def __str__(self) -> str:
        return f"&{self.of}" + (f"+{self.shift}" if self.shift else "")


@dataclass(frozen=True)
class Dtype:
    """A dtype as an argument."""

    name: str

    def __str__(self) -> str:
        return f"dtype.{self.name}"


@dataclass(frozen=True)
class Items:
    """A list of values."""

    values: tuple[Any, ...]

    def __str__(self) -> str:
        return "[" + ", ".join(map(_value, self.values)) + "]"


@dataclass(frozen=True)
class Line:
    """A call: the kernel's name, arguments with their names ("" for positions), and a check."""

    name: str
    arguments: tuple[tuple[str, Any], ...] = ()
    check: str = DEFAULT_CHECK

    def __str__(self) -> str:
        text = self.name
        if self.arguments:
            written = (f"{n}={_value(v)}" if n else _value(v) for n, v in self.arguments)
            text += " " + ", ".join(written)
        return text + (f" | {self.check}" if self.check != DEFAULT_CHECK else "")

    def tensors(self) -> list[Tensor]:
        """The tensors among the arguments, in order."""
        found: list[Tensor] = []
        self.map(lambda t: (found.append(t), t)[1])
        return found

    def map(self, f: Callable[[Tensor], Any]) -> "Line":
        """The line with each of its tensors replaced by what `f` makes of it."""

        def mapped(value: Any) -> Any:
            if isinstance(value, Tensor):
                return f(value)
            return Items(tuple(map(mapped, value.values))) if isinstance(value, Items) else value

        return Line(self.name, tuple((n, mapped(v)) for n, v in self.arguments), self.check)


def _sizes(sizes: tuple[int, ...]) -> str:
    return "[" + ",".join(map(str, sizes)) + "]"


def _number(value: Number) -> str:
    return repr(value)


def _value(value: Any) -> str:
    return str(value) if isinstance(value, (Tensor, Same, Dtype, Items)) else _literal(value)


def _literal(value: Any) -> str:
    if isinstance(value, tuple):
        return "(" + "".join(f"{_literal(v)}, " for v in value).rstrip() + ")"
    return repr(value)


class _Parser:
    """Reads a line from left to right."""

    def __init__(self, text: str):
        self.text, self.at = text, 0

    def fail(self, expected: str) -> ValueError:
        rest = self.text[self.at :]
        got = repr(rest[:20]) if rest else "the end"
        return ValueError(f"line: expected {expected} at column {self.at + 1}, got {got}")

    def take(self, pattern: str) -> Optional[str]:
        found = re.compile(pattern).match(self.text, self.at)
        if found is None:
            return None
        self.at = found.end()
        return found.group()

    def need(self, pattern: str, expected: str) -> str:
        found = self.take(pattern)
        if found is None:
            raise self.fail(expected)
        return found

    def line(self) -> Line:
        name = self.need(r"[A-Za-z_][\w.:]*", "the name of an operator")
        arguments: list[tuple[str, Any]] = []
        if self.at < len(self.text) and not self.text.startswith(" | ", self.at):
            self.need(" ", "a space")
            arguments.append(self.argument())
            while self.take(", "):
                arguments.append(self.argument())
        check = self.need(r"\w+", "a check") if self.take(r" \| ") else DEFAULT_CHECK
        if self.at < len(self.text):
            raise self.fail("', ', ' | ' or the end")
        return Line(name, tuple(arguments), check)

    def argument(self) -> tuple[str, Any]:
        name = self.take(r"[A-Za-z_]\w*(?==)")
        if name is not None:
            self.take("=")
        return name or "", self.value()

    def value(self) -> Any:
        if self.take("&"):
            of = int(self.need(r"\d+", "the number of an argument"))
            return Same(of, int(self.need(r"\d+", "a number")) if self.take(r"\+") else 0)
        if dtype := self.take(r"dtype\.\w+"):
            return Dtype(dtype.partition(".")[2])
        if self.take(r"\["):
            return Items(self.values(r"\]"))
        if tensor := self.take(r"[a-z]\w*(?= \[)"):
            return self.tensor(LONG.get(tensor, tensor))
        return self.literal()

    def values(self, end: str) -> tuple[Any, ...]:
        found: list[Any] = []
        while not self.take(end):
            if found:
                self.need(", ", "', '")
            found.append(self.value())
        return tuple(found)

    def tensor(self, dtype: str) -> Tensor:
        self.take(" ")
        shape = self.sizes()
        strides = self.sizes() if self.take(r" s(?=\[)") else None
        fill = self.fill() if self.take(r" (?=[a-z{])") else None
        return Tensor(dtype, shape, strides, fill)

    def sizes(self) -> tuple[int, ...]:
        text = self.need(r"\[(-?\d+(,-?\d+)*)?\]", "sizes, such as [3,4]")
        return tuple(map(int, text[1:-1].split(","))) if text != "[]" else ()

    def fill(self) -> Fill:
        if self.take(r"\{"):
            return Fill("", self.numbers(r"\}"))
        word = self.need(r"[a-z]\w*", "values")
        numbers = self.numbers(r"\)") if self.take(r"\(") else ()
        return Fill(word, numbers, int(self.need(r"\d+", "a seed")) if self.take("#") else 0)

    def numbers(self, end: str) -> tuple[Number, ...]:
        found: list[Number] = []
        while not self.take(end):
            if found:
                self.need(",", "','")
            found.append(self.number())
        return tuple(found)

    def number(self) -> Number:
        text = self.need(_NUMBER, "a number")
        if text in ("True", "False"):
            return text == "True"
        return complex(text) if text.rstrip(")").endswith("j") else _real(text)

    def literal(self) -> Any:
        if not re.compile(_COMPLEX).match(self.text, self.at) and self.take(r"\("):
            found: list[Any] = []
            while not self.take(r"\)"):
                found.append(self.value())
                self.need(",", "','")
                self.take(" ")
            return tuple(found)
        if word := self.take(r"None\b|-?(nan|inf)\b"):
            return None if word == "None" else float(word)
        if text := self.take(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""):
            return ast.literal_eval(text)
        return self.number()


def _real(text: str) -> Union[int, float]:
    return float(text) if re.search(r"[.en]", text) else int(text)


def parse(text: str) -> Line:
    """The call that a line describes.

    Raises ValueError, with the column, for a line of another form.
    """
    line = _Parser(text).line()
    if str(line) != text:
        raise ValueError(f"line: expected it to be written as '{line}', got '{text}'")
    return line
