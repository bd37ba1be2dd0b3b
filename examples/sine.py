"""A two-layer network is fitted to a sine three times: by plain loops, with nn, with optim.

    python -m treadle.run examples/sine.py            # 3 s on one core
    python -m treadle.run examples/sine.py --small    # 1 s

The three do the same arithmetic: gradient descent with momentum from the same weights. First it is
all written out, with tensors that ask for their gradients; then nn holds the parameters and the
loss; then an optimizer takes the step. So all three end at the same loss.

Reaches: loss <= 0.00005 (small: <= 0.001), the largest of the three
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import argparse
import math
from collections.abc import Callable

import torch
from torch import nn

RATE, MOMENTUM = 0.02, 0.9


def weights(width: int) -> list[torch.Tensor]:
    """Where all three begin: the weights and biases of the two layers."""
    generator = torch.Generator().manual_seed(1)
    return [
        torch.randn(width, 1, generator=generator),
        torch.randn(width, generator=generator),
        torch.randn(1, width, generator=generator) / math.sqrt(width),
        torch.zeros(1),
    ]


def by_loops(x: torch.Tensor, y: torch.Tensor, width: int, steps: int) -> float:
    """Only tensors and their gradients."""
    parameters = [value.requires_grad_() for value in weights(width)]
    speeds = [torch.zeros_like(parameter) for parameter in parameters]
    w1, b1, w2, b2 = parameters
    for _ in range(steps):
        hidden = torch.tanh(x @ w1.t() + b1)
        loss = (hidden @ w2.t() + b2 - y).pow(2).mean()
        loss.backward()
        with torch.no_grad():
            for parameter, speed in zip(parameters, speeds):
                speed *= MOMENTUM
                speed += parameter.grad
                parameter -= RATE * speed
                parameter.grad = None
    return loss.item()


def model_of(width: int) -> nn.Sequential:
    model = nn.Sequential(nn.Linear(1, width), nn.Tanh(), nn.Linear(width, 1))
    names = model.state_dict().keys()
    model.load_state_dict(dict(zip(names, weights(width))))
    return model


def with_nn(x: torch.Tensor, y: torch.Tensor, width: int, steps: int) -> float:
    """nn has the layers and the loss; the step is ours."""
    model, loss_function = model_of(width), nn.MSELoss()
    speeds = {name: torch.zeros_like(value) for name, value in model.named_parameters()}
    for _ in range(steps):
        loss = loss_function(model(x), y)
        model.zero_grad()
        loss.backward()
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                speeds[name].mul_(MOMENTUM).add_(parameter.grad)
                parameter.sub_(speeds[name], alpha=RATE)
    return loss.item()


def with_optim(x: torch.Tensor, y: torch.Tensor, width: int, steps: int) -> float:
    """The optimizer knows the parameters and takes the step."""
    model, loss_function = model_of(width), nn.MSELoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE, momentum=MOMENTUM)
    for _ in range(steps):
        loss = loss_function(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="a quick run, for tests")
    options = parser.parse_args()
    width, steps = (32, 1500) if options.small else (64, 8000)

    x = torch.linspace(-math.pi, math.pi, 200).unsqueeze(1)
    y = torch.sin(x)
    ways: list[Callable[..., float]] = [by_loops, with_nn, with_optim]
    losses = []
    for way in ways:
        losses.append(way(x, y, width, steps))
        print(f"{way.__name__:10} loss {losses[-1]:.3g}")
    print(f"loss {max(losses):.3g}")


if __name__ == "__main__":
    main()
