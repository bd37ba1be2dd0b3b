"""monai: medical images."""

# SPDX-License-Identifier: Apache-2.0

import numpy
import torch
from monai.data import DataLoader, Dataset, decollate_batch
from monai.inferers import sliding_window_inference
from monai.losses import DiceCELoss, DiceLoss, FocalLoss
from monai.metrics import DiceMetric
from monai.networks.nets import SegResNet, UNet
from monai.transforms import (
    Compose,
    EnsureChannelFirstd,
    RandFlipd,
    Resized,
    Rotate90d,
    ScaleIntensityd,
    SpatialPadd,
)
from uses import descend, draw, main, settle, use


@use("train a network on volumes")
def volumes():
    model = settle(UNet(3, 1, 2, channels=(4, 8), strides=(2,), num_res_units=1))
    x, loss = draw(1, 1, 16, 16, 16), DiceCELoss(to_onehot_y=True, softmax=True)
    goal = (draw(1, 1, 16, 16, 16) > 0).float()
    return descend(model, lambda: loss(model(x), goal))


@use("transforms of dictionaries, a dataset, batches")
def transforms():
    change = Compose(
        [
            EnsureChannelFirstd("image", channel_dim="no_channel"),
            ScaleIntensityd("image"),
            Rotate90d("image"),
            RandFlipd("image", prob=1.0, spatial_axis=0),
            SpatialPadd("image", (12, 12)),
            Resized("image", (16, 16)),
        ]
    )
    rows = [{"image": numpy.random.rand(10, 10).astype("float32")} for _ in range(4)]
    batch = next(iter(DataLoader(Dataset(rows, change), batch_size=4)))
    return [batch["image"], len(decollate_batch(batch))]


@use("sliding windows, losses, metrics")
def windows():
    model = settle(SegResNet(2, init_filters=8, in_channels=1, out_channels=2)).eval()
    x, y = draw(1, 1, 32, 32), (draw(1, 2, 32, 32) > 0).float()
    with torch.no_grad():
        found = sliding_window_inference(x, (16, 16), 2, model, overlap=0.25, mode="gaussian")
    score = DiceMetric()((found > 0).float(), y)
    return [found, DiceLoss(sigmoid=True)(found, y), FocalLoss()(found, y), score]


if __name__ == "__main__":
    main("monai")
