"""Cases: losses, each trained on its own value."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any

import numpy as np

from .case import Case, Fixed, given, integers, normal, positive

CLASSES = integers(4, 3)
SCORES, NUMBERS = normal(3, 4), Fixed(normal(3, 4))
SIGNS = given(np.array([1, -1, 1]))
ZEROS_AND_ONES = Fixed(lambda rng: (rng.uniform(size=(3, 4)) > 0.5).astype(np.float64))
SHARES = Fixed(lambda rng: rng.dirichlet(np.ones(4), size=3))


def _loss(label: str, *inputs: Any, call: Any = None, **words: Any) -> Case:
    """`label` is the class and a word."""
    name = label.split()[0]
    return Case(label, lambda nn: getattr(nn, name)(**words), *inputs, call=call, lr=0.3)


def _weighted(label: str, weights: list[float], *inputs: Any, **words: Any) -> Case:
    """With a `weight` of each class."""
    name = label.split()[0]

    def build(nn: Any) -> Any:
        like = nn.Linear(1, 1).weight.detach()
        return getattr(nn, name)(weight=like.new_tensor(weights), **words)

    return Case(label, build, *inputs, lr=0.3)


def _squashed(module: Any, nn: Any, x: Any, target: Any) -> Any:
    return module(x.sigmoid(), target)


def _log_shares(module: Any, nn: Any, x: Any, target: Any) -> Any:
    return module(x.log_softmax(-1), target)


WEIGHTS = [0.5, 2.0, 1.0, 0.1]

LOSSES = [
    Case(
        "AdaptiveLogSoftmaxWithLoss",
        lambda nn: nn.AdaptiveLogSoftmaxWithLoss(4, 9, [3, 6], div_value=2.0, head_bias=True),
        normal(6, 4),
        given(np.array([0, 8, 4, 2, 7, 5])),
        call=lambda module, nn, *inputs: module(*inputs).loss,
        lr=0.3,
    ),
    Case(
        "AdaptiveLogSoftmaxWithLoss of all classes",
        lambda nn: nn.AdaptiveLogSoftmaxWithLoss(5, 7, [2, 4], div_value=2),
        normal(3, 5),
        call=lambda module, nn, x: module.log_prob(x),
    ),
    Case(
        "AdaptiveLogSoftmaxWithLoss without a batch",
        lambda nn: nn.AdaptiveLogSoftmaxWithLoss(4, 5, [2]),
        normal(4),
        given(np.array(3)),
        lr=0.3,
    ),
    _loss("BCELoss", SCORES, ZEROS_AND_ONES, call=_squashed),
    _loss("BCEWithLogitsLoss", SCORES, ZEROS_AND_ONES),
    _loss("BCEWithLogitsLoss from zero", given(np.zeros((3, 4))), ZEROS_AND_ONES),
    _weighted("BCEWithLogitsLoss weighted", WEIGHTS, SCORES, ZEROS_AND_ONES, reduction="sum"),
    _loss(
        "CTCLoss",
        normal(6, 2, 4),
        given(np.array([[1, 2, 2], [3, 1, 0]])),
        given(np.array([6, 5])),
        given(np.array([3, 2])),
        call=lambda module, nn, x, *rest: module(x.log_softmax(-1), *rest),
        zero_infinity=True,
    ),
    _loss("CosineEmbeddingLoss", normal(3, 4), normal(3, 4), SIGNS, margin=0.1),
    _loss("CrossEntropyLoss", SCORES, CLASSES),
    _loss("CrossEntropyLoss smoothed", SCORES, CLASSES, label_smoothing=0.2),
    _loss("CrossEntropyLoss of shares", SCORES, SHARES),
    _loss("CrossEntropyLoss of images", normal(2, 4, 2, 3), integers(4, 2, 2, 3), ignore_index=1),
    _weighted("CrossEntropyLoss weighted", WEIGHTS, SCORES, CLASSES),
    _loss("GaussianNLLLoss", SCORES, NUMBERS, positive(3, 4), full=True),
    _loss("HingeEmbeddingLoss", normal(3), SIGNS, margin=0.7),
    _loss("HuberLoss", SCORES, NUMBERS, delta=0.6),
    _loss("KLDivLoss", SCORES, SHARES, call=_log_shares, reduction="batchmean"),
    _loss("L1Loss", SCORES, NUMBERS),
    _loss("MSELoss", SCORES, NUMBERS),
    _loss("MSELoss sum", SCORES, NUMBERS, reduction="sum"),
    _loss("MarginRankingLoss", normal(3), normal(3), SIGNS, margin=0.4),
    _loss(
        "MultiLabelMarginLoss",
        SCORES,
        given(np.array([[2, 0, -1, 1], [3, -1, 0, 0], [1, 2, 3, -1]])),
    ),
    _loss("MultiLabelSoftMarginLoss", SCORES, ZEROS_AND_ONES),
    _loss("MultiMarginLoss", SCORES, CLASSES, p=2, margin=0.8),
    _loss("NLLLoss", SCORES, CLASSES, call=_log_shares),
    _weighted("NLLLoss weighted", WEIGHTS, SCORES, CLASSES),
    _loss("PoissonNLLLoss", SCORES, Fixed(positive(3, 4)), full=True),
    _loss("SmoothL1Loss", SCORES, NUMBERS, beta=0.7),
    _loss("SoftMarginLoss", normal(3), Fixed(given(np.array([1.0, -1.0, 1.0])))),
    _loss("TripletMarginLoss", normal(3, 4), normal(3, 4), normal(3, 4), p=2, swap=True),
    _loss("TripletMarginWithDistanceLoss", normal(3, 4), normal(3, 4), normal(3, 4), margin=2.0),
]
