"""Checks of an operator's derivatives beyond finite differences at smooth points:

    forward_mode(op, "float64")          J u by double backward is the transpose of J^T v
    with_graph(op, "float64")            recording backward does not change what it gives
    slopes(op, "float64")                gradients at ties, zeros and ends, against one-sided slopes
    second_slopes(op, "float64")         the same for backward, with zeros in what it starts from
    mixed_kinds(op, "complex128")        real and complex arguments together
    random_gradients(op, "float64")      numbers that are drawn

At a kink a gradient lies between the slopes on both sides. A gradient that is another one by
convention is declared beside the samples (Sample.convention).
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Callable, Iterator, Optional, Sequence

import numpy as np

import treadle
from treadle.autograd import gradcheck
from treadle.autograd._derivatives import or_zeros

from .cases import samples_of
from .catalogue import Operator
from .checks import leaves_and_call
from .sample import NUMPY_TYPES, Sample, map_arrays, to_array

Tensor = treadle.Tensor
Function = Callable[..., Sequence[Tensor]]


@dataclass
class Call:
    """A function of tensors that makes one call of an operator."""

    what: str
    leaves: list[Tensor]
    function: Function
    convention: str

    @property
    def size(self) -> int:
        return sum(t.numel() for t in self.leaves)

    def outputs(self) -> list[Tensor]:
        """Those that depend on the leaves."""
        return [t for t in self.function(*self.leaves) if t.requires_grad]


def _with_values(sample: Sample, change: Callable[[np.ndarray], np.ndarray]) -> Sample:
    """The sample with other floating and complex values."""

    def changed(a: np.ndarray) -> np.ndarray:
        if a.dtype.kind not in "fc" or a.size == 0:
            return a
        return np.asarray(change(a), dtype=a.dtype).view(type(a))

    other = copy.copy(sample)
    other.args = map_arrays(sample.args, changed)
    other.kwargs = {k: map_arrays(v, changed) for k, v in sample.kwargs.items()}
    return other


def tied(a: np.ndarray) -> np.ndarray:
    """Multiples of a half within the range of the values: zeros, ties, and the ends of the
    range, several times."""
    if a.size == 0:
        return a
    if np.iscomplexobj(a):
        return tied(a.real.copy()) + 1j * tied(a.imag.copy())
    return np.asarray(np.clip(np.round(a * 2) / 2, a.min(), a.max()))


def zeroed(a: np.ndarray) -> np.ndarray:
    """Ties, and a zero in front, of all arguments at the same place. Where that is outside of the
    range, results that are not finite say so, and it is left out."""
    out = tied(a)
    out.reshape(-1)[:1] = 0
    return out


def special(a: np.ndarray) -> np.ndarray:
    """An infinity of each sign and a NaN among the values."""
    out = a.copy()
    flat = out.reshape(-1)
    for place, value in ((0, np.inf), (flat.size // 3, -np.inf), (flat.size // 2, np.nan)):
        if place < flat.size - 1:
            flat[place] = value
    return out


def _calls(
    op: Operator, dtype: str, *changes: Callable[[np.ndarray], np.ndarray], largest: int = 200
) -> Iterator[Call]:
    """The operator's differentiable samples, with their values changed in each of the ways."""
    for number, sample in enumerate(samples_of(op, dtype)):
        if not sample.grad or op.random or op.name.endswith("_"):
            continue
        for change in changes or (np.copy,):
            leaves, call = leaves_and_call(_with_values(sample, change), dtype)
            what = f"{op.id} sample {number} {getattr(change, '__name__', '')}"
            found = Call(
                what, leaves, lambda *given, call=call: call(op, *given), sample.convention
            )
            if not leaves or found.size > largest:
                continue
            try:
                outputs = found.outputs()
                if not outputs or (change is zeroed and not np.isfinite(_flat(outputs)).all()):
                    continue
            except (RuntimeError, ValueError, IndexError):
                if change is np.copy:
                    raise
                continue  # these values are refused
            yield found


def _random(rng: np.random.Generator, like: Tensor) -> Tensor:
    kind = NUMPY_TYPES[str(like.dtype).removeprefix("treadle.")]
    values = rng.standard_normal(tuple(like.shape))
    if np.issubdtype(kind, np.complexfloating):
        values = values + 1j * rng.standard_normal(tuple(like.shape))
    return treadle.tensor(np.asarray(values, dtype=kind), device=like.device)


