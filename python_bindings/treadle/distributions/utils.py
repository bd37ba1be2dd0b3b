"""The common parts of distributions: parameters made to fit each other, probabilities and
log-odds, and properties that are computed at their first use.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from functools import update_wrapper
from typing import Any, Callable, cast

from treadle import _C
from treadle._C import Size, Tensor
from treadle._functions.variadic import broadcast_tensors
from treadle._tensor.type_info import finfo
from treadle.autograd.grad_mode import enable_grad

euler_constant = 0.57721566490153286060  # Euler and Mascheroni's

__all__ = [
    "broadcast_all",
    "logits_to_probs",
    "clamp_probs",
    "probs_to_logits",
    "lazy_property",
    "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]

# The types that count as plain numbers among parameters.
Number = (int, float, bool)


def is_tensor_like(value: Any) -> bool:
    """Whether it is a tensor, or takes part in tensor functions."""
    return isinstance(value, Tensor) or hasattr(type(value), "__torch_function__")


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """The values, tensors or plain numbers, as tensors of one shape. A number gets the dtype and
    device of the first tensor, or the default dtype where there is none. ValueError for a value
    that is neither.
    """
    if not all(is_tensor_like(value) or isinstance(value, Number) for value in values):
        raise ValueError(
            "Input arguments must all be instances of Number, "
            "torch.Tensor or objects implementing __torch_function__."
        )
    like = next((value for value in values if is_tensor_like(value)), None)
    dtype = _C.get_default_dtype() if like is None else like.dtype
    device = None if like is None else like.device
    tensors = [
        value if is_tensor_like(value) else _C.tensor(value, dtype=dtype, device=device)
        for value in values
    ]
    return tuple(broadcast_tensors(*tensors))


def _standard_normal(shape: Any, dtype: Any, device: Any) -> Tensor:
    return _C.normal(
        _C.zeros(shape, dtype=dtype, device=device), _C.ones(shape, dtype=dtype, device=device)
    )


def _sum_rightmost(value: Tensor, dim: int) -> Tensor:
    """The sum over the last `dim` dimensions."""
    if dim == 0:
        return value
    return value.reshape(value.shape[:-dim] + Size((-1,))).sum(-1)


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Probabilities of log-odds: a sigmoid where `is_binary`, else a softmax along the last
    dimension.
    """
    return _C.sigmoid(logits) if is_binary else _C.softmax(logits, dim=-1)


def clamp_probs(probs: Tensor) -> Tensor:
    """Probabilities kept an eps of their dtype away from 0 and 1."""
    eps = finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """The log-odds of probabilities: log(p / (1 - p)) where `is_binary`, else log(p). They are
    finite, for the probabilities are kept away from 0 and 1.
    """
    clamped = clamp_probs(probs)
    log_probs = _C.log(clamped)
    return log_probs - _C.log1p(-clamped) if is_binary else log_probs


class lazy_property:  # noqa: N801  named as a decorator
    """A property that is computed at its first use, with gradients, and then kept. On the class it
    is the property itself.
    """

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped = wrapped
        update_wrapper(cast(Any, self), wrapped)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        with enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


def _lower_places(n: int, diag: int, like: Tensor) -> Tensor:
    """A mask of the places of an (n, n) matrix on and below diagonal `diag`."""
    places = _C.arange(n, device=like.device)
    return places < places.view(-1, 1) + (diag + 1)


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The elements on and below diagonal `diag` of (..., n, n) matrices, row by row: (..., count).
    ValueError for a diagonal outside [-n, n).
    """
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    return mat[..., _lower_places(n, diag, mat)]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """The opposite of tril_matrix_to_vec: (..., n, n) matrices that are zero above `diag`.
    ValueError for a count of elements that no matrix has.
    """
    # The n with n (n + 1) / 2 elements on and below the main diagonal, moved by diag.
    count, moved = vec.shape[-1], 1 + 2 * diag
    size = (-moved + (moved**2 + 8 * count + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2
    n = round(size)
    if abs(size - n) > finfo(vec.dtype).eps:
        raise ValueError(
            f"The size of last dimension is {count} which cannot be expressed as "
            "the lower triangular part of a square D x D matrix."
        )
    mat = _C.zeros(vec.shape[:-1] + Size((n, n)), dtype=vec.dtype, device=vec.device)
    mat[..., _lower_places(n, diag, vec)] = vec
    return mat
