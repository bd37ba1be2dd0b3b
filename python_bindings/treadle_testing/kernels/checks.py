"""The checks of a kernel over many calls: bits, memory, gradients.

Each check takes a line of a kernel and gives the problems it finds:

    threads      the same bits with 1, 2, 3 and 8 threads, again and again
    concurrent   the same values when two Python threads call at once
    batch        row i has the same bits in a batch of any size
    calls        the kernel does not call the operator that it is compared with
    leak         calls take no memory that they do not give back
    peak         not much more memory at once than the operator needs
    gradients    first derivatives by finite differences
    second       second derivatives
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import ctypes
import gc
import sys
import threading
import time
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any, Callable, Iterator, Mapping, Optional, Sequence

import numpy as np

import treadle
from treadle.autograd import gradcheck, gradgradcheck
from treadle.autograd.gradcheck import GradcheckError
from treadle.utils._python_dispatch import TorchDispatchMode

from ..check import tensors
from . import entry
from .buffers import to_numpy
from .entry import Expected
from .judge import PATTERNS, Built, Finding, Judge, Skipped, _difference, _first, _kept, _same
from .line import Line, Tensor

# Seconds for repeating calls, so that a race has its chance.
REPEAT = 0.6
THREADS = (1, 2, 3, 8)
_CALLS = 100


class _Mallinfo(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_size_t)
        for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks "
        "keepcost".split()
    ]


def _plain(judge: Judge, line: Line) -> tuple[Built, list[Any]]:
    built = Built(line, True, PATTERNS[0])
    try:
        return built, judge.expected(built)
    except BaseException:
        built.close()
        raise


def threads(judge: Judge, line: Line) -> Iterator[Finding]:
    if not judge.repeatable():
        return
    built, wanted = _plain(judge, line)
    before = treadle.get_num_threads()
    first: Optional[list[np.ndarray]] = None
    try:
        for n in THREADS:
            treadle.set_num_threads(n)
            of_this: Optional[list[np.ndarray]] = None
            end, count = time.monotonic() + REPEAT / len(THREADS), 0
            while count < 3 or (time.monotonic() < end and count < 200):
                got = [_kept(r) for r in judge.call(built, wanted)]
                del built.buffers[len(line.tensors()) :]
                of_this, count = of_this or got, count + 1
                if difference := _first_difference(of_this, got):
                    detail = f"{n} threads: {difference}"
                    yield Finding("different bits in repeated calls", str(line), detail)
                    return
            assert of_this is not None
            first = first or of_this
            if difference := _first_difference(first, of_this):
                detail = f"1 and {n} threads: {difference}"
                yield Finding("bits depend on the number of threads", str(line), detail)
                return
    finally:
        treadle.set_num_threads(before)
        built.close()


def _first_difference(first: list[np.ndarray], second: list[np.ndarray]) -> str:
    return next((_difference(a, b) for a, b in zip(first, second) if not _same(a, b)), "")


def concurrent(judge: Judge, line: Line) -> Iterator[Finding]:
    if not judge.repeatable():
        return
    made = [Built(line, True, PATTERNS[0], again) for again in (0, 1)]
    problems: list[str] = []
    try:
        wanted = [judge.expected(b) for b in made]
        alone = [[_kept(r) for r in judge.call(b, w)] for b, w in zip(made, wanted)]
        end = time.monotonic() + REPEAT
        start = threading.Barrier(len(made))

        def work(i: int) -> None:
            start.wait()
            for _ in range(200):
                if problems or time.monotonic() > end:
                    return
                try:
                    got = [_kept(r) for r in judge.call(made[i], wanted[i])]
                except Exception as error:
                    problems.append(f"{type(error).__name__}: {_first(error)}")
                    return
                problems.extend(_difference(a, b) for a, b in zip(alone[i], got) if not _same(a, b))

        workers = [threading.Thread(target=work, args=(i,)) for i in range(len(made))]
        for w in workers:
            w.start()
        for w in workers:
            w.join()
    finally:
        for b in made:
            b.close()
    if problems:
        yield Finding("calls at once disturb each other", str(line), problems[0])


def batch(judge: Judge, line: Line) -> Iterator[Finding]:
    """Where rows of the reference do not depend on each other."""
    if not judge.repeatable() or judge.kernel.device != "cpu":
        return
    shapes = [t.shape for t in line.tensors()]
    rows = shapes[0][0] if shapes and shapes[0] else 0
    if rows < 2:
        return
    built, wanted = _plain(judge, line)
    try:
        whole = [_kept(r) for r in judge.call(built, wanted)]
        if any(w.ndim == 0 or w.shape[0] != rows for w in whole):
            return
        for only_first in (True, False):
            chosen = _rows_of_reference(judge, built, rows, only_first)
            if chosen is None:
                continue
            for count in sorted({1, 2, 3, 5, 8, rows // 2 + 1, rows - 1} - {0, rows}):
                if count >= rows:
                    continue
                for first in (0, rows - count):
                    part = chosen(first, count)
                    of_part = judge.expected(part)
                    if not _has_rows(wanted, of_part, first, count):
                        return
                    got = [_kept(r) for r in judge.call(part, of_part)]
                    for a, b in zip(whole, got):
                        if not _same(np.array(a[first : first + count]), b):
                            yield Finding(
                                "bits depend on the batch",
                                str(line),
                                f"rows {first} to {first + count - 1} of {rows} alone: "
                                f"{_difference(a[first : first + count], b)}",
                            )
                            return
            return
    finally:
        built.close()


def _rows_of_reference(
    judge: Judge, built: Built, rows: int, only_first: bool
) -> Optional[Callable[[int, int], Built]]:
    """A function that makes a call of some rows; None where the reference's rows depend on each
    other."""

    def narrow(value: Any, first: int, count: int) -> Any:
        if isinstance(value, treadle.Tensor) and value.dim() and value.shape[0] == rows:
            return value.narrow(0, first, count)
        return value

    def part(first: int, count: int) -> Built:
        made = Built.__new__(Built)
        made.line, made.at_end, made.pattern = built.line, True, PATTERNS[0]
        made.buffers = []
        if only_first:
            args = [narrow(built.args[0], first, count), *built.args[1:]] if built.args else []
            kwargs = built.kwargs
        else:
            args = [narrow(a, first, count) for a in built.args]
            kwargs = {k: narrow(v, first, count) for k, v in built.kwargs.items()}
        made.args, made.kwargs = args, kwargs
        return made

    try:
        whole = judge.expected(built)
        for first, count in ((0, 1), (rows - 2, 2)):
            of_part = judge.expected(part(first, count))
            if not _has_rows(whole, of_part, first, count):
                return None
    except (Skipped, ValueError):
        return None
    return part


def _has_rows(whole: Sequence[Expected], part: Sequence[Expected], first: int, count: int) -> bool:
    """Whether the results of some rows are those rows of the results of all."""

    def same(a: np.ndarray, b: np.ndarray) -> bool:
        return a.shape == b.shape and np.allclose(a, b, rtol=1e-9, atol=1e-12, equal_nan=True)

    return all(same(w.exact[first : first + count], p.exact) for w, p in zip(whole, part))


class _Recorder(TorchDispatchMode):
    """The names of the operators that run."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Optional[Mapping[str, Any]] = None
    ) -> Any:
        self.names.add(func._schema.name)
        return func(*args, **(kwargs or {}))


