"""Makes a call that goes wrong smaller: fewer arguments, plainer tensors, plainer numbers, as long
as it goes wrong in the same way.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, Callable, Iterator, Optional

from .judge import PHASES, Finding
from .process import Died, Worker
from .recipe import Alias, Items, Literal, Node, Recipe, TensorNode
from .values import Palette

# With the address sanitizer, `new` ends the process where it would raise std::bad_alloc.
OUT_OF_MEMORY = "AddressSanitizer: allocator is out of memory"
MOST_ATTEMPTS, MOST_SECONDS = 300, 20.0
# The elements that can be gone through within the time a call has.
MOST_ELEMENTS = 1 << 31


def judged(worker: Worker, recipe: Recipe) -> Optional[Finding]:
    """The fault of a call, crashes and hangs included."""
    try:
        worker.order("judge", recipe)
        return worker.answer()[1]
    except Died as end:
        return finding_of(end, recipe)


def finding_of(end: Died, recipe: Recipe) -> Optional[Finding]:
    """A crash or a hang as a finding. To go through so many elements as a stride of 0 can make of
    one, or all pairs of them, takes its time: that is no hang, nor is it that the arguments do.
    """
    lines = end.output.splitlines()
    # Python's traceback last: the worker itself ran out of memory, between calls.
    if OUT_OF_MEMORY in end.output or (lines and lines[-1].startswith("MemoryError")):
        return None
    kind = "hang" if end.how.startswith("hangs") else "crash"
    if kind == "hang" and (end.phase == 0 or recipe.elements() > MOST_ELEMENTS):
        return None
    report = [line for line in lines if "ERROR:" in line or "runtime error" in line]
    return Finding(kind, " ".join([f"{PHASES[end.phase]}: {end.how}", *(report[:2] or lines[-1:])]))


def shrink(
    worker: Worker, recipe: Recipe, kind: str, seconds: float = MOST_SECONDS
) -> tuple[Recipe, Optional[Finding]]:
    """The smallest call found that goes wrong in the way `kind`, and how; None where `recipe`
    itself does not, alone.
    """
    found = judged(worker, recipe)
    if found is None or found.kind != kind:
        return recipe, None
    attempts, end = 0, time.monotonic() + seconds
    again = True
    while again:
        again = False
        for smaller in candidates(recipe):
            if attempts >= MOST_ATTEMPTS or time.monotonic() > end:
                return recipe, found
            attempts += 1
            now = judged(worker, smaller)
            if now is not None and now.kind == kind:
                recipe, found, again = smaller, now, True
                break
    return recipe, found


def candidates(recipe: Recipe) -> Iterator[Recipe]:
    """Calls that are one step smaller."""
    if len(recipe.checks) > 1:
        for check in sorted(recipe.checks):
            yield replace(recipe, checks=frozenset((check,)))
    if recipe.checks:
        yield replace(recipe, checks=frozenset())
    if recipe.form == "method":
        yield replace(recipe, form="functional")
    if recipe.out is not None:
        yield replace(recipe, form="functional", out=None)
    aliased = any(isinstance(n, Alias) for n in recipe.nodes())
    if not aliased:
        for name in recipe.kwargs:
            yield _changed(recipe, kwargs={k: n for k, n in recipe.kwargs.items() if k != name})
        if recipe.args:
            yield _changed(recipe, args=recipe.args[:-1])
    for i, node in enumerate(recipe.args):
        for smaller in simpler(node):
            yield _changed(recipe, args=[*recipe.args[:i], smaller, *recipe.args[i + 1 :]])
    for name, node in recipe.kwargs.items():
        for smaller in simpler(node):
            yield _changed(recipe, kwargs={**recipe.kwargs, name: smaller})
    if recipe.out is not None:
        for smaller in simpler(recipe.out):
            yield replace(recipe, out=smaller)


def _changed(recipe: Recipe, **what: Any) -> Recipe:
    # No longer the sample that it was: "reference" has nothing to say of it.
    return replace(recipe, sample=None, **what)


def simpler(node: Node) -> Iterator[Node]:
    """Plainer arguments than this one."""
    if isinstance(node, TensorNode):
        yield from _simpler_tensors(node)
    elif isinstance(node, Items):
        for i in range(len(node.items)):
            yield replace(node, items=node.items[:i] + node.items[i + 1 :])
        for i, item in enumerate(node.items):
            for smaller in simpler(item):
                yield replace(node, items=(*node.items[:i], smaller, *node.items[i + 1 :]))
    elif isinstance(node, Literal):
        yield from map(Literal, _simpler_values(node.value))


def _simpler_tensors(node: TensorNode) -> Iterator[TensorNode]:
    plain: list[Callable[[], TensorNode]] = [
        lambda: replace(node, grad=False),
        lambda: replace(node, layout="plain"),
        lambda: replace(node, device="cpu", shape=tuple(min(s, 3) for s in node.shape)),
        lambda: replace(node, dtype="float32"),
        lambda: replace(node, data=Palette("ones")),
        lambda: replace(node, data=Palette("index")),
    ]
    for make in plain:
        smaller = make()
        # From one plain palette to the other and back would have no end.
        back = node.data in _PLAIN and smaller.data in _PLAIN and smaller.data != node.data
        if smaller != node and not back:
            yield smaller
    for at, size in enumerate(node.shape):
        yield replace(node, shape=node.shape[:at] + node.shape[at + 1 :])
        for less in sorted({0, 1, 2, size // 2, size - 1}):
            if 0 <= less < size and (less or size == 1) and less != size:
                yield replace(node, shape=node.shape[:at] + (less,) + node.shape[at + 1 :])


_PLAIN = (Palette("ones"), Palette("index"))


def _simpler_values(value: Any) -> Iterator[Any]:
    if type(value) in (list, tuple):
        for i in range(min(len(value), 20)):
            yield value[:i] + value[i + 1 :]
        for i, item in enumerate(value[:20]):
            for smaller in _simpler_values(item):
                yield value[:i] + type(value)([smaller]) + value[i + 1 :]
    elif type(value) is int:
        # Downwards only, so that it ends.
        for plain in (0, 1, -1, 2):
            if abs(plain) < abs(value) or (plain == 1 and value == -1):
                yield plain
        if abs(value) > 4:
            yield int(value / 2) if abs(value) < 2**60 else value // 2
    elif type(value) is float:
        for plain_float in (1.0, 0.5):
            if value not in (1.0, 0.5):
                yield plain_float
