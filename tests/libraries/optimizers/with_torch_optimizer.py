"""torch-optimizer: more optimizers."""

# SPDX-License-Identifier: Apache-2.0

import torch
import torch_optimizer
from uses import descend, draw, main, settle, use


@use("fifteen optimizers")
def optimizers():
    x, found = draw(6, 4), {}
    for name in (
        "AccSGD AdaBelief AdaBound AdamP AggMo Apollo DiffGrad Lamb MADGRAD NovoGrad QHAdam RAdam "
        "Ranger SGDP Yogi"
    ).split():
        model = settle(torch.nn.Linear(4, 8))
        optimizer = getattr(torch_optimizer, name)(model.parameters(), lr=0.01)
        found[name] = descend(model, lambda: model(x).square().mean(), optimizer=optimizer)
    return found


if __name__ == "__main__":
    main("torch-optimizer")
