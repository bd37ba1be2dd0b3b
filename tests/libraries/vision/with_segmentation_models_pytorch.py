"""segmentation-models-pytorch: which pixel is what."""

# SPDX-License-Identifier: Apache-2.0

import segmentation_models_pytorch as smp
import torch
from uses import descend, draw, main, settle, use


@use("train U-Net with the Dice loss")
def unet():
    model = settle(smp.Unet("resnet18", encoder_weights=None, classes=1))
    loss, x = smp.losses.DiceLoss("binary"), draw(1, 3, 64, 64)
    goal = (draw(1, 1, 64, 64) > 0).float()
    return descend(model, lambda: loss(model(x), goal), steps=2)


@use("four more architectures, metrics")
def others():
    x, found = draw(1, 3, 64, 64), []
    with torch.no_grad():
        for kind in (smp.FPN, smp.Linknet, smp.DeepLabV3Plus, smp.PSPNet):
            found.append(settle(kind("resnet18", encoder_weights=None, classes=2)).eval()(x))
    parts = smp.metrics.get_stats(torch.ones(1, 4).long(), torch.tensor([[1, 0, 1, 1]]), "binary")
    return [found, smp.metrics.iou_score(*parts, reduction="micro")]


if __name__ == "__main__":
    main("segmentation-models-pytorch")
