"""flex_attention: scores and masks that functions say, against the formula written out."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
from typing import Any

import pytest

import treadle
from treadle.nn.attention import _lanes
from treadle.nn.attention.flex_attention import (
    AuxRequest,
    BlockMask,
    and_masks,
    create_block_mask,
    create_mask,
    flex_attention,
    noop_mask,
    or_masks,
)
from treadle.testing import assert_close

Tensor = treadle.Tensor


def causal(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
    return q_idx >= kv_idx


def tensors(*sizes: int, heads: int = 2, dtype: Any = treadle.float64) -> Any:
    treadle.manual_seed(0)
    return [treadle.randn(2, heads, size, 8, dtype=dtype, requires_grad=True) for size in sizes]


def attention(q: Tensor, k: Tensor, v: Tensor, change: Any = lambda scores: scores) -> Tensor:
    return change(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).softmax(-1) @ v


def test_plain_and_scaled() -> None:
    q, k, v = tensors(5, 7, 7)
    assert_close(flex_attention(q, k, v), attention(q, k, v))
    assert_close(flex_attention(q, k, v, scale=1.0), attention(q * math.sqrt(8), k, v))
    low = [x.detach().to(treadle.bfloat16) for x in (q, k, v)]
    assert flex_attention(*low).dtype == treadle.bfloat16


def test_scores_changed_by_a_function_that_looks_up_tensors() -> None:
    q, k, v = tensors(5, 7, 7)
    bias = treadle.randn(2, 12, dtype=treadle.float64, requires_grad=True)

    def relative(score: Any, b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        return treadle.where(q_idx > 2, score + bias[h, q_idx - kv_idx + 6], -score.abs() * (b + 1))

    def by_hand(scores: Tensor) -> Tensor:
        h = treadle.arange(2).reshape(2, 1, 1)
        q_idx, kv_idx = treadle.arange(5).reshape(5, 1), treadle.arange(7)
        first = scores + bias[h, q_idx - kv_idx + 6]
        second = -scores.abs() * (treadle.arange(2).reshape(2, 1, 1, 1) + 1)
        return treadle.where(q_idx > 2, first, second)

    ours, expected = flex_attention(q, k, v, relative), attention(q, k, v, by_hand)
    assert_close(ours, expected)
    got = treadle.autograd.grad(ours.sin().sum(), (q, k, v, bias), retain_graph=True)
    assert_close(got, treadle.autograd.grad(expected.sin().sum(), (q, k, v, bias)))


def test_a_function_that_does_more_is_called_for_each_place(monkeypatch: Any) -> None:
    q, k, v = tensors(3, 4, 4)
    table = treadle.randn(4, 2, dtype=treadle.float64)
    calls = []

    def rows(score: Any, b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        calls.append(1)
        return score + table[kv_idx].sum()

    ours = flex_attention(q, k, v, rows)
    assert len(calls) == 1 + 2 * 2 * 3 * 4
    assert_close(ours, attention(q, k, v, lambda scores: scores + table.sum(1)))
    branching = create_mask(lambda b, h, x, y: True if x > y else y == 2, 1, 1, 3, 3)
    expected = [[False, False, True], [True, False, True], [True, True, True]]
    assert branching[0, 0].tolist() == expected


def test_rows_are_looked_up_in_steps() -> None:
    table = treadle.arange(12).reshape(3, 4)
    numbers = _lanes.places(1, 1, 3, 4)
    found = _lanes.evaluate(lambda b, h, q, kv: table[q][kv] * 2, numbers)
    assert found[0, 0].tolist() == (table * 2).tolist()


def test_masks_of_blocks() -> None:
    mask = create_block_mask(causal, None, None, 300, 300)
    assert mask.shape == (1, 1, 300, 300) and mask.BLOCK_SIZE == (128, 128)
    # The last blocks reach beyond the end, so none of them is let through whole.
    assert mask.kv_num_blocks.tolist() == [[[1, 1, 3]]]
    assert mask.to_dense().tolist() == [[[[1, 0, 0], [1, 1, 0], [1, 1, 1]]]]
    assert mask.sparsity() == pytest.approx(100 / 3) and mask.numel() == 90000
    assert mask.to_string() == "(0, 0)\n██    \n████  \n██████"
    full = mask.full_kv_num_blocks
    assert full is not None and full.tolist() == [[[0, 1, 0]]]
    assert mask.q_num_blocks is not None and mask.q_num_blocks.tolist() == [[[2, 2, 1]]]
    assert mask.q_indices is not None and mask.q_indices[0, 0, 0].tolist() == [0, 2, 1]
    together = create_block_mask(causal, None, None, 300, 300, separate_full_blocks=False)
    assert together.full_kv_indices is None
    assert together.kv_num_blocks.tolist() == [[[1, 2, 3]]]
    assert mask.to("meta").kv_indices.device.type == "meta"
    with pytest.raises(ValueError, match="create_block_mask: expected BLOCK_SIZE > 0, got 0"):
        create_block_mask(causal, 1, 1, 8, 8, BLOCK_SIZE=0)


def test_attention_with_a_mask() -> None:
    q, k, v = tensors(40, 40, 40)

    def window(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        return (q_idx - kv_idx < 9) & (q_idx - kv_idx > h - 3)

    mask = create_block_mask(window, B=None, H=2, Q_LEN=40, KV_LEN=40, BLOCK_SIZE=(16, 8))
    dense = create_mask(window, None, 2, 40, 40)
    expected = attention(q, k, v, lambda scores: scores.masked_fill(~dense, -math.inf))
    assert_close(flex_attention(q, k, v, block_mask=mask), expected)


def test_whole_blocks_of_a_program() -> None:
    q, k, v = tensors(8, 8, 8)
    number = treadle.tensor([[[1, 2]]], dtype=treadle.int32)
    indices = treadle.tensor([[[[1, 0], [0, 1]]]], dtype=treadle.int32)
    mask = BlockMask.from_kv_blocks(number, indices, BLOCK_SIZE=4)
    assert mask.shape == (1, 1, 8, 8) and mask.mask_mod is noop_mask
    dense = treadle.ones(8, 8, dtype=treadle.bool)
    dense[:4, :4] = False
    expected = attention(q, k, v, lambda scores: scores.masked_fill(~dense, -math.inf))
    assert_close(flex_attention(q, k, v, block_mask=mask), expected)


def test_a_query_that_sees_nothing_gives_zeros() -> None:
    q, k, v = tensors(4, 4, 4)
    mask = create_block_mask(lambda b, h, x, y: x > y, None, None, 4, 4)
    output, aux = flex_attention(
        q, k, v, block_mask=mask, return_aux=AuxRequest(lse=True, max_scores=True)
    )
    assert output[:, :, 0].abs().max() == 0 and aux.lse[0, 0, 0] == -math.inf
    grads = treadle.autograd.grad(output.sum(), (q, k, v))
    assert all(g.isfinite().all() for g in grads)
    scores = q @ k.transpose(-2, -1) / math.sqrt(8)
    assert_close(aux.max_scores[:, :, 1], scores[:, :, 1, 0])
    lse = flex_attention(q, k, v, return_lse=True)[1]
    assert_close(lse, scores.logsumexp(-1))


def test_heads_that_share_a_key() -> None:
    (q,), (k, v) = tensors(5, heads=4), tensors(7, 7, heads=2)
    shared = [x.repeat_interleave(2, dim=1) for x in (k, v)]
    assert_close(flex_attention(q, k, v, enable_gqa=True), attention(q, *shared))
    with pytest.raises(ValueError, match="the same number of heads but got Hq=4 and Hkv=2"):
        flex_attention(q, k, v)


def test_masks_together() -> None:
    odd = lambda b, h, x, y: y % 2 == 1  # noqa: E731
    both, either = (
        create_mask(and_masks(causal, odd), 1, 1, 4, 4),
        create_mask(or_masks(causal, odd), 1, 1, 4, 4),
    )
    one, two = create_mask(causal, 1, 1, 4, 4), create_mask(odd, 1, 1, 4, 4)
    assert treadle.equal(both, one & two) and treadle.equal(either, one | two)
    with pytest.raises(RuntimeError, match="and_masks: expected functions"):
        and_masks(causal, 3)  # type: ignore[arg-type]
    from_score = create_mask(lambda s, b, h, x, y: treadle.where(x >= y, s, -math.inf), 1, 1, 4, 4)
    assert treadle.equal(from_score, one)
    with pytest.raises(ValueError, match="expected a function of 4 arguments, .*got one of 2"):
        create_mask(lambda a, b: a, 1, 1, 2, 2)


def test_parts_and_other_lengths() -> None:
    mask = create_block_mask(causal, 2, 3, 300, 200, BLOCK_SIZE=(128, 64))
    assert mask[0].shape == (1, 3, 300, 200) and mask[0, 1].shape == (1, 1, 300, 200)
    assert mask[:, :, 2].shape == (2, 3, 44, 200)
    longer = mask._adjust(300, 400)
    assert longer.shape == (2, 3, 300, 400)
    assert int(longer.to_dense().sum()) == int(mask.to_dense().sum())
    (q,), (k,) = tensors(44, heads=3), tensors(200, heads=3)
    with pytest.raises(RuntimeError, match="Cannot use mask_mod from a sliced BlockMask"):
        flex_attention(q, k, k, block_mask=mask[:, :, 2])
    with pytest.raises(RuntimeError) as error:
        flex_attention(k, k, k, block_mask=mask)
    assert str(error.value) == (
        "flex_attention: expected a block_mask for 200 queries and 200 keys, got one that was "
        "created for 300 and 200"
    )
    small = create_block_mask(causal, 3, None, 200, 200)
    with pytest.raises(RuntimeError) as batch:
        flex_attention(k, k, k, block_mask=small)
    assert str(batch.value) == (
        "flex_attention: expected a block_mask for a batch of 2 with 3 heads, got one for 3 and 1"
    )


def test_arguments_that_do_not_fit() -> None:
    q, k = tensors(4, 4)
    with pytest.raises(NotImplementedError, match=r"expected query, key and value of 4 dimensions"):
        flex_attention(q[0], k[0], k[0])
    with pytest.raises(ValueError, match="expected query, key and value of one dtype"):
        flex_attention(q.float(), k, k)
    with pytest.raises(ValueError, match=r"expected query \(B, Hq, L, E\), key"):
        flex_attention(q[..., :3], k, k)
