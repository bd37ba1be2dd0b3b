"""Layers of fractional pooling."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Optional

from treadle._C import Tensor

from .. import functional as F
from .._tuples import tuple_of
from .module import Module


class _FractionalMaxPoolNd(Module):
    _dims = 0

    def __init__(
        self,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Optional[Tensor] = None,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        if output_size is None and output_ratio is None:
            raise ValueError(
                f"{name} requires specifying either an output size, or a pooling ratio"
            )
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        self.kernel_size = tuple_of(kernel_size, self._dims)
        self.return_indices = return_indices
        self.output_size = None if output_size is None else tuple_of(output_size, self._dims)
        self.output_ratio = None if output_ratio is None else tuple_of(output_ratio, self._dims)
        if self.output_ratio is not None and not all(0 < r < 1 for r in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")
        self.register_buffer("_random_samples", _random_samples)

    def forward(self, input: Tensor) -> Any:
        pool = getattr(F, f"fractional_max_pool{self._dims}d")
        return pool(
            input,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            self.return_indices,
            self._random_samples,
        )


class FractionalMaxPool2d(_FractionalMaxPoolNd):
    """Over images ([N,] C, H, W): the largest values of windows at drawn places; the output has
    `output_size`, or `output_ratio` of the input's."""

    _dims = 2


class FractionalMaxPool3d(_FractionalMaxPoolNd):
    """The same over volumes ([N,] C, D, H, W)."""

    _dims = 3
