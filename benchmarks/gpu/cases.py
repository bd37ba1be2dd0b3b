"""The measurements on a device, beside their counterparts in another library: one function of the
name `torch` for either.

A Case makes the call to be timed. Nothing here imports a library, so that whoever drives the
measurements can read the names and the amounts of work.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Optional

Call = Callable[[], Any]


@dataclass(frozen=True)
class Case:
    """make(torch, device, quick) gives the call; `quick`: with small sizes, to try the script out.

    amount(quick): bytes moved, operations or samples of one call; unit: what that counts, or "calls
    queued" where the time until the host goes on is what is measured.
    """

    make: Callable[[Any, str, bool], Call]
    amount: Callable[[bool], float]
    unit: str
    dtype: Optional[str] = None  # autocast's


def _many(quick: bool) -> int:
    return 100_000 if quick else 100_000_000


def _pointwise(streams: int, run: Callable[..., Any]) -> Case:
    """`streams`: how many times the elements are read or written."""

    def make(torch: Any, device: str, quick: bool) -> Call:
        a, b, out = (torch.rand(_many(quick), device=device) for _ in range(3))
        return lambda: run(torch, a, b, out)

    return Case(make, lambda quick: 4.0 * streams * _many(quick), "bytes")


def _reduction(run: Callable[..., Any]) -> Case:
    def make(torch: Any, device: str, quick: bool) -> Call:
        rows = 100 if quick else 10_000
        x = torch.rand(rows, _many(quick) // rows, device=device)
        return lambda: run(torch, x)

    return Case(make, lambda quick: 4.0 * _many(quick), "bytes")


def _product(dtype: str) -> Case:
    def side(quick: bool) -> int:
        return 128 if quick else 4096

    def make(torch: Any, device: str, quick: bool) -> Call:
        n, kind = side(quick), getattr(torch, dtype)
        a, b = (torch.rand(n, n, device=device).to(kind) for _ in range(2))
        return lambda: torch.mm(a, b)

    return Case(make, lambda quick: 2.0 * side(quick) ** 3, "operations")


def _convolution(
    dtype: str, channels: int, side: int, kernel: int, backward: bool, groups: int = 1
) -> Case:
    options = {"padding": kernel // 2, "groups": groups}

    def batch(quick: bool) -> int:
        return 1 if quick else 64

    def make(torch: Any, device: str, quick: bool) -> Call:
        kind = getattr(torch, dtype)
        x = torch.rand(batch(quick), channels, side, side, device=device).to(kind)
        w = torch.rand(channels, channels // groups, kernel, kernel, device=device).to(kind)
        convolve = torch.nn.functional.conv2d
        if not backward:
            return lambda: convolve(x, w, **options)
        x.requires_grad_()
        w.requires_grad_()
        seed = torch.rand_like(convolve(x, w, **options).detach())

        def step() -> None:
            torch.autograd.grad(convolve(x, w, **options), (x, w), seed)

        return step

    def amount(quick: bool) -> float:
        once = 2.0 * batch(quick) * (channels * side * kernel) ** 2 / groups
        return 3 * once if backward else once

    return Case(make, amount, "operations")


def _recurrent(kind: str, dtype: str, units: int, layers: int) -> Case:
    """Outputs and all gradients of 50 steps."""

    def sizes(quick: bool) -> tuple[int, int, int]:
        return (3, 2, 16) if quick else (50, 64, units)

    def make(torch: Any, device: str, quick: bool) -> Call:
        steps, batch, width = sizes(quick)
        as_dtype = {"device": device, "dtype": getattr(torch, dtype)}
        net = getattr(torch.nn, kind)(width, width, layers, **as_dtype)
        x = torch.rand(steps, batch, width, **as_dtype).requires_grad_()
        leaves = [x, *net.parameters()]
        seed = torch.rand_like(net(x)[0].detach())

        def step() -> None:
            torch.autograd.grad(net(x)[0], leaves, seed)

        return step

    def amount(quick: bool) -> float:
        steps, batch, width = sizes(quick)
        gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[kind]
        return 3 * 2.0 * layers * steps * batch * gates * 2 * width**2

    return Case(make, amount, "operations")


QUEUED = 200  # calls that one measurement of the host's time queues


def _queued(run: Callable[..., Any]) -> Case:
    def make(torch: Any, device: str, quick: bool) -> Call:
        a, b, out = (torch.rand(1024, device=device) for _ in range(3))

        def calls() -> None:
            for _ in range(QUEUED):
                run(torch, a, b, out)

        return calls

    return Case(make, lambda quick: float(QUEUED), "calls queued")


KERNELS = {
    "copy": _pointwise(2, lambda torch, a, b, out: out.copy_(a)),
    "add": _pointwise(3, lambda torch, a, b, out: torch.add(a, b, out=out)),
    "mul by a number": _pointwise(2, lambda torch, a, b, out: torch.mul(a, 2.0, out=out)),
    "exp": _pointwise(2, lambda torch, a, b, out: torch.exp(a, out=out)),
    "addcmul": _pointwise(4, lambda torch, a, b, out: torch.addcmul(out, a, b, out=out)),
    "sum": _reduction(lambda torch, x: x.sum()),
    "sum of rows": _reduction(lambda torch, x: x.sum(1)),
    "sum of columns": _reduction(lambda torch, x: x.sum(0)),
    "amax of rows": _reduction(lambda torch, x: x.amax(1)),
    "var of rows": _reduction(lambda torch, x: x.var(1)),
    "mm 4096, float32": _product("float32"),
    "mm 4096, bfloat16": _product("bfloat16"),
    "mm 4096, float16": _product("float16"),
    "conv 3x3, 64 x 64 x 56 x 56, float32": _convolution("float32", 64, 56, 3, False),
    "its gradients, float32": _convolution("float32", 64, 56, 3, True),
    "conv 1x1, 64 x 256 x 14 x 14, float32": _convolution("float32", 256, 14, 1, False),
    "conv 3x3, 64 x 256 x 14 x 14, bfloat16": _convolution("bfloat16", 256, 14, 3, False),
    "its gradients, bfloat16": _convolution("bfloat16", 256, 14, 3, True),
    "depthwise 3x3, 64 x 144 x 56 x 56, float32": _convolution("float32", 144, 56, 3, False, 144),
    "depthwise gradients, float32": _convolution("float32", 144, 56, 3, True, 144),
    "depthwise 3x3, 64 x 144 x 56 x 56, bfloat16": _convolution("bfloat16", 144, 56, 3, False, 144),
    "depthwise gradients, bfloat16": _convolution("bfloat16", 144, 56, 3, True, 144),
    "LSTM 2 x 1024 with gradients, float32": _recurrent("LSTM", "float32", 1024, 2),
    "LSTM 2 x 1024 with gradients, bfloat16": _recurrent("LSTM", "bfloat16", 1024, 2),
    "GRU 128 with gradients, float32": _recurrent("GRU", "float32", 128, 1),
    "a + b, 1024 elements": _queued(lambda torch, a, b, out: a + b),
    "add with out=": _queued(lambda torch, a, b, out: torch.add(a, b, out=out)),
    "exp in place": _queued(lambda torch, a, b, out: out.exp_()),
}
