"""Losses."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, Iterator

import numpy as np

from ..sample import Maker, Sample, samples


def _reduced(loss: Any, reduction: int) -> Any:
    return loss if reduction == 0 else loss.mean() if reduction == 1 else loss.sum()


def _pairwise(elementwise: Callable[..., Any]) -> Callable[[Maker], Iterator[Sample]]:
    """Samples of a loss of two tensors and a reduction."""

    def make_samples(make: Maker) -> Iterator[Sample]:
        for reduction in (0, 1, 2):
            yield Sample(
                make((3, 4)),
                make((3, 4)),
                reduction,
                expect=lambda x, y, r: _reduced(elementwise(x, y), r),
                loose=4,
            )

    return make_samples


samples("mse_loss")(_pairwise(lambda x, y: (x - y) ** 2))
samples("l1_loss")(_pairwise(lambda x, y: abs(x - y)))
samples("smooth_l1_loss")(
    _pairwise(lambda x, y: np.where(abs(x - y) < 1, (x - y) ** 2 / 2, abs(x - y) - 0.5))
)
samples("huber_loss")(
    _pairwise(lambda x, y: np.where(abs(x - y) < 1, (x - y) ** 2 / 2, abs(x - y) - 0.5))
)


@samples("binary_cross_entropy")
def binary_cross_entropy(make: Maker) -> Iterator[Sample]:
    def expect(x: Any, y: Any, w: Any, r: int) -> Any:
        loss = -(y * np.log(x) + (1 - y) * np.log(1 - x))
        return _reduced(loss if w is None else loss * w, r)

    certain = "at the probability 0 the divisor p (1 - p) of the gradient is bounded, as PyTorch's"
    for r in (0, 1, 2):
        yield Sample(
            make((3, 4), 0.1, 0.9), make((3, 4), 0.1, 0.9), None, r, expect=expect, loose=8,
            convention=certain,
        )  # fmt: skip
    yield Sample(
        make((5,), 0.1, 0.9), make((5,), 0.1, 0.9), make((5,), 0.5, 2), 1, expect=expect, loose=8,
        convention=certain,
    )  # fmt: skip


@samples("binary_cross_entropy_with_logits")
def binary_cross_entropy_with_logits(make: Maker) -> Iterator[Sample]:
    def expect(x: Any, y: Any, w: Any = None, p: Any = None, r: int = 1) -> Any:
        s = 1 / (1 + np.exp(-x))
        loss = -((1 if p is None else p) * y * np.log(s) + (1 - y) * np.log(1 - s))
        return _reduced(loss if w is None else loss * w, r)

    yield Sample(make((3, 4)), make((3, 4), 0.1, 0.9), expect=expect, loose=8)
    yield Sample(
        make((3, 4)),
        make((3, 4), 0.1, 0.9),
        make((4,), 0.5, 2),
        make((4,), 0.5, 2),
        0,
        expect=expect,
        loose=8,
    )


@samples("kl_div")
def kl_div(make: Maker) -> Iterator[Sample]:
    some = make((2, 3), 0.1, 0.9)
    some[0, 0], some[1, 1] = 0, np.nan
    yield Sample(
        make((2, 3)), some, 0, grad=False, loose=8,
        expect=lambda x, y, r: np.where(y == 0, 0, y * np.log(y)) - y * x,
    )  # fmt: skip
    yield Sample(
        make((3, 4)),
        make((3, 4), 0.1, 0.9),
        expect=lambda x, y: (y * (np.log(y) - x)).mean(),
        loose=8,
    )
    yield Sample(
        make((3, 4)),
        make((3, 4)),
        2,
        log_target=True,
        expect=lambda x, y, r, **_: (np.exp(y) * (y - x)).sum(),
        loose=8,
    )


def _nll(x: Any, target: Any, weight: Any = None, reduction: int = 1, ignore: int = -100) -> Any:
    if x.ndim == 1:
        out = _nll(x[None], target[None], weight, reduction, ignore)
        return out[0] if reduction == 0 else out
    w = np.ones(x.shape[1]) if weight is None else weight
    keep = target != ignore
    safe = np.where(keep, target, 0)
    factor = np.where(keep, w[safe], 0)
    loss = -np.take_along_axis(x, safe[:, None], 1)[:, 0] * factor
    return loss.sum() / factor.sum() if reduction == 1 else _reduced(loss, reduction)


@samples("nll_loss")
def nll_loss(make: Maker) -> Iterator[Sample]:
    for r in (0, 1, 2):
        yield Sample(make((4, 3)), make.index((4,), 3), None, r, expect=_nll, loose=4)
    target = make.index((4,), 3)
    target[1] = -100
    # The weight takes no gradient.
    yield Sample(make((4, 3)), target, make((3,), 0.5, 2), 1, expect=_nll, grad=False, loose=4)
    yield Sample(make((3,)), make.index((), 3), expect=_nll, loose=4)
    yield Sample(make((2, 3, 4)), make.index((2, 4), 3), expect=_nll, loose=4)


def _log_softmax(x: Any, axis: int) -> Any:
    shifted = x - x.max(axis, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis, keepdims=True))


@samples("cross_entropy_loss")
def cross_entropy_loss(make: Maker) -> Iterator[Sample]:
    def indices(x: Any, t: Any, w: Any = None, r: int = 1, i: int = -100) -> Any:
        return _nll(_log_softmax(x, 0 if x.ndim == 1 else 1), t, w, r, i)

    for r in (0, 1, 2):
        yield Sample(make((4, 3)), make.index((4,), 3), None, r, expect=indices, loose=8)
    yield Sample(make((2, 3, 4)), make.index((2, 4), 3), expect=indices, loose=8)
    yield Sample(make((3,)), make.index((), 3), expect=indices, loose=8)
    yield Sample(
        make((4, 3)),
        make((4, 3), 0.1, 1),
        expect=lambda x, p: -(_log_softmax(x, 1) * p).sum(1).mean(),
        loose=8,
    )

    def smoothed(x: Any, t: Any, label_smoothing: float) -> Any:
        logp = _log_softmax(x, 1)
        return (1 - label_smoothing) * _nll(logp, t) - label_smoothing * logp.mean(1).mean()

    yield Sample(make((4, 3)), make.index((4,), 3), label_smoothing=0.2, expect=smoothed, loose=8)
