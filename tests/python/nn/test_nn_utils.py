"""nn.utils: pruning, fused layers, layers without initial values; gradients of convolutions."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any

import pytest

import treadle
from treadle import nn
from treadle.nn.utils import prune


def _layer() -> nn.Linear:
    layer = nn.Linear(4, 2)
    with treadle.no_grad():
        layer.weight.copy_(treadle.tensor([[1.0, -5.0, 3.0, 0.1], [-2.0, 0.5, 4.0, -0.2]]))
    return layer


def test_the_smallest_entries_go() -> None:
    layer = _layer()
    before = layer.weight
    assert prune.l1_unstructured(layer, "weight", amount=3) is layer
    assert layer.weight_orig is before
    assert layer.weight_mask.tolist() == [[1, 1, 1, 0], [1, 0, 1, 0]]
    assert layer.weight.tolist() == (before * layer.weight_mask).tolist()
    assert sorted(layer.state_dict()) == ["bias", "weight_mask", "weight_orig"]
    layer(treadle.ones(1, 4)).sum().backward()
    assert layer.weight_orig.grad.tolist() == layer.weight_mask.tolist()
    assert prune.is_pruned(nn.Sequential(layer))
    prune.remove(layer, "weight")
    assert layer.weight is before and layer.weight[0, 3] == 0 and not prune.is_pruned(layer)
    assert sorted(layer.state_dict()) == ["bias", "weight"]


def test_pruning_again_takes_from_what_is_left() -> None:
    layer = _layer()
    prune.l1_unstructured(layer, "weight", amount=2)
    prune.l1_unstructured(layer, "weight", amount=0.5)  # of the six that are left
    assert layer.weight_mask.tolist() == [[0, 1, 1, 0], [0, 0, 1, 0]]
    hooks = list(layer._forward_pre_hooks.values())
    assert len(hooks) == 1 and isinstance(hooks[0], prune.PruningContainer) and len(hooks[0]) == 2
    prune.ln_structured(layer, "weight", amount=1, n=2, dim=1)
    assert layer.weight_mask.tolist() == [[0, 0, 1, 0], [0, 0, 1, 0]]


def test_channels() -> None:
    layer = prune.ln_structured(_layer(), "weight", amount=1, n=1, dim=0)
    assert layer.weight_mask.tolist() == [[1, 1, 1, 1], [0, 0, 0, 0]]
    layer = prune.random_structured(_layer(), "weight", amount=0.5, dim=1)
    assert sorted(layer.weight_mask.sum(0).tolist()) == [0, 0, 2, 2]
    layer = prune.random_unstructured(_layer(), "weight", amount=3)
    assert layer.weight_mask.sum() == 5
    layer = prune.identity(_layer(), "bias")
    assert layer.bias_mask.tolist() == [1, 1]


def test_masks_and_scores_of_ones_own() -> None:
    layer = _layer()
    prune.custom_from_mask(layer, "bias", treadle.tensor([0, 1]))
    assert layer.bias[0] == 0
    scores = treadle.arange(8.0).reshape(2, 4)
    prune.l1_unstructured(layer, "weight", amount=2, importance_scores=scores)
    assert layer.weight_mask.tolist() == [[0, 0, 1, 1], [1, 1, 1, 1]]
    pruned = prune.L1Unstructured(1).prune(treadle.tensor([3.0, 1.0, 2.0]))
    assert pruned.tolist() == [3, 0, 2]


def test_several_parameters_as_one() -> None:
    first, second = _layer(), _layer()
    with treadle.no_grad():
        second.weight.mul_(10)
    pairs = [(first, "weight"), (second, "weight")]
    prune.global_unstructured(pairs, prune.L1Unstructured, amount=6)
    assert first.weight_mask.sum() + second.weight_mask.sum() == 10
    assert second.weight_mask.tolist() == [[1, 1, 1, 0], [1, 1, 1, 1]]
    with pytest.raises(TypeError, match="^global_unstructured: expected an unstructured method"):
        prune.global_unstructured(pairs, prune.LnStructured, amount=1, n=2)


def test_a_method_that_fails_leaves_the_layer_as_it_was() -> None:
    layer = _layer()
    weight = layer.weight
    with pytest.raises(ValueError) as error:
        prune.l1_unstructured(layer, "weight", amount=9)
    assert str(error.value) == "prune: expected an amount of at most 8, got 9"
    assert layer.weight is weight and not prune.is_pruned(layer)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: prune.l1_unstructured(_layer(), "weight", 1.5),
            ValueError,
            "prune: expected amount to be a count or a part from 0.0 to 1.0, got 1.5",
        ),
        (
            lambda: prune.l1_unstructured(_layer(), "weight", "half"),
            TypeError,
            "prune: expected amount to be a number, got str",
        ),
        (
            lambda: prune.ln_structured(_layer(), "bias", 1, 2, 0),
            ValueError,
            "LnStructured: expected a tensor of at least two dimensions, got 1",
        ),
        (
            lambda: prune.random_structured(_layer(), "weight", 1, 3),
            IndexError,
            "RandomStructured: expected a dimension of 2, got 3",
        ),
        (
            lambda: prune.custom_from_mask(_layer(), "bias", treadle.ones(3)),
            AssertionError,
            "prune: expected a mask of shape (2,), got (3,)",
        ),
        (
            lambda: prune.PruningContainer().add_pruning_method(3),
            TypeError,
            "prune: expected a method of pruning, got int",
        ),
    ],
)
def test_what_cannot_be_pruned(call: Any, error: Any, message: str) -> None:
    with pytest.raises(error) as raised:
        call()
    assert str(raised.value) == message


def _normalised(norm: Any) -> Any:
    with treadle.no_grad():
        for tensor in (norm.running_mean, norm.weight, norm.bias):
            tensor.normal_()
        norm.running_var.uniform_(0.5, 2.0)
    return norm.eval()


@pytest.mark.parametrize("bias", [False, True])
def test_a_layer_and_its_normalisation_as_one(bias: bool) -> None:
    x = treadle.randn(2, 3, 5, 5)
    conv, norm = nn.Conv2d(3, 4, 3, bias=bias).eval(), _normalised(nn.BatchNorm2d(4))
    fused = nn.utils.fuse_conv_bn_eval(conv, norm)
    treadle.testing.assert_close(fused(x), norm(conv(x)), rtol=1e-4, atol=1e-5)
    assert fused.weight.requires_grad and fused is not conv
    conv = nn.ConvTranspose2d(3, 4, 3, bias=bias).eval()
    fused = nn.utils.fuse_conv_bn_eval(conv, norm, transpose=True)
    treadle.testing.assert_close(fused(x), norm(conv(x)), rtol=1e-4, atol=1e-5)
    linear, norm = nn.Linear(3, 4, bias=bias).eval(), _normalised(nn.BatchNorm1d(4))
    fused = nn.utils.fuse_linear_bn_eval(linear, norm)
    x = treadle.randn(6, 3)
    treadle.testing.assert_close(fused(x), norm(linear(x)), rtol=1e-4, atol=1e-5)


def test_layers_that_do_not_fit_are_not_fused() -> None:
    message = "fuse_conv_bn_eval: expected modules in evaluation mode; call eval() first"
    with pytest.raises(AssertionError) as error:
        nn.utils.fuse_conv_bn_eval(nn.Conv2d(1, 1, 1), nn.BatchNorm2d(1).eval())
    assert str(error.value) == message
    with pytest.raises(AssertionError) as error:
        nn.utils.fuse_linear_bn_eval(nn.Linear(3, 4).eval(), nn.BatchNorm1d(2).eval())
    assert str(error.value) == (
        "fuse_linear_bn_eval: expected a normalisation of 4 features or one, got one of 2"
    )


def test_weights_in_another_order() -> None:
    net = nn.Sequential(nn.Conv2d(2, 3, 3), nn.Conv3d(2, 3, 3))
    assert nn.utils.convert_conv2d_weight_memory_format(net, treadle.channels_last) is net
    assert net[0].weight.is_contiguous(memory_format=treadle.channels_last)
    assert net[1].weight.is_contiguous()
    nn.utils.convert_conv3d_weight_memory_format(net, treadle.channels_last_3d)
    assert net[1].weight.is_contiguous(memory_format=treadle.channels_last_3d)


def test_layers_without_initial_values() -> None:
    layer = nn.utils.skip_init(nn.Linear, 3, 4, bias=False, dtype=treadle.float64)
    assert layer.weight.shape == (4, 3) and layer.weight.device.type == "cpu"
    assert layer.weight.dtype == treadle.float64 and isinstance(layer.weight, nn.Parameter)
    assert nn.utils.skip_init(nn.Linear, 3, 4, device="meta").weight.is_meta
    with pytest.raises(RuntimeError, match="^skip_init: expected a class that takes device, got"):
        nn.utils.skip_init(nn.ReLU)
    with pytest.raises(RuntimeError, match="^skip_init: expected a class of modules, got 3$"):
        nn.utils.skip_init(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_gradients_of_convolutions(rank: int) -> None:
    from treadle.nn import grad

    size = (6, 5, 4)[:rank]
    x = treadle.randn(2, 4, *size, requires_grad=True)
    w = treadle.randn(6, 2, *[2] * rank, requires_grad=True)
    settings = {"stride": 2, "padding": 1, "dilation": 1, "groups": 2}
    result = getattr(nn.functional, f"conv{rank}d")(x, w, None, **settings)
    above = treadle.randn_like(result)
    for_x, for_w = treadle.autograd.grad(result, (x, w), above)
    of_input, of_weight = (getattr(grad, f"conv{rank}d_{what}") for what in ("input", "weight"))
    treadle.testing.assert_close(of_input(x.shape, w, above, **settings), for_x)
    treadle.testing.assert_close(of_weight(x, w.shape, above, **settings), for_w)
    with pytest.raises(ValueError, match=f"^conv{rank}d: expected grad_output of shape"):
        of_input(x.shape, w, above[:1], **settings)


def test_clip_grad_norm_by_its_older_name() -> None:
    x = treadle.tensor([3.0, 4.0], requires_grad=True)
    x.grad = x.detach().clone()
    with pytest.warns(FutureWarning, match="older name of `nn.utils.clip_grad_norm_`"):
        assert nn.utils.clip_grad_norm(x, 1.0) == 5.0
    assert x.grad.norm() < 1.001


def test_set_submodule() -> None:
    net = nn.Sequential(nn.Sequential(nn.Linear(2, 3)))
    relu = nn.ReLU()
    net.set_submodule("0.0", relu, strict=True)
    assert net[0][0] is relu
    net.set_submodule("0.more", relu)
    assert net[0].more is relu
    with pytest.raises(AttributeError, match="^Sequential has no attribute `none`$"):
        net.set_submodule("0.none", relu, strict=True)
    with pytest.raises(AttributeError, match="^`training` is not an nn.Module$"):
        net.set_submodule("0.training", relu)
    with pytest.raises(ValueError, match="^set_submodule: expected a path and a module, got an em"):
        net.set_submodule("", relu)
    with pytest.raises(ValueError, match="^set_submodule: expected a path and a module, got a int"):
        net.set_submodule("0", 3)  # type: ignore[arg-type]
