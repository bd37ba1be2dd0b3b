"""torchdiffeq: differential equations with gradients."""

# SPDX-License-Identifier: Apache-2.0

import torch
import torchdiffeq
from uses import draw, main, settle, use


@use("solvers with fixed and adaptive steps, gradients by the adjoint method")
def solve():
    net = settle(torch.nn.Linear(2, 2))
    start, times = draw(3, 2), torch.linspace(0, 1, 5)

    class Field(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.net = net

        def forward(self, t, y):
            return self.net(y).tanh()

    field = Field()
    found = [
        torchdiffeq.odeint(field, start, times, method=method, rtol=1e-5, atol=1e-6)
        for method in ("dopri5", "rk4", "euler", "midpoint", "bosh3", "implicit_adams")
    ]
    torchdiffeq.odeint_adjoint(field, start, times).square().sum().backward()
    return [found, net.weight.grad]


@use("stop at an event")
def event():
    def fall(t, state):
        return state[1], torch.full_like(state[1], -9.8)

    when, states = torchdiffeq.odeint_event(
        fall,
        (torch.tensor([10.0]), torch.tensor([0.0])),
        torch.tensor(0.0),
        event_fn=lambda t, state: state[0].squeeze(),
        atol=1e-6,
        rtol=1e-6,
    )
    return [when, states[1][-1]]


if __name__ == "__main__":
    main("torchdiffeq")
