"""Normalisation, activation, dropout, embedding_bag and loss layers, and what nn.utils does to
weights, against NumPy in float64."""

from __future__ import annotations

import copy
import math
from typing import Any, Callable

import numpy as np
import pytest
import treadle as torch
import treadle.nn.functional as F
from treadle import nn
from treadle.nn.utils import parametrizations, parametrize


def _random(*shape: int) -> torch.Tensor:
    return torch.randn(shape, dtype=torch.float64)


def _numpy(t: torch.Tensor) -> np.ndarray:
    return t.detach().numpy()


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


ACTIVATIONS: list[tuple[nn.Module, Callable[[Any], Any], str]] = [
    (nn.Threshold(0.1, 20.0), lambda x: np.where(x > 0.1, x, 20.0), "Threshold(threshold=0.1, value=20.0)"),
    (nn.Hardtanh(-2.0, 0.5), lambda x: np.clip(x, -2, 0.5), "Hardtanh(min_val=-2.0, max_val=0.5)"),
    (nn.ReLU6(), lambda x: np.clip(x, 0, 6), "ReLU6()"),
    (nn.ELU(0.7), lambda x: np.where(x > 0, x, 0.7 * np.expm1(x)), "ELU(alpha=0.7)"),
    (nn.CELU(0.7), lambda x: np.where(x > 0, x, 0.7 * np.expm1(x / 0.7)), "CELU(alpha=0.7)"),
    (
        nn.SELU(),
        lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)),
        "SELU()",
    ),
    (nn.PReLU(), lambda x: np.where(x > 0, x, 0.25 * x), "PReLU(num_parameters=1)"),
    (
        nn.RReLU(0.1, 0.3).eval(),
        lambda x: np.where(x > 0, x, 0.2 * x),
        "RReLU(lower=0.1, upper=0.3)",
    ),
    (nn.GLU(), lambda x: x[..., :2] * _sigmoid(x[..., 2:]), "GLU(dim=-1)"),
    (nn.LogSigmoid(), lambda x: np.log(_sigmoid(x)), "LogSigmoid()"),
    (nn.Hardshrink(), lambda x: np.where(abs(x) > 0.5, x, 0), "Hardshrink(0.5)"),
    (
        nn.Softshrink(0.3),
        lambda x: np.sign(x) * np.maximum(abs(x) - 0.3, 0),
        "Softshrink(0.3)",
    ),
    (nn.Tanhshrink(), lambda x: x - np.tanh(x), "Tanhshrink()"),
    (nn.Softsign(), lambda x: x / (1 + abs(x)), "Softsign()"),
    (
        nn.Softplus(2.0, 15.0),
        lambda x: np.log1p(np.exp(2 * x)) / 2,
        "Softplus(beta=2.0, threshold=15.0)",
    ),
    (nn.Hardsigmoid(), lambda x: np.clip(x / 6 + 0.5, 0, 1), "Hardsigmoid()"),
    (nn.Hardswish(), lambda x: x * np.clip(x / 6 + 0.5, 0, 1), "Hardswish()"),
    (nn.Mish(), lambda x: x * np.tanh(np.log1p(np.exp(x))), "Mish()"),
]


@pytest.mark.parametrize("layer, want, text", ACTIVATIONS, ids=lambda v: v if isinstance(v, str) else "")
def test_activation(layer: nn.Module, want: Callable, text: str) -> None:
    x = _random(5, 4) * 2
    layer = copy.deepcopy(layer).to(torch.float64)
    np.testing.assert_allclose(_numpy(layer(x)), want(_numpy(x)), rtol=1e-9, atol=1e-12)
    assert repr(layer) == text
    if hasattr(layer, "inplace"):
        layer.inplace = True
        y = x.clone()
        assert layer(y) is y
        np.testing.assert_allclose(_numpy(y), want(_numpy(x)), rtol=1e-9, atol=1e-12)


def test_softmax_over_channels_and_gumbel() -> None:
    x = _random(2, 3, 2, 2)
    torch.testing.assert_close(nn.Softmax2d()(x).sum(1), torch.ones(2, 2, 2, dtype=torch.float64))
    torch.manual_seed(0)
    logits = torch.tensor([[1.0, 2.0, 0.0]]).expand(4000, 3).clone().requires_grad_()
    hard = F.gumbel_softmax(logits, tau=0.5, hard=True)
    assert bool((hard.sum(1) == 1).all())
    share = hard.detach().mean(0).numpy()
    e = np.exp([1.0, 2.0, 0.0])
    np.testing.assert_allclose(share, e / e.sum(), atol=0.04)
    hard[:, 0].sum().backward()
    assert logits.grad.abs().sum().item() > 0


