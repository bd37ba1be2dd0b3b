"""The memory formats of results: which operators on images keep channels_last and channels_last_3d,
as docs/contract.md says, and that the values do not depend on them.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import importlib
from typing import Any, Callable, Iterator

import numpy as np
import pytest

import treadle
from source_tree import ROOT
from treadle_testing import device
from treadle_testing.check import same_bits

pytestmark = pytest.mark.skipif(
    device.kind() != "cpu", reason="kernels of other devices give contiguous results"
)

functional = treadle.nn.functional
Call = Callable[..., Any]


def last_format(rank: int) -> treadle.memory_format:
    return treadle.channels_last if rank == 4 else treadle.channels_last_3d


def last(t: treadle.Tensor) -> treadle.Tensor:
    """`t` with channels innermost, also where its strides would fit both formats."""
    return t.to(memory_format=last_format(t.dim()))


def strides_last(t: treadle.Tensor) -> tuple[int, ...]:
    return treadle.empty(t.shape, memory_format=last_format(t.dim())).stride()


WEIGHT = np.random.default_rng(0).standard_normal((8, 4, 3, 3, 3)).astype(np.float32)


def weight(x: treadle.Tensor, *shape: int) -> treadle.Tensor:
    """Some weights of the dtype of `x`."""
    return treadle.from_numpy(np.resize(WEIGHT, shape)).to(x.dtype)


# Operators that keep the format of images (N, 4, H, W), and with these names that of volumes
# (N, 4, D, H, W).
IMAGES: dict[str, Call] = {
    "conv": lambda x: functional.conv2d(x, weight(x, 8, 4, 3, 3), weight(x, 8), padding=1),
    "conv strided": lambda x: functional.conv2d(x, weight(x, 8, 4, 3, 2), stride=2, padding=(1, 0)),
    "conv 1x1": lambda x: functional.conv2d(x, weight(x, 6, 4, 1, 1)),
    "conv dilated": lambda x: functional.conv2d(x, weight(x, 8, 4, 2, 2), dilation=2),
    "conv in groups": lambda x: functional.conv2d(x, weight(x, 6, 2, 3, 3), weight(x, 6), groups=2),
    "conv depthwise": lambda x: functional.conv2d(x, weight(x, 4, 1, 3, 3), groups=4),
    "conv to one": lambda x: functional.conv2d(x, weight(x, 1, 4, 3, 3)),
    "conv same": lambda x: functional.conv2d(x, weight(x, 4, 4, 2, 2), padding="same"),
    "conv transposed": lambda x: functional.conv_transpose2d(
        x, weight(x, 4, 6, 3, 3), weight(x, 6), stride=2, output_padding=1
    ),
    "max_pool": lambda x: functional.max_pool2d(x, 3, 2, 1, return_indices=True),
    "max_pool dilated": lambda x: functional.max_pool2d(
        x, 2, 1, dilation=2, ceil_mode=True, return_indices=True
    ),
    "avg_pool": lambda x: functional.avg_pool2d(x, 3, 2, 1, ceil_mode=True),
    "avg_pool inside": lambda x: functional.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
    "avg_pool divided": lambda x: functional.avg_pool2d(x, 2, divisor_override=3),
    "adaptive_avg_pool": lambda x: functional.adaptive_avg_pool2d(x, (3, 4)),
    "adaptive_avg_pool to one": lambda x: functional.adaptive_avg_pool2d(x, 1),
    "adaptive_max_pool": lambda x: functional.adaptive_max_pool2d(x, (3, 4), return_indices=True),
    "adaptive_max_pool to one": lambda x: functional.adaptive_max_pool2d(x, 1),
    "nearest": lambda x: functional.interpolate(x, scale_factor=2),
    "nearest-exact": lambda x: functional.interpolate(x, size=(11, 4), mode="nearest-exact"),
    "bilinear": lambda x: functional.interpolate(x, scale_factor=1.5, mode="bilinear"),
    "bicubic": lambda x: functional.interpolate(x, scale_factor=2, mode="bicubic"),
    "antialias": lambda x: functional.interpolate(
        x, scale_factor=0.5, mode="bilinear", antialias=True
    ),
    "group_norm": lambda x: functional.group_norm(x, 2, weight(x, 4), weight(x, 4)),
    "batch_norm": lambda x: functional.batch_norm(x, None, None, weight(x, 4), training=True),
    "cat of batches": lambda x: treadle.cat([x, x * 2]),
    "cat of channels": lambda x: treadle.cat([x, x[:, :3] * 2], 1),
    "cat of rows": lambda x: treadle.cat([x, x[:, :, 1:]], -2),
    "pad": lambda x: functional.pad(x, (1, 2, 0, -1), value=3.0),
}
VOLUMES: dict[str, Call] = {
    "conv": lambda x: functional.conv3d(x, weight(x, 8, 4, 3, 3, 3), weight(x, 8), padding=1),
    "conv depthwise": lambda x: functional.conv3d(x, weight(x, 4, 1, 2, 2, 2), groups=4),
    "conv transposed": lambda x: functional.conv_transpose3d(x, weight(x, 4, 6, 2, 2, 2), stride=2),
    "max_pool": lambda x: functional.max_pool3d(x, 2, 1, 1, return_indices=True),
    "avg_pool": lambda x: functional.avg_pool3d(x, 3, 2, 1),
    "adaptive_avg_pool": lambda x: functional.adaptive_avg_pool3d(x, (2, 3, 1)),
    "adaptive_max_pool": lambda x: functional.adaptive_max_pool3d(x, (2, 3, 1)),
    "nearest": lambda x: functional.interpolate(x, scale_factor=2),
    "trilinear": lambda x: functional.interpolate(x, scale_factor=1.5, mode="trilinear"),
    "group_norm": lambda x: functional.group_norm(x, 4),
    "cat": lambda x: treadle.cat([x, x], 1),
}
CASES = [((2, 4, 7, 6), name) for name in IMAGES] + [((2, 4, 5, 6, 4), name) for name in VOLUMES]


def results(call: Call, x: treadle.Tensor) -> list[treadle.Tensor]:
    got = call(x)
    return list(got) if isinstance(got, tuple) else [got]


def gradients(y: treadle.Tensor, x: treadle.Tensor, of: treadle.Tensor) -> treadle.Tensor:
    return treadle.autograd.grad(y, x, of, retain_graph=True)[0]


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("shape, name", CASES)
def test_images_keep_their_format_and_values(shape: Any, name: str, dtype: str) -> None:
    call = (IMAGES if len(shape) == 4 else VOLUMES)[name]
    treadle.manual_seed(0)
    plain = treadle.randn(shape).to(getattr(treadle, dtype)).requires_grad_()
    turned = last(plain.detach()).requires_grad_()
    wanted, got = results(call, plain), results(call, turned)
    for w, g in zip(wanted, got):
        assert w.is_contiguous() and g.stride() == strides_last(g)
        if g.is_floating_point():
            treadle.testing.assert_close(g, w, check_stride=False)
        else:
            assert treadle.equal(g, w), "the indices"
    grad = treadle.randn(wanted[0].shape).to(plain.dtype)
    wanted_gradient = gradients(wanted[0], plain, grad)
    got_gradient = gradients(got[0], turned, last(grad))
    assert got_gradient.stride() == turned.stride()
    treadle.testing.assert_close(got_gradient, wanted_gradient, check_stride=False)
    # A gradient of another layout has the same values.
    treadle.testing.assert_close(
        gradients(got[0], turned, grad), wanted_gradient, check_stride=False
    )


@pytest.mark.parametrize("shape, name", CASES)
def test_results_have_the_same_bits_at_any_number_of_threads(shape: Any, name: str) -> None:
    call = (IMAGES if len(shape) == 4 else VOLUMES)[name]
    treadle.manual_seed(0)
    x = last(treadle.randn((5, *shape[1:]))).requires_grad_()
    before = treadle.get_num_threads()
    seen = []
    try:
        for threads in (1, 2, 3):
            treadle.set_num_threads(threads)
            got = results(call, x)
            seen.append([*got, gradients(got[0], x, treadle.ones_like(got[0]))])
    finally:
        treadle.set_num_threads(before)
    assert same_bits(seen[1], seen[0]) and same_bits(seen[2], seen[0])


@pytest.mark.parametrize("name", ["max_pool", "max_pool dilated", "adaptive_max_pool"])
def test_max_pooling_chooses_the_same_among_equals_and_nan(name: str) -> None:
    rng = np.random.default_rng(1)
    values = rng.choice(np.array([0, 1, np.nan, -np.inf], np.float32), (3, 20, 7, 6))
    x = treadle.from_numpy(values)
    for wanted, got in zip(IMAGES[name](x), IMAGES[name](last(x))):
        assert same_bits([got.contiguous()], [wanted])


def test_max_pooling_refuses_indices_out_of_range() -> None:
    grad = last(treadle.ones(1, 4, 2, 2))
    indices = last(treadle.full((1, 4, 2, 2), 16))
    with pytest.raises(RuntimeError) as info:
        treadle.ops.aten._max_pool_backward(grad, indices, [1, 4, 4, 4], 2)
    assert str(info.value) == "_max_pool_backward: expected indices in [0, 16), got 16"


def test_a_second_gradient_of_pooling_is_right() -> None:
    treadle.manual_seed(0)
    for name in ("max_pool", "avg_pool", "adaptive_avg_pool", "adaptive_max_pool"):
        x = last(treadle.randn(2, 3, 6, 5, dtype=treadle.float64)).requires_grad_()
        call = IMAGES[name]
        assert treadle.autograd.gradgradcheck(lambda t: results(call, t)[0], (x,)), name


@pytest.mark.parametrize("rank", [4, 5])
@pytest.mark.parametrize("image", [False, True])
@pytest.mark.parametrize("kernel", [False, True])
def test_a_convolution_has_channels_innermost_if_either_has(
    image: bool, kernel: bool, rank: int
) -> None:
    form = treadle.nn.functional.conv2d if rank == 4 else treadle.nn.functional.conv3d
    x, w = treadle.rand([2, 4, 5, 5, 5][:rank]), treadle.rand([6, 4, 2, 2, 2][:rank])
    x, w = (last(x) if image else x).requires_grad_(), (last(w) if kernel else w).requires_grad_()
    y = form(x, w)
    kept = [y, *treadle.autograd.grad(y.sum(), [x, w])]
    for t in kept:
        assert t.stride() == (
            strides_last(t) if image or kernel else treadle.empty(t.shape).stride()
        )


# Shape, whether it is channels_last, and the strides of a pooling to half the size and of a 1x1
# convolution of that to 3 channels, by weights in the contiguous format; as PyTorch has them.
AMBIGUOUS = [
    ((2, 1, 8, 6), False, (12, 12, 3, 1), (36, 12, 3, 1)),
    ((2, 1, 8, 6), True, (12, 1, 3, 1), (36, 1, 9, 3)),
    ((2, 4, 2, 2), False, (4, 1, 1, 1), (3, 1, 1, 1)),
    ((2, 4, 2, 2), True, (4, 1, 4, 4), (3, 1, 3, 3)),
    ((2, 1, 2, 2), False, (1, 1, 1, 1), (3, 1, 1, 1)),
    ((2, 1, 2, 2), True, (1, 1, 1, 1), (3, 1, 1, 1)),
]


@pytest.mark.parametrize("shape, turned, pooled, convolved", AMBIGUOUS)
def test_the_strides_of_one_channel_or_pixel_say_the_format(
    shape: Any, turned: bool, pooled: tuple[int, ...], convolved: tuple[int, ...]
) -> None:
    x = last(treadle.rand(shape)) if turned else treadle.rand(shape)
    y = functional.max_pool2d(x, 2)
    assert y.stride() == pooled
    assert functional.conv2d(y, treadle.rand(3, shape[1], 1, 1)).stride() == convolved


def test_other_layouts_give_contiguous_results() -> None:
    turned = treadle.rand(6, 5, 4, 2).permute(3, 2, 1, 0)
    for name, call in IMAGES.items():
        if name == "batch_norm":
            continue
        assert all(t.is_contiguous() for t in results(call, turned)), name
    unbatched = treadle.rand(7, 6, 4).permute(2, 0, 1)
    assert functional.conv2d(unbatched, treadle.rand(8, 4, 3, 3)).is_contiguous()
    assert functional.max_pool2d(unbatched, 2).is_contiguous()
    one_sided = treadle.cat([last(treadle.rand(2, 4, 3, 3)), treadle.rand(2, 4, 3, 3)], 1)
    assert one_sided.is_contiguous()


def test_a_module_moves_its_weights_to_a_format() -> None:
    nn = treadle.nn
    model = nn.Sequential(
        nn.Conv2d(4, 8, 3), nn.Conv2d(8, 6, 1), nn.Conv3d(6, 2, 2), nn.Linear(2, 3)
    )
    assert model.to(memory_format=treadle.channels_last) is model
    assert [p.stride() for p in model.parameters()] == [
        (36, 1, 12, 4), (1,), (8, 1, 8, 8), (1,), (48, 8, 4, 2, 1), (1,), (2, 1), (1,)
    ]  # fmt: skip
    model.to(memory_format=treadle.contiguous_format)
    assert all(p.stride() == treadle.empty(p.shape).stride() for p in model.parameters())
    model[2:].to(memory_format=treadle.channels_last_3d)
    assert model[2].weight.stride() == (48, 1, 24, 12, 6)


@pytest.fixture(scope="module")
def networks() -> Iterator[Any]:
    """The module of the networks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benchmarks"))
        yield importlib.import_module("_networks")


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("model", ["ResNet-50", "MobileNetV2"])
def test_models_keep_channels_last(model: str, training: bool, networks: Any) -> None:
    """Each module's result, the gradient of each, and the gradients of parameters have the strides
    that PyTorch's have, except that PyTorch's gradient of a global average is contiguous."""
    job = networks.NETWORKS[model](treadle, "cpu", 2, True)
    network = job.model.to(memory_format=treadle.channels_last).train(training)
    image = last(job.inputs[0]).requires_grad_()
    seen: list[tuple[treadle.Tensor, list[treadle.Tensor]]] = []

    def watch(_module: Any, _args: Any, result: treadle.Tensor) -> None:
        gradients: list[treadle.Tensor] = []
        result.register_hook(gradients.append)
        seen.append((result, gradients))

    for module in network.modules():
        module.register_forward_hook(watch)
    job.loss(network(image)).backward()
    images = [(result, each) for result, each in seen if result.dim() == 4]
    assert len(images) > 150
    for result, each in images:
        assert result.stride() == strides_last(result)
        if result.shape[2] > 1:  # the gradient of a pixel comes from a matrix
            assert [g.stride() for g in each] == [result.stride()]
    assert image.grad is not None and image.grad.stride() == image.stride()
    for p in network.parameters():
        assert p.grad is not None and p.grad.stride() == p.stride()
        assert p.dim() != 4 or p.stride() == strides_last(p)
