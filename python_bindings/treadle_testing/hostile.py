"""Calls every operator with arguments that do not fit, one at a time: each call raises a Python
exception or succeeds.

    python -m treadle_testing.hostile JOURNAL PART PARTS FIRST

runs the calls of every PARTS-th operator from PART on, from call FIRST on, in this process. JOURNAL
always holds the call that is being made, so that the process that started this one can tell which
call killed it, and go on after it. A fault that is no crash (an exception of another type, a
message against the rules, something written by a call that failed) is printed, one line for each.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import itertools
import os
import re
import sys
from typing import Any, Callable, Iterator

import numpy as np

import treadle

from . import law, limits
from .cases import dtypes_of, has_samples, in_suite, samples_of
from .catalogue import Operator, operators
from .sample import Sample, map_arrays, to_tensor

# Python itself refuses a method's `self` of another type; every other message begins with the
# operator.
NAMED, INTERNAL_NAMES = re.compile(law.NAMED), re.compile(law.INTERNAL)

# A value that does not fit, by a name to print.
Bad = tuple[str, Callable[[], Any]]


def _values(*values: Any) -> list[Bad]:
    return [(repr(v)[:40], lambda v=v: v) for v in values]  # type: ignore[misc]


ANYWHERE = _values(
    None,
    "text",
    ["a", "b"],
    object,
    2**63,
    -(2**63) - 1,
    float("nan"),
    1.5,
    True,
    [],
    {},
    1j,
    [None],
    b"x",
    ...,
    slice(1),
)
INTS = _values(
    -1,
    -(2**63),
    2**63 - 1,
    2**62,
    10**30,
    100,
    -100,
    0,
    3,
    float("inf"),
    "1",
    [0],
    np.int64(5),
    np.float64(0.5),
)
INT_LISTS = _values(
    [-1],
    [2**62] * 3,
    [2**62, 4],
    [2**31, 2**31],
    [0, 0, 0],
    [2**63],
    [-(2**63)],
    [-(2**63)] * 2,
    [1.5],
    [float("nan")],
    ["a"],
    [[1]],
    [1] * 1000,
    [5, 5, 5],
    [True],
    (1, -2),
    2**62,
    -1,
    [3, -1, -1],
    [0, 1],
    [0, 0],
    [1, 2, 3, 4, 5, 6],
)
FLOATS = _values(float("inf"), float("-inf"), 10**400, -1.0, "0.5", [0.5], 1e308, np.float32(2))
SCALARS = _values(
    float("inf"), 10**30, -1, 0, [1], "1", np.complex64(1j), 2**63 - 1, -(2**63), 2**64 - 1, 1e308
)
BOOLS = _values(2, "True", [True], np.bool_(True))
TYPES = _values("float32", int, float, 7, np.float32, "nonsense", np.dtype("int8"))
TEXTS = _values("", "nonsense", "\0", "\udc80", "é" * 1000, 3)
DEVICES = _values(
    "nowhere", "cuda", "cuda:99999999999999999999", "cpu:1", "cpu:-1", "", "meta", 1, -1
)
FORMATS = _values("a", 1, treadle.preserve_format, treadle.channels_last)
TENSORS: list[Bad] = [
    ("ones(0)", lambda: treadle.ones(0)),
    ("0-dim", lambda: treadle.tensor(2.0)),
    ("ones(7, 5, 3)", lambda: treadle.ones(7, 5, 3)),
    ("ones of 9 dimensions", lambda: treadle.ones(1, 2, 1, 2, 1, 1, 1, 1, 2)),
    ("int64", lambda: treadle.arange(12).reshape(3, 4)),
    ("bool", lambda: treadle.ones(3, 4, dtype=treadle.bool)),
    ("uint8", lambda: treadle.ones(3, 4, dtype=treadle.uint8)),
    ("uint16", lambda: treadle.ones(3, 4, dtype=treadle.uint16)),
    ("uint64", lambda: treadle.full((3, 4), 2**64 - 1, dtype=treadle.uint64)),
    ("complex64", lambda: treadle.ones(3, 4, dtype=treadle.complex64)),
    ("bfloat16", lambda: treadle.ones(3, 4, dtype=treadle.bfloat16)),
    ("meta", lambda: treadle.ones(3, 4, device="meta")),
    ("huge meta", lambda: treadle.empty(2**40, 2**20, device="meta")),
    ("requires grad", lambda: treadle.ones(3, 4, requires_grad=True)),
    ("far indices", lambda: treadle.tensor([2**62, -(2**62), 5])),
    ("negative indices", lambda: treadle.tensor([[-1, -9]])),
    ("nan", lambda: treadle.full((3, 4), float("nan"))),
    ("infinite", lambda: treadle.full((4,), float("inf"))),
    ("expanded", lambda: treadle.ones(1).expand(3, 4)),
    ("overlapping", lambda: treadle.ones(10).as_strided((3, 4), (1, 1))),
    ("transposed", lambda: treadle.ones(4, 3).t()),
    ("empty rows", lambda: treadle.ones(3, 0)),
    ("array", lambda: np.ones((3, 4))),
    ("expanded huge", lambda: _expanded_huge()),
    ("expanded huge empty", lambda: treadle.ones(0, 1).expand(0, 2**59)),
]
LISTS: list[Bad] = [
    ("[ones, None]", lambda: [treadle.ones(3), None]),
    ("[ones, 1]", lambda: [treadle.ones(3), 1]),
    ("a tensor", lambda: treadle.ones(2, 3)),
    ("a generator", lambda: (treadle.ones(2) for _ in range(2))),
    ("different shapes", lambda: [treadle.ones(2, 3), treadle.ones(7)]),
    ("cpu and meta", lambda: [treadle.ones(2, 3), treadle.ones(2, 3, device="meta")]),
    ("far indices", lambda: [treadle.tensor([2**62]), treadle.tensor([-(2**62)])]),
    ("masks", lambda: [treadle.ones(2, 9, dtype=treadle.bool)]),
    ("100 tensors", lambda: [treadle.ones(2)] * 100),
    ("floats", lambda: [treadle.tensor([0.5])]),
    ("empty ones", lambda: [treadle.ones(0), treadle.ones(0, 3)]),
]
BY_TYPE = {
    "int": INTS,
    "float": FLOATS,
    "Scalar": SCALARS,
    "bool": BOOLS,
    "ScalarType": TYPES,
    "str": TEXTS,
    "Device": DEVICES,
    "Layout": FORMATS,
    "MemoryFormat": FORMATS,
    "Tensor": TENSORS,
    "Generator": _values(1, "a"),
}


def _expanded_huge() -> treadle.Tensor:
    """More elements than a reduction gets through: the CPU's is refused the memory for that, a
    device's own may begin."""
    n = 2**30 if treadle.get_default_device().type == "cpu" else 2**10
    return treadle.ones(1).expand(n, n)


