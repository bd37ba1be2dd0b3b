"""Samples of the steps of optimisers over lists of parameters. Compared are the tensors they write:
parameters, gradients (where a scaled loss has them divided) and state.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Iterator

import numpy as np

from ..sample import Maker, Sample, samples

SHAPES = ((3, 4), (5,), (), (2, 0))


def _lists(make: Maker, state: int, squares: int = 0) -> list[list[np.ndarray]]:
    """Parameters, gradients, and lists of state, of which the last ones hold no negative values."""
    signed = [[make(shape) for shape in SHAPES] for _ in range(2 + state - squares)]
    return signed + [[make(shape, 0.1, 2.0) for shape in SHAPES] for _ in range(squares)]


def _one(value: float) -> np.ndarray:
    return np.asarray(value, dtype=np.float64)


def _steps(*counts: float) -> list[np.ndarray]:
    return [_one(count) for count in counts]


def _gradients(
    params: Any, grads: Any, weight_decay: float, maximize: bool, grad_scale: Any
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The gradients as they are written, and as the algorithm sees them."""
    written = [grad / (1 if grad_scale is None else grad_scale) for grad in grads]
    sign = -1 if maximize else 1
    return written, [sign * grad + weight_decay * p for p, grad in zip(params, written)]


def _single(value: float) -> np.ndarray:
    return np.asarray(value, dtype=np.float32)


@samples("_amp_foreach_non_finite_check_and_unscale_")
def unscale(make: Maker) -> Iterator[Sample]:
    def expect(tensors: Any, found: Any, inverse: Any) -> list[np.ndarray]:
        infinite = not all(np.isfinite(t).all() for t in tensors)
        return [*(t * inverse for t in tensors), np.asarray(1.0) if infinite else found]

    for spoilt in (None, np.inf, np.nan):
        tensors = [make(shape) for shape in SHAPES]
        if spoilt is not None:
            tensors[1][2] = spoilt
        for found in (0.0, 1.0):
            yield Sample(tensors, _single(found), _single(0.25), expect=expect)


@samples("_amp_update_scale_")
def update_scale(make: Maker) -> Iterator[Sample]:
    def expect(
        scale: Any, steps: Any, found: Any, growth: float, backoff: float, interval: int
    ) -> np.ndarray:
        if found:
            return scale * backoff
        return scale * growth if steps + 1 == interval else scale

    for steps, found in ((0, 0.0), (1, 0.0), (1, 1.0)):
        tracker = np.asarray(steps, dtype=np.int32)
        yield Sample(_single(8.0), tracker, _single(found), 2.0, 0.5, 2, expect=expect)


def _sgd(
    params: Any, grads: Any, velocities: Any, *, weight_decay: float, momentum: float, lr: float,
    dampening: float, nesterov: bool, maximize: bool, is_first_step: bool, grad_scale: Any = None,
    found_inf: Any = None,
) -> list[np.ndarray]:  # fmt: skip
    if found_inf:
        return [*params, *grads, *velocities]
    written, used = _gradients(params, grads, weight_decay, maximize, grad_scale)
    if momentum:
        moved = [
            g if is_first_step else momentum * v + (1 - dampening) * g
            for g, v in zip(used, velocities)
        ]
        used = [g + momentum * v for g, v in zip(used, moved)] if nesterov else moved
        velocities = moved
    return [*(p - lr * g for p, g in zip(params, used)), *written, *velocities]


@samples("_fused_sgd_")
def fused_sgd(make: Maker) -> Iterator[Sample]:
    params, grads, velocities = _lists(make, 1)
    plain = dict(
        weight_decay=0.0, momentum=0.0, lr=0.1, dampening=0.0, nesterov=False, maximize=False,
        is_first_step=False,
    )  # fmt: skip
    yield Sample(params, grads, [], **plain, expect=_sgd)
    for changed in (
        {"momentum": 0.9},
        {"momentum": 0.9, "is_first_step": True},
        {"momentum": 0.5, "dampening": 0.25, "weight_decay": 0.1},
        {"momentum": 0.5, "nesterov": True, "maximize": True},
        {"momentum": 0.5, "grad_scale": _one(4.0), "found_inf": _one(0.0)},
        {"found_inf": _one(1.0), "momentum": 0.5},
    ):
        yield Sample(params, grads, velocities, **{**plain, **changed}, expect=_sgd)


