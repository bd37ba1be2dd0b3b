"""Losses and distances, layers and functions, against NumPy in float64."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
import math
from typing import Any, Callable

import numpy as np
import pytest
from nn_arrays import array, check, normal, reduced, sigmoid, softmax, to_numpy

import treadle
import treadle.nn.functional as F
from treadle import nn, tensor


@pytest.mark.parametrize("how", ["none", "mean", "sum"])
def test_elementwise_losses(how):
    x, t = array(3, 4), array(3, 4)
    p, y = sigmoid(x), (t > 0).astype(float)
    check(nn.MSELoss(reduction=how)(tensor(x), tensor(t)), reduced((x - t) ** 2, how))
    check(nn.L1Loss(reduction=how)(tensor(x), tensor(t)), reduced(np.abs(x - t), how))
    entropy = -(y * np.log(p) + (1 - y) * np.log(1 - p))
    check(nn.BCELoss(reduction=how)(tensor(p), tensor(y)), reduced(entropy, how))
    check(nn.BCEWithLogitsLoss(reduction=how)(tensor(x), tensor(y)), reduced(entropy, how))
    positive = nn.BCEWithLogitsLoss(reduction=how, pos_weight=tensor([1.0, 2.0, 3.0, 4.0]).double())
    weighted = -(y * np.log(p) * np.array([1, 2, 3, 4]) + (1 - y) * np.log(1 - p))
    check(positive(tensor(x), tensor(y)), reduced(weighted, how))


@pytest.mark.parametrize("how", ["none", "mean", "sum"])
def test_losses_with_a_linear_part(how):
    x, t = array(3, 4) * 2, array(3, 4)
    d = np.abs(x - t)
    smooth = np.where(d < 0.5, d**2, d - 0.25)
    check(nn.SmoothL1Loss(reduction=how, beta=0.5)(tensor(x), tensor(t)), reduced(smooth, how))
    huber = np.where(d < 0.5, 0.5 * d**2, 0.5 * (d - 0.25))
    check(nn.HuberLoss(how, delta=0.5)(tensor(x), tensor(t)), reduced(huber, how))


def test_divergence():
    log_q, p = np.log(softmax(array(3, 4), 1)), softmax(array(3, 4), 1)
    values = p * (np.log(p) - log_q)
    check(nn.KLDivLoss(reduction="batchmean")(tensor(log_q), tensor(p)), values.sum() / 3)
    logs = nn.KLDivLoss(reduction="sum", log_target=True)
    check(logs(tensor(log_q), tensor(np.log(p))), values.sum())


def test_weighted_elements():
    x, t, w = array(3, 4), array(3, 4), np.abs(array(3, 4))
    check(F.mse_loss(tensor(x), tensor(t), weight=tensor(w)), (w * (x - t) ** 2).sum() / w.sum())
    check(
        F.l1_loss(tensor(x), tensor(t), weight=tensor(w), reduction="sum"), (w * abs(x - t)).sum()
    )


def test_logits_loss_does_not_overflow():
    x = tensor([1000.0, -1000.0], requires_grad=True)
    loss = F.binary_cross_entropy_with_logits(x, tensor([0.0, 1.0]))
    assert loss.item() == 1000.0
    loss.backward()
    assert x.grad.tolist() == [0.5, -0.5]


def test_logits_loss_has_the_dtype_of_its_target():
    x = tensor([0.5, -1.0], dtype=treadle.float64, requires_grad=True)
    labels = tensor([0.0, 1.0])
    heavy = tensor([2.0, 3.0], dtype=treadle.float64)
    for options in ({}, {"weight": heavy}, {"pos_weight": heavy}, {"reduction": "none"}):
        loss = F.binary_cross_entropy_with_logits(x, labels, **options)
        assert loss.dtype == treadle.float32
        (gradient,) = treadle.autograd.grad(loss.sum(), [x])
        assert gradient.dtype == treadle.float64
    assert F.binary_cross_entropy_with_logits(labels, x.detach()).dtype == treadle.float64
    assert F.binary_cross_entropy_with_logits(x, labels.long()).dtype == treadle.float64


def test_bce_at_its_bounds():
    p = tensor([0.0, 1.0], requires_grad=True)
    loss = F.binary_cross_entropy(p, tensor([1.0, 1.0]), reduction="sum")
    assert loss.item() == 100.0
    loss.backward()
    assert all(math.isfinite(value) for value in p.grad.tolist())
    with pytest.raises(RuntimeError, match="between 0 and 1"):
        F.binary_cross_entropy(tensor([1.5]), tensor([1.0]))


@pytest.mark.parametrize("how", ["none", "mean", "sum"])
@pytest.mark.parametrize("weighted", [False, True])
def test_cross_entropy(how, weighted):
    x, classes = array(6, 4), np.array([0, 3, 1, -100, 2, 1])
    weight = np.array([1.0, 2.0, 0.5, 3.0]) if weighted else np.ones(4)
    used = classes != -100
    scale = np.where(used, weight[np.where(used, classes, 0)], 0.0)
    values = -np.log(softmax(x, 1))[np.arange(6), np.where(used, classes, 0)] * scale
    expected = values.sum() / scale.sum() if how == "mean" else reduced(values, how)
    given = tensor(weight) if weighted else None
    check(nn.CrossEntropyLoss(given, reduction=how)(tensor(x), tensor(classes)), expected)
    log = F.log_softmax(tensor(x), 1)
    check(nn.NLLLoss(given, reduction=how)(log, tensor(classes)), expected)


def test_cross_entropy_of_probabilities_and_smoothing():
    x, p = array(5, 4), softmax(array(5, 4), 1)
    log = np.log(softmax(x, 1))
    check(nn.CrossEntropyLoss()(tensor(x), tensor(p)), -(p * log).sum(1).mean())
    classes = np.array([0, 3, 1, 2, 1])
    smooth = np.eye(4)[classes] * 0.9 + 0.1 / 4
    loss = nn.CrossEntropyLoss(label_smoothing=0.1)
    check(loss(tensor(x), tensor(classes)), -(smooth * log).sum(1).mean())


def test_loss_errors():
    with pytest.raises(ValueError, match="most is not a valid value for reduction"):
        F.mse_loss(treadle.zeros(2), treadle.zeros(2), reduction="most")
    with pytest.warns(UserWarning, match="different to the input size"):
        F.mse_loss(treadle.zeros((2, 1)), treadle.zeros((1, 2)))
    with pytest.raises(ValueError, match="target of the input's size"):
        F.binary_cross_entropy(treadle.zeros(2), treadle.zeros(3))


LOSSES: list[tuple[nn.Module, Callable[..., Any], str]] = [
    (nn.PoissonNLLLoss(), lambda x, y: np.exp(x) - y * x, "x y"),
    (
        nn.GaussianNLLLoss(full=True),
        lambda x, y, v: 0.5 * (np.log(v) + (x - y) ** 2 / v + math.log(2 * math.pi)),
        "x y v",
    ),
    (nn.SoftMarginLoss(), lambda x, s: np.log1p(np.exp(-s * x)), "x s"),
    (
        nn.MultiLabelSoftMarginLoss(),
        lambda x, p: -(p * np.log(sigmoid(x)) + (1 - p) * np.log(sigmoid(-x))).mean(-1),
        "x p",
    ),
    (nn.MarginRankingLoss(0.2), lambda x, y, s: np.maximum(0, -s * (x - y) + 0.2), "x y s"),
    (
        nn.HingeEmbeddingLoss(0.5),
        lambda x, s: np.where(s == 1, x, np.maximum(0, 0.5 - x)),
        "x s",
    ),
    (
        nn.TripletMarginLoss(0.7),
        lambda x, y, z: np.maximum(
            0,
            np.linalg.norm(x - y + 1e-6, axis=-1) - np.linalg.norm(x - z + 1e-6, axis=-1) + 0.7,
        ),
        "x y z",
    ),
    (
        nn.TripletMarginWithDistanceLoss(distance_function=lambda a, b: (a - b).abs().sum(-1)),
        lambda x, y, z: np.maximum(0, abs(x - y).sum(-1) - abs(x - z).sum(-1) + 1),
        "x y z",
    ),
]


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("layer, want, names", LOSSES, ids=lambda v: type(v).__name__)
def test_loss(layer: nn.Module, want: Callable, names: str, reduction: str) -> None:
    treadle.manual_seed(0)
    given = {
        "x": normal(4, 3),
        "y": normal(4, 3),
        "z": normal(4, 3),
        "v": normal(4, 3).abs() + 0.1,
        "p": treadle.rand(4, 3, dtype=treadle.float64),
        "s": treadle.where(normal(4, 3) > 0, 1.0, -1.0).to(treadle.float64),
    }
    arguments = [given[n] for n in names.split()]
    layer = copy.deepcopy(layer)
    layer.reduction = reduction
    value = want(*map(to_numpy, arguments))
    value = value if reduction == "none" else value.mean() if reduction == "mean" else value.sum()
    np.testing.assert_allclose(to_numpy(layer(*arguments)), value, rtol=1e-8)


def test_losses_of_classes_and_sequences() -> None:
    x = normal(4, 3).requires_grad_()
    target = treadle.tensor([0, 2, 1, 1])
    assert nn.MultiMarginLoss(p=2)(x, target).item() == pytest.approx(
        F.multi_margin_loss(x, target, p=2).item()
    )
    labels = treadle.tensor([[2, 0, -1], [1, -1, 0], [-1, 1, 2], [0, 1, 2]])
    nn.MultiLabelMarginLoss()(x, labels).backward()
    assert bool((x.grad[2:] == 0).all()) and bool((x.grad[1] != 0).any())
    log_probs = F.log_softmax(normal(6, 2, 5), -1).detach().requires_grad_()
    ctc = nn.CTCLoss(blank=4)
    tensors = ctc(
        log_probs, treadle.tensor([[1, 2], [3, 3]]), treadle.tensor([6, 5]), treadle.tensor([2, 2])
    )
    lists = ctc(log_probs, treadle.tensor([1, 2, 3, 3]), (6, 5), (2, 2))
    treadle.testing.assert_close(tensors, lists)
    assert treadle.autograd.gradcheck(
        lambda p: ctc(p, treadle.tensor([1, 2, 3, 3]), (6, 5), (2, 2)), (log_probs,)
    )
    loss = nn.CTCLoss(reduction="none", zero_infinity=True)
    result = loss(log_probs, treadle.tensor([[1, 1, 1, 1], [2, 2, 2, 2]]), (6, 6), (4, 2))
    assert result[0].item() == 0 and result[1].item() > 0
    for arguments in [
        (log_probs, treadle.tensor([[1], [5]]), (6, 6), (1, 1)),
        (log_probs, treadle.tensor([[1], [-1]]), (6, 6), (1, 1)),
    ]:
        with pytest.raises(IndexError, match="ctc_loss: expected targets in"):
            ctc(*arguments)
    for lengths in [((7, 6), (1, 1)), ((6, -1), (1, 1)), ((6, 6), (2, 1)), ((6,), (1, 1))]:
        with pytest.raises(RuntimeError, match="ctc_loss: expected"):
            ctc(log_probs, treadle.tensor([[1], [2]]), *lengths)


def test_cosine_losses_and_distances() -> None:
    x, y = normal(4, 3), normal(4, 3)
    a, b = to_numpy(x), to_numpy(y)
    cosine = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    np.testing.assert_allclose(to_numpy(nn.CosineSimilarity()(x, y)), cosine, rtol=1e-8)
    sign = treadle.tensor([1, -1, 1, -1])
    want = np.where(sign.numpy() == 1, 1 - cosine, np.maximum(0, cosine - 0.1))
    np.testing.assert_allclose(
        to_numpy(nn.CosineEmbeddingLoss(0.1, reduction="none")(x, y, sign)), want, rtol=1e-8
    )
    np.testing.assert_allclose(
        to_numpy(nn.PairwiseDistance()(x, y)), np.linalg.norm(a - b + 1e-6, axis=1), rtol=1e-8
    )


def test_one_hot():
    assert F.one_hot(treadle.tensor([0, 2])).tolist() == [[1, 0, 0], [0, 0, 1]]
    assert F.one_hot(treadle.tensor([[1]]), 3).tolist() == [[[0, 1, 0]]]
    with pytest.raises(RuntimeError, match="classes < num_classes = 2, got 2"):
        F.one_hot(treadle.tensor([0, 2]), 2)
    x = array(3, 4)
    check(F.normalize(tensor(x)), x / np.linalg.norm(x, axis=1, keepdims=True))


def test_adaptive_softmax() -> None:
    layer = nn.AdaptiveLogSoftmaxWithLoss(6, 9, [2, 5], div_value=2.0, dtype=treadle.float64)
    assert [tuple(p.shape) for p in layer.parameters()] == [(4, 6), (3, 6), (3, 3), (1, 6), (4, 1)]
    x, target = normal(40, 6) * 4, treadle.arange(40) % 9
    shares = layer.log_prob(x)
    np.testing.assert_allclose(to_numpy(shares.exp().sum(1)), 1, rtol=1e-12)
    result = layer(x, target)
    want = to_numpy(shares)[np.arange(40), target.numpy()]
    np.testing.assert_allclose(to_numpy(result.output), want, rtol=1e-12)
    np.testing.assert_allclose(result.loss.item(), -want.mean(), rtol=1e-12)
    alone = layer(x[3], target[3])
    assert alone.output.shape == () and alone.output.item() == pytest.approx(want[3])

    # A frequent class where the head chooses one, else the likeliest of all.
    head = (x @ layer.head.weight.T).argmax(1)
    assert 0 < (head < 2).sum() < 40
    expected = treadle.where(head < 2, head, shares.argmax(1))
    assert layer.predict(x).tolist() == expected.tolist()
    frequent = x[head < 2]
    assert layer.predict(frequent).tolist() == head[head < 2].tolist()


@pytest.mark.parametrize("cutoffs", [[], [3, 2], [0, 4], [2, 2], [2, 9], [1.5]])
def test_adaptive_softmax_needs_rising_cutoffs(cutoffs: list[float]) -> None:
    with pytest.raises(ValueError, match="cutoffs should be a sequence of"):
        nn.AdaptiveLogSoftmaxWithLoss(6, 9, cutoffs)


def test_adaptive_softmax_refuses_what_does_not_fit() -> None:
    layer = nn.AdaptiveLogSoftmaxWithLoss(6, 9, [2, 5], div_value=2.0)
    x, target = treadle.ones(4, 6), treadle.zeros(4, dtype=treadle.int64)
    for input, classes, words in [
        (x, target + 9, r"in \[0, 8\], but values in range \[9, 9\]"),
        (x, target - 1, r"in \[0, 8\], but values in range \[-1, -1\]"),
        (x[:3], target, "same size in the batch dimension"),
        (x.unsqueeze(1), target, "1D target tensor expects 2D input tensors"),
        (x, target[0], "0D target tensor expects 1D input tensors"),
        (x, target.unsqueeze(0), "multi-target not supported"),
    ]:
        with pytest.raises(RuntimeError, match=words):
            layer(input, classes)
