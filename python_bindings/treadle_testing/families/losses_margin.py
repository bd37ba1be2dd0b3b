"""Losses with a margin, of pairs and triplets, of counts, and of sequences."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import itertools
from typing import Any, Iterator

import numpy as np

from ..sample import Maker, Sample, samples


def _reduced(loss: Any, reduction: int) -> Any:
    return loss if reduction == 0 else loss.mean() if reduction == 1 else loss.sum()


def _signs(make: Maker, shape: tuple[int, ...]) -> Any:
    return np.where(make.mask(shape), 1, -1).astype(make(()).dtype)


# Samples of targets that hold a sign take no gradient: finite differences would leave 1 and -1.
@samples("hinge_embedding_loss")
def hinge_embedding_loss(make: Maker) -> Iterator[Sample]:
    def expect(x: Any, y: Any, margin: float = 1.0, r: int = 1) -> Any:
        return _reduced(np.where(y == 1, x, np.maximum(0, margin - x)), r)

    for r in (0, 1, 2):
        target = np.where(make.mask((3, 4)), 1, -1)
        yield Sample(make((3, 4)), target, 0.7, r, expect=expect, loose=4)


@samples("margin_ranking_loss")
def margin_ranking_loss(make: Maker) -> Iterator[Sample]:
    def expect(a: Any, b: Any, y: Any, margin: float = 0.0, r: int = 1) -> Any:
        return _reduced(np.maximum(0, -y * (a - b) + margin), r)

    for r in (0, 1, 2):
        yield Sample(make((5,)), make((5,)), _signs(make, (5,)), 0.3, r, expect=expect, loose=4)


@samples("cosine_embedding_loss")
def cosine_embedding_loss(make: Maker) -> Iterator[Sample]:
    def expect(a: Any, b: Any, y: Any, margin: float = 0.0, r: int = 1) -> Any:
        c = (a * b).sum(-1) / np.sqrt(((a * a).sum(-1) + 1e-12) * ((b * b).sum(-1) + 1e-12))
        return _reduced(np.where(y == 1, 1 - c, np.maximum(0, c - margin)), r)

    for r in (0, 1, 2):
        target = np.where(make.mask((4,)), 1, -1)
        yield Sample(make((4, 3)), make((4, 3)), target, 0.1, r, expect=expect, loose=8)
    yield Sample(
        make((3,)), make((3,)), np.int64(1) * np.ones((), np.int64), expect=expect, loose=8
    )


@samples("triplet_margin_loss")
def triplet_margin_loss(make: Maker) -> Iterator[Sample]:
    def expect(
        a: Any,
        p: Any,
        n: Any,
        margin: float = 1.0,
        q: float = 2,
        eps: float = 1e-6,
        swap: bool = False,
        r: int = 1,
    ) -> Any:
        d = lambda x, y: (np.abs(x + eps - y) ** q).sum(-1) ** (1 / q)
        far = np.minimum(d(a, n), d(p, n)) if swap else d(a, n)
        return _reduced(np.maximum(0, d(a, p) - far + margin), r)

    for q, swap, r in ((2.0, False, 1), (1.0, False, 0), (3.0, True, 2)):
        yield Sample(
            make((4, 3)), make((4, 3)), make((4, 3)), 1.0, q, 1e-6, swap, r, expect=expect, loose=8
        )


@samples("poisson_nll_loss")
def poisson_nll_loss(make: Maker) -> Iterator[Sample]:
    def expect(x: Any, y: Any, log: bool, full: bool, eps: float, r: int) -> Any:
        x, y = np.float64(x), np.float64(y)
        loss = np.exp(x) - y * x if log else x - y * np.log(x + eps)
        if full:
            safe = np.maximum(y, 1)
            stirling = safe * np.log(safe) - safe + 0.5 * np.log(2 * np.pi * safe)
            loss = loss + np.where(y > 1, stirling, 0)
        return _reduced(loss, r)

    for log, full, r in ((True, False, 1), (False, True, 0), (True, True, 2)):
        yield Sample(
            make((3, 4), 0.5, 2), make((3, 4), 0.2, 4), log, full, 1e-8, r, expect=expect, loose=8
        )


@samples("soft_margin_loss")
def soft_margin_loss(make: Maker) -> Iterator[Sample]:
    for r in (0, 1, 2):
        yield Sample(
            make((3, 4)),
            _signs(make, (3, 4)),
            r,
            expect=lambda x, y, r: _reduced(np.log1p(np.exp(-x * y)), r),
            loose=8,
        )


@samples("multi_margin_loss")
def multi_margin_loss(make: Maker) -> Iterator[Sample]:
    def expect(x: Any, y: Any, p: int = 1, m: float = 1, w: Any = None, r: int = 1) -> Any:
        rows, labels = np.atleast_2d(x), np.atleast_1d(y)
        n = np.arange(len(rows))
        loss = np.maximum(0, m - rows[n, labels][:, None] + rows) ** p
        if w is not None:
            loss = loss * w[labels][:, None]
        loss[n, labels] = 0
        loss = loss.sum(1) / rows.shape[1]
        return _reduced(loss[0] if x.ndim == 1 else loss, r)

    for r in (0, 1, 2):
        yield Sample(make((4, 3)), make.index((4,), 3), 1, 1.0, None, r, expect=expect, loose=8)
    yield Sample(make((4, 3)), make.index((4,), 3), 2, 0.5, make((3,)), 1, expect=expect, loose=8)
    yield Sample(make((3,)), make.index((), 3), 1, 1.0, None, 0, expect=expect, loose=8)


@samples("multilabel_margin_loss")
def multilabel_margin_loss(make: Maker) -> Iterator[Sample]:
    def expect(x: Any, y: Any, r: int = 1) -> Any:
        rows, targets = np.atleast_2d(x), np.atleast_2d(y)
        out = np.zeros(len(rows))
        for n, (row, target) in enumerate(zip(rows, targets)):
            labels = list(itertools.takewhile(lambda t: t >= 0, target))
            for label in labels:
                for c in range(len(row)):
                    if c not in labels:
                        out[n] += max(0, 1 - (row[label] - row[c]))
        out = out / rows.shape[1]
        return _reduced(out[0] if x.ndim == 1 else out, r)

    target = np.array([[1, 3, -1, 2], [0, -1, -1, -1], [-1, 0, 1, 2]], dtype=np.int64)
    for r in (0, 1, 2):
        yield Sample(make((3, 4)), target, r, expect=expect, loose=8)
    yield Sample(make((4,)), target[0], 0, expect=expect, loose=8)


def _ctc(log_p: Any, target: list, blank: int) -> float:
    """Minus the log of the summed probability of every path of frames that spells the target."""
    frames, classes = log_p.shape
    total = 0.0
    for path in itertools.product(range(classes), repeat=frames):
        spelled = [c for c, _ in itertools.groupby(path) if c != blank]
        if spelled == list(target):
            total += np.exp(sum(log_p[t, c] for t, c in enumerate(path)))
    return float(-np.log(total))


def _ctc_samples(make: Maker, tensors: bool) -> Iterator[Sample]:
    def expect(
        x: Any, y: Any, xs: Any, ys: Any, blank: int = 0, r: int = 1, zero: bool = False
    ) -> Any:
        single = x.ndim == 2
        x = x[:, None] if single else x
        losses, first = [], 0
        for n in range(x.shape[1]):
            target = y[n, : ys[n]] if y.ndim == 2 else y[first : first + ys[n]]
            first += ys[n]
            losses.append(_ctc(x[: xs[n], n], list(target), blank))
        loss = np.array(losses)
        if zero:
            loss = np.where(np.isinf(loss), 0, loss)
        if r == 1:
            return (loss / np.maximum(1, ys)).mean()
        return _reduced(loss[0] if single and r == 0 else loss, r)

    def lengths(*values: int) -> Any:
        return np.array(values, dtype=np.int64) if tensors else list(values)

    x = make((4, 2, 3), -3, 0)
    rows = np.array([[1, 2], [2, 2]], dtype=np.int64)
    for r in (0, 1, 2):
        yield Sample(x, rows, lengths(4, 4), lengths(2, 1), 0, r, expect=expect, loose=8)
    yield Sample(x, rows, lengths(4, 3), lengths(2, 2), 0, 0, expect=expect, loose=8)
    yield Sample(
        x,
        np.array([1, 0, 1], dtype=np.int64),
        lengths(3, 4),
        lengths(1, 2),
        2,
        0,
        expect=expect,
        loose=8,
    )
    yield Sample(x, rows, lengths(1, 4), lengths(2, 0), 0, 0, True, expect=expect, loose=8)
    yield Sample(x, rows, lengths(1, 4), lengths(2, 2), 0, 0, expect=expect, loose=8, grad=False)
    yield Sample(
        make((3, 3), -3, 0),
        np.array([1, 2], dtype=np.int64),
        lengths(3),
        lengths(2),
        0,
        0,
        expect=expect,
        loose=8,
    )


@samples("ctc_loss.IntList")
def ctc_loss_lists(make: Maker) -> Iterator[Sample]:
    yield from _ctc_samples(make, False)


@samples("ctc_loss.Tensor")
def ctc_loss_tensors(make: Maker) -> Iterator[Sample]:
    yield from _ctc_samples(make, True)