@pytest.mark.parametrize(
    "layer, shape, axes",
    [
        (nn.InstanceNorm1d(3), (2, 3, 5), (2,)),
        (nn.InstanceNorm2d(3), (2, 3, 4, 2), (2, 3)),
        (nn.InstanceNorm3d(3), (2, 3, 2, 2, 2), (2, 3, 4)),
        (nn.BatchNorm3d(3), (2, 3, 2, 2, 2), (0, 2, 3, 4)),
    ],
)
def test_instance_and_batch_norm(layer: nn.Module, shape: tuple, axes: tuple) -> None:
    x = _random(*shape)
    y = _numpy(layer.to(torch.float64)(x))
    a = _numpy(x)
    want = (a - a.mean(axes, keepdims=True)) / np.sqrt(a.var(axes, keepdims=True) + 1e-5)
    np.testing.assert_allclose(y, want, rtol=1e-8)
    with pytest.raises(ValueError, match="expected .*D input"):
        layer(x[0, 0, 0])
    if isinstance(layer, nn.BatchNorm3d):
        return
    torch.testing.assert_close(layer(x[0]), layer(x)[0])


def test_instance_norm_running_statistics() -> None:
    layer = nn.InstanceNorm1d(2, momentum=0.5, affine=True, track_running_stats=True)
    x = torch.randn(3, 2, 6)
    layer(x)
    a = x.numpy()
    np.testing.assert_allclose(layer.running_mean.numpy(), 0.5 * a.mean(2).mean(0), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(
        layer.running_var.numpy(), 0.5 + 0.5 * a.var(2, ddof=1).mean(0), rtol=1e-4
    )
    layer.eval()
    want = (x - layer.running_mean[:, None]) / (layer.running_var[:, None] + 1e-5).sqrt()
    torch.testing.assert_close(layer(x), want)
    assert repr(nn.InstanceNorm1d(2)) == (
        "InstanceNorm1d(2, eps=1e-05, momentum=0.1, affine=False, track_running_stats=False)"
    )
    with pytest.raises(ValueError, match="more than 1 spatial element"):
        F.instance_norm(torch.randn(2, 2, 1))


def test_group_and_rms_norm() -> None:
    layer = nn.GroupNorm(2, 4, dtype=torch.float64)
    nn.init.normal_(layer.weight)
    x = _random(3, 4, 5)
    rows = _numpy(x).reshape(3, 2, -1)
    y = (rows - rows.mean(2, keepdims=True)) / np.sqrt(rows.var(2, keepdims=True) + 1e-5)
    want = y.reshape(3, 4, 5) * _numpy(layer.weight)[:, None]
    np.testing.assert_allclose(_numpy(layer(x)), want, rtol=1e-8)
    assert repr(layer) == "GroupNorm(2, 4, eps=1e-05, affine=True)"
    with pytest.raises(ValueError, match="divisible"):
        nn.GroupNorm(3, 4)
    rms = nn.RMSNorm(5, eps=1e-3, dtype=torch.float64)
    a = _numpy(x)
    want = a / np.sqrt((a * a).mean(-1, keepdims=True) + 1e-3)
    np.testing.assert_allclose(_numpy(rms(x)), want, rtol=1e-9)
    assert repr(rms) == "RMSNorm((5,), eps=0.001, elementwise_affine=True)"
    assert list(rms.state_dict()) == ["weight"]


def test_sync_batch_norm_takes_the_place_of_others() -> None:
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    x = torch.randn(6, 3)
    want = net(x)
    changed = nn.SyncBatchNorm.convert_sync_batchnorm(net)
    assert type(changed[1]) is nn.SyncBatchNorm
    torch.testing.assert_close(changed(x), want)


def test_dropout_of_channels() -> None:
    torch.manual_seed(0)
    x = torch.ones(40, 50, 3)
    y = nn.Dropout1d(0.3)(x)
    assert bool(((y == y[..., :1]).all(-1)).all())
    assert set(y.unique().tolist()) == {0.0, torch.tensor(1 / 0.7).item()}
    assert abs((y == 0).to(torch.float32).mean().item() - 0.3) < 0.05
    one = F.dropout1d(x[0], 0.5)
    assert one.shape == x[0].shape and bool((one == one[:, :1]).all())
    assert nn.Dropout2d(0.5)(torch.ones(2, 3, 4, 5)).shape == (2, 3, 4, 5)
    assert nn.Dropout3d(0.5)(torch.ones(3, 4, 5, 2)).shape == (3, 4, 5, 2)
    assert torch.equal(nn.Dropout2d(0.5).eval()(x), x)
    assert repr(nn.FeatureAlphaDropout(0.2)) == "FeatureAlphaDropout(p=0.2, inplace=False)"
    with pytest.raises(ValueError, match="between 0 and 1"):
        nn.AlphaDropout(1.5)


def test_alpha_dropout_keeps_mean_and_variance() -> None:
    torch.manual_seed(0)
    x = torch.randn(400, 500)
    for layer in (nn.AlphaDropout(0.4), nn.FeatureAlphaDropout(0.4)):
        y = layer(x)
        assert abs(y.mean().item()) < 0.02 and abs(y.var().item() - 1) < 0.02
        z = x.clone()
        layer.inplace = True
        assert layer(z) is z


def test_embedding_bag() -> None:
    index = torch.tensor([1, 2, 4, 5, 4, 3])
    offsets = torch.tensor([0, 2, 2])
    for mode, combine in (("sum", np.sum), ("mean", np.mean), ("max", np.max)):
        bag = nn.EmbeddingBag(6, 3, mode=mode, dtype=torch.float64)
        w = _numpy(bag.weight)
        want = np.stack([combine(w[[1, 2]], 0), np.zeros(3), combine(w[[4, 5, 4, 3]], 0)])
        np.testing.assert_allclose(_numpy(bag(index, offsets)), want, rtol=1e-12)
        two = bag(index.reshape(2, 3))
        want = np.stack([combine(w[[1, 2, 4]], 0), combine(w[[5, 4, 3]], 0)])
        np.testing.assert_allclose(_numpy(two), want, rtol=1e-12)
        assert repr(bag) == f"EmbeddingBag(6, 3, mode='{mode}')"
    bag = nn.EmbeddingBag(6, 3, mode="sum", padding_idx=-2)
    assert bag.padding_idx == 4 and bool((bag.weight[4] == 0).all())
    bag(index, offsets, torch.ones(6)).sum().backward()
    assert bool((bag.weight.grad[4] == 0).all()) and bag.weight.grad[5].sum().item() == 3
    last = nn.EmbeddingBag.from_pretrained(torch.eye(6), mode="sum", include_last_offset=True)
    assert not last.weight.requires_grad
    assert last(index, torch.tensor([0, 2, 6])).sum(1).tolist() == [2, 4]
    with pytest.raises(ValueError, match="offsets has to be a 1D Tensor"):
        bag(index)
    with pytest.raises(NotImplementedError, match="mode='sum'"):
        F.embedding_bag(index, bag.weight, offsets, per_sample_weights=torch.ones(6))
    for wrong in ([1, 2], [0, 7], [0, 3, 2], [0, -1]):
        with pytest.raises(RuntimeError, match="embedding_bag: expected offsets"):
            bag(index, torch.tensor(wrong))
    with pytest.raises(IndexError, match="embedding_bag: expected index"):
        bag(torch.tensor([6]), torch.tensor([0]))
    small = nn.EmbeddingBag(6, 3, max_norm=0.5)
    small(index, offsets)
    assert bool((small.weight[index].norm(dim=1) <= 0.5001).all())


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
        lambda x, p: -(p * np.log(_sigmoid(x)) + (1 - p) * np.log(_sigmoid(-x))).mean(-1),
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
    torch.manual_seed(0)
    given = {
        "x": _random(4, 3),
        "y": _random(4, 3),
        "z": _random(4, 3),
        "v": _random(4, 3).abs() + 0.1,
        "p": torch.rand(4, 3, dtype=torch.float64),
        "s": torch.where(_random(4, 3) > 0, 1.0, -1.0).to(torch.float64),
    }
    arguments = [given[n] for n in names.split()]
    layer = copy.deepcopy(layer)
    layer.reduction = reduction
    value = want(*map(_numpy, arguments))
    value = value if reduction == "none" else value.mean() if reduction == "mean" else value.sum()
    np.testing.assert_allclose(_numpy(layer(*arguments)), value, rtol=1e-8)


def test_losses_of_classes_and_sequences() -> None:
    x = _random(4, 3).requires_grad_()
    target = torch.tensor([0, 2, 1, 1])
    assert nn.MultiMarginLoss(p=2)(x, target).item() == pytest.approx(
        F.multi_margin_loss(x, target, p=2).item()
    )
    labels = torch.tensor([[2, 0, -1], [1, -1, 0], [-1, 1, 2], [0, 1, 2]])
    nn.MultiLabelMarginLoss()(x, labels).backward()
    assert bool((x.grad[2:] == 0).all()) and bool((x.grad[1] != 0).any())
    log_probs = F.log_softmax(_random(6, 2, 5), -1).detach().requires_grad_()
    ctc = nn.CTCLoss(blank=4)
    tensors = ctc(log_probs, torch.tensor([[1, 2], [3, 3]]), torch.tensor([6, 5]), torch.tensor([2, 2]))
    lists = ctc(log_probs, torch.tensor([1, 2, 3, 3]), (6, 5), (2, 2))
    torch.testing.assert_close(tensors, lists)
    assert torch.autograd.gradcheck(
        lambda p: ctc(p, torch.tensor([1, 2, 3, 3]), (6, 5), (2, 2)), (log_probs,)
    )
    loss = nn.CTCLoss(reduction="none", zero_infinity=True)
    result = loss(log_probs, torch.tensor([[1, 1, 1, 1], [2, 2, 2, 2]]), (6, 6), (4, 2))
    assert result[0].item() == 0 and result[1].item() > 0
    for arguments in [
        (log_probs, torch.tensor([[1], [5]]), (6, 6), (1, 1)),
        (log_probs, torch.tensor([[1], [-1]]), (6, 6), (1, 1)),
    ]:
        with pytest.raises(IndexError, match="ctc_loss: expected targets in"):
            ctc(*arguments)
    for lengths in [((7, 6), (1, 1)), ((6, -1), (1, 1)), ((6, 6), (2, 1)), ((6,), (1, 1))]:
        with pytest.raises(RuntimeError, match="ctc_loss: expected"):
            ctc(log_probs, torch.tensor([[1], [2]]), *lengths)


def test_cosine_losses_and_distances() -> None:
    x, y = _random(4, 3), _random(4, 3)
    a, b = _numpy(x), _numpy(y)
    cosine = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    np.testing.assert_allclose(_numpy(nn.CosineSimilarity()(x, y)), cosine, rtol=1e-8)
    sign = torch.tensor([1, -1, 1, -1])
    want = np.where(sign.numpy() == 1, 1 - cosine, np.maximum(0, cosine - 0.1))
    np.testing.assert_allclose(
        _numpy(nn.CosineEmbeddingLoss(0.1, reduction="none")(x, y, sign)), want, rtol=1e-8
    )
    np.testing.assert_allclose(
        _numpy(nn.PairwiseDistance()(x, y)), np.linalg.norm(a - b + 1e-6, axis=1), rtol=1e-8
    )


def test_normalize() -> None:
    x = _random(2, 3, 4)
    a = _numpy(x)
    for p, dim in ((2.0, 1), (1.0, -1), (3.0, 0)):
        norm = (abs(a) ** p).sum(dim, keepdims=True) ** (1 / p)
        np.testing.assert_allclose(_numpy(F.normalize(x, p, dim)), a / norm, rtol=1e-9)
    assert bool((F.normalize(torch.zeros(2, 2)) == 0).all())


# ---- weights ----


def test_weight_norm_hook() -> None:
    layer = nn.Linear(3, 4, dtype=torch.float64)
    weight, x = layer.weight.detach().clone(), _random(2, 3)
    want = layer(x)
    nn.utils.weight_norm(layer)
    assert sorted(layer.state_dict()) == ["bias", "weight_g", "weight_v"]
    assert layer.weight_g.shape == (4, 1)
    torch.testing.assert_close(layer(x), want)
    layer(x).sum().backward()
    assert layer.weight_g.grad is not None and layer.weight_v.grad is not None
    with torch.no_grad():
        layer.weight_g.mul_(2)
    torch.testing.assert_close(layer(x) - layer.bias, 2 * (want - layer.bias))
    with pytest.raises(RuntimeError, match="two weight_norm hooks"):
        nn.utils.weight_norm(layer)
    nn.utils.remove_weight_norm(layer)
    torch.testing.assert_close(layer.weight.detach(), 2 * weight)
    assert sorted(layer.state_dict()) == ["bias", "weight"]
    with pytest.raises(ValueError, match="not found"):
        nn.utils.remove_weight_norm(layer)


def test_spectral_norm_hook() -> None:
    torch.manual_seed(0)
    layer = nn.utils.spectral_norm(nn.Linear(3, 4, dtype=torch.float64), n_power_iterations=50)
    x = _random(2, 3)
    layer(x).sum().backward()
    assert layer.weight_orig.grad is not None
    largest = np.linalg.svd(_numpy(layer.weight_orig), compute_uv=False)[0]
    np.testing.assert_allclose(_numpy(layer.weight), _numpy(layer.weight_orig) / largest, rtol=1e-6)
    assert sorted(layer.state_dict()) == ["bias", "weight_orig", "weight_u", "weight_v"]
    nn.utils.remove_spectral_norm(layer)
    np.testing.assert_allclose(np.linalg.svd(_numpy(layer.weight), compute_uv=False)[0], 1, rtol=1e-6)


class _Symmetric(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.triu() + x.triu(1).transpose(-2, -1)


class _Doubled(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2

    def right_inverse(self, x: torch.Tensor) -> torch.Tensor:
        return x / 2


def test_parametrize() -> None:
    layer = nn.Linear(3, 3)
    parametrize.register_parametrization(layer, "weight", _Symmetric())
    assert torch.equal(layer.weight, layer.weight.t())
    assert parametrize.is_parametrized(layer, "weight") and not parametrize.is_parametrized(layer, "bias")
    assert isinstance(layer, nn.Linear) and type(layer).__name__ == "ParametrizedLinear"
    assert parametrize.type_before_parametrizations(layer) is nn.Linear
    assert sorted(layer.state_dict()) == ["bias", "parametrizations.weight.original"]
    layer(torch.randn(2, 3)).sum().backward()
    assert layer.parametrizations.weight.original.grad is not None
    with parametrize.cached():
        assert layer.weight is layer.weight
    assert layer.weight is not layer.weight
    twin = copy.deepcopy(layer)
    assert torch.equal(twin.weight, layer.weight)
    with torch.no_grad():
        twin.parametrizations.weight.original.zero_()
    assert not torch.equal(twin.weight, layer.weight)
    value = layer.weight.detach().clone()
    parametrize.remove_parametrizations(layer, "weight")
    assert type(layer) is nn.Linear and torch.equal(layer.weight, value)
    assert isinstance(layer.weight, nn.Parameter)
    assert sorted(layer.state_dict()) == ["bias", "weight"]


def test_parametrize_right_inverse_and_errors() -> None:
    layer = nn.Linear(2, 2)
    weight = layer.weight.detach().clone()
    parametrize.register_parametrization(layer, "weight", _Doubled())
    torch.testing.assert_close(layer.weight.detach(), weight)
    layer.weight = torch.ones(2, 2)
    assert bool((layer.weight == 1).all())
    assert bool((layer.parametrizations.weight.original == 0.5).all())
    parametrize.register_parametrization(layer, "weight", _Doubled())
    assert bool((layer.weight == 1).all())

    class Sum(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.sum()

    with pytest.raises(ValueError, match="may not change the shape"):
        parametrize.register_parametrization(nn.Linear(2, 2), "weight", Sum())
    with pytest.raises(ValueError, match="does not have a parameter"):
        parametrize.register_parametrization(nn.Linear(2, 2), "weigth", _Doubled())
    with pytest.raises(ValueError, match="does not have a parametrization"):
        parametrize.remove_parametrizations(nn.Linear(2, 2), "weight")


def test_parametrizations() -> None:
    torch.manual_seed(0)
    layer = nn.Linear(3, 4, dtype=torch.float64)
    weight = layer.weight.detach().clone()
    parametrizations.weight_norm(layer)
    torch.testing.assert_close(layer.weight.detach(), weight)
    assert layer.parametrizations.weight.original0.shape == (4, 1)
    assert torch.equal(layer.parametrizations.weight.original1.detach(), weight)

    layer = parametrizations.spectral_norm(nn.Linear(3, 4, dtype=torch.float64)).eval()
    np.testing.assert_allclose(np.linalg.svd(_numpy(layer.weight), compute_uv=False)[0], 1, rtol=1e-2)

    for rows, columns in ((4, 4), (5, 3), (3, 5)):
        layer = nn.Linear(columns, rows, dtype=torch.float64)
        parametrizations.orthogonal(layer)
        layer(_random(2, columns)).square().sum().backward()
        original = layer.parametrizations.weight.original
        assert original.grad is not None
        with torch.no_grad():
            original.add_(_random(*original.shape))
        w = _numpy(layer.weight)
        product = w.T @ w if rows >= columns else w @ w.T
        np.testing.assert_allclose(product, np.eye(min(rows, columns)), atol=1e-8)


def test_initial_values() -> None:
    torch.manual_seed(0)
    t = nn.init.sparse_(torch.empty(10, 8), 0.3)
    assert bool(((t == 0).sum(0) == 3).all())
    with pytest.warns(FutureWarning, match="deprecated in favor of nn.init.constant_"):
        assert bool((nn.init.constant(torch.empty(2), 3.0) == 3).all())
    with pytest.warns(FutureWarning):
        assert nn.init.kaiming_normal(torch.empty(3, 4)).shape == (3, 4)
