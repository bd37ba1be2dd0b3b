"""Attention: weighted means of values, where the weights say how well queries match keys."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
import warnings
from typing import Optional

from treadle import _C
from treadle._C import Tensor

from .._operators import ops
from .activation import softmax
from .affine import linear
from .regularization import dropout

__all__ = ["multi_head_attention_forward", "scaled_dot_product_attention"]

# The operator itself.
scaled_dot_product_attention = ops.scaled_dot_product_attention


def _additive(name: str, mask: Optional[Tensor], like: Tensor) -> Optional[Tensor]:
    """A mask that is True where a key is hidden, as numbers to add to the scores."""
    if mask is None:
        return None
    if mask.is_floating_point():
        return mask.to(like.dtype)
    if mask.dtype != _C.bool:
        raise RuntimeError(
            f"only bool and floating types of {name} are supported, got {mask.dtype}"
        )
    return _C.zeros_like(mask, dtype=like.dtype).masked_fill(mask, -math.inf)


def _none_or_dtype(input: Optional[Tensor]) -> Optional[_C.dtype]:
    """The dtype of a tensor that may be None. RuntimeError for another object."""
    if input is None:
        return None
    if isinstance(input, Tensor):
        return input.dtype
    raise RuntimeError(f"expected None or a Tensor, got {type(input).__name__}")


def _canonical_mask(
    mask: Optional[Tensor],
    mask_name: str,
    other_type: Optional[_C.dtype],
    other_name: str,
    target_type: _C.dtype,
    check_other: bool = True,
) -> Optional[Tensor]:
    """A mask as numbers to add to scores: one of booleans as -inf where it is True, in
    `target_type`; one of floats as it is. A mask of another dtype than `other_type`, the dtype of
    the mask that goes with it, is warned of. AssertionError for integers."""
    if mask is None:
        return None
    if mask.dtype != _C.bool and not mask.is_floating_point():
        raise AssertionError(
            f"only bool and floating types of {mask_name} are supported, got {mask.dtype}"
        )
    if check_other and other_type is not None and mask.dtype != other_type:
        warnings.warn(
            f"expected {mask_name} and {other_name} of one dtype, got {mask.dtype} and "
            f"{other_type}; masks of two dtypes are deprecated",
            stacklevel=2,
        )
    if mask.dtype != _C.bool:
        return mask
    return _C.zeros_like(mask, dtype=target_type).masked_fill(mask, -math.inf)


def _projections(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    weight: Tensor,
    bias: Optional[Tensor],
) -> tuple[Tensor, Tensor, Tensor]:
    """Query, key and value times their thirds of one weight; one product for inputs that are
    one."""
    width = query.shape[-1]
    if key is value and query is key:
        parts = linear(query, weight, bias).split(width, -1)
        return parts[0], parts[1], parts[2]
    weights = weight.split(width, 0)
    biases = (None, None, None) if bias is None else bias.split(width, 0)
    return (
        linear(query, weights[0], biases[0]),
        linear(key, weights[1], biases[1]),
        linear(value, weights[2], biases[2]),
    )


def _check_shapes(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    key_padding_mask: Optional[Tensor],
    attn_mask: Optional[Tensor],
    num_heads: int,
) -> bool:
    """Whether the inputs are batched; raises for dimensions that do not belong together."""
    if query.dim() not in (2, 3):
        raise AssertionError(
            f"query should be unbatched 2D or batched 3D tensor but received {query.dim()}-D query"
        )
    batched = query.dim() == 3
    if key.dim() != query.dim() or value.dim() != query.dim():
        raise AssertionError(
            f"multi_head_attention_forward: expected key and value of {query.dim()} dimensions as "
            f"query has, got {key.dim()} and {value.dim()}"
        )
    if key_padding_mask is not None and key_padding_mask.dim() != query.dim() - 1:
        raise AssertionError(
            f"multi_head_attention_forward: expected key_padding_mask of {query.dim() - 1} "
            f"dimensions, got {key_padding_mask.dim()}"
        )
    if attn_mask is not None and attn_mask.dim() not in (2, 3):
        raise AssertionError(
            "multi_head_attention_forward: expected attn_mask of 2 or 3 dimensions, got "
            f"{attn_mask.dim()}"
        )
    if attn_mask is not None and attn_mask.dim() == 3:
        wanted = ((query.shape[1] if batched else 1) * num_heads, query.shape[0], key.shape[0])
        if tuple(attn_mask.shape) != wanted and not (
            batched is False and attn_mask.shape[0] == num_heads
        ):
            # Without a batch it is a mistake in the call's form, as those above are.
            raise (RuntimeError if batched else AssertionError)(
                f"The shape of the 3D attn_mask is {tuple(attn_mask.shape)}, but should be "
                f"{wanted}."
            )
    return batched


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Optional[Tensor],
    in_proj_bias: Optional[Tensor],
    bias_k: Optional[Tensor],
    bias_v: Optional[Tensor],
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Optional[Tensor],
    training: bool = True,
    key_padding_mask: Optional[Tensor] = None,
    need_weights: bool = True,
    attn_mask: Optional[Tensor] = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Optional[Tensor] = None,
    k_proj_weight: Optional[Tensor] = None,
    v_proj_weight: Optional[Tensor] = None,
    static_k: Optional[Tensor] = None,
    static_v: Optional[Tensor] = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Optional[Tensor]]:
    """Project query, key and value, attend in several heads, project the heads' results together.

    Inputs are (L, N, E) or (L, E). Masks are True, or minus infinity, where a key is hidden.
    Returns the result, and with need_weights the weights (N, L, S), or (N, heads, L, S).
    """
    batched = _check_shapes(query, key, value, key_padding_mask, attn_mask, num_heads)
    if is_causal and attn_mask is None:
        raise RuntimeError("Need attn_mask if specifying the is_causal hint.")
    if not batched:
        same = key is query, value is key
        query = query.unsqueeze(1)
        key = query if same[0] else key.unsqueeze(1)
        value = key if same[1] else value.unsqueeze(1)
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    length, batch, width = query.shape
    if width != embed_dim_to_check:
        raise AssertionError(
            f"was expecting embedding dimension of {embed_dim_to_check}, but got {width}"
        )
    head = width // num_heads
    if head * num_heads != width:
        raise AssertionError(f"embed_dim {width} not divisible by num_heads {num_heads}")
    if is_causal and key_padding_mask is None and not need_weights:
        attn_mask = None  # the mask is known: the kernel makes it itself
    else:
        is_causal = False

    if use_separate_proj_weight:
        if q_proj_weight is None or k_proj_weight is None or v_proj_weight is None:
            raise AssertionError(
                "use_separate_proj_weight is True but q_proj_weight, k_proj_weight or "
                "v_proj_weight is None"
            )
        biases = (None, None, None) if in_proj_bias is None else in_proj_bias.split(width, 0)
        q = linear(query, q_proj_weight, biases[0])
        k = linear(key, k_proj_weight, biases[1])
        v = linear(value, v_proj_weight, biases[2])
    else:
        if in_proj_weight is None:
            raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")
        q, k, v = _projections(query, key, value, in_proj_weight, in_proj_bias)

    mask = _additive("attn_mask", attn_mask, q)
    padding = _additive("key_padding_mask", key_padding_mask, q)
    more = 0  # keys added at the end, which no mask hides
    if bias_k is not None and bias_v is not None:
        k = _C.cat([k, bias_k.expand((1, batch, width))])
        v = _C.cat([v, bias_v.expand((1, batch, width))])
        more += 1
    q = q.reshape((length, batch, num_heads, head)).permute((1, 2, 0, 3))
    if static_k is None:
        k = k.reshape((k.shape[0], batch, num_heads, head)).permute((1, 2, 0, 3))
    else:
        k = static_k.reshape((batch, num_heads, -1, head))
    if static_v is None:
        v = v.reshape((v.shape[0], batch, num_heads, head)).permute((1, 2, 0, 3))
    else:
        v = static_v.reshape((batch, num_heads, -1, head))
    if add_zero_attn:
        zeros = k.new_zeros((batch, num_heads, 1, head))
        k, v = _C.cat([k, zeros], 2), _C.cat([v, zeros], 2)
        more += 1
    source = k.shape[2]

    if mask is not None:
        if mask.dim() == 3:
            mask = mask.reshape((-1, num_heads, length, mask.shape[-1]))
        if more:
            mask = _C.cat([mask, mask.new_zeros((*mask.shape[:-1], more))], -1)
    if padding is not None:
        if more:
            padding = _C.cat([padding, padding.new_zeros((batch, more))], -1)
        if tuple(padding.shape) != (batch, source):
            raise AssertionError(
                f"multi_head_attention_forward: expected key_padding_mask of shape "
                f"{(batch, source - more)}, got {tuple(key_padding_mask.shape)}"  # type: ignore[union-attr]
            )
        padding = padding.reshape((batch, 1, 1, source))
        mask = padding if mask is None else mask + padding

    rate = dropout_p if training else 0.0
    if need_weights:
        scores = (q * (1.0 / math.sqrt(head))).matmul(k.transpose(-2, -1))
        if mask is not None:
            scores = scores + mask
        weights = softmax(scores, -1)
        if rate > 0:
            weights = dropout(weights, rate)
        heads = weights.matmul(v)
    else:
        weights = None
        heads = scaled_dot_product_attention(q, k, v, mask, rate, is_causal)
    merged = heads.permute((2, 0, 1, 3)).reshape((length, batch, width))
    result = linear(merged, out_proj_weight, out_proj_bias)
    if not batched:
        result = result.squeeze(1)
    if weights is None:
        return result, None
    if average_attn_weights:
        weights = weights.mean(1)
    return result, weights if batched else weights.squeeze(0)
