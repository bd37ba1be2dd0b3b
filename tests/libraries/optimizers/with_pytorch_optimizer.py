"""pytorch_optimizer: a hundred optimizers and their helpers."""

# SPDX-License-Identifier: Apache-2.0

import pytorch_optimizer
import torch
from uses import descend, draw, main, settle, use


@use("eleven optimizers")
def optimizers():
    x, found = draw(6, 4), {}
    for name in (
        "adabelief adan adopt came diffgrad lamb lion madgrad prodigy ranger21 tiger"
    ).split():
        model = settle(torch.nn.Linear(4, 8))
        options = {"num_iterations": 10} if name == "ranger21" else {}
        optimizer = pytorch_optimizer.load_optimizer(name)(model.parameters(), lr=0.01, **options)
        found[name] = descend(model, lambda: model(x).square().mean(), optimizer=optimizer)
    return found


@use("lookahead, SAM, schedules, losses")
def helpers():
    model, x = settle(torch.nn.Linear(4, 2)), draw(6, 4)
    inner = pytorch_optimizer.AdamP(model.parameters(), lr=0.01)
    ahead = pytorch_optimizer.Lookahead(inner, k=2)
    losses = descend(model, lambda: model(x).square().mean(), optimizer=ahead)
    sam = pytorch_optimizer.SAM(model.parameters(), torch.optim.SGD, lr=0.01)
    model(x).square().mean().backward()
    sam.first_step(zero_grad=True)
    model(x).square().mean().backward()
    sam.second_step(zero_grad=True)
    focal = pytorch_optimizer.BCEFocalLoss()(draw(6, 1).sigmoid(), torch.ones(6, 1))
    return [losses, model.weight, focal]


if __name__ == "__main__":
    main("pytorch_optimizer")
