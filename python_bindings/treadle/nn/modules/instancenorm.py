"""Instance normalisation: each channel of each sample shifted and scaled by its own statistics."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any

from treadle._C import Tensor

from .. import functional as F
from .batchnorm import _NormBase


class _InstanceNorm(_NormBase):
    """The common part of the layers: inputs are (N, C, ...) or one sample (C, ...)."""

    dims = 0  # of a sample behind its channels

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )

    def _check_input_dim(self, input: Tensor) -> None:
        alone, batched = self.dims + 1, self.dims + 2
        if input.dim() not in (alone, batched):
            raise ValueError(f"expected {alone}D or {batched}D input (got {input.dim()}D input)")

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        channel = input.dim() - self.dims - 1
        if input.shape[channel] != self.num_features and self.affine:
            raise ValueError(
                f"expected input's size at dim={channel} to match num_features "
                f"({self.num_features}), but got: {input.shape[channel]}."
            )
        if channel == 0:
            return self._normalise(input.unsqueeze(0)).squeeze(0)
        return self._normalise(input)

    def _normalise(self, input: Tensor) -> Tensor:
        return F.instance_norm(
            input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            self.momentum if self.momentum is not None else 0.0,
            self.eps,
        )


class InstanceNorm1d(_InstanceNorm):
    """For inputs ([N,] C, L)."""

    dims = 1


class InstanceNorm2d(_InstanceNorm):
    """For images ([N,] C, H, W)."""

    dims = 2


class InstanceNorm3d(_InstanceNorm):
    """For volumes ([N,] C, D, H, W)."""

    dims = 3
