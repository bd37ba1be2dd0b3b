"""GELU by its definition, and by the formula with tanh; the gradient of the first, by autograd.

    python examples/fusion/gelu.py            # 3 s on one core
    python examples/fusion/gelu.py --small    # 1 s

Five operators on elements are one pass over memory, so the function that is written down is about
as fast as an operator that somebody made for it.

Reaches: difference <= 0.000002 (small: <= 0.000002), the largest from the library's own operators
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import argparse
import math

from _timing import bits_agree, print_times

import treadle
from treadle import Tensor
from treadle.nn import functional


def gelu(x: Tensor) -> Tensor:
    """x times the probability that a normal variable is below x."""
    return 0.5 * x * (1 + treadle.erf(x * math.sqrt(0.5)))


def gelu_by_tanh(x: Tensor) -> Tensor:
    return 0.5 * x * (1 + treadle.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))


def gradient(x: Tensor) -> Tensor:
    """The derivative of `gelu` at each element."""
    x = x.detach().requires_grad_()
    return treadle.autograd.grad(gelu(x).sum(), x)[0]


def own_gradient(x: Tensor) -> Tensor:
    x = x.detach().requires_grad_()
    return treadle.autograd.grad(functional.gelu(x).sum(), x)[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="a quick run, for tests")
    options = parser.parse_args()

    treadle.manual_seed(0)
    x = treadle.randn(400 if options.small else 4000, 1024)
    difference = 0.0
    for program, own in (
        (gelu, functional.gelu),
        (gelu_by_tanh, lambda x: functional.gelu(x, approximate="tanh")),
        (gradient, own_gradient),
    ):
        with treadle.fuse():
            here = (program(x) - own(x)).abs().max().item()
        difference = max(difference, here)
        print(f"{program.__name__}: within {here:.1e} of the library's own")
        print(f"the same bits with fusion and without: {bits_agree(program, x)}")
        print_times(program, x, own=own)
    print(f"difference {difference:.7f}")


if __name__ == "__main__":
    main()
