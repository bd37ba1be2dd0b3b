"""One call of a kernel, in memory with guard pages: its values, and what it writes and depends on.

The call is made three times: with memory that ends at a guard page and a first pattern around the
tensors, with other values at the same addresses, and with memory that begins at a guard page and a
second pattern. The first two are compared with the reference, the third with the first.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from math import prod, sqrt
from typing import Any, Callable, Iterator, Mapping, Optional, Sequence

import numpy as np

import treadle

from ..catalogue import Operator
from ..ulps import Wide, complex_ulps, ulps
from . import entry, values
from .buffers import Buffer, to_numpy
from .entry import Expected
from .kernel import Kernel
from .line import Dtype, Items, Line, Same, Tensor

_M_PERTURB = -6
_libc = ctypes.CDLL(None)
# Bytes around tensors and in fresh memory: NaN as a floating number, and a small number.
PATTERNS = (0xFF, 0x3C)
# Errors of elements in ULP; of sums and the like in ULP of the largest result.
ULPS, ULPS_OF_LARGEST = 4.0, 8.0
# Calls with larger results are not made; calls with larger arguments, by strides of 0, only once.
MOST_ELEMENTS, MOST_REPEATED = 1 << 24, 1 << 26
_WITH_ULPS = frozenset("float16 bfloat16 float32 float64 complex64 complex128".split())


@dataclass(frozen=True)
class Finding:
    """A problem: its kind, the line that shows it, and what was seen."""

    kind: str
    line: str
    detail: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.line}    {self.detail}"


class Skipped(Exception):
    """The operator refuses the call, so there is nothing to compare."""


class Built:
    """The arguments of a line."""

    def __init__(self, line: Line, at_end: bool, pattern: int, again: int = 0):
        self.line, self.at_end, self.pattern = line, at_end, pattern
        self.buffers: list[tuple[Tensor, Buffer]] = []
        shifts: dict[int, int] = {}
        for _, value in line.arguments:
            if isinstance(value, Same):
                shifts[value.of] = max(shifts.get(value.of, 0), value.shift)
        self.args: list[Any] = []
        self.kwargs: dict[str, Any] = {}
        owned: dict[int, Buffer] = {}
        for i, (name, value) in enumerate(line.arguments):
            if isinstance(value, Same):
                if value.of not in owned:
                    raise ValueError(f"line: expected argument {value.of} to be a tensor before it")
                buffer = owned[value.of]
                made = buffer.tensor_of(buffer.shifted if value.shift else buffer.array)
            else:
                made = self._made(value, shifts.get(i, 0))
                if isinstance(value, Tensor):
                    owned[i] = self.buffers[-1][1]
            if name:
                self.kwargs[name] = made
            else:
                self.args.append(made)
        self.fill(again)
        for _, buffer in self.buffers:
            buffer.note_outside()

    def _made(self, value: Any, shift: int = 0) -> Any:
        if isinstance(value, Tensor):
            buffer = Buffer(
                value.dtype, value.shape, value.strides, self.at_end, self.pattern, shift
            )
            self.buffers.append((value, buffer))
            return buffer.tensor_of(buffer.array)
        if isinstance(value, Items):
            return [self._made(v) for v in value.values]
        return getattr(treadle, value.name) if isinstance(value, Dtype) else value

    def fill(self, again: int) -> None:
        """Writes values of the same kind, others for each number."""
        for tensor, buffer in self.buffers:
            values.write(buffer.array, tensor, again)

    def contents(self) -> list[Optional[bytes]]:
        return [None if b.memory.sparse else b.array.tobytes() for _, b in self.buffers]

    def close(self) -> None:
        for _, buffer in self.buffers:
            buffer.close()


def written_arguments(op: Operator, line: Line) -> set[int]:
    """The numbers of the line's arguments that the call may write."""
    found = set()
    names = [a["name"] for a in op.args]
    for i, (name, value) in enumerate(line.arguments):
        called = name or (names[i] if i < len(names) else "")
        in_schema = next((a for a in op.args if a["name"] == called), None)
        alias = in_schema and in_schema["type"]["alias"]
        if called == "out" or called.startswith("running_") or (alias and alias["write"]):
            found.add(i)
            if isinstance(value, Same):
                found.add(value.of)
    if is_in_place(op, line):
        found.add(0)
    return found


