"""ultralytics: YOLO."""

# SPDX-License-Identifier: Apache-2.0

import numpy
import torch
from ultralytics.nn.tasks import ClassificationModel, DetectionModel
from ultralytics.utils import ops
from ultralytics.utils.metrics import bbox_iou
from uses import draw, main, settle, use


@use("detect with YOLO, with gradients")
def detect():
    model = settle(DetectionModel("yolov8n.yaml", ch=3, nc=3, verbose=False))
    model.train()
    found = model(draw(2, 3, 128, 128))
    parts = list(found.values()) if isinstance(found, dict) else list(found)
    flat = [p for p in parts if isinstance(p, torch.Tensor)] or list(parts[0])
    sum(p.square().mean() for p in flat if p.is_floating_point()).backward()
    return [*(list(p.shape) for p in flat), model.model[0].conv.weight.grad]


@use("classify; boxes and their overlaps")
def classify():
    model = settle(ClassificationModel("yolov8n-cls.yaml", ch=3, nc=4, verbose=False)).eval()
    boxes = torch.tensor([[1.0, 2, 11, 12], [3, 4, 9, 15]])
    with torch.no_grad():
        out = model(draw(1, 3, 64, 64))
    return [
        out[0] if isinstance(out, tuple) else out,
        bbox_iou(boxes[:1], boxes, xywh=False, CIoU=True),
        ops.xyxy2xywh(boxes),
        ops.xywh2xyxy(numpy.array([[5.0, 5, 4, 2]])),
    ]


if __name__ == "__main__":
    main("ultralytics")
