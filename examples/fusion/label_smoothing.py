"""Cross entropy with smoothed labels, from exponentials and sums.

    python examples/fusion/label_smoothing.py            # 2 s on one core
    python examples/fusion/label_smoothing.py --small    # 1 s

A label says that its class has the probability 1 - s, and that s is spread over all classes. The
table of these probabilities is never in memory: a comparison, `where`, the exponentials and three
sums of a row are computed while the row of scores is in the nearest cache.

Reaches: difference <= 0.00001 (small: <= 0.00001), from the library's own loss and its gradient
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import argparse

from _timing import bits_agree, print_times

import treadle
from treadle import Tensor
from treadle.nn import functional

SMOOTHING = 0.1


def loss(scores: Tensor, labels: Tensor) -> Tensor:
    """The mean over the rows of scores (N, classes), for labels (N,)."""
    classes = scores.shape[1]
    shifted = scores - scores.amax(1, keepdim=True)
    log_sum = shifted.exp().sum(1, keepdim=True).log()
    is_label = treadle.arange(classes) == labels.unsqueeze(1)
    wanted = treadle.where(is_label, 1 - SMOOTHING + SMOOTHING / classes, SMOOTHING / classes)
    return (wanted * (log_sum - shifted)).sum(1).mean()


def own_loss(scores: Tensor, labels: Tensor) -> Tensor:
    return functional.cross_entropy(scores, labels, label_smoothing=SMOOTHING)


def gradient(scores: Tensor, labels: Tensor) -> Tensor:
    """Of the mean loss times the number of rows."""
    scores = scores.detach().requires_grad_()
    return treadle.autograd.grad(loss(scores, labels) * len(labels), scores)[0]


def own_gradient(scores: Tensor, labels: Tensor) -> Tensor:
    scores = scores.detach().requires_grad_()
    return treadle.autograd.grad(own_loss(scores, labels) * len(labels), scores)[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="a quick run, for tests")
    options = parser.parse_args()

    treadle.manual_seed(0)
    rows, classes = (256, 600) if options.small else (2048, 1000)
    scores, labels = 3 * treadle.randn(rows, classes), treadle.randint(0, classes, (rows,))
    difference = 0.0
    for program, own in ((loss, own_loss), (gradient, own_gradient)):
        with treadle.fuse():
            found = program(scores, labels)
        difference = max(difference, (found - own(scores, labels)).abs().max().item())
        print(f"{program.__name__}: the same bits with fusion and without: "
              f"{bits_agree(program, scores, labels)}")  # fmt: skip
        print_times(program, scores, labels, own=own)
    print(f"loss {loss(scores, labels).item():.4f}")
    print(f"difference {difference:.7f}")


if __name__ == "__main__":
    main()
