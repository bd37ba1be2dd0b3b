"""efficientnet_pytorch: networks for pictures."""

# SPDX-License-Identifier: Apache-2.0

import torch
from efficientnet_pytorch import EfficientNet
from uses import draw, main, settle, use


@use("classify, features")
def classify():
    model = settle(EfficientNet.from_name("efficientnet-b0", num_classes=4)).eval()
    with torch.no_grad():
        return [model(draw(1, 3, 64, 64)), model.extract_features(draw(1, 3, 64, 64))]


if __name__ == "__main__":
    main("efficientnet_pytorch")