def _inner(a: Sequence[Optional[Tensor]], b: Sequence[Optional[Tensor]]) -> float:
    """The real inner product of lists of tensors; what a zero of b meets does not count."""
    total = 0.0
    for x, y in zip(a, b):
        if x is not None and y is not None:
            left, right = to_array(x), to_array(y)
            total += float(np.vdot(np.where(right == 0, 0, left), right).real)
    return total


def _arrays(grads: Sequence[Optional[Tensor]], like: Sequence[Tensor]) -> list[np.ndarray]:
    return [to_array(g) for g in or_zeros(grads, like)]


# ---- forward mode, and backward that is recorded ----


def forward_mode(op: Operator, dtype: str) -> None:
    """<v, J u> = <J^T v, u>. J u is the gradient of backward, started from zeros, by its start: it
    is right only where formulas are linear in the gradient to autograd, too."""
    for call in _calls(op, dtype, np.copy, tied, zeroed):
        rng = np.random.default_rng(1)
        outputs = call.outputs()
        u = [_random(rng, t) for t in call.leaves]
        # Where the value is NaN there is nothing to compare.
        v = [treadle.where(t.detach().isnan(), 0, _random(rng, t)) for t in outputs]
        back = treadle.autograd.grad(outputs, call.leaves, v, retain_graph=True, allow_unused=True)
        starts = [treadle.zeros_like(t).requires_grad_() for t in outputs]
        pulled = treadle.autograd.grad(
            outputs, call.leaves, starts, create_graph=True, allow_unused=True
        )
        linear = [(p, d) for p, d in zip(pulled, u) if p is not None and p.requires_grad]
        forward: Sequence[Optional[Tensor]] = [None] * len(starts)
        if linear:
            try:
                forward = treadle.autograd.grad(
                    [p for p, _ in linear], starts, [d for _, d in linear], allow_unused=True
                )
            except NotImplementedError as error:
                assert "derivative is not implemented" in str(error)
                continue
        one, other = _inner(forward, v), _inner(back, u)
        np.testing.assert_allclose(
            one, other, rtol=1e-8, atol=1e-8, equal_nan=True, err_msg=call.what
        )


def with_graph(op: Operator, dtype: str) -> None:
    """The first gradient with create_graph is the one without, at smooth points, at ties and ends,
    and among infinities and NaN."""
    for call in _calls(op, dtype, np.copy, tied, zeroed, special):
        if call.convention and call.what.endswith(special.__name__):
            continue
        rng = np.random.default_rng(2)
        outputs = call.outputs()
        v = [_random(rng, t) for t in outputs]
        try:
            plain = treadle.autograd.grad(
                outputs, call.leaves, v, retain_graph=True, allow_unused=True
            )
        except RuntimeError:
            continue  # the point has no derivative, and says so
        recorded = treadle.autograd.grad(
            outputs, call.leaves, v, create_graph=True, allow_unused=True
        )
        for a, b in zip(_arrays(plain, call.leaves), _arrays(recorded, call.leaves)):
            np.testing.assert_allclose(
                b, a, rtol=1e-7, atol=1e-8, equal_nan=True, err_msg=call.what
            )


# ---- one-sided slopes ----

STEP = 1e-6
STEEP = 4.0  # how much a slope grows with a hundredth of the step, where it has no bound


@dataclass
class Side:
    """Difference quotients on one side of a point, of all outputs."""

    slope: np.ndarray
    bounded: np.ndarray
    loose: np.ndarray  # how far from its limit the slope may be


def _flat(outputs: Sequence[Tensor]) -> np.ndarray:
    """All numbers of the outputs; a complex one is two."""
    parts = [to_array(t).reshape(-1) for t in outputs]
    parts = [np.ascontiguousarray(p).view(np.float64) if p.dtype.kind == "c" else p for p in parts]
    return np.concatenate([p.astype(np.float64) for p in parts]) if parts else np.zeros(0)


Move = Callable[[float], np.ndarray]


def _moves(function: Function, values: Sequence[Tensor]) -> Iterator[tuple[int, int, Move]]:
    """For each number of each argument, the outputs as a function of how far it is moved."""
    for number, value in enumerate(values):
        parts = 2 if value.is_complex() else 1
        for element in range(parts * value.numel()):

            def moved(step: float) -> np.ndarray:
                other = value.detach().clone()
                flat = (treadle.view_as_real(other) if parts == 2 else other).view(-1)
                flat[element] += step
                try:
                    return _flat(function(*values[:number], other, *values[number + 1 :]))
                except RuntimeError:  # outside of what the operator takes
                    return np.array(np.nan)

            yield number, element, moved


