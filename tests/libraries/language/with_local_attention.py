"""local-attention: attention within windows."""

# SPDX-License-Identifier: Apache-2.0

import torch
from local_attention import LocalAttention, LocalMHA, LocalTransformer
from uses import descend, draw, main, settle, use


@use("attend within windows; train a transformer")
def attend():
    q, k, v = draw(2, 8, 64, 16), draw(2, 8, 64, 16), draw(2, 8, 64, 16)
    mask = torch.ones(2, 64).bool()
    mask[0, 50:] = False
    layer = LocalAttention(dim=16, window_size=16, causal=True, look_forward=0).eval()
    model = settle(
        LocalTransformer(
            num_tokens=32,
            dim=16,
            depth=2,
            max_seq_len=64,
            local_attn_window_size=8,
            heads=2,
            dim_head=8,
        )
    )
    x = torch.arange(64).reshape(2, 32) % 32
    heads = settle(LocalMHA(dim=16, window_size=8, dim_head=8, heads=2, causal=True))
    losses = descend(model, lambda: model(x, return_loss=True))
    return [layer(q, k, v, mask=mask), losses, model(x), heads(draw(2, 32, 16))]


if __name__ == "__main__":
    main("local-attention")
