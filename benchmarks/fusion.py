"""What fusion gains: programs written plainly, with and without `treadle.fuse`, in one run.

    ./dev bench fusion                 # one thread
    ./dev bench fusion --threads 2 --rounds 15
    ./dev bench fusion --compiled      # with compiled loops (treadle.fusion.enable(compile=True))

Times are medians of rounds in turn. "blocks" is fusion without compiled loops; "own" is Treadle's
own kernel for the same, where there is one; "add" is one `add` with `out=` of the same size. NumPy,
and PyTorch if it can be imported, run the
programs, too. Each figure is the time that fusion takes over the other's: below 1, it is faster.
With --compiled, one chain also runs under `torch.compile`; the time of its first call, which
compiles, is told apart.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import time
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional

from _rounds import medians

import treadle
from treadle.fusion.compilation import finish_compiling, set_compiling

F = treadle.nn.functional
SIZES = (1000, 100_000, 1_000_000, 10_000_000)


class Case(NamedTuple):
    name: str
    elements: int
    program: Callable[..., Any]  # of the library, and tensors
    shapes: List[tuple]
    own: Optional[Callable[..., Any]] = None


def chain(length: int) -> Callable[..., Any]:
    """The first operators of (((x * y + 1) * x - y) * 2 + x * .5 - y) * x + 1, over and over."""

    def program(_: Any, x: Any, y: Any) -> Any:
        v, left = x, length
        while True:
            for step in (
                lambda v: v * y,
                lambda v: v + 1,
                lambda v: v * x,
                lambda v: v - y,
                lambda v: v * 0.5,
                lambda v: v + x,
                lambda v: v - 1,
            ):
                if left == 0:
                    return v
                v, left = step(v), left - 1

    return program


def named_chain(_: Any, x: Any, y: Any) -> Any:
    return (((x * y + 1) * x - y) * 2 + x * 0.5 - y) * x + 1


def softmax(t: Any, x: Any) -> Any:
    e = t.exp(x - t.amax(x, -1, keepdim=True))
    return e / e.sum(-1, keepdim=True)


def layer_norm(_: Any, x: Any, w: Any, b: Any) -> Any:
    d = x - x.mean(-1, keepdim=True)
    return d / ((d * d).mean(-1, keepdim=True) + 1e-5) ** 0.5 * w + b


def rms_norm(t: Any, x: Any, w: Any, _: Any) -> Any:
    return x * t.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * w


def gelu(t: Any, x: Any) -> Any:
    return 0.5 * x * (1 + t.erf(x * 0.7071067811865476))


def adam(_: Any, p: Any, g: Any, m: Any, v: Any) -> Any:
    m2, v2 = m * 0.9 + g * 0.1, v * 0.999 + g * g * 0.001
    return p - 0.001 * m2 / (v2**0.5 + 1e-8), m2, v2


def dropout_add_norm(t: Any, x: Any, w: Any, b: Any, r: Any, keep: Any) -> Any:
    return layer_norm(t, r + x * keep * 1.25, w, b)


def meta_conv2d(t: Any, x: Any, w: Any) -> Any:
    """A convolution of padding 1 with a kernel of 3 x 3, in meta-operators."""
    (n, c, height, width), o = x.shape, w.shape[0]
    loops = (n, o, height, width, c, 3, 3)
    read = t.meta.reindex(x, loops, ["i0", "i4", "i2 + i5 - 1", "i3 + i6 - 1"])
    return (read * t.meta.broadcast(w, loops, (0, 2, 3))).sum((4, 5, 6))


def own_conv2d(x: Any, w: Any) -> Any:
    return F.conv2d(x, w, padding=1)


def own_layer_norm(x: Any, w: Any, b: Any) -> Any:
    return F.layer_norm(x, w.shape, w, b)


def cases() -> List[Case]:
    found = [
        Case(f"chain of {k}", n, chain(k), [(n,), (n,)]) for n in SIZES for k in (1, 2, 4, 9, 16)
    ]
    found.append(Case("(((x*y+1)*x-y)*2+x*.5-y)*x+1", 10**7, named_chain, [(10**7,)] * 2))
    for rows, row in ((4096, 1024), (512, 512), (65536, 64)):
        n, x, w = rows * row, (rows, row), (row,)
        found += [
            Case("softmax", n, softmax, [x], lambda x: F.softmax(x, -1)),
            Case("layer norm", n, layer_norm, [x, w, w], own_layer_norm),
            Case("RMS norm", n, rms_norm, [x, w, w], lambda x, w, b: F.rms_norm(x, w.shape, w)),
            Case("GELU", n, gelu, [x], F.gelu),
            Case("Adam", n, adam, [x] * 4),
            Case("dropout, add, layer norm", n, dropout_add_norm, [x, w, w, x, x]),
        ]
    for side, channels in ((56, 64), (28, 128)):
        image, kernel = (1, channels, side, side), (channels, channels, 3, 3)
        n = channels * side * side
        found.append(Case("convolution by meta", n, meta_conv2d, [image, kernel], own_conv2d))
    return found


OTHERS = ("unfused", "blocks", "own", "add", "NumPy", "PyTorch", "torch.compile")


def looked_at(result: Any) -> None:
    for part in result if isinstance(result, tuple) else (result,):
        part.reshape(-1)[0].item()


def compiled_by_torch(torch: Any, case: Case, inputs: List[Any]) -> Callable[[], Any]:
    program = torch.compile(lambda *tensors: case.program(torch, *tensors))
    begin = time.perf_counter()
    program(*inputs)
    print(f"torch.compile: {time.perf_counter() - begin:.1f} s for the first call of {case.name}")
    return lambda: looked_at(program(*inputs))


def contenders(case: Case, compiled: bool) -> Dict[str, Callable[[], Any]]:
    inputs = [treadle.rand(*shape) for shape in case.shapes]
    out = treadle.empty(case.elements)
    a, b = treadle.rand(case.elements), treadle.rand(case.elements)

    def plain() -> None:
        looked_at(case.program(treadle, *inputs))

    found: Dict[str, Callable[[], Any]] = {
        "fused": plain,
        "unfused": plain,
        "blocks": plain,
        "add": lambda: treadle.add(a, b, out=out),
    }
    if case.own is not None:
        own = case.own
        found["own"] = lambda: own(*inputs)
    if "chain" in case.name or "x" in case.name[:6]:
        arrays = [t.numpy().copy() for t in inputs]
        found["NumPy"] = lambda: case.program(None, *arrays)
    if importlib.util.find_spec("torch") and case.program is not meta_conv2d:
        torch = importlib.import_module("torch")
        torch.set_num_threads(treadle.get_num_threads())
        theirs = [torch.from_numpy(t.numpy().copy()) for t in inputs]
        found["PyTorch"] = lambda: looked_at(case.program(torch, *theirs))
        if compiled and case.program is named_chain:
            found["torch.compile"] = compiled_by_torch(torch, case, theirs)
    return found


def times(
    calls: Dict[str, Callable[[], Any]], rounds: int, elements: int, compiled: bool
) -> Dict[str, float]:
    """Seconds of each call, in the mode of its name."""

    @contextlib.contextmanager
    def mode(name: str) -> Iterator[None]:
        set_compiling(compiled and name == "fused")
        with treadle.fuse(enabled=name in ("fused", "blocks")):
            yield

    if compiled:
        with mode("fused"):
            for _ in range(5):
                calls["fused"]()
        finish_compiling()
    else:
        del calls["blocks"]
    return medians(calls, rounds, max(1, 200_000 // elements), around=mode)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--compiled", action="store_true")
    parser.add_argument("--only", default="", help="cases whose name has this text")
    options = parser.parse_args()
    treadle.set_num_threads(options.threads)
    widths = {other: max(9, len(other) + 1) for other in OTHERS}
    header = "".join(f"{other:>{width}s}" for other, width in widths.items())
    print(f"{'fused / ...':34s}{'elements':>10s}{header}")
    for case in cases():
        if options.only not in case.name:
            continue
        calls = contenders(case, options.compiled)
        found = times(calls, options.rounds, case.elements, options.compiled)
        ratios = "".join(
            f"{found['fused'] / found[o]:{width}.2f}" if o in found else f"{'':{width}s}"
            for o, width in widths.items()
        )
        print(f"{case.name:34s}{case.elements:10d}{ratios}", flush=True)


if __name__ == "__main__":
    main()
