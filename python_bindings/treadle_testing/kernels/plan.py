"""The lines that a kernel is checked with, the most telling ones first.

They begin with the samples of the operator's tests, and go on with variations of these: other
sizes, layouts, values and dtypes, results with memory of their own or of an argument, and the
checks of many calls. A variation that the operator refuses is passed over when it is called.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import itertools
from dataclasses import replace
from math import ceil, floor, prod
from typing import Any, Callable, Iterable, Iterator, Optional, Sequence

import numpy as np

import treadle

from .. import cases
from ..catalogue import Operator
from ..expression import pointwise_samples
from ..sample import NUMPY_TYPES, Maker, Sample
from . import entry
from .buffers import contiguous
from .kernel import Kernel
from .line import Dtype, Fill, Items, Line, Same, Tensor

FIRST_DTYPES = ("float32", "float64", "int64", "bfloat16", "bool", "complex64", "uint8", "float16")
# Tails of vectors of every width, and nothing.
SIZES = (0, 1, 2, 3, 5, 7, 8, 9, 13, 15, 16, 17, 31, 33, 63, 65, 100, 127, 129, 257)
FILLS = ("special", "nan", "inf", "minuszero", "subnormal", "zeros")
_EXPLICIT = 6
# Several dimensions may grow at once: elements of the largest tensor.
_MOST_OF_SIZES = 1 << 20
_FAR = 2**31 + 8


# ---- From samples


def _fill(values: np.ndarray) -> Optional[Fill]:
    if values.size == 0:
        return None
    if values.dtype.kind in "fc" and not np.isfinite(values).all():
        return Fill("special")
    if values.dtype == bool:
        return Fill("bits") if values.size > _EXPLICIT else Fill("", tuple(values.ravel().tolist()))
    if values.size <= _EXPLICIT:
        return Fill("", tuple(values.ravel().tolist()))
    if values.dtype.kind in "iu":
        return Fill("integers", (int(values.min()), int(values.max()) + 1))
    low = min(values.real.min(), values.imag.min()) if values.dtype.kind == "c" else values.min()
    return Fill("uniform", (floor(low * 100) / 100, ceil(np.abs(values).max() * 100) / 100))


def _argument(value: Any, dtype: str) -> Any:
    if isinstance(value, np.ndarray):
        name = str(value.dtype)
        if value.dtype == NUMPY_TYPES[dtype]:
            name = dtype
        return Tensor(name, value.shape, None, _fill(value))
    if isinstance(value, treadle.dtype):
        return Dtype(str(value).removeprefix("treadle."))
    if isinstance(value, list):
        return Items(tuple(_argument(v, dtype) for v in value))
    if value is None or type(value) in (bool, int, float, complex, str):
        return value
    if type(value) is tuple:
        if any(isinstance(v, np.ndarray) for v in value):
            return Items(tuple(_argument(v, dtype) for v in value))
        return tuple(_argument(v, dtype) for v in value)
    raise TypeError(type(value).__name__)


def of_sample(op: Operator, sample: Sample, dtype: str) -> Optional[Line]:
    """The call of a sample as a line; None where it has an argument that no line can have."""
    try:
        arguments = [("", _argument(a, dtype)) for a in sample.args]
        arguments += [(k, _argument(v, dtype)) for k, v in sample.kwargs.items()]
    except TypeError:
        return None
    line = Line(op.id, tuple(arguments))
    return _seeded(line) if line.tensors() else None


def _seeded(line: Line) -> Line:
    """Fills with a seed of their own for each tensor, so that no two tensors are equal."""
    count = itertools.count()

    def seeded(t: Tensor) -> Tensor:
        n = next(count)
        if t.fill is None or not t.fill.word:
            return t
        return replace(t, fill=replace(t.fill, seed=n))

    return line.map(seeded)


def bases(op: Operator, dtype: str) -> list[Line]:
    """The lines of the samples, small ones first."""
    if op.kind == "pointwise" and cases.registered(op) is None:
        made: Iterable[Sample] = pointwise_samples(op, Maker(dtype))
    else:
        made = cases.samples_of(op, dtype) if cases.has_samples(op) else ()
    found: list[Line] = []
    for sample in itertools.islice(made, 40):
        line = of_sample(op, sample, dtype)
        if line is not None and line not in found and not (sample.shape_only and not op.random):
            found.append(line)
    return sorted(found, key=lambda n: sum(prod(t.shape) for t in n.tensors()) > 200)


def _some_sample(op: Operator, dtype: str, says: Callable[[Sample], Any]) -> bool:
    if not cases.has_samples(op) or cases.registered(op) is None:
        return False
    return any(says(sample) for sample in cases.samples_of(op, dtype))


def depends_on_strides(op: Operator, dtype: str) -> bool:
    """Whether results depend on the strides of the arguments, so that other layouts say nothing."""
    return _some_sample(op, dtype, lambda sample: sample.strides)


def has_domain(op: Operator, dtype: str) -> bool:
    """Whether gradients are those on a part of all arguments, such as symmetric matrices."""
    return _some_sample(op, dtype, lambda sample: sample.domain)


# ---- Variations


def _ranged(t: Tensor) -> Tensor:
    """Numbers of the same range where a list of them would be repeated."""
    if t.fill is None or t.fill.word or not t.fill.numbers:
        return t
    found = _fill(np.resize(np.array(t.fill.numbers), _EXPLICIT + 1))
    return replace(t, fill=found)


def with_sizes(line: Line, old: int, new: int) -> Line:
    """Every dimension of `old` elements made `new`."""
    return _seeded(
        line.map(
            lambda t: replace(
                _ranged(t) if old in t.shape else t,
                shape=tuple(new if n == old else n for n in t.shape),
            )
        )
    )


def sizes(line: Line) -> Iterator[Line]:
    found = {n for t in line.tensors() for n in t.shape if n > 1}
    for new in SIZES:
        for old in sorted(found):
            if new != old:
                other = with_sizes(line, old, new)
                if all(prod(t.shape) <= _MOST_OF_SIZES for t in other.tensors()):
                    yield other


def _transposed(t: Tensor) -> tuple[int, ...]:
    strides, step = [], 1
    for n in t.shape:
        strides.append(step)
        step *= max(n, 1)
    return tuple(strides)


def _with_gaps(t: Tensor) -> tuple[int, ...]:
    return tuple(2 * s for s in contiguous(t.shape))


def _padded(t: Tensor) -> tuple[int, ...]:
    """Rows with a gap after each, as of a slice of columns."""
    shape = (*t.shape[:-1], t.shape[-1] + 3) if t.shape else ()
    return contiguous(shape)


def _first_repeated(t: Tensor) -> tuple[int, ...]:
    at = next((d for d, n in enumerate(t.shape) if n > 1), 0)
    return tuple(0 if d == at else s for d, s in enumerate(contiguous(t.shape)))


_LAYOUTS: Sequence[Callable[[Tensor], tuple[int, ...]]] = (
    _transposed,
    _with_gaps,
    _padded,
    lambda t: tuple(-s for s in contiguous(t.shape)),
    lambda t: tuple(-s if d == 0 else s for d, s in enumerate(contiguous(t.shape))),
    _first_repeated,
    lambda t: (0,) * len(t.shape),
    lambda t: (1,) * len(t.shape),
)


def _far(t: Tensor) -> tuple[int, ...]:
    """Rows so far apart that offsets do not fit in 32 bits."""
    return tuple(_FAR if d == 0 else s for d, s in enumerate(contiguous(t.shape)))


def _laid_out(line: Line, layout: Callable[[Tensor], tuple[int, ...]], only: int = -1) -> Line:
    count = itertools.count()

    def placed(t: Tensor) -> Tensor:
        n = next(count)
        if only not in (-1, n) or not t.shape or not prod(t.shape):
            return t
        strides = layout(t)
        return replace(t, strides=strides if strides != contiguous(t.shape) else None)

    return line.map(placed)


def layouts(line: Line) -> Iterator[Line]:
    count = len(line.tensors())
    for layout in _LAYOUTS:
        yield _laid_out(line, layout)
    for layout in _LAYOUTS if count > 1 else ():
        for only in range(count):
            yield _laid_out(line, layout, only)


def far(line: Line) -> Iterator[Line]:
    small = all(t.shape and 2 <= t.shape[0] and prod(t.shape) <= 4096 for t in line.tensors())
    if small:
        yield _laid_out(line, _far)
    for only, t in enumerate(line.tensors()):
        if t.shape and 2 <= t.shape[0] and prod(t.shape) <= 4096:
            yield _laid_out(line, _far, only)


def _floating(t: Tensor) -> bool:
    return "float" in t.dtype or "complex" in t.dtype


def fills(line: Line) -> Iterator[Line]:
    for word in FILLS:
        yield line.map(lambda t, w=word: replace(t, fill=Fill(w)) if _floating(t) else t)  # type: ignore[misc]
        for only in range(len(line.tensors()) if len(line.tensors()) > 1 else 0):
            count = itertools.count()
            yield line.map(
                lambda t, w=word, o=only, c=count: (  # type: ignore[misc]
                    replace(t, fill=Fill(w)) if next(c) == o and _floating(t) else t
                )
            )


def forms(op: Operator, kernel: Kernel, line: Line) -> Iterator[Line]:
    """In place, and with `out` of its own, of an argument, and over part of an argument."""
    first = line.arguments[0][1]
    in_place = op.has_form("inplace") and not op.name.endswith("_")
    if kernel.is_operator and in_place:
        yield replace(line, name=op.name + "_")
        yield replace(_laid_out(line, _transposed, 0), name=op.name + "_")
    if isinstance(first, Tensor) and (
        (kernel.writes_out and in_place) or (kernel.is_operator and op.takes_out)
    ):
        shifts = (0, 1) if kernel.is_operator else (0,)
        for shift in shifts:
            yield replace(line, arguments=(*line.arguments, ("out", Same(0, shift))))
    if kernel.is_operator and op.takes_out and len(op.json["returns"]) == 1:
        out = result_of(op, line)
        for layout in (contiguous, None) if out is not None else ():
            assert out is not None
            strides = None if layout is contiguous else _transposed(out)
            yield replace(line, arguments=(*line.arguments, ("out", replace(out, strides=strides))))


def result_of(op: Operator, line: Line) -> Optional[Tensor]:
    """The result of a line as a tensor to write to; None where the operator refuses the call."""
    from .judge import PATTERNS, Built

    built = Built(line, True, PATTERNS[0])
    try:
        (wanted,) = entry.expected(op, built.args, built.kwargs)
    except Exception:
        return None
    finally:
        built.close()
    return Tensor(wanted.dtype, tuple(wanted.exact.shape), None, Fill("ones"))


def enlarged(line: Line, most: int) -> Line:
    """The line with its first dimension that is not 1 so large that the first tensor has about
    `most` elements."""
    first = line.tensors()[0]
    sizes_of = [n for n in first.shape if n > 1]
    if not sizes_of:
        return line
    old = sizes_of[-1]
    others = prod(n for n in first.shape if n > 1 and n != old)
    power = sum(n == old for n in first.shape)
    large = with_sizes(line, old, max(int((most / max(others, 1)) ** (1 / power)) | 1, old))
    empty = not all(prod(t.shape) for t in line.tensors())
    return line if empty or _elements(large) > 4 * most else large


def _elements(line: Line) -> int:
    """The elements of the largest tensor, or of what all together broadcast to."""
    shapes = [t.shape for t in line.tensors()]
    try:
        whole = prod(np.broadcast_shapes(*shapes))
    except ValueError:
        whole = 0
    return max(whole, *map(prod, shapes))


def many_calls(lines: Sequence[Line], gradients: bool) -> Iterator[Line]:
    """The checks of many calls, with the samples that suit them."""
    small = [n for n in lines if all(prod(t.shape) for t in n.tensors())]
    if not small:
        return
    rows = [n for n in small if n.tensors()[0].shape]
    yield replace(small[0], check="calls")
    yield replace(small[0], check="leak")
    for line in rows[:3]:
        yield replace(enlarged(line, 100_003), check="threads")
    for line in small[:6] if gradients else ():
        yield replace(line, check="gradients")
        yield replace(line, check="second")
    for line in rows[:3]:
        first = line.tensors()[0]
        for last in (first.shape[-1], 37) if len(first.shape) > 1 else (first.shape[0],):
            other = with_sizes(line, first.shape[-1], last) if len(first.shape) > 1 else line
            head = other.tensors()[0].shape[0]
            batch = with_sizes(other, head, 13) if head not in first.shape[1:] else other
            yield replace(batch, check="batch")
    for line in rows[:2]:
        yield replace(enlarged(line, 3001), check="concurrent")
    for line in rows[:1]:
        yield replace(enlarged(line, 1 << 20), check="peak")


def _larger(lines: Sequence[Line]) -> Iterator[Line]:
    """Calls of many elements, which threads share."""
    for line in lines[:4]:
        if line.tensors()[0].shape:
            yield enlarged(line, 70_001)


def _huge(op: Operator, lines: Sequence[Line]) -> Iterator[Line]:
    """More than 2^31 elements of one value, where the result is small."""
    if op.kind != "reduce":
        return
    for line in lines:
        first = line.tensors()[0]
        if len(line.tensors()) == 1 and len(first.shape) == 1 and first.dtype == "uint8":
            yield line.map(lambda t: replace(t, shape=(_FAR,), strides=(0,), fill=Fill("ones")))
            return


def _mixed(*parts: Iterator[Line]) -> Iterator[Line]:
    """Lines of all parts in turn."""
    left = list(parts)
    while left:
        for part in list(left):
            line = next(part, None)
            if line is None:
                left.remove(part)
            else:
                yield line


def _chain(lines: Sequence[Line], vary: Callable[[Line], Iterator[Line]]) -> Iterator[Line]:
    """Variations of all lines, the first ones of each before the second ones."""
    return _mixed(*(vary(line) for line in lines))


def lines(
    op: Operator, kernel: Kernel, dtypes: Sequence[str] = (), given: Sequence[Line] = ()
) -> Iterator[Line]:
    """All lines for a kernel. `given` ones take the place of samples."""
    declared = dtypes or [d for d in FIRST_DTYPES if d in op.dtypes] or op.dtypes[:2]
    table = {d: bases(op, d) for d in declared} if not given else {"": list(given)}
    first = next((t for t in table.values() if t), [])
    others = [line for found in list(table.values())[1:] for line in found]
    everything = [*first, *others]
    plain = [n for n in first if all(prod(t.shape) for t in n.tensors())] or first
    yield from first[:6]
    seen = set(first[:6])
    strided = not given and depends_on_strides(op, declared[0])
    laid_out = [] if strided else first
    parts = _mixed(
        _chain(first, sizes),
        _chain(laid_out, layouts),
        many_calls(plain, bool(given) or not has_domain(op, declared[0])),
        _chain(first, fills),
        _chain(first, lambda n: forms(op, kernel, n)),
        iter(everything[6:]),
        _larger(first),
        _chain([] if strided else plain, far),
        _chain([] if strided else others, layouts),
        _chain(others, sizes),
        _chain(others, fills),
        _chain(others, lambda n: forms(op, kernel, n)),
        _huge(op, everything),
    )
    for line in parts:
        if line not in seen:
            seen.add(line)
            yield line
