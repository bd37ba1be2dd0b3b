"""Attention over sequences of different lengths that lie one after the other, without padding.

Example:

    places = treadle.tensor([0, 3, 8])          # two sequences, of 3 and of 5 tokens
    varlen_attn(q, k, v, places, places, max_q=5, max_k=5, window_size=(-1, 0))
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
from typing import Any, List, NamedTuple, Optional, Tuple, Union

from treadle import _C
from treadle._C import Tensor

__all__ = ["AuxRequest", "varlen_attn", "varlen_attn_out"]


class AuxRequest(NamedTuple):
    """The request for a second result of varlen_attn(): `lse`, the logarithm of the sum of the
    exponentials of the scores, (heads, tokens) in float32."""

    lse: bool = False


def varlen_attn(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seq_q: Tensor,
    cu_seq_k: Optional[Tensor],
    max_q: int,
    max_k: int,
    *,
    return_aux: Optional[AuxRequest] = None,
    scale: Optional[float] = None,
    window_size: Tuple[int, int] = (-1, -1),
    enable_gqa: bool = False,
    seqused_k: Optional[Tensor] = None,
    block_table: Optional[Tensor] = None,
    num_splits: Optional[int] = None,
) -> Union[Tensor, Tuple[Tensor, Tensor]]:
    """The attention of each sequence to itself, (tokens, heads, features) as `query`.

    query, key, value: (tokens, heads, features); cu_seq_q and cu_seq_k: where each sequence begins,
    and in the end the number of tokens. window_size: how many keys before and behind its own place
    a query sees, -1 for all; the last query stands at the last key. seqused_k: how many keys of
    each sequence count. block_table: for each sequence the pages, (pages, tokens, heads, features),
    of which its keys and values consist; seqused_k is needed then. enable_gqa lets several heads
    of queries share one of keys. A query that sees no key gives zeros. max_q, max_k and num_splits
    change nothing.
    """
    if query.dim() != 3:
        raise RuntimeError(
            "varlen_attn: expected query of shape (tokens, heads, features), got "
            f"{tuple(query.shape)}"
        )
    if block_table is None and cu_seq_k is None:
        raise RuntimeError("varlen_attn: expected cu_seq_k without block_table, got None")
    if block_table is not None and seqused_k is None:
        raise RuntimeError("varlen_attn: expected seqused_k with block_table, got None")
    heads, kv_heads = query.shape[1], key.shape[-2]
    if heads != kv_heads and not (enable_gqa and heads % kv_heads == 0):
        raise RuntimeError(
            f"varlen_attn: expected as many heads of keys as of queries, {heads}, or with "
            f"enable_gqa=True a divisor, got {kv_heads}"
        )
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    starts_q = cu_seq_q.tolist()
    starts_k: Any = None if cu_seq_k is None else cu_seq_k.tolist()
    used: Any = None if seqused_k is None else seqused_k.tolist()
    outputs: List[Tensor] = []
    sums: List[Tensor] = []
    for i, (begin, end) in enumerate(zip(starts_q, starts_q[1:])):
        if block_table is not None:
            k, v = (t[block_table[i]].flatten(0, 1)[: used[i]] for t in (key, value))
        else:
            first, last = starts_k[i], starts_k[i + 1]
            last = last if used is None else first + used[i]
            k, v = key[first:last], value[first:last]
        output, sum_ = _one(query[begin:end], k, v, scale, window_size)
        outputs.append(output)
        sums.append(sum_)
    result = _C.cat(outputs).to(query.dtype) if outputs else _C.zeros_like(query)
    if return_aux is None or not return_aux.lse:
        return result
    return result, _C.cat(sums, dim=1)


def _one(
    q: Tensor, k: Tensor, v: Tensor, scale: float, window: Tuple[int, int]
) -> Tuple[Tensor, Tensor]:
    """The attention of one sequence, and the logarithms of its sums."""
    shared = q.shape[1] // k.shape[1]
    q, k, v = (t.transpose(0, 1).float() for t in (q, *(_spread(t, shared) for t in (k, v))))
    scores = (q @ k.transpose(1, 2)) * scale
    scores = scores.masked_fill(_hidden(q.shape[1], k.shape[1], window, q.device), -math.inf)
    sums = scores.logsumexp(-1)
    # A row without a key has the sum 0, whose logarithm would make NaN of its zeros.
    finite = sums.masked_fill(sums == -math.inf, 0.0)
    output = (scores - finite.unsqueeze(-1)).exp() @ v
    return output.transpose(0, 1), sums


def _spread(t: Tensor, shared: int) -> Tensor:
    return t if shared == 1 else t.repeat_interleave(shared, dim=1)


def _hidden(queries: int, keys: int, window: Tuple[int, int], device: _C.device) -> Tensor:
    place = _C.arange(queries, device=device).unsqueeze(1) + (keys - queries)
    other = _C.arange(keys, device=device)
    hidden = _C.zeros((queries, keys), dtype=_C.bool, device=device)
    if window[0] >= 0:
        hidden = hidden | (other < place - window[0])
    if window[1] >= 0:
        hidden = hidden | (other > place + window[1])
    return hidden


def varlen_attn_out(
    out: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seq_q: Tensor,
    cu_seq_k: Optional[Tensor],
    max_q: int,
    max_k: int,
    *,
    return_aux: Optional[AuxRequest] = None,
    scale: Optional[float] = None,
    window_size: Tuple[int, int] = (-1, -1),
    enable_gqa: bool = False,
    seqused_k: Optional[Tensor] = None,
    block_table: Optional[Tensor] = None,
    num_splits: Optional[int] = None,
) -> Union[Tensor, Tuple[Tensor, Tensor]]:
    """varlen_attn(), written to `out`, which has the shape and the dtype of `query`."""
    if out.shape != query.shape or out.dtype != query.dtype:
        raise RuntimeError(
            f"varlen_attn_out: expected out of shape {tuple(query.shape)} and {query.dtype}, got "
            f"{tuple(out.shape)} and {out.dtype}"
        )
    found = varlen_attn(
        query, key, value, cu_seq_q, cu_seq_k, max_q, max_k, return_aux=return_aux, scale=scale,
        window_size=window_size, enable_gqa=enable_gqa, seqused_k=seqused_k,
        block_table=block_table, num_splits=num_splits,
    )  # fmt: skip
    if isinstance(found, tuple):
        return out.copy_(found[0]), found[1]
    return out.copy_(found)