def is_in_place(op: Operator, line: Line) -> bool:
    return line.name.endswith("_") and not op.name.endswith("_")


class Judge:
    """Calls one kernel of an operator."""

    def __init__(
        self,
        op: Operator,
        kernel: Kernel,
        limit: float = ULPS,
        note: Callable[[str], None] = lambda call: None,
    ):
        # `note` is told of each call of a line before it is made, since it may be the last.
        self.op, self.kernel, self.limit, self.note = op, kernel, limit, note

    # ---- Calls

    def expected(self, built: Built) -> list[Expected]:
        """The expected results. Skipped where the operator refuses the call."""
        kwargs = {k: v for k, v in built.kwargs.items() if k != "out"}
        try:
            if entry.result_elements(self.op, built.args, kwargs) > MOST_ELEMENTS:
                raise Skipped("a result of too many elements")
            return entry.expected(self.op, built.args, kwargs)
        except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError) as error:
            raise Skipped(str(error)) from None

    def call(self, built: Built, wanted: Sequence[Expected]) -> list[Any]:
        """Calls the kernel; its results, in order."""
        args, kwargs = built.args, dict(built.kwargs)
        if self.kernel.device != "cpu":
            args = [_moved(a, self.kernel.device) for a in args]
            kwargs = {k: _moved(v, self.kernel.device) for k, v in kwargs.items()}
        function = self.kernel.function
        if self.kernel.is_operator and is_in_place(self.op, built.line):
            function = self.op.inplace
        elif self.kernel.writes_out:
            out = kwargs.pop("out", None)
            if out is None:
                out = self._outs(built, wanted)
            function(*args, **kwargs, out=out)
            return list(out) if isinstance(out, list) else [out]
        if self.kernel.is_operator and isinstance(kwargs.get("out"), list):
            kwargs["out"] = tuple(kwargs["out"])
        return entry.results(self.op, function(*args, **kwargs), args, kwargs)

    def _outs(self, built: Built, wanted: Sequence[Expected]) -> Any:
        outs = []
        for w in wanted:
            tensor = Tensor(w.dtype, w.exact.shape)
            buffer = Buffer(w.dtype, w.exact.shape, None, built.at_end, built.pattern)
            buffer.note_outside()
            # Not among the tensors that a line fills: its elements hold the pattern.
            built.buffers.append((tensor, buffer))
            outs.append(buffer.tensor_of(buffer.array))
        return outs[0] if len(outs) == 1 else outs

    def poisoned_call(self, built: Built, wanted: Sequence[Expected]) -> list[Any]:
        """A call for which fresh memory holds the pattern."""
        for w in wanted:
            if w.exact.nbytes < 1 << 20:
                size = getattr(treadle, w.dtype).itemsize * w.exact.size
                treadle.empty(size, dtype=treadle.uint8).fill_(built.pattern)
        _libc.mallopt(_M_PERTURB, built.pattern ^ 0xFF)
        try:
            return self.call(built, wanted)
        finally:
            _libc.mallopt(_M_PERTURB, 0)

    # ---- The check

    def findings(self, line: Line) -> Iterator[Finding]:
        """Problems of one call."""
        text = str(line)
        built = Built(line, True, PATTERNS[0])
        second: Optional[Built] = None
        try:
            wanted = self.expected(built)
            aliased = any(isinstance(v, Same) for _, v in line.arguments)
            before = built.contents()
            self.note("where memory ends after the last element")
            try:
                results = self.poisoned_call(built, wanted)
            except Exception as error:
                if self.kernel.is_operator and _may_refuse(self.op, line):
                    raise Skipped(str(error)) from None
                yield Finding("raises", text, f"{type(error).__name__}: {_first(error)}")
                return
            first = [_kept(r) for r in results]
            wrote = list(self._wrote(line, built, before))
            yield from wrote
            if wrote:
                return
            given = is_in_place(self.op, line) or any(n == "out" for n, _ in line.arguments)
            if given and _dtypes(results) != [w.dtype for w in wanted]:
                return  # a result that is converted
            if problem := self.compare(wanted, first, results, built):
                yield Finding(problem[0], text, problem[1])
                return
            large = any(prod(t.shape) > MOST_REPEATED for t in line.tensors())
            if self.repeatable() and not aliased and not large:
                yield from self._stale(line, built)
                second = Built(line, False, PATTERNS[1])
                self.note("where memory begins with the first element")
                again = [_kept(r) for r in self.poisoned_call(second, wanted)]
                for i, (a, b) in enumerate(zip(first, again)):
                    if not _same(a, b):
                        yield Finding(
                            "depends on memory outside",
                            text,
                            f"{_result(i, first)}{_difference(a, b)}; the second with other bytes "
                            "around the tensors and in fresh memory",
                        )
                        return
        finally:
            built.close()
            if second is not None:
                second.close()

    def repeatable(self) -> bool:
        """Whether the same call has the same results: no random ones, and no new shape of an
        argument."""
        changes_shapes = "inplace_view" in self.op.json["tags"]
        return not (self.op.random or self.op.is_unwritten or changes_shapes)

    def _stale(self, line: Line, built: Built) -> Iterator[Finding]:
        """Other values at the same addresses."""
        outs = [b for t, b in built.buffers if _is_out(line, t)]
        fresh = [(t, b) for t, b in built.buffers if not any(b is o for o in outs)]
        built.buffers = [p for p in fresh if p[0] in line.tensors()]
        built.fill(1)
        try:
            wanted = self.expected(built)
        except Skipped:
            return
        self.note("with other values in the same memory")
        try:
            results = self.poisoned_call(built, wanted)
        except Exception as error:
            # An `out` that fits the shape of the first result need not fit that of another one.
            if not (self.kernel.is_operator and _may_refuse(self.op, line)):
                detail = f"with other values in the same memory: {type(error).__name__}: "
                yield Finding("raises", str(line), detail + _first(error))
            return
        kept = [_kept(r) for r in results]
        if problem := self.compare(wanted, kept, results, built):
            yield Finding(
                "depends on an earlier call",
                str(line),
                f"with other values in the same memory: {problem[0]}: {problem[1]}",
            )

    def _wrote(self, line: Line, built: Built, before: Sequence[Any]) -> Iterator[Finding]:
        """Inputs that changed, and bytes beside tensors."""
        may = written_arguments(self.op, line)
        owners = _owners(line)
        for i, old in enumerate(before):
            if old is None or owners[i] in may:
                continue
            if built.buffers[i][1].array.tobytes() != old:
                yield Finding("changes an input", str(line), f"argument {owners[i]}")
        for i, (_, buffer) in enumerate(built.buffers):
            shared = any(
                isinstance(v, Same) and i < len(owners) and v.of == owners[i] and v.shift
                for _, v in line.arguments
            )
            place = None if shared else buffer.changed_outside()
            if place is not None:
                what = f"argument {owners[i]}" if i < len(owners) else "the result"
                yield Finding(
                    "writes outside", str(line), f"{place} bytes from the first element of {what}"
                )

    # ---- Values

    def compare(
        self,
        wanted: Sequence[Expected],
        got: Sequence[Any],
        results: Sequence[Any],
        built: Built,
    ) -> Optional[tuple[str, str]]:
        """The kind and the detail of the first difference; None where there is none."""
        if len(wanted) != len(got):
            return "wrong number of results", f"expected {len(wanted)}, got {len(got)}"
        for i, (w, g) in enumerate(zip(wanted, got)):
            at = _result(i, got)
            result = results[i] if i < len(results) else g
            if isinstance(result, treadle.Tensor):
                dtype = str(result.dtype).removeprefix("treadle.")
                if dtype != w.dtype:
                    return "wrong dtype", f"{at}expected {w.dtype}, got {dtype}"
            if tuple(g.shape) != tuple(w.exact.shape):
                return "wrong shape", f"{at}expected {w.exact.shape}, got {g.shape}"
            if self.op.random or self.op.is_unwritten:
                continue
            problem = self._values(w, g)
            if problem is not None and "of the largest" in problem[1]:
                problem = self._values(w, g, self._terms(built, i))
            if problem is not None:
                return problem[0], at + problem[1]
        return None

    def _terms(self, built: Built, number: int) -> float:
        """The largest value of a result when all arguments are positive: the size of what a sum
        adds, where terms cancel."""

        def positive(value: Any) -> Any:
            if isinstance(value, treadle.Tensor):
                floating = value.is_floating_point() or value.is_complex()
                return value.abs() if floating else value
            return [positive(v) for v in value] if isinstance(value, list) else value

        try:
            args = [positive(a) for a in built.args]
            kwargs = {k: positive(v) for k, v in built.kwargs.items() if k != "out"}
            values = np.abs(entry.expected(self.op, args, kwargs)[number].exact)
        except Exception:
            return 0.0
        return float(values[np.isfinite(values)].max(initial=0))

    def _values(
        self, wanted: Expected, got: np.ndarray, terms: float = 0.0
    ) -> Optional[tuple[str, str]]:
        exact, own = wanted.exact, wanted.own
        if exact.size == 0:
            return None
        if exact.dtype.kind not in "fc":
            wrong = np.asarray(got != exact)
            # Choices between floating numbers, as of a pivot, may depend on how these are rounded.
            wrong &= np.asarray(own is None or got != own)
            return _at(wrong, got, exact, "") if wrong.any() else None
        if wanted.dtype not in _WITH_ULPS:
            reference = exact if own is None else own
            wrong = ~((got == reference) | (np.isnan(got) & np.isnan(reference)))
            return _at(wrong, got, reference, "") if wrong.any() else None
        return self._floating(wanted, got, terms)

    def _floating(
        self, wanted: Expected, got: np.ndarray, terms: float
    ) -> Optional[tuple[str, str]]:
        exact, own, dtype = wanted.exact, wanted.own, wanted.dtype
        elements = self.op.kind == "pointwise"
        # A sum may begin with 0, and then has no zero of the other sign.
        signed = elements or bool(self.op.json["moves"])
        size = None
        finite = np.abs(exact[np.isfinite(exact)])
        # An operator that only moves numbers has them exactly; in float64 that is no evidence.
        errors_of_own = None if own is None else _errors(own, exact, dtype, None, signed)
        if errors_of_own is not None and dtype not in ("float64", "complex128"):
            elements = elements or not np.nanmax(errors_of_own, initial=0)
        if not elements:
            top = max(finite.max(initial=0), terms)
            size = np.full(exact.shape, top)
            errors_of_own = None if own is None else _errors(own, exact, dtype, size, signed)
        errors = _errors(got, exact, dtype, size, signed)
        allowed = np.full(exact.shape, self.limit)
        if not elements:
            allowed += ULPS_OF_LARGEST + sqrt(exact.size)
        if errors_of_own is not None:
            known = np.where(np.isfinite(errors_of_own), errors_of_own, 0)
            allowed = np.maximum(allowed, 2 * known.max(initial=0) + 1)
            # Where the operator itself is wrong, overflow say, nothing is known.
            allowed = np.where(np.isinf(errors_of_own), np.inf, allowed)
        wrong = errors > allowed
        if not wrong.any():
            return None
        worst = errors[wrong].max()
        unit = f" ({worst:.3g} ULP{'' if elements else ' of the largest'})"
        return _at(wrong, got, exact, unit if np.isfinite(worst) else "")


