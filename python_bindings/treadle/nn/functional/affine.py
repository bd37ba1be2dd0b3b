"""Layers that multiply by a weight matrix: linear, bilinear, and the look-up in a table of
vectors."""

from __future__ import annotations

from typing import Optional

from treadle import Tensor

from .._operators import ops


def linear(input: Tensor, weight: Tensor, bias: Optional[Tensor] = None) -> Tensor:
    """x @ weight.T + bias, over the last dimension."""
    return ops.linear(input, weight, bias)


def bilinear(
    input1: Tensor, input2: Tensor, weight: Tensor, bias: Optional[Tensor] = None
) -> Tensor:
    """x1 @ weight[k] @ x2 + bias[k] for each output k, over the last dimensions."""
    if weight.dim() != 3:
        raise RuntimeError(
            f"bilinear: expected a weight of 3 dimensions, got size {tuple(weight.shape)}"
        )
    outputs, features1, features2 = weight.shape
    for position, (given, wanted) in enumerate(((input1, features1), (input2, features2)), 1):
        if given.dim() == 0 or given.shape[-1] != wanted:
            raise RuntimeError(
                f"bilinear: expected input{position} with a last dimension of {wanted} for a "
                f"weight of size {tuple(weight.shape)}, got size {tuple(given.shape)}"
            )
    if tuple(input1.shape[:-1]) != tuple(input2.shape[:-1]):
        raise RuntimeError(
            "bilinear: expected inputs that agree in all dimensions but the last, got "
            f"{tuple(input1.shape)} and {tuple(input2.shape)}"
        )
    # One matrix product for all outputs: (n, f1) @ (f1, k * f2), then a weighted sum over f2.
    rows = input1.reshape((-1, features1))
    half = rows.matmul(weight.permute((1, 0, 2)).reshape((features1, outputs * features2)))
    products = half.view((-1, outputs, features2)) * input2.reshape((-1, 1, features2))
    result = products.sum(-1).view((*input1.shape[:-1], outputs))
    return result if bias is None else result + bias


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: Optional[int] = None,
    max_norm: Optional[float] = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """The rows of `weight` that the integers of `input` name."""
    rows = weight.shape[0]
    if padding_idx is None:
        padding_idx = -1
    else:
        if not -rows <= padding_idx < rows:
            raise AssertionError(
                f"embedding: expected padding_idx within {rows} rows, got {padding_idx}"
            )
        padding_idx %= rows
    if max_norm is not None:
        _renormalise_rows(weight, input, max_norm, norm_type)
    return ops.embedding(weight, input, padding_idx, scale_grad_by_freq, sparse)


def _renormalise_rows(weight: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> None:
    """Scale, in place, the rows about to be used so that none has a norm above max_norm."""
    import treadle

    with treadle.no_grad():
        used = indices.reshape((-1,))
        rows = weight.index_select(0, used)
        norms = rows.abs().pow(norm_type).sum(1, keepdim=True).pow(1.0 / norm_type)
        scale = treadle.where(norms > max_norm, max_norm / (norms + 1e-7), treadle.ones_like(norms))
        weight[used] = rows * scale
