"""Attention."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
from typing import Any, Iterator

import numpy as np

from ..sample import Maker, Sample, samples


def reference(
    q: Any,
    k: Any,
    v: Any,
    mask: Any = None,
    dropout: float = 0.0,
    causal: bool = False,
    scale: Any = None,
    enable_gqa: bool = False,
) -> Any:
    if enable_gqa:
        k = np.repeat(k, q.shape[-3] // k.shape[-3], -3)
        v = np.repeat(v, q.shape[-3] // v.shape[-3], -3)
    scores = q @ np.swapaxes(k, -1, -2) * (scale or 1 / math.sqrt(max(1, q.shape[-1])))
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    shifted = scores - np.maximum(scores.max(-1, keepdims=True, initial=-1e300), -1e300)
    e = np.exp(shifted)
    total = e.sum(-1, keepdims=True)
    return np.where(total == 0, 0, e / np.where(total == 0, 1, total)) @ v


UNSEEN = (
    "keys that a query may not look at are not read, but multiplied by 0 where backward is "
    "recorded: a NaN among them is seen then"
)


@samples("scaled_dot_product_attention")
def scaled_dot_product_attention(make: Maker) -> Iterator[Sample]:
    def sample(q: Any, k: Any, v: Any, *rest: Any, **options: Any) -> Sample:
        return Sample(make(q), make(k), make(v), *rest, expect=reference, loose=8, **options)

    yield sample((3, 4), (5, 4), (5, 2))
    yield sample((2, 3, 4), (2, 5, 4), (2, 5, 3), scale=0.3)
    yield sample((2, 2, 3, 2), (2, 2, 3, 2), (2, 2, 3, 2), None, 0.0, True)
    yield sample((2, 4, 2), (2, 3, 2), (2, 3, 2), None, 0.0, True)  # more queries than keys
    yield sample((2, 2, 2), (2, 6, 2), (2, 6, 2), None, 0.0, True, convention=UNSEEN)
    mask = make.mask((3, 5))
    mask[1] = False  # a query that may look at nothing
    yield sample((2, 3, 2), (2, 5, 2), (2, 5, 2), mask, convention=UNSEEN)
    yield sample((2, 3, 2), (2, 5, 2), (2, 5, 2), make((2, 1, 5)))
    yield sample((2, 3, 2), (1, 5, 2), (5, 2), make((3, 1)))  # everything broadcast
    yield sample((4, 3, 2), (2, 5, 2), (2, 5, 2), enable_gqa=True)
    yield sample(
        (1, 4, 2, 2), (1, 2, 3, 2), (1, 2, 3, 2), make.mask((4, 2, 3)), enable_gqa=True,
        convention=UNSEEN,
    )  # fmt: skip
    yield sample((2, 0, 2), (2, 3, 2), (2, 3, 2))
    yield sample((2, 3, 2), (2, 0, 2), (2, 0, 2))
    # Several blocks of queries and of keys.
    yield sample((1, 70, 3), (1, 300, 3), (1, 300, 2), grad=False)
    yield sample((1, 300, 3), (1, 300, 3), (1, 300, 2), None, 0.0, True, grad=False)


@samples("_scaled_dot_product_flash_attention_for_cpu")
def flash_attention(make: Maker) -> Iterator[Sample]:
    def expect(
        q: Any, k: Any, v: Any, dropout: float = 0.0, causal: bool = False, attn_mask: Any = None,
        scale: Any = None,
    ) -> Any:  # fmt: skip
        scores = q @ np.swapaxes(k, -1, -2) * (scale or 1 / math.sqrt(q.shape[-1]))
        if causal:
            scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
        scores = scores if attn_mask is None else scores + attn_mask
        return reference(q, k, v, attn_mask, 0.0, causal, scale), np.log(np.exp(scores).sum(-1))

    shapes = (2, 1, 3, 4), (2, 1, 5, 4), (2, 1, 5, 4)
    for rest, options in [((), {}), ((0.0, True), {"convention": UNSEEN}), ((), {"scale": 0.3})]:
        yield Sample(*map(make, shapes), *rest, **options, expect=expect, loose=8)
    yield Sample(*map(make, shapes), attn_mask=make((3, 5)), grad=False, expect=expect, loose=8)
