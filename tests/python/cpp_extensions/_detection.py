"""Faster R-CNN of torchvision on two small pictures: one training step and one detection, with
weights and draws that NumPy makes from a seed, on Treadle and on PyTorch.

    python -m treadle.run _detection.py OUT.npz float64     # on Treadle
    python _detection.py OUT.npz float64                    # on PyTorch

The file that it writes has the losses, the norms of each parameter's gradient and of its change by
a step of SGD, and the detections. tests/data/stable_abi/detection.npz is PyTorch's.
"""

# SPDX-License-Identifier: Apache-2.0

import sys

import numpy
import torch
from torchvision.models.detection import fasterrcnn_resnet50_fpn

_random = numpy.random.RandomState(0)


def permutation(count, *, device=None, **options):
    """In place of torch.randperm, by which the model samples anchors and proposals."""
    return torch.from_numpy(_random.permutation(count)).to(device)


def set_weights(model):
    """He's initialisation by NumPy, in the order of the names. Normalizations take the mean and the
    variance of the first batch."""
    for name, value in sorted(model.state_dict().items()):
        if not value.is_floating_point():  # how many batches a normalization has seen
            continue
        if value.ndim > 1:
            drawn = (2 / value[0].numel()) ** 0.5 * _random.randn(*value.shape)
        elif name.endswith(("running_var", "bn1.weight", "bn2.weight", "downsample.1.weight")):
            drawn = 0.5 + _random.rand(*value.shape)
        elif name.endswith("bn3.weight"):
            drawn = 0.2 * _random.rand(*value.shape)
        else:
            drawn = 0.1 * _random.randn(*value.shape)
        if "bbox_pred" in name:
            drawn *= 0.2
        value.copy_(torch.from_numpy(drawn))
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.momentum = 1.0


def pictures(dtype):
    """Two pictures of different sizes, with boxes that are brighter than their surroundings."""
    images, targets = [], []
    for height, width in ((96, 128), (112, 80)):
        image = 0.3 * _random.rand(3, height, width)
        corners = _random.rand(3, 2) * (width / 2, height / 2)
        boxes = numpy.concatenate([corners, corners + 16 + 24 * _random.rand(3, 2)], 1)
        for left, top, right, bottom in boxes.astype(int):
            image[:, top:bottom, left:right] += 0.5
        images.append(torch.from_numpy(image).to(dtype))
        labels = torch.from_numpy(_random.randint(1, 5, 3))
        targets.append({"boxes": torch.from_numpy(boxes).to(dtype), "labels": labels})
    return images, targets


def norm(tensor):
    """The root of the sum of squares, in float64."""
    return numpy.linalg.norm(tensor.double().numpy())


def main(out, dtype):
    torch.randperm = permutation
    found = {}
    model = fasterrcnn_resnet50_fpn(
        weights=None, weights_backbone=None, num_classes=5, min_size=96, max_size=160,
        rpn_post_nms_top_n_train=200, rpn_post_nms_top_n_test=100, box_score_thresh=0.01,
        trainable_backbone_layers=5,
    )  # fmt: skip
    set_weights(model.to(dtype))
    images, targets = pictures(dtype)

    model.train()
    losses = model(images, targets)
    sum(losses.values()).backward()
    for name, loss in losses.items():
        found[f"loss {name}"] = loss.detach().numpy()
    parameters = list(model.parameters())
    found["gradients"] = numpy.array([norm(p.grad) for p in parameters])
    before = [p.detach().clone() for p in parameters]
    torch.optim.SGD(parameters, lr=1e-3, momentum=0.9, weight_decay=1e-4).step()
    found["steps"] = numpy.array([norm(p.detach() - b) for p, b in zip(parameters, before)])

    model.eval()
    with torch.no_grad():
        model.roi_heads.box_predictor.cls_score.bias[0] -= 20  # else all is background
        for i, detection in enumerate(model(images)):
            for name, value in detection.items():
                found[f"detection {i} {name}"] = value.numpy()
    numpy.savez_compressed(out, **found)
    for name in losses:
        print(name, found[f"loss {name}"])
    for i in range(len(images)):
        print("detections", found[f"detection {i} labels"], found[f"detection {i} scores"][:5])


if __name__ == "__main__":
    main(sys.argv[1], getattr(torch, sys.argv[2]))