def _errors(got: np.ndarray, exact: np.ndarray, dtype: str, size: Any, signed: bool) -> np.ndarray:
    with np.errstate(all="ignore"):
        if np.iscomplexobj(exact) or np.iscomplexobj(got):
            found = complex_ulps(
                got.astype(np.clongdouble),
                exact.astype(np.clongdouble),
                dtype,
                None if size is None else size.astype(Wide),
            )
            return np.where(np.isfinite(exact), found, 0)
        size = None if size is None else size.astype(Wide)
        return ulps(got, exact.astype(Wide), dtype, size, signed)


def _at(wrong: np.ndarray, got: Any, exact: Any, unit: str) -> tuple[str, str]:
    index = tuple(int(i) for i in np.argwhere(wrong)[0])
    place = f"at {list(index)}: " if index else ""
    count = f", {int(wrong.sum())} of {wrong.size}" if wrong.size > 1 else ""
    return "wrong value", f"{place}expected {exact[index]}, got {got[index]}{unit}{count}"


def _dtypes(results: Sequence[Any]) -> list[str]:
    return [str(getattr(r, "dtype", type(r))).removeprefix("treadle.") for r in results]


def _kept(result: Any) -> np.ndarray:
    """A copy of the values."""
    if isinstance(result, treadle.Tensor):
        return np.array(to_numpy(result))
    return np.asarray(result)


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.tobytes() == b.tobytes():
        return True
    if a.dtype.kind not in "fc":
        return False
    # The bits of a NaN say nothing.
    parts = [(a.real, b.real), (a.imag, b.imag)] if a.dtype.kind == "c" else [(a, b)]
    return all(
        bool(np.all((np.isnan(x) & np.isnan(y)) | ((x == y) & (np.signbit(x) == np.signbit(y)))))
        for x, y in parts
    )


