"""The cost of a Python function as an operator: the time of a call over that of the function
itself, forward, and forward and backward with a derivative in Python.

Medians of many short repetitions, interleaved, so that noise meets every candidate alike. The
functions do nothing but hand over a tensor, so that what is left is the operator. Backward is
compared with calling the three functions (forward, setup_context, backward) one after the other and
with the backward pass of an operator of the library's own, which has the same engine to run.

    ./dev bench custom_operator
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Callable

from _rounds import medians

import treadle
from treadle import Tensor

REPEATS, CALLS = 401, 200
READY = treadle.ones(3)


def forward(x: Tensor, by: float) -> Tensor:
    """Something that costs next to nothing."""
    return READY.detach()


def setup_context(ctx: object, inputs: tuple, output: Tensor) -> None:
    """Keeps the number."""
    ctx.by = inputs[1]


def backward(ctx: object, grad: Tensor) -> tuple:
    """The gradient as it came."""
    return grad, None


operator = treadle.library.custom_op("bench::plain", forward, mutates_args=())
derived = treadle.library.custom_op("bench::derived", forward, mutates_args=())
derived.register_autograd(backward, setup_context=setup_context)


class Context:
    """The context of the functions where they are called directly."""


def direct(x: Tensor, grad: Tensor) -> Tensor:
    """The three functions, with nothing around them."""
    ctx = Context()
    output = forward(x, 2.0)
    setup_context(ctx, (x, 2.0), output)
    return backward(ctx, grad)[0]


def measure() -> dict[str, float]:
    """Seconds over the functions themselves."""
    x, leaf, grad = treadle.ones(3), treadle.ones(3, requires_grad=True), treadle.ones(3)
    full_name = treadle.ops.bench.plain

    def backward_through(f: Callable[[], Tensor]) -> Callable[[], None]:
        def run() -> None:
            leaf.grad = None
            f().backward(grad)

        return run

    times = medians(
        {
            "function": lambda: forward(x, 2.0),
            "operator": lambda: operator(x, 2.0),
            "treadle.ops": lambda: full_name(x, 2.0),
            "functions": lambda: direct(x, grad),
            "derived": backward_through(lambda: derived(leaf, 2.0)),
            "generated": backward_through(lambda: leaf.exp()),
        },
        REPEATS,
        CALLS,
    )
    return {
        "forward, by the decorated name": times["operator"] - times["function"],
        "forward, by treadle.ops": times["treadle.ops"] - times["function"],
        "forward and backward": times["derived"] - times["functions"],
        "the same of x.exp(), all of it": times["generated"],
    }


def main() -> None:
    for name, seconds in measure().items():
        print(f"{name:40s} {seconds * 1e6:6.2f} us")


if __name__ == "__main__":
    main()
