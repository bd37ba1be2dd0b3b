"""The cost of a call from Python, as ratios against NumPy in one run (and PyTorch where it is
installed), and the memory of small objects.

Medians of many short repetitions, interleaved, so that noise meets every candidate alike.

    ./dev bench overhead
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import statistics
import subprocess
import sys
from typing import Callable

import numpy as np
from _rounds import medians

import treadle

try:
    import torch
except ImportError:
    torch = None

REPEATS, CALLS = 41, 2000


def nanoseconds(
    candidates: dict[str, Callable[[], object]], calls: int = CALLS
) -> dict[str, float]:
    """Of a call of each candidate."""
    return {name: 1e9 * t for name, t in medians(candidates, REPEATS, calls).items()}


def chain(module: object, x: object, n: int = 100) -> Callable[[], object]:
    def run() -> None:
        x.grad = None
        y = x
        for _ in range(n):
            y = y * 1.0001
        y.backward()

    return run


def caught(f: Callable[[], object]) -> Callable[[], object]:
    """A call that raises, and the handler that goes on."""

    def run() -> None:
        try:
            f()
        except Exception:
            return
        raise AssertionError("no exception")

    return run


def refused() -> dict[str, Callable[[], object]]:
    """Calls outside the contract, by what is wrong with them."""
    x, y = treadle.ones(3), treadle.ones(4)
    image, weight = treadle.ones(1, 1, 4, 4), treadle.ones(1, 1, 2, 2)
    far, a, b = treadle.tensor([7]), np.ones(3, np.float32), np.ones(4, np.float32)
    return {
        "numpy shapes": lambda: np.add(a, b),
        "treadle a condition": lambda: treadle.conv2d(image, weight, stride=(0, 1)),
        "treadle shapes": lambda: treadle.add(x, y),
        "treadle a dimension": lambda: x.sum(2),
        "treadle an index": lambda: treadle.index_select(x, 0, far),
        "treadle a dtype": lambda: treadle.bitwise_and(x, x),
        "treadle too many arguments": lambda: treadle.exp(x, 1, 2),
    }


def beside_numpy(rows: dict[str, tuple[Callable[[], object], Callable[[], object]]]) -> None:
    """A line for each call of Treadle beside NumPy's."""
    print("\nindices and exchange, beside NumPy")
    for name, (ours, theirs) in rows.items():
        times = nanoseconds({"treadle": ours, "numpy": theirs})
        ratio = times["treadle"] / times["numpy"]
        print(f"  {name:32s} {times['treadle']:9.0f} ns   {ratio:6.2f} x numpy")


# Prints the bytes that each of many objects adds to the resident set: objects that stay, and none
# that was freed before.
HELD = """
import gc, importlib, resource, sys
library = importlib.import_module(sys.argv[1])
x, w = library.ones(1), library.ones(1, requires_grad=True)
make = {"tensor": lambda: library.ones(1), "view": lambda: x[0], "node": lambda: w * 2}[sys.argv[2]]
def resident():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize()
number = 200_000
kept = [make() for _ in range(1000)] + [None] * number
gc.collect()
gc.disable()
before = resident()
for i in range(number):
    kept[1000 + i] = make()
print((resident() - before) / number)
"""


def held_bytes(library: str, what: str) -> float:
    """Of one object, with its Python part; in a process of its own."""
    code = [sys.executable, "-c", HELD, library, what]
    return float(subprocess.run(code, capture_output=True, text=True, check=True).stdout)


def report(title: str, times: dict[str, float], base: str) -> None:
    print(f"\n{title}")
    for name, t in times.items():
        print(f"  {name:32s} {t:9.0f} ns   {t / times[base]:6.2f} x {base}")


def main() -> None:
    na, nb = np.ones(1, np.float32), np.ones(1, np.float32)
    ta, tb = treadle.ones(1), treadle.ones(1)
    tg = treadle.ones(1, requires_grad=True)
    calls = {
        "numpy a + b": lambda: na + nb,
        "treadle a + b": lambda: ta + tb,
        "treadle a + 1.0": lambda: ta + 1.0,
        "treadle a * 2": lambda: ta * 2,
        "treadle a + b, gradient recorded": lambda: tg + tb,
    }
    if torch:
        pa, pb, pg = torch.ones(1), torch.ones(1), torch.ones(1, requires_grad=True)
        calls["pytorch a + b"] = lambda: pa + pb
        calls["pytorch a + b, gradient recorded"] = lambda: pg + pb
    report("one float32 element, from Python", nanoseconds(calls), "numpy a + b")

    errors = {name: caught(f) for name, f in refused().items()}
    report(
        "a call outside the contract, raised and caught", nanoseconds(errors, 500), "numpy shapes"
    )

    per_op = {"numpy a * b": nanoseconds({"x": lambda: na * nb})["x"]}
    x = treadle.ones(1, requires_grad=True)
    per_op["treadle, forward and backward"] = nanoseconds({"x": chain(treadle, x)}, 20)["x"] / 100
    if torch:
        per_op["pytorch, forward and backward"] = (
            nanoseconds({"x": chain(torch, torch.ones(1, requires_grad=True))}, 20)["x"] / 100
        )
    report("chain of 100 multiplications, per operator", per_op, "numpy a * b")

    x = treadle.ones(100, 100)
    a = np.ones((100, 100), np.float32)
    beside_numpy(
        {
            "x[0]": (lambda: x[0], lambda: a[0]),
            "x[0, 1]": (lambda: x[0, 1], lambda: a[0, 1]),
            "x[:, 0]": (lambda: x[:, 0], lambda: a[:, 0]),
            "x[10:20]": (lambda: x[10:20], lambda: a[10:20]),
            "float(x[0, 1])": (lambda: float(x[0, 1]), lambda: float(a[0, 1])),
            "x.numpy(); a.view()": (lambda: x.numpy(), lambda: a.view()),
            "from_numpy(a); a.view()": (lambda: treadle.from_numpy(a), lambda: a.view()),
        }
    )

    print("\nbytes of an object, with its Python part")
    for what, title in (
        ("tensor", "a tensor of one element"),
        ("view", "a view"),
        ("node", "a result with its graph node"),
    ):
        held = [held_bytes(name, what) for name in ("treadle", *(["torch"] if torch else []))]
        print(f"  {title:32s} " + "   ".join(f"{number:6.0f}" for number in held))

    code = (
        "import time, numpy; t = time.perf_counter(); import treadle; "
        "print(time.perf_counter() - t)"
    )
    runs = [
        float(
            subprocess.run(
                [sys.executable, "-c", code], capture_output=True, text=True, check=True
            ).stdout
        )
        for _ in range(9)
    ]
    print(f"\nimport treadle, after numpy: {statistics.median(runs) * 1000:.0f} ms")


if __name__ == "__main__":
    main()
