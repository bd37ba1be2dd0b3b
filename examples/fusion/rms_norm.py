"""RMS norm in one line of tensors, as a layer of a network; its gradients by autograd.

    python examples/fusion/rms_norm.py            # 2 s on one core
    python examples/fusion/rms_norm.py --small    # 1 s

The mean of the squares of a row is taken while the row is in the nearest cache; what is computed
from it waits with it. So the layer reads its input once and writes its result once.

Reaches: difference <= 0.00001 (small: <= 0.00001), the largest from the library's own operator
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import argparse

from _timing import bits_agree, print_times

import treadle
from treadle import Tensor, nn


class RmsNorm(nn.Module):
    """Scales rows (..., width) so that the mean of their squares is 1, then by a weight."""

    def __init__(self, width: int, epsilon: float = 1e-6) -> None:
        super().__init__()
        self.weight = nn.Parameter(treadle.ones(width))
        self.epsilon = epsilon

    def forward(self, x: Tensor) -> Tensor:
        mean_square = (x * x).mean(-1, keepdim=True)
        return x * treadle.rsqrt(mean_square + self.epsilon) * self.weight


def gradients(layer: nn.Module, x: Tensor, above: Tensor) -> tuple[Tensor, ...]:
    """Those of the input and the weight, for the gradient `above` of the result."""
    x = x.detach().requires_grad_()
    return treadle.autograd.grad(layer(x), (x, layer.weight), above)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="a quick run, for tests")
    options = parser.parse_args()

    treadle.manual_seed(0)
    rows, width = (400, 512) if options.small else (4096, 1024)
    x, above = treadle.randn(rows, width), treadle.randn(rows, width) / rows
    layer, own = RmsNorm(width), nn.RMSNorm(width, eps=1e-6)
    for norm in (layer, own):
        nn.init.uniform_(norm.weight, 0.5, 1.5, generator=treadle.Generator().manual_seed(1))

    with treadle.fuse(), treadle.no_grad():
        difference = (layer(x) - own(x)).abs().max().item()
    print(f"values within {difference:.1e} of the library's own")
    with treadle.no_grad():
        print(f"the same bits with fusion and without: {bits_agree(layer, x)}")
        print_times(layer, x, own=own)

    with treadle.fuse():
        found = gradients(layer, x, above)
    for ours, theirs in zip(found, gradients(own, x, above)):
        difference = max(difference, (ours - theirs).abs().max().item())
    print("forward and backward:")
    print(f"the same bits with fusion and without: {bits_agree(gradients, layer, x, above)}")
    print_times(lambda x: gradients(layer, x, above), x, own=lambda x: gradients(own, x, above))
    print(f"difference {difference:.7f}")


if __name__ == "__main__":
    main()
