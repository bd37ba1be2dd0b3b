"""ema-pytorch: an average of weights."""

# SPDX-License-Identifier: Apache-2.0

import torch
from ema_pytorch import EMA
from uses import draw, main, settle, use


@use("keep a moving average of a model's weights")
def follow():
    model = settle(torch.nn.Linear(4, 3))
    average = EMA(model, beta=0.9, update_after_step=0, update_every=1)
    for _ in range(3):
        with torch.no_grad():
            model.weight.mul_(0.8)
        average.update()
    return [average(draw(2, 4)), sorted(average.state_dict())]


if __name__ == "__main__":
    main("ema-pytorch")