def bad_values(arg: Any) -> list[Bad]:
    kind = arg["type"]
    if kind["list"]:
        return ANYWHERE + {"int": INT_LISTS, "Tensor": LISTS}.get(kind["base"], [])
    return ANYWHERE + BY_TYPE[kind["base"]]


OUTS: list[Bad] = [
    ("int32", lambda: treadle.zeros(3, 4, dtype=treadle.int32)),
    ("bool", lambda: treadle.zeros(3, 4, dtype=treadle.bool)),
    ("other shape", lambda: treadle.zeros(7)),
    ("expanded", lambda: treadle.zeros(1).expand(3, 4)),
    ("meta", lambda: treadle.zeros(3, 4, device="meta")),
    ("requires grad", lambda: treadle.zeros(3, 4, requires_grad=True)),
    ("text", lambda: "a"),
    ("list", lambda: [treadle.zeros(3, 4)]),
    ("tuple of 3", lambda: (treadle.zeros(3), treadle.zeros(3), treadle.zeros(3))),
    ("None twice", lambda: (None, None)),
    ("array", lambda: np.zeros((3, 4))),
]


class Call:
    """One call, made anew each time from samples so that nothing is left over from another."""

    def __init__(
        self,
        label: str,
        function: Callable[..., Any],
        make: Callable[[], tuple[list[Any], dict[str, Any]]],
    ):
        self.label, self.function, self.make = label, function, make


def _sample_of(op: Operator) -> tuple[Sample, str]:
    dtypes = dtypes_of(op)
    dtype = next(
        (d for d in ("float32", "float64", "int64", "complex64") if d in dtypes), dtypes[0]
    )
    found = list(itertools.islice(samples_of(op, dtype), 6))
    # The fullest call: it has most arguments to replace.
    return max(found, key=lambda s: len(s.args) + len(s.kwargs)), dtype


def _functions(op: Operator) -> Iterator[tuple[str, Callable[..., Any]]]:
    yield op.id, op.function
    if op.has_form("inplace") and not op.name.endswith("_"):
        yield op.id + " in place", op.inplace


