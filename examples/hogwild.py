"""Hogwild: several processes train one network at once, without waiting for each other.

    python -m treadle.run examples/hogwild.py            # 4 s on two cores
    python -m treadle.run examples/hogwild.py --small    # 1 s

The weights lie in shared memory. Each process draws points of its own, computes gradients and steps
the weights that all see, with no lock: a step that is lost now and then does no harm (Niu and
others, 2011). The task is to tell which of two spirals a point lies on.

Reaches: accuracy >= 0.99 (small: >= 0.9)
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import argparse
import math
from multiprocessing.synchronize import Barrier

import torch
import torch.multiprocessing as mp
from torch import nn


def spirals(count: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Points (count, 2) on two spirals, and which of the two (count,)."""
    labels = torch.randint(2, (count,), generator=generator)
    along = torch.rand(count, generator=generator).sqrt()
    angle = 3 * math.pi * along + math.pi * labels
    points = (along * torch.stack([angle.cos(), angle.sin()])).t()
    return 3 * (points + 0.03 * torch.randn(count, 2, generator=generator)), labels


def network(width: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(2, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 2)
    )


def train(rank: int, model: nn.Module, steps: int, losses: torch.Tensor, start: Barrier) -> None:
    """The work of each process; `losses` (processes, steps) is shared, too."""
    torch.set_num_threads(1)  # the processes are what runs side by side
    generator = torch.Generator().manual_seed(1000 + rank)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.02, total_iters=steps)
    loss_function = nn.CrossEntropyLoss()
    start.wait()  # until all are there
    for step in range(steps):
        points, labels = spirals(32, generator)
        loss = loss_function(model(points), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        losses[rank, step] = loss.detach()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="a quick run, for tests")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    steps = 1600 if options.small else 8000

    model = network(32 if options.small else 64)
    model.share_memory()  # the gradients are not shared: each process makes its own
    losses = torch.zeros(options.processes, steps).share_memory_()
    context = mp.get_context("spawn")
    start = context.Barrier(options.processes, timeout=60)
    processes = [
        context.Process(target=train, args=(rank, model, steps, losses, start))
        for rank in range(options.processes)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        if process.exitcode:
            raise SystemExit(f"a process ended with {process.exitcode}")

    for rank, part in enumerate(losses):
        means = part.view(4, -1).mean(dim=1).tolist()
        print(f"process {rank}: loss", ", ".join(f"{mean:.3f}" for mean in means))
    points, labels = spirals(2000, torch.Generator().manual_seed(1))
    with torch.no_grad():
        right = (model(points).argmax(dim=1) == labels).double().mean().item()
    print(f"accuracy {right:.4f}")


if __name__ == "__main__":
    main()
