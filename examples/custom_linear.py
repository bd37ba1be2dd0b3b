"""A linear layer of one's own, and a whole model made of it, told to see which way a line runs.

    python -m treadle.run examples/custom_linear.py            # 2 s on one core
    python -m treadle.run examples/custom_linear.py --small    # 1 s

A layer is a class with parameters and a forward(); a model is a class with layers and a forward().
The pictures, 12 x 12 with a blurred line in one of four directions and much noise, are made here.

Reaches: accuracy >= 0.98 (small: >= 0.9)
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import argparse
import math

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SIZE = 12
DIRECTIONS = 4


class Linear(nn.Module):
    """y = x W + b, of parameters that are tensors assigned to a module and nothing more."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        # An nn.Parameter that is assigned to a module is one of its parameters().
        self.weight = nn.Parameter(torch.randn(inputs, outputs) / math.sqrt(inputs))
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """(N, inputs) to (N, outputs)."""
        return values @ self.weight + self.bias

    def extra_repr(self) -> str:
        return "{}, {}".format(*self.weight.shape)


class Model(nn.Module):
    """A convolution and two linear layers of our own."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(1, channels, kernel_size=5, stride=2)
        side = (SIZE - 5) // 2 + 1
        self.hidden = Linear(channels * side * side, 64)
        self.scores = Linear(64, DIRECTIONS)

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        """Logarithms of probabilities (N, 4) of pictures (N, 1, 12, 12)."""
        values = torch.relu(self.convolution(pictures))
        values = torch.tanh(self.hidden(values.flatten(1)))
        return nn.functional.log_softmax(self.scores(values), dim=-1)


def lines(count: int) -> TensorDataset:
    """Pictures of a line, and which of the four directions it runs in."""
    labels = torch.randint(DIRECTIONS, (count,))
    angle = (labels * math.pi / DIRECTIONS).reshape(-1, 1, 1, 1)
    offset = torch.empty(count, 1, 1, 1).uniform_(-3, 3)
    place = torch.arange(SIZE) - (SIZE - 1) / 2
    down, right = torch.meshgrid(place, place, indexing="ij")
    distance = down * torch.cos(angle) - right * torch.sin(angle) - offset
    return TensorDataset(torch.exp(-distance.square()) + 0.5 * torch.randn(distance.shape), labels)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="a quick run, for tests")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.manual_seed(options.seed)

    train = DataLoader(lines(1500 if options.small else 8000), batch_size=50, shuffle=True)
    test = DataLoader(lines(1000), batch_size=250)
    model = Model(channels=8 if options.small else 16)
    print(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

    for epoch in range(4 if options.small else 12):
        total = 0.0
        for pictures, labels in train:
            loss = nn.functional.nll_loss(model(pictures), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch + 1:2}: loss {total / len(train):.4f}")

    with torch.no_grad():
        right = sum((model(x).argmax(dim=-1) == y).sum().item() for x, y in test)
    print(f"accuracy {right / len(test.dataset):.4f}")


if __name__ == "__main__":
    main()