def _side(move: Move, at: np.ndarray, sign: int) -> Side:
    with np.errstate(all="ignore"):
        steps = (STEP, STEP / 100, STEP / 10000)
        near, nearer, nearest = ((move(sign * h) - at) / (sign * h) for h in steps)
        bounded = np.isfinite(near) & np.isfinite(nearer)
        bounded &= np.abs(nearer) < STEEP * (np.abs(near) + 1)
        # A logarithm has no limit: each step changes the slope by as much as the step before.
        change = np.abs(nearer - near)
        endless = (change > 1e-3 * (1 + np.abs(near))) & (np.abs(nearest - nearer) > change / 2)
        bounded &= ~endless
        return Side(near, bounded, np.where(bounded, 1.5 * np.abs(near - nearer), 0))


def _slopes_nearby(
    function: Function, values: Sequence[Tensor], number: int, element: int
) -> list[np.ndarray]:
    """Slopes at points around, where nothing is tied: a gradient at a kink may be a mean of
    theirs."""
    rng = np.random.default_rng(4)
    found = []
    for _ in range(8):
        around = [v.detach() + _random(rng, v) * 1e-4 for v in values]
        for at, place, move in _moves(function, around):
            if (at, place) == (number, element):
                with np.errstate(all="ignore"):
                    found.append((move(STEP) - move(-STEP)) / (2 * STEP))
    return found


def _compare(
    what: str, function: Function, values: Sequence[Tensor], rows: list[list[np.ndarray]]
) -> None:
    """The gradients, rows[output number][argument], lie between the slopes; where only one side has
    a slope, they are it."""
    at = _flat(function(*values))
    for number, element, move in _moves(function, values):
        got = np.array([row[number][element] for row in rows])
        below, above = _side(move, at, -1), _side(move, at, 1)
        some = below.bounded | above.bounded
        # Where one result has no slope, 0 times infinity is NaN in the gradients of the others.
        if not (below.bounded & above.bounded).all():
            some &= ~np.isnan(got)
        low = np.where(below.bounded, below.slope, above.slope)
        high = np.where(above.bounded, above.slope, below.slope)

        def outside(*slopes: np.ndarray) -> np.ndarray:
            with np.errstate(all="ignore"):
                all_slopes = np.array(np.broadcast_arrays(*slopes))
                least, most = np.fmin.reduce(all_slopes), np.fmax.reduce(all_slopes)
                loose = 2e-4 * (1 + np.maximum(np.abs(least), np.abs(most)))
                loose = loose + below.loose + above.loose
                return some & ~((got >= least - loose) & (got <= most + loose))

        wrong = outside(low, high)
        for side in (below, above):  # an infinite slope that the differences approach slowly
            wrong &= ~(np.isinf(got) & (np.abs(side.slope) > 5) & (got * side.slope > 0))
        if wrong.any():
            wrong &= outside(low, high, *_slopes_nearby(function, values, number, element))
        assert not wrong.any(), (
            f"{what}: number {element} of argument {number}, at "
            f"{_flat([values[number]])[element]}, numbers {np.flatnonzero(wrong).tolist()} of the "
            f"result: gradient {got[wrong]}, slopes {below.slope[wrong]} below and "
            f"{above.slope[wrong]} above"
        )


def _rows(outputs: Sequence[Tensor], leaves: Sequence[Tensor]) -> list[list[np.ndarray]]:
    """For each number of the outputs its gradient by each leaf, as numbers too."""
    rows = []
    for output in outputs:
        for element in range(output.numel()):
            for unit in (1, 1j) if output.is_complex() else (1,):
                start = treadle.zeros(output.numel(), dtype=output.dtype)
                start[element] = unit
                found: Sequence[Optional[Tensor]] = [None] * len(leaves)
                if output.requires_grad:
                    found = treadle.autograd.grad(
                        output, leaves, start.view(output.shape), True, allow_unused=True
                    )
                rows.append([_flat(or_zeros([g], [x])) for g, x in zip(found, leaves)])
    return rows


def _no_grad(function: Function, chosen: Sequence[int]) -> Function:
    def values(*given: Tensor) -> list[Tensor]:
        with treadle.no_grad():
            all_outputs = function(*given)
        return [all_outputs[i] for i in chosen]

    return values


def slopes(op: Operator, dtype: str, largest: int = 30) -> None:
    for call in _calls(op, dtype, tied, zeroed, largest=largest):
        if call.convention:
            continue
        all_outputs = call.function(*call.leaves)
        chosen = [i for i, t in enumerate(all_outputs) if t.requires_grad]
        outputs = [all_outputs[i] for i in chosen]
        if sum(t.numel() for t in outputs) > largest or not np.isfinite(_flat(outputs)).all():
            continue

        try:
            rows = _rows(outputs, call.leaves)
        except RuntimeError:
            continue  # the point has no derivative, and says so
        _compare(call.what, _no_grad(call.function, chosen), call.leaves, rows)


