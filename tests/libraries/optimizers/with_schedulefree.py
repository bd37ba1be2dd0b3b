"""schedulefree: optimizers without a schedule."""

# SPDX-License-Identifier: Apache-2.0

import schedulefree
import torch
from uses import descend, draw, main, settle, use


@use("three optimizers")
def optimizers():
    x, found = draw(6, 4), []
    for name in ("SGDScheduleFree", "AdamWScheduleFree", "RAdamScheduleFree"):
        model = settle(torch.nn.Linear(4, 3))
        optimizer = getattr(schedulefree, name)(model.parameters(), lr=0.01)
        optimizer.train()
        found.append(descend(model, lambda: model(x).square().mean(), optimizer=optimizer))
        optimizer.eval()
        found.append(list(model.parameters()))
    return found


if __name__ == "__main__":
    main("schedulefree")
