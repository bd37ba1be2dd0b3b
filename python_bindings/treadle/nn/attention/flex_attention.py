"""Attention whose scores a function changes, and whose mask is another function.

    def causal(b, h, q_idx, kv_idx):
        return q_idx >= kv_idx

    block_mask = create_block_mask(causal, B=None, H=None, Q_LEN=1024, KV_LEN=1024, device="cpu")
    flex_attention(query, key, value, block_mask=block_mask)
    flex_attention(query, key, value, score_mod=lambda score, b, h, q, kv: score + bias[h, q - kv])

The scores of all pairs are made: what the mask leaves out saves no time here.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
from typing import Any, Callable, NamedTuple, Optional, Tuple, Union

from treadle import _C
from treadle.nn.attention._block_mask import (  # noqa: F401
    _DEFAULT_SPARSE_BLOCK_SIZE,
    BlockMask,
    _convert_block_mask_to_mask,
    _convert_mask_to_block_mask,
    _create_sparse_block_from_block_mask,
    _mask_mod_signature,
    create_block_mask,
    noop_mask,
)
from treadle.nn.attention._lanes import evaluate, places

__all__ = [
    "AuxOutput",
    "AuxRequest",
    "BlockMask",
    "FlexKernelOptions",
    "and_masks",
    "create_block_mask",
    "create_mask",
    "flex_attention",
    "noop_mask",
    "or_masks",
]

Tensor = _C.Tensor
_score_mod_signature = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]
# How kernels of a GPU are to be made; there are none here, so that any such options do.
FlexKernelOptions = dict


class AuxRequest(NamedTuple):
    """The further results that are wanted."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """The further results, of shape (B, Hq, L); None for what was not wanted."""

    lse: Optional[Tensor] = None
    max_scores: Optional[Tensor] = None


def _identity(
    score: Tensor, batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor
) -> Tensor:
    """The score as it is."""
    return score


def _combined(what: str, mask_mods: Tuple[Any, ...], combine: Callable, start: bool) -> Callable:
    if not all(map(callable, mask_mods)):
        raise RuntimeError(
            f"{what}: expected functions, All inputs should be callable mask_mods, got {mask_mods}"
        )

    def mask(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        result = b.new_full((), start, dtype=_C.bool) if not mask_mods else None
        for mod in mask_mods:
            one = mod(b, h, q_idx, kv_idx)
            result = one if result is None else combine(result, one)
        return result

    return mask


def and_masks(*mask_mods: _mask_mod_signature) -> _mask_mod_signature:
    """The mask of what all of the masks let through; RuntimeError for what is no function."""
    return _combined("and_masks", mask_mods, lambda a, b: a & b, True)


def or_masks(*mask_mods: _mask_mod_signature) -> _mask_mod_signature:
    """The mask of what some of the masks lets through; RuntimeError for what is no function."""
    return _combined("or_masks", mask_mods, lambda a, b: a | b, False)


def create_mask(
    mod_fn: Callable,
    B: Optional[int],
    H: Optional[int],
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
) -> Tensor:
    """The mask of a function as a tensor, bool of shape (B, H, Q_LEN, KV_LEN); None is 1.

    `mod_fn` is mask_mod(b, h, q_idx, kv_idx), or score_mod(score, b, h, q_idx, kv_idx), whose mask
    is where it does not give -inf.
    """
    numbers = places(B or 1, H or 1, Q_LEN, KV_LEN, device=device)
    if _takes_score(mod_fn):
        score = _C.zeros(B or 1, H or 1, Q_LEN, KV_LEN, device=device)
        return ~_C.isneginf(evaluate(mod_fn, [score, *numbers]))
    return evaluate(mod_fn, numbers).to(_C.bool).contiguous()


def _takes_score(mod_fn: Callable) -> bool:
    import inspect

    count = sum(
        p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        for p in inspect.signature(mod_fn).parameters.values()
    )
    if count not in (4, 5):
        raise ValueError(
            "create_mask: expected a function of 4 arguments, (b, h, q_idx, kv_idx), or 5, (score, "
            f"b, h, q_idx, kv_idx), got one of {count}"
        )
    return count == 5


def _check(query: Tensor, key: Tensor, value: Tensor, gqa: bool) -> None:
    for name, x in (("query", query), ("key", key), ("value", value)):
        if x.dim() != 4:
            raise NotImplementedError(
                "flex_attention: expected query, key and value of 4 dimensions, got "
                f"{name} of shape {tuple(x.shape)}"
            )
    if not query.dtype == key.dtype == value.dtype:
        raise ValueError(
            "flex_attention: expected query, key and value of one dtype, got "
            f"{query.dtype}, {key.dtype} and {value.dtype}"
        )
    if key.shape[:3] != value.shape[:3] or query.shape[-1] != key.shape[-1]:
        raise ValueError(
            "flex_attention: expected query (B, Hq, L, E), key (B, Hkv, S, E) and value (B, Hkv, "
            f"S, Ev), got {tuple(query.shape)}, {tuple(key.shape)} and {tuple(value.shape)}"
        )
    heads, kv_heads = query.shape[1], key.shape[1]
    if heads != kv_heads and not gqa:
        raise ValueError(
            "flex_attention: Expect query and key/value to have the same number of heads but got "
            f"Hq={heads} and Hkv={kv_heads}. Try setting enable_gqa=True for GQA."
        )
    if kv_heads and heads % kv_heads:
        raise ValueError(
            "flex_attention: expected Hq to be a multiple of Hkv, got "
            f"Hq={heads} and Hkv={kv_heads}"
        )
    if query.shape[0] != key.shape[0] and key.shape[0] != 1:
        raise ValueError(
            "flex_attention: expected batches of one size, or keys of batch 1, got "
            f"{query.shape[0]} and {key.shape[0]}"
        )


def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: Optional[_score_mod_signature] = None,
    block_mask: Optional[BlockMask] = None,
    scale: Optional[float] = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: Optional[FlexKernelOptions] = None,
    *,
    return_aux: Optional[AuxRequest] = None,
) -> Union[Tensor, Tuple[Tensor, Tensor], Tuple[Tensor, AuxOutput]]:
    """softmax(score_mod(query @ key^T * scale)) @ value, where the mask lets through.

    query: (B, Hq, L, E), key: (B, Hkv, S, E), value: (B, Hkv, S, Ev); the result (B, Hq, L, Ev),
    in the dtype of the query, computed in float32 or float64. `score_mod(score, b, h, q_idx,
    kv_idx)` changes the score of a pair. `scale` is 1 / sqrt(E) where it is not given. With
    `enable_gqa`, Hq / Hkv neighbouring heads of the query share a key. A query that sees no key
    gives zeros. `return_aux` asks for the logarithms of the sums of the exponentials of the scores,
    and for the greatest scores; `return_lse` is an older form.

    NotImplementedError for other numbers of dimensions; ValueError for shapes and dtypes that do
    not fit; RuntimeError for a mask of other lengths.
    """
    _check(query, key, value, enable_gqa)
    working = _C.float64 if query.dtype == _C.float64 else _C.float32
    if query.shape[1] != key.shape[1]:
        repeats = query.shape[1] // key.shape[1]
        key, value = (x.repeat_interleave(repeats, dim=1) for x in (key, value))
    factor = 1.0 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = (query @ key.transpose(-2, -1)).to(working) * factor
    numbers = places(*scores.shape, device=query.device)
    if score_mod is not None:
        scores = evaluate(score_mod, [scores, *numbers]).to(working)
    if block_mask is not None:
        mask = block_mask._visible(query.shape[-2], key.shape[-2], numbers)
        scores = _C.where(mask, scores, -math.inf)
    seen = _C.isneginf(scores).logical_not().any(-1)
    weights = _C.where(seen.unsqueeze(-1), scores, 0).softmax(-1)
    weights = _C.where(seen.unsqueeze(-1), weights, 0)
    output = (weights @ value.to(working)).to(query.dtype)
    if return_aux is not None:
        return output, AuxOutput(
            lse=scores.logsumexp(-1) if return_aux.lse else None,
            max_scores=scores.amax(-1) if return_aux.max_scores else None,
        )
    return (output, scores.logsumexp(-1)) if return_lse else output