def calls(judge: Judge, line: Line) -> Iterator[Finding]:
    if judge.kernel.is_operator:
        return
    built, wanted = _plain(judge, line)
    # An operator of the same name in another namespace may be the kernel itself.
    name = f"{judge.op.json['namespace']}::{judge.op.name.removesuffix('_')}"
    try:
        with _Recorder() as recorder:
            judge.call(built, wanted)
    finally:
        built.close()
    found = sorted(n for n in recorder.names if n.split(".")[0].removesuffix("_") == name)
    if found:
        yield Finding("calls its reference", str(line), f"the kernel calls {', '.join(found)}")


def _amounts() -> dict[str, int]:
    found = {
        "bytes of tensors": treadle._C._memory_stats()["current_bytes"],
        "Python's blocks": sys.getallocatedblocks(),
        "bytes of addresses": int(Path("/proc/self/statm").read_text().split()[0]) * 4096,
    }
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallinfo2"):
        libc.mallinfo2.restype = _Mallinfo
        info = libc.mallinfo2()
        found["bytes of malloc"] = info.uordblks + info.hblkhd
    return found


def leak(judge: Judge, line: Line) -> Iterator[Finding]:
    built, wanted = _plain(judge, line)
    kept = len(line.tensors())
    try:

        def repeat() -> None:
            for _ in range(_CALLS):
                judge.call(built, wanted)
                for _, buffer in built.buffers[kept:]:
                    buffer.close()
                del built.buffers[kept:]

        repeat()
        amounts = []
        for _ in range(4):
            gc.collect()
            amounts.append(_amounts())
            repeat()
    finally:
        built.close()
    for name in amounts[0]:
        steps = [b[name] - a[name] for a, b in zip(amounts, amounts[1:])]
        # As much for each call, every time: other growth is of caches.
        least = _CALLS if name == "Python's blocks" else 8 * _CALLS
        if min(steps) >= least and max(steps) <= 2 * min(steps):
            detail = f"{name}: {min(steps) / _CALLS:.4g} more with each call"
            yield Finding("leak", str(line), detail)
            return


