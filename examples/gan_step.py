"""The training step of a generative adversarial network: noise learns to fall on a ring.

    python -m treadle.run examples/gan_step.py            # 5 s on one core
    python -m treadle.run examples/gan_step.py --small    # 1 s

Two models play: the discriminator learns to tell points of the ring from points that the generator
makes of noise; the generator learns to make points that are taken for those of the ring. Each has
its own optimizer; detach() keeps the discriminator's step out of the generator.

Reaches: distance <= 0.06 (small: <= 0.15), the energy distance of made points from the ring, which
is about 1 at first
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import argparse
import copy
import math

import torch
from torch import nn

NOISE = 4


def ring(count: int) -> torch.Tensor:
    """Points (count, 2) around a circle of radius 1 about (1, 0)."""
    angle = 2 * math.pi * torch.rand(count)
    radius = 1 + 0.1 * torch.randn(count)
    return torch.stack([1 + radius * angle.cos(), radius * angle.sin()], dim=1)


def network(inputs: int, width: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(inputs, width),
        nn.LeakyReLU(0.2),
        nn.Linear(width, width),
        nn.LeakyReLU(0.2),
        nn.Linear(width, outputs),
    )


class Game:
    """Generator and discriminator, each with its optimizer."""

    def __init__(self, width: int) -> None:
        self.generator = network(NOISE, width, 2)
        self.discriminator = network(2, width, 1)
        self.loss = nn.BCEWithLogitsLoss()
        adam = dict(lr=1e-3, betas=(0.5, 0.9))
        self.generator_optimizer = torch.optim.Adam(self.generator.parameters(), **adam)
        self.discriminator_optimizer = torch.optim.Adam(self.discriminator.parameters(), **adam)
        # The generated points are those of weights averaged over the last steps: the two circle
        # around where neither can gain, and the average is nearer to it than either.
        self.average = copy.deepcopy(self.generator).requires_grad_(False)

    def step(self, real: torch.Tensor) -> tuple[float, float]:
        """One step of each on points (N, 2); the two losses."""
        made = self.generator(torch.randn(len(real), NOISE))
        yes, no = torch.ones(len(real), 1), torch.zeros(len(real), 1)

        self.discriminator_optimizer.zero_grad()
        loss_real = self.loss(self.discriminator(real), yes)
        loss_made = self.loss(self.discriminator(made.detach()), no)
        loss_discriminator = loss_real + loss_made
        loss_discriminator.backward()
        self.discriminator_optimizer.step()

        self.generator_optimizer.zero_grad()
        loss_generator = self.loss(self.discriminator(made), yes)
        loss_generator.backward()
        self.generator_optimizer.step()
        for average, value in zip(self.average.parameters(), self.generator.parameters()):
            average.lerp_(value.detach(), 0.02)
        return loss_discriminator.item(), loss_generator.item()

    @torch.no_grad()
    def distance(self, count: int = 1000) -> float:
        """The energy distance between made and real points: 0 where they are spread alike."""
        made, real = self.average(torch.randn(count, NOISE)), ring(count)
        apart = torch.cdist(made, real).mean()
        within = (torch.pdist(made).mean() + torch.pdist(real).mean()) / 2
        return (2 * (apart - within)).clamp(min=0).sqrt().item()


def picture(points: torch.Tensor, size: int = 20) -> str:
    """Where points (N, 2) lie in [-0.5, 2.5] x [-1.5, 1.5], as rows of characters."""
    cells = ((points - torch.tensor([-0.5, -1.5])) * size / 3).long()
    cells = cells[((cells >= 0) & (cells < size)).all(dim=1)]
    counts = torch.bincount(cells[:, 1] * size + cells[:, 0], minlength=size * size)
    level = (counts * 3 / counts.max()).ceil().long().reshape(size, size).tolist()
    return "\n".join("".join(2 * " .o#"[value] for value in row) for row in level)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="a quick run, for tests")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.manual_seed(options.seed)

    game = Game(width=32 if options.small else 64)
    batch, steps = (64, 1000) if options.small else (256, 5000)
    print(f"before: distance {game.distance():.4f}")
    for step in range(1, steps + 1):
        losses = game.step(ring(batch))
        if step % (steps // 5) == 0:
            print(
                f"step {step}: discriminator {losses[0]:.3f}, generator {losses[1]:.3f}, "
                f"distance {game.distance():.4f}"
            )
    with torch.no_grad():
        print(picture(game.average(torch.randn(1000, NOISE))))
    print(f"distance {game.distance(4000):.4f}")


if __name__ == "__main__":
    main()
