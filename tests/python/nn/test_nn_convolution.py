"""Layers of convolution, pooling, padding and resampling: settings, parameters, and that each
computes what its function does."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
import math
import pickle
import time

import numpy as np
import pytest
from nn_arrays import array, check

import treadle
import treadle.nn as nn
import treadle.nn.functional as F
from treadle import tensor


@pytest.fixture(autouse=True)
def seeded():
    treadle.manual_seed(0)


def x(*shape):
    return treadle.randn(*shape)


CONVOLUTIONS = {
    1: (nn.Conv1d, nn.ConvTranspose1d, F.conv1d, F.conv_transpose1d),
    2: (nn.Conv2d, nn.ConvTranspose2d, F.conv2d, F.conv_transpose2d),
    3: (nn.Conv3d, nn.ConvTranspose3d, F.conv3d, F.conv_transpose3d),
}


@pytest.mark.parametrize("dims", (1, 2, 3))
def test_convolution_layers(dims):
    plain, transposed, conv, conv_transpose = CONVOLUTIONS[dims]
    image = x(2, 4, *(6, 5, 7)[:dims])
    layer = plain(4, 6, 3, stride=2, padding=1, dilation=1, groups=2)
    assert layer.weight.shape == (6, 2) + (3,) * dims and layer.bias.shape == (6,)
    assert list(layer.state_dict()) == ["weight", "bias"]
    assert treadle.equal(layer(image), conv(image, layer.weight, layer.bias, 2, 1, 1, 2))
    layer = transposed(4, 6, 3, 2, 1, 1, 2, True, 2)
    assert layer.weight.shape == (4, 3) + (3,) * dims and layer.bias.shape == (6,)
    assert treadle.equal(
        layer(image), conv_transpose(image, layer.weight, layer.bias, 2, 1, 1, 2, 2)
    )
    bound = 1 / math.sqrt(4 // 2 * 3**dims)
    fresh = plain(4, 6, 3, groups=2)
    assert fresh.weight.abs().max() <= bound and fresh.bias.abs().max() <= bound


def convolved(x, weight, bias, stride, padding, dilation, groups):
    x = np.pad(x, ((0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2))
    outputs, per_group, kh, kw = weight.shape
    height = (x.shape[2] - dilation[0] * (kh - 1) - 1) // stride[0] + 1
    width = (x.shape[3] - dilation[1] * (kw - 1) - 1) // stride[1] + 1
    result = np.zeros((x.shape[0], outputs, height, width))
    for o in range(outputs):
        first = o // (outputs // groups) * per_group
        for i in range(height):
            for j in range(width):
                top, left = i * stride[0], j * stride[1]
                window = x[
                    :,
                    first : first + per_group,
                    top : top + dilation[0] * (kh - 1) + 1 : dilation[0],
                    left : left + dilation[1] * (kw - 1) + 1 : dilation[1],
                ]
                result[:, o, i, j] = (window * weight[o]).sum((1, 2, 3)) + bias[o]
    return result


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"stride": 2},
        {"padding": (1, 2)},
        {"dilation": 2},
        {"groups": 2},
        {"stride": (2, 1), "padding": 1, "dilation": (1, 2), "groups": 2},
    ],
    ids=str,
)
def test_conv2d(settings):
    layer = nn.Conv2d(4, 6, (3, 2), **settings).double()
    x = array(2, 4, 7, 8)
    expected = convolved(
        x,
        layer.weight.detach().numpy(),
        layer.bias.detach().numpy(),
        layer.stride,
        layer.padding,
        layer.dilation,
        layer.groups,
    )
    check(layer(tensor(x)), expected)


def test_settings_of_one_entry_or_of_one_for_each_dimension():
    x, w = treadle.rand(2, 4, 9, 9), treadle.rand(3, 4, 3, 3)
    wanted = F.conv2d(x, w, stride=1, padding="same", dilation=2)
    assert treadle.equal(F.conv2d(x, w, stride=[1], padding="same", dilation=[2]), wanted)
    assert treadle.equal(F.conv2d(x, w, stride=[1, 1], padding="same", dilation=[2, 2]), wanted)
    many = [1] * 13
    for settings in ({"stride": many}, {"dilation": many}):
        for padding in (0, "same", "valid"):
            with pytest.raises(
                RuntimeError, match="conv2d: expected (stride|dilation) to have 2 entries"
            ):
                F.conv2d(x, w, padding=padding, **settings)


@pytest.mark.parametrize("kernel", [3, (3, 2), (4, 5)])
def test_conv2d_same_padding(kernel):
    layer = nn.Conv2d(2, 3, kernel, padding="same").double()
    x = array(1, 2, 6, 7)
    total = [size - 1 for size in layer.kernel_size]
    padded = np.pad(x, ((0, 0), (0, 0), *((t // 2, t - t // 2) for t in total)))
    weight, bias = layer.weight.detach().numpy(), layer.bias.detach().numpy()
    check(layer(tensor(x)), convolved(padded, weight, bias, (1, 1), (0, 0), (1, 1), 1))
    assert nn.Conv2d(2, 3, 3, padding="valid")(treadle.zeros((1, 2, 6, 7))).shape == (1, 3, 4, 5)


@pytest.mark.parametrize(
    ("images", "channels", "out_channels", "side"),
    [(11, 16, 32, 8), (13, 3, 20, 9), (8, 16, 32, 4), (9, 32, 17, 5), (2, 8, 8, 3), (40, 4, 6, 1)],
)
def test_batches_are_computed_in_pieces(images, channels, out_channels, side):
    """Pieces of several sizes, and few where the images are small, have float64's numbers and the
    same bits at any thread count, both ways."""
    values = [x(images, channels, side, side), x(out_channels, channels, 3, 3), x(out_channels)]
    back = [x(out_channels, channels, 3, 3), x(channels)]
    threads = treadle.get_num_threads()

    def results(dtype):
        leaves = [value.to(dtype, copy=True).requires_grad_() for value in (*values, *back)]
        image, weight, bias, back_weight, back_bias = leaves
        there = F.conv2d(image, weight, bias, padding=1)
        again = F.conv_transpose2d(there, back_weight, back_bias, padding=1)
        (again * there.sum(1, keepdim=True)).mean().backward()
        return [there, again, *(leaf.grad for leaf in leaves)]

    try:
        bits = []
        for count in (1, 2, 3):
            treadle.set_num_threads(count)
            bits.append([t.detach().numpy().tobytes() for t in results(treadle.float32)])
        assert bits[0] == bits[1] == bits[2]
    finally:
        treadle.set_num_threads(threads)
    for got, want in zip(results(treadle.float32), results(treadle.float64)):
        want = want.detach().numpy()
        scale = np.abs(want).max()
        np.testing.assert_allclose(got.detach().numpy(), want, rtol=1e-4, atol=1e-5 * scale)


def test_convolutions_of_many_shapes_keep_their_plans():
    """Making a plan takes ten times as long as such a convolution: what is slow amid six hundred
    shapes, and fast alone, has lost its plan in between."""
    weight = treadle.ones(4, 4, 3, 3)
    images = [treadle.ones(1, 4, 8 + i % 25, 8 + i // 25) for i in range(600)]
    others, last = images[:-100], images[-100:]

    def seconds(images):
        start = time.thread_time()
        for image in images:
            F.conv2d(image, weight)
        return time.thread_time() - start

    alone = min(seconds(last) for _ in range(6))
    amid = min((seconds(others), seconds(last))[1] for _ in range(6))
    assert amid < 4 * alone


@pytest.mark.parametrize("dims", (1, 2, 3))
def test_a_transposed_convolution_undoes_the_shape(dims):
    plain, transposed, _, _ = CONVOLUTIONS[dims]
    image = x(1, 2, *(7, 8, 6)[:dims])
    down = plain(2, 3, 3, stride=2, padding=1)(image)
    up = transposed(3, 2, 3, stride=2, padding=1)
    assert up(down, output_size=image.shape[2:]).shape == image.shape
    assert up(down, output_size=image.shape).shape == image.shape
    with pytest.raises(ValueError, match="requested an output size"):
        up(down, output_size=(100,) * dims)


@pytest.mark.parametrize("mode", ("reflect", "replicate", "circular"))
@pytest.mark.parametrize("padding", (1, "same"))
def test_padding_modes_of_convolution(mode, padding):
    layer = nn.Conv2d(2, 3, (3, 2), padding=padding, padding_mode=mode)
    image = x(1, 2, 5, 4)
    sides = (1, 1, 1, 1) if padding == 1 else (0, 1, 1, 1)
    wide = F.pad(image, sides, mode=mode)
    assert treadle.equal(layer(image), F.conv2d(wide, layer.weight, layer.bias))
    assert f"padding_mode={mode}" in repr(layer)


def test_settings_are_checked():
    with pytest.raises(ValueError, match="groups must be a positive integer"):
        nn.Conv1d(2, 2, 1, groups=0)
    with pytest.raises(ValueError, match="in_channels must be divisible by groups"):
        nn.Conv3d(3, 2, 1, groups=2)
    with pytest.raises(ValueError, match="out_channels must be divisible by groups"):
        nn.ConvTranspose1d(2, 3, 1, groups=2)
    with pytest.raises(ValueError, match="Invalid padding string"):
        nn.Conv2d(1, 1, 1, padding="full")
    with pytest.raises(ValueError, match="not supported for strided"):
        nn.Conv2d(1, 1, 1, padding="same", stride=2)
    with pytest.raises(ValueError, match="padding_mode must be one of"):
        nn.Conv2d(1, 1, 1, padding_mode="mirror")
    with pytest.raises(ValueError, match='Only "zeros"'):
        nn.ConvTranspose2d(1, 1, 1, padding_mode="reflect")


@pytest.mark.parametrize(
    "layer, text",
    [
        (nn.Conv1d(2, 4, 3), "Conv1d(2, 4, kernel_size=(3,), stride=(1,))"),
        (
            nn.Conv3d(2, 4, (1, 2, 3), padding=1, groups=2, bias=False),
            "Conv3d(2, 4, kernel_size=(1, 2, 3), stride=(1, 1, 1), padding=(1, 1, 1), groups=2, "
            "bias=False)",
        ),
        (
            nn.ConvTranspose2d(2, 4, 3, 2, 1, 1),
            "ConvTranspose2d(2, 4, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1), "
            "output_padding=(1, 1))",
        ),
        (
            nn.MaxPool1d(2),
            "MaxPool1d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)",
        ),
        (nn.AvgPool1d(2), "AvgPool1d(kernel_size=(2,), stride=(2,), padding=(0,))"),
        (nn.AvgPool3d(2), "AvgPool3d(kernel_size=2, stride=2, padding=0)"),
        (nn.MaxUnpool2d(2), "MaxUnpool2d(kernel_size=(2, 2), stride=(2, 2), padding=(0, 0))"),
        (nn.AdaptiveAvgPool2d((1, None)), "AdaptiveAvgPool2d(output_size=(1, None))"),
        (
            nn.LPPool2d(2, 3),
            "LPPool2d(norm_type=2, kernel_size=3, stride=None, ceil_mode=False)",
        ),
        (nn.ReflectionPad2d(1), "ReflectionPad2d((1, 1, 1, 1))"),
        (nn.ConstantPad1d((1, 2), 3.5), "ConstantPad1d(padding=(1, 2), value=3.5)"),
        (nn.ZeroPad2d(1), "ZeroPad2d((1, 1, 1, 1))"),
        (nn.Upsample(scale_factor=2), "Upsample(scale_factor=2.0, mode='nearest')"),
        (
            nn.UpsamplingBilinear2d(size=(3, 4)),
            "UpsamplingBilinear2d(size=(3, 4), mode='bilinear')",
        ),
        (nn.PixelShuffle(2), "PixelShuffle(upscale_factor=2)"),
        (nn.PixelUnshuffle(2), "PixelUnshuffle(downscale_factor=2)"),
        (nn.ChannelShuffle(2), "ChannelShuffle(groups=2)"),
        (nn.Unfold(2), "Unfold(kernel_size=2, dilation=1, padding=0, stride=1)"),
        (
            nn.Fold((4, 5), 2),
            "Fold(output_size=(4, 5), kernel_size=2, dilation=1, padding=0, stride=1)",
        ),
        (nn.LocalResponseNorm(2), "LocalResponseNorm(2, alpha=0.0001, beta=0.75, k=1.0)"),
        (nn.LazyLinear(3), "LazyLinear(in_features=0, out_features=3, bias=True)"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_reprs(layer, text):
    assert repr(layer) == text


def test_pooling_of_images():
    x = array(2, 3, 6, 8)
    windows = x.reshape(2, 3, 3, 2, 4, 2)
    check(nn.MaxPool2d(2)(tensor(x)), windows.max((3, 5)))
    check(nn.AvgPool2d(2)(tensor(x)), windows.mean((3, 5)))
    values, places = nn.MaxPool2d(2, return_indices=True)(tensor(x))
    flat = x.reshape(2, 3, -1)
    check(
        values, np.take_along_axis(flat, places.numpy().reshape(2, 3, -1), 2).reshape(values.shape)
    )


@pytest.mark.parametrize("dims", (1, 2, 3))
def test_pooling_layers(dims):
    image = x(2, 3, *(6, 7, 8)[:dims])
    name = f"{dims}d"
    pair = getattr(nn, "MaxPool" + name)(2, return_indices=True, ceil_mode=True)(image)
    wanted = getattr(F, f"max_pool{name}")(image, 2, ceil_mode=True, return_indices=True)
    assert all(treadle.equal(a, b) for a, b in zip(pair, wanted))
    assert treadle.equal(
        getattr(nn, "AvgPool" + name)(3, 2, 1, True, False)(image),
        getattr(F, f"avg_pool{name}")(image, 3, 2, 1, True, False),
    )
    assert treadle.equal(
        getattr(nn, "AdaptiveAvgPool" + name)(2)(image),
        getattr(F, f"adaptive_avg_pool{name}")(image, 2),
    )
    assert treadle.equal(
        getattr(nn, "AdaptiveMaxPool" + name)(2)(image),
        getattr(F, f"adaptive_max_pool{name}")(image, 2),
    )
    values, indices = getattr(nn, "AdaptiveMaxPool" + name)(1, return_indices=True)(image)
    flat = image.reshape((2, 3, -1))
    assert treadle.equal(values.reshape((2, 3)), flat.max(-1)[0])
    assert treadle.equal(indices.reshape((2, 3)), flat.argmax(-1))


def test_a_size_of_none_stays():
    image = x(2, 3, 5, 6)
    assert nn.AdaptiveAvgPool2d((None, 2))(image).shape == (2, 3, 5, 2)
    assert nn.AdaptiveMaxPool3d((1, None, 2))(x(2, 3, 4, 5, 6)).shape == (2, 3, 1, 5, 2)


@pytest.mark.parametrize("dims", (1, 2, 3))
def test_unpooling_puts_back(dims):
    image = x(2, 3, *(6, 7, 8)[:dims])
    pool = getattr(nn, f"MaxPool{dims}d")(2, return_indices=True)
    unpool = getattr(nn, f"MaxUnpool{dims}d")(2)
    values, indices = pool(image)
    back = unpool(values, indices, output_size=image.shape)
    assert back.shape == image.shape
    assert treadle.equal(back[back != 0], image[back != 0]) and (back != 0).sum() == values.numel()
    whole = unpool(values.abs(), indices, output_size=image.shape[2:])
    assert treadle.equal(pool(whole)[0], values.abs())
    with pytest.raises(ValueError, match="invalid output_size"):
        unpool(values, indices, output_size=(100,) * dims)


@pytest.mark.parametrize("dims", (1, 2, 3))
def test_pools_refuse_inputs_without_channels(dims):
    for name, pool in (
        (f"max_pool{dims}d", lambda x: getattr(F, f"max_pool{dims}d")(x, 2)),
        (f"avg_pool{dims}d", lambda x: getattr(F, f"avg_pool{dims}d")(x, 2)),
        (f"adaptive_max_pool{dims}d", lambda x: getattr(F, f"adaptive_max_pool{dims}d")(x, 2)),
    ):
        without = treadle.ones((2, 0, *[8] * dims))
        with pytest.raises(RuntimeError, match="expected at least one channel, got shape"):
            pool(without)
        assert pool(treadle.ones((0, 3, *[8] * dims))).shape[:2] == (0, 3), name
    average = getattr(F, f"adaptive_avg_pool{dims}d")
    assert tuple(average(treadle.ones((2, 0, *[8] * dims)), 2).shape) == (2, 0, *[2] * dims)


def test_an_index_beyond_the_unpooled_size_is_refused():
    values = treadle.ones(1, 1, 1, 1)
    with pytest.raises(RuntimeError) as error:
        F.max_unpool2d(values, treadle.full((1, 1, 1, 1), 9), 2)
    assert str(error.value) == "max_unpool2d: expected indices in [0, 4), got 9"


def test_unpooling_takes_a_setting_for_each_dimension():
    values = treadle.ones(1, 3, 1, 1, 1)
    with pytest.raises(RuntimeError) as error:
        F.max_unpool3d(values, values.long(), [1, 1])
    assert str(error.value) == (
        "max_unpool3d: expected 3 entries in kernel_size, stride and padding, got (1, 1), (1, 1) "
        "and (0, 0, 0)"
    )


def test_norms_of_windows():
    image = treadle.rand(2, 3, 6, 4)
    got = nn.LPPool2d(3, (3, 2))(image).numpy()
    windows = image.numpy().reshape(2, 3, 2, 3, 2, 2)
    np.testing.assert_allclose(got, (windows**3).sum((3, 5)) ** (1 / 3), rtol=1e-5)
    line = treadle.rand(2, 3, 6)
    got = nn.LPPool1d(2, 3)(line).numpy()
    np.testing.assert_allclose(
        got, np.sqrt((line.numpy().reshape(2, 3, 2, 3) ** 2).sum(3)), rtol=1e-5
    )
    volume = treadle.rand(1, 2, 4, 4, 4)
    whole = nn.LPPool3d(2, 4)(volume)
    np.testing.assert_allclose(
        whole.numpy().reshape(2), np.sqrt((volume.numpy() ** 2).sum((0, 2, 3, 4))), rtol=1e-5
    )


@pytest.mark.parametrize("shape", [(2, 5, 3), (2, 5, 3, 4), (1, 4, 2, 2, 3)])
@pytest.mark.parametrize("size", (2, 3))
def test_local_response_norm(shape, size):
    image = x(*shape)
    a = image.numpy().astype(np.float64)
    expected = np.empty_like(a)
    for c in range(shape[1]):
        near = a[:, max(0, c - size // 2) : c + (size - 1) // 2 + 1]
        expected[:, c] = a[:, c] / (2 + 0.1 * (near**2).sum(1) / size) ** 0.75
    layer = nn.LocalResponseNorm(size, alpha=0.1, k=2.0)
    np.testing.assert_allclose(layer(image).numpy(), expected, rtol=1e-5)


def test_pad():
    x = array(2, 3)
    check(F.pad(tensor(x), (1, 2), value=5.0), np.pad(x, ((0, 0), (1, 2)), constant_values=5.0))
    check(F.pad(tensor(x), (-1, 0, 1, 0)), np.pad(x, ((1, 0), (0, 0)))[:, 1:])


@pytest.mark.parametrize("dims", (1, 2, 3))
def test_padding_layers(dims):
    image = x(1, 2, *(4, 5, 6)[:dims])
    pads = (1, 2, 3, 0, 2, 1)[: 2 * dims]
    sides = [(0, 0)] * 2 + [(pads[2 * i], pads[2 * i + 1]) for i in range(dims)][::-1]
    for kind, mode in (("Reflection", "reflect"), ("Replication", "edge"), ("Circular", "wrap")):
        got = getattr(nn, f"{kind}Pad{dims}d")(pads)(image)
        np.testing.assert_array_equal(got.numpy(), np.pad(image.numpy(), sides, mode=mode))
    np.testing.assert_array_equal(
        getattr(nn, f"ConstantPad{dims}d")(pads, 3.5)(image).numpy(),
        np.pad(image.numpy(), sides, constant_values=3.5),
    )
    np.testing.assert_array_equal(
        getattr(nn, f"ZeroPad{dims}d")(1)(image).numpy(),
        np.pad(image.numpy(), [(0, 0)] * 2 + [(1, 1)] * dims),
    )


# ---- resampling --------------------------------------------------------------------------------


def test_interpolate():
    image = x(1, 2, 3, 4)
    assert F.interpolate(image, scale_factor=2).shape == (1, 2, 6, 8)
    doubled = np.repeat(np.repeat(image.numpy(), 2, 2), 2, 3)
    np.testing.assert_array_equal(nn.Upsample(scale_factor=2)(image).numpy(), doubled)
    np.testing.assert_array_equal(nn.UpsamplingNearest2d(scale_factor=2)(image).numpy(), doubled)
    corners = nn.UpsamplingBilinear2d(size=(5, 7))(image)
    np.testing.assert_allclose(corners[..., ::2, ::2].numpy(), image.numpy(), atol=1e-6)
    area = F.interpolate(x(1, 1, 4, 6), scale_factor=0.5, mode="area")
    assert area.shape == (1, 1, 2, 3)
    assert treadle.equal(
        F.interpolate(image, (2, 2), mode="area"), F.adaptive_avg_pool2d(image, (2, 2))
    )
    # A scale that is given counts, unless it is to be computed anew from the sizes.
    given = F.interpolate(image, scale_factor=1.4, mode="bilinear")
    anew = F.interpolate(image, scale_factor=1.4, mode="bilinear", recompute_scale_factor=True)
    assert treadle.equal(anew, F.interpolate(image, (4, 5), mode="bilinear"))
    assert not treadle.equal(given, anew)
    with pytest.warns(UserWarning, match="deprecated"):
        F.upsample(image, scale_factor=2)


def test_interpolate_bytes_round_and_stay_within_bounds_between_dimensions():
    image = treadle.tensor([[[[0, 255], [10, 20]]]], dtype=treadle.uint8)
    got = F.interpolate(image, (3, 4), mode="bicubic")
    assert got.dtype == treadle.uint8
    assert got[0, 0].tolist() == [[0, 62, 213, 255], [5, 35, 108, 138], [10, 8, 2, 1]]


@pytest.mark.parametrize(
    "settings, error, match",
    [
        ({}, ValueError, "either size or scale_factor"),
        ({"size": 2, "scale_factor": 2}, ValueError, "only one of size or scale_factor"),
        ({"size": (1, 2, 3)}, ValueError, "same number of spatial dimensions"),
        ({"size": 2, "align_corners": True}, ValueError, "align_corners option"),
        ({"size": 2, "mode": "trilinear"}, NotImplementedError, "4D input"),
        ({"size": 2, "mode": "sinc"}, NotImplementedError, "for the modes"),
        ({"size": 2, "antialias": True}, ValueError, "Anti-alias option"),
        ({"size": 2, "recompute_scale_factor": True}, ValueError, "not meaningful"),
        ({"size": 0}, (RuntimeError, ValueError), "output_size > 0"),
        ({"scale_factor": math.inf}, ValueError, "finite scale factors"),
        ({"scale_factor": 0.1}, (RuntimeError, ValueError), "output_size > 0"),
    ],
    ids=str,
)
def test_interpolate_settings_are_checked(settings, error, match):
    with pytest.raises(error, match=match):
        F.interpolate(x(1, 1, 3, 3), **settings)


def test_grid_sample_by_an_affine_grid():
    image = x(2, 3, 4, 5)
    same = treadle.tensor([[1.0, 0, 0], [0, 1, 0]]).expand((2, 2, 3))
    for corners in (False, True):
        grid = F.affine_grid(same, image.shape, align_corners=corners)
        got = F.grid_sample(image, grid, align_corners=corners)
        np.testing.assert_allclose(got.numpy(), image.numpy(), atol=1e-5)
    flipped = treadle.tensor([[-1.0, 0, 0], [0, 1, 0]]).expand((2, 2, 3))
    grid = F.affine_grid(flipped, image.shape, align_corners=False)
    got = F.grid_sample(image, grid, mode="nearest", align_corners=False)
    assert treadle.equal(got, image.flip((3,)))
    with pytest.warns(UserWarning, match="align_corners=False"):
        F.grid_sample(image, grid)
    with pytest.raises(ValueError, match="expected mode"):
        F.grid_sample(image, grid, mode="cubic")
    with pytest.raises(ValueError, match="expected padding_mode"):
        F.grid_sample(image, grid, padding_mode="wrap")


def test_grid_sample_far_away_and_not_a_number():
    image = treadle.ones((1, 1, 3, 3))
    grid = treadle.tensor([[[[math.nan, 0.0], [math.inf, 0.0], [-1e30, 1e30], [0.0, -math.inf]]]])
    for mode in ("bilinear", "nearest", "bicubic"):
        for padding in ("zeros", "border", "reflection"):
            out = F.grid_sample(image, grid, mode, padding, align_corners=False)
            assert out.shape == (1, 1, 1, 4)


def test_shuffles_and_folds():
    image = x(2, 8, 3, 4)
    assert treadle.equal(nn.PixelUnshuffle(2)(nn.PixelShuffle(2)(image)), image)
    assert treadle.equal(nn.ChannelShuffle(2)(image)[:, :4:2], image[:, :2])
    columns = nn.Unfold((2, 3), padding=1)(image)
    assert columns.shape == (2, 8 * 6, 4 * 4)
    back = nn.Fold((3, 4), (2, 3), padding=1)(columns)
    counts = nn.Fold((3, 4), (2, 3), padding=1)(treadle.ones_like(columns))
    np.testing.assert_allclose((back / counts).numpy(), image.numpy(), rtol=1e-5, atol=1e-6)
    # A convolution is a product with the columns.
    weight = x(5, 8, 2, 3)
    product = weight.reshape((5, -1)) @ columns
    np.testing.assert_allclose(
        product.reshape((2, 5, 4, 4)).numpy(), F.conv2d(image, weight, padding=1).numpy(),
        rtol=1e-4, atol=1e-4,
    )  # fmt: skip


# ---- lazy --------------------------------------------------------------------------------------

LAZY = [
    (lambda: nn.LazyLinear(3), nn.Linear, (4, 7), (3, 7)),
    (lambda: nn.LazyConv1d(4, 3, groups=2), nn.Conv1d, (2, 6, 5), (4, 3, 3)),
    (lambda: nn.LazyConv2d(4, 3), nn.Conv2d, (2, 6, 5, 5), (4, 6, 3, 3)),
    (lambda: nn.LazyConv3d(4, 3, 1, 1), nn.Conv3d, (2, 6, 3, 3, 3), (4, 6, 3, 3, 3)),
    (lambda: nn.LazyConvTranspose1d(4, 3), nn.ConvTranspose1d, (2, 6, 5), (6, 4, 3)),
    (lambda: nn.LazyConvTranspose2d(4, 3), nn.ConvTranspose2d, (2, 6, 5, 5), (6, 4, 3, 3)),
    (lambda: nn.LazyConvTranspose3d(4, 1), nn.ConvTranspose3d, (2, 6, 3, 3, 3), (6, 4, 1, 1, 1)),
    (lambda: nn.LazyBatchNorm1d(), nn.BatchNorm1d, (4, 3), (3,)),
    (lambda: nn.LazyBatchNorm2d(), nn.BatchNorm2d, (4, 3, 2, 2), (3,)),
    (lambda: nn.LazyBatchNorm3d(), nn.BatchNorm3d, (4, 3, 2, 2, 2), (3,)),
]
IDS = [plain.__name__ for _, plain, _, _ in LAZY]


@pytest.mark.parametrize("make, plain, shape, weight", LAZY, ids=IDS)
def test_lazy_layers_become_plain(make, plain, shape, weight):
    layer = make()
    assert layer.has_uninitialized_params() and isinstance(layer, plain)
    assert isinstance(layer.weight, nn.UninitializedParameter)
    with pytest.raises(RuntimeError, match="uninitialized"):
        layer.weight.shape
    held = layer.weight
    output = layer(x(*shape))
    assert type(layer) is plain and layer.weight is held and type(held) is nn.Parameter
    assert layer.weight.shape == weight and treadle.isfinite(output).all()
    assert not layer._forward_pre_hooks and not layer._load_state_dict_pre_hooks
    output.sum().backward()
    assert layer.weight.grad.shape == weight
    again = layer(x(*shape))
    assert again.shape == output.shape


@pytest.mark.parametrize("make, plain, shape, weight", LAZY, ids=IDS)
def test_lazy_layers_load(make, plain, shape, weight):
    trained = make()
    trained(x(*shape))
    layer = make()
    layer.load_state_dict(trained.state_dict())
    assert not layer.has_uninitialized_params() and treadle.equal(layer.weight, trained.weight)
    given = x(*shape)
    assert treadle.equal(layer.eval()(given), trained.eval()(given)) and type(layer) is plain
    # A layer that waits may be saved and loaded too, and copied.
    waiting = make()
    waiting.load_state_dict(make().state_dict())
    twin = copy.deepcopy(waiting)
    twin(x(*shape))
    assert type(twin) is plain and waiting.has_uninitialized_params()
    with pytest.raises(RuntimeError, match="uninitialized"):
        trained.load_state_dict(make().state_dict())


def test_lazy_settings():
    layer = nn.LazyConv2d(4, 3, 1, 0, 1, 1, False)
    assert layer.bias is None
    layer(x(1, 2, 5, 5))
    assert layer.bias is None and layer.in_channels == 2
    assert nn.LazyLinear(3, bias=False).bias is None
    assert nn.LazyLinear(3, dtype=treadle.float64)(x(2, 4).double()).dtype == treadle.float64
    lazy = nn.Sequential(nn.LazyLinear(3), nn.ReLU(), nn.LazyLinear(2)).double()
    assert lazy(x(2, 5).double()).shape == (2, 2) and lazy[2].weight.shape == (2, 3)
    waiting = pickle.loads(pickle.dumps(nn.LazyConv1d(2, 1)))
    assert waiting(x(1, 3, 4)).shape == (1, 2, 4) and type(waiting) is nn.Conv1d
    restored = pickle.loads(pickle.dumps(nn.UninitializedParameter(dtype=treadle.float64)))
    assert isinstance(restored, nn.UninitializedParameter) and restored.dtype == treadle.float64


LARGE_WEIGHTS = [  # channels, filters, size, kernel, stride
    (128, 256, 6, 3, 1),
    (96, 192, 9, 3, 2),
    (520, 512, 4, 1, 1),
    (64, 160, 3, 5, 1),
    (33, 480, 4, 3, 1),
    (256, 257, 4, 3, 1),
    (300, 220, 7, 3, 2),
    (96, 330, 2, 5, 1),
    (1040, 512, 7, 1, 1),
]


@pytest.mark.parametrize("dtype", (treadle.float32, treadle.bfloat16), ids=str)
@pytest.mark.parametrize("channels, filters, size, kernel, stride", LARGE_WEIGHTS, ids=str)
def test_large_weights(channels, filters, size, kernel, stride, dtype):
    image = x(15, channels, size, size).to(dtype).requires_grad_()
    weight = (x(filters, channels, kernel, kernel) / kernel).to(dtype).requires_grad_()
    bias = x(filters).to(dtype).requires_grad_()

    def computed(*leaves):
        y = F.conv2d(*leaves, stride=stride, padding=kernel // 2)
        return y, *treadle.autograd.grad(y, leaves, treadle.ones_like(y).tril())

    results, before = [], treadle.get_num_threads()
    for threads in (1, 2, 3):
        treadle.set_num_threads(threads)
        try:
            results.append(computed(image, weight, bias))
        finally:
            treadle.set_num_threads(before)
    alone = F.conv2d(image[7:8], weight, bias, stride, kernel // 2)
    assert treadle.equal(alone, results[0][0][7:8])
    wide = [t.detach().double().requires_grad_() for t in (image, weight, bias)]
    rounding = 2**-8 if dtype == treadle.bfloat16 else 2**-20
    for got, alike, also, right in zip(*results, computed(*wide)):
        assert treadle.equal(got, alike) and treadle.equal(got, also)
        error = (got.double() - right).abs().max()
        assert error <= rounding * right.abs().max(), error