def _peak(function: Callable[[], Any]) -> int:
    """The bytes by which the process grows at most while a function runs."""
    function()
    gc.collect()
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return 0

    def status(name: str) -> int:
        text = Path("/proc/self/status").read_text()
        return int(text.split(name + ":")[1].split()[0]) << 10

    before = status("VmRSS")
    function()
    return max(status("VmHWM") - before, 0)


def peak(judge: Judge, line: Line) -> Iterator[Finding]:
    if judge.kernel.is_operator or not entry.exists(judge.op):
        return
    built, wanted = _plain(judge, line)
    try:
        own = _peak(lambda: judge.op.function(*built.args, **built.kwargs))
        used = _peak(lambda: judge.call(built, wanted))
        all_bytes = sum(w.exact.size * getattr(treadle, w.dtype).itemsize for w in wanted)
        all_bytes += sum(b.array.nbytes for t, b in built.buffers)
    finally:
        built.close()
    if used > 2 * own + 2 * all_bytes + (4 << 20):
        yield Finding(
            "uses much memory",
            str(line),
            f"{used >> 20} MB beside its arguments; the operator {own >> 20} MB",
        )


def _differentiated(
    judge: Judge, line: Line
) -> Optional[tuple[Callable[..., Any], tuple[treadle.Tensor, ...]]]:
    """A function of the line's floating tensors, and these; None where it has no gradient."""
    if judge.kernel.writes_out or judge.op.random or line.name.endswith("_"):
        return None
    wide = line.map(
        lambda t: replace(
            t,
            strides=None,
            dtype="float64"
            if t.dtype.startswith(("float", "bfloat"))
            else "complex128"
            if t.dtype.startswith("complex")
            else t.dtype,
        )
    )
    if sum(prod(t.shape) for t in wide.tensors()) > 80:
        return None
    built, _ = _plain(judge, wide)
    try:
        args = entry.packed(built.args)
        kwargs = {k: entry.packed(v) for k, v in built.kwargs.items()}
    finally:
        built.close()
    found = tensors([*args, *kwargs.values()])
    leaves = [t for t in found if t.is_floating_point() or t.is_complex()]

    def function(*given: treadle.Tensor) -> Any:
        replaced = {id(leaf): g for leaf, g in zip(leaves, given)}

        def placed(value: Any) -> Any:
            if isinstance(value, treadle.Tensor):
                return replaced.get(id(value), value)
            return [placed(v) for v in value] if isinstance(value, list) else value

        result = judge.kernel.function(
            *map(placed, args), **{k: placed(v) for k, v in kwargs.items()}
        )
        return tuple(t for t in tensors(result) if t.is_floating_point() or t.is_complex())

    points = tuple(t.clone().requires_grad_() for t in leaves)
    try:
        has = bool(points) and any(t.requires_grad for t in function(*points))
    except Exception as error:
        raise Skipped(str(error)) from None
    return (function, points) if has else None


