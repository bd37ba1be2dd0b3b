"""vit-pytorch: many vision transformers."""

# SPDX-License-Identifier: Apache-2.0

import torch
from uses import descend, draw, main, settle, use
from vit_pytorch import MAE, SimpleViT, ViT
from vit_pytorch.cct import CCT
from vit_pytorch.deepvit import DeepViT

SMALL = {"image_size": 32, "patch_size": 8, "num_classes": 5, "dim": 32, "depth": 2, "heads": 4}


@use("train a vision transformer")
def train():
    model, x = settle(ViT(mlp_dim=64, **SMALL)), draw(2, 3, 32, 32)
    y = torch.tensor([1, 3])
    return descend(model, lambda: torch.nn.functional.cross_entropy(model(x), y))


@use("three variants, a masked autoencoder")
def variants():
    x = draw(1, 3, 32, 32)
    cct = CCT(
        img_size=32,
        embedding_dim=32,
        n_conv_layers=1,
        kernel_size=7,
        stride=2,
        padding=3,
        pooling_kernel_size=3,
        pooling_stride=2,
        pooling_padding=1,
        num_layers=1,
        num_heads=2,
        mlp_ratio=2.0,
        num_classes=5,
        positional_embedding="learnable",
    )
    models = [SimpleViT(mlp_dim=64, **SMALL), DeepViT(mlp_dim=64, **SMALL), cct]
    encoder = ViT(mlp_dim=64, pool="mean", **SMALL)
    masked = MAE(encoder=encoder, masking_ratio=0.75, decoder_dim=16)
    loss = masked(x)
    loss.backward()
    return [[settle(model).eval()(x) for model in models], bool(loss.isfinite())]


if __name__ == "__main__":
    main("vit-pytorch")
