"""x-transformers: transformers with many options."""

# SPDX-License-Identifier: Apache-2.0

import torch
from uses import descend, main, settle, use
from x_transformers import AutoregressiveWrapper, Decoder, Encoder, TransformerWrapper, XTransformer

IDS = torch.arange(16).reshape(2, 8)


@use("train a decoder, generate")
def decoder():
    layers = Decoder(dim=32, depth=2, heads=4, rotary_pos_emb=True, attn_kv_heads=2, ff_glu=True)
    net = TransformerWrapper(num_tokens=50, max_seq_len=16, attn_layers=layers)
    model = settle(AutoregressiveWrapper(net))
    losses = descend(model, lambda: model(IDS))
    return [losses, model.generate(IDS[:, :3], 4, temperature=0.0, cache_kv=True)]


@use("an encoder, an encoder with a decoder")
def encoder():
    layers = Encoder(dim=32, depth=2, heads=4, use_rmsnorm=True, alibi_pos_bias=True)
    net = settle(TransformerWrapper(num_tokens=50, max_seq_len=16, attn_layers=layers)).eval()
    both = settle(
        XTransformer(
            dim=32,
            enc_num_tokens=50,
            enc_depth=1,
            enc_heads=4,
            enc_max_seq_len=8,
            dec_num_tokens=50,
            dec_depth=1,
            dec_heads=4,
            dec_max_seq_len=8,
        )
    )
    return [net(IDS), both(IDS, IDS)]


if __name__ == "__main__":
    main("x-transformers")