def calls_of(op: Operator) -> Iterator[Call]:
    sample, dtype = _sample_of(op)

    def fresh() -> tuple[list[Any], dict[str, Any]]:
        return (
            map_arrays(list(sample.args), lambda a: to_tensor(a, dtype)),
            {k: map_arrays(v, lambda a: to_tensor(a, dtype)) for k, v in sample.kwargs.items()},
        )

    def replaced(
        position: int, name: str, value: Callable[[], Any]
    ) -> Callable[[], tuple[list[Any], dict[str, Any]]]:
        def make() -> tuple[list[Any], dict[str, Any]]:
            args, kwargs = fresh()
            if position < len(args):
                args[position] = value()
            else:
                kwargs[name] = value()
            return args, kwargs

        return make

    def extended(
        extra: list[Any], named: dict[str, Any]
    ) -> Callable[[], tuple[list[Any], dict[str, Any]]]:
        def make() -> tuple[list[Any], dict[str, Any]]:
            args, kwargs = fresh()
            return [*args, *extra], {**kwargs, **named}

        return make

    for label, function in _functions(op):
        yield Call(f"{label}()", function, lambda: ([], {}))
        for count in range(len(sample.args)):
            yield Call(
                f"{label} with {count} arguments",
                function,
                lambda n=count: (fresh()[0][:n], {}),  # type: ignore[misc]
            )
        yield Call(f"{label} with too many arguments", function, extended([1] * 20, {}))
        yield Call(f"{label} with an unknown argument", function, extended([], {"nonsense": 1}))
        yield Call(
            f"{label} with an argument twice",
            function,
            extended([], {op.args[0]["name"]: 1} if op.args and sample.args else {"x": 1}),
        )
        for position, arg in enumerate(op.args):
            for name, value in bad_values(arg):
                yield Call(
                    f"{label}, {arg['name']} = {name}",
                    function,
                    replaced(position, arg["name"], value),
                )
            if (
                arg["type"]["base"] == "Tensor"
                and not arg["type"]["list"]
                and position < len(sample.args)
            ):
                # All tensors at once: what one of them alone would have been refused for.
                for name, value in TENSORS:

                    def whole(value: Callable[[], Any] = value) -> tuple[list[Any], dict[str, Any]]:
                        args, kwargs = fresh()
                        return [
                            value() if isinstance(a, treadle.Tensor) else a for a in args
                        ], kwargs

                    if position == 0:
                        yield Call(f"{label}, every tensor = {name}", function, whole)
    if op.has_form("out"):
        for name, value in OUTS:
            yield Call(
                f"{op.id}, out = {name}",
                op.function,
                lambda value=value: (fresh()[0], {**fresh()[1], "out": value()}),  # type: ignore[misc]
            )

        def overlapping() -> tuple[list[Any], dict[str, Any]]:
            """out is a part of the first tensor, moved by one."""
            args, kwargs = fresh()
            for i, a in enumerate(args):
                if isinstance(a, treadle.Tensor) and a.numel() > 1:
                    memory = treadle.zeros(a.numel() + 1, dtype=a.dtype)
                    args[i] = memory[:-1].copy_(a.reshape(-1)).view(a.shape)
                    kwargs["out"] = memory[1:].view(a.shape)
                    break
            return args, kwargs

        yield Call(f"{op.id}, out overlaps an argument", op.function, overlapping)


def calls(part: int, parts: int) -> Iterator[Call]:
    for op in operators()[part::parts]:
        if in_suite(op) and has_samples(op):
            yield from calls_of(op)


def _contents(value: Any) -> Any:
    """The parts that a failed call must leave as they were."""
    if isinstance(value, treadle.Tensor):
        if value.is_meta or value.numel() > 10_000:
            return None
        return value.shape, (
            value.detach().cpu().clone().reshape(-1).view(treadle.uint8).numpy().tobytes()
            if value.numel()
            else b""
        )
    if isinstance(value, (list, tuple)):
        return [_contents(v) for v in value]
    if isinstance(value, dict):
        return [_contents(v) for v in value.values()]
    return None


def problem_of(call: Call) -> str:
    """The fault in how the call ended; empty where it is right."""
    args, kwargs = call.make()
    before = _contents(args), _contents(kwargs)
    try:
        call.function(*args, **kwargs)
        return ""
    except law.REFUSALS as error:
        message = str(error)
        if isinstance(error, treadle.InternalError):
            return f"a bug was reported: {message}"
        if (
            not message
            or len(message.splitlines()) > law.MOST_LINES
            or INTERNAL_NAMES.search(message)
        ):
            return f"a message against the rules: {message!r}"
        if not NAMED.match(message) and not isinstance(error, TypeError):
            return f"a message that names no operator: {message!r}"
        if (_contents(args), _contents(kwargs)) != before:
            return f"an argument was changed by a call that failed with {message!r}"
        return ""
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def main(journal: str, part: int, parts: int, first: int) -> None:
    limits.apply()
    note = os.open(journal, os.O_RDWR | os.O_CREAT)
    for number, call in enumerate(itertools.islice(calls(part, parts), first, None), first):
        os.pwrite(note, f"{number} {call.label}".encode("utf-8", "replace").ljust(400)[:400], 0)
        problem = problem_of(call)
        if problem:
            print(
                f"{call.label}: {problem}".replace("\n", " | ")
                .encode("utf-8", "replace")
                .decode()[:600],
                flush=True,
            )
    print("done", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
