"""torchinfo: a summary of a model."""

# SPDX-License-Identifier: Apache-2.0

import torchinfo
from torch import nn
from uses import main, use


@use("the output shape and the cost of each layer")
def summary():
    model = nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(784, 5)
    )
    found = torchinfo.summary(model, (1, 3, 16, 16), verbose=0)
    return [found.total_params, found.total_mult_adds, str(found)]


@use("the same for a recurrent network and an encoder")
def recurrent():
    encoder = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    found = [torchinfo.summary(nn.LSTM(4, 6), (5, 2, 4), verbose=0)]
    found += [torchinfo.summary(encoder, (2, 5, 8), verbose=0, depth=2)]
    return [str(each) for each in found]


if __name__ == "__main__":
    main("torchinfo")