def second_slopes(op: Operator, dtype: str, largest: int = 30) -> None:
    """Backward as a function of the arguments and of what it starts from, some of which is 0."""
    for call in _calls(op, dtype, tied, zeroed, largest=largest):
        if call.convention:
            continue
        rng = np.random.default_rng(3)
        outputs = call.outputs()
        if sum(t.numel() for t in outputs) > largest or not np.isfinite(_flat(outputs)).all():
            continue
        starts = [treadle.tensor(tied(to_array(_random(rng, t)))) for t in outputs]
        starts = [t.requires_grad_() for t in starts]
        count = len(call.leaves)

        def backward(*given: Tensor) -> list[Tensor]:
            with treadle.enable_grad():
                leaves = [
                    t.view(t.shape) if t.requires_grad else t.detach().requires_grad_()
                    for t in given[:count]
                ]
                results = [t for t in call.function(*leaves) if t.requires_grad]
                found = treadle.autograd.grad(
                    results, leaves, given[count:], create_graph=True, allow_unused=True
                )
            return list(or_zeros(found, leaves))

        values = [*call.leaves, *starts]
        try:
            first = backward(*values)
            if not np.isfinite(_flat(first)).all():
                continue
            rows = _rows(first, values)
        except NotImplementedError as error:
            assert "derivative is not implemented" in str(error)
            continue
        except RuntimeError:
            continue
        _compare(f"{call.what}, backward", _detached(backward), values, rows)


def _detached(function: Function) -> Function:
    return lambda *given: [t.detach() for t in function(*[t.detach() for t in given])]


# ---- real and complex together ----


def _real(a: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(a.real)


def mixed_kinds(op: Operator) -> None:
    """One tensor of a complex call made real, or one number of a real call made complex: refused,
    or with the right gradient."""
    for mixed in _mixed(op):
        leaves, call = leaves_and_call(mixed, "complex128")
        if not leaves or sum(t.numel() for t in leaves) > 60:
            continue
        try:
            outputs = [t for t in call(op, *leaves) if t.requires_grad]
        except (RuntimeError, ValueError, TypeError):
            continue
        if outputs:
            assert gradcheck(lambda *given: call(op, *given), tuple(leaves))


def _mixed(op: Operator) -> Iterator[Sample]:
    for sample in samples_of(op, "complex128"):
        if not sample.grad or op.random or op.name.endswith("_"):
            continue
        for place, value in enumerate(sample.args):
            if isinstance(value, np.ndarray) and value.dtype.kind == "c":
                other = copy.copy(sample)
                other.args = (*sample.args[:place], _real(value), *sample.args[place + 1 :])
                yield other
    if "float64" not in op.dtypes:
        return
    for sample in samples_of(op, "float64"):
        if not sample.grad or op.random or op.name.endswith("_"):
            continue
        for place, (value, argument) in enumerate(zip(sample.args, op.args)):
            if argument["type"]["base"] == "Scalar" and isinstance(value, (int, float)):
                other = copy.copy(sample)
                number = complex(value, 0.5)
                other.args = (*sample.args[:place], number, *sample.args[place + 1 :])
                yield other


# ---- random operators ----


def random_gradients(op: Operator, dtype: str) -> None:
    """A number drawn from a distribution is a constant to autograd: its parameters get zeros. Where
    only a mask or a factor is drawn, the gradient is that of the function with this mask."""
    for sample in samples_of(op, dtype):
        if sample.implicit:
            continue
        leaves, call = leaves_and_call(sample, dtype)
        if not leaves or sum(t.numel() for t in leaves) > 200:
            continue

        def drawn(*given: Tensor) -> tuple[Tensor, ...]:
            treadle.manual_seed(5)
            if op.name.endswith("_"):  # which changes its argument
                given = (given[0].clone(), *given[1:])
            return call(op, *given)

        outputs = [t for t in drawn(*leaves) if t.requires_grad]
        if not outputs:
            continue
        if sample.grad:
            assert gradcheck(drawn, tuple(leaves))
            continue
        ones = [treadle.ones_like(t) for t in outputs]
        for grad in treadle.autograd.grad(outputs, leaves, ones, allow_unused=True):
            assert grad is None or not to_array(grad).any(), f"{op.id}: {grad}"
