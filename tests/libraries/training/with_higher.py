"""higher: gradients through the steps of an optimizer."""

# SPDX-License-Identifier: Apache-2.0

import higher
import torch
from uses import draw, main, settle, use


@use("differentiate through two inner optimization steps")
def inner():
    model = settle(torch.nn.Linear(3, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    with higher.innerloop_ctx(model, optimizer, copy_initial_weights=False) as (inner, steps):
        for _ in range(2):
            steps.step(inner(draw(4, 3)).square().mean())
        loss = inner(draw(4, 3)).square().mean()
        loss.backward()
    return [loss, model.weight.grad]


if __name__ == "__main__":
    main("higher")
