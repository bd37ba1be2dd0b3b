"""lion-pytorch: an optimizer that goes by signs."""

# SPDX-License-Identifier: Apache-2.0

import torch
from lion_pytorch import Lion
from uses import descend, draw, main, settle, use


@use("train, resume from a saved state")
def lion():
    layers = torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)
    model = settle(torch.nn.Sequential(*layers))
    x = draw(16, 4)

    def loss():
        return (model(x) - 1).square().mean()

    first = Lion(model.parameters(), lr=1e-2, weight_decay=1e-2)
    losses = descend(model, loss, 5, first)
    second = Lion(model.parameters(), lr=1e-2, decoupled_weight_decay=True)
    second.load_state_dict(first.state_dict())
    return [losses, descend(model, loss, 5, second)]


if __name__ == "__main__":
    main("lion-pytorch")