def _checked(judge: Judge, line: Line, check: Callable[..., Any], kind: str) -> Iterator[Finding]:
    differentiated = _differentiated(judge, line)
    if differentiated is None:
        return
    function, points = differentiated
    try:
        check(function, points)
    except NotImplementedError:
        return
    except Exception as error:
        if not isinstance(error, GradcheckError) and _refuses_gradient(judge, line, check):
            return
        lines = [part.strip() for part in str(error).splitlines() if part.strip()]
        yield Finding(kind, str(line), " ".join(lines)[:300])


def _operator(judge: Judge) -> Judge:
    return Judge(judge.op, replace(judge.kernel, function=judge.op.function))


def _refuses_gradient(judge: Judge, line: Line, check: Callable[..., Any]) -> bool:
    """Whether the operator itself has no gradient for the call, and says so."""
    if judge.kernel.is_operator:
        return True
    seen = _differentiated(_operator(judge), line) if entry.exists(judge.op) else None
    try:
        return seen is not None and not check(*seen)
    except GradcheckError:
        return False
    except Exception:
        return True


def gradients(judge: Judge, line: Line) -> Iterator[Finding]:
    found = list(_checked(judge, line, gradcheck, "wrong gradient"))
    yield from found
    if not found and not judge.kernel.is_operator and entry.exists(judge.op):
        yield from _gradients_of_operator(judge, line)


def _gradients_of_operator(judge: Judge, line: Line) -> Iterator[Finding]:
    """An operator with a gradient needs one of a kernel that autograd sees."""
    if judge.op.differentiable and _differentiated(judge, line) is None:
        seen = _differentiated(_operator(judge), line)
        if seen is None or judge.kernel.writes_out:
            return
        result = judge.kernel.function(*seen[1]) if len(line.arguments) == len(seen[1]) else None
        if isinstance(result, treadle.Tensor) and to_numpy(result).size and _records(judge):
            yield Finding("no gradient", str(line), "the result does not require grad")


def _records(judge: Judge) -> bool:
    """Whether autograd sees the kernel: an autograd.Function or an operator, not raw memory."""
    return judge.kernel.name.endswith(".apply") or "::" in judge.kernel.name


def second(judge: Judge, line: Line) -> Iterator[Finding]:
    yield from _checked(judge, line, gradgradcheck, "wrong second gradient")


CHECKS: Mapping[str, Callable[[Judge, Line], Iterator[Finding]]] = {
    "threads": threads,
    "concurrent": concurrent,
    "batch": batch,
    "calls": calls,
    "leak": leak,
    "peak": peak,
    "gradients": gradients,
    "second": second,
}


def findings(judge: Judge, line: Line) -> Iterator[Finding]:
    """The problems of a line, by its check.

    ValueError for a line that cannot be called; Skipped where the operator refuses the call.
    """
    if line.check == "call":
        yield from judge.findings(line)
    elif line.check in CHECKS:
        if not all(isinstance(t, Tensor) for t in line.tensors()):
            raise ValueError("line: expected tensors")
        try:
            yield from CHECKS[line.check](judge, line)
        except (Skipped, MemoryError):
            raise
        except Exception as error:
            if judge.kernel.is_operator:
                raise Skipped(str(error)) from None
            yield Finding("raises", str(line), f"{type(error).__name__}: {_first(error)}")
    else:
        raise ValueError(
            f"line: expected a check in (call, {', '.join(CHECKS)}), got '{line.check}'"
        )
