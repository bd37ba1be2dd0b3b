"""Resampling: images made larger or smaller, sampled at points of a grid, or with pixels moved to
and from the channels."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
import warnings
from typing import Any, Optional, Sequence

from treadle._C import Tensor

from .._operators import ops
from .pooling import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d

# The operators themselves.
pixel_shuffle = ops.pixel_shuffle
pixel_unshuffle = ops.pixel_unshuffle
channel_shuffle = ops.channel_shuffle


_NEAREST = ("nearest", "nearest-exact", "area")
_LINEAR = {"linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3}


def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: Optional[bool] = None,
    recompute_scale_factor: Optional[bool] = None,
    antialias: bool = False,
) -> Tensor:
    """(N, C, ...) made `size` or `scale_factor` times as large.

    Modes: nearest, nearest-exact, area (mean), and by number of spatial dimensions linear;
    bilinear, bicubic; trilinear. With align_corners the centres of the outer elements stay in
    place, else their outer edges.
    """
    _check_mode(input, mode, align_corners, antialias)
    dims = input.dim() - 2
    sizes, scales = _sizes_and_scales(input, dims, size, scale_factor, mode, recompute_scale_factor)
    if mode == "area":
        pools = (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d)
        return pools[dims - 1](input, sizes)
    factors = scales if scales is not None else [None] * dims
    if mode == "nearest":
        return getattr(ops, f"upsample_nearest{dims}d")(input, sizes, *factors)
    if mode == "nearest-exact":
        return getattr(ops, f"_upsample_nearest_exact{dims}d")(input, sizes, *factors)
    name = f"upsample_{mode}{dims}d"
    if antialias:
        name = f"_{name}_aa"
    return getattr(ops, name)(input, sizes, bool(align_corners), *factors)


def _check_mode(input: Tensor, mode: str, align_corners: Optional[bool], antialias: bool) -> None:
    if mode in _NEAREST and align_corners is not None:
        raise ValueError(
            "align_corners option can only be set with the interpolating modes: linear | bilinear "
            "| bicubic | trilinear"
        )
    if antialias and not (mode in ("bilinear", "bicubic") and input.dim() == 4):
        raise ValueError(
            "Anti-alias option is restricted to bilinear and bicubic modes and requires a 4-D "
            "tensor as input"
        )
    if not 3 <= input.dim() <= 5 or (mode not in _NEAREST and mode not in _LINEAR):
        raise NotImplementedError(
            "Input Error: Only 3D, 4D and 5D input Tensors supported (got "
            f"{input.dim()}D) for the modes: nearest | linear | bilinear | bicubic | trilinear | "
            f"area | nearest-exact (got {mode})"
        )
    if mode in _LINEAR and _LINEAR[mode] != input.dim() - 2:
        raise NotImplementedError(
            f"Got {input.dim()}D input, but {mode} mode needs {_LINEAR[mode] + 2}D input"
        )


def _sizes_and_scales(
    input: Tensor,
    dims: int,
    size: Any,
    scale_factor: Any,
    mode: str,
    recompute_scale_factor: Optional[bool],
) -> tuple[list[int], Optional[list[float]]]:
    """The output size, and the scales it came from where they count."""
    if (size is None) == (scale_factor is None):
        if size is not None:
            raise ValueError("only one of size or scale_factor should be defined")
        raise ValueError("either size or scale_factor should be defined")
    if size is not None:
        if recompute_scale_factor:
            raise ValueError(
                "recompute_scale_factor is not meaningful when size is explicitly specified"
            )
        return _list_of("size", size, dims, input), None
    scales = [float(scale) for scale in _list_of("scale_factor", scale_factor, dims, input)]
    for scale in scales:
        if not (math.isfinite(scale) and abs(scale) < 2.0**62):
            raise ValueError(f"interpolate: expected finite scale factors, got {scales}")
    sizes = [math.floor(float(n) * scale) for n, scale in zip(tuple(input.shape[2:]), scales)]
    return sizes, None if recompute_scale_factor or mode == "area" else scales


def _list_of(name: str, value: Any, dims: int, input: Tensor) -> list:
    if not isinstance(value, (list, tuple)):
        return [value] * dims
    if len(value) != dims:
        raise ValueError(
            "Input and output must have the same number of spatial dimensions, but got input with "
            f"spatial dimensions of {list(input.shape[2:])} and {name} of {tuple(value)}"
        )
    return list(value)


def upsample(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: Optional[bool] = None,
) -> Tensor:
    """An older name of :func:`interpolate`."""
    warnings.warn(
        "`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.",
        stacklevel=2,
    )
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """An older name of :func:`interpolate` with mode 'nearest'."""
    warnings.warn(
        "`nn.functional.upsample_nearest` is deprecated. Use `nn.functional.interpolate` instead.",
        stacklevel=2,
    )
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """An older name of :func:`interpolate` with mode 'bilinear' and align_corners."""
    warnings.warn(
        "`nn.functional.upsample_bilinear` is deprecated. Use `nn.functional.interpolate` instead.",
        stacklevel=2,
    )
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


_SAMPLE_MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
_SAMPLE_PADDING = {"zeros": 0, "border": 1, "reflection": 2}


def _warn_of_default_corners(align_corners: Optional[bool]) -> bool:
    if align_corners is None:
        warnings.warn(
            "Default grid_sample and affine_grid behavior has changed to align_corners=False since "
            "1.3.0. Please specify align_corners=True if the old behavior is desired. See the "
            "documentation of grid_sample for details.",
            stacklevel=3,
        )
        return False
    return align_corners


def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: Optional[bool] = None,
) -> Tensor:
    """The values of (N, C, H, W) or (N, C, D, H, W) at the points of `grid`, coordinates in
    [-1, 1]."""
    if mode not in _SAMPLE_MODES:
        raise ValueError(
            "nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', "
            f"but got: '{mode}'"
        )
    if padding_mode not in _SAMPLE_PADDING:
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or "
            f"'reflection', but got: '{padding_mode}'"
        )
    corners = _warn_of_default_corners(align_corners)
    return ops.grid_sampler(
        input, grid, _SAMPLE_MODES[mode], _SAMPLE_PADDING[padding_mode], corners
    )


def affine_grid(theta: Tensor, size: Sequence[int], align_corners: Optional[bool] = None) -> Tensor:
    """The grid that samples an image of `size` (N, C, H, W) or (N, C, D, H, W) by affine maps."""
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    return ops.affine_grid_generator(theta, size, _warn_of_default_corners(align_corners))


native_channel_shuffle = channel_shuffle
