"""torchvision's operators, for the package torchvision, whose compiled library is for PyTorch.

    treadle.ops.load_library(".../torchvision/_C_stable.so")     # defines them from this
    treadle.ops.torchvision.nms(boxes, scores, 0.5)

Each is written with operators that have derivatives. torchvision gives some of them derivatives of
its own, which call `_roi_align_backward` and the like; those run the operator's own derivative.
The quantized ones are defined, as torchvision asks for them by name, and have no kernel.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import functools
from typing import Any, Callable, Dict

from treadle import library
from treadle._vision import boxes, deformable, regions
from treadle.library import Library

_WINDOW = "Tensor input, Tensor rois, float spatial_scale, int pooled_height, int pooled_width"
_SCALE = "float spatial_scale, int pooled_height, int pooled_width"
_SIZE = "int batch_size, int channels, int height, int width"
_CONVOLUTION = (
    "Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, int stride_h, "
    "int stride_w, int pad_h, int pad_w, int dilation_h, int dilation_w, int groups, "
    "int offset_groups, bool use_mask"
)

_OPERATORS: Dict[str, Callable[..., Any]] = {
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor": boxes.nms,
    "box_iou_rotated(Tensor boxes1, Tensor boxes2) -> Tensor": boxes.box_iou_rotated,
    f"roi_align({_WINDOW}, int sampling_ratio, bool aligned) -> Tensor": regions.roi_align,
    f"roi_pool({_WINDOW}) -> (Tensor, Tensor)": regions.roi_pool,
    f"ps_roi_align({_WINDOW}, int sampling_ratio) -> (Tensor, Tensor)": regions.ps_roi_align,
    f"ps_roi_pool({_WINDOW}) -> (Tensor, Tensor)": regions.ps_roi_pool,
    f"deform_conv2d({_CONVOLUTION}) -> Tensor": deformable.deform_conv2d,
    f"_roi_align_backward(Tensor grad, Tensor rois, {_SCALE}, {_SIZE}, int sampling_ratio, "
    "bool aligned) -> Tensor": regions.roi_align_backward,
    f"_roi_pool_backward(Tensor grad, Tensor rois, Tensor argmax, {_SCALE}, {_SIZE}) "
    "-> Tensor": regions.roi_pool_backward,
    f"_ps_roi_align_backward(Tensor grad, Tensor rois, Tensor channel_mapping, {_SCALE}, "
    f"int sampling_ratio, {_SIZE}) -> Tensor": regions.ps_roi_align_backward,
    f"_ps_roi_pool_backward(Tensor grad, Tensor rois, Tensor channel_mapping, {_SCALE}, {_SIZE}) "
    "-> Tensor": regions.ps_roi_pool_backward,
    f"_deform_conv2d_backward(Tensor grad, {_CONVOLUTION}) "
    "-> (Tensor, Tensor, Tensor, Tensor, Tensor)": deformable.deform_conv2d_backward,
    "_cuda_version() -> int": lambda: -1,
}

_WITHOUT_KERNEL = (
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qroi_align(Tensor input, Tensor rois, float input_scale, int input_zero_point, "
    "float rois_scale, int rois_zero_point, float spatial_scale, int pooled_height, "
    "int pooled_width, int sampling_ratio, bool aligned) -> Tensor",
)


@functools.lru_cache(maxsize=None)
def define() -> Library:
    """Define them, for as long as the program runs."""
    own = Library("torchvision", "FRAGMENT")
    for schema, function in _OPERATORS.items():
        library.define(own, schema)(function)
    for schema in _WITHOUT_KERNEL:
        own.define(schema)
    return own
