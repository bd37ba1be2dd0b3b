"""timm: image models by name."""

# SPDX-License-Identifier: Apache-2.0

import timm
import torch
from timm.data import Mixup, create_transform, resolve_data_config
from timm.loss import LabelSmoothingCrossEntropy
from timm.optim import create_optimizer_v2
from timm.scheduler import CosineLRScheduler
from timm.utils import ModelEmaV3, accuracy
from uses import descend, draw, main, settle, use


@use("classify with a residual network")
def residual():
    model = settle(timm.create_model("resnet10t", num_classes=5)).eval()
    x = draw(2, 3, 64, 64)
    return [model(x), model.forward_features(x)]


@use("train a vision transformer with label smoothing and AdamW")
def transformer():
    model = timm.create_model(
        "vit_tiny_patch16_224", img_size=32, num_classes=5, depth=2, drop_path_rate=0.0
    )
    settle(model)
    optimizer = create_optimizer_v2(model, opt="adamw", lr=1e-3, weight_decay=0.05)
    schedule = CosineLRScheduler(optimizer, t_initial=10, warmup_t=2, warmup_lr_init=1e-5)
    loss, x = LabelSmoothingCrossEntropy(0.1), draw(4, 3, 32, 32)
    y = torch.tensor([0, 1, 2, 3])
    losses = descend(model, lambda: loss(model(x), y), optimizer=optimizer)
    schedule.step(3)
    return [losses, optimizer.param_groups[0]["lr"], accuracy(model(x), y, topk=(1, 3))]


@use("features of several stages")
def features():
    model = settle(timm.create_model("mobilenetv3_small_050", features_only=True)).eval()
    return [*model(draw(1, 3, 64, 64)), model.feature_info.channels()]


@use("a feature extractor by tracing the graph")
def traced_features():
    from torchvision.models.feature_extraction import create_feature_extractor

    model = settle(timm.create_model("resnet10t", num_classes=3)).eval()
    taken = create_feature_extractor(model, {"layer1": "early", "layer4": "late"})
    return taken(draw(1, 3, 64, 64))


@use("an average of weights, Mixup, Lamb")
def training_parts():
    model = timm.create_model("convnext_atto", num_classes=4, depths=(1, 1, 1, 1)).train()
    settle(model)
    average = ModelEmaV3(model, decay=0.9)
    mix = Mixup(mixup_alpha=0.2, num_classes=4)
    x, y = mix(draw(4, 3, 32, 32), torch.tensor([0, 1, 2, 3]))
    optimizer = create_optimizer_v2(model, opt="lamb", lr=1e-3)

    def loss():
        return -(y * model(x).log_softmax(-1)).sum(-1).mean()

    losses = descend(model, loss, optimizer=optimizer)
    average.update(model)
    return [losses, sum(p.abs().sum() for p in average.module.parameters())]


@use("the transform of a model's configuration")
def transform():
    from PIL import Image

    model = timm.create_model("resnet10t")
    config = resolve_data_config({}, model=model)
    image = Image.new("RGB", (300, 260), (200, 100, 50))
    return create_transform(**config)(image)


if __name__ == "__main__":
    main("timm")
