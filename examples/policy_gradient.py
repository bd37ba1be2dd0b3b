"""An agent learns to balance a pole on a cart, by the gradient of its policy (REINFORCE).

    python -m treadle.run examples/policy_gradient.py            # 8 s on one core
    python -m treadle.run examples/policy_gradient.py --small    # 2 s

A cart on a rail is pushed left or right, fifty times a second; the pole on it must stay up.
The policy gives the chance of either push. After an episode, pushes that were followed by more
steps than is usual at that time become more likely (Williams, 1992). Many carts run side by side,
as one tensor. The mechanics are those of Barto, Sutton and Anderson (1983).

Reaches: steps >= 400 (small: >= 120), the mean over 64 carts, which stop after 500 steps (small:
200); pushes by chance last about 22
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import argparse
import math

import torch
from torch import nn
from torch.distributions import Categorical

GRAVITY, CART, POLE, HALF_LENGTH, FORCE, TIME = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02
RAIL, TILT = 2.4, math.radians(12)


class Carts:
    """Carts side by side: place, speed, angle and angular speed of each, (N, 4)."""

    def __init__(self, count: int) -> None:
        self.state = torch.empty(count, 4).uniform_(-0.05, 0.05)
        self.up = torch.ones(count, dtype=torch.bool)

    def push(self, right: torch.Tensor) -> None:
        """A push to the right where it says so, else to the left; then a fiftieth of a second."""
        place, speed, angle, turn = self.state.unbind(dim=1)
        force = torch.where(right, FORCE, -FORCE)
        sine, cosine = angle.sin(), angle.cos()
        pull = (force + POLE * HALF_LENGTH * turn.square() * sine) / (CART + POLE)
        inertia = HALF_LENGTH * (4 / 3 - POLE * cosine.square() / (CART + POLE))
        turning = (GRAVITY * sine - cosine * pull) / inertia
        moving = pull - POLE * HALF_LENGTH * turning * cosine / (CART + POLE)
        change = torch.stack([speed, moving, turn, turning], dim=1)
        # A cart whose pole has fallen stays as it is.
        self.state = torch.where(self.up.unsqueeze(1), self.state + TIME * change, self.state)
        self.up &= (self.state[:, 0].abs() < RAIL) & (self.state[:, 2].abs() < TILT)


def policy_of(width: int) -> nn.Sequential:
    """Scores of left and right for states (N, 4)."""
    policy = nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Linear(width, 2))
    nn.init.orthogonal_(policy[0].weight, gain=math.sqrt(2))
    nn.init.orthogonal_(policy[2].weight, gain=0.01)
    return policy


def episode(policy: nn.Module, count: int, most: int) -> tuple[torch.Tensor, ...]:
    """Carts run until all have fallen: logarithms of the chances of what was done, entropies, and
    which carts were up before it, each (T, N).
    """
    carts = Carts(count)
    chances, entropies, up = [], [], []
    while carts.up.any() and len(up) < most:
        choice = Categorical(logits=policy(carts.state))
        action = choice.sample()
        chances.append(choice.log_prob(action))
        entropies.append(choice.entropy())
        up.append(carts.up.clone())
        carts.push(action == 1)
    return torch.stack(chances), torch.stack(entropies), torch.stack(up)


def to_come(up: torch.Tensor, discount: float) -> torch.Tensor:
    """For carts (T, N) that are up: the steps from each on, each worth less than the one before."""
    returns = torch.zeros(up.shape)
    following = torch.zeros(up.shape[1])
    for step in reversed(range(len(up))):
        following = up[step] * (1 + discount * following)
        returns[step] = following
    return returns


def loss_of(chances: torch.Tensor, entropies: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    returns = to_come(up, discount=0.98)
    # Better or worse than the carts that are still up at the same time.
    usual = returns.sum(dim=1, keepdim=True) / up.sum(dim=1, keepdim=True)
    advantage = (returns - usual) / (returns[up].std() + 1e-6)
    return -((chances * advantage + 0.01 * entropies) * up).sum() / up.sum()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="a quick run, for tests")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    episodes, carts, most = (30, 32, 200) if options.small else (100, 64, 500)

    policy = policy_of(32)
    optimizer = torch.optim.Adam(policy.parameters(), lr=0.02 if options.small else 0.01)
    for number in range(1, episodes + 1):
        chances, entropies, up = episode(policy, carts, most)
        optimizer.zero_grad()
        loss_of(chances, entropies, up).backward()
        nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
        optimizer.step()
        if number % (episodes // 10) == 0:
            print(f"episode {number:3}: {up.sum(dim=0).double().mean().item():.1f} steps")

    with torch.no_grad():
        _, _, up = episode(policy, 64, most)
    print(f"steps {up.sum(dim=0).double().mean().item():.2f}")


if __name__ == "__main__":
    main()
