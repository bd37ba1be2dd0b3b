"""Causal masks that know their shape: an `attn_mask` for scaled_dot_product_attention.

Example:

    mask = causal_lower_right(len(queries), len(keys))
    F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import enum
import warnings
from typing import Any, Callable, Optional, Sequence

from treadle import _C
from treadle._C import Tensor

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(enum.IntEnum):
    """The corner in which the diagonal ends: UPPER_LEFT is what `is_causal=True` means, with
    LOWER_RIGHT the last query sees all keys."""

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


class CausalBias(Tensor):
    """A mask of shape (seq_len_q, seq_len_kv), dtype bool: True where a query sees a key. Functions
    take it as the tensor that it is, and return plain tensors."""

    def __new__(cls, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> "CausalBias":
        if not isinstance(variant, CausalVariant):
            raise AssertionError(
                f"CausalBias: expected variant to be a CausalVariant, got {type(variant).__name__}"
            )
        shift = seq_len_kv - seq_len_q if variant == CausalVariant.LOWER_RIGHT else 0
        everything = _C.ones(seq_len_q, seq_len_kv, dtype=_C.bool)
        return everything.tril(diagonal=shift).as_subclass(cls)

    def __init__(self, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> None:
        self.variant, self.seq_len_q, self.seq_len_kv = variant, seq_len_q, seq_len_kv
        if seq_len_q > seq_len_kv and variant == CausalVariant.LOWER_RIGHT:
            warnings.warn(
                f"CausalBias: the first {seq_len_q - seq_len_kv} of {seq_len_q} queries see no key,"
                " so that their results are NaN",
                stacklevel=3,
            )

    def _materialize(self, device: Any = None) -> Tensor:
        """The mask as a plain tensor."""
        plain = self.as_subclass(Tensor)
        return plain if device is None else plain.to(device)

    @classmethod
    def __torch_function__(
        cls, func: Callable, types: Sequence[type], args: tuple = (), kwargs: Optional[dict] = None
    ) -> Any:
        with _C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))

    def __repr__(self) -> str:
        return f"{self._materialize()!r}"


def _sizes(name: str, size: tuple) -> tuple:
    if len(size) != 2:
        raise AssertionError(f"{name}: expected two lengths, of queries and of keys, got {size}")
    return size


def causal_upper_left(*size: int) -> CausalBias:
    """The mask of shape (queries, keys) in which query i sees the keys up to i."""
    return CausalBias(CausalVariant.UPPER_LEFT, *_sizes("causal_upper_left", size))


def causal_lower_right(*size: int) -> CausalBias:
    """The mask of shape (queries, keys) in which the last query sees all keys, the one before all
    but the last, and so on."""
    return CausalBias(CausalVariant.LOWER_RIGHT, *_sizes("causal_lower_right", size))
