"""Attention and transformers, against NumPy in float64."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from nn_arrays import normal, softmax, to_numpy

import treadle as torch
import treadle.nn.functional as F
from treadle import nn
from treadle.nn.attention import SDPBackend, sdpa_kernel
from treadle_testing.families.attention import reference


def _layer_norm(x: Any, norm: nn.LayerNorm) -> Any:
    y = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + norm.eps)
    return y * to_numpy(norm.weight) + to_numpy(norm.bias)


def _multi_head(layer: nn.MultiheadAttention, q: Any, k: Any, v: Any, mask: Any = 0) -> Any:
    """(L, N, E) inputs, an additive mask that broadcasts to (N, heads, L, S)."""
    width, heads = layer.embed_dim, layer.num_heads
    if layer.in_proj_weight is not None:
        ws = np.split(to_numpy(layer.in_proj_weight), 3)
    else:
        ws = [to_numpy(w) for w in (layer.q_proj_weight, layer.k_proj_weight, layer.v_proj_weight)]
    bs = [0, 0, 0] if layer.in_proj_bias is None else np.split(to_numpy(layer.in_proj_bias), 3)
    parts = [x @ w.T + b for x, w, b in zip((q, k, v), ws, bs)]
    if layer.bias_k is not None:
        for i, b in ((1, layer.bias_k), (2, layer.bias_v)):
            parts[i] = np.concatenate([parts[i], np.repeat(to_numpy(b), q.shape[1], 1)])
    split = [p.reshape(p.shape[0], p.shape[1], heads, -1).transpose(1, 2, 0, 3) for p in parts]
    if layer.add_zero_attn:
        for i in (1, 2):
            zero = np.zeros_like(split[i][:, :, :1])
            split[i] = np.concatenate([split[i], zero], 2)
    scores = split[0] @ split[1].swapaxes(-1, -2) / math.sqrt(width // heads) + mask
    weights = softmax(scores)
    merged = (weights @ split[2]).transpose(2, 0, 1, 3).reshape(q.shape[0], q.shape[1], width)
    out = merged @ to_numpy(layer.out_proj.weight).T
    return (out if layer.out_proj.bias is None else out + to_numpy(layer.out_proj.bias)), weights


@pytest.mark.parametrize("shape", [(3, 130, 8), (2, 2, 70, 4)])
@pytest.mark.parametrize("causal", [False, True])
def test_gradients_over_several_blocks(shape: tuple, causal: bool) -> None:
    """The blocked backward against the composed one, which gradgradcheck holds to differences."""
    torch.manual_seed(0)
    q, k, v = (normal(*shape).requires_grad_() for _ in range(3))
    g = normal(*shape)
    out = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    np.testing.assert_allclose(
        to_numpy(out),
        reference(to_numpy(q), to_numpy(k), to_numpy(v), causal=causal),
        rtol=1e-9,
        atol=1e-12,
    )
    blocked = torch.autograd.grad(out, (q, k, v), g)
    out = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    composed = torch.autograd.grad(out, (q, k, v), g, create_graph=True)
    for b, c in zip(blocked, composed):
        torch.testing.assert_close(b, c.detach(), rtol=1e-9, atol=1e-11)


def test_many_batches_and_keys() -> None:
    q, k, v = normal(9, 65, 4), normal(9, 300, 4), normal(9, 300, 3)
    for t in (q, k, v):
        t.requires_grad_()
    out = F.scaled_dot_product_attention(q, k, v)
    blocked = torch.autograd.grad(out.sum(), (q, k, v), retain_graph=True)
    composed = torch.autograd.grad(out.sum(), (q, k, v), create_graph=True)
    for b, c in zip(blocked, composed):
        torch.testing.assert_close(b, c.detach(), rtol=1e-9, atol=1e-11)


def test_dropout_makes_the_same_choice_in_backward() -> None:
    q, k, v = (normal(2, 5, 4).requires_grad_() for _ in range(3))

    def f(*given: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(3)
        return F.scaled_dot_product_attention(*given, dropout_p=0.4)

    assert torch.autograd.gradcheck(f, (q, k, v))
    assert torch.autograd.gradgradcheck(f, (q, k, v))
    assert torch.equal(f(q, k, v), f(q, k, v))
    torch.manual_seed(4)
    assert not torch.equal(F.scaled_dot_product_attention(q, k, v, dropout_p=0.4), f(q, k, v))
    all_gone = F.scaled_dot_product_attention(q, k, v, dropout_p=1.0)
    assert bool((all_gone == 0).all())
    value = torch.ones(1, 400, 1)
    kept = F.scaled_dot_product_attention(
        torch.zeros(1, 50, 2), torch.zeros(1, 400, 2), value, dropout_p=0.25
    )
    assert abs(kept.mean().item() - 1) < 0.02


def test_mask_that_is_trained() -> None:
    q, k, v = (normal(2, 3, 2) for _ in range(3))
    mask = normal(3, 3).requires_grad_()
    assert torch.autograd.gradcheck(lambda m: F.scaled_dot_product_attention(q, k, v, m), (mask,))


def test_bits_at_any_thread_count() -> None:
    q, k, v = (torch.randn(2, 200, 16, requires_grad=True) for _ in range(3))
    seen = []
    threads = torch.get_num_threads()
    try:
        for n in (1, 2, 3, 8):
            torch.set_num_threads(n)
            out = F.scaled_dot_product_attention(q, k, v)
            seen.append([out, *torch.autograd.grad(out.sum(), (q, k, v))])
    finally:
        torch.set_num_threads(threads)
    for other in seen[1:]:
        assert all(torch.equal(a, b) for a, b in zip(seen[0], other))


def test_wrong_arguments() -> None:
    x = torch.randn(2, 3, 4)
    f = F.scaled_dot_product_attention
    for arguments, options in [
        ((x, x[..., :3], x), {}),
        ((x, x, x[:, :2]), {}),
        ((x, x.double(), x), {}),
        ((x[0, 0], x, x), {}),
        ((x, x, x, torch.ones(3, 4, dtype=torch.bool)), {}),
        ((x, x, x, torch.ones(3, 3, dtype=torch.int64)), {}),
        ((x, x, x, torch.ones(5, 3, 3)), {}),
        ((x, x, x, torch.ones(3, 3)), {"is_causal": True}),
        ((x, x[:1].expand(3, 3, 4), x), {}),
        ((torch.randn(3, 3, 4), x, x), {"enable_gqa": True}),
    ]:
        with pytest.raises(RuntimeError, match="^scaled_dot_product_attention: expected"):
            f(*arguments, **options)
    with pytest.raises(RuntimeError, match="expected dropout_p <= 1, got dropout_p = 1.5"):
        f(x, x, x, dropout_p=1.5)


def test_backend_choice_changes_nothing() -> None:
    x = torch.randn(2, 3, 4)
    before = F.scaled_dot_product_attention(x, x, x)
    with sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.MATH]):
        assert torch.equal(F.scaled_dot_product_attention(x, x, x), before)
    with pytest.raises(AssertionError):
        with sdpa_kernel("flash"):
            pass


@pytest.mark.parametrize(
    "options",
    [{}, {"bias": False}, {"add_bias_kv": True, "add_zero_attn": True}, {"kdim": 3, "vdim": 5}],
)
def test_multihead_attention(options: dict) -> None:
    torch.manual_seed(0)
    layer = nn.MultiheadAttention(8, 2, dtype=torch.float64, **options)
    if layer.in_proj_bias is not None:
        nn.init.normal_(layer.in_proj_bias)
    q, k, v = normal(4, 3, 8), normal(5, 3, layer.kdim), normal(5, 3, layer.vdim)
    want, weights = _multi_head(layer, to_numpy(q), to_numpy(k), to_numpy(v))
    out, w = layer(q, k, v)
    np.testing.assert_allclose(to_numpy(out), want, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(to_numpy(w), weights.mean(1), rtol=1e-9, atol=1e-12)
    fast, none = layer(q, k, v, need_weights=False)
    assert none is None
    torch.testing.assert_close(fast, out)
    assert layer(q, k, v, average_attn_weights=False)[1].shape == weights.shape
    alone, w = layer(q[:, 0], k[:, 0], v[:, 0])
    torch.testing.assert_close(alone, out[:, 0])
    assert w.dim() == 2


def test_multihead_attention_masks() -> None:
    layer = nn.MultiheadAttention(8, 2, batch_first=True, dtype=torch.float64)
    x = normal(3, 4, 8)
    causal = torch.triu(torch.ones(4, 4, dtype=torch.bool), 1)
    padding = torch.tensor([[False] * 4, [False, False, True, True], [False, True, False, True]])
    mask = (
        np.where(to_numpy(causal), -np.inf, 0)
        + np.where(to_numpy(padding), -np.inf, 0)[:, None, None]
    )
    xs = to_numpy(x).swapaxes(0, 1)
    want, _ = _multi_head(layer, xs, xs, xs, mask)
    for need in (True, False):
        out, _ = layer(x, x, x, key_padding_mask=padding, attn_mask=causal, need_weights=need)
        np.testing.assert_allclose(to_numpy(out), want.swapaxes(0, 1), rtol=1e-9, atol=1e-12)
    number = torch.zeros(4, 4, dtype=torch.float64).masked_fill(causal, -math.inf)
    by_hint, _ = layer(x, x, x, attn_mask=number, is_causal=True, need_weights=False)
    by_mask, _ = layer(x, x, x, attn_mask=number, need_weights=False)
    torch.testing.assert_close(by_hint, by_mask)
    each, _ = layer(x, x, x, attn_mask=number.expand(6, 4, 4), need_weights=False)
    torch.testing.assert_close(each, by_mask)
    with pytest.raises(RuntimeError, match="Need attn_mask"):
        layer(x, x, x, is_causal=True)


def test_multihead_attention_state() -> None:
    layer = nn.MultiheadAttention(8, 2)
    assert list(layer.state_dict()) == [
        "in_proj_weight",
        "in_proj_bias",
        "out_proj.weight",
        "out_proj.bias",
    ]
    assert bool((layer.in_proj_bias == 0).all()) and bool((layer.out_proj.bias == 0).all())
    assert "NonDynamicallyQuantizableLinear(in_features=8" in repr(layer)
    with pytest.raises(AssertionError, match="divisible"):
        nn.MultiheadAttention(8, 3)


def _feed_forward(layer: Any, x: Any) -> Any:
    hidden = np.maximum(x @ to_numpy(layer.linear1.weight).T + to_numpy(layer.linear1.bias), 0)
    return hidden @ to_numpy(layer.linear2.weight).T + to_numpy(layer.linear2.bias)


def _encoder_layer(layer: Any, x: Any, mask: Any = 0) -> Any:
    def attend(y: Any) -> Any:
        return _multi_head(layer.self_attn, y, y, y, mask)[0]

    if layer.norm_first:
        x = x + attend(_layer_norm(x, layer.norm1))
        return x + _feed_forward(layer, _layer_norm(x, layer.norm2))
    x = _layer_norm(x + attend(x), layer.norm1)
    return _layer_norm(x + _feed_forward(layer, x), layer.norm2)


def _decoder_layer(layer: Any, x: Any, memory: Any, mask: Any) -> Any:
    x = _layer_norm(x + _multi_head(layer.self_attn, x, x, x, mask)[0], layer.norm1)
    x = _layer_norm(x + _multi_head(layer.multihead_attn, x, memory, memory)[0], layer.norm2)
    return _layer_norm(x + _feed_forward(layer, x), layer.norm3)


@pytest.mark.parametrize("norm_first", [False, True])
def test_encoder_layer(norm_first: bool) -> None:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(
        8, 2, 16, dropout=0.3, norm_first=norm_first, dtype=torch.float64
    ).eval()
    x = normal(4, 3, 8)
    np.testing.assert_allclose(
        to_numpy(layer(x)), _encoder_layer(layer, to_numpy(x)), rtol=1e-8, atol=1e-10
    )
    layer.train()
    assert not torch.equal(layer(x), layer(x))


def test_transformer() -> None:
    torch.manual_seed(0)
    model = nn.Transformer(8, 2, 2, 2, 16, dropout=0.0, dtype=torch.float64)
    src, tgt = normal(5, 3, 8), normal(4, 3, 8)
    mask = model.generate_square_subsequent_mask(4, dtype=torch.float64)
    assert mask[0, 1].item() == -math.inf and mask[1, 0].item() == 0
    memory = to_numpy(src)
    for layer in model.encoder.layers:
        memory = _encoder_layer(layer, memory)
    memory = _layer_norm(memory, model.encoder.norm)
    x = to_numpy(tgt)
    for layer in model.decoder.layers:
        x = _decoder_layer(layer, x, memory, to_numpy(mask))
    want = _layer_norm(x, model.decoder.norm)
    for options in ({}, {"tgt_is_causal": True}, {"tgt_is_causal": False}):
        out = model(src, tgt, tgt_mask=mask, **options)
        np.testing.assert_allclose(to_numpy(out), want, rtol=1e-8, atol=1e-10)
    model(src, tgt, tgt_mask=mask).sum().backward()
    assert all(p.grad is not None for p in model.parameters())
    keys = list(model.state_dict())
    assert keys[0] == "encoder.layers.0.self_attn.in_proj_weight"
    assert "decoder.layers.1.multihead_attn.out_proj.bias" in keys and "decoder.norm.weight" in keys
    # Copies of a layer do not share their parameters.
    first, second = model.encoder.layers
    assert first.linear1.weight is not second.linear1.weight
    with pytest.raises(RuntimeError, match="batch number"):
        model(src, tgt[:, :2])
    with pytest.raises(RuntimeError, match="feature number"):
        model(src[..., :6], tgt)


def test_transformer_batch_first_and_bool_causal_mask() -> None:
    model = nn.Transformer(8, 2, 1, 1, 16, dropout=0.0, batch_first=True)
    src, tgt = torch.randn(3, 5, 8), torch.randn(3, 4, 8)
    number = nn.Transformer.generate_square_subsequent_mask(4)
    torch.testing.assert_close(
        model(src, tgt, tgt_mask=number), model(src, tgt, tgt_mask=number != 0)
    )


def test_a_mask_for_another_number_of_heads_is_refused():
    layer = nn.MultiheadAttention(4, 4)
    cases = ((torch.ones(3, 2, 4), RuntimeError), (torch.ones(3, 4), AssertionError))
    for query, error in cases:
        wanted = (8, 3, 3) if query.dim() == 3 else (4, 3, 3)
        with pytest.raises(error) as caught:
            layer(query, query, query, attn_mask=torch.zeros(5, 3, 3))
        assert str(caught.value) == (
            f"The shape of the 3D attn_mask is (5, 3, 3), but should be {wanted}."
        )
