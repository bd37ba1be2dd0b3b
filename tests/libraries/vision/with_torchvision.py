"""torchvision: models, transforms and operators for images."""

# SPDX-License-Identifier: Apache-2.0

import torch
import torchvision
from torch.nn.functional import cross_entropy
from torchvision import tv_tensors
from torchvision.models import feature_extraction
from torchvision.transforms import v2
from uses import descend, draw, main, settle, uniform, use


@use("train a residual network")
def train():
    model = settle(torchvision.models.resnet18(num_classes=4))
    x, y = draw(4, 3, 64, 64), torch.tensor([0, 1, 2, 3])
    return descend(model, lambda: cross_entropy(model(x), y), steps=2)


@use("classify with five kinds of model")
def classify():
    names = ("mobilenet_v3_small", "squeezenet1_1", "shufflenet_v2_x0_5", "regnet_y_400mf")
    x = draw(1, 3, 64, 64)
    with torch.no_grad():
        found = [
            settle(torchvision.models.get_model(name, num_classes=5)).eval()(x) for name in names
        ]
        vit = torchvision.models.VisionTransformer(32, 8, 2, 2, 16, 32, num_classes=5)
        return [*found, settle(vit).eval()(x[..., :32, :32])]


@use("detect objects: RetinaNet and Faster R-CNN")
def detect():
    options = {"weights": None, "weights_backbone": None, "num_classes": 3, "min_size": 64}
    images = [uniform(3, 64, 64), uniform(3, 64, 80)]
    boxes = torch.tensor([[4.0, 4.0, 40.0, 40.0], [10.0, 20.0, 60.0, 60.0]])
    targets = [{"boxes": boxes, "labels": torch.tensor([1, 2])} for _ in images]
    losses = {}
    for build in (
        torchvision.models.detection.retinanet_resnet50_fpn,
        torchvision.models.detection.fasterrcnn_mobilenet_v3_large_320_fpn,
    ):
        model = settle(build(**options)).train()
        given = model(images, targets)
        sum(given.values()).backward()
        losses |= {f"{build.__name__} {k}": v for k, v in given.items()}
    with torch.no_grad():
        found = model.eval()(images)
    return [losses, [sorted(part) for part in found]]


@use("segment images")
def segment():
    model = torchvision.models.segmentation.lraspp_mobilenet_v3_large(
        weights=None, weights_backbone=None, num_classes=3
    )
    settle(model).eval()
    with torch.no_grad():
        return model(draw(1, 3, 64, 64))["out"]


@use("boxes: non-maximum suppression, overlaps, roi_align")
def boxes():
    given = torch.tensor([[0.0, 0, 10, 10], [1, 1, 11, 11], [20, 20, 30, 30]])
    scores = torch.tensor([0.9, 0.8, 0.7])
    ops, x = torchvision.ops, torch.arange(1024.0).reshape(1, 1, 32, 32)
    return [
        ops.nms(given, scores, 0.5),
        ops.batched_nms(given, scores, torch.tensor([0, 1, 0]), 0.5),
        ops.box_iou(given, given),
        ops.generalized_box_iou(given, given),
        ops.roi_align(x, [given], output_size=3, spatial_scale=1.0, sampling_ratio=2),
        ops.sigmoid_focal_loss(draw(4), torch.ones(4), reduction="mean"),
    ]


@use("roi_pool, deform_conv2d")
def compiled_operators():
    ops, x = torchvision.ops, draw(1, 2, 16, 16)
    layer = settle(ops.DeformConv2d(2, 3, 3, padding=1))
    moved = layer(x, torch.zeros(1, 18, 16, 16) + 0.5)
    return [ops.roi_pool(x, [torch.tensor([[1.0, 1, 9, 9]])], output_size=2), moved]


@use("transforms of images, boxes and masks together")
def transforms():
    image = tv_tensors.Image((torch.arange(3 * 40 * 50) % 251).to(torch.uint8).reshape(3, 40, 50))
    box = tv_tensors.BoundingBoxes([[5, 5, 20, 25]], format="XYXY", canvas_size=(40, 50))
    mask = tv_tensors.Mask(torch.eye(40, 50, dtype=torch.bool))
    change = v2.Compose(
        [
            v2.Resize((32, 32), antialias=True),
            v2.RandomHorizontalFlip(p=1.0),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize([0.5] * 3, [0.25] * 3),
        ]
    )
    return change(image, box, mask)


@use("classic transforms of an image")
def classic():
    from PIL import Image

    picture = Image.radial_gradient("L").convert("RGB")
    t = torchvision.transforms
    brighter = t.Lambda(lambda image: t.functional.adjust_brightness(image, 1.2))
    change = t.Compose([t.Resize(48), t.CenterCrop(32), brighter, t.ToTensor()])
    x = change(picture)
    return [x, t.functional.rotate(x, 30.0), t.functional.gaussian_blur(x, [5, 5])]


@use("features inside a model, by tracing its graph")
def features():
    model = settle(torchvision.models.resnet18()).eval()
    taken = feature_extraction.create_feature_extractor(model, {"layer1": "one", "layer3.0": "x"})
    return taken(draw(1, 3, 64, 64))


@use("a dataset, a grid of images")
def data():
    # The data set draws its images itself: only their form is the same everywhere.
    images = torchvision.datasets.FakeData(8, (3, 16, 16), 4, torchvision.transforms.ToTensor())
    loader = torch.utils.data.DataLoader(images, batch_size=4)
    batches = [[x.shape, 0.4 < x.mean().item() < 0.6, y.shape] for x, y in loader]
    return [batches, torchvision.utils.make_grid(uniform(5, 3, 8, 8), nrow=3)]


if __name__ == "__main__":
    main("torchvision")
