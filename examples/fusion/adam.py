"""Adam as it is written in its paper, over a list of parameters; it trains a network of two layers.

    python examples/fusion/adam.py            # 1 s on one core
    python examples/fusion/adam.py --small    # 1 s

The step makes new tensors and changes none. For a parameter it is a dozen operators, and one pass
or a few over memory. Nobody looks at what is between them, so it needs no memory.

Reaches: difference <= 0.0001 (small: <= 0.0001), the largest from the weights of treadle.optim.Adam
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import argparse
from typing import NamedTuple

from _timing import bits_agree, print_times

import treadle
from treadle import Tensor
from treadle.nn import functional

RATE, BETA1, BETA2, EPSILON = 1e-3, 0.9, 0.999, 1e-8


class State(NamedTuple):
    """The parameters, and the moving averages of their gradients and of the squares of those."""

    parameters: list[Tensor]
    means: list[Tensor]
    squares: list[Tensor]
    steps: int


def begun(parameters: list[Tensor]) -> State:
    zeros = [treadle.zeros_like(p) for p in parameters]
    return State(parameters, zeros, zeros, 0)


def adam(state: State, gradients: list[Tensor]) -> State:
    """The state after a step (Kingma and Ba, 2014, algorithm 1)."""
    steps = state.steps + 1
    rate, correction = RATE / (1 - BETA1**steps), 1 - BETA2**steps
    means = [BETA1 * m + (1 - BETA1) * g for m, g in zip(state.means, gradients)]
    squares = [BETA2 * v + (1 - BETA2) * g * g for v, g in zip(state.squares, gradients)]
    parameters = [
        p - rate * m / ((v / correction).sqrt() + EPSILON)
        for p, m, v in zip(state.parameters, means, squares)
    ]
    return State(parameters, means, squares, steps)


def loss(parameters: list[Tensor], x: Tensor, y: Tensor) -> Tensor:
    w1, b1, w2, b2 = parameters
    return functional.mse_loss((x @ w1 + b1).tanh() @ w2 + b2, y)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="a quick run, for tests")
    options = parser.parse_args()
    width, steps = (512, 10) if options.small else (1024, 30)

    treadle.manual_seed(0)
    x = treadle.randn(64, width)
    y = treadle.sin(x[:, :10] + x[:, 10:20])
    shapes = ((width, width), (width,), (width, 10), (10,))
    first = [treadle.randn(shape) / shape[0] ** 0.5 for shape in shapes]

    state = begun(first)
    with treadle.fuse():
        for _ in range(steps):
            parameters = [p.detach().requires_grad_() for p in state.parameters]
            error = loss(parameters, x, y)
            gradients = list(treadle.autograd.grad(error, parameters))
            state = adam(state, gradients)
            if state.steps in (1, steps):
                print(f"step {state.steps:2}: loss {error.item():.4f}")

    known = [p.clone().requires_grad_() for p in first]
    optimizer = treadle.optim.Adam(known, lr=RATE, betas=(BETA1, BETA2), eps=EPSILON)

    def own_step() -> list[Tensor]:
        optimizer.step()
        return known

    for _ in range(steps):
        optimizer.zero_grad()
        loss(known, x, y).backward()
        own_step()
    pairs = zip(state.parameters, known)
    difference = max((ours - theirs).abs().max().item() for ours, theirs in pairs)

    def step(state: State) -> list[Tensor]:
        return adam(state, gradients).parameters

    print(f"the same bits with fusion and without: {bits_agree(step, state)}")
    print_times(step, state, own=lambda _: own_step())
    print(f"difference {difference:.7f}")


if __name__ == "__main__":
    main()
