"""Boxes: which of them to keep, and how far rotated ones overlap."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math

from treadle import _C
from treadle._C import Tensor
from treadle.autograd.grad_mode import no_grad

# How many of the best boxes are compared with all others at a time.
_BLOCK = 64


def _check_boxes(what: str, dets: Tensor, scores: Tensor) -> None:
    if dets.dim() != 2 or dets.shape[1] != 4:
        raise RuntimeError(f"{what}: expected boxes of shape (N, 4), got {tuple(dets.shape)}")
    if scores.dim() != 1 or scores.shape[0] != dets.shape[0]:
        raise RuntimeError(
            f"{what}: expected one score for each of {dets.shape[0]} boxes, got the shape "
            f"{tuple(scores.shape)}"
        )


def _overlaps(first: Tensor, second: Tensor) -> Tensor:
    """Intersection over union, of shape (len(first), len(second))."""
    corner = _C.maximum(first[:, None, :2], second[:, :2])
    sides = (_C.minimum(first[:, None, 2:], second[:, 2:]) - corner).clamp(min=0)
    shared = sides[..., 0] * sides[..., 1]
    sizes = [(b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1]) for b in (first, second)]
    return shared / (sizes[0][:, None] + sizes[1] - shared)


def _kept_among(covers: Tensor) -> Tensor:
    """A mask of the boxes that stay; they are sorted from best to worst. `covers[i, j]` says that
    i, if it stays, takes out j. Each round is right for one box more at least."""
    covers = covers.triu(1)
    kept = _C.ones(covers.shape[0], dtype=_C.bool, device=covers.device)
    while True:
        then = ~(covers & kept[:, None]).any(0)
        if _C.equal(then, kept):
            return kept
        kept = then


@no_grad()
def nms(dets: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """The boxes that no better one overlaps by more than the threshold, from best to worst: their
    positions in `dets`, int64. Boxes are (x1, y1, x2, y2)."""
    _check_boxes("nms", dets, scores)
    left = scores.argsort(descending=True, stable=True)
    boxes = dets[left].to(_C.promote_types(dets.dtype, _C.float32))
    kept = [left[:0]]
    while left.shape[0]:
        covers = _overlaps(boxes[:_BLOCK], boxes) > iou_threshold
        best = _kept_among(covers[:, :_BLOCK])
        kept.append(left[:_BLOCK][best])
        stays = ~covers[best, _BLOCK:].any(0)
        left, boxes = left[_BLOCK:][stays], boxes[_BLOCK:][stays]
    return _C.cat(kept)


def _corners(boxes: Tensor) -> Tensor:
    """(N, 4, 2): the corners of (centre x, centre y, width, height, degrees), in order around."""
    angle = boxes[:, 4] * (math.pi / 180)
    cos, sin = angle.cos() * 0.5, angle.sin() * 0.5
    wide = _C.stack([cos * boxes[:, 2], -sin * boxes[:, 2]], 1)
    high = _C.stack([sin * boxes[:, 3], cos * boxes[:, 3]], 1)
    turns = [wide + high, wide - high, -wide - high, -wide + high]
    return boxes[:, None, :2] + _C.stack(turns, 1)


def _cross(a: Tensor, b: Tensor) -> Tensor:
    return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]


def _is_inside(points: Tensor, corners: Tensor) -> Tensor:
    """Whether points (..., P, 2) are inside of boxes with corners (..., 4, 2)."""
    origin = corners[..., :1, :]
    inside = None
    for side in (corners[..., 1:2, :] - origin, corners[..., 3:, :] - origin):
        along = ((points - origin) * side).sum(-1)
        length = (side * side).sum(-1)
        slack = length * 1e-6
        within = (along >= -slack) & (along <= length + slack)
        inside = within if inside is None else inside & within
    assert inside is not None
    return inside


def _crossings(first: Tensor, second: Tensor) -> tuple:
    """Where the sides of two boxes cross: points (..., 16, 2), and which of them are there."""
    a, b = first[..., :, None, :], second[..., None, :, :]
    along_a = first.roll(-1, -2)[..., :, None, :] - a
    along_b = second.roll(-1, -2)[..., None, :, :] - b
    area = _cross(along_a, along_b)
    parallel = area.abs() < 1e-14
    area = _C.where(parallel, 1.0, area)
    t, u = _cross(b - a, along_b) / area, _cross(b - a, along_a) / area
    there = ~parallel & (t >= 0) & (t <= 1) & (u >= 0) & (u <= 1)
    points = a + t[..., None] * along_a
    return points.flatten(-3, -2), there.flatten(-2)


def _area_of_hull(points: Tensor, there: Tensor) -> Tensor:
    """The area of the convex polygon whose corners are the points (..., P, 2) that are there."""
    count = there.sum(-1)
    centre = (points * there[..., None]).sum(-2) / count.clamp(min=1)[..., None]
    from_centre = (points - centre[..., None, :]) * there[..., None]
    angle = _C.atan2(from_centre[..., 1], from_centre[..., 0])
    order = _C.where(there, angle, math.inf).argsort(-1)
    around = from_centre.gather(-2, order[..., None].expand_as(from_centre))
    # Points that are not there come last, at the centre, which would close the polygon too early.
    last = _C.arange(points.shape[-2], device=points.device) < count[..., None]
    around = _C.where(last[..., None], around, around[..., :1, :])
    return 0.5 * _cross(around, around.roll(-1, -2)).sum(-1).abs()


@no_grad()
def box_iou_rotated(boxes1: Tensor, boxes2: Tensor) -> Tensor:
    """Intersection over union of rotated boxes (centre x, centre y, width, height, degrees), of
    shape (N, M)."""
    for boxes in (boxes1, boxes2):
        if boxes.dim() != 2 or boxes.shape[1] != 5:
            raise RuntimeError(
                f"box_iou_rotated: expected boxes of shape (N, 5), got {tuple(boxes.shape)}"
            )
    result = _C.promote_types(boxes1.dtype, _C.float32)
    a, b = boxes1.double(), boxes2.double()
    # Around zero: coordinates may be large and boxes small.
    shift = a[:, None, :2] - b[None, :, :2]
    at_zero = [_C.cat([x[:, :2] * 0, x[:, 2:]], 1) for x in (a, b)]
    first = _corners(at_zero[0])[:, None] + shift[:, :, None]
    second = _corners(at_zero[1])[None].expand(a.shape[0], -1, -1, -1)
    points, there = _crossings(first, second)
    points = _C.cat([points, first, second], -2)
    there = _C.cat([there, _is_inside(first, second), _is_inside(second, first)], -1)
    shared = _area_of_hull(points, there)
    size_a, size_b = (a[:, 2] * a[:, 3])[:, None], b[:, 2] * b[:, 3]
    both = (size_a > 1e-14) & (size_b > 1e-14)
    overlap = _C.where(both, shared / (size_a + size_b - shared), 0.0)
    return overlap.to(result)
