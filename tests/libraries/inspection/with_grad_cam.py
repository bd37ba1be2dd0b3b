"""grad-cam: where a network looks."""

# SPDX-License-Identifier: Apache-2.0

import torch
from pytorch_grad_cam import EigenCAM, GradCAM, GradCAMPlusPlus, LayerCAM
from pytorch_grad_cam.utils.model_targets import ClassifierOutputTarget
from torch import nn
from uses import draw, main, settle, use


@use("four methods to explain a prediction by a layer's activations")
def look():
    model = settle(nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(784, 5)))
    x, found = draw(1, 3, 16, 16), []
    for way in (GradCAM, GradCAMPlusPlus, LayerCAM, EigenCAM):
        with way(model.eval(), [model[1]]) as asked:
            found.append(torch.from_numpy(asked(x, [ClassifierOutputTarget(2)])))
    return found


if __name__ == "__main__":
    main("grad-cam")