def _adam(
    params: Any, grads: Any, means: Any, squares: Any, largest: Any, steps: Any, *, lr: float,
    beta1: float, beta2: float, weight_decay: float, eps: float, amsgrad: bool, maximize: bool,
    grad_scale: Any = None, found_inf: Any = None, decoupled: bool = False,
) -> list[np.ndarray]:  # fmt: skip
    if found_inf:
        return [*params, *grads, *means, *squares, *largest]
    if decoupled:
        params = [p * (1 - lr * weight_decay) for p in params]
        weight_decay = 0
    written, used = _gradients(params, grads, weight_decay, maximize, grad_scale)
    means = [beta1 * m + (1 - beta1) * g for m, g in zip(means, used)]
    squares = [beta2 * s + (1 - beta2) * g * g for s, g in zip(squares, used)]
    if amsgrad:
        largest = [np.maximum(a, s) for a, s in zip(largest, squares)]
    scales = [
        np.sqrt(s) / np.sqrt(1 - beta2**t) + eps
        for s, t in zip(largest if amsgrad else squares, steps)
    ]
    params = [
        p - lr / (1 - beta1**t) * m / scale for p, m, scale, t in zip(params, means, scales, steps)
    ]
    return [*params, *written, *means, *squares, *largest]


def _adam_samples(make: Maker, decoupled: bool) -> Iterator[Sample]:
    def expect(*args: Any, **kwargs: Any) -> list[np.ndarray]:
        return _adam(*args, **kwargs, decoupled=decoupled)

    params, grads, means, squares, largest = _lists(make, 3, squares=2)
    steps = _steps(1.0, 1.0, 7.0, 2.0)
    plain = dict(
        lr=0.1, beta1=0.9, beta2=0.99, weight_decay=0.0, eps=1e-3, amsgrad=False, maximize=False
    )
    yield Sample(params, grads, means, squares, [], steps, **plain, expect=expect)
    for changed in (
        {"weight_decay": 0.1, "amsgrad": True},
        {"maximize": True, "weight_decay": 0.1, "grad_scale": _one(2.0)},
        {"found_inf": _one(1.0), "grad_scale": _one(2.0)},
    ):
        settings = {**plain, **changed}
        yield Sample(params, grads, means, squares, largest, steps, **settings, expect=expect)


@samples("_fused_adam_")
def fused_adam(make: Maker) -> Iterator[Sample]:
    yield from _adam_samples(make, decoupled=False)


@samples("_fused_adamw_")
def fused_adamw(make: Maker) -> Iterator[Sample]:
    yield from _adam_samples(make, decoupled=True)


def _adagrad(
    params: Any, grads: Any, sums: Any, steps: Any, *, lr: float, lr_decay: float,
    weight_decay: float, eps: float, maximize: bool, grad_scale: Any = None, found_inf: Any = None,
) -> list[np.ndarray]:  # fmt: skip
    if found_inf:
        return [*params, *grads, *sums]
    written, used = _gradients(params, grads, weight_decay, maximize, grad_scale)
    sums = [s + g * g for s, g in zip(sums, used)]
    params = [
        p - lr / (1 + (t - 1) * lr_decay) * g / (np.sqrt(s) + eps)
        for p, g, s, t in zip(params, used, sums, steps)
    ]
    return [*params, *written, *sums]


@samples("_fused_adagrad_")
def fused_adagrad(make: Maker) -> Iterator[Sample]:
    params, grads, sums = _lists(make, 1, squares=1)
    steps = _steps(1.0, 3.0, 3.0, 2.0)
    plain = dict(lr=0.1, lr_decay=0.0, weight_decay=0.0, eps=1e-3, maximize=False)
    for changed in (
        {},
        {"lr_decay": 0.5, "weight_decay": 0.1},
        {"maximize": True, "grad_scale": _one(2.0), "found_inf": _one(0.0)},
        {"found_inf": _one(1.0)},
    ):
        yield Sample(params, grads, sums, steps, **{**plain, **changed}, expect=_adagrad)
