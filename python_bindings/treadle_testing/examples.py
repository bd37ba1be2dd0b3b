"""An example of every operator, made from its samples and run: what the reference pages show.

>>> print(example_of(by_id()["add.Tensor"]))
>>> x = treadle.tensor([[0.5, -1.25], [2.0, 0.0]])
>>> treadle.add(x, x)
tensor([[ 1.0000, -2.5000],
        [ 4.0000,  0.0000]])

python -m treadle_testing.examples FILE    writes {"add.Tensor": "...", ...} to FILE
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import inspect
import itertools
import json
import re
import sys
import warnings
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import Any, Iterator, Optional

import numpy as np

import treadle

from .cases import dtypes_of, has_samples, samples_of
from .catalogue import Operator, operators
from .sample import Sample, to_tensor

PREFERRED = ("float32", "float64", "int64", "bool", "complex64")
MOST_LINES = 14
LINE = 96


def example_of(op: Operator) -> str:
    """A session that calls the operator, with what it prints."""
    problems = []
    candidates = [*_candidates(op), *_candidates(op, whole=False)]
    # A call that warns is shown where every one does.
    for warned, (dtype, sample, digits) in itertools.product(("error", "ignore"), candidates):
        # A rounded matrix may be singular, and a function in Python take its arguments otherwise:
        # then the next one.
        for place in _places(op):
            try:
                return "\n".join(_session(_statements(op, sample, dtype, digits, place), warned))
            except _TooLong:
                break
            except Exception as error:
                problems.append(f"{type(error).__name__}: {error}")
    raise AssertionError(f"{op.id}: no sample makes an example: {problems[:3]}")


def _candidates(op: Operator, whole: bool = True) -> Iterator[tuple[str, Sample, Optional[int]]]:
    """Samples, the best first. Where no page could hold the `whole` data, its shapes say enough."""
    declared = dtypes_of(op)
    chosen = [d for d in PREFERRED if d in declared] or list(declared[:1])
    for dtype in chosen[:2]:
        found = list(islice(samples_of(op, dtype), 40))
        for sample in sorted(found, key=_awkwardness):
            yield from (
                [(dtype, sample, 2), (dtype, sample, None)] if whole else [(dtype, sample, -1)]
            )


def _arrays(value: Any) -> list[np.ndarray]:
    if isinstance(value, np.ndarray):
        return [value]
    if isinstance(value, (list, tuple)):
        return [a for v in value for a in _arrays(v)]
    return []


def _awkwardness(sample: Sample) -> tuple[int, int]:
    """How far a sample is from a few small tensors with a few elements each."""
    arrays = _arrays([*sample.args, *sample.kwargs.values()])
    dull = sum(1 for a in arrays if a.size < 2) + 4 * sum(1 for a in arrays if a.size == 0)
    special = sum(1 for a in arrays if a.dtype.kind in "fc" and not np.isfinite(a).all())
    return 3 * dull + 2 * special, sum(a.size for a in arrays)


# ---- statements ----------------------------------------------------------------------------------


def _statements(
    op: Operator, sample: Sample, dtype: str, digits: Optional[int], place: str
) -> list[str]:
    """The lines of the session; the last is an expression whose value is shown."""
    names = _Names()
    setup: list[str] = ["_ = treadle.manual_seed(0)"] if op.random else []
    texts = []
    one_by_one = bool(place) and _takes_one_by_one(place, op.name)
    for position, value in enumerate(sample.as_written or sample.args):
        known = op.args[position]["name"] if position < len(op.args) else "x"
        listed = isinstance(value, (list, tuple)) and bool(_arrays(value))
        for part in value if one_by_one and listed else [value]:
            texts.append(_argument(part, known, dtype, digits, names, setup))
    for key, value in sample.kwargs.items():
        texts.append(f"{key}={_argument(value, key, dtype, digits, names, setup)}")
    if place:
        call = f"{place}.{op.name}({', '.join(texts)})"
    else:
        call = f"{texts[0]}.{op.name}({', '.join(texts[1:])})"
    if op.is_unwritten:
        call += ".shape"
    if digits == -1:
        shape = "result.shape" if len(op.json["returns"]) == 1 else "[t.shape for t in result]"
        return [*setup, f"result = {call}", shape]
    return [*setup, call]


class _Names:
    """A name for each tensor: that of its argument, `x` for self; `x2` where it is taken."""

    def __init__(self) -> None:
        self.taken: set[str] = set()

    def new(self, argument: str) -> str:
        base = {"self": "x", "input": "x", "tensors": "x"}.get(argument, argument)
        name, number = base, 2
        while name in self.taken:
            name, number = f"{base}{number}", number + 1
        self.taken.add(name)
        return name


def _argument(
    value: Any, argument: str, dtype: str, digits: Optional[int], names: _Names, setup: list[str]
) -> str:
    if isinstance(value, np.ndarray):
        name = names.new(argument)
        setup.append(f"{name} = {_tensor(value, dtype, digits)}")
        return name
    if isinstance(value, (list, tuple)) and _arrays(value):
        items = [_argument(v, argument, dtype, digits, names, setup) for v in value]
        return f"[{', '.join(items)}]"
    if isinstance(value, float) and not np.isfinite(value):
        return f'float("{value}")'
    return repr(value)


def _short(value: Any, digits: Optional[int], scalar: Any) -> Any:
    """The data with few digits: rounded, or as few as tell the values of the dtype apart."""
    if isinstance(value, list):
        return [_short(v, digits, scalar) for v in value]
    if isinstance(value, complex):
        part = {np.complex64: np.float32, np.complex128: np.float64}[scalar]
        return complex(_short(value.real, digits, part), _short(value.imag, digits, part))
    if isinstance(value, float):
        return round(value, digits) + 0 if digits == 2 else float(str(scalar(value)))
    return value


def _tensor(array: np.ndarray, dtype: str, digits: Optional[int]) -> str:
    """`treadle.tensor([0.5, 1.0])`, with the dtype where it is not the one that the data gives."""
    t = to_tensor(array, dtype)
    if digits == -1 and array.size > 12:
        maker = "randn" if t.is_floating_point() or t.is_complex() else "zeros"
        return f"treadle.{maker}({tuple(array.shape)}, dtype={t.dtype})"
    text = str(_short(array.tolist(), digits, array.dtype.type))
    text = re.sub(r"\b(nan|inf)\b", r'float("\1")', text)
    given = treadle.tensor(eval(text)) if array.size else treadle.tensor([])
    if array.size == 0 and array.ndim != 1:
        return f"treadle.zeros({tuple(array.shape)}, dtype={t.dtype})"
    note = "" if given.dtype == t.dtype else f", dtype={t.dtype}"
    line = f"treadle.tensor({text}{note})"
    if len(line) > 8 * LINE:
        raise _TooLong
    return line


def _places(op: Operator) -> Iterator[str]:
    """Where the function is, as programs write it; empty for a method alone."""
    module = op.json["python_module"]
    if "function" in op.json["variants"]:
        public = {"nn": treadle.nn.functional}.get(module, getattr(treadle, module or "", treadle))
        if hasattr(public, op.name):
            yield public.__name__
        if module is not None:
            yield f"treadle._C._{module}"
    if "method" in op.json["variants"]:
        yield ""


def _takes_one_by_one(place: str, name: str) -> bool:
    """Whether the function takes its tensors as arguments of their own rather than in a list."""
    function = attrgetter(".".join([*place.split(".")[1:], name]))(treadle)
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        return False
    return any(p.kind == p.VAR_POSITIONAL for p in parameters)


# ---- running -------------------------------------------------------------------------------------


class _TooLong(Exception):
    """More lines than a page should show."""


def _wrapped(line: str) -> list[str]:
    """A statement over several lines, broken between the rows of its data."""
    if len(line) <= LINE:
        return [line]
    lines, rest = [], line
    while len(rest) > LINE:
        end = rest.rfind("], ", 0, LINE) + 2
        if end < LINE // 3:
            end = rest.rfind(", ", 0, LINE) + 1
        if end <= 1:
            break
        lines.append(rest[:end].rstrip())
        rest = "    " + rest[end:].lstrip()
    return [*lines, rest]


def _session(statements: list[str], warned: Any) -> list[str]:
    names: dict[str, Any] = {"treadle": treadle}
    lines: list[str] = []
    for i, statement in enumerate(statements):
        first, *more = _wrapped(statement)
        lines += [f">>> {first}", *(f"... {line}" for line in more)]
        if i < len(statements) - 1:
            exec(statement, names)
            continue
        with warnings.catch_warnings():
            warnings.simplefilter(warned)
            value = eval(statement, names)
        if value is not None:
            lines += _shown(value)
    if len(lines) > MOST_LINES + 10:
        raise _TooLong
    return lines


def _shown(value: Any) -> list[str]:
    lines = repr(value).splitlines()
    if len(lines) > MOST_LINES:
        raise _TooLong
    # A blank line ends the output of a session.
    return [line if line.strip() else "<BLANKLINE>" for line in lines]


def public_operators() -> list[Operator]:
    """The operators that have a reference page and samples."""
    return [o for o in operators() if o.public and has_samples(o)]


def main(path: str) -> int:
    found, status = {}, 0
    for op in public_operators():
        try:
            found[op.id] = example_of(op)
        except AssertionError as error:
            print(error, file=sys.stderr)
            status = 1
    Path(path).write_text(json.dumps(found, indent=1))
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
