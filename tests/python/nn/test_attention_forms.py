"""nn.attention.bias and nn.attention.varlen: masks that know their shape, and sequences without
padding."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math

import pytest

import treadle
import treadle.nn.functional as F
from treadle.nn.attention.bias import (
    CausalBias,
    CausalVariant,
    causal_lower_right,
    causal_upper_left,
)
from treadle.nn.attention.varlen import AuxRequest, varlen_attn, varlen_attn_out

# ---- bias ----


def test_the_masks():
    assert causal_upper_left(2, 3).tolist() == [[True, False, False], [True, True, False]]
    mask = causal_lower_right(2, 3)
    assert mask.tolist() == [[True, True, False], [True, True, True]]
    assert isinstance(mask, CausalBias) and mask.variant is CausalVariant.LOWER_RIGHT
    assert (mask.seq_len_q, mask.seq_len_kv) == (2, 3)
    assert type(mask + 1) is treadle.Tensor
    assert repr(causal_upper_left(1, 1)) == "tensor([[True]])"


def test_a_mask_goes_into_attention():
    treadle.manual_seed(0)
    q, k, v = (treadle.randn(1, 2, n, 8, requires_grad=True) for n in (4, 4, 4))
    wanted = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    found = F.scaled_dot_product_attention(q, k, v, attn_mask=causal_upper_left(4, 4))
    assert type(found) is treadle.Tensor
    treadle.testing.assert_close(found, wanted)
    found.sum().backward()
    assert v.grad is not None


def test_what_masks_refuse():
    with pytest.raises(AssertionError) as caught:
        causal_upper_left(3)
    assert str(caught.value) == (
        "causal_upper_left: expected two lengths, of queries and of keys, got (3,)"
    )
    with pytest.raises(AssertionError) as caught:
        CausalBias("left", 2, 2)
    assert str(caught.value) == "CausalBias: expected variant to be a CausalVariant, got str"
    with pytest.warns(UserWarning, match="the first 1 of 3 queries see no key"):
        causal_lower_right(3, 2)


# ---- sequences of different lengths ----

PLACES = treadle.tensor([0, 3, 8])


def tensors(heads=2, kv_heads=2):
    treadle.manual_seed(1)
    return [treadle.randn(8, n, 4) for n in (heads, kv_heads, kv_heads)]


@pytest.mark.parametrize("window, is_causal", [((-1, -1), False), ((-1, 0), True)])
def test_each_sequence_attends_to_itself(window, is_causal):
    q, k, v = tensors()
    found = varlen_attn(q, k, v, PLACES, PLACES, 5, 5, window_size=window)
    for begin, end in ((0, 3), (3, 8)):
        part = (t[begin:end].transpose(0, 1) for t in (q, k, v))
        wanted = F.scaled_dot_product_attention(*part, is_causal=is_causal)
        treadle.testing.assert_close(found[begin:end], wanted.transpose(0, 1))


def test_a_window_of_one_key_gives_its_value():
    q, k, v = tensors()
    treadle.testing.assert_close(varlen_attn(q, k, v, PLACES, PLACES, 5, 5, window_size=(0, 0)), v)


def test_the_sums_of_scores():
    q, k, v = tensors()
    result, sums = varlen_attn(q, k, v, PLACES, PLACES, 5, 5, return_aux=AuxRequest(lse=True))
    assert sums.shape == (2, 8) and sums.dtype == treadle.float32
    scores = (q[:3, 1] @ k[:3, 1].T) / math.sqrt(4)
    treadle.testing.assert_close(sums[1, :3], scores.logsumexp(-1))
    treadle.testing.assert_close(result[:3, 1], scores.softmax(-1) @ v[:3, 1])


def test_heads_share_keys():
    q, k, v = tensors(heads=4)
    found = varlen_attn(q, k, v, PLACES, PLACES, 5, 5, enable_gqa=True)
    spread = (t.repeat_interleave(2, dim=1) for t in (k, v))
    treadle.testing.assert_close(found, varlen_attn(q, *spread, PLACES, PLACES, 5, 5))


def test_keys_in_pages():
    q, k, v = tensors()
    pages = [t[3:].split(3) for t in (k, v)]
    paged = [treadle.stack([t[:3], first, F.pad(last, (0, 0, 0, 0, 0, 1))])
             for t, (first, last) in zip((k, v), pages)]  # fmt: skip
    table = treadle.tensor([[0, 0], [1, 2]])
    found = varlen_attn(
        q, *paged, PLACES, None, 5, 5, seqused_k=treadle.tensor([3, 5]), block_table=table
    )
    treadle.testing.assert_close(found, varlen_attn(q, k, v, PLACES, PLACES, 5, 5))


def test_a_query_without_keys_gives_zeros():
    q, k, v = tensors()
    q.requires_grad_()
    used = treadle.tensor([0, 5])
    found = varlen_attn(q, k, v, PLACES, PLACES, 5, 5, seqused_k=used)
    assert found[:3].abs().max() == 0 and found[3:].abs().max() > 0
    found.sum().backward()
    assert q.grad.isfinite().all()


def test_out_is_written():
    q, k, v = (t.half() for t in tensors())
    out = treadle.empty_like(q)
    assert varlen_attn_out(out, q, k, v, PLACES, PLACES, 5, 5) is out
    assert treadle.equal(out, varlen_attn(q, k, v, PLACES, PLACES, 5, 5))


def test_what_varlen_refuses():
    q, k, v = tensors()
    cases = [
        (
            lambda: varlen_attn(q[0], k, v, PLACES, PLACES, 5, 5),
            "varlen_attn: expected query of shape (tokens, heads, features), got (2, 4)",
        ),
        (
            lambda: varlen_attn(q, k, v, PLACES, None, 5, 5),
            "varlen_attn: expected cu_seq_k without block_table, got None",
        ),
        (
            lambda: varlen_attn(q, k, v, PLACES, None, 5, 5, block_table=PLACES),
            "varlen_attn: expected seqused_k with block_table, got None",
        ),
        (
            lambda: varlen_attn(q, k[:, :1], v[:, :1], PLACES, PLACES, 5, 5),
            "varlen_attn: expected as many heads of keys as of queries, 2, or with "
            "enable_gqa=True a divisor, got 1",
        ),
        (
            lambda: varlen_attn_out(q[:2], q, k, v, PLACES, PLACES, 5, 5),
            f"varlen_attn_out: expected out of shape (8, 2, 4) and {q.dtype}, got (2, 2, 4) and "
            f"{q.dtype}",
        ),
    ]
    for call, message in cases:
        with pytest.raises(RuntimeError) as caught:
            call()
        assert str(caught.value) == message