def _difference(a: np.ndarray, b: np.ndarray) -> str:
    if a.shape != b.shape:
        return f"shape {a.shape} and {b.shape}"
    wrong = ~((a == b) | ((a != a) & (b != b)))
    if not wrong.any():
        return "zeros of other signs"
    index = tuple(int(i) for i in np.argwhere(wrong)[0])
    return f"at {list(index)}: {a[index]} and {b[index]}"


def _result(i: int, of: Sequence[Any]) -> str:
    return f"result {i}: " if len(of) > 1 else ""


def _first(error: BaseException) -> str:
    return (str(error).splitlines() or [""])[0][:200]


def _moved(value: Any, device: str) -> Any:
    if isinstance(value, treadle.Tensor):
        return value.to(device)
    return [_moved(v, device) for v in value] if isinstance(value, list) else value


def _owners(line: Line) -> list[int]:
    """For each tensor of the line, the number of its argument."""
    found: list[int] = []
    for i, argument in enumerate(line.arguments):
        found += [i] * len(Line("x", (argument,)).tensors())
    return found


def _is_out(line: Line, tensor: Tensor) -> bool:
    return any(n == "out" and v is tensor for n, v in line.arguments)


def _may_refuse(op: Operator, line: Line) -> bool:
    """Whether an operator may refuse a call whose plain form it takes: results that overlap, do not
    fit, or have fewer elements in memory; views that do not exist for the strides."""
    names: Mapping[str, Any] = {n: v for n, v in line.arguments if n}
    overlapping = any(
        t.strides is not None and prod(t.shape) > 1 and 0 in t.strides for t in line.tensors()
    )
    may = overlapping or op.kind in ("view", "composite")
    return may or "out" in names or is_in_place(op, line)
