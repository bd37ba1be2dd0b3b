"""open_clip: images and texts in one space."""

# SPDX-License-Identifier: Apache-2.0

import open_clip
import torch
from uses import descend, draw, main, settle, use


def make():
    return settle(
        open_clip.model.CLIP(
            embed_dim=16,
            vision_cfg={
                "image_size": 32,
                "patch_size": 8,
                "layers": 2,
                "width": 32,
                "head_width": 8,
            },
            text_cfg={"context_length": 8, "vocab_size": 50, "width": 32, "heads": 4, "layers": 2},
        )
    )


@use("encode images and texts")
def encode():
    model, texts = make().eval(), torch.arange(16).reshape(2, 8)
    with torch.no_grad():
        return [model.encode_image(draw(2, 3, 32, 32), normalize=True), model.encode_text(texts)]


@use("train by the contrastive loss")
def train():
    model, loss = make(), open_clip.loss.ClipLoss()
    images, texts = draw(2, 3, 32, 32), torch.arange(16).reshape(2, 8)
    return descend(model, lambda: loss(*model(images, texts)))


if __name__ == "__main__":
    main("open-clip-torch")
