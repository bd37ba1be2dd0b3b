"""torchsde: stochastic differential equations."""

# SPDX-License-Identifier: Apache-2.0

import torch
import torchsde
from uses import draw, main, settle, use


class Equation(torch.nn.Module):
    noise_type, sde_type = "diagonal", "ito"

    def __init__(self):
        super().__init__()
        self.drift = settle(torch.nn.Linear(3, 3))

    def f(self, t, y):
        return self.drift(y).tanh()

    def g(self, t, y):
        return torch.zeros_like(y)


@use("integrate with gradients, also by the adjoint method")
def integrate():
    equation, start = Equation(), draw(2, 3)
    times = torch.linspace(0, 1, 4)
    one = torchsde.sdeint(equation, start, times, method="euler", dt=0.1)
    equation.sde_type = "stratonovich"
    two = torchsde.sdeint_adjoint(equation, start, times, method="midpoint", dt=0.1)
    (one.sum() + two.sum()).backward()
    return [one, two, equation.drift.weight.grad]


@use("Brownian motion is consistent between intervals")
def motion():
    path = torchsde.BrownianInterval(t0=0.0, t1=1.0, size=(4, 2), entropy=3)
    whole = path(0.0, 1.0)
    return [torch.allclose(whole, path(0.0, 0.4) + path(0.4, 1.0), atol=1e-5), whole.shape]


if __name__ == "__main__":
    main("torchsde")
