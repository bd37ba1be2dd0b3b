"""thop: operations and parameters of a model."""

# SPDX-License-Identifier: Apache-2.0

import torch
import torchvision
from thop import clever_format, profile
from uses import main, use


@use("count the operations of a residual network and of a recurrent layer")
def count():
    model = torchvision.models.resnet18()
    found = profile(model, inputs=(torch.zeros(1, 3, 64, 64),), verbose=False)
    layer = torch.nn.GRU(4, 8)
    steps = profile(layer, inputs=(torch.zeros(5, 2, 4),), verbose=False)
    return [found, clever_format(found, "%.3f"), steps]


if __name__ == "__main__":
    main("thop")
