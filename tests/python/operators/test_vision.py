"""torchvision's operators, against loops over numbers."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import itertools
import math
from typing import Any, Iterator, Tuple

import numpy as np
import pytest

import treadle
import treadle._vision
from treadle.autograd import gradcheck

treadle._vision.define()
ops = treadle.ops.torchvision
RNG = np.random.default_rng(0)
# Regions (image, x1, y1, x2, y2): inside, over the border, of a line, outside.
ROIS = np.array(
    [
        [0, 1.2, 0.7, 8.4, 5.1],
        [1, -3.0, 2.0, 4.0, 9.0],
        [0, 3.0, 3.0, 3.2, 7.0],
        [1, 20.0, 20.0, 30.0, 30.0],
    ]
)
HEIGHT, WIDTH, BINS = 6, 9, (2, 3)


def _image(channels: int) -> np.ndarray:
    return RNG.standard_normal((2, channels, HEIGHT, WIDTH))


def _bilinear(plane: np.ndarray, y: float, x: float) -> float:
    """Between pixels; the border goes on for one pixel."""
    height, width = plane.shape
    if y < -1 or y > height or x < -1 or x > width:
        return 0.0
    y, x = min(max(y, 0.0), height - 1.0), min(max(x, 0.0), width - 1.0)
    top, left = int(y), int(x)
    bottom, right = min(top + 1, height - 1), min(left + 1, width - 1)
    fy, fx = y - top, x - left
    upper = plane[top, left] * (1 - fx) + plane[top, right] * fx
    return upper * (1 - fy) + (plane[bottom, left] * (1 - fx) + plane[bottom, right] * fx) * fy


def _mean_of_samples(
    plane: np.ndarray,
    roi: np.ndarray,
    bin_at: Tuple[int, int],
    scale: float,
    ratio: int,
    aligned: bool,
) -> float:
    shift = 0.5 if aligned else 0.0
    x, y, x_end, y_end = roi[1:] * scale - shift
    high, wide = y_end - y, x_end - x
    if not aligned:
        high, wide = max(high, 1.0), max(wide, 1.0)
    high, wide = high / BINS[0], wide / BINS[1]
    count_y = ratio if ratio > 0 else max(math.ceil(high), 1)
    count_x = ratio if ratio > 0 else max(math.ceil(wide), 1)
    samples = [
        _bilinear(
            plane,
            y + (bin_at[0] + (i + 0.5) / count_y) * high,
            x + (bin_at[1] + (j + 0.5) / count_x) * wide,
        )
        for i, j in itertools.product(range(count_y), range(count_x))
    ]
    return sum(samples) / len(samples)


def _bins(channels: int) -> Iterator[Tuple[int, int, Tuple[int, int]]]:
    for k, c in itertools.product(range(len(ROIS)), range(channels)):
        for bin_at in itertools.product(range(BINS[0]), range(BINS[1])):
            yield k, c, bin_at


@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("ratio", [-1, 2])
@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_roi_align(scale: float, ratio: int, aligned: bool) -> None:
    image = _image(3)
    expected = np.zeros((len(ROIS), 3, *BINS))
    for k, c, at in _bins(3):
        plane = image[int(ROIS[k, 0]), c]
        expected[(k, c, *at)] = _mean_of_samples(plane, ROIS[k], at, scale, ratio, aligned)
    x, rois = treadle.tensor(image), treadle.tensor(ROIS)
    found = ops.roi_align(x, rois, scale, *BINS, ratio, aligned)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-10, atol=1e-12)
    half = ops.roi_align(x.half(), rois.half(), scale, *BINS, ratio, aligned)
    assert half.dtype == treadle.float16
    none = ops.roi_align(x, rois[:0], scale, *BINS, ratio, aligned)
    assert none.shape == (0, 3, *BINS)


@pytest.mark.parametrize("ratio", [-1, 2])
def test_ps_roi_align(ratio: int) -> None:
    image = _image(12)
    expected = np.zeros((len(ROIS), 2, *BINS))
    channel = np.zeros(expected.shape, np.int32)
    for k, c, at in _bins(2):
        which = (c * BINS[0] + at[0]) * BINS[1] + at[1]
        plane = image[int(ROIS[k, 0]), which]
        channel[(k, c, *at)] = which
        expected[(k, c, *at)] = _mean_of_samples(plane, ROIS[k], at, 0.5, ratio, True)
    found, mapping = ops.ps_roi_align(
        treadle.tensor(image), treadle.tensor(ROIS), 0.5, *BINS, ratio
    )
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-10, atol=1e-12)
    assert mapping.dtype == treadle.int32 and (mapping.numpy() == channel).all()


def _window(roi: np.ndarray, at: Tuple[int, int], scale: float, extra: int, last: int) -> Any:
    """The rows and columns of a bin."""
    x, y, x_end, y_end = (math.floor(abs(v) + 0.5) * (1 if v >= 0 else -1) for v in roi[1:] * scale)
    spans = []
    for start, end, bins, i, size in (
        (y, y_end, BINS[0], at[0], HEIGHT),
        (x, x_end, BINS[1], at[1], WIDTH),
    ):
        step = np.float32(max(end - start + extra, 1)) / np.float32(bins)
        low, high = math.floor(i * step) + start, math.ceil((i + 1) * step) + start
        spans.append(range(min(max(low, 0), size - last), min(max(high, 0), size - last)))
    return spans


@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_roi_pool(scale: float) -> None:
    image = _image(3)
    expected = np.zeros((len(ROIS), 3, *BINS))
    place = np.full(expected.shape, -1, np.int32)
    for k, c, at in _bins(3):
        rows, columns = _window(ROIS[k], at, scale, 1, 0)
        pixels = [(y, x) for y in rows for x in columns]
        if pixels:
            plane = image[int(ROIS[k, 0]), c]
            y, x = max(pixels, key=lambda p: plane[p])
            expected[(k, c, *at)], place[(k, c, *at)] = plane[y, x], y * WIDTH + x
    found, argmax = ops.roi_pool(treadle.tensor(image), treadle.tensor(ROIS), scale, *BINS)
    assert (found.numpy() == expected).all()
    assert argmax.dtype == treadle.int32 and (argmax.numpy() == place).all()
    assert (place == -1).any()


@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_ps_roi_pool(scale: float) -> None:
    image = _image(12)
    expected = np.zeros((len(ROIS), 2, *BINS))
    for k, c, at in _bins(2):
        rows, columns = _window(ROIS[k], at, scale, 0, 1)
        plane = image[int(ROIS[k, 0]), (c * BINS[0] + at[0]) * BINS[1] + at[1]]
        values = [plane[y, x] for y in rows for x in columns]
        expected[(k, c, *at)] = sum(values) / len(values) if values else 0.0
    found, _ = ops.ps_roi_pool(treadle.tensor(image), treadle.tensor(ROIS), scale, *BINS)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-10, atol=1e-12)


def test_gradients_of_regions() -> None:
    rois = treadle.tensor(ROIS)
    window = (0.5, *BINS)
    x, many = (treadle.tensor(_image(c), requires_grad=True) for c in (2, 6))
    assert gradcheck(lambda x: ops.roi_align(x, rois, *window, -1, False), x)
    assert gradcheck(lambda x: ops.roi_align(x, rois, *window, 2, True), x)
    assert gradcheck(lambda x: ops.ps_roi_align(x, rois, *window, 2)[0], many)
    assert gradcheck(lambda x: ops.ps_roi_pool(x, rois, *window)[0], many)
    assert gradcheck(lambda x: ops.roi_pool(x, rois, *window)[0], x)
    # The functions that torchvision calls for the same.
    size = tuple(x.shape)
    pooled, argmax = ops.roi_pool(x, rois, *window)
    grad = treadle.rand_like(pooled)
    expected = treadle.autograd.grad(pooled, x, grad)[0]
    assert treadle.equal(ops._roi_pool_backward(grad, rois, argmax, *window, *size), expected)
    aligned = ops.roi_align(x, rois, *window, 2, True)
    expected = treadle.autograd.grad(aligned, x, grad)[0]
    assert treadle.equal(ops._roi_align_backward(grad, rois, *window, *size, 2, True), expected)


def _deformed(
    x: np.ndarray,
    w: np.ndarray,
    o: np.ndarray,
    m: np.ndarray,
    b: np.ndarray,
    stride: int,
    pad: int,
    dilation: int,
    groups: int,
    parts: int,
) -> np.ndarray:
    (batch, channels), (out, _, high, wide) = x.shape[:2], w.shape
    result = np.zeros((batch, out, *o.shape[2:]))
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))

    def read(n: int, c: int, y: float, x: float) -> float:
        inside = -1 < y < HEIGHT and -1 < x < WIDTH
        return _bilinear(padded[n, c], y + 1, x + 1) if inside else 0.0

    for n, f, i, j in itertools.product(*map(range, result.shape)):
        total = b[f]
        for c, p, q in itertools.product(*map(range, w.shape[1:])):
            channel = f // (out // groups) * w.shape[1] + c
            tap = (channel // (channels // parts)) * high * wide + p * wide + q
            y = i * stride - pad + p * dilation + o[n, 2 * tap, i, j]
            at_x = j * stride - pad + q * dilation + o[n, 2 * tap + 1, i, j]
            total += w[f, c, p, q] * m[n, tap, i, j] * read(n, channel, y, at_x)
        result[n, f, i, j] = total
    return result


@pytest.mark.parametrize(
    ("stride", "pad", "dilation", "groups", "parts"), [(1, 0, 1, 1, 1), (2, 1, 1, 2, 4)]
)
def test_deform_conv2d(stride: int, pad: int, dilation: int, groups: int, parts: int) -> None:
    out_h = (HEIGHT + 2 * pad - dilation * 2 - 1) // stride + 1
    out_w = (WIDTH + 2 * pad - dilation - 1) // stride + 1
    arrays = [
        _image(4),
        RNG.standard_normal((4, 4 // groups, 3, 2)),
        RNG.standard_normal((2, 2 * parts * 6, out_h, out_w)) * 2,
        RNG.random((2, parts * 6, out_h, out_w)),
        RNG.standard_normal(4),
    ]
    geometry = (stride, stride, pad, pad, dilation, dilation, groups, parts)
    x, w, o, m, b = (treadle.tensor(a, requires_grad=True) for a in arrays)
    found = ops.deform_conv2d(x, w, o, m, b, *geometry, True)
    expected = _deformed(*arrays, stride, pad, dilation, groups, parts)
    np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-9, atol=1e-10)
    arrays[3][:] = 1.0
    expected = _deformed(*arrays, stride, pad, dilation, groups, parts)
    found_without = ops.deform_conv2d(x, w, o, m, b, *geometry, False)
    np.testing.assert_allclose(found_without.detach().numpy(), expected, rtol=1e-9, atol=1e-10)
    grad = treadle.rand_like(found)
    gradients = treadle.autograd.grad(found, (x, w, o, m, b), grad)
    for a, e in zip(ops._deform_conv2d_backward(grad, x, w, o, m, b, *geometry, True), gradients):
        assert treadle.equal(a, e)


def test_gradients_of_deform_conv2d() -> None:
    def tensor(*shape: int) -> treadle.Tensor:
        return treadle.tensor(RNG.standard_normal(shape), requires_grad=True)

    arguments = (tensor(1, 2, 4, 4), tensor(2, 2, 2, 2), tensor(1, 8, 3, 3), tensor(1, 4, 3, 3))
    geometry = (1, 1, 0, 0, 1, 1, 1, 1, True)
    assert gradcheck(lambda *t: ops.deform_conv2d(*t, *geometry), (*arguments, tensor(2)))


def _kept(boxes: np.ndarray, scores: np.ndarray, threshold: float) -> list:
    kept: list = []
    for i in np.argsort(-scores, kind="stable"):
        overlaps = []
        for j in kept:
            sides = np.minimum(boxes[i, 2:], boxes[j, 2:]) - np.maximum(boxes[i, :2], boxes[j, :2])
            shared = float(np.prod(sides.clip(min=0)))
            sizes = sum(np.prod(boxes[k, 2:] - boxes[k, :2]) for k in (i, j))
            overlaps.append(shared / (sizes - shared))
        if all(overlap <= threshold for overlap in overlaps):
            kept.append(int(i))
    return kept


@pytest.mark.parametrize("count", [0, 1, 7, 300])
@pytest.mark.parametrize("threshold", [0.1, 0.5])
def test_nms(count: int, threshold: float) -> None:
    corner = RNG.random((count, 2)) * 10
    boxes = np.concatenate([corner, corner + RNG.random((count, 2)) * 4 + 0.1], 1)
    scores = RNG.permutation(count) / 7.0
    found = ops.nms(treadle.tensor(boxes), treadle.tensor(scores), threshold)
    assert found.dtype == treadle.int64
    assert found.tolist() == _kept(boxes, scores, threshold)


def test_nms_keeps_boxes_without_size_and_the_order_of_equal_scores() -> None:
    boxes = treadle.tensor([[1.0, 1, 1, 1], [1, 1, 1, 1], [0, 0, 2, 2]])
    assert ops.nms(boxes, treadle.ones(3), 0.5).tolist() == [0, 1, 2]


def test_rotated_boxes() -> None:
    boxes = treadle.tensor(
        [
            [0.0, 0.0, 2.0, 2.0, 0.0],
            [0.0, 0.0, 2.0, 2.0, 90.0],
            [1.0, 0.0, 2.0, 2.0, 0.0],
            [0.0, 0.0, 1.0, 1.0, 30.0],
            [9.0, 9.0, 1.0, 1.0, 10.0],
            [0.0, 0.0, 2.0, 2.0, 45.0],
            [0.0, 0.0, 0.0, 1.0, 45.0],
        ]
    )
    found = ops.box_iou_rotated(boxes, boxes[:1])[:, 0]
    octagon = 8 * (math.sqrt(2) - 1)  # what a square shares with itself turned by 45 degrees
    expected = [1.0, 1.0, 1 / 3, 0.25, 0.0, octagon / (8 - octagon), 0.0]
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-6)


def test_what_torchvision_registers_beside_them_fits() -> None:
    """Shapes for meta tensors, derivatives and autocast, as torchvision does at its import."""
    meta = treadle.library.Library("torchvision", "IMPL", "Meta")
    meta.impl(ops.nms.default, lambda dets, scores, threshold: dets.new_empty(3))
    assert ops.nms(treadle.empty(9, 4, device="meta"), treadle.empty(9, device="meta"), 0.5).is_meta
    meta._destroy()
    window = (0.5, *BINS)
    x = treadle.tensor(_image(2), requires_grad=True)
    rois = treadle.tensor(ROIS)
    library = treadle.library.Library("torchvision", "FRAGMENT")
    calls = []

    def backward(ctx: Any, grad: Any) -> Any:
        calls.append(grad.shape)
        return treadle.ones(ctx.size, dtype=grad.dtype), *[None] * 6

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.size = inputs[0].shape

    treadle.library.register_autograd(
        "torchvision::roi_align", backward, setup_context=setup_context, lib=library
    )
    ops.roi_align(x, rois, *window, 2, True).sum().backward()
    assert calls == [(len(ROIS), 2, *BINS)] and (x.grad == 1).all()
    library._destroy()
    keys = treadle._C.DispatchKeySet(treadle._C.DispatchKey.AutocastCPU)
    library = treadle.library.Library("torchvision", "IMPL")

    def cast(dets: Any, scores: Any, threshold: float) -> Any:
        calls.append("autocast")
        with treadle._C._ExcludeDispatchKeyGuard(keys):
            return ops.nms(dets.float(), scores.float(), threshold)

    for key in ("AutocastCPU", "AutocastXPU"):
        library.impl("nms", cast, key)
    with treadle.autocast("cpu"):
        ops.nms(treadle.rand(2, 4), treadle.rand(2), 0.5)
    assert calls[1:] == ["autocast"]
    library._destroy()


def test_the_compiled_library_of_torchvision_is_replaced(tmp_path: Any) -> None:
    path = tmp_path / "torchvision" / "_C_stable.so"
    path.parent.mkdir()
    path.write_bytes(b"")
    treadle.ops.load_library(path)
    assert str(path) in treadle.ops.loaded_libraries
    assert ops._cuda_version() == -1


IMAGE = treadle.zeros(1, 4, 3, 3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: ops.nms(treadle.zeros(2, 3), treadle.zeros(2), 0.5),
            "nms: expected boxes of shape (N, 4), got (2, 3)",
        ),
        (
            lambda: ops.nms(treadle.zeros(2, 4), treadle.zeros(3), 0.5),
            "nms: expected one score for each of 2 boxes, got the shape (3,)",
        ),
        (
            lambda: ops.box_iou_rotated(treadle.zeros(2, 4), treadle.zeros(2, 5)),
            "box_iou_rotated: expected boxes of shape (N, 5), got (2, 4)",
        ),
        (
            lambda: ops.roi_align(treadle.zeros(1, 2, 3, 3), treadle.zeros(2, 4), 1, 2, 2, 1, True),
            "roi_align: expected rois of shape (K, 5), got (2, 4)",
        ),
        (
            lambda: ops.roi_pool(treadle.zeros(2, 3, 3), treadle.zeros(2, 5), 1, 2, 2),
            "roi_pool: expected an input of shape (N, C, H, W), got (2, 3, 3)",
        ),
        (
            lambda: ops.ps_roi_pool(IMAGE, treadle.zeros(2, 5).double(), 1, 2, 2),
            "ps_roi_pool: expected rois of the input's dtype treadle.float32, got treadle.float64",
        ),
        (
            lambda: ops.ps_roi_align(treadle.zeros(1, 3, 3, 3), treadle.zeros(2, 5), 1, 2, 2, 1),
            "ps_roi_align: expected channels that are a multiple of the 4 bins, got 3",
        ),
    ],
)
def test_what_does_not_fit_is_refused(call: Any, message: str) -> None:
    with pytest.raises(RuntimeError) as error:
        call()
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("shapes", "groups", "message"),
    [
        (
            ((1, 2, 4), (1, 2, 2, 2), (1, 8, 3, 3)),
            (1, 1),
            "deform_conv2d: expected input of four dimensions, got (1, 2, 4)",
        ),
        (
            ((1, 3, 4, 4), (1, 2, 2, 2), (1, 8, 3, 3)),
            (1, 1),
            "deform_conv2d: expected a weight for 3 channels in 1 groups, got (1, 2, 2, 2)",
        ),
        (
            ((1, 2, 4, 4), (1, 2, 2, 2), (1, 8, 3, 3)),
            (1, 3),
            "deform_conv2d: expected channels that are a multiple of the 3 groups of offsets, "
            "got 2",
        ),
        (
            ((1, 2, 1, 4), (1, 2, 2, 2), (1, 8, 3, 3)),
            (1, 1),
            "deform_conv2d: expected an output of at least one pixel, got 0 by 3",
        ),
        (
            ((1, 2, 4, 4), (1, 2, 2, 2), (1, 4, 3, 3)),
            (1, 1),
            "deform_conv2d: expected an offset of shape (1, 8, 3, 3), got (1, 4, 3, 3)",
        ),
        (
            ((1, 2, 4, 4), (1, 2, 2, 2), (1, 8, 3, 3)),
            (1, 1),
            "deform_conv2d: expected a mask of shape (1, 4, 3, 3), got (1, 2, 3, 3)",
        ),
    ],
)
def test_what_does_not_fit_deform_conv2d_is_refused(
    shapes: Any, groups: Tuple[int, int], message: str
) -> None:
    x, w, o = map(treadle.zeros, shapes)
    with pytest.raises(RuntimeError) as error:
        mask = treadle.zeros(1, 2, 3, 3)
        ops.deform_conv2d(x, w, o, mask, treadle.zeros(1), 1, 1, 0, 0, 1, 1, *groups, True)
    assert str(error.value) == message
