"""Dropout: in training, elements or whole channels are set to zero by chance and the others scaled
up to keep the mean."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import warnings

from treadle._C import Tensor

from .._operators import ops

__all__ = [
    "alpha_dropout",
    "dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "feature_alpha_dropout",
]


def _check(p: float) -> None:
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Each element becomes zero with probability p, the others are divided by 1 - p."""
    _check(p)
    return ops.dropout_(input, p, training) if inplace else ops.dropout(input, p, training)


def alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """Each element becomes the negative limit of selu with probability p; all are scaled and
    shifted to keep mean 0 and variance 1."""
    _check(p)
    operator = ops.alpha_dropout_ if inplace else ops.alpha_dropout
    return operator(input, p, training)


def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """:func:`alpha_dropout` of whole channels (dimension 1)."""
    _check(p)
    operator = ops.feature_alpha_dropout_ if inplace else ops.feature_alpha_dropout
    return operator(input, p, training)


def _channels(input: Tensor, p: float, training: bool, inplace: bool, batched: bool) -> Tensor:
    _check(p)
    operator = ops.feature_dropout_ if inplace else ops.feature_dropout
    if batched:
        return operator(input, p, training)
    return operator(input.unsqueeze(0), p, training).squeeze(0)


def dropout1d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Dropout of whole channels of ([N,] C, L)."""
    if input.dim() not in (2, 3):
        raise RuntimeError(
            f"dropout1d: expected input of 2 or 3 dimensions, got {input.dim()}: "
            f"{tuple(input.shape)}"
        )
    return _channels(input, p, training, inplace, input.dim() == 3)


def dropout2d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Dropout of whole channels of (N, C, H, W); an input (N, C, L) is taken as a batch, too."""
    if input.dim() not in (3, 4):
        warnings.warn(
            f"dropout2d: expected input of 3 or 4 dimensions, got {input.dim()}; whole channels of "
            "dimension 1 are dropped",
            stacklevel=2,
        )
    return _channels(input, p, training, inplace, True)


def dropout3d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Dropout of whole channels of ([N,] C, D, H, W)."""
    if input.dim() not in (4, 5):
        warnings.warn(
            f"dropout3d: expected input of 4 or 5 dimensions, got {input.dim()}; whole channels of "
            "dimension 1 are dropped",
            stacklevel=2,
        )
    return _channels(input, p, training, inplace, input.dim() != 4)
