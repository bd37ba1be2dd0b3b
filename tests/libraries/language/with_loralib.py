"""loralib: small changes of large layers."""

# SPDX-License-Identifier: Apache-2.0

import loralib
from torch import nn
from uses import descend, draw, main, settle, use


@use("train the added low-rank weights, merge them")
def adapt():
    model = settle(nn.Sequential(loralib.Linear(4, 6, r=2), nn.ReLU(), loralib.Linear(6, 2, r=2)))
    loralib.mark_only_lora_as_trainable(model)
    x = draw(5, 4)
    losses = descend(model, lambda: model(x).square().mean())
    return [losses, sorted(loralib.lora_state_dict(model)), model.eval()(x)]


if __name__ == "__main__":
    main("loralib")
