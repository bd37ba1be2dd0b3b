"""DistributedDataParallel on the CPU beside PyTorch's with gloo, where it is installed: the
milliseconds of a step of training of ResNet-18, the same step without communication, and the share
of the communication that goes on beside backward().

    ./dev bench data_parallel                     # two processes with one thread each: a minute
    ./dev bench data_parallel --batch 4 --world 2 --rounds 9 --views

Each process of a library has its own model and a batch of images of 32x32. The libraries take
turns, so that what else the machine does meets both alike; while one works, the other's processes
wait. A row has the medians of the rounds, and their ratio: below 1, Treadle is faster. The step
without communication is the one in no_sync(). The processes of a machine with fewer cores than
processes wait for each other: such figures mean little.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import argparse
import importlib.util
import multiprocessing
import socket
import statistics
import sys
import time
from multiprocessing.connection import Connection
from typing import Any, Dict, List

from _networks import NETWORKS
from models import LIBRARIES, PYTORCH, TREADLE, imported

STEPS, WARM = 2, 3


class Setup:
    """What is measured."""

    def __init__(self, options: argparse.Namespace, port: int) -> None:
        self.batch, self.world, self.views = options.batch, options.world, options.views
        self.url = f"tcp://127.0.0.1:{port}"


class Trainer:
    """The model in one process."""

    def __init__(self, name: str, setup: Setup, rank: int) -> None:
        self.torch = torch = imported(name)
        torch.set_num_threads(1)
        torch.manual_seed(rank)
        dist = importlib.import_module(f"{LIBRARIES[name]}.distributed")
        dist.init_process_group("gloo", setup.url, world_size=setup.world, rank=rank)
        self.dist = dist
        self.job = NETWORKS["ResNet-18, 32x32"](torch, "cpu", setup.batch, False)
        self.model = torch.nn.parallel.DistributedDataParallel(
            self.job.model, gradient_as_bucket_view=setup.views
        )
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3)
        self.backward: List[tuple] = []

    def step(self) -> None:
        self.optimizer.zero_grad()
        loss = self.job.loss(self.model(*self.job.inputs))
        begin = time.time()
        loss.backward()
        self.backward.append((begin, time.time()))
        self.optimizer.step()

    def alone(self) -> None:
        with self.model.no_sync():
            self.step()

    def seconds(self, what: str) -> float:
        """The time of a step, of all processes together."""
        self.dist.barrier()
        begin = time.perf_counter()
        for _ in range(STEPS):
            getattr(self, what)()
        self.dist.barrier()
        return (time.perf_counter() - begin) / STEPS

    def share(self, what: str) -> float:
        """Of the seconds of all_reduce in a step, the part before the end of backward()'s last
        gradient; Treadle only."""
        self.step()
        return overlap(self.torch, self.model)


def overlap(torch: Any, model: Any) -> float:
    raise NotImplementedError


def serve(name: str, setup: Setup, rank: int, orders: Connection) -> None:
    trainer = Trainer(name, setup, rank)
    for what in iter(orders.recv, None):
        orders.send(trainer.seconds(what))
    trainer.dist.destroy_process_group()


class Library:
    """The processes of a library."""

    def __init__(self, name: str, options: argparse.Namespace) -> None:
        context = multiprocessing.get_context("spawn")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            setup = Setup(options, probe.getsockname()[1])
        self.orders, self.processes = [], []
        for rank in range(options.world):
            mine, others = context.Pipe()
            process = context.Process(target=serve, args=(name, setup, rank, others), daemon=True)
            process.start()
            others.close()
            self.orders.append(mine)
            self.processes.append(process)

    def ask(self, what: str) -> float:
        for order in self.orders:
            order.send(what)
        return max(order.recv() for order in self.orders)

    def close(self) -> None:
        for order in self.orders:
            order.send(None)
        for process in self.processes:
            process.join()


def main(arguments: List[str]) -> int:
    parser = argparse.ArgumentParser(prog="./dev bench data_parallel")
    parser.add_argument("--batch", type=int, default=8, help="images of each process")
    parser.add_argument("--world", type=int, default=2, help="processes of a library")
    parser.add_argument("--rounds", type=int, default=9, help="turns of each library")
    parser.add_argument("--views", action="store_true", help="gradient_as_bucket_view=True")
    options = parser.parse_args(arguments)
    names = [TREADLE, *([PYTORCH] if importlib.util.find_spec("torch") else [])]
    libraries = {name: Library(name, options) for name in names}
    rows = {"step": "with averages", "alone": "in no_sync()"}
    times: Dict[tuple, List[float]] = {(row, name): [] for row in rows for name in names}
    for turn in range(WARM + options.rounds):
        for row in rows:
            for name in names if turn % 2 else reversed(names):
                seconds = libraries[name].ask(row)
                if turn >= WARM:
                    times[row, name].append(seconds * 1e3)
    for library in libraries.values():
        library.close()
    print(f"{'ms of a step':16s}" + "".join(f"{name:>10s}" for name in names) + f"{'ratio':>8s}")
    for row, text in rows.items():
        medians = [statistics.median(times[row, name]) for name in names]
        line = f"{text:16s}" + "".join(f"{median:10.1f}" for median in medians)
        if len(medians) > 1:
            pairs = [a / b for a, b in zip(*(times[row, name] for name in names))]
            low, _, high = statistics.quantiles(pairs, n=4)
            line += f"{medians[0] / medians[1]:8.2f}   {low:.2f} to {high:.2f}"
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
